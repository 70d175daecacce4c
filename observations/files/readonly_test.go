package files_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/observations/files"
	"github.com/mcp-funnel/mcp-funnel/observations/storefs"
)

// readOnly makes every operation that changes something fail, as a disk does that
// is mounted for reading.
func readOnly(op, name string) error {
	switch op {
	case "create", "write", "rename", "remove", "touch", "sync", "make":
		return syscall.EROFS
	case "open":
		if strings.HasPrefix(name, storefs.StateDir+"/") {
			return syscall.EROFS
		}
	}
	return nil
}

// readable is what holds of a store that can only be read.
func readable(t *testing.T, s *Store, o Observation, text string) {
	t.Helper()
	if got := dataOf(t, s, Local, o.ID); string(got) != text {
		t.Errorf("read %q", got)
	}
	expectWhole(t, s, o.ID)
	if list, err := s.List(Local, true); err != nil || len(list) != 1 {
		t.Errorf("List = %d, %v", len(list), err)
	}
	if u, err := s.Usage(); err != nil || u.Observations != 1 {
		t.Errorf("Usage = %+v, %v", u, err)
	}
	if ids, err := s.Damaged(); err != nil || len(ids) != 0 {
		t.Errorf("Damaged = %v, %v", ids, err)
	}
	r, err := s.Open(Local, o.ID)
	must(t, err)
	defer func() { _ = r.Close() }()
	if at, line, err := r.LineOffset(2); at != int64(strings.IndexByte(text, '\n')+1) || line != 2 || err != nil {
		t.Errorf("LineOffset(2) = %d, %d, %v", at, line, err)
	}
	for name, err := range map[string]error{
		"Pin":    s.Pin(Local, o.ID, true),
		"Rename": s.Rename(Local, o.ID, "x"),
		"Remove": s.Remove(Local, o.ID),
		"Prune":  second(s.Prune(false)),
	} {
		if !storefs.IsReadOnly(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	large := record(t, s, Provenance{}, corpus.Random(100<<10))
	if large.Size()+large.Dropped() != 100<<10 || !storefs.IsReadOnly(large.Err()) {
		t.Errorf("kept %d, dropped %d, %v", large.Size(), large.Dropped(), large.Err())
	}
	small := record(t, s, Provenance{}, []byte("small"))
	if small.Size() != 5 {
		t.Errorf("a small one: size %d", small.Size())
	}
	for _, r := range []*Recording{large, small} {
		if _, err := r.Commit(Stats{}); !storefs.IsReadOnly(err) {
			t.Errorf("Commit: %v", err)
		}
		_ = r.Discard()
	}
	expectWhole(t, s, o.ID)
}

// A store that has become read-only, or that is opened when it is, can be read,
// with its index or without; recordings in it count, and nothing is said to be kept.
func TestReadOnlyStore(t *testing.T) {
	const text = "kept before\nand more"
	for name, c := range map[string]struct {
		spoil  func(t *testing.T, dir string, o Observation)
		reopen bool
	}{
		"became": {func(*testing.T, string, Observation) {}, false},
		"opened": {func(*testing.T, string, Observation) {}, true},
		"without index": {func(t *testing.T, dir string, o Observation) {
			must(t, os.Remove(filepath.Join(dir, storefs.ObservationsDir, string(o.ID)+files.IndexExt)))
		}, true},
		"without state/": {func(t *testing.T, dir string, o Observation) {
			must(t, os.RemoveAll(filepath.Join(dir, storefs.StateDir)))
		}, true},
		"without tmp/": {func(t *testing.T, dir string, o Observation) {
			must(t, os.RemoveAll(filepath.Join(dir, storefs.TmpDir)))
		}, true},
		"without both": {func(t *testing.T, dir string, o Observation) {
			must(t, os.RemoveAll(filepath.Join(dir, storefs.StateDir)))
			must(t, os.RemoveAll(filepath.Join(dir, storefs.TmpDir)))
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, Options{})
			o := keep(t, s, Provenance{}, []byte(text))
			if c.reopen {
				must(t, s.Close())
				c.spoil(t, s.Dir(), o)
				var err error
				s, err = openStore(roomy(Options{Dir: s.Dir()}), &storefs.FS{Fault: readOnly})
				must(t, err)
				if !storefs.IsReadOnly(s.Unwritable()) {
					t.Errorf("Unwritable = %v", s.Unwritable())
				}
			} else {
				s.Disk().Fault = readOnly
			}
			readable(t, s, o, text)
		})
	}
	if s := open(t, Options{}); s.Unwritable() != nil {
		t.Errorf("control: %v", s.Unwritable())
	}
}

// The same with directories that may not be written in, for who is not root.
func TestReadOnlyDirectories(t *testing.T) {
	const text = "kept before\nand more"
	s := open(t, Options{})
	o := keep(t, s, Provenance{}, []byte(text))
	must(t, s.Close())
	all := []string{s.Dir(), dir(s, storefs.ObservationsDir), dir(s, storefs.TmpDir), dir(s, storefs.StateDir)}
	chmod := func(mode, file fs.FileMode) {
		for _, d := range all {
			must(t, os.Chmod(d, mode))
		}
		must(t, os.Chmod(dir(s, files.QuotaName), file))
	}
	chmod(0o500, 0o400)
	defer chmod(0o700, 0o600)
	if f, err := os.Create(filepath.Join(s.Dir(), "probe")); err == nil {
		_ = f.Close()
		_ = os.Remove(f.Name())
		t.Skip("this user may write whatever the mode is")
	}
	again, err := OpenStore(roomy(Options{Dir: s.Dir()}))
	must(t, err)
	defer func() { _ = again.Close() }()
	readable(t, again, o, text)
}

// A directory in which no store can be made is told, and opens no store.
func TestNoStoreCanBeMade(t *testing.T) {
	for _, fault := range []error{syscall.EROFS, syscall.EACCES, syscall.ENOSPC} {
		dir := filepath.Join(t.TempDir(), "store")
		disk := &storefs.FS{Fault: func(op, name string) error {
			if op == "make" {
				return fault
			}
			return nil
		}}
		if _, err := openStore(Options{Dir: dir}, disk); !errors.Is(err, fault) || !strings.Contains(err.Error(), "--store") {
			t.Errorf("%v: %v", fault, err)
		}
	}
}
