package files

import (
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations/backend"
	"github.com/mcp-funnel/mcp-funnel/observations/storefs"
)

// What the tests of a store see of its inside.

type (
	Ledger = ledger
	// Entry has the fields of an entry.
	Entry struct {
		Data             string
		Side, Index, Pin bool
		Size             int64
		Used             time.Time
	}
)

const (
	SideExt       = sideExt
	IndexExt      = indexExt
	PinExt        = pinExt
	LiveExt       = liveExt
	GoneExt       = goneExt
	QuotaName     = quotaName
	MaxQuota      = maxQuota
	CachesDir     = cachesDir
	FreshFor      = freshFor
	TombstoneAge  = tombstoneAge
	MaxRemembered = maxRemembered
)

func OpenOnDisk(o Options, disk *storefs.FS) (*Store, error) { return openStore(o, disk) }

func NewProcess() string { return newProcess() }

func Key(proc string, id backend.ID) string { return key(proc, id) }

// Sweep sweeps a directory as Open does.
func Sweep(dir string, disk *storefs.FS) error {
	return newStore(dir, disk, Options{}).quota.sweepAtOpen()
}

func (s *Store) SweepAtOpen() error { return s.quota.sweepAtOpen() }

func (s *Store) TidyIfDue() { s.quota.tidyIfDue() }

func (s *Store) SetNextTidy(at time.Time) { s.quota.nextTidy.Store(at.UnixNano()) }

func (s *Store) Now() time.Time { return s.files.now() }

func (s *Store) SetNow(now func() time.Time) { s.files.now = now }

func (s *Store) MaxAge() time.Duration { return s.quota.maxAge }

func (s *Store) SetMinFree(n int64) { s.quota.minFree = n }

func (s *Store) ProcessName() string { return s.files.processName() }

func (s *Store) Live() *storefs.File { return s.files.live }

// Die closes the files of a store as the kernel does at the death of a process.
func (s *Store) Die() {
	_ = s.files.live.File.Close()
	s.files.live = nil
	s.files.disk.Close()
}

// Die closes the file of a writer as the kernel does at the death of a process.
func (w *Writer) Die() { _ = w.file.File.Close() }

func (s *Store) Locked(do func(*Ledger) error) error { return s.quota.locked(do) }

func (s *Store) LockLedger() (*storefs.File, error) { return s.quota.lockLedger(lockWait) }

func (s *Store) ForgetOwner(id backend.ID) { s.quota.owners.of.Delete(id) }

func (s *Store) IsLost(o backend.Observation) bool { return s.isLost(o) }

func (s *Store) ReadSidecar(id backend.ID) (backend.Observation, error) {
	return s.files.readSidecar(id)
}

func (s *Store) ReadUnpinned(id backend.ID) (backend.Observation, error) {
	return s.files.readUnpinned(id)
}

// Scan returns the files of a store by ID; sizes has them measured.
func (s *Store) Scan(sizes bool) (map[backend.ID]Entry, error) {
	all, err := s.files.scan(sizes)
	entries := map[backend.ID]Entry{}
	for id, e := range all {
		entries[id] = Entry{e.data, e.side, e.index, e.pin, e.size(), e.used}
	}
	return entries, err
}
