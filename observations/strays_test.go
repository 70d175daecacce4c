package observations

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
)

// What is not ours by its name is never removed, counted or opened.
func TestForeignFilesStay(t *testing.T) {
	c := newClock()
	s := open(t, Options{Now: c.now, Quota: 200 << 10})
	foreign := []string{
		"observations/notes.txt", "observations/.hidden", "observations/k3v9q2m7x4ab.json.bak", "observations/k3v9q2m7x4ab.txt",
		"observations/search_20261120T143022_k3v9q2m7x4ab.txt.orig", "observations/search_20261120_k3v9q2m7x4ab.txt",
		"tmp/core", "tmp/12-abc.live", "tmp/99999999-00000000_short.data", "tmp/99999999-00000000_k3v9q2m7x4ab.mine", "state/other", "other",
	}
	for _, name := range foreign {
		if err := os.WriteFile(dir(s, name), make([]byte, 100<<10), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mkdir(t, dir(s, "observations/search_20200101T000000_k3v9q2m7x4ab.txt"), 0o700)
	mkdir(t, dir(s, "observations/k3v9q2m7x4ac.json"), 0o700)
	outside := filepath.Join(t.TempDir(), "outside")
	must(t, os.WriteFile(outside, []byte("x"), 0o600))
	foreign = append(foreign, "observations/search_20200101T000000_k3v9q2m7x4ab.txt", "observations/k3v9q2m7x4ac.json")
	if os.Symlink(outside, dir(s, "observations/search_20200101T000000_k3v9q2m7x4ad.txt")) == nil {
		foreign = append(foreign, "observations/search_20200101T000000_k3v9q2m7x4ad.txt")
	}
	c.at = time.Now().Add(365 * oneDay) // the files above are a year old
	keep(t, s, Provenance{}, corpus.Random(100<<10))
	c.pass(8 * oneDay)
	keep(t, s, Provenance{}, corpus.Random(100<<10))
	if _, err := s.Prune(false); err != nil {
		t.Fatal(err)
	}
	again, err := OpenStore(roomy(Options{Dir: s.Dir(), Now: c.now}))
	if err != nil {
		t.Fatal(err)
	}
	_ = again.Close()
	for _, name := range append(foreign, outside) {
		if !filepath.IsAbs(name) {
			name = dir(s, name)
		}
		if _, err := os.Lstat(name); err != nil {
			t.Errorf("it was removed: %v", err)
		}
	}
}

// A file with our name and no sidecar, of no process that is known to be dead, goes only by age.
func TestStraysGoByAge(t *testing.T) {
	c := newClock()
	c.at = time.Now()
	s := open(t, Options{Now: c.now})
	stray := dir(s, "observations/"+dataName("search", c.at, RandomID(), "txt"))
	if err := os.WriteFile(stray, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Prune(false); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(stray); err != nil {
		t.Fatalf("fresh, and removed: %v", err)
	}
	c.pass(8 * oneDay)
	if _, err := s.Prune(false); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(stray); err == nil {
		t.Error("eight days old, and it stays")
	}
	consistent(t, s)
}

func TestClockSetBack(t *testing.T) {
	c := newClock()
	s := open(t, Options{Now: c.now, Quota: 300 << 10})
	future := keep(t, s, Provenance{}, corpus.Random(100<<10))
	c.pass(-30 * oneDay)
	expectWhole(t, s, future.ID)
	past := keep(t, s, Provenance{}, corpus.Random(100<<10))
	if _, err := s.Prune(false); err != nil {
		t.Fatal(err)
	}
	expectWhole(t, s, future.ID)
	expectWhole(t, s, past.ID)
	c.pass(2 * time.Minute)
	keep(t, s, Provenance{}, corpus.Random(100<<10)) // still, nothing is stuck
	expectTombstone(t, s, past.ID, whyQuota)
	consistent(t, s)
}

func TestLostState(t *testing.T) {
	for name, spoil := range map[string]func(path string){
		"deleted": func(path string) { must(t, os.Remove(path)) },
		"torn":    func(path string) { must(t, os.WriteFile(path, []byte(`{"v":1,"kept":12`), 0o600)) },
		"empty":   func(path string) { must(t, os.WriteFile(path, nil, 0o600)) },
		"strange": func(path string) { must(t, os.WriteFile(path, []byte(`{"v":7,"kept":-5}`), 0o600)) },
		"huge":    func(path string) { must(t, os.WriteFile(path, bytes.Repeat([]byte(" "), maxQuota), 0o600)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, Options{})
			keep(t, s, Provenance{}, corpus.Random(100<<10))
			r := record(t, s, Provenance{}, corpus.Random(200<<10)) // it holds a reservation
			spoil(dir(s, quotaName))
			keep(t, s, Provenance{}, []byte("x"))
			_, _ = r.Write(corpus.Random(200 << 10))
			if _, err := r.Commit(Stats{}); err != nil {
				t.Fatal(err)
			}
			consistent(t, s)
		})
	}
}

// Many at once in one store of one process.
func TestConcurrentUse(t *testing.T) {
	s := open(t, Options{Quota: 64 << 20})
	var group sync.WaitGroup
	for g := range 8 {
		group.Go(func() {
			for i := range 15 {
				text := corpus.Random(1 + (g*15+i)*1500)
				o := keep(t, s, Provenance{Tool: "search"}, text)
				r, err := s.Open(Local, o.ID)
				if err != nil {
					t.Error(err)
					return
				}
				back := make([]byte, len(text))
				if _, err := r.ReadAt(back, 0); err != nil || !bytes.Equal(back, text) {
					t.Errorf("read %v", err)
				}
				_ = r.Close()
				switch i % 5 {
				case 0:
					err = s.Remove(Local, o.ID)
				case 1:
					err = s.Pin(Local, o.ID, true)
				case 2:
					_, err = s.List(Local, true)
				case 3:
					_, err = s.Prune(false)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	consistent(t, s)
}
