package tree

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Limits of a stepwise way down: links followed (Linux follows 40 in a path),
// and directories entered in all, counting each start over that a ".." in a link costs.
const (
	maxLinks = 40
	maxSteps = 10_000
)

// errLoop is answered for a way with too many links or steps.
var errLoop = errors.New("too many links on the way")

// isLoop says that an error means a loop of links, or too many in a row. FreeBSD
// answers EMLINK where others answer ELOOP.
func isLoop(err error) bool {
	return errors.Is(err, errLoop) || errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.EMLINK)
}

// errIsLink is answered by a last step that wants the link followed.
var errIsLink = errors.New("is a link")

// stepwise goes down from the root one name at a time, never letting the system
// follow a link: a link is read and its target put in its place, ".." goes back
// to the names passed before. So it cannot leave the root, and every directory
// on the way is looked at itself: a denied one ends it. last gets the directory
// and the last name ("." for the root).
func (r *Root) stepwise(rel string, last func(dir folder, name string) error) error {
	todo, done := strings.Split(rel, "/"), []string(nil)
	denied := r.denied.identities()
	dir, err := r.top()
	if err != nil {
		return err
	}
	defer func() { dir.close() }()
	over := func(names []string) error {
		up, err := r.top()
		if err != nil {
			return err
		}
		dir.close()
		dir, todo, done = up, names, nil
		return nil
	}
	links := 0
	for steps := 0; ; steps++ {
		if links > maxLinks || steps > maxSteps {
			return errLoop
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
			if err := over(rest); err != nil {
				return err
			}
			continue
		case len(todo) == 1:
			err = last(dir, name)
			if err == nil || name == "." {
				return err
			}
		case name == "" || name == ".":
			todo = todo[1:]
			continue
		default:
			var sub folder
			if sub, err = dir.enter(name); err == nil {
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
		if todo, err = r.spliced(target, todo[1:]); err != nil {
			return err
		}
		if isAbsolute(target) {
			if err := over(todo); err != nil {
				return err
			}
		}
	}
}

// spliced is what is to be gone once a link's target stands in its place.
func (r *Root) spliced(target string, rest []string) ([]string, error) {
	if len(target) > maxName {
		return nil, errLoop
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

// openStepwise opens rel with links inside the root followed.
func (r *Root) openStepwise(rel string, flags int) (f *os.File, err error) {
	err = r.stepwise(rel, func(dir folder, name string) error {
		if r.denied.inside && name != "." {
			// A directory that is denied must not even be opened.
			if at, e := dir.lstat(name); e == nil && at.IsDir() && r.denied.holds(identOf(at)) {
				return ErrDenied
			}
		}
		f, err = dir.openFile(name, flags)
		return err
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// statStepwise is Stat or Lstat of rel.
func (r *Root) statStepwise(rel string, follow bool) (at fs.FileInfo, err error) {
	err = r.stepwise(rel, func(dir folder, name string) error {
		if at, err = dir.lstat(name); err != nil {
			return err
		}
		if follow && at.Mode()&fs.ModeSymlink != 0 {
			return errIsLink
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return at, nil
}
