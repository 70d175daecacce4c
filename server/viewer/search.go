package viewer

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/linesearch"
)

const (
	searchTime = time.Second // in which texts are read for one page
	pageHits   = 50
	around     = 80 // bytes of a snippet on each side of what was found
)

// wanted is what a search looks for: all patterns must match.
type wanted struct {
	patterns   []*linesearch.Matcher
	tool, file string
	from, to   time.Time
	pinned     bool
}

// wanted reads the search form: words, of which case does not count, or a regular expression between slashes.
func (q *request) wanted() (w wanted, err error) {
	text := strings.TrimSpace(q.query.Get("q"))
	var all []linesearch.Pattern
	if expr, ok := strings.CutPrefix(text, "/"); ok && strings.HasSuffix(expr, "/") {
		all = append(all, linesearch.Pattern{Expr: strings.TrimSuffix(expr, "/"), Multiline: true})
	} else {
		for _, word := range strings.Fields(text) {
			all = append(all, linesearch.Pattern{Expr: word, Literal: true, IgnoreCase: true})
		}
	}
	if len(all) > 20 {
		return w, problemf(http.StatusBadRequest, "A search has at most 20 words; this one has %d.", len(all))
	}
	for _, p := range all {
		m, err := linesearch.Compile(p)
		if err != nil {
			return w, problemf(http.StatusBadRequest, "%s", err)
		}
		w.patterns = append(w.patterns, m)
	}
	w.tool, w.file, w.pinned = q.query.Get("tool"), q.query.Get("file"), q.query.Get("pinned") != ""
	w.to = time.Now().Add(day)
	w.from = time.Now().UTC().Truncate(day).Add(day * time.Duration(1-min(q.number("days", maxDays), maxDays)))
	if at, err := time.Parse(time.DateOnly, q.query.Get("day")); err == nil {
		w.from, w.to = at, at.Add(day)
	}
	return w, nil
}

// find returns where a text that is masked has what is wanted, as a snippet; false if it has not.
func (w wanted) find(ctx context.Context, text string) (snippet string, found bool, err error) {
	start, end := 0, 0
	for _, m := range slices.Backward(w.patterns) { // the first word is shown
		if start, end, found, err = m.Find(ctx, []byte(text)); err != nil || !found {
			return "", false, err
		}
	}
	start, end = max(start-around, 0), min(end+around, len(text))
	return strings.ToValidUTF8(text[start:end], ""), true, nil
}

// search is the page of a search over the calls of all sessions, or over observations.
func (q *request) search() (*page, error) {
	w, err := q.wanted()
	if err != nil {
		return nil, err
	}
	p := &page{Title: "Search", Blocks: []any{form{To: q.url("search"), Submit: "Search", Hint: "words of arguments and shown texts, or /a regular expression/", Fields: []field{
		{Name: "q", Label: "Text", Value: q.query.Get("q"), Size: 24}, {Name: "tool", Label: "Tool", Value: w.tool, Size: 12},
		{Name: "file", Label: "File", Value: w.file, Size: 16}, {Name: "days", Label: "Days", Value: q.query.Get("days"), Options: []string{"30", "7", "1"}},
		{Name: "in", Label: "In", Value: q.query.Get("in"), Options: []string{"calls", "observations"}},
	}}}}
	t := &table{Key: "found", Empty: "Nothing is found so far: search for fewer words, in more days, or elsewhere."}
	if q.query.Get("in") == "observations" {
		err = q.searchObservations(w, t)
	} else {
		err = q.searchCalls(w, p, t)
	}
	p.Blocks = append(p.Blocks, t)
	return p, err
}

// scan looks at candidates until a page of rows is full, or for a second; the pager of the table continues.
func (q *request) scan(t *table, names []string, look func(ctx context.Context, i int) (row []cell, err error)) error {
	end := time.Now().Add(searchTime)
	ctx, stop := context.WithTimeout(q.ctx, 2*searchTime)
	defer stop()
	i := max(slices.Index(names, q.query.Get("before")), 0)
	for ; i < len(names) && len(t.Rows) < pageHits && time.Now().Before(end); i++ {
		row, err := look(ctx, i)
		if errors.Is(err, context.DeadlineExceeded) {
			return problemf(http.StatusBadRequest, "This pattern takes too long: use fewer repeat counts, or words.")
		}
		if err != nil {
			return err
		}
		if row != nil {
			t.Rows = append(t.Rows, row)
		}
	}
	t.Pager = &pager{Text: "searched " + grouped(int64(i)) + " of " + grouped(int64(len(names)))}
	if i < len(names) {
		t.Pager.Text += "; more follow"
		t.Pager.Next = q.with("before", names[i])
	}
	return nil
}

// searchCalls adds rows of calls.
func (q *request) searchCalls(w wanted, p *page, t *table) error {
	d := q.digest()
	var calls []*callAt
	var names []string
	for _, c := range slices.Backward(d.calls) {
		if (w.tool == "" || c.tool == w.tool) && !c.at.Before(w.from) && c.at.Before(w.to) {
			calls, names = append(calls, c), append(names, c.ref)
		}
	}
	p.Notes = d.notes()
	d.mu.Unlock()
	t.Heads, t.Caption = append(slices.Clone(callHeads), words("Session")), "Calls, the newest first; seen and shown are tokens"
	if q.everyone() {
		t.Heads = append(t.Heads, words("Owner"))
	}
	lost := 0
	err := q.scan(t, names, func(ctx context.Context, i int) ([]cell, error) {
		c, s, err := q.o.Trace.Shown(calls[i].ref)
		if errors.Is(err, trace.ErrNotKept) {
			lost, err = lost+1, nil
		}
		if errors.Is(err, fs.ErrNotExist) || err == nil && !touches(c, w.file) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		text, _ := q.o.Mask.String(cmp.Or(string(s.Args), c.Name+" "+c.Source) + "\n" + s.Text)
		snippet, found, err := w.find(ctx, text)
		if err != nil || !found {
			return nil, err
		}
		g := calls[i].group
		row := append(q.callRow(g, c, snippet), words(content.Clip(g.key, 30)).to(q.sessionAt(g)))
		if q.everyone() {
			row = append(row, words(content.Clip(g.owner, 40)))
		}
		return row, nil
	})
	if lost > 0 {
		p.Notes = append(p.Notes, "Of "+grouped(int64(lost))+" of these calls the texts are not kept: of them only names were searched.")
	}
	return err
}

// touches reports whether a call names a file, or showed something of it.
func touches(c trace.Call, file string) bool {
	return strings.Contains(c.Source, file) || slices.ContainsFunc(c.Opened, func(o trace.Opened) bool { return strings.Contains(o.File, file) })
}

// searchObservations adds rows of observations.
func (q *request) searchObservations(w wanted, t *table) error {
	owner := q.who.Owner
	if q.everyone() {
		owner = ""
	}
	all, err := q.o.Store.List(owner, false)
	if err != nil {
		return err
	}
	var names []string
	all = slices.DeleteFunc(all, func(o observations.Observation) bool {
		return w.tool != "" && o.Tool != w.tool || w.pinned && !o.Pinned || o.Created.Before(w.from) && q.query.Has("days") || !o.Created.Before(w.to) ||
			!strings.Contains(strings.Join(append(o.Origin, o.Name, string(o.Args)), "\n"), w.file)
	})
	for _, o := range all {
		names = append(names, string(o.ID))
	}
	t.Heads, t.Caption = observationHeads, "Observations, the newest first"
	return q.scan(t, names, func(ctx context.Context, i int) ([]cell, error) {
		text, _ := q.o.Mask.String(all[i].Name + " " + all[i].Tool + " " + string(all[i].Args))
		if _, found, err := w.find(ctx, text); err != nil || !found {
			return nil, err
		}
		return q.observationRow(&all[i]), nil
	})
}
