package files_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/observations/backend"
	"github.com/mcp-funnel/mcp-funnel/observations/files"
	"github.com/mcp-funnel/mcp-funnel/observations/storefs"
)

// failing makes the nth file operation from now on fail, and with sticky all after it; done counts the operations.
func failing(f *storefs.FS, nth int, with error, sticky bool) (done *int) {
	n := 0
	f.Fault = func(op, name string) error {
		n++
		if n == nth || (sticky && n > nth) {
			return with
		}
		return nil
	}
	return &n
}

func second[T any](_ T, err error) error { return err }

// scenes are operations during which a process dies, on a store with one old observation.
var scenes = map[string]func(s *Store, old ID){
	"commit-small": func(s *Store, _ ID) { sceneCommit(s, corpus.Random(1000)) },
	"commit-large": func(s *Store, _ ID) { sceneCommit(s, corpus.Random(2*blockSize+1000)) },
	"discard": func(s *Store, _ ID) {
		r, _ := s.Record(Provenance{})
		_, _ = r.Write(corpus.Random(2*blockSize + 1000))
		_ = r.Discard()
	},
	"remove": func(s *Store, old ID) { _ = s.Remove(Local, old) },
	"prune":  func(s *Store, _ ID) { _, _ = s.Prune(false) },
	"pin":    func(s *Store, old ID) { _ = s.Pin(Local, old, true) },
	"start": func(s *Store, old ID) {
		halfRemoved(s, old)
		_ = s.f.SweepAtOpen()
	},
	"tidy": func(s *Store, old ID) {
		halfRemoved(s, old)
		_ = s.f.SweepAtOpen()
		later := s.f.Now().Add(2 * files.TombstoneAge)
		s.f.SetNow(func() time.Time { return later })
		s.f.TidyIfDue()
	},
	"index": func(s *Store, old ID) {
		_ = os.Remove(filepath.Join(s.Dir(), storefs.ObservationsDir, string(old)+files.IndexExt))
		if o, b, err := s.f.OpenAny(Local, old); err == nil {
			if _, err := b.Lines(); err != nil {
				var x backend.Indexer
				_, _ = io.Copy(&x, io.NewSectionReader(b, 0, o.Bytes))
				b.SetLines(x.Finish())
			}
			_ = b.Close()
		}
	},
}

// halfRemoved leaves an observation as a process does that died right after writing the tombstone.
func halfRemoved(s *Store, id ID) {
	o, err := s.f.ReadSidecar(id)
	if err != nil {
		return
	}
	stone, _ := o.Tombstone(whyRemoved, s.f.Now()).Encode(backend.MaxTombstone)
	_ = os.WriteFile(filepath.Join(s.Dir(), storefs.TmpDir, "1-aaaaaaaa_"+string(id)+files.GoneExt), nil, 0o600)
	_ = os.WriteFile(filepath.Join(s.Dir(), storefs.ObservationsDir, string(id)+files.SideExt), stone, 0o600)
}

func sceneCommit(s *Store, text []byte) {
	r, _ := s.Record(Provenance{})
	_, _ = r.Write(text)
	if o, err := r.Commit(Stats{}); err == nil {
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
	s.Disk().Fault = func(op, name string) error {
		if n++; n == nth {
			if self, err := os.FindProcess(os.Getpid()); err == nil {
				_ = self.Kill()
			}
			select {}
		}
		return nil
	}
	scenes[scene](s, ID(old))
	s.Disk().Fault = nil
	fmt.Println("lives")
	return s.Close()
}

// A process dies before each of its file operations in turn. At the next start every acknowledged observation is
// complete and leftovers are removed.
func TestDeathAtEveryStep(t *testing.T) {
	for name := range scenes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClock()
			for nth := 1; ; nth++ {
				store := filepath.Join(t.TempDir(), "store") // earlier leftovers would change the number of operations
				s := value(OpenStore(roomy(Options{Dir: store, Now: c.now})))
				old := keep(t, s, Provenance{}, corpus.Random(10_000))
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
				all := value(s.f.Scan(true))
				var stands int64
				for id, e := range all {
					stands += e.Size
					if !e.Side || (e.Data == "" && (e.Index || e.Pin)) || (e.Data != "" && s.Verify(Local, id) != nil) {
						t.Errorf("death before operation %d left of obs:%s %+v", nth, id, e)
					}
				}
				if err := s.f.Locked(func(l *files.Ledger) error { // before age has all counted again
					over := l.Kept - stands
					// the scene's own removal of an index is not counted
					if over < 0 || over > 0 && (name != "index" || over > 64) || len(l.Held) > 0 {
						t.Errorf("death before operation %d: the quota file says %d and %v, %d stand", nth, l.Kept, l.Held, stands)
					}
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				for _, id := range said {
					if id != "lives" {
						expectWhole(t, s, ID(id))
					}
				}
				if _, err := s.Stat(Local, old.ID); err != nil && !errors.Is(err, ErrExpired) &&
					(name != "tidy" || !errors.Is(err, ErrNotFound)) {
					t.Errorf("death before operation %d: the old one: %v", nth, err)
				}
				if left := names(t, s, storefs.TmpDir); len(left) > 0 {
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

func TestStoreThatCannotBeOpened(t *testing.T) {
	for _, fault := range []error{syscall.EROFS, syscall.EACCES, syscall.ENOSPC} {
		dir := filepath.Join(t.TempDir(), "store")
		disk := &storefs.FS{}
		must(t, disk.OpenDirs(dir, false))
		failing(disk, 1, fault, true)
		if err := files.Sweep(dir, disk); !errors.Is(err, fault) {
			t.Errorf("start on %v: %v", fault, err)
		}
		disk.Close()
	}
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	if _, err := OpenStore(Options{Dir: filepath.Join(dir, "file", "store")}); err == nil ||
		!strings.Contains(err.Error(), "--store") {
		t.Errorf("below a file: %v", err)
	}
}

// A quota file locked by another process is no room after a second, and does not hang.
func TestBusyQuotaFile(t *testing.T) {
	s := open(t, Options{})
	o := keep(t, s, Provenance{}, []byte("x"))
	other := open(t, Options{Dir: s.Dir()})
	f := value(other.f.LockLedger())
	r := record(t, s, Provenance{}, []byte("y"))
	if _, err := r.Commit(Stats{}); !errors.Is(err, ErrNoRoom) {
		t.Errorf("Commit: %v", err)
	}
	if got := dataOf(t, s, Local, o.ID); string(got) != "x" { // reading waits for nothing
		t.Errorf("read %q", got)
	}
	_ = f.Close()
	_ = r.Discard()
	keep(t, s, Provenance{}, []byte("z"))
	consistent(t, s)
}
