package remote_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/observations/remote/remotetest"
)

func TestRemoteSpine(t *testing.T) {
	p := remotetest.New(t)
	open := func() *observations.Store {
		b, c := p.Open(t, observations.Options{})
		return observations.OpenOn(b, c, observations.Options{})
	}
	a, b := open(), open()
	for _, n := range []int{0, 5, 65536, 65537, 1 << 20, 20 << 20} {
		data := make([]byte, n)
		_, _ = rand.Read(data)
		if n > 2 {
			data[1] = '\n'
		}
		start := time.Now()
		o := keep(t, a, observations.Provenance{Owner: "alice", Tool: "search"}, data)
		kept := time.Since(start)
		start = time.Now()
		for _, s := range []*observations.Store{a, b, b} {
			if got := dataOf(t, s, "alice", o.ID); !bytes.Equal(got, data) {
				t.Fatalf("%d bytes: %d other bytes", n, len(got))
			}
			if err := s.Verify("alice", o.ID); err != nil {
				t.Fatal(err)
			}
		}
		t.Log(n, kept, time.Since(start))
		if _, err := b.Open("bob", o.ID); !errors.Is(err, observations.ErrNotFound) {
			t.Fatal(err)
		}
		r := value(b.Open("alice", o.ID))
		p := make([]byte, 10)
		_, err := r.ReadAt(p, int64(n)-3)
		if n >= 10 && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		_ = r.Close()
		if err := b.Remove("alice", o.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Open("alice", o.ID); !errors.Is(err, observations.ErrExpired) {
			t.Fatal(err)
		}
	}
	t.Log(value(a.Usage()))
	t.Log(value(a.Prune(false)))
}

func value[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func keep(t testing.TB, s *observations.Store, m observations.Provenance, b []byte) observations.Observation {
	t.Helper()
	r := value(s.Record(m))
	if n, err := r.Write(b); n != len(b) || err != nil {
		t.Fatalf("Write = %d, %v; want %d, nil", n, err, len(b))
	}
	o, err := r.Commit(observations.Stats{Kind: "text", Ext: "txt", Status: "success"})
	if err != nil {
		t.Fatal(err, r.Err())
	}
	return o
}

func dataOf(t testing.TB, s *observations.Store, owner string, id observations.ID) []byte {
	t.Helper()
	r := value(s.Open(owner, id))
	defer func() { _ = r.Close() }()
	return value(io.ReadAll(io.NewSectionReader(r, 0, r.Size())))
}
