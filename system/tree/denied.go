package tree

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// denials are the paths that tools never open: by name, whether or not they exist, and by identity, so that no link,
// hard link or rename leads to them.
type denials struct {
	list   []denial
	inside bool // one of them lies inside the root, or may: something is mounted in it
}

// StoreMarker is the file that marks a directory as a store of observations, whoever uses it. Tools never see such a
// directory. A store has this file before any other, so a file that was opened before the marker was looked for, and
// not found, is none of a store.
const StoreMarker = ".mcp-funnel-store"

// isStore reports whether a directory has the marker.
func (d folder) isStore() bool {
	_, err := d.lstat(StoreMarker)
	return err == nil
}

// hasStore reports whether a name in d is a directory with the marker.
func (d folder) hasStore(name string) bool {
	sub, err := d.openDir(name)
	if err != nil {
		return false
	}
	defer sub.close()
	return sub.isStore()
}

// checkOutsideStores returns an error if an absolute directory is a store or lies in one.
func checkOutsideStores(dir string) error {
	for up := dir; ; up = filepath.Dir(up) {
		if _, err := os.Lstat(filepath.Join(up, StoreMarker)); err == nil {
			return fmt.Errorf("%w: it lies in the store %s", ErrDenied, clip(up))
		}
		if up == filepath.Dir(up) {
			return nil
		}
	}
}

type denial struct {
	path string // absolute, links resolved as far as it exists
	rel  string // slash path below the root; "" where it is outside
	id   ident  // when the root was opened; zero if it did not exist
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
		if _, within := relUnder(one.path, dir); within || one.id.same(top) {
			return d, fmt.Errorf("%w: it lies in %s", ErrDenied, clip(one.path))
		}
		if rel, ok := relUnder(dir, one.path); ok {
			one.rel, d.inside = rel, true
		}
		d.list = append(d.list, one)
	}
	return d, nil
}

// coversPath reports whether a slash path below the root is at or below a denied one by name.
func (d denials) coversPath(rel string) bool {
	if !d.inside {
		return false
	}
	for _, one := range d.list {
		n := len(one.rel)
		if n > 0 && len(rel) >= n && samePath(rel[:n], one.rel) && (len(rel) == n || rel[n] == '/') {
			return true
		}
	}
	return false
}

// liesBelow reports whether a denied path lies below a slash path below the root.
func (d denials) liesBelow(rel string) bool {
	return slices.ContainsFunc(d.list, func(one denial) bool {
		return len(one.rel) > len(rel) && samePath(one.rel[:len(rel)], rel) && one.rel[len(rel)] == '/'
	})
}

// coversFile reports whether a file or directory is denied by identity: as it was when the root was opened, wherever it
// is now, or as found under the denied name now.
func (d denials) coversFile(id ident) bool {
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
