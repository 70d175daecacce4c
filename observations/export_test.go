package observations

import "testing"

// Scratch is an empty directory for very many operations.
func Scratch(t testing.TB) string { return scratch(t) }

// Failing makes the nth file operation of a store from now on fail, or with sticky
// that and all after it; done is how many there were. It is for tests that stand
// outside this package, of those who use a store.
func (s *Store) Failing(nth int, with error, sticky bool) (done *int) {
	return s.disk.failing(nth, with, sticky)
}

// Lying is Failing where nobody is told of it.
func (s *Store) Lying(nth int) (done *int) { return s.disk.lying(s.dir, nth, func(string) {}) }

// Well ends both.
func (s *Store) Well() { s.disk.fault = nil }

// Inconsistencies are what the quota file and tmp/ say that is not so.
func (s *Store) Inconsistencies() []string { return inconsistencies(s) }
