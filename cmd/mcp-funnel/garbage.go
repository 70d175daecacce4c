package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// Where little is in use Go collects garbage as soon as there are 4 MB of all, which is every 70 small calls, and each time the three or
// four calls of that millisecond or two wait: more than one call in a hundred. With seldom it is every 400.
const (
	leastHeap = 4 << 20 // at which Go collects with 100 % (GOGC), and in proportion with more
	seldom    = 12 << 20
)

// collectSeldom has garbage collected when there are [seldom] bytes of all, or twice what is in use, whichever is more: it looks after each
// collection what is in use. Who sets GOGC decides himself.
func collectSeldom() {
	if os.Getenv("GOGC") != "" {
		return
	}
	percent := percentFor(0)
	debug.SetGCPercent(percent)
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	var pace func(int)
	pace = func(int) {
		metrics.Read(live)
		if p := percentFor(live[0].Value.Uint64()); p != percent {
			percent = p
			debug.SetGCPercent(p)
		}
		runtime.AddCleanup(new([64]byte), pace, 0)
	}
	runtime.AddCleanup(new([64]byte), pace, 0) // runs after the next collection
}

// percentFor is how much more than what is in use there may be.
func percentFor(live uint64) int {
	const most = 100 * seldom / leastHeap
	if 2*live >= seldom {
		return 100
	}
	return int(min(most, 100*(seldom-live)/max(live, 1)))
}
