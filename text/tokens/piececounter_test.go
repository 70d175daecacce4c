package tokens

import (
	"runtime"
	"testing"
)

func TestADeskOutlivesTheGarbage(t *testing.T) {
	c := New(O200k)
	c.Count("what is remembered")
	before := c.cached.Load()
	for range 3 {
		runtime.GC()
	}
	d, other := c.acquire(), c.acquire()
	if d == nil || d != before || d == other {
		t.Fatalf("piece counters %p and %p, want %p and another", d, other, before)
	}
	c.release(other)
	c.release(d) // the pool's
	if c.cached.Load() != other || c.Count("what is remembered") != 3 {
		t.Error("the released piece counter is not the cached one")
	}
}
