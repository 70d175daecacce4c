package worker

import "sync/atomic"

// otherBinary is the path that Use has set.
var otherBinary atomic.Pointer[string]

// Use makes workers start from another build of this program. Tests with the race detector call it, because the
// detector needs more memory than a worker may use.
func Use(path string) { otherBinary.Store(&path) }

func binary() string {
	if p := otherBinary.Load(); p != nil {
		return *p
	}
	return ownBinary()
}
