package observations

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
)

// failing makes the nth file operation from now on fail, or with sticky that
// and all after it; done is how many there were.
func (f *files) failing(nth int, with error, sticky bool) (done *int) {
	n := 0
	f.fault = func(op, name string) error {
		n++
		if n == nth || (sticky && n > nth) {
			return with
		}
		return nil
	}
	return &n
}

// Every file operation of a removal fails: the observation is whole or a
// tombstone, and what is left goes at the next start or the next prune.
func TestFaultsWhileRemoving(t *testing.T) {
	for _, fault := range failures[:2] {
		for name, do := range map[string]func(*Store, ID) error{
			"remove": func(s *Store, id ID) error { return s.Remove(Local, id) },
			"prune":  func(s *Store, id ID) error { _, err := s.Prune(false); return err },
			"open":   func(s *Store, id ID) error { _, err := s.Open(Local, id); return err },
		} {
			t.Run(fmt.Sprintf("%s, %v", name, fault), func(t *testing.T) {
				c := newClock()
				s := open(t, Options{Now: c.now})
				for nth := 1; ; nth++ {
					o := keep(t, s, Made{}, corpus.Random(100))
					c.pass(8 * oneDay)
					done := s.disk.failing(nth, fault, false)
					err := do(s, o.ID)
					s.disk.fault = nil
					_, look := s.Look(Local, o.ID)
					switch {
					case look == nil:
						there(t, s, o.ID)
					case !errors.Is(look, ErrExpired):
						t.Fatalf("operation %d: %v; then %v", nth, err, look)
					}
					if name == "remove" && err == nil && look == nil {
						t.Fatalf("operation %d: said to be removed, and it is there", nth)
					}
					// A fault in the midst leaves what the same process would only find by age: let it die.
					_ = s.live.File.Close()
					s.live = nil
					again := open(t, Options{Dir: s.dir, Now: c.now})
					if _, err := again.Prune(false); err != nil {
						t.Fatal(err)
					}
					gone := errors.Is(second(again.Look(Local, o.ID)), ErrExpired)
					if _, err := os.Stat(s.SavedTo(o)); gone && err == nil && *done >= nth {
						// The bytes of a tombstone: age takes them.
						c.pass(8 * oneDay)
						_, _ = again.Prune(false)
						if _, err := os.Stat(s.SavedTo(o)); err == nil {
							t.Fatalf("operation %d: the bytes of a tombstone stay", nth)
						}
					}
					consistent(t, again)
					_ = again.Close()
					if t.Failed() || *done < nth {
						return
					}
				}
			})
		}
	}
}

func second[T any](_ T, err error) error { return err }

// scenes are what a process dies in: each with a store, and an old observation in it.
var scenes = map[string]func(s *Store, old ID){
	"commit-small": func(s *Store, _ ID) { sceneCommit(s, corpus.Random(1000)) },
	"commit-large": func(s *Store, _ ID) { sceneCommit(s, corpus.Random(2*blockSize+1000)) },
	"discard": func(s *Store, _ ID) {
		r, _ := s.Record(Made{})
		_, _ = r.Write(corpus.Random(2*blockSize + 1000))
		_ = r.Discard()
	},
	"remove": func(s *Store, old ID) { _ = s.Remove(Local, old) },
	"prune":  func(s *Store, _ ID) { _, _ = s.Prune(false) },
	"pin":    func(s *Store, old ID) { _ = s.Pin(Local, old, true) },
	"start": func(s *Store, old ID) {
		halfRemoved(s, old)
		_ = s.start()
	},
	"tidy": func(s *Store, old ID) {
		halfRemoved(s, old)
		_ = s.start()
		later := s.now().Add(2 * tombstoneAge)
		s.now = func() time.Time { return later }
		s.tidy()
	},
	"index": func(s *Store, old ID) {
		_ = os.Remove(filepath.Join(s.dir, observationsDir, string(old)+indexExt))
		if r, err := s.open(Local, old); err == nil {
			_, _, _ = r.LineOffset(2)
			_ = r.Close()
		}
	},
}

// halfRemoved has an observation be as one is whose process died when it had written the tombstone.
func halfRemoved(s *Store, id ID) {
	o, err := s.sidecar(id)
	if err != nil {
		return
	}
	stone, _ := o.tombstone(whyRemoved, s.now()).encode(maxTombstone)
	_ = os.WriteFile(filepath.Join(s.dir, tmpDir, "1-aaaaaaaa_"+string(id)+goneExt), nil, 0o600)
	_ = os.WriteFile(filepath.Join(s.dir, observationsDir, string(id)+sideExt), stone, 0o600)
}

func sceneCommit(s *Store, text []byte) {
	r, _ := s.Record(Made{})
	_, _ = r.Write(text)
	if o, err := r.Commit(Seen{}); err == nil {
		fmt.Println(o.ID)
	}
}

// playDeath is a process that kills itself before its nth file operation in a scene.
func playDeath(dir, scene, old string, nth int, at time.Time) error {
	s, err := OpenStore(roomy(Options{Dir: dir, Now: func() time.Time { return at }}))
	if err != nil {
		return err
	}
	n := 0
	s.disk.fault = func(op, name string) error {
		if n++; n == nth {
			if self, err := os.FindProcess(os.Getpid()); err == nil {
				_ = self.Kill()
			}
			select {}
		}
		return nil
	}
	scenes[scene](s, ID(old))
	s.disk.fault = nil
	fmt.Println("lives")
	return s.Close()
}

// A process dies before each of its file operations in turn. The next start
// finds what was acknowledged whole, and clears the rest away.
func TestDeathAtEveryStep(t *testing.T) {
	for name := range scenes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClock()
			for nth := 1; ; nth++ {
				store := filepath.Join(t.TempDir(), "store") // what others have left would make for more operations each time
				s, err := OpenStore(roomy(Options{Dir: store, Now: c.now}))
				if err != nil {
					t.Fatal(err)
				}
				old := keep(t, s, Made{}, corpus.Random(10_000))
				_ = s.Close()
				c.pass(8 * oneDay)
				a := start(t, "die", store, name, string(old.ID), fmt.Sprint(nth), fmt.Sprint(c.at.UnixNano()))
				said, err := a.rest()
				lives := len(said) > 0 && said[len(said)-1] == "lives"
				if lives != (err == nil) || a.said.Len() > 0 {
					t.Fatalf("the process said %q, %v: %s", said, err, &a.said)
				}

				if s, err = OpenStore(roomy(Options{Dir: store, Now: c.now})); err != nil {
					t.Fatal(err)
				}
				all, err := s.survey(true)
				if err != nil {
					t.Fatal(err)
				}
				var stands int64
				for id, e := range all {
					stands += e.size()
					if !e.side || (e.data == "" && (e.index || e.pin)) || (e.data != "" && s.Verify(Local, id) != nil) {
						t.Errorf("death before operation %d left of obs:%s %+v", nth, id, e)
					}
				}
				if err := s.locked(func(l *ledger) error { // before age has all counted again
					over := l.Kept - stands
					if over < 0 || over > 0 && (name != "index" || over > 64) || len(l.Held) > 0 { // the scene's own removal of an index is not counted
						t.Errorf("death before operation %d: the quota file says %d and %v, %d stand", nth, l.Kept, l.Held, stands)
					}
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				for _, id := range said {
					if id != "lives" {
						there(t, s, ID(id))
					}
				}
				if _, err := s.Look(Local, old.ID); err != nil && !errors.Is(err, ErrExpired) && (name != "tidy" || !errors.Is(err, ErrNotFound)) {
					t.Errorf("death before operation %d: the old one: %v", nth, err)
				}
				if left := names(t, s, tmpDir); len(left) > 0 {
					t.Errorf("death before operation %d left in tmp/: %v", nth, left)
				}
				_ = s.Close()
				if t.Failed() {
					return
				}
				if lives {
					if nth < 5 {
						t.Errorf("only %d operations", nth)
					}
					return
				}
			}
		})
	}
}

// The control: where the sidecar came first, a death would leave an
// observation that is not whole, and the test above would see it.
func TestDeathControl(t *testing.T) {
	s := open(t, Options{})
	o := keep(t, s, Made{}, []byte("data"))
	data := s.SavedTo(o)
	if err := os.Rename(data, data+".later"); err != nil {
		t.Fatal(err)
	}
	if err := s.Verify(Local, o.ID); !errors.Is(err, ErrDamaged) {
		t.Errorf("a sidecar without its data: %v", err)
	}
}

func TestStoreThatCannotBeOpened(t *testing.T) {
	for _, fault := range []error{syscall.EROFS, syscall.EACCES, syscall.ENOSPC} {
		dir := filepath.Join(t.TempDir(), "store")
		disk := &files{}
		must(t, disk.enter(dir, false))
		disk.failing(1, fault, true)
		if err := newStore(dir, disk, Options{}).start(); !errors.Is(err, fault) {
			t.Errorf("start on %v: %v", fault, err)
		}
		disk.close()
	}
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	if _, err := OpenStore(Options{Dir: filepath.Join(dir, "file", "store")}); err == nil || !strings.Contains(err.Error(), "--store") {
		t.Errorf("below a file: %v", err)
	}
}

// A quota file that somebody holds is no room after a second, and no hang.
func TestBusyQuotaFile(t *testing.T) {
	s := open(t, Options{})
	o := keep(t, s, Made{}, []byte("x"))
	other := open(t, Options{Dir: s.dir})
	f, err := other.lockLedger(lockWait)
	if err != nil {
		t.Fatal(err)
	}
	r := record(t, s, Made{}, []byte("y"))
	if _, err := r.Commit(Seen{}); !errors.Is(err, ErrNoRoom) {
		t.Errorf("Commit: %v", err)
	}
	if got := content(t, s, Local, o.ID); string(got) != "x" { // reading waits for nothing
		t.Errorf("read %q", got)
	}
	_ = f.Close()
	_ = r.Discard()
	keep(t, s, Made{}, []byte("z"))
	consistent(t, s)
}
