package child

import "sync/atomic"

var other atomic.Pointer[string]

// Use makes workers start from another build of this program. It is for tests
// built with the race detector, which needs more memory than a worker may have: their children are built without it.
func Use(path string) { other.Store(&path) }

func binary() string {
	if p := other.Load(); p != nil {
		return *p
	}
	return self()
}
