package observations

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations/files"
	"github.com/mcp-funnel/mcp-funnel/observations/remote/remotetest"
)

// clock is the time of a store, set by the test.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func (c *clock) pass(d time.Duration) { c.at = c.at.Add(d) }

func newClock() *clock { return &clock{time.Date(2026, 3, 14, 15, 9, 26, 535897932, time.UTC)} }

func sum(b []byte) string { s := sha256.Sum256(b); return hex.EncodeToString(s[:]) }

func roomy(o Options) Options { o.MinFree = -1; return o }

func dir(s *Store, name string) string { return filepath.Join(s.Dir(), name) }

// sidecarPath returns the path of a sidecar in a directory.
func sidecarPath(s *Store, id ID) string { return dir(s, "observations/"+string(id)+".json") }

// scratch returns an empty directory, in memory if possible, for tests with many file operations.
func scratch(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "mcp-funnel-store-") //nolint:usetesting // TempDir is on a disk
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// opener opens a store, which is closed at the end of the test. Without a directory it is an empty one; two of the same
// directory share what they store, as two processes do.
type opener func(t testing.TB, o Options) *Store

// each runs a test on every backend.
func each(t *testing.T, test func(t *testing.T, open opener)) {
	t.Helper()
	t.Run("files", func(t *testing.T) { test(t, temporary(OpenStore)) })
	t.Run("remote", func(t *testing.T) { test(t, replicas()) })
}

// replicas opens stores on Postgres and S3. The directory only names what they share.
func replicas() opener {
	places := map[string]remotetest.Place{}
	return func(t testing.TB, o Options) *Store {
		t.Helper()
		p, found := places[o.Dir]
		k, again := t.(*try)
		switch {
		case found && again: // a new one takes long
			p.Empty(t)
		case again:
			p = remotetest.New(k.TB)
		case !found || o.Dir == "":
			p = remotetest.New(t)
		}
		places[o.Dir] = p
		b, cache := p.Open(t, o)
		s := OpenOn(b, cache, o)
		sharedBy.Store(s, p)
		t.Cleanup(func() { sharedBy.Delete(s) })
		return s
	}
}

var sharedBy sync.Map // the place of each remote store

// onDisk reports whether a store is a directory. A test asks where the stores differ, and says why they do.
func onDisk(s *Store) bool {
	_, is := s.Backend.(*files.Store)
	return is
}

func temporary(open func(Options) (*Store, error)) opener {
	return func(t testing.TB, o Options) *Store {
		t.Helper()
		if o.Dir == "" {
			o.Dir = filepath.Join(t.TempDir(), "store")
		}
		s := value(open(roomy(o)))
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
}

// try is one of many in a test, with a clean-up of its own. Its stores are empty ones.
type try struct {
	testing.TB
	ends []func()
}

func (k *try) Cleanup(f func()) { k.ends = append(k.ends, f) }

func (k *try) end() {
	for _, f := range slices.Backward(k.ends) {
		f()
	}
}

func record(t testing.TB, s *Store, m Provenance, b []byte) *Recording {
	t.Helper()
	r := value(s.Record(m))
	if n, err := r.Write(b); n != len(b) || err != nil {
		t.Fatalf("Write = %d, %v; want %d, nil", n, err, len(b))
	}
	return r
}

func keep(t testing.TB, s *Store, m Provenance, b []byte) Observation {
	t.Helper()
	o := value(record(t, s, m, b).Commit(Stats{Kind: "text", Ext: "txt", Status: "success"}))
	return o
}

func dataOf(t testing.TB, s *Store, owner string, id ID) []byte {
	t.Helper()
	r := value(s.Open(owner, id))
	defer func() { _ = r.Close() }()
	b := value(io.ReadAll(io.NewSectionReader(r, 0, r.Size())))
	return b
}

// consistent checks that nothing is being written and that what is counted is what is stored: the quota file of a
// directory matches its files, and tmp/ has only the live files of living processes.
func consistent(t testing.TB, s *Store) {
	t.Helper()
	if p, found := sharedBy.Load(s); found {
		p.(remotetest.Place).Consistent(t, 0)
		return
	}
	var l struct {
		Kept int64
		Held map[string]int64
	}
	must(t, json.Unmarshal(value(os.ReadFile(dir(s, "state/quota.json"))), &l))
	var stands int64
	for _, e := range value(os.ReadDir(dir(s, "observations"))) {
		stands += value(e.Info()).Size()
	}
	for _, e := range value(os.ReadDir(dir(s, "tmp"))) {
		if !strings.HasSuffix(e.Name(), ".live") {
			t.Errorf("left in tmp/: %s", e.Name())
		}
	}
	if l.Kept != stands || len(l.Held) > 0 {
		t.Errorf("the quota file says %d kept and %v held; %d stand in the store", l.Kept, l.Held, stands)
	}
}

const oneDay = 24 * time.Hour

// expectTombstone checks that an observation is a tombstone, for this reason.
func expectTombstone(t *testing.T, s *Store, id ID, why string) {
	t.Helper()
	_, err := s.Open(Local, id)
	var expired *ExpiredError
	if !errors.As(err, &expired) || !errors.Is(err, ErrExpired) || expired.Observation.Why != why {
		t.Errorf("obs:%s: %v, want it expired by %s", id, err, why)
	}
}

// expectWhole checks that an observation is complete, without using it.
func expectWhole(t *testing.T, s *Store, id ID) {
	t.Helper()
	if err := s.Verify(Local, id); err != nil {
		t.Errorf("obs:%s: %v, want it whole", id, err)
	}
}

// must ends the test if err is not nil.
func must(t interface {
	Helper()
	Fatal(args ...any)
}, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// value returns v. It panics if err is not nil.
func value[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
