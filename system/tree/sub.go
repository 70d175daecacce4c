package tree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Sub opens a directory below the root, named as in [Root.Rel], as a root of its own with the same denied paths. Ignore
// files above it do not apply in it. The caller must close it.
func (r *Root) Sub(name string) (*Root, error) {
	sub, err := r.sub(name)
	if err != nil {
		return nil, r.explain("open root", name, err)
	}
	return sub, nil
}

func (r *Root) sub(name string) (*Root, error) {
	rel, err := r.relAllowed(name)
	if err != nil {
		return nil, err
	}
	// Resolve links first, because os.Root does not follow absolute ones. If the path changes meanwhile, os.Root still
	// opens nothing outside, and no link is followed any more: the directory is the one of that path.
	dir, err := filepath.EvalSymlinks(filepath.Join(r.dir, filepath.FromSlash(rel)))
	if err != nil {
		return nil, withoutPath(err)
	}
	real, within := relUnder(r.dir, dir)
	if !within {
		return nil, ErrOutside
	}
	top, err := openWithoutLinks(r.os, real)
	if err != nil {
		return nil, withoutPath(err)
	}
	var denied []string
	for _, one := range r.denied.list {
		denied = append(denied, one.path)
	}
	sub, err := newRoot(dir, filepath.Join(r.given, filepath.FromSlash(rel)), top, denied)
	if err != nil {
		return nil, err
	}
	switch err = checkOutsideStores(dir); {
	case err != nil:
	case r.denied.coversFile(sub.id):
		err = ErrDenied
	case sub.checkPresent() != nil:
		err = errReplaced
	default:
		return sub, nil
	}
	_ = sub.Close()
	return nil, err
}

var errReplaced = errors.New("it was moved or replaced while it was opened")

// openWithoutLinks opens a directory below another one by its slash path. A link in the path is [errReplaced].
func openWithoutLinks(from *os.Root, rel string) (*os.Root, error) {
	dir, err := from.OpenRoot(".")
	for part := range strings.SplitSeq(rel, "/") {
		if err != nil {
			return nil, err
		}
		var named, opened fs.FileInfo
		above := dir
		if named, err = above.Lstat(part); err == nil {
			dir, err = above.OpenRoot(part)
		}
		_ = above.Close()
		if err != nil {
			return nil, err
		}
		if opened, err = dir.Stat("."); err == nil && !(named.IsDir() && os.SameFile(named, opened)) {
			err = errReplaced
		}
		if err != nil {
			_ = dir.Close()
		}
	}
	return dir, err
}

// Within reports whether the root is dir, an absolute path, or lies below it.
func (r *Root) Within(dir string) bool {
	dir = filepath.Clean(dir)
	for _, top := range []string{dir, resolve(dir)} {
		if _, within := relUnder(top, r.dir); within {
			return true
		}
	}
	_, within := relUnder(dir, r.given)
	return within
}
