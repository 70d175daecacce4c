package diff

import (
	"strconv"
	"strings"
)

// gitNames parses the two names after "diff --git". git quotes names with special characters. Two unquoted names
// with spaces can be told apart only if they are equal; otherwise the split is a guess, and a later "rename from",
// "---" or "+++" line corrects it.
func gitNames(s string) (from, to string) {
	if strings.HasPrefix(s, `"`) || strings.HasSuffix(s, `"`) {
		if strings.HasPrefix(s, `"`) {
			q, err := strconv.QuotedPrefix(s)
			if err != nil {
				return "", s
			}
			return cutSide(unquoteName(q)), cutSide(unquoteName(strings.TrimPrefix(s[len(q):], " ")))
		}
		from, to, _ = strings.Cut(s, ` "`)
		return cutSide(from), cutSide(unquoteName(`"` + to))
	}
	if half := len(s) / 2; len(s)%2 == 1 && s[half] == ' ' {
		if a, b := cutSide(s[:half]), cutSide(s[half+1:]); a == b {
			return a, b
		}
	}
	if i := strings.LastIndex(s, " b/"); i >= 0 {
		return cutSide(s[:i]), cutSide(s[i+1:])
	}
	from, to, _ = strings.Cut(s, " ")
	return from, to
}

// headerName parses the text after "--- " or "+++ ": a name, possibly quoted, possibly followed by a tab and a
// time. known is the name from an earlier git header or ""; if the text is /dev/null, headerName returns known.
func headerName(b []byte, known string) string {
	name, _, _ := strings.Cut(string(b), "\t")
	name = unquoteName(strings.TrimRight(name, " \r"))
	if name == "/dev/null" {
		if known != "" {
			return known
		}
		return name
	}
	if known != "" && strings.HasSuffix(name, known) {
		return known
	}
	return cutSide(name)
}

// isNull reports whether the text after "--- " or "+++ " names no file: the file is added or deleted.
func isNull(b []byte) bool {
	name, _, _ := strings.Cut(string(b), "\t")
	return strings.TrimRight(name, " \r") == "/dev/null"
}

// cutSide removes git's prefix a/ or b/ (also i/, w/, c/, o/ with mnemonic prefixes).
func cutSide(name string) string {
	if len(name) > 2 && name[1] == '/' && strings.IndexByte("abiwco", name[0]) >= 0 {
		return name[2:]
	}
	return name
}

// unquoteName decodes a name that git has quoted like a C string. strconv.Unquote reads those escapes; if it cannot,
// unquoteName returns s unchanged.
func unquoteName(s string) string {
	if strings.HasPrefix(s, `"`) {
		if u, err := strconv.Unquote(s); err == nil {
			return u
		}
	}
	return s
}
