package jq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/engine"
)

// maxShared is the size of the largest text, in bytes, that is decoded as one value for several filters: a JSON text, or
// all records. Of a larger one each filter reads what it needs, element by element if it can.
const maxShared = 8 << 20

// maxCounted is how many results of one filter of several are counted: the others wait for it.
const maxCounted = 4 << 20

// share has the results of one filter of several, and what went wrong in it.
type share struct {
	engine.Held
	name   string
	args   args // of a call with this filter alone
	failed sayings
}

// runFilters runs the filters of the call on each source in turn, and shows a row for each filter.
func (r runner) runFilters(ctx, work context.Context, names []string, g *page, in tools.Input) error {
	wrong := 0
	for i, name := range g.args.Filter.Names {
		s := &share{name: content.VisibleLine(name), args: g.args}
		s.args.Filter, s.Limit = tools.OneQuery(g.args.Filter.Texts[i]), g.args.Limit
		if err := s.args.Check(); err != nil {
			s.failed.add("", strings.TrimPrefix(err.Error(), "jq: "))
			wrong++
		}
		g.shares = append(g.shares, s)
	}
	if wrong == len(g.shares) {
		return errors.New("no filter of the call compiles; " + g.shares[0].row(engine.MaxHeld, in))
	}
	err := r.runSeveral(ctx, work, names, g, in)
	return errors.Join(g.showShares(in), err)
}

// runGroup runs the filters of the call on a text in one reading, or each alone if that is not possible. Its outcome is
// that of the text.
func (r runner) runGroup(ctx context.Context, t text, g *page) (read engine.Outcome) {
	to := slices.DeleteFunc(slices.Clone(g.shares), func(s *share) bool { return s.args.Check() != nil })
	j := g.args.job(t.name, 0)
	j.Most = maxCounted
	for _, s := range to {
		j.Filters = append(j.Filters, t.before+s.args.Filter.Text())
	}
	group := engine.Group{Rows: g}
	var err error
	if t.size <= maxShared || j.Text || !j.Slurp && t.source.Kind() != content.JSON {
		half, stop := portion(ctx, 2)
		_, err = r.runOnce(half, t, j, sink{&group, nil, int64(len(to)) * engine.PageOutput(engine.MaxHeld)})
		stop()
	}
	for i, s := range to {
		var h *engine.Held
		var failed error
		if err == nil && len(group.All) == len(to) {
			h = group.All[i]
		} else { // perhaps another filter needed all the memory
			h = &engine.Held{Limit: s.Limit}
			j := s.args.job(t.name, 0)
			j.Most = maxCounted
			some, stop := portion(ctx, len(to)-i+1)
			h.Outcome, failed = r.runJob(some, t, j, sink{h, nil, engine.PageOutput(r.Memory)})
			stop()
		}
		for _, row := range h.Rows {
			_ = s.Part([]byte(row), true) // never fails
		}
		o, alone := h.Outcome, page{args: s.args, memory: r.Memory, shown: h.Outcome.Results, out: tools.Discard{}}
		s.Outcome.Results += o.Results
		s.Outcome.Uncounted = s.Outcome.Uncounted || o.Uncounted
		switch {
		case failed != nil:
			s.failed.add(t.name, strings.TrimPrefix(alone.stopped(failed).Error(), "jq: "))
		case o.First != nil:
			s.failed.add(t.name, strings.TrimPrefix(failureText(o), "jq: "))
		}
		o.First, o.Results = nil, read.Results+o.Results
		read = o
	}
	return read
}

// portion returns a context that ends after the nth part of the time that is left, so that one slow filter leaves time
// for the others and for the answer.
func portion(ctx context.Context, n int) (context.Context, context.CancelFunc) {
	if end, ok := ctx.Deadline(); ok {
		return context.WithTimeout(ctx, time.Until(end)/time.Duration(n))
	}
	return context.WithCancel(ctx)
}

// showShares shows a row for each filter. If not all results fit the page, each row takes at most the same room.
func (g *page) showShares(in tools.Input) error {
	rows := make([]string, len(g.shares))
	overflows := func(limit int) bool {
		for i, s := range g.shares {
			rows[i] = s.row(limit, in)
		}
		whole := []byte(strings.Join(rows, "\n"))
		return in.BytesThatFit != nil && in.BytesThatFit(whole) < len(whole)
	}
	if overflows(engine.MaxHeld) {
		overflows(sort.Search(engine.MaxHeld, overflows) - 1)
	}
	g.rows.SetRowRange(0, int64(len(rows)))
	for i, row := range rows {
		err := g.rows.Row([]byte(row), tools.Call{})
		if errors.Is(err, tools.ErrPageFull) {
			g.out.Note("no room for the filters from " + g.shares[i].name + " on: call with fewer")
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// row returns what is shown of a filter: "NAME: RESULT", or the number of results and as many as there is room for in
// limit bytes, a line each, with the call for the others.
func (s *share) row(limit int, in tools.Input) string {
	var said, lines []string
	if s.failed.count > 0 {
		said = []string{"error: " + strings.Join(s.failed.lines("further source failed", "further sources failed"), "; ")}
	}
	for size, n := 0, s.Outcome.Results; len(lines) < len(s.Rows) && n > 0; {
		row := s.Rows[len(lines)]
		if size += len(row) + 1; size > limit {
			break
		}
		lines = append(lines, row)
	}
	switch n := s.Outcome.Results; {
	case n == 0 && said == nil:
		said = []string{"no results"}
	case n == 1 && len(lines) == 1:
		said, lines = append(lines, said...), nil
	case n > 0:
		total := content.Plural(n, "result", "results")
		if s.Outcome.Uncounted {
			total = "over " + total
		}
		if next := s.args; int64(len(lines)) < n {
			next.Offset = int64(len(lines))
			total += fmt.Sprintf(", %d shown", next.Offset)
			said = append(said, "next: "+nextCall(next, in))
		}
		said = slices.Insert(said, 0, total)
	}
	return strings.Join(append([]string{s.name + ": " + strings.Join(said, "; ")}, lines...), "\n")
}

// nextCall returns a call as words; if it is long or has a secret, only how it differs from this call.
func nextCall(a args, in tools.Input) string {
	b, err := content.PlainJSON(a)
	if err != nil || len(b) > 400 || in.AsShown != nil && !in.AsShown(string(b)) {
		return fmt.Sprintf(`the same jq with this filter alone and "offset":%d`, a.Offset)
	}
	return "jq " + string(b)
}
