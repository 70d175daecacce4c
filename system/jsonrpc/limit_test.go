package jsonrpc

import (
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

func TestShares(t *testing.T) {
	s := OwnerLimiter{Total: 4, PerOwner: 3}
	for range 3 {
		if full := s.Acquire("ann", 1); full != nil {
			t.Fatal(full)
		}
	}
	if full := s.Acquire("ann", 1); full == nil || !full.PerOwner || full.count != 3 {
		t.Errorf("her fourth: %v", full)
	}
	if full := s.Acquire("bob", 1); full != nil {
		t.Errorf("another's first: %v", full)
	}
	if full := s.Acquire("bob", 1); full == nil || full.PerOwner || full.count != 4 {
		t.Errorf("one too many: %v", full)
	}
	s.Release("bob", 1)
	expect.Equal(t, s.Count(), 3, "%+v", s.byOwner)
	expect.Equal(t, len(s.byOwner), 1, "%+v", s.byOwner)
	for n, want := range map[int]int{1: 1, 2: 1, 3: 2, 4: 3, 64: 48, 1024: 768} {
		expect.Equal(t, OwnerShare(n), want, "one may hold of %d", n)
	}
}

// TestGateBytes has messages be too large together, for all and for one.
func TestGateBytes(t *testing.T) {
	var g CallLimiter
	g.SetLimits(100, 400)
	g.ReserveForOthers()
	for range 3 {
		if fault := g.Acquire("ann", 100); fault != nil {
			t.Fatal(fault)
		}
	}
	if fault := g.Acquire("ann", 1); fault == nil || !strings.Contains(fault.Message, "3 calls of this identity") {
		t.Errorf("%v", fault)
	}
	if fault := g.Acquire("bob", 100); fault != nil {
		t.Errorf("another's: %v", fault)
	}
	if fault := g.Acquire("bob", 1); fault == nil || !strings.Contains(fault.Message, "4 calls are running") {
		t.Errorf("%v", fault)
	}
}
