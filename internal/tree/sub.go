package tree

import (
	"errors"
	"path/filepath"
)

// Sub opens a directory below the root, given as [Root.Rel] takes it, as a root of its own: one that
// reaches no further, and denies all that r denies. Ignore files above it do not count in it. Close it.
func (r *Root) Sub(name string) (*Root, error) {
	sub, err := r.sub(name)
	if err != nil {
		return nil, r.explain("open root", name, err)
	}
	return sub, nil
}

func (r *Root) sub(name string) (*Root, error) {
	rel, err := r.allowed(name)
	if err != nil {
		return nil, err
	}
	// Links are resolved first, as os.Root follows no absolute ones. Should the way change meanwhile,
	// os.Root still opens nothing outside, and what is opened is compared with what was resolved.
	dir, err := filepath.EvalSymlinks(filepath.Join(r.dir, filepath.FromSlash(rel)))
	if err != nil {
		return nil, bare(err)
	}
	real, within := below(r.dir, dir)
	if !within {
		return nil, ErrOutside
	}
	top, err := r.os.OpenRoot(filepath.FromSlash(real))
	if err != nil {
		return nil, bare(err)
	}
	sub := &Root{dir: dir, named: filepath.Join(r.named, filepath.FromSlash(rel)), os: top}
	denied := make([]string, len(r.denied.list))
	for i, one := range r.denied.list {
		denied[i] = one.path
	}
	if err = sub.settle(denied); err == nil && sub.gone() != nil {
		err = errors.New("it was moved or replaced while it was opened")
	}
	if err == nil && r.denied.holds(sub.id) {
		err = ErrDenied
	}
	if err != nil {
		_ = top.Close()
		return nil, err
	}
	return sub, nil
}

// Within says that the root is dir, an absolute path, or lies below it.
func (r *Root) Within(dir string) bool {
	dir = filepath.Clean(dir)
	for _, top := range []string{dir, resolve(dir)} {
		if _, within := below(top, r.dir); within {
			return true
		}
	}
	_, within := below(dir, r.named)
	return within
}
