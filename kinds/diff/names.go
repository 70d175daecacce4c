package diff

import (
	"strconv"
	"strings"
	"time"
)

// side describes the text after "--- " or "+++ ": a name and what follows it.
type side struct {
	name   string
	absent bool // the file does not exist on this side
	svn    bool // "(revision 12)" or "(nonexistent)" follows the name
	epoch  bool // the time is 1970: if the side has no lines, diff -N wrote it for a file that does not exist
}

const null = "/dev/null"

// sideOf parses the text after "--- " or "+++ ": a name, possibly quoted, possibly followed by a tab and a time. known
// is the name in the header, which may hold a tab: hg does not quote it.
func sideOf(text, known string) (s side) {
	name, more, tab := strings.Cut(text, "\t")
	if i := strings.Index(text, known); i >= 0 && strings.Contains(known, "\t") {
		name, more, tab = text[:i+len(known)], text[i+len(known):], true
	}
	if !tab { // a name that ends in a blank is followed by a tab
		name = strings.TrimRight(name, " \r")
	}
	more = strings.TrimSpace(more[strings.LastIndexByte(more, '\t')+1:])
	s.name = unquoteName(name)
	s.svn = strings.HasPrefix(more, "(")
	s.absent = s.name == null || more == "(nonexistent)" || more == "(revision 0)"
	for _, form := range []string{"2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05", time.ANSIC} {
		if t, err := time.Parse(form, more); err == nil {
			s.epoch = t.Unix() > -86400 && t.Unix() < 86400 // the zone may be missing
		}
	}
	return s
}

// setNames sets the names of a file from its two sides. Names of a rename are known already.
func (c *changed) setNames(old, new side) {
	switch {
	case c.moved, old.svn && c.from != "", old.name == null && new.name == null:
	case new.name == null:
		c.from = c.only(old.name, "a/")
		c.to = c.from
	case old.name == null:
		c.to = c.only(new.name, "b/")
		c.from = c.to
	default:
		from, to := pair(old.name, new.name, c.git)
		if from == to && strings.HasSuffix(c.to, "/"+to) { // CVS names the directory in "Index: " alone
			from, to = c.to, c.to
		}
		c.from, c.to = from, to
	}
}

// only returns the name of a file that is on one side: the name in the header, if the side ends in it.
func (c *changed) only(name, prefix string) string {
	if c.to != "" && (name == c.to || strings.HasSuffix(name, "/"+c.to)) {
		return c.to
	}
	return strings.TrimPrefix(name, prefix)
}

// prefixes are git's pairs of prefixes: a/ and b/, those of diff.mnemonicPrefix, and both in reverse.
const prefixes = "ab ba iw wi ci ic cw wc ow wo 12 21"

// pair returns two names without their prefixes. git writes different prefixes on the two sides, or none: equal first
// components are directories. Without a rename, the names that follow any other prefixes are equal.
func pair(a, b string, git bool) (from, to string) {
	known := len(a) > 1 && len(b) > 1 && a[1] == '/' && b[1] == '/' && strings.Contains(prefixes, a[:1]+b[:1])
	same := "" // the longest path at the end of both
	for rest := a; git && same == "" && rest != ""; _, rest, _ = strings.Cut(rest, "/") {
		if before, ok := strings.CutSuffix(b, rest); ok && (before == "" || strings.HasSuffix(before, "/")) {
			same = rest
		}
	}
	switch {
	case a == b:
	case known && (a[2:] == b[2:] || same != a && same != b):
		return a[2:], b[2:]
	case same != "":
		return same, same
	}
	return a, b
}

// headerNames parses the two names after "diff --git". Later lines correct a guess.
func headerNames(s string, git bool) (from, to string) {
	a, b := split(s, " ")
	from, to = pair(a, b, git)
	if to == "" || strings.HasPrefix(from, to) { // the header is cut, if no lines of a rename follow
		to = from
	}
	return from, to
}

// split splits two names at a separator, which may also be in the names. git quotes names with special characters.
// Names without quotes are split so that they are equal after prefixes as short as possible. Prefixes of up to 16
// directories and 256 bytes are tried; otherwise the split is a guess.
func split(s, sep string) (from, to string) {
	if q, err := strconv.QuotedPrefix(s); err == nil && s[0] == '"' {
		return unquoteName(q), unquoteName(strings.TrimPrefix(s[len(q):], sep))
	}
	if a, b, ok := strings.Cut(s, sep+`"`); ok && strings.HasSuffix(b, `"`) {
		return a, unquoteName(`"` + b)
	}
	at, longest := -1, 0 // the first name ends at; longest is the equal part
	for p, slashes := 0, 0; slashes < 16; slashes++ {
		for q := 0; q < 256; q++ {
			n := (len(s) - len(sep) - p - q) / 2
			if n <= longest {
				break
			}
			if tail := s[len(s)-n:]; (len(s)-len(sep)-p-q)%2 == 0 && strings.HasPrefix(s[p+n:], sep) &&
				(q == 0 || s[len(s)-n-1] == '/') && s[p:p+n] == tail {
				at, longest = p+n, n
				break
			}
		}
		i := strings.IndexByte(s[p:], '/')
		if i < 0 {
			break
		}
		p += i + 1
	}
	if at < 0 {
		at = strings.LastIndex(s, sep+"b/")
	}
	if at < 0 {
		at = strings.Index(s, sep)
	}
	if at < 0 {
		return s, ""
	}
	return s[:at], s[at+len(sep):]
}

// unquoteName decodes a name that is quoted like a C string. strconv.Unquote reads those escapes; if it cannot,
// unquoteName returns s unchanged.
func unquoteName(s string) string {
	if strings.HasPrefix(s, `"`) {
		if u, err := strconv.Unquote(s); err == nil {
			return u
		}
	}
	return s
}
