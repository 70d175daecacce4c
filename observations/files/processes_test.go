package files_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/observations/storefs"
)

func TestSecondProcessOpens(t *testing.T) {
	s := open(t, Options{})
	text := corpus.WarAndPeace()
	o := keep(t, s, Provenance{Tool: "read"}, text)
	for _, name := range []string{string(o.ID), "obs:" + strings.ToUpper(string(o.ID))} {
		a := start(t, "read", s.Dir(), name)
		if got := <-a.lines; got != sum(text) {
			t.Errorf("the other process read %q, want %s; %s", got, sum(text), &a.said)
		}
		_ = a.in.Close()
		if _, err := a.rest(); err != nil {
			t.Errorf("%v: %s", err, &a.said)
		}
	}
}

// What another process has open is not taken from it, whatever its age.
func TestReadersInOtherProcesses(t *testing.T) {
	c := &clock{time.Now()} // as the other process has it
	s := open(t, Options{Now: c.now, Quota: 200 << 10})
	o := keep(t, s, Provenance{Tool: "read"}, corpus.Random(100<<10))
	a := start(t, "read", s.Dir(), string(o.ID))
	<-a.lines
	c.pass(30 * oneDay)
	if p, err := s.Prune(false); err != nil || p.Removed != 0 || p.Kept != 1 {
		t.Errorf("Prune while it is read: %+v, %v", p, err)
	}
	expectWhole(t, s, o.ID)
	if r := record(t, s, Provenance{}, corpus.Random(150<<10)); r.Err() == nil {
		t.Error("room was made of what is being read")
	} else {
		_ = r.Discard()
	}
	_ = a.in.Close()
	if _, err := a.rest(); err != nil {
		t.Fatal(err, &a.said)
	}
	if p, err := s.Prune(false); err != nil || p.Removed != 1 {
		t.Errorf("Prune afterwards: %+v, %v", p, err)
	}
	expectTombstone(t, s, o.ID, whyAge)
	consistent(t, s)
}

// The dead are told from the living by a lock, not by a pid.
func TestLeftoversOfTheDead(t *testing.T) {
	s := open(t, Options{})
	living := record(t, s, Provenance{}, corpus.Random(100<<10))
	dead := value(OpenStore(roomy(Options{Dir: s.Dir()})))
	record(t, dead, Provenance{}, corpus.Random(100<<10))
	if n := len(names(t, s, storefs.TmpDir)); n != 4 {
		t.Fatalf("%d files in tmp/, want two of each", n)
	}
	open(t, Options{Dir: s.Dir()})
	if n := len(names(t, s, storefs.TmpDir)); n != 4 {
		t.Errorf("%d files in tmp/: something was taken from the living", n)
	}
	_ = dead.f.Live().File.Close() // as the kernel does at death
	open(t, Options{Dir: s.Dir()})
	if n := names(t, s, storefs.TmpDir); len(n) != 2 {
		t.Errorf("in tmp/: %v, want those of the living", n)
	}
	o := value(living.Commit(Stats{}))
	expectWhole(t, s, o.ID)
	consistent(t, s)
}
