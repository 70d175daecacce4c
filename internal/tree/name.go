package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxName is the longest name taken, in bytes: PATH_MAX on Linux.
const maxName = 4096

// maxEcho is how many bytes of a name an error repeats.
const maxEcho = 200

// Rel takes a name as a caller gave it ("a/b", "./a", an absolute path inside
// the root) to the slash path below the root ("." is the root itself), without
// looking at the disk. ".." is taken by the letter: "link/../a" is "a", wherever
// the link points.
func (r *Root) Rel(name string) (string, error) {
	rel, err := r.rel(name)
	if err != nil {
		return "", &NameError{"name", name, err}
	}
	return rel, nil
}

func (r *Root) rel(name string) (string, error) {
	switch {
	case strings.IndexByte(name, 0) >= 0:
		return "", errors.New("holds a NUL byte, which no file name can")
	case len(name) > maxName:
		return "", fmt.Errorf("%d bytes long, over the %d a path may have", len(name), maxName)
	}
	slashed := filepath.ToSlash(name)
	if filepath.IsAbs(name) || strings.HasPrefix(slashed, "/") {
		return r.relOfAbsolute(name)
	}
	clean := path.Clean(slashed)
	if clean == ".." || strings.HasPrefix(clean, "../") {
		return "", ErrOutside
	}
	if clean != "." && !filepath.IsLocal(filepath.FromSlash(clean)) {
		return "", ErrOutside // a drive, a device name: Windows only
	}
	return clean, nil
}

// relOfAbsolute compares by the letter with the root as it was named and as it
// really is. Nothing is asked of the disk: what a link outside points to, or
// whether it is there at all, is no tool's business.
func (r *Root) relOfAbsolute(name string) (string, error) {
	clean := filepath.Clean(name)
	for _, top := range r.spellings() {
		if rel, ok := below(top, clean); ok {
			return rel, nil
		}
	}
	return "", ErrOutside
}

// spellings are the absolute names of the root.
func (r *Root) spellings() []string {
	all := []string{r.dir, r.named}
	if runtime.GOOS == "darwin" { // where /tmp, /var and /etc are links to these
		for _, top := range []string{"/private/tmp", "/private/var", "/private/etc"} {
			if _, ok := below(top, r.dir); ok {
				all = append(all, strings.TrimPrefix(r.dir, "/private"))
			}
		}
	}
	return all
}

// resolve resolves the links of the longest part of an absolute path that exists.
func resolve(name string) string {
	rest := ""
	for at := name; ; {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, rest)
		}
		up := filepath.Dir(at)
		if up == at {
			return name
		}
		rest = filepath.Join(filepath.Base(at), rest)
		at = up
	}
}

// below is the slash path of name under top, both clean and absolute.
func below(top, name string) (string, bool) {
	if samePath(name, top) {
		return ".", true
	}
	prefix := top
	if !strings.HasSuffix(prefix, string(filepath.Separator)) {
		prefix += string(filepath.Separator)
	}
	if len(name) > len(prefix) && samePath(name[:len(prefix)], prefix) {
		return filepath.ToSlash(name[len(prefix):]), true
	}
	return "", false
}

// samePath compares as the usual file system of the platform does; where it is
// wrong, the identity of what is opened decides.
func samePath(a, b string) bool {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		return strings.EqualFold(a, b)
	}
	return a == b
}

// clip is a name as an error repeats it: as it is where it can be printed,
// else quoted; its ends where it is too long.
func clip(name string) string {
	shown := quoted(name)
	for n := min(maxEcho, len(name)); len(shown) > maxEcho; n -= 10 {
		head, tail := name[:n/2], name[len(name)-n/2:]
		for len(head) > 0 && !utf8.ValidString(head) && utf8.ValidString(name) {
			head = head[:len(head)-1]
		}
		for len(tail) > 0 && !utf8.RuneStart(tail[0]) && utf8.ValidString(name) {
			tail = tail[1:]
		}
		shown = quoted(head) + "…" + quoted(tail)
	}
	return shown
}

func quoted(name string) string {
	if name == "" {
		return `""`
	}
	for _, r := range name {
		if !strconv.IsPrint(r) || r == utf8.RuneError {
			return strconv.Quote(name)
		}
	}
	return name
}

// NameError is what a root answers about a name in it: "open a.go: no such file". Where a root is one of several, whoever
// names them so puts the root's before it.
type NameError struct {
	Operation, Name string
	Err             error
}

func (e *NameError) Error() string { return e.Operation + " " + clip(e.Name) + ": " + e.Err.Error() }

// Unwrap is the cause.
func (e *NameError) Unwrap() error { return e.Err }

// explain turns an error of the operating system into one for the model: what
// was wrong, without the whole path that os errors repeat.
func (r *Root) explain(operation, name string, err error) error {
	if err == nil {
		return nil
	}
	for _, ours := range []error{ErrOutside, ErrNotFile, ErrDenied} {
		if errors.Is(err, ours) {
			return &NameError{operation, name, err}
		}
	}
	cause := err
	var at *fs.PathError
	if errors.As(err, &at) {
		cause = at.Err
	}
	switch {
	case errors.Is(cause, r.escapes):
		cause = ErrOutside
	case errors.Is(cause, fs.ErrNotExist):
		if gone := r.gone(); gone != nil {
			return gone
		}
		hint := ""
		if strings.Contains(name, `\`) && !strings.HasPrefix(name, `"`) && filepath.Separator != '\\' {
			hint = `; names are written with "/", not "\"`
		}
		return &NameError{operation, name, fmt.Errorf("%w%s", noSuch, hint)}
	case isLoop(cause):
		return &NameError{operation, name, errors.New("too many links on the way, or a loop of links")}
	}
	return &NameError{operation, name, cause}
}

// noSuch is fs.ErrNotExist in the words a person uses.
var noSuch error = missing{}

type missing struct{}

func (missing) Error() string        { return "no such file or directory" }
func (missing) Is(target error) bool { return target == fs.ErrNotExist }
