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

	"github.com/mcp-funnel/mcp-funnel/funnel/text"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/session/stats"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// named returns the cells that are not empty as facts.
func named(heads, cells []cell) (all facts) {
	for i, c := range cells {
		if c.Text != "" || !c.Time.IsZero() {
			all = append(all, fact{heads[i].Text, c})
		}
	}
	return all
}

var sums = []string{"#Calls", "#Seen", "#Shown", "#Kept", "#Saved", "#Failed"}

// sumCells are the figures of calls: tokens but for the first and the last one.
func sumCells(of stats.Tool) []cell {
	failed := number(int64(of.Failed))
	if of.Failed > 0 {
		failed.Class = "bad"
	}
	shown := of.Shown + of.Fetched
	return []cell{number(int64(of.Calls)), number(of.Seen), number(shown), number(of.Kept), number(of.Net), failed}
}

// owned adds a cell with an owner where the page shows what belongs to all.
func (q *request) owned(row []cell, owner string) []cell {
	if q.ofAll() == "" {
		row = append(row, q.name(owner, 40))
	}
	return row
}

func (q *request) sessionHeads() []cell {
	return q.owned(heads(append([]string{"Session", "Client", "First call", "Last call"}, sums...)...), "Owner")
}

func (q *request) sessionRow(g *group) []cell {
	row := []cell{
		q.name(g.key, 40).to(q.sessionAt(g)), q.name(g.client, 30), when(g.calls[0].at), when(g.last()),
	}
	return q.owned(append(row, sumCells(g.sum.Report(0).Total)...), g.owner)
}

// sessionAt returns the address of a session. A name that is no path of clean elements is a parameter.
func (q *request) sessionAt(g *group, pairs ...string) href {
	if q.ofAll() == "" {
		pairs = append(pairs, "owner", g.owner)
	}
	if path.Clean("/"+g.key) != "/"+g.key || g.key == "" {
		return q.url("sessions", append(pairs, "key", g.key)...)
	}
	return q.url("sessions/"+g.key, pairs...)
}

// sessions is the page of one session, or of all.
func (q *request) sessions() (*page, error) {
	d := q.digest()
	key, owner := cmp.Or(q.query.Get("key"), strings.Join(q.path[1:], "/")), q.query.Get("owner")
	all := slices.SortedFunc(maps.Values(d.groups), func(a, b *group) int {
		return cmp.Or(b.last().Compare(a.last()), cmp.Compare(a.owner+a.key, b.owner+b.key))
	})
	at := slices.IndexFunc(all, func(g *group) bool { return g.key == key && (owner == "" || g.owner == owner) })
	if at < 0 && key != "" { // without the day
		at = slices.IndexFunc(all, func(g *group) bool { return strings.HasPrefix(g.key, key+" ") })
	}
	if at < 0 {
		defer d.mu.Unlock()
		if key != "" && d.whole {
			return nil, problemf(http.StatusNotFound, "You have no session %s of the last 30 days.", q.clip([]byte(key), 100))
		}
		const empty = "No client has called a tool in the last 30 days: connect one with mcp-funnel install CLIENT."
		p := listing(q, "Sessions", empty, q.sessionHeads(), all, q.sessionRow)
		p.Notes, p.Live = append(d.notes(), "Seen, shown, kept and saved are tokens."), true
		return p, nil
	}
	g := all[at]
	p := &page{Title: q.short(g.key, 80), Crumbs: []link{{Text: "Sessions", To: q.url("sessions")}}, Notes: d.notes()}
	calls, known := slices.Clone(g.calls), named(q.sessionHeads()[1:], q.sessionRow(g)[1:])
	d.mu.Unlock() // texts are read from here on
	if ref := q.query.Get("call"); ref != "" {
		p.Crumbs = append(p.Crumbs, link{Text: p.Title, To: q.sessionAt(g)})
		return p, q.oneCall(p, g, ref)
	}
	p.Live, p.Blocks = true, append([]any{known}, contextOf(calls)...)
	slices.Reverse(calls)
	t := &table{Heads: callHeads, Key: "calls", Caption: "Calls, the newest first; seen and shown are tokens",
		Empty: "Its calls were removed meanwhile: load the page again."}
	calls, t.Pager = paged(q, calls)
	for _, at := range calls {
		c, s, err := q.o.Trace.Shown(at.ref)
		if errors.Is(err, fs.ErrNotExist) { // removed meanwhile
			continue
		}
		if err != nil && !errors.Is(err, trace.ErrNotKept) {
			return nil, err
		}
		t.Rows = append(t.Rows, q.callRow(g, c, cmp.Or(string(s.Args), c.Name, c.Source)))
	}
	p.Blocks = append(p.Blocks, t)
	return p, nil
}

// contextOf shows how full the context of a session was before those of its calls that knew it.
func contextOf(calls []*callAt) []any {
	var spent, limit []int64
	calls = slices.DeleteFunc(slices.Clone(calls), func(c *callAt) bool { return c.spent+c.left == 0 })
	for i := 0; i < len(calls); i += len(calls)/500 + 1 {
		spent, limit = append(spent, calls[i].spent), append(limit, calls[i].spent+calls[i].left)
	}
	if len(calls) == 0 {
		return nil
	}
	last := calls[len(calls)-1]
	said := "Solid: tokens in the context before each of " + grouped(int64(len(calls))) + " calls; dashed: its limit. " +
		"Before the last one " + grouped(last.spent) + " were used, and " + grouped(last.left) + " left."
	drawn := chart("Tokens in the context, and its limit", spent, limit)
	return []any{section{Title: "Context", Key: "context", Blocks: []any{drawn, note{said, ""}}}}
}

// toolOf names the tool of a call as sums do.
func toolOf(c trace.Call) string {
	if c.Via == trace.ViaTool || c.Via == trace.ViaObserved {
		return c.Tool
	}
	return c.Tool + " (" + c.Via + ")"
}

var callHeads = heads("When", "Tool", "Arguments", "#Seen", "#Shown", "Kept", "#Took", "Error")

// callRow is the row of a call in lists, with what was asked or found.
func (q *request) callRow(g *group, c trace.Call, text string) []cell {
	kept, wrong := cell{}, cell{Class: "bad"}
	if id, err := observations.ParseID(c.Observation); err == nil {
		kept = code(string(id)).to(q.url("obs/" + string(id)))
	}
	if c.Status != "success" {
		wrong.Text = q.clip([]byte(cmp.Or(c.Error, c.Status)), 100)
	}
	return []cell{
		when(c.At).to(q.sessionAt(g, "call", c.Ref)), q.name(toolOf(c), 60), code(q.clip([]byte(text), 150)),
		number(c.SeenTokens), number(c.ShownTokens), kept, duration(c.Millis), wrong,
	}
}

// oneCall adds a call to the page of its session: what the model was shown beside what was kept.
func (q *request) oneCall(p *page, g *group, ref string) error {
	c, s, gone := q.o.Trace.Shown(ref)
	if gone != nil && !errors.Is(gone, fs.ErrNotExist) && !errors.Is(gone, trace.ErrNotKept) {
		return gone
	}
	if errors.Is(gone, fs.ErrNotExist) || c.Owner != g.owner || c.Group() != g.key {
		return problemf(http.StatusNotFound, "This session has no such call: calls are kept for 30 days.")
	}
	p.Title = q.short(toolOf(c), 80)
	row := q.callRow(g, c, "")
	row[0].To, row[2].Text = "", string(s.Args)
	known := append(named(callHeads, row), fact{"Decision", words(strings.TrimSuffix(c.Verdict+": "+c.Reason, ": "))})
	if c.Limited {
		said := grouped(int64(c.Spent)) + " tokens before it; " + grouped(int64(c.Left)) + " left"
		known = append(known, fact{"Context", words(said)})
	}
	why := "Nothing was kept: the output was shown whole."
	if strings.HasPrefix(s.Text, text.LargeOutput) {
		why = "Nothing was kept: the first line of what was shown says why."
	} else if c.Covers != nil {
		why = "Nothing was kept: a page of what the call names was shown."
	}
	shown, kept := []any{pre(s.Text)}, []any{note{why, ""}}
	if gone != nil {
		shown = []any{note{gone.Error(), ""}}
	} else if s.Text == "" {
		shown = []any{note{"Nothing: its text was empty.", ""}}
	} else if more := s.Bytes - int64(len(s.Text)); more > 0 || s.ArgsCut {
		shown = append(shown, note{"Only beginnings are kept: " + grouped(more) + " bytes of the text are missing here.", ""})
	}
	if id, err := observations.ParseID(c.Observation); err == nil {
		kept = q.beginning(id, c.Owner)
	} else if c.Notice || c.Status != "success" {
		kept = []any{note{"Nothing was kept.", ""}}
	}
	p.Blocks = []any{known, columns{
		{Title: "What the model was shown", Blocks: shown}, {Title: "What was kept", Blocks: kept},
	}}
	return nil
}

// beginning shows the first lines of an observation, with links to its page.
func (q *request) beginning(id observations.ID, owner string) []any {
	at, of := observations.Prefix+string(id), *q
	of.path, of.query, of.who.Owner = []string{"obs", string(id)}, nil, owner
	blocks := []any{links{{Text: at, To: q.url("obs/" + string(id))}}}
	o, err := of.open(q.ctx, at)
	if err != nil {
		return append(blocks, note{err.Error(), "bad"})
	}
	defer o.Close()
	if o.kind == content.Binary {
		return append(blocks, note{"It is binary.", ""})
	}
	shown, err := textView(&of, o)
	if err != nil {
		shown = []any{note{err.Error(), "bad"}}
	}
	if n := o.o.Stats.Lines; n > pageLines {
		shown = append(shown, note{"This is the beginning of " + grouped(n) + " lines.", ""})
	}
	return append(blocks, shown...)
}
