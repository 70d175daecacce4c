package observations

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/observations/backend"
)

func TestCommitOnce(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		s := open(t, Options{})
		r := record(t, s, Provenance{}, []byte("x"))
		value(r.Commit(Stats{}))
		if _, err := r.Commit(Stats{}); err == nil {
			t.Error("committed twice")
		}
		must(t, r.Discard())
		if got := dataOf(t, s, Local, r.ID()); string(got) != "x" {
			t.Errorf("Discard after Commit took it: %q", got)
		}
	})
}

func TestLimitOfOneObservation(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		const block = backend.BlockSize
		for _, max := range []int64{1, 10, block - 1, block, block + 1, 3*block + 17} {
			this := &try{TB: t}
			s := open(this, Options{MaxObservation: max})
			text := corpus.Random(5 * backend.BlockSize)
			r := record(t, s, Provenance{}, text[:7])
			_, _ = r.Write(text[7 : 2*backend.BlockSize])
			_, _ = r.Write(text[2*backend.BlockSize:])
			o := value(r.Commit(Stats{}))
			if o.Bytes != max || o.Dropped != int64(len(text))-max || o.SHA256 != sum(text[:max]) {
				t.Errorf("limit %d: kept %d, dropped %d", max, o.Bytes, o.Dropped)
			}
			if !errors.Is(r.Err(), ErrTooLarge) || !strings.Contains(o.Cause, "--max-observation") {
				t.Errorf("limit %d: Err %v, cause %q", max, r.Err(), o.Cause)
			}
			if got := dataOf(t, s, Local, o.ID); !bytes.Equal(got, text[:max]) {
				t.Errorf("limit %d: what is kept is not the beginning", max)
			}
			consistent(t, s)
			this.end()
		}
		s := open(t, Options{MaxObservation: 10})
		if r := record(t, s, Provenance{}, make([]byte, 10)); r.Err() != nil {
			t.Errorf("exactly the limit: %v", r.Err())
		}
	})
}

// Whatever is written in whatever pieces: what is said to be kept is kept, is
// the beginning, and with what was dropped makes all.
func TestRecordingProperties(t *testing.T) {
	each(t, func(test *testing.T, open opener) {
		n := 0
		rapid.Check(test, func(t *rapid.T) {
			if n++; n%4 != 1 && strings.HasSuffix(test.Name(), "/remote") { // opening a database takes long
				return
			}
			this := &try{TB: test}
			defer this.end()
			checkRecording(t, func(o Options) *Store { return open(this, o) })
		})
	})
}

func checkRecording(t *rapid.T, open func(Options) *Store) {
	o := Options{
		Quota:          rapid.Int64Range(1<<10, 400<<10).Draw(t, "quota"),
		MaxObservation: rapid.Int64Range(1, 400<<10).Draw(t, "max"),
	}
	s := open(o)
	r, _ := s.Record(Provenance{Tool: "keep"})
	text := corpus.Random(1 << 20)
	written := 0
	for _, n := range rapid.SliceOfN(rapid.IntRange(0, 150<<10), 0, 6).Draw(t, "writes") {
		_, _ = r.Write(text[written : written+n])
		written += n
		if r.Size()+r.Dropped() != int64(written) {
			t.Fatalf("%d kept and %d dropped of %d", r.Size(), r.Dropped(), written)
		}
		if r.Dropped() > 0 && r.Err() == nil {
			t.Fatalf("dropped %d and no word of it", r.Dropped())
		}
		if r.SHA256() != sum(text[:r.Size()]) {
			t.Fatal("the hash is not of what is kept")
		}
		part := make([]byte, min(int64(1000), r.Size()))
		at := rapid.Int64Range(0, r.Size()-int64(len(part))).Draw(t, "at")
		if n, err := r.ReadAt(part, at); n != len(part) || (err != nil && !errors.Is(err, io.EOF)) ||
			!bytes.Equal(part, text[at:at+int64(n)]) {
			t.Fatalf("ReadAt(%d) = %d, %v", at, n, err)
		}
	}
	size, dropped := r.Size(), r.Dropped()
	got, err := r.Commit(Stats{})
	if err != nil {
		if !errors.Is(err, ErrNoRoom) {
			t.Fatal(err)
		}
		_ = r.Discard()
	} else if got.Bytes != size || got.Dropped != dropped || got.SHA256 != sum(text[:size]) || (dropped > 0) != (got.Cause != "") {
		t.Fatalf("committed %d, dropped %d (%q); it was %d, %d", got.Bytes, got.Dropped, got.Cause, size, dropped)
	} else if err := s.Verify(Local, got.ID); err != nil {
		t.Fatal(err)
	}
	if u, err := s.Usage(); err != nil || u.Bytes > o.Quota {
		t.Fatalf("%d bytes stand, the quota is %d; %v", u.Bytes, o.Quota, err)
	}
}

func TestSidecarsAreBounded(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		s := open(t, Options{})
		long := strings.Repeat("\x01\"世", 100_000)
		args := value(json.Marshal(map[string]string{"pattern": long}))
		counts := map[string]float64{"nan": math.NaN(), "inf": math.Inf(1), long: 1, "n": 2}
		for i := range 1000 {
			counts[strings.Repeat("k", i%200)] = float64(i)
		}
		for name, args := range map[string]json.RawMessage{"long": args, "not JSON": json.RawMessage(long), "none": nil,
			"control characters": json.RawMessage(strings.Repeat("\x01", 10_000)), "deep": json.RawMessage(strings.Repeat("[", 100_000))} {
			t.Run(name, func(t *testing.T) {
				before := value(s.Usage()).Bytes
				r := record(
					t, s, Provenance{Tool: long, Name: long, Args: args, Origin: []string{long, long, long, long, long, long}},
					[]byte("x"),
				)
				o, err := r.Commit(
					Stats{Kind: long, Ext: long, Receipt: long, Counts: counts, TokensMargin: math.NaN(), Status: long},
				)
				must(t, err)
				used := func() int64 { return value(s.Usage()).Bytes }
				if n := used() - before - 1; n > backend.MaxSidecar {
					t.Errorf("a sidecar of %d bytes", n)
				}
				if len(o.Args) > 4<<10 || (len(o.Args) > 0 && !json.Valid(o.Args)) {
					t.Errorf("arguments of %d bytes: %.50s", len(o.Args), o.Args)
				}
				must(t, s.Remove(Local, o.ID))
				if n := used() - before; n > backend.MaxTombstone {
					t.Errorf("a tombstone of %d bytes", n)
				}
				if _, err := s.Open(Local, o.ID); !errors.Is(err, ErrExpired) || len(err.Error()) > 600 {
					t.Errorf("removed: %v", err)
				}
			})
		}
		consistent(t, s)
	})
}

// Memory does not grow with what is recorded, but for 6 bytes of index in 64 KiB.
func TestRecordingIsBounded(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		s := open(t, Options{})
		r := value(s.Record(Provenance{}))
		defer func() { _ = r.Discard() }()
		block := bytes.Repeat([]byte("a\n"), backend.BlockSize/2)
		for range 1024 {
			_, _ = r.Write(block)
		}
		if n := len(r.index.Finish()); n > 16<<10 {
			t.Errorf("the index of 64 MiB takes %d bytes", n)
		}
		if n := cap(r.buf); n > backend.BlockSize {
			t.Errorf("%d bytes are held back", n)
		}
	})
}

func TestRoundTrip(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		files := map[string][]byte{
			"empty":         {},
			"one byte":      {'x'},
			"war and peace": corpus.WarAndPeace(),
			"1MB":           corpus.JSON1MB(),
			"5MB":           corpus.JSON5MB(),
			"one line":      corpus.JSON1MBMinified(),
			"log":           corpus.PanicLog(),
			"cjk":           corpus.CJK(),
			"random":        corpus.Random(1 << 20),
			"memory, full":  corpus.Random(backend.BlockSize),
			"just spilled":  corpus.Random(backend.BlockSize + 1),
			"two blocks":    corpus.Random(2 * backend.BlockSize),
		}
		c := newClock()
		s := open(t, Options{Now: c.now})
		for name, want := range files {
			t.Run(name, func(t *testing.T) {
				r, err := s.Record(
					Provenance{
						Tool: "read", Args: json.RawMessage(`{"path": "a<b"}`), Origin: []string{"obs:k3v9q2m7x4ab"}, Name: name,
					},
				)
				must(t, err)
				for rest, n := want, 1; len(rest) > 0; n = n*3%100_003 + 1 { // pieces of many sizes
					n = min(n, len(rest))
					_, _ = r.Write(rest[:n])
					rest = rest[n:]
				}
				back := make([]byte, len(want))
				if n, err := r.ReadAt(back, 0); n != len(want) || (err != nil && !errors.Is(err, io.EOF)) ||
					!bytes.Equal(back, want) {
					t.Fatalf("ReadAt while recording: %d bytes, %v", n, err)
				}
				if r.Size() != int64(len(want)) || r.Dropped() != 0 || r.Err() != nil || r.SHA256() != sum(want) {
					t.Fatalf("recording: size %d, dropped %d, err %v, sha256 %s", r.Size(), r.Dropped(), r.Err(), r.SHA256())
				}
				seen := Stats{Kind: "json", Ext: "json", Lines: 3, Chars: 4, Tokens: 5, TokensMargin: 0.01, Status: "success",
					Duration: time.Second, Receipt: "LARGE <b>", Counts: map[string]float64{"total_matches": 7}}
				o := value(r.Commit(seen))
				if err := r.Discard(); err != nil { // closes only
					t.Fatal(err)
				}
				if n, _ := r.ReadAt(back, 0); n != len(want) || !bytes.Equal(back, want) {
					t.Error("ReadAt after Commit does not give what was kept")
				}
				_ = r.Discard()
				want1 := Observation{V: 1, ID: r.ID(), Owner: Local, Tool: "read", Name: name,
					Args: json.RawMessage(`{"path":"a<b"}`), CallHash: CallHash("read", json.RawMessage(`{"path":"a<b"}`)), Origin: []string{"obs:k3v9q2m7x4ab"},
					Created: c.at, Used: c.at, File: "read_20260314T150926_" + string(r.ID()) + ".json",
					Bytes: int64(len(want)), SHA256: sum(want), Stats: seen}
				if d := cmp.Diff(want1, o); d != "" {
					t.Errorf("committed (-want +got):\n%s", d)
				}
				got := value(s.Open(Local, o.ID))
				defer func() { _ = got.Close() }()
				got.Observation.Used = got.Observation.Used.UTC()
				if d := cmp.Diff(o, got.Observation); d != "" {
					t.Errorf("opened (-committed +opened):\n%s", d)
				}
				if b := dataOf(t, s, Local, o.ID); !bytes.Equal(b, want) {
					t.Error("what is read is not what was written")
				}
				if err := s.Verify(Local, o.ID); err != nil {
					t.Error(err)
				}
				if !onDisk(s) {
					return
				}
				if id, ok := s.Find(s.SavedTo(o)); !ok || id != o.ID {
					t.Errorf("Find(%q) = %q, %v", s.SavedTo(o), id, ok)
				}
				disk, err := os.ReadFile(s.SavedTo(o))
				if err != nil || sum(disk) != o.SHA256 {
					t.Errorf("file at %s: %v", s.SavedTo(o), err)
				}
			})
		}
		consistent(t, s)
	})
}
