package kinds

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestDroppedDigest: a digest whose reader waits for more text ends with the digest, and so does one that was closed.
func TestDroppedDigest(t *testing.T) {
	settle := func(below int) (n int) {
		for range 200 {
			runtime.GC()
			if n = runtime.NumGoroutine(); n <= below {
				return n
			}
			time.Sleep(time.Millisecond)
		}
		return n
	}
	before := settle(2) // those of earlier tests may still end
	var kept []*Digest
	for range 5 {
		for name, text := range map[string]string{
			"a.yaml": "a: 1\n", "a.xml": "<a>\n", "a.toml": "a = 1\n", "t.xml": "<testcase/>\n",
		} {
			d := New(name)
			if name == "t.xml" {
				_, _ = d.Write([]byte("<testsuite>"))
			}
			_, _ = d.Write([]byte(strings.Repeat(text, 100_000/len(text))))
			kept = append(kept, d)
		}
	}
	runtime.GC()
	if n := runtime.NumGoroutine(); n < 20 { // the control: they wait
		t.Errorf("%d goroutines with 20 digests, %d before: this proves nothing", n, before)
	}
	_ = kept[0].Close()
	clear(kept)
	if n := settle(before); n > before {
		t.Errorf("%d goroutines after all digests were dropped, %d before", n, before)
	}
}

// TestDamagedStart: a text that is broken in its first block is read on, in blocks, and its summary says where.
func TestDamagedStart(t *testing.T) {
	d := New("a.yaml")
	for range 4 {
		_, _ = d.Write([]byte("a: [}\n" + strings.Repeat("b: 1\n", 40_000)))
	}
	if s := d.Close(); len(s.Damage) != 1 || !strings.Contains(s.Damage[0], "line 1") {
		t.Errorf("damage: %q", s.Damage)
	}
}
