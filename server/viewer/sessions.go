package viewer

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// sessions is the page of one session, or of all.
func (q *request) sessions() (*page, error) {
	d := q.digest()
	key := cmp.Or(q.query.Get("key"), strings.Join(q.path[1:], "/"))
	var g *group
	for _, one := range d.groups {
		if one.key == key && (g == nil || one.last().After(g.last())) && (!q.query.Has("owner") || q.query.Get("owner") == one.owner) {
			g = one
		}
	}
	if g == nil {
		defer d.mu.Unlock()
		if key != "" && d.whole {
			return nil, problemf(http.StatusNotFound, "You have no session %s of the last 30 days.", q.clip([]byte(key), 100))
		}
		return q.allSessions(d), nil
	}
	calls, notes, row := slices.Clone(g.calls), d.notes(), q.sessionRow(g)
	d.mu.Unlock() // texts are read from here on
	p := &page{Title: content.Clip(g.key, 80), Crumbs: []link{{Text: "Sessions", To: q.url("sessions")}}, Notes: notes}
	if ref := q.query.Get("call"); ref != "" {
		p.Crumbs = append(p.Crumbs, link{Text: p.Title, To: q.sessionAt(g)})
		return p, q.oneCall(p, g, ref)
	}
	var known facts
	for i, head := range q.sessionHeads()[1:] {
		known = append(known, fact{head.Text, row[i+1]})
	}
	p.Live, p.Blocks = true, append([]any{known}, contextChart(calls)...)
	from := min(q.number("top", 0), int64(len(calls)))
	to := min(from+pageLines, int64(len(calls)))
	t := &table{Caption: "Calls, the newest first; seen and shown are tokens", Heads: callHeads, Key: "calls", Pager: q.rowPager(from, to, int64(len(calls)))}
	slices.Reverse(calls)
	for _, at := range calls[from:to] {
		c, s, err := q.shownOf(at.ref)
		if err != nil {
			return nil, err
		}
		t.Rows = append(t.Rows, q.callRow(g, c, cmp.Or(string(s.Args), c.Name, c.Source)))
	}
	p.Blocks = append(p.Blocks, t)
	return p, nil
}

// shownOf returns a call and what it showed, if that is kept.
func (q *request) shownOf(ref string) (trace.Call, trace.Shown, error) {
	c, s, err := q.o.Trace.Shown(ref)
	if errors.Is(err, trace.ErrNotKept) {
		err = nil
	}
	if errors.Is(err, fs.ErrNotExist) { // removed since it was read
		c.Ref, err = ref, nil
		c.Error = "it was removed meanwhile"
	}
	return c, s, err
}

// sessionAt returns the address of a session. A name that is no path of clean elements is a parameter.
func (q *request) sessionAt(g *group, pairs ...string) href {
	if q.everyone() {
		pairs = append(pairs, "owner", g.owner)
	}
	if path.Clean("/"+g.key) != "/"+g.key || strings.HasSuffix(g.key, "/raw") {
		return q.url("sessions", append(pairs, "key", g.key)...)
	}
	return q.url("sessions/"+g.key, pairs...)
}

// allSessions lists the sessions, the last one first.
func (q *request) allSessions(d *digest) *page {
	all := slices.SortedFunc(maps.Values(d.groups), func(a, b *group) int {
		return cmp.Or(b.last().Compare(a.last()), cmp.Compare(a.owner+a.key, b.owner+b.key))
	})
	from := min(q.number("top", 0), int64(len(all)))
	to := min(from+pageLines, int64(len(all)))
	t := &table{
		Heads: q.sessionHeads(), Caption: "Seen, shown and kept are tokens", Key: "sessions", Pager: q.rowPager(from, to, int64(len(all))),
		Empty: "No client has called a tool in the last 30 days: connect one with mcp-funnel install CLIENT.",
	}
	for _, g := range all[from:to] {
		t.Rows = append(t.Rows, q.sessionRow(g))
	}
	return &page{Title: "Sessions", Notes: d.notes(), Blocks: []any{t}, Live: true}
}

func num(head string) cell { return cell{Text: head, Num: true} }

func (q *request) sessionHeads() []cell {
	heads := []cell{words("Session"), words("Client"), words("First call"), words("Last call"), num("Calls"), num("Seen"), num("Shown"), num("Kept"), num("Failed")}
	if q.everyone() {
		heads = append(heads, words("Owner"))
	}
	return heads
}

func (q *request) sessionRow(g *group) []cell {
	of := g.sum.Report(0).Total
	row := []cell{
		words(content.Clip(g.key, 40)).to(q.sessionAt(g)), words(content.Clip(g.client, 30)), when(g.calls[0].at), when(g.last()),
		number(int64(len(g.calls))), number(of.Seen), number(of.Shown + of.Fetched), number(of.Kept), bad(int64(of.Failed)),
	}
	if q.everyone() {
		row = append(row, words(content.Clip(g.owner, 40)))
	}
	return row
}

// bad returns a cell of a count that should be 0.
func bad(n int64) cell {
	c := number(n)
	if n > 0 {
		c.Class = "bad"
	}
	return c
}

var callHeads = []cell{words("When"), words("Tool"), words("Arguments"), num("Seen"), num("Shown"), words("Kept"), num("Took"), words("Error")}

// toolOf names the tool of a call as sums do.
func toolOf(c trace.Call) string {
	if c.Via == trace.ViaTool || c.Via == trace.ViaObserved {
		return c.Tool
	}
	return c.Tool + " (" + c.Via + ")"
}

// callRow is the row of a call in lists, with what was asked or found.
func (q *request) callRow(g *group, c trace.Call, text string) []cell {
	kept, wrong := words(""), cell{Class: "bad"}
	if id, err := observations.ParseID(c.Observation); err == nil {
		kept = code(string(id)).to(q.url("obs/" + string(id)))
	}
	if c.Status != "success" {
		wrong.Text = q.clip([]byte(cmp.Or(c.Error, c.Status)), 100)
	}
	return []cell{
		when(c.At).to(q.sessionAt(g, "call", c.Ref)), words(content.Clip(toolOf(c), 60)), code(q.clip([]byte(text), 150)),
		number(c.SeenTokens), number(c.ShownTokens), kept, duration(c.Millis), wrong,
	}
}

// oneCall adds a call to the page of its session: what the model was shown beside what was kept.
func (q *request) oneCall(p *page, g *group, ref string) error {
	c, s, err := q.o.Trace.Shown(ref)
	kept := err
	if errors.Is(err, trace.ErrNotKept) {
		err = nil
	}
	if errors.Is(err, fs.ErrNotExist) || err == nil && (c.Owner != g.owner || c.Group() != g.key) {
		return problemf(http.StatusNotFound, "This session has no such call: it may be older than 30 days.")
	}
	if err != nil {
		return err
	}
	p.Title = content.Clip(c.Tool, 80)
	row, known := q.callRow(g, c, cmp.Or(string(s.Args), c.Name, c.Source)), facts{}
	row[0].To = ""
	if s.Args != nil {
		row[2].Text = string(s.Args)
	}
	for i, head := range callHeads {
		if row[i].Text != "" || !row[i].Time.IsZero() {
			known = append(known, fact{head.Text, row[i]})
		}
	}
	known = append(known, fact{"Decision", words(strings.TrimSuffix(c.Verdict+": "+c.Reason, ": "))})
	if c.Limited {
		known = append(known, fact{"Context before", words(grouped(int64(c.Spent)) + " tokens; " + grouped(int64(c.Left)) + " were left")})
	}
	if s.ArgsCut {
		p.Notes = append(p.Notes, "Of the arguments only the beginning is kept.")
	}
	left := section{Title: "What the model was shown", Key: "shown", Blocks: []any{pre(s.Text)}}
	if kept != nil {
		left.Blocks = []any{note{kept.Error() + ".", ""}}
	} else if more := s.Bytes - int64(len(s.Text)); more > 0 {
		left.Blocks = append(left.Blocks, note{"Of this text only the beginning is kept; " + grouped(more) + " bytes follow.", ""})
	}
	right := section{Title: "What was kept", Key: "kept", Blocks: []any{note{"Nothing was kept: the output was shown whole.", ""}}}
	if id, err := observations.ParseID(c.Observation); err == nil {
		right.Blocks = q.beginning(id, c.Owner)
	} else if c.Notice || c.Status != "success" {
		right.Blocks = []any{note{"Nothing was kept.", ""}}
	}
	p.Blocks = []any{known, columns{left, right}}
	return nil
}

// beginning shows the first lines of an observation, with links to its page.
func (q *request) beginning(id observations.ID, owner string) []any {
	at, of := observations.Prefix+string(id), *q
	of.path, of.query, of.who.Owner = []string{"obs", string(id)}, nil, owner
	blocks := []any{links{{Text: at, To: q.url("obs/" + string(id))}}}
	o, err := of.open(q.ctx, at)
	if err == nil {
		defer o.Close()
		var shown []any
		if shown, err = textView(&of, o); o.kind != content.Binary && err == nil {
			blocks = append(blocks, shown...)
		}
	}
	if err != nil {
		blocks = append(blocks, note{err.Error(), "bad"})
	}
	return blocks
}
