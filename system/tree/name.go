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
	"syscall"
	"unicode/utf8"
)

// maxName is the longest name accepted, in bytes: PATH_MAX on Linux.
const maxName = 4096

// maxEcho is how many bytes of a name an error repeats.
const maxEcho = 200

// Rel converts a name from a caller ("a/b", "./a", an absolute path inside the root) to the slash path below the root
// ("." is the root itself) without accessing the disk. ".." is resolved in the name alone: "link/../a" is "a", wherever
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
		return "", errors.New("contains a NUL byte, which no file name can")
	case len(name) > maxName:
		return "", fmt.Errorf("%d bytes long; a path may have at most %d", len(name), maxName)
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
		return "", ErrOutside // a drive or a device name on Windows
	}
	return clean, nil
}

// relOfAbsolute compares the name with the root as given and with its links resolved. It does not access the disk:
// tools must not find out where a link outside points, or whether a file outside exists.
func (r *Root) relOfAbsolute(name string) (string, error) {
	clean := filepath.Clean(name)
	for _, top := range r.spellings() {
		if rel, ok := relUnder(top, clean); ok {
			return rel, nil
		}
	}
	return "", ErrOutside
}

// spellings returns the absolute names of the root.
func (r *Root) spellings() []string {
	all := []string{r.dir, r.given}
	if runtime.GOOS == "darwin" { // /tmp, /var and /etc are links to these
		for _, top := range []string{"/private/tmp", "/private/var", "/private/etc"} {
			if _, ok := relUnder(top, r.dir); ok {
				all = append(all, strings.TrimPrefix(r.dir, "/private"))
			}
		}
	}
	return all
}

// resolve resolves links in the longest part of an absolute path that exists.
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

// relUnder returns the slash path of name below top; both are clean and absolute.
func relUnder(top, name string) (string, bool) {
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

// samePath compares names like the platform's usual file system. If that is wrong for a volume, the identity of the
// opened file decides.
func samePath(a, b string) bool {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		return strings.EqualFold(a, b)
	}
	return a == b
}

// clip formats a name for an error: quoted if it is not printable, with its middle cut out if it is too long.
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

// NameError is an error about a name in a root: "open a.go: no such file". With several roots, the caller puts the
// root's name before it.
type NameError struct {
	Operation, Name string
	Err             error
}

func (e *NameError) Error() string { return e.Operation + " " + clip(e.Name) + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *NameError) Unwrap() error { return e.Err }

// explain turns an error of the operating system into one for the model: the cause, without the full path.
func (r *Root) explain(operation, name string, err error) error {
	if err == nil {
		return nil
	}
	cause := withoutPath(err)
	switch {
	case errors.Is(err, ErrOutside), errors.Is(err, ErrNotFile), errors.Is(err, ErrDenied):
		return &NameError{operation, name, err}
	case errors.Is(cause, r.errEscapes):
		cause = ErrOutside
	case errors.Is(cause, fs.ErrNotExist):
		if err := r.checkPresent(); err != nil {
			return err
		}
		hint := ""
		if strings.Contains(name, `\`) && !strings.HasPrefix(name, `"`) && filepath.Separator != '\\' {
			hint = `; names are written with "/", not "\"`
		}
		return &NameError{operation, name, fmt.Errorf("%w%s", errNotExist, hint)}
	case isLoop(cause):
		return &NameError{operation, name, errors.New("too many links in the path, or a loop of links")}
	}
	return &NameError{operation, name, cause}
}

// errNotExist is fs.ErrNotExist in words for the model.
var errNotExist error = notExistError{}

type notExistError struct{}

func (notExistError) Error() string        { return "no such file or directory" }
func (notExistError) Is(target error) bool { return target == fs.ErrNotExist }

// nameOf returns the base name of a path.
func nameOf(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// isLoop reports whether err means a loop of links, or too many links. FreeBSD returns EMLINK where others return
// ELOOP.
func isLoop(err error) bool {
	return errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.EMLINK)
}

// errIsLink is returned for a link as the last name, which must be followed.
var errIsLink = errors.New("is a link")

// Errors that callers test for. Their messages are for the model and repeat at most 200 bytes of the name.
var (
	ErrOutside = errors.New("outside the root")
	ErrNotFile = errors.New("not a regular file") // directory, FIFO, socket, device
	// the store, the configuration, the token file
	ErrDenied = errors.New("not readable by tools")
	// the root itself; also an fs.ErrNotExist
	ErrGone = errors.New("was removed, moved or replaced since it was opened")
)
