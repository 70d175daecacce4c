package tree

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// denials are the places tools never touch: by name, existing or not, and by
// identity, so that no link, no other name and no move leads to them.
type denials struct {
	list   []denial
	inside bool // one of them lies inside the root, or may: something is mounted in it
}

type denial struct {
	path string // absolute, links resolved as far as it exists
	rel  string // slash path below the root; "" where it is outside
	id   ident  // as it was when the root was opened; zero where it did not exist
}

func newDenials(dir string, top ident, paths []string) (denials, error) {
	d := denials{inside: len(paths) > 0 && mountedBelow(dir)}
	for _, p := range paths {
		abs, err := filepath.Abs(p)
		if err != nil {
			return d, err
		}
		one := denial{path: resolve(abs)}
		if at, err := os.Stat(one.path); err == nil {
			one.id = identOf(at)
		}
		if _, within := below(one.path, dir); within || one.id.same(top) {
			return d, fmt.Errorf("%w: it lies in %s", ErrDenied, clip(one.path))
		}
		if rel, ok := below(dir, one.path); ok {
			one.rel, d.inside = rel, true
		}
		d.list = append(d.list, one)
	}
	return d, nil
}

// covers says that a slash path below the root is at or below a denied one by its name.
func (d denials) covers(rel string) bool {
	if !d.inside {
		return false
	}
	for _, one := range d.list {
		if one.rel == "" || len(rel) < len(one.rel) || !samePath(rel[:len(one.rel)], one.rel) {
			continue
		}
		if len(rel) == len(one.rel) || rel[len(one.rel)] == '/' {
			return true
		}
	}
	return false
}

// holds says that this very file or directory is denied: one that was there when
// the root was opened, wherever it is now, or the one that is there now.
func (d denials) holds(id ident) bool {
	if len(d.list) == 0 {
		return false
	}
	return slices.ContainsFunc(d.identities(), id.same)
}

func (d denials) identities() []ident {
	all := make([]ident, 0, 2*len(d.list))
	for _, one := range d.list {
		if one.id != (ident{}) {
			all = append(all, one.id)
		}
		if at, err := os.Stat(one.path); err == nil {
			if now := identOf(at); !now.same(one.id) {
				all = append(all, now)
			}
		}
	}
	return all
}
