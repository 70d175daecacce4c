package files_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/observations/backend"
	"github.com/mcp-funnel/mcp-funnel/observations/storefs"
)

func TestSmallOutputsStayInMemory(t *testing.T) {
	s := open(t, Options{})
	r := record(t, s, Provenance{}, corpus.Random(blockSize))
	if n := len(names(t, s, storefs.TmpDir)) + len(names(t, s, storefs.ObservationsDir)); n != 0 {
		t.Errorf("64 KiB made %d files", n)
	}
	_, _ = r.Write([]byte{1})
	if n := names(t, s, storefs.TmpDir); len(n) != 2 {
		t.Errorf("one byte more made %v, want a live file and the data", n)
	}
	must(t, r.Discard())
	if err := r.Discard(); err != nil { // again
		t.Fatal(err)
	}
	if _, err := r.Commit(Stats{}); err == nil {
		t.Error("what was discarded was committed")
	}
	if n, err := r.Write([]byte("late")); n != 4 || err != nil || r.Dropped() != 4 {
		t.Errorf("Write after Discard = %d, %v; dropped %d", n, err, r.Dropped())
	}
	if n, err := r.ReadAt(make([]byte, 1), 0); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("ReadAt after Discard = %d, %v", n, err)
	}
	if n := len(names(t, s, storefs.ObservationsDir)); n != 0 {
		t.Errorf("discarded, and %d files stand", n)
	}
	consistent(t, s)
}

// TestCreateAs checks that an observation of another backend is stored under its ID, once.
func TestCreateAs(t *testing.T) {
	s := open(t, Options{Cache: true})
	from := keep(t, open(t, Options{}), Provenance{Owner: "ann"}, []byte("text"))
	put := func() error {
		w, err := s.f.CreateAs(from.ID, Provenance{Owner: "ann"}, from.Created)
		if err != nil {
			return err
		}
		var x backend.Indexer
		_, _ = x.Write([]byte("text"))
		value(w.Room(4, 0))
		value(w.Write([]byte("text")))
		o, err := w.Commit(from, x.Finish())
		return errors.Join(err, w.Discard(), compare(o, from))
	}
	expect.Must(t, put())
	expect.Equal(t, string(dataOf(t, s, "ann", from.ID)), "text", "what is read")
	expect.ErrorIs(t, put(), fs.ErrExist, "again")
	must(t, s.Remove("ann", from.ID))
	expect.ErrorIs(t, put(), fs.ErrExist, "over a tombstone")
	expect.ErrorIs(t, expect.Err(s.f.CreateAs("../x", Provenance{}, from.Created)), backend.ErrMalformed, "no ID")
	consistent(t, s)
}

// compare returns an error unless both observations have the same sidecar.
func compare(a, b Observation) error {
	if string(value(a.Encode(maxSidecar))) != string(value(b.Encode(maxSidecar))) {
		return fmt.Errorf("%+v, want %+v", a, b)
	}
	return nil
}

// TestCacheKeepsNoTombstones checks that what expires in a cache is removed whole; the control is a store.
func TestCacheKeepsNoTombstones(t *testing.T) {
	for cache, want := range map[bool]error{true: ErrNotFound, false: ErrExpired} {
		c := newClock()
		s := open(t, Options{Now: c.now, Cache: cache, Quota: 256 << 10, OwnerQuota: 200 << 10})
		aged := keep(t, s, by("ann"), []byte("old"))
		c.pass(8 * oneDay)
		expect.ErrorIs(t, expect.Err(s.Open("ann", aged.ID)), want, "too old")
		first := keep(t, s, by("ann"), make([]byte, 150<<10))
		c.pass(time.Hour)
		keep(t, s, by("ann"), make([]byte, 150<<10))
		expect.ErrorIs(t, expect.Err(s.Open("ann", first.ID)), want, "evicted")
		if files := len(names(t, s, storefs.ObservationsDir)); cache && files != 3 {
			t.Errorf("%d files are left, want data, index and sidecar of the last", files)
		}
		exact(t, s)
	}
}
