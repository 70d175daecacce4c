package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// RootDirs returns the directories that tools may look into: those of --root, else the current directory unless it is
// too wide.
func (s *Settings) RootDirs() []string {
	if s.Root != nil { // empty, but not nil: a command that grants nothing by itself
		return s.Root
	}
	wd, err := os.Getwd()
	if err != nil || tooWide(wd) {
		return nil
	}
	return []string{wd}
}

// GrantDirs adds directories that the command line names without --root to those of --root. They win over roots of the
// variable and of the file, as --root does; flag says whether --root is on the command line. An explicit list of none
// grants nothing; one of empty names is an error, because "$UNSET" must not grant the current directory.
func (s *Settings) GrantDirs(dirs []string, flag, explicit bool) error {
	roots, err := expandRoots(dirs)
	switch {
	case err != nil:
		return err
	case roots == nil && len(dirs) > 0:
		return errors.New("the directory is empty: name one, or leave it out for the current one")
	case flag:
		s.Root = append(s.Root, roots...)
	case roots != nil:
		s.Root = roots
	case explicit:
		s.Root = []string{}
	}
	return nil
}

// expandRoots returns the absolute paths of directories, without empty names, or nil if there are none.
func expandRoots(dirs []string) (roots []string, err error) {
	for _, dir := range dirs {
		if dir == "" { // kong would take it for the current directory
			continue
		}
		root := ExpandPath(dir)
		if checkRoot(root) != nil {
			return nil, checkRoot(dir)
		}
		roots = append(roots, root)
	}
	return roots, nil
}

// GrantNamed makes a directory that the user typed the only root and returns its absolute path, unless --root is given
// or the directory is below the current one, which is a root then. Any other name is returned unchanged and grants
// nothing.
func (s *Settings) GrantNamed(name string) string {
	dir := ExpandPath(name)
	if info, err := os.Stat(dir); name == "" || len(s.Root) > 0 || err != nil || !info.IsDir() {
		return name
	}
	for _, root := range s.RootDirs() {
		if rel, err := filepath.Rel(root, dir); err == nil && filepath.IsLocal(rel) {
			return name
		}
	}
	s.Root = []string{dir}
	return dir
}

// ExpandPath returns an absolute path; "~" is $HOME, as in a shell. (kong asks the password file instead.)
func ExpandPath(path string) string {
	if rest, ok := strings.CutPrefix(path, "~"); ok &&
		(rest == "" || rest[0] == '/' || rest[0] == filepath.Separator) {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// unexpanded matches a variable that a client writes for a directory and has not replaced.
var unexpanded = content.Pattern(`\$\{[A-Za-z][\w:.]*\}`)

// IsUnsetOption reports whether an argument or variable is what a client leaves of a bundle's option that its user has
// not set.
func IsUnsetOption(text string) bool {
	return strings.HasPrefix(text, "${user_config.") && unexpanded().FindString(text) == text
}

// checkRoot returns an error for a root that still has a variable of the client in it.
func checkRoot(dir string) error {
	name := unexpanded().FindString(dir)
	if name == "" {
		return nil
	}
	if _, err := os.Stat(dir); err == nil { // a directory of that name
		return nil
	}
	return fmt.Errorf("root %s: the client did not replace %s; write the directory itself",
		content.ClipBytes(dir, 200), name)
}

// absentRoot returns the sentence that a root could not be opened when the program started, and what to do. The root is
// not opened later, because somebody else could have put a link in its place meanwhile.
func absentRoot(dir string, err error) string {
	happened, advice := "could not be opened ("+cause(err)+")", "make it a readable directory"
	if errors.Is(err, fs.ErrNotExist) {
		happened, advice = "was missing", "create it"
	}
	return fmt.Sprintf("the root %s %s when mcp-funnel started: %s or correct --root, then start it again",
		content.ClipEnd(content.Visible(dir, false), 200), happened, advice)
}

// cause returns the innermost error.
func cause(err error) string {
	for errors.Unwrap(err) != nil {
		err = errors.Unwrap(err)
	}
	return err.Error()
}

// GrantsHome reports whether a directory is the root of the file system, or is or contains the home directory.
func GrantsHome(dir string) bool {
	dir = realPath(dir)
	home, err := os.UserHomeDir()
	home = realPath(home) // many systems have a link in it
	if err == nil && (dir == home || strings.HasPrefix(home, dir+string(filepath.Separator))) {
		return true
	}
	return filepath.Dir(dir) == dir
}

// WideRoot returns the warning for such a root.
func WideRoot(dir string) string {
	return "root " + dir + " grants the tools all files in it, keys and mail included; name a project with --root DIR"
}

// tooWide reports whether a directory is a home, contains one, is a system directory or the root of the file
// system: granting it unasked would expose far more than a project.
func tooWide(dir string) bool {
	if GrantsHome(dir) {
		return true
	}
	themselves := []string{
		"/root", "/run", "/usr", "/usr/local", "/usr/share", "/var", "/home", "/opt", "/srv", "/mnt", "/media", "/tmp",
		"/Users", "/Library", "/Applications",
	}
	withAllBelow := []string{
		"/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/sbin", "/sys", "/usr/bin", "/usr/sbin", "/usr/lib",
		"/usr/lib64", "/System",
	}
	if runtime.GOOS == "windows" {
		themselves = []string{os.Getenv("PUBLIC")}
		withAllBelow = []string{os.Getenv("SystemRoot"), os.Getenv("ProgramFiles"), os.Getenv("ProgramData")}
	}
	dir = realPath(dir)
	within := func(system string) bool {
		rel, err := filepath.Rel(realPath(system), dir)
		return system != "" && err == nil && filepath.IsLocal(rel)
	}
	is := func(system string) bool { return system != "" && strings.EqualFold(realPath(system), dir) }
	return slices.ContainsFunc(withAllBelow, within) || slices.ContainsFunc(themselves, is)
}

// realPath resolves the links of a path; it returns a path that cannot be resolved unchanged.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}
