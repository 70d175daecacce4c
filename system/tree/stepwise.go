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

// resolveStepwise opens one directory after another from the root, and calls last with the last directory and the base
// name ("." for the root). It never lets the system follow a link: it reads the link and continues with its target, and
// for ".." it restarts with the names before. So it cannot leave the root. It fails at a denied directory and at a
// store.
func (r *Root) resolveStepwise(rel string, last func(dir folder, name string) error) error {
	s := stepper{root: r, todo: strings.Split(rel, "/"), denied: r.denied.identities()}
	var err error
	if s.dir, err = r.top(); err != nil {
		return err
	}
	defer func() { s.dir.close() }()
	links := 0
	for steps := 0; ; steps++ {
		if links > maxLinks || steps > maxSteps {
			return syscall.ELOOP
		}
		name := s.todo[0]
		var failed error // why name was not opened: it may be a link
		switch {
		case name == "..":
			if err := s.up(); err != nil {
				return err
			}
			continue
		case len(s.todo) == 1:
			failed = last(s.dir, name)
			if s.dir.isStore() {
				return ErrDenied
			}
			if failed == nil || name == "." {
				return failed
			}
		case name == "" || name == ".":
			s.todo = s.todo[1:]
			continue
		default:
			if failed, err = s.down(name); err != nil {
				return err
			}
			if failed == nil {
				continue
			}
		}
		target, err := s.dir.readlink(name)
		if err != nil {
			return failed
		}
		links++
		if err := s.follow(target); err != nil {
			return err
		}
	}
}

// stepper is the state of resolveStepwise.
type stepper struct {
	root       *Root
	denied     []ident
	dir        folder
	done, todo []string // the names from the root to dir, and those to resolve from dir on
}

// restart goes back to the root, to resolve names from there.
func (s *stepper) restart(names []string) error {
	top, err := s.root.top()
	if err != nil {
		return err
	}
	s.dir.close()
	s.dir, s.todo, s.done = top, names, nil
	return nil
}

// up resolves "..".
func (s *stepper) up() error {
	if len(s.done) == 0 {
		return ErrOutside
	}
	rest := append(slices.Clone(s.done[:len(s.done)-1]), s.todo[1:]...)
	if len(rest) == 0 {
		rest = []string{"."}
	}
	return s.restart(rest)
}

// down enters the directory called name. failed says why it cannot be opened, which leaves dir as it is; err ends the
// resolution.
func (s *stepper) down(name string) (failed, err error) {
	sub, failed := s.dir.openDir(name)
	if s.dir.isStore() {
		if failed == nil {
			sub.close()
		}
		return nil, ErrDenied
	}
	if failed != nil {
		return failed, nil
	}
	s.dir.close()
	s.dir = sub
	id, err := s.dir.id()
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(s.denied, id.same) {
		return nil, ErrDenied
	}
	s.done, s.todo = append(s.done, name), s.todo[1:]
	return nil, nil
}

// follow continues with the target of a link in place of its name.
func (s *stepper) follow(target string) error {
	names, err := s.root.spliceTarget(target, s.todo[1:])
	if err != nil {
		return err
	}
	if isAbsolute(target) {
		return s.restart(names)
	}
	s.todo = names
	return nil
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

// open opens rel, following links inside the root. os.Root alone would follow them past denied files and stores.
func (r *Root) open(rel string, flags int) (f *os.File, err error) {
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
