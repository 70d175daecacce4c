package worker

import "sync/atomic"

var other atomic.Pointer[string]

// Use makes workers start from another build of this program. It is for tests built with the race detector, which needs
// more memory than a worker may use: it starts workers from a build without it.
func Use(path string) { other.Store(&path) }

func binary() string {
	if p := other.Load(); p != nil {
		return *p
	}
	return ownBinary()
}
