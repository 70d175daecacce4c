package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// With a small heap Go collects garbage every 4 MB, that is every 70 small calls, and the three or four calls of
// those one or two milliseconds wait: more than one call in a hundred. With a minimum heap of 12 MB it is every 400
// calls.
const (
	goMinHeap = 4 << 20 // heap size at which Go collects with GOGC=100; it grows in proportion to GOGC
	minHeap   = 12 << 20
)

// delayCollections lets the heap grow to [minHeap] bytes or twice the live heap, whichever is more, before garbage
// is collected. It adapts after each collection, and does nothing if GOGC is set.
func delayCollections() {
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

// percentFor returns the GOGC value for a live heap of that many bytes.
func percentFor(live uint64) int {
	const most = 100 * minHeap / goMinHeap
	if 2*live >= minHeap {
		return 100
	}
	return int(min(most, 100*(minHeap-live)/max(live, 1)))
}
