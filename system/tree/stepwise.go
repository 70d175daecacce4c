package tree

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Limits of resolveStepwise: links followed (Linux follows 40 in a path), and directories entered in all, including
// each restart after a ".." in a link.
const (
	maxLinks = 40
	maxSteps = 10_000
)

// resolveStepwise opens one directory after another from the root, and never lets the system follow a link: it reads
// the link and continues with its target, and for ".." it restarts with the names before. So it cannot leave the root,
// and it checks every directory: a denied one and a store end it. last is called with the last directory and the base name ("."
// for the root).
func (r *Root) resolveStepwise(rel string, last func(dir folder, name string) error) error {
	todo, done := strings.Split(rel, "/"), []string(nil)
	denied := r.denied.identities()
	dir, err := r.top()
	if err != nil {
		return err
	}
	defer func() { dir.close() }()
	restart := func(names []string) error {
		top, err := r.top()
		if err != nil {
			return err
		}
		dir.close()
		dir, todo, done = top, names, nil
		return nil
	}
	links := 0
	for steps := 0; ; steps++ {
		if links > maxLinks || steps > maxSteps {
			return syscall.ELOOP
		}
		name := todo[0]
		switch {
		case name == "..":
			if len(done) == 0 {
				return ErrOutside
			}
			rest := append(slices.Clone(done[:len(done)-1]), todo[1:]...)
			if len(rest) == 0 {
				rest = []string{"."}
			}
			if err := restart(rest); err != nil {
				return err
			}
			continue
		case len(todo) == 1:
			err = last(dir, name)
			if dir.isStore() {
				return ErrDenied
			}
			if err == nil || name == "." {
				return err
			}
		case name == "" || name == ".":
			todo = todo[1:]
			continue
		default:
			var sub folder
			sub, err = dir.openDir(name)
			if dir.isStore() {
				if err == nil {
					sub.close()
				}
				return ErrDenied
			}
			if err == nil {
				dir.close()
				dir = sub
				if id, err := dir.id(); err != nil {
					return err
				} else if slices.ContainsFunc(denied, id.same) {
					return ErrDenied
				}
				done, todo = append(done, name), todo[1:]
				continue
			}
		}
		target, e := dir.readlink(name)
		if e != nil {
			return err
		}
		links++
		if todo, err = r.spliceTarget(target, todo[1:]); err != nil {
			return err
		}
		if isAbsolute(target) {
			if err := restart(todo); err != nil {
				return err
			}
		}
	}
}

// spliceTarget returns the names to resolve after a link: those of its target, then rest.
func (r *Root) spliceTarget(target string, rest []string) ([]string, error) {
	if len(target) > maxName {
		return nil, syscall.ELOOP
	}
	if isAbsolute(target) {
		rel, err := r.relOfAbsolute(target)
		if err != nil {
			return nil, err
		}
		target = rel
	}
	parts := strings.Split(strings.TrimRight(filepath.ToSlash(target), "/"), "/")
	all := append(slices.DeleteFunc(parts, func(p string) bool { return p == "" || p == "." }), rest...)
	if len(all) == 0 {
		return []string{"."}, nil
	}
	return all, nil
}

func isAbsolute(target string) bool {
	return filepath.IsAbs(target) || path.IsAbs(filepath.ToSlash(target)) || filepath.VolumeName(target) != ""
}

// openStepwise opens rel, following links inside the root.
func (r *Root) openStepwise(rel string, flags int) (f *os.File, err error) {
	err = r.resolveStepwise(rel, func(dir folder, name string) error {
		if r.denied.inside && name != "." {
			// A denied directory must not even be opened.
			if at, e := dir.lstat(name); e == nil && at.IsDir() && r.denied.coversFile(at.id) {
				return ErrDenied
			}
		}
		f, err = dir.openFile(name, flags)
		return err
	})
	if err != nil {
		if f != nil {
			_ = f.Close()
		}
		return nil, err
	}
	return f, nil
}

// statStepwise is Stat or Lstat of rel.
func (r *Root) statStepwise(rel string, follow bool) (at fs.FileInfo, err error) {
	err = r.resolveStepwise(rel, func(dir folder, name string) error {
		found, err := dir.lstat(name)
		if err == nil && follow && found.Mode()&fs.ModeSymlink != 0 {
			err = errIsLink
		}
		if err == nil && found.IsDir() && dir.hasStore(name) {
			err = ErrDenied
		}
		at = found
		return err
	})
	if err != nil {
		return nil, err
	}
	return at, nil
}
