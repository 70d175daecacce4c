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
	"github.com/mcp-funnel/mcp-funnel/text/linesearch"
)

const (
	pageHits = 50
	maxWords = 20
	around   = 80 // bytes of a snippet on each side of what was found
)

// wanted is what a search looks for: all patterns must match.
type wanted struct {
	patterns        []*linesearch.Matcher
	since           time.Time
	day, tool, file string // "": any
}

// wanted reads what the form asks for: words, whose case does not count, or a regular expression between slashes.
func (q *request) wanted() (w wanted, err error) {
	text := strings.TrimSpace(q.query.Get("q"))
	all := []linesearch.Pattern{{Expr: strings.Trim(text, "/"), Multiline: true}}
	if len(text) < 3 || text[0] != '/' || text[len(text)-1] != '/' {
		all = nil
		for _, word := range strings.Fields(text) {
			all = append(all, linesearch.Pattern{Expr: word, Literal: true, IgnoreCase: true})
		}
	}
	if len(all) > maxWords {
		return w, problemf(http.StatusBadRequest, "%d words are over the limit of %d.", len(all), maxWords)
	}
	for _, p := range all {
		m, err := linesearch.Compile(p)
		if err != nil {
			return w, problemf(http.StatusBadRequest, "%s", err)
		}
		w.patterns = append(w.patterns, m)
	}
	w.day, w.tool, w.file = q.query.Get("day"), q.query.Get("tool"), q.query.Get("file")
	if q.query.Has("days") {
		w.since = time.Now().UTC().Truncate(day).Add(day * time.Duration(1-min(q.number("days", maxDays), maxDays)))
	}
	return w, nil
}

// covers reports whether a tool and a time are wanted.
func (w wanted) covers(tool string, at time.Time) bool {
	return (w.tool == "" || tool == w.tool) && !at.Before(w.since) &&
		(w.day == "" || at.UTC().Format(time.DateOnly) == w.day)
}

// find returns the part of a masked text around the first word; false unless the text has all words.
func (w wanted) find(ctx context.Context, text string) (snippet string, found bool, err error) {
	start, end := 0, 0
	for _, m := range slices.Backward(w.patterns) {
		if start, end, found, err = m.Find(ctx, []byte(text)); err != nil || !found {
			return "", false, err
		}
	}
	return strings.ToValidUTF8(text[max(start-around, 0):min(end+around, len(text))], ""), true, nil
}

// search is the page of a search over the calls of all sessions, or over observations.
func (q *request) search() (*page, error) {
	w, err := q.wanted()
	if err != nil {
		return nil, err
	}
	in := q.query.Get("in")
	t := &table{Key: "found", Empty: "Nothing is found: search for fewer words, or in more days. Observations are found by name and call."}
	p := &page{Title: "Search", Blocks: []any{form{To: q.url("search"), Submit: "Search", Fields: []field{
		{Name: "q", Label: "Text", Value: q.query.Get("q"), Size: 24, Hint: "words or /expression/"},
		{Name: "tool", Label: "Tool", Value: w.tool, Size: 12}, {Name: "file", Label: "File", Value: w.file, Size: 16},
		{Name: "days", Label: "Days", Value: q.query.Get("days"), Options: []string{"30", "7", "1"}},
		{Name: "in", Label: "In", Value: in, Options: []string{"calls", "observations"}},
	}}, t}}
	ctx, stop := context.WithTimeout(q.ctx, time.Second)
	defer stop()
	if in == "observations" {
		err = q.searchObservations(ctx, w, t)
	} else {
		err = q.searchCalls(ctx, w, p, t)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = problemf(http.StatusBadRequest, "The pattern takes too long: use fewer repeat counts, or words.")
	}
	return p, err
}

// searchObservations finds observations by their names and calls.
func (q *request) searchObservations(ctx context.Context, w wanted, t *table) error {
	all, err := q.o.Store.List(q.ofAll(), false)
	all = slices.DeleteFunc(all, func(o observations.Observation) bool {
		text := q.masked(o.Name + " " + o.Tool + " " + string(o.Args))
		_, found, wrong := w.find(ctx, text)
		err = cmp.Or(err, wrong)
		return !found || !w.covers(o.Tool, o.Created) || !strings.Contains(text, w.file)
	})
	t.Heads = observationHeads
	listed(q, t, all, func(o observations.Observation) []cell { return q.observationRow(&o) })
	return err
}

// searchCalls finds calls, the newest first, until a page is full or a second has passed; its pager continues.
func (q *request) searchCalls(ctx context.Context, w wanted, p *page, t *table) error {
	d := q.digest()
	var calls []*callAt
	i, lost := 0, int64(0)
	for _, c := range slices.Backward(d.calls) {
		if w.covers(c.tool, c.at) {
			if calls = append(calls, c); c.ref == q.query.Get("before") {
				i = len(calls) - 1
			}
		}
	}
	p.Notes = d.notes()
	d.mu.Unlock()
	t.Heads, t.Caption = q.owned(append(slices.Clone(callHeads), words("Session")), "Owner"), "Seen and shown are tokens"
	for begin := i; i < len(calls) && len(t.Rows) < pageHits && (ctx.Err() == nil || i == begin); i++ {
		c, s, err := q.o.Trace.Shown(calls[i].ref)
		if errors.Is(err, fs.ErrNotExist) { // removed meanwhile
			continue
		}
		if errors.Is(err, trace.ErrNotKept) {
			lost, err = lost+1, nil
		}
		text, _ := q.o.Mask.String(cmp.Or(string(s.Args), c.Name+" "+c.Source) + "\n" + s.Text)
		snippet, found := "", false
		if err == nil {
			snippet, found, err = w.find(ctx, text)
		}
		if errors.Is(err, context.DeadlineExceeded) && i > begin {
			break
		}
		if err != nil {
			return err
		}
		if found && (strings.Contains(c.Source, w.file) ||
			slices.ContainsFunc(c.Opened, func(o trace.Opened) bool { return strings.Contains(o.File, w.file) })) {
			g := calls[i].group
			row := append(q.callRow(g, c, snippet), q.name(g.key, 30).to(q.sessionAt(g)))
			t.Rows = append(t.Rows, q.owned(row, g.owner))
		}
	}
	t.Pager = &pager{Text: "searched " + grouped(int64(i)) + " of " + grouped(int64(len(calls))) + " calls"}
	if i < len(calls) {
		t.Pager.Text, t.Pager.Next = t.Pager.Text+"; continue:", q.with("before", calls[i].ref)
	}
	if lost > 0 {
		said := "Of " + grouped(lost) + " of these calls no text is kept: only their names and sources were searched."
		p.Notes = append(p.Notes, said)
	}
	return nil
}
