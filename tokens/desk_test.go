package tokens

import (
	"runtime"
	"testing"
)

func TestADeskOutlivesTheGarbage(t *testing.T) {
	c := New(O200k)
	c.Count("what is remembered")
	before := c.kept.Load()
	for range 3 {
		runtime.GC()
	}
	d, other := c.desk(), c.desk()
	if d == nil || d != before || d == other {
		t.Fatalf("desks %p and %p, want %p and another", d, other, before)
	}
	c.leave(other)
	c.leave(d) // the pool's
	if c.kept.Load() != other || c.Count("what is remembered") != 3 {
		t.Error("a desk that was left is not the one that is kept")
	}
}
