package observations

import (
	"encoding/hex"
	"hash"
	"testing"
)

// Scratch returns an empty directory for very many operations.
func Scratch(t testing.TB) string { return scratch(t) }

// Failing makes the nth file operation of a store fail, and with sticky all after it; done counts them. It is for tests
// of packages that use a store.
func (s *Store) Failing(nth int, with error, sticky bool) (done *int) {
	return failing(s.disk, nth, with, sticky)
}

// Lying makes the nth operation do nothing and report success.
func (s *Store) Lying(nth int) (done *int) { return lying(s.disk, s.dir, nth, func(string) {}) }

// Well ends Failing and Lying.
func (s *Store) Well() { s.disk.Fault = nil }

// Inconsistencies returns the statements of the quota file and tmp/ that are not true.
func (s *Store) Inconsistencies() []string { return inconsistencies(s) }

// SHA256 is the hash, in hex, of what is kept so far.
func (r *Recording) SHA256() string {
	if len(r.buf) == 0 {
		return hex.EncodeToString(r.hash.Sum(nil))
	}
	h, err := r.hash.(hash.Cloner).Clone()
	if err != nil { // only where the hash is not Go's own
		return ""
	}
	h.Write(r.buf)
	return hex.EncodeToString(h.Sum(nil))
}
