package main

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

func TestPercentFor(t *testing.T) {
	for _, c := range []struct {
		live uint64
		want int
	}{
		{0, 300}, {1 << 20, 300}, {3 << 20, 300}, {4 << 20, 200}, {6 << 20, 100}, {1 << 30, 100},
	} {
		if got := percentFor(c.live); got != c.want {
			t.Errorf("%d bytes in use: %d %%, want %d", c.live, got, c.want)
		}
	}
}

// Where much is in use it is collected as before, and minHeap again afterwards.
func TestCollectSeldom(t *testing.T) {
	before := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	t.Setenv("GOGC", "")
	delayCollections()
	until := func(want func(int) bool) {
		t.Helper()
		for range 500 {
			runtime.GC()
			p := debug.SetGCPercent(100)
			if debug.SetGCPercent(p); want(p) {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Error("not in five seconds")
	}
	until(func(p int) bool { return p > 100 })
	much := make([]byte, 64<<20)
	until(func(p int) bool { return p == 100 })
	runtime.KeepAlive(much)
	until(func(p int) bool { return p > 100 })
}
