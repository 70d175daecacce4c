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

// Root is a directory the operator granted. Every operation starts at an
// os.Root: nothing outside it can be named, whatever links say and however the
// tree changes meanwhile. Bind mounts and hard links are not seen through, but
// for what is denied: that is known by its identity. It is safe for concurrent use.
type Root struct {
	dir     string // absolute, links resolved
	named   string // absolute, as the operator wrote it
	os      *os.Root
	id      ident
	denied  denials
	escapes error // the error by which os.Root says that a path leaves it
}

// Open opens dir. Nothing at or below a denied absolute path can be opened,
// listed or walked, whether or not it exists yet; a root at or below one is
// refused.
func Open(dir string, denied ...string) (*Root, error) {
	named, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open root %s: %w", clip(dir), err)
	}
	real, err := filepath.EvalSymlinks(named)
	if err != nil {
		return nil, fmt.Errorf("open root %s: %w", clip(dir), bare(err))
	}
	if at, err := os.Stat(real); err != nil {
		return nil, fmt.Errorf("open root %s: %w", clip(dir), bare(err))
	} else if !at.IsDir() {
		return nil, fmt.Errorf("open root %s: not a directory", clip(dir))
	}
	top, err := os.OpenRoot(real)
	if err != nil {
		return nil, fmt.Errorf("open root %s: %w", clip(dir), bare(err))
	}
	r := &Root{dir: real, named: named, os: top}
	if err := r.settle(denied); err != nil {
		_ = top.Close()
		return nil, fmt.Errorf("open root %s: %w", clip(dir), err)
	}
	return r, nil
}

func (r *Root) settle(denied []string) error {
	at, err := r.os.Stat(".")
	if err != nil {
		return bare(err)
	}
	r.id = identOf(at)
	if r.denied, err = newDenials(r.dir, r.id, denied); err != nil {
		return err
	}
	// os does not export the error; it is told by making one.
	_, err = r.os.Lstat("..")
	if r.escapes = bare(err); r.escapes == nil {
		return errors.New("os.Root does not hold: .. can be named")
	}
	return nil
}

// bare is an os error without the path it repeats.
func bare(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// Name is the base name of the directory; "root" for the top of a file system.
func (r *Root) Name() string {
	name := filepath.Base(r.dir)
	if strings.ContainsAny(name, `/\`) {
		return "root"
	}
	return name
}

// Dir is the directory's absolute path, links resolved.
func (r *Root) Dir() string { return r.dir }

// Close lets go of the root; files opened from it stay open.
func (r *Root) Close() error { return r.os.Close() }

// gone says that the root itself was removed or replaced.
func (r *Root) gone() error {
	at, err := os.Stat(r.dir)
	if err == nil && identOf(at).same(r.id) {
		return nil
	}
	return fmt.Errorf("the root %s %w: %w; start the server again", clip(r.Name()), ErrGone, noSuch)
}

// OpenFile opens a regular file for reading, following links inside the root,
// without ever blocking on a FIFO or a device. Errors: [ErrOutside],
// [ErrNotFile], [ErrDenied], fs.ErrNotExist, fs.ErrPermission.
func (r *Root) OpenFile(name string) (*os.File, fs.FileInfo, error) {
	rel, err := r.allowed(name)
	if err != nil {
		return nil, nil, r.explain("open", name, err)
	}
	f, err := r.open(rel, openFlags)
	if err != nil {
		return nil, nil, r.explain("open", name, r.whyNotOpened(rel, err))
	}
	at, err := f.Stat()
	switch {
	case err != nil:
		err = bare(err)
	case r.denied.holds(identOf(at)):
		err = ErrDenied
	case !at.Mode().IsRegular():
		err = fmt.Errorf("%w: it is %s", ErrNotFile, shape(at.Mode()))
	case strings.HasSuffix(filepath.ToSlash(name), "/"):
		err = errors.New("a file, not a directory: leave out the / at its end")
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, r.explain("open", name, err)
	}
	if at.Size() == 0 {
		// Kernel files that stand there as regular ones may wait for a reader's next line (/proc/kmsg). Files that
		// cannot wait know no deadline.
		_ = f.SetReadDeadline(time.Now().Add(maxWait))
	}
	return f, at, nil
}

// maxWait is how long a read may wait for a file that tells no size.
const maxWait = time.Second

// whyNotOpened names the thing that could not be opened where that is the reason: a socket.
func (r *Root) whyNotOpened(rel string, err error) error {
	for _, clear := range []error{ErrDenied, ErrOutside, fs.ErrNotExist, fs.ErrPermission} {
		if errors.Is(err, clear) {
			return err
		}
	}
	if at, e := r.os.Stat(rel); e == nil && !at.Mode().IsRegular() {
		return fmt.Errorf("%w: it is %s", ErrNotFile, shape(at.Mode()))
	}
	return err
}

// shape says what a thing is.
func shape(m fs.FileMode) string {
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

// allowed is Rel, and refuses what is denied by its name alone, existing or not.
func (r *Root) allowed(name string) (string, error) {
	rel, err := r.rel(name)
	if err == nil && r.denied.covers(rel) {
		return "", ErrDenied
	}
	return rel, err
}

// open opens rel, following links inside the root. Where something denied lies
// inside the root, and for links os.Root does not follow though they stay inside
// (absolute ones, more than 8 in a row), it goes down name by name and looks at
// each directory.
func (r *Root) open(rel string, flags int) (*os.File, error) {
	if !r.denied.inside {
		f, err := r.os.OpenFile(rel, os.O_RDONLY|flags, 0)
		if !r.linked(err) {
			return f, err
		}
	}
	return r.openStepwise(rel, flags)
}

// linked says that os.Root refused because of a link.
func (r *Root) linked(err error) bool {
	return err != nil && (errors.Is(err, r.escapes) || isLoop(err))
}

// Stat describes a name, following links inside the root.
func (r *Root) Stat(name string) (fs.FileInfo, error) {
	return r.describe("stat", name, true)
}

// Lstat describes a name; a link is described itself.
func (r *Root) Lstat(name string) (fs.FileInfo, error) {
	return r.describe("stat", name, false)
}

func (r *Root) describe(operation, name string, follow bool) (fs.FileInfo, error) {
	rel, err := r.allowed(name)
	if err != nil {
		return nil, r.explain(operation, name, err)
	}
	var at fs.FileInfo
	if !r.denied.inside {
		if follow {
			at, err = r.os.Stat(rel)
		} else {
			at, err = r.os.Lstat(rel)
		}
	}
	if r.denied.inside || r.linked(err) {
		at, err = r.statStepwise(rel, follow)
	}
	switch {
	case err != nil:
	case r.denied.holds(identOf(at)):
		err = ErrDenied
	case !at.IsDir() && strings.HasSuffix(filepath.ToSlash(name), "/"):
		err = errors.New("not a directory: leave out the / at its end")
	}
	if err != nil {
		return nil, r.explain(operation, name, err)
	}
	return at, nil
}
