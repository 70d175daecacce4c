package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Root is a directory the operator granted. Every operation starts at an os.Root, so that nothing outside it can be
// opened, whatever its links say and however the tree changes. Bind mounts and hard links are followed, unless they
// lead to a denied file: that is known by its identity. Safe for concurrent use.
type Root struct {
	dir        string // absolute, links resolved
	given      string // absolute, as given by the operator
	os         *os.Root
	id         ident
	denied     denials
	errEscapes error // the error os.Root returns for a path that leaves it
}

// Open opens dir. Nothing at or below a denied absolute path can be opened, listed or walked, whether or not it exists
// yet. A root at or below a denied path is an error.
func Open(dir string, denied ...string) (*Root, error) {
	r, err := openRoot(dir, denied)
	if err == nil {
		if err = checkOutsideStores(r.dir); err != nil {
			_ = r.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open root %s: %w", clip(dir), withoutPath(err))
	}
	return r, nil
}

// OpenScratch opens a directory that this program has made for commands. It may lie in a store.
func OpenScratch(dir string) (*Root, error) {
	r, err := openRoot(dir, nil)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", clip(dir), withoutPath(err))
	}
	return r, nil
}

func openRoot(dir string, denied []string) (*Root, error) {
	given, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	real, err := filepath.EvalSymlinks(given)
	if err != nil {
		return nil, err
	}
	if at, err := os.Stat(real); err != nil { // OpenRoot would block on a FIFO
		return nil, err
	} else if !at.IsDir() {
		return nil, errors.New("not a directory")
	}
	top, err := os.OpenRoot(real)
	if err != nil {
		return nil, err
	}
	return newRoot(real, given, top, denied)
}

// newRoot returns the root for an open directory. It closes top if that fails.
func newRoot(dir, given string, top *os.Root, denied []string) (_ *Root, err error) {
	defer func() {
		if err != nil {
			_ = top.Close()
		}
	}()
	at, err := top.Stat(".")
	if err != nil {
		return nil, withoutPath(err)
	}
	_, escapes := top.Lstat("..") // os does not export this error, so provoke it
	if escapes == nil {
		return nil, errors.New("os.Root is unsafe here: it opens the parent directory")
	}
	r := &Root{dir: dir, given: given, os: top, id: identOf(at), errEscapes: withoutPath(escapes)}
	r.denied, err = newDenials(dir, r.id, denied)
	return r, err
}

// withoutPath returns the cause of an os error, which repeats the path.
func withoutPath(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}

// Name returns the base name of the directory; "root" for the top of a file system.
func (r *Root) Name() string {
	name := filepath.Base(r.dir)
	if strings.ContainsAny(name, `/\`) {
		return "root"
	}
	return name
}

// Dir returns the absolute path of the directory, with links resolved.
func (r *Root) Dir() string { return r.dir }

// Close closes the root; files opened from it stay open.
func (r *Root) Close() error { return r.os.Close() }

// checkPresent returns an error if the root itself was removed or replaced.
func (r *Root) checkPresent() error {
	at, err := os.Stat(r.dir)
	if err == nil && identOf(at).same(r.id) {
		return nil
	}
	return fmt.Errorf("the root %s %w: %w; start the server again", clip(r.Name()), ErrGone, errNotExist)
}

// OpenFile opens a regular file for reading. It follows links inside the root and never blocks on a FIFO or a device.
// Errors: [ErrOutside], [ErrNotFile], [ErrDenied], fs.ErrNotExist, fs.ErrPermission.
func (r *Root) OpenFile(name string) (*os.File, fs.FileInfo, error) {
	rel, err := r.relAllowed(name)
	if err != nil {
		return nil, nil, r.explain("open", name, err)
	}
	f, err := r.open(rel, openFlags)
	if err != nil {
		return nil, nil, r.explain("open", name, r.openError(rel, err))
	}
	at, err := f.Stat()
	switch {
	case err != nil:
		err = withoutPath(err)
	case r.denied.coversFile(identOf(at)):
		err = ErrDenied
	case !at.Mode().IsRegular():
		err = fmt.Errorf("%w: it is %s", ErrNotFile, describeMode(at.Mode()))
		if _, denied := r.Stat(name); errors.Is(denied, ErrDenied) { // the directory of a store
			err = ErrDenied
		}
	case strings.HasSuffix(filepath.ToSlash(name), "/"):
		err = errors.New("a file, not a directory; remove the / at its end")
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, r.explain("open", name, err)
	}
	if at.Size() == 0 {
		// Kernel files that look regular, such as /proc/kmsg, may block until the next line. Files that cannot block
		// ignore the deadline.
		_ = f.SetReadDeadline(time.Now().Add(readTimeout))
	}
	return f, at, nil
}

// readTimeout is how long a read of a file without a size may block.
const readTimeout = time.Second

// openError replaces an error of open by ErrNotFile if the file is a socket or another special file.
func (r *Root) openError(rel string, err error) error {
	for _, clear := range []error{ErrDenied, ErrOutside, fs.ErrNotExist, fs.ErrPermission} {
		if errors.Is(err, clear) {
			return err
		}
	}
	if at, e := r.os.Stat(rel); e == nil && !at.Mode().IsRegular() {
		return fmt.Errorf("%w: it is %s", ErrNotFile, describeMode(at.Mode()))
	}
	return err
}

// describeMode names the type of a file.
func describeMode(m fs.FileMode) string {
	switch {
	case m.IsRegular():
		return "a file"
	case m.IsDir():
		return "a directory"
	case m&fs.ModeSymlink != 0:
		return "a link"
	case m&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "a special file"
}

// relAllowed is Rel, and refuses names that are denied, whether or not they exist.
func (r *Root) relAllowed(name string) (string, error) {
	rel, err := r.rel(name)
	if err == nil && r.denied.coversPath(rel) {
		return "", ErrDenied
	}
	return rel, err
}

// Stat describes a file, following links inside the root.
func (r *Root) Stat(name string) (fs.FileInfo, error) {
	return r.describe(name, true)
}

// Lstat describes a file or a link itself.
func (r *Root) Lstat(name string) (fs.FileInfo, error) {
	return r.describe(name, false)
}

func (r *Root) describe(name string, follow bool) (fs.FileInfo, error) {
	rel, err := r.relAllowed(name)
	if err != nil {
		return nil, r.explain("stat", name, err)
	}
	at, err := r.statStepwise(rel, follow)
	switch {
	case err != nil:
	case r.denied.coversFile(identOf(at)):
		err = ErrDenied
	case !at.IsDir() && strings.HasSuffix(filepath.ToSlash(name), "/"):
		err = errors.New("not a directory; remove the / at its end")
	}
	if err != nil {
		return nil, r.explain("stat", name, err)
	}
	return at, nil
}
