package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Errors of the methods that write.
var (
	ErrIsLink    = errors.New("it is a link, and links are never followed to write")
	ErrProtected = errors.New("it is protected, because other programs run or trust what is written there")
)

// Guarded are names of files and directories from which clients and editors read commands to run.
var Guarded = []string{
	".mcp.json", ".claude", ".claude.json", ".cursor", ".vscode", ".codex", ".gemini", ".windsurf", ".zed", ".idea",
	".continue", ".roo", ".kilocode", ".opencode", "opencode.json", ".devcontainer", ".envrc", ".kiro", ".amazonq",
	".fleet", ".vs", ".husky", ".mise.toml", ".cargo", ".npmrc", ".exrc", ".gdbinit",
}

// WorkspaceSuffix ends the names of guarded files of an editor.
const WorkspaceSuffix = ".code-workspace"

// Parent opens the directory of a name below the root, and returns the base name in it. Links on the way are followed
// inside the root; the base name is not looked up. Missing directories are made with make, if that is not nil: it is
// called with each one that was made, as a slash path below the root. The caller must close the directory, in which the
// other methods of this file work.
func (r *Root) Parent(name string, made func(rel string)) (dir *Root, base string, err error) {
	rel, err := r.relAllowed(name)
	switch {
	case err != nil:
	case rel == ".":
		err = errors.New("it is the directory that was granted")
	case Protected(rel):
		err = ErrProtected
	}
	if err != nil {
		return nil, "", r.explain("write", name, err)
	}
	above := path.Dir(rel)
	dir, err = r.Sub(above)
	if errors.Is(err, fs.ErrNotExist) && made != nil && r.checkPresent() == nil {
		dir, err = r.makeDirs(above, made)
	}
	if err != nil {
		return nil, "", err
	}
	if inside, _ := relUnder(r.dir, dir.dir); Protected(inside) { // by a link
		_ = dir.Close()
		return nil, "", r.explain("write", name, ErrProtected)
	}
	return dir, path.Base(rel), nil
}

// CheckBelow returns an error if a directory that [Root.Parent] opened does not lie where it was below the root.
func (r *Root) CheckBelow(dir *Root) error {
	rel, _ := relUnder(r.dir, dir.dir)
	if at, err := r.os.Stat(rel); err != nil || !identOf(at).same(dir.id) {
		return errors.New("its directory was moved or replaced during this call: nothing was changed; call again")
	}
	return nil
}

// Protected reports whether a path has a name of [Guarded], .git or the marker of a store in it, whatever its case.
func Protected(path string) bool {
	for part := range strings.SplitSeq(strings.ToLower(filepath.ToSlash(path)), "/") {
		part = strings.TrimRight(part, ". ") // Windows ignores them
		if part == ".git" || part == StoreMarker || slices.Contains(Guarded, part) ||
			strings.HasSuffix(part, WorkspaceSuffix) {
			return true
		}
	}
	return false
}

// makeDirs makes the missing directories of a slash path below the root, and opens the last one.
func (r *Root) makeDirs(rel string, made func(string)) (*Root, error) {
	above, base, err := r.Parent(rel, made)
	if err != nil {
		return nil, err
	}
	defer above.Close() //nolint:errcheck // it was only looked up in
	switch err := above.os.Mkdir(base, 0o777); {
	case err == nil:
		made(rel)
	case !errors.Is(err, fs.ErrExist):
		return nil, r.explain("write", rel, withoutPath(err))
	}
	return r.Sub(rel)
}

// LstatIn describes a name directly in the root, a link itself. A denied one, a store and a directory that has a denied
// path below it are [ErrDenied].
func (r *Root) LstatIn(base string) (fs.FileInfo, error) {
	at, err := r.os.Lstat(base)
	if err != nil {
		return nil, withoutPath(err)
	}
	if r.denied.coversPath(base) || r.denied.liesBelow(base) || r.denied.coversFile(identOf(at)) {
		return nil, ErrDenied
	}
	if at.IsDir() {
		if _, err := r.os.Lstat(filepath.Join(base, StoreMarker)); err == nil {
			return nil, ErrDenied
		}
	}
	return at, nil
}

// OpenIn opens a regular file directly in the root for reading. It follows no link. Errors: [ErrIsLink], [ErrNotFile],
// [ErrDenied], fs.ErrNotExist, fs.ErrPermission.
func (r *Root) OpenIn(base string) (*os.File, fs.FileInfo, error) {
	named, err := r.LstatIn(base)
	switch {
	case err != nil:
		return nil, nil, err
	case named.Mode()&fs.ModeSymlink != 0:
		return nil, nil, ErrIsLink
	case !named.Mode().IsRegular():
		return nil, nil, fmt.Errorf("%w: it is %s", ErrNotFile, describeMode(named.Mode()))
	}
	f, err := r.os.OpenFile(base, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, nil, withoutPath(err)
	}
	at, err := f.Stat()
	if err == nil && !os.SameFile(at, named) {
		err = errors.New("it was replaced while it was opened; call again")
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, at, nil
}

// RemoveIn removes a file, a link or an empty directory directly in the root.
func (r *Root) RemoveIn(base string) error { return withoutPath(r.os.Remove(base)) }

// CreateIn creates a file directly in the root that did not exist, for reading and writing.
func (r *Root) CreateIn(base string, mode fs.FileMode) (*os.File, error) {
	f, err := r.os.OpenFile(base, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
	return f, withoutPath(err)
}

// File opens the directory itself, to lock or to sync it.
func (r *Root) File() (*os.File, error) { return r.os.Open(".") }

// RemoveAllIn removes a file or directory directly in the root, with all that it holds. It follows no link.
func (r *Root) RemoveAllIn(base string) error { return withoutPath(r.os.RemoveAll(base)) }

// Rename renames a file or directory to a name in another directory, or in the same. If it must not replace what has
// that name, the error is fs.ErrExist then. It is errors.ErrUnsupported if this system cannot do it.
func Rename(from *Root, base string, to *Root, name string, replace bool) error {
	err := rename(from, base, to, name, replace)
	if !errors.Is(err, errors.ErrUnsupported) || from != to {
		return err
	}
	at, err := from.os.Lstat(base)
	switch {
	case err != nil:
		return withoutPath(err)
	case replace || at.IsDir(): // a directory replaces an empty one at most
		return withoutPath(from.os.Rename(base, name))
	}
	if err := from.os.Link(base, name); err != nil { // which never replaces
		return withoutPath(err)
	}
	return from.RemoveIn(base)
}
