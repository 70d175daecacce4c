package stats

import (
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
)

func call(tool string, seen, shown int64, change ...func(*trace.Call)) trace.Call {
	c := trace.Call{
		Session:     "s",
		Owner:       "local",
		Tool:        tool,
		Status:      "success",
		Verdict:     "ok",
		SeenTokens:  seen,
		ShownTokens: shown,
	}
	for _, f := range change {
		f(&c)
	}
	return c
}

func kept(id string) func(*trace.Call) {
	return func(c *trace.Call) { c.Observation, c.Kept = id, true }
}

func from(source string) func(*trace.Call) { return func(c *trace.Call) { c.Source = source } }

func via(v string) func(*trace.Call) { return func(c *trace.Call) { c.Via = v } }

func client(name string) func(*trace.Call) { return func(c *trace.Call) { c.Client = name } }

func sumOf(calls ...trace.Call) Report {
	s := New()
	for _, c := range calls {
		s.Add(c)
	}
	return s.Report(0)
}

// TestNet checks what counts as saved: reads of a stored output are taken off, and the list once for each session.
func TestNet(t *testing.T) {
	const id = "k3v9q2m7x4ab"
	r := sumOf(
		call("list", 0, 1000, via(trace.ViaList)), call("list", 0, 1000, via(trace.ViaList)),
		call("search", 50_000, 500, kept(id), client("claude-code")),
		call("slice", 300, 300, from("obs:"+id)),
		call("read", 400, 400, from("src/main.go")),
		call("slice", 200, 200, from("obs:"+id), via(trace.ViaResource)),
	)
	if r.List != 1000 || r.Total.Seen != 50_400 || r.Total.Shown != 900 || r.Total.Fetched != 500 ||
		r.Total.Net != 50_400-900-500-1000 || r.Total.Calls != 4 || r.Total.Kept != 50_000 {
		t.Errorf("list %d, %+v", r.List, r.Total)
	}
	expect.Equal(t, r.Total.Client, 25_400, "the client would have shown")
	if s := r.Tools[0]; s.Name != "search" || s.Receipts != 1 || s.Refetch != 1 || s.Fetched != 500 || s.TooHard {
		t.Errorf("%+v", s)
	}
}

// TestLists: the list of an upstream server counts once for each session, and not as ours.
func TestLists(t *testing.T) {
	list := func(session, server string, tokens int64) trace.Call {
		return call("tools/list", 0, tokens, via(trace.ViaList), func(c *trace.Call) { c.Session, c.Server = session, server })
	}
	r := sumOf(list("a", "", 1000), list("a", "x", 300), list("a", "y", 50), list("a", "x", 400), list("b", "x", 200))
	if r.List != 1000 || r.Lists["x"] != (List{2, 500, 200}) || r.Lists["y"] != (List{1, 50, 50}) || r.Total.Net != -1000 {
		t.Errorf("%d, %+v, %+v", r.List, r.Lists, r.Total)
	}
}

func TestEvents(t *testing.T) {
	const id = "k3v9q2m7x4ab"
	limited := func(verdict string) func(*trace.Call) {
		return func(c *trace.Call) { c.Limited, c.Verdict, c.Left, c.Spent = true, verdict, 70, 30 }
	}
	r := sumOf(
		call("search", 9000, 300, kept(id), limited("needs_summary")),
		call("read", 9000, 9000, from("obs:"+id), limited("ok")),
		call("read", 100, 100, from("obs:"+id)),
		call("grep", 100, 20, limited("reject"), func(c *trace.Call) { c.Notice = true }),
		call("grep", 100, 500, limited("ok"), func(c *trace.Call) { c.Violation = 7 }),
		call("grep", 100, 100, limited("needs_summary"), func(c *trace.Call) { c.DryRun = true }),
		call("compact", 90_000, 20_000, via(trace.ViaCompaction)),
	)
	e := r.Events
	if e.Decisions["ok"] != 2 || e.Decisions["needs_summary"] != 2 || e.Decisions["reject"] != 1 || e.DryRuns != 1 ||
		e.Violations != 1 || e.Pointers != 1 || e.Refetches != 2 || e.Ignored != 1 || e.Summaries != 1 ||
		e.Compactions != 1 ||
		e.Saved != 70_000 || r.Total.Notices != 1 || r.Last.Left != 70 {
		t.Errorf("%+v", e)
	}
}

// TestTooHard checks from which share of receipts that are read later a tool is named.
func TestTooHard(t *testing.T) {
	ids := []string{"k3v9q2m7x4aa", "k3v9q2m7x4ab", "k3v9q2m7x4ac", "k3v9q2m7x4ad", "k3v9q2m7x4ae", "k3v9q2m7x4af"}
	for fetched, want := range map[int]bool{1: false, 2: true, 6: true} {
		s := New()
		for i, id := range ids {
			s.Add(call("run", 5000, 300, kept(id)))
			if i < fetched {
				s.Add(call("grep", 100, 100, from("obs:"+id)))
			}
		}
		if got := s.Report(0).Tools; got[0].TooHard != want {
			t.Errorf("%d of 6: %+v", fetched, got[0])
		}
	}
	few := sumOf(call("run", 5000, 300, kept(ids[0])), call("grep", 9, 9, from("obs:"+ids[0])))
	if few.Tools[0].TooHard {
		t.Error("one receipt says nothing")
	}
}

// TestTotalsAreSums adds random calls: the total is the sum of the rows, and nothing depends on the order of sessions.
func TestTotalsAreSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := New()
		var seen int64
		n := rapid.IntRange(0, 30).Draw(t, "calls")
		for range n {
			c := call(
				rapid.SampledFrom([]string{"a", "b"}).Draw(t, "tool"),
				rapid.Int64Range(0, 1e6).Draw(t, "seen"),
				rapid.Int64Range(0, 1e4).
					Draw(t, "shown"),
				client(rapid.SampledFrom([]string{"", "codex-mcp"}).Draw(t, "client")),
			)
			seen += c.SeenTokens
			s.Add(c)
		}
		r := s.Report(3)
		var sum Tool
		for _, row := range r.Tools {
			sum.Add(row)
		}
		sum.Name = "total"
		if sum != r.Total || r.Total.Seen != seen || r.Total.Calls != n || r.Total.Client > r.Total.Seen ||
			r.Skipped != 3 {
			t.Fatalf("%+v, %+v", sum, r.Total)
		}
	})
}

// TestLargestCommand checks which command saw most, and its share of what all calls saw. A call that names no command
// counts in the share only, and a read of a stored output counts nowhere.
func TestLargestCommand(t *testing.T) {
	named := func(name string) func(*trace.Call) { return func(c *trace.Call) { c.Name = name } }
	const id = "k3v9q2m7x4ab"
	got := sumOf(
		call("run", 6000, 300, named("yes head"), kept(id)), call("run", 3000, 300, named("yes head")),
		call("run", 8000, 300, named("go test")), call("search", 3000, 100),
		call("slice", 90_000, 300, from("obs:"+id), named("yes head")),
	).Largest
	want := Command{Name: "run yes head", Calls: 2, Seen: 9000, Shown: 600, Share: 0.45}
	if got == nil || *got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for name, r := range map[string]Report{
		"no calls": sumOf(), "no command": sumOf(call("search", 3, 1)),
		"nothing seen": sumOf(call("run", 0, 0, named("true"))),
	} {
		if r.Largest != nil {
			t.Errorf("%s: %+v", name, r.Largest)
		}
	}
	s := New()
	for i := range maxCommands + 2 {
		s.Add(call("run", 5, 1, named(strconv.Itoa(i))))
	}
	if r := s.Report(0); r.Largest != nil {
		t.Errorf("too many commands: %+v", r.Largest)
	}
}

// TestOutputsBeyondTheLimit counts receipts of outputs that are not remembered any more.
func TestOutputsBeyondTheLimit(t *testing.T) {
	s := New()
	for i := range maxOutputs + 10 {
		c := call("read", 5, 1)
		c.Observation, c.Kept = strconv.Itoa(i), true
		s.Add(c)
	}
	r := s.Report(0)
	if r.Events.Pointers != maxOutputs+10 || r.Tools[0].Receipts != maxOutputs+10 || len(s.outputs) != maxOutputs {
		t.Errorf("%d pointers, %d receipts, %d outputs", r.Events.Pointers, r.Tools[0].Receipts, len(s.outputs))
	}
}
