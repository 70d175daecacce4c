package files_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/observations/backend"
	"github.com/mcp-funnel/mcp-funnel/observations/files"
	"github.com/mcp-funnel/mcp-funnel/observations/storefs"
)

// The names of the package that is tested, and of those beside it.
type (
	ID           = observations.ID
	Observation  = observations.Observation
	Provenance   = observations.Provenance
	Stats        = observations.Stats
	ExpiredError = observations.ExpiredError
	Options      = observations.Options
	Recording    = observations.Recording
	Reader       = observations.Reader
	Cache        = files.Cache
)

var (
	ErrNotFound   = backend.ErrNotFound
	ErrExpired    = backend.ErrExpired
	ErrNoRoom     = backend.ErrNoRoom
	ErrOwnerQuota = backend.ErrOwnerQuota
	ErrDamaged    = backend.ErrDamaged
)

const (
	Local      = observations.Local
	blockSize  = backend.BlockSize
	maxSidecar = backend.MaxSidecar
	whyAge     = backend.WhyAge
	whyQuota   = backend.WhyQuota
	whyRemoved = backend.WhyRemoved
)

// Store is a store in a directory, with what this package has of it.
type Store struct {
	*observations.Store
	f *files.Store
}

// OpenStore is [observations.OpenStore].
func OpenStore(o Options) (*Store, error) { return openStore(o, &storefs.FS{}) }

// openStore is OpenStore with a file system that tests prepare to fail.
func openStore(o Options, disk *storefs.FS) (*Store, error) {
	f, err := files.OpenOnDisk(o, disk)
	if err != nil {
		return nil, err
	}
	return &Store{observations.OpenOn(f, f, o), f}, nil
}

// clock is the time of a store, set by the test.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func (c *clock) pass(d time.Duration) { c.at = c.at.Add(d) }

func newClock() *clock { return &clock{time.Date(2026, 3, 14, 15, 9, 26, 535897932, time.UTC)} }

func sum(b []byte) string { s := sha256.Sum256(b); return hex.EncodeToString(s[:]) }

func roomy(o Options) Options { o.MinFree = -1; return o }

func dir(s *Store, name string) string { return filepath.Join(s.Dir(), name) }

func sidecarPath(s *Store, id ID) string {
	return filepath.Join(s.Dir(), storefs.ObservationsDir, string(id)+files.SideExt)
}

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

func open(t testing.TB, o Options) *Store {
	t.Helper()
	if o.Dir == "" {
		o.Dir = filepath.Join(t.TempDir(), "store")
	}
	s := value(OpenStore(roomy(o)))
	t.Cleanup(func() { _ = s.Close() })
	return s
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

// names returns the files in one directory of a store.
func names(t testing.TB, s *Store, sub string) []string {
	t.Helper()
	list := value(os.ReadDir(dir(s, sub)))
	var out []string
	for _, e := range list {
		out = append(out, e.Name())
	}
	return out
}

// consistent checks that the quota file matches the disk, and that tmp/ has only the live files of living processes.
func consistent(t testing.TB, s *Store) {
	t.Helper()
	for _, wrong := range inconsistencies(s) {
		t.Error(wrong)
	}
}

func inconsistencies(s *Store) (wrong []string) {
	note := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	var l files.Ledger
	if b, err := os.ReadFile(dir(s, files.QuotaName)); err != nil || json.Unmarshal(b, &l) != nil {
		note("quota file %q, %v", b, err)
	}
	all, err := s.f.Scan(true)
	if err != nil {
		note("%v", err)
	}
	var stands int64
	for _, e := range all {
		stands += e.Size
	}
	if l.Kept != stands || len(l.Held) > 0 {
		note("the quota file says %d kept and %v held; %d stand in the store", l.Kept, l.Held, stands)
	}
	err = s.Disk().VisitNames(storefs.TmpDir, func(n string, _ bool) {
		if !strings.HasSuffix(n, files.LiveExt) {
			note("left in tmp/: %s", n)
		}
	})
	if err != nil {
		note("%v", err)
	}
	return wrong
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
