package backend

import (
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// An ID names an observation: 12 random characters of Crockford's base32 (0123456789abcdefghjkmnpqrstvwxyz), lower
// case.
type ID string

// Prefixes of an ID as text and as a URI.
const (
	Prefix    = "obs:"
	URIPrefix = "observation://"

	alphabet   = "0123456789abcdefghjkmnpqrstvwxyz"
	idLength   = 12 // 60 bits: not guessable; among a million IDs, two collide in one of two million stores
	timeLayout = "20060102T150405"
	extChars   = "abcdefghijklmnopqrstuvwxyz0123456789"
	toolChars  = extChars + "ABCDEFGHIJKLMNOPQRSTUVWXYZ_-"
)

// IsName reports whether a name begins with either prefix of an observation, in any case. It does not check the ID.
func IsName(source string) bool {
	if source == "" || source[0] != 'o' && source[0] != 'O' { // true for most paths of a listing
		return false
	}
	lower := strings.ToLower(source)
	return strings.HasPrefix(lower, Prefix) || strings.HasPrefix(lower, URIPrefix)
}

// RandomID returns a new ID, also for other things that a caller must not guess.
func RandomID() ID {
	raw := make([]byte, idLength)
	rand.Read(raw)
	for i, b := range raw {
		raw[i] = alphabet[b&31] // 5 bits each
	}
	return ID(raw)
}

// ParseID accepts "k3v9q2m7x4ab", "obs:k3v9…" and "observation://k3v9…", in any case.
func ParseID(s string) (ID, error) {
	if len(s) <= len(URIPrefix)+idLength { // a longer text may be megabytes: do not copy it
		t := strings.ToLower(s)
		rest, isURI := strings.CutPrefix(t, URIPrefix)
		if !isURI {
			rest = strings.TrimPrefix(t, Prefix)
		}
		if id := ID(rest); id.Valid() {
			return id, nil
		}
	}
	return "", Malformed(s)
}

// Malformed returns the error for a text that is not an ID.
func Malformed(s string) error {
	return fmt.Errorf("%w: %q: it takes 12 characters of 0-9 and a-z without i, l, o, u, as in obs:k3v9q2m7x4ab",
		ErrMalformed, content.ClipEnd(s, 100))
}

// Valid reports whether the ID has the form of one that [RandomID] returns.
func (id ID) Valid() bool {
	return len(id) == idLength && consistsOf(string(id), alphabet)
}

// consistsOf reports whether s is not empty and contains only bytes of the set.
func consistsOf(s, set string) bool {
	for i := range len(s) {
		if strings.IndexByte(set, s[i]) < 0 {
			return false
		}
	}
	return s != ""
}

// DataName returns the name of a data file. Tool and extension are reduced to characters that are safe in file names on
// every system.
func DataName(tool string, at time.Time, id ID, ext string) string {
	if len(tool) > 40 {
		tool = tool[:40]
	}
	clean := []byte(tool)
	for i, b := range clean {
		if strings.IndexByte(toolChars, b) < 0 {
			clean[i] = '-'
		}
	}
	if len(clean) == 0 {
		clean = []byte("tool")
	}
	if len(ext) > 10 || !consistsOf(ext, extChars) {
		ext = "txt"
	}
	return fmt.Sprintf("%s_%s_%s.%s", clean, at.UTC().Format(timeLayout), id, ext)
}

// ParseDataName returns the ID in the name of a data file. It accepts only names that DataName can return, so that the
// store never touches other files.
func ParseDataName(name string) (ID, bool) {
	stem, ext, ok := strings.Cut(name, ".")
	if !ok || len(ext) > 10 || !consistsOf(ext, extChars) {
		return "", false
	}
	cut := len(stem) - idLength - len(timeLayout) - 2
	if cut < 1 || cut > 40 || !consistsOf(stem[:cut], toolChars) {
		return "", false
	}
	at, rest := stem[cut+1:cut+1+len(timeLayout)], stem[cut+1+len(timeLayout):]
	if _, err := time.Parse(timeLayout, at); err != nil || stem[cut] != '_' || rest[0] != '_' {
		return "", false
	}
	id := ID(rest[1:])
	return id, id.Valid()
}
