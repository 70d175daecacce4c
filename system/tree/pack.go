package tree

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// PackIn writes a directory directly in the root, with all that it holds, as a tar archive, and returns the names of the
// files, links and directories, the first of them base; those of directories end in a slash. An error, with the names up
// to it, names what is not packed: a socket, a protected or denied name, what is over maxNames or, of the bytes of all
// files, over maxBytes.
func (r *Root) PackIn(
	ctx context.Context, base string, w io.Writer, maxNames int, maxBytes int64,
) (names []string, err error) {
	dir, err := r.Sub(base)
	if err != nil {
		return nil, err
	}
	defer dir.Close() //nolint:errcheck // it was only read
	switch {
	case dir.dir != filepath.Join(r.dir, base): // it became a link
		return nil, errReplaced
	case mountedBelow(dir.dir): // its files lie elsewhere
		return nil, errors.New("something is mounted in it")
	}
	links, _ := dir.os.FS().(fs.ReadLinkFS) // it is one
	all, bytes := unblocked{links, dir.os}, int64(0)
	err = fs.WalkDir(all, ".", func(name string, e fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		at, err := e.Info()
		switch {
		case err != nil:
		case Protected(name):
			err = ErrProtected
		case dir.denied.coversPath(name), dir.denied.coversFile(identOf(at)):
			err = ErrDenied
		case at.Mode().Type()&^(fs.ModeDir|fs.ModeSymlink) != 0:
			err = fmt.Errorf("%w: it is %s", ErrNotFile, describeMode(at.Mode()))
		case at.Mode().IsRegular():
			bytes += at.Size()
		}
		full := path.Join(base, name)
		if e.IsDir() {
			full += "/"
		}
		if names = append(names, full); err == nil && (len(names) > maxNames || bytes > maxBytes) {
			err = fmt.Errorf("with this it has over %d files and directories, or over %d MiB: take its parts one by one",
				maxNames, maxBytes>>20)
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", clip(full), err)
		}
		return err
	})
	if err != nil {
		return names, err
	}
	to := tar.NewWriter(w)
	err = to.AddFS(all)
	return names, errors.Join(err, to.Close())
}

// unblocked is the file system of a root in which no pipe is opened, not even one that was a file a moment ago.
type unblocked struct {
	fs.ReadLinkFS
	root *os.Root
}

// Open implements [fs.FS].
func (u unblocked) Open(name string) (fs.File, error) {
	f, err := u.root.OpenFile(name, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, err
	}
	if at, err := f.Stat(); err != nil || !at.IsDir() && !at.Mode().IsRegular() {
		return nil, errors.Join(ErrNotFile, err, f.Close())
	}
	return f, nil
}

// RemoveNamesIn removes a file directly in the root, or a directory with what [Root.PackIn] named in it. With an error
// what has come since stays.
func (r *Root) RemoveNamesIn(base string, names []string) error {
	if len(names) > 1 {
		dir, err := openWithoutLinks(r.os, base)
		if err != nil {
			return withoutPath(err)
		}
		defer dir.Close() //nolint:errcheck // nothing was written to it
		for _, name := range slices.Backward(names[1:]) {
			_, below, _ := strings.Cut(strings.TrimSuffix(name, "/"), "/")
			if err := dir.Remove(below); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("%s: %w", clip(name), withoutPath(err))
			}
		}
	}
	return r.RemoveIn(base)
}

// UnpackIn makes a directory directly in the root of an archive that [Root.PackIn] wrote. With an error the caller
// removes what there is of it.
func (r *Root) UnpackIn(base string, from io.Reader) error {
	if err := r.os.Mkdir(base, 0o777); err != nil {
		return withoutPath(err)
	}
	top, err := openWithoutLinks(r.os, base)
	if err != nil {
		return withoutPath(err)
	}
	defer top.Close() //nolint:errcheck // nothing was written to it
	archive := tar.NewReader(from)
	var heads []*tar.Header // whose mode and time are set when all is in the directories
	for {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		switch name := path.Clean(head.Name); head.Typeflag {
		case tar.TypeDir:
			err = top.MkdirAll(name, 0o700)
		case tar.TypeSymlink:
			if err := top.Symlink(head.Linkname, name); err != nil {
				return err
			}
			continue
		default:
			err = unpackFile(top, name, archive)
		}
		if err != nil {
			return err
		}
		heads = append(heads, head)
	}
	for i := len(heads) - 1; i >= 0; i-- {
		name := path.Clean(heads[i].Name)
		if err := errors.Join(top.Chmod(name, heads[i].FileInfo().Mode().Perm()),
			top.Chtimes(name, heads[i].ModTime, heads[i].ModTime)); err != nil {
			return err
		}
	}
	return nil
}

func unpackFile(top *os.Root, name string, from io.Reader) error {
	f, err := top.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Close())
}
