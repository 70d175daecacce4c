package files_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations/files"
)

// fill writes files of 10 KiB into a cache, each a minute newer than the one before.
func fill(t *testing.T, c *Cache, files int) {
	t.Helper()
	begin := time.Now().Add(-24 * time.Hour)
	for i := range files {
		name := filepath.Join(c.Dir, fmt.Sprintf("d%d/f%02d", i%3, i))
		must(t, os.MkdirAll(filepath.Dir(name), 0o700))
		must(t, os.WriteFile(name, make([]byte, 10<<10), 0o600))
		must(t, os.Chtimes(name, begin, begin.Add(time.Duration(i)*time.Minute)))
	}
}

// TestCacheIsTrimmed checks that a cache of over half of the quota loses its oldest files, and nothing outside it.
func TestCacheIsTrimmed(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	must(t, os.WriteFile(outside, make([]byte, 100<<10), 0o600))
	s := open(t, Options{Quota: 200 << 10})
	c := value(s.OpenCache("a"))
	defer c.Close()
	fill(t, c, 10)
	must(t, os.Symlink(filepath.Dir(outside), filepath.Join(c.Dir, "link")))
	if trimmed, err := c.Measure(); err != nil || trimmed != 0 && trimmed < 5*10<<10 {
		t.Errorf("100 KiB of 200: %d bytes deleted, %v", trimmed, err)
	}
	fill(t, c, 12)
	trimmed, err := c.Measure()
	if u, e := s.Usage(); err != nil || e != nil || trimmed < 70<<10 || u.Bytes > 50<<10 || u.Bytes < 40<<10 {
		t.Errorf("120 KiB of 200: %d bytes deleted, %d left; %v, %v", trimmed, u.Bytes, err, e)
	}
	for i, want := range map[int]bool{0: false, 6: false, 8: true, 11: true} {
		if _, err := os.Stat(filepath.Join(c.Dir, fmt.Sprintf("d%d/f%02d", i%3, i))); (err == nil) != want {
			t.Errorf("file %d of 12, the oldest first: %v", i, err)
		}
	}
	if _, err := os.Stat(outside); err != nil {
		t.Errorf("a file behind a link: %v", err)
	}
}

// TestCacheMakesRoom checks that a cache counts in the quota, and goes before an observation does unless it is open.
func TestCacheMakesRoom(t *testing.T) {
	clk := newClock()
	for _, isOpen := range []bool{false, true} {
		s := open(t, Options{Quota: 1 << 20, Now: clk.now})
		c := value(s.OpenCache("a"))
		fill(t, c, 40)
		value(c.Measure())
		if !isOpen {
			c.Close()
		}
		first := keep(t, s, Provenance{}, make([]byte, 300<<10))
		clk.pass(time.Hour)
		keep(t, s, Provenance{}, make([]byte, 450<<10))
		_, cached := os.Stat(c.Dir)
		_, kept := s.Stat(Local, first.ID)
		if (cached == nil) != isOpen || (kept == nil) != !isOpen {
			t.Errorf("the cache is open: %t; it: %v, the first observation: %v", isOpen, cached, kept)
		}
		if isOpen {
			c.Close()
		}
	}
}

// TestOldCacheIsDeleted checks that a cache that nobody used within the maximum age is deleted.
func TestOldCacheIsDeleted(t *testing.T) {
	clk := newClock()
	s := open(t, Options{Now: clk.now})
	for _, name := range []string{"old", "new"} {
		c := value(s.OpenCache(name))
		fill(t, c, 1)
		value(c.Measure())
		c.Close()
		clk.pass(5 * oneDay)
	}
	_, _ = s.List(Local, false) // looks at ages when that is due
	for name, want := range map[string]bool{"old": false, "new": true} {
		if _, err := os.Stat(filepath.Join(s.Dir(), files.CachesDir, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
