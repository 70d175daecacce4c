package observations

import (
	"crypto/rand"
	"fmt"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"
)

// An ID names an observation: 12 characters of Crockford's base32
// (0123456789abcdefghjkmnpqrstvwxyz), random, lower case.
type ID string

// Scheme and URI prefix under which IDs are written.
const (
	Prefix    = "obs:"
	URIPrefix = "observation://"
)

const (
	alphabet = "0123456789abcdefghjkmnpqrstvwxyz"
	idLength = 12 // 60 bits: cannot be guessed, and two of a million collide once in two million stores
	stamp    = "20060102T150405"
)

// newID takes its 60 bits from the system's random source, which does not fail.
func newID() ID {
	return ID(randomText(idLength))
}

func randomText(n int) string {
	raw := make([]byte, n)
	rand.Read(raw)
	for i, b := range raw {
		raw[i] = alphabet[b&31]
	}
	return string(raw)
}

// ParseID takes "k3v9q2m7x4ab", "obs:k3v9…" and "observation://k3v9…", ignoring case.
func ParseID(s string) (ID, error) {
	if len(s) <= len(URIPrefix)+idLength { // nothing longer is lowered or cut: it may be megabytes
		t := strings.ToLower(s)
		if rest, ok := strings.CutPrefix(t, URIPrefix); ok {
			t = rest
		} else {
			t = strings.TrimPrefix(t, Prefix)
		}
		if id := ID(t); id.valid() {
			return id, nil
		}
	}
	return "", malformed(s)
}

func malformed(s string) error {
	return fmt.Errorf("%w: %q: it takes 12 characters of 0-9 and a-z without i, l, o, u, as in obs:k3v9q2m7x4ab",
		ErrMalformed, clip(s, 100))
}

func (id ID) valid() bool {
	return len(id) == idLength && made(string(id), alphabet)
}

// made says that s is not empty and holds nothing but these bytes.
func made(s, of string) bool {
	for i := range len(s) {
		if strings.IndexByte(of, s[i]) < 0 {
			return false
		}
	}
	return s != ""
}

const (
	lower     = "abcdefghijklmnopqrstuvwxyz0123456789"
	toolChars = lower + "ABCDEFGHIJKLMNOPQRSTUVWXYZ_-"
)

// dataName is the name of a data file. Tool and extension are cut to what is
// safe in a file name everywhere.
func dataName(tool string, at time.Time, id ID, ext string) string {
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
	if len(ext) > 10 || !made(ext, lower) {
		ext = "txt"
	}
	return fmt.Sprintf("%s_%s_%s.%s", clean, at.UTC().Format(stamp), id, ext)
}

// parseDataName is strict: what it does not know is not ours, and is never touched.
func parseDataName(name string) (ID, bool) {
	stem, ext, ok := strings.Cut(name, ".")
	if !ok || len(ext) > 10 || !made(ext, lower) {
		return "", false
	}
	cut := len(stem) - idLength - len(stamp) - 2
	if cut < 1 || cut > 40 || !made(stem[:cut], toolChars) {
		return "", false
	}
	at, rest := stem[cut+1:cut+1+len(stamp)], stem[cut+1+len(stamp):]
	if _, err := time.Parse(stamp, at); err != nil || stem[cut] != '_' || rest[0] != '_' {
		return "", false
	}
	id := ID(rest[1:])
	return id, id.valid()
}

// Find turns a printed `saved to` path into the ID of that observation; no file is opened by it.
func (s *Store) Find(path string) (ID, bool) {
	if !filepath.IsAbs(path) || len(path) > 4096 {
		return "", false
	}
	dir, name := filepath.Split(filepath.Clean(path))
	if filepath.Clean(dir) != filepath.Join(s.dir, observationsDir) {
		return "", false
	}
	return parseDataName(name)
}

// SavedTo is the absolute path of the data file, for people and for receipts on stdio.
func (s *Store) SavedTo(o Observation) string {
	if o.File == "" {
		return ""
	}
	return filepath.Join(s.dir, observationsDir, filepath.Base(o.File))
}

// clip cuts what a caller gave us to at most max bytes, at a rune.
func clip(s string, max int) string {
	if len(s) <= max {
		return s
	}
	max -= len("…")
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max] + "…"
}
