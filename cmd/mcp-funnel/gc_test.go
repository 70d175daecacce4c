package main

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// TestDelayCollections: with a small heap the next collection is at 12 MB or more, and with a large one at twice that.
func TestDelayCollections(t *testing.T) {
	before := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(before); ballast = nil })
	t.Setenv("GOGC", "")
	delayCollections()
	next := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.NextGC
	}
	percent, at := 0, uint64(0)
	for range 500 {
		at = next()
		percent = debug.SetGCPercent(100)
		if debug.SetGCPercent(percent); at >= 12<<20 && percent == 100 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if percent != 100 || at < 12<<20 {
		t.Errorf("%d %%, and the next collection is at %d bytes", percent, at)
	}
	much := make([]byte, 64<<20)
	if got := next(); got > 3*64<<20 {
		t.Errorf("the next collection is at %d bytes with 64 MB in use", got)
	}
	runtime.KeepAlive(much)
}
