package jq

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/system/worker"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/engine"
)

// Limits of the results of one filter of several.
const (
	maxHeld       = 256 << 10 // bytes that are held to be shown
	maxExplainedN = 3         // filters whose lack of results is explained
	maxNextCall   = 400       // bytes of the call that shows more
)

// share has the results of one filter of a call with several, and what is said of it.
type share struct {
	name string
	args args // of a call with this filter alone

	rows      []heldRow
	held      int // bytes of rows
	open      heldRow
	results   int64
	uncounted bool // there are more
	failed    sayings
	compile   error
	alone     bool   // the source is the only one
	why       string // why there are no results
}

// heldRow is a result; text is its beginning if size is more.
type heldRow struct {
	text []byte
	size int
}

func (s *share) Progress(int64) {}
func (s *share) Wanted() bool {
	return s.held < maxHeld && (s.args.Limit == 0 || int64(len(s.rows)) < s.args.Limit)
}

// Part adds a part of a result.
func (s *share) Part(b []byte, last bool) error {
	if !s.Wanted() {
		return nil
	}
	s.open.text = append(s.open.text, b[:min(len(b), maxHeld-len(s.open.text))]...)
	if s.open.size += len(b); last {
		s.held += len(s.open.text)
		s.rows, s.open = append(s.rows, s.open), heldRow{}
	}
	return nil
}

// drop removes the results after the first n.
func (s *share) drop(n int) {
	for _, row := range s.rows[n:] {
		s.held -= len(row.text)
	}
	s.rows, s.open = s.rows[:n], heldRow{}
}

// add adds the outcome of the filter on a source.
func (s *share) add(source string, o engine.Outcome, err error) {
	s.results += o.Results
	if s.alone {
		source = "" // needs no name
	}
	s.uncounted = s.uncounted || o.Uncounted
	switch {
	case err != nil:
		s.failed.add(source, strings.TrimPrefix(err.Error(), "jq: "))
	case o.First != nil:
		s.failed.add(source, strings.TrimPrefix(failureText(o), "jq: "))
	}
}

// runFilters runs the filters of the call on each source, which is read once for all of them, and shows a row for each.
func (r runner) runFilters(ctx, work context.Context, names []string, g *page, in tools.Input) error {
	var all, good []*share
	for i, name := range g.args.Filter.Names {
		s := &share{name: name, args: g.args, alone: len(names) == 1}
		s.args.Filter = tools.OneQuery(g.args.Filter.Texts[i])
		if all = append(all, s); s.args.Check() == nil {
			good = append(good, s)
		} else {
			s.compile = s.args.Check()
		}
	}
	if len(good) == 0 {
		return fmt.Errorf("none of the filters compiles; of filter %s: %w", all[0].name, all[0].compile)
	}
	var failed, noted sayings
	switch {
	case g.args.Slurp && len(names) > 1:
		t, texts := r.together(ctx, work, names, g, in, &failed)
		if len(texts) == 0 {
			return failed.err()
		}
		r.runGroup(ctx, work, t, g, good, &failed, &noted)
		for _, t := range texts {
			t.said.end(t.name, g.out)
			_ = t.source.Close()
		}
	default:
		for i, name := range names {
			g.out.Progress(int64(i), int64(len(names)), fmt.Sprintf("%d of %d sources read", i, len(names)))
			if err := r.runGroupOn(ctx, work, name, g, in, good, &failed, &noted); err != nil {
				failed.add(name, err.Error())
			}
			if ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled) {
				return ctx.Err()
			}
		}
	}
	explained, total := 0, int64(0)
	for _, s := range good {
		total += s.results
		empty := s.results == 0 || s.results == 1 && len(s.rows) == 1 && slices.Contains([]string{"[]", "0"}, string(s.rows[0].text))
		if empty && s.failed.count == 0 && explained < maxExplainedN && ctx.Err() == nil {
			explained++
			s.why = r.explain(ctx, names, s.args, g.size, in)
		}
	}
	g.out.Count("results", float64(total))
	for _, note := range noted.lines("further note on sources", "further notes on sources") {
		g.out.Note(note)
	}
	return errors.Join(g.showShares(all, in), failed.err())
}

// runGroupOn runs the filters on the source of that name.
func (r runner) runGroupOn(
	ctx, work context.Context, name string, g *page, in tools.Input, to []*share, failed, noted *sayings,
) error {
	src, err := openRecords(ctx, in, name)
	if err != nil {
		return err
	}
	defer tools.CloseSource(src, g.out)
	each, stop := context.WithCancel(work)
	defer stop()
	t, err := textOf(each, src, g.args)
	if err != nil {
		return err
	}
	g.size += src.Size
	r.runGroup(ctx, each, t, g, to, failed, noted)
	return nil
}

// runGroup runs the filters on a text: together, and those alone that cannot be run so. An error of the text is added to
// failed, and its notes to noted.
func (r runner) runGroup(ctx, work context.Context, t text, g *page, to []*share, failed, noted *sayings) {
	defer t.said.end(t.name, g.out)
	defer t.noteLetters(ctx, g)
	outcomes, err := r.runTogetherOnce(work, t, g.args, to)
	var broken *engine.Outcome
	for i, s := range to {
		var o engine.Outcome
		var alone error
		switch {
		case err == nil:
			o = outcomes[i]
		case ctx.Err() != nil || !errors.As(err, new(*worker.Error)):
			alone = err
		}
		if err == nil && o.Unsure || err != nil && alone == nil { // another filter may have needed all the memory
			s.drop(int(min(s.results, int64(len(s.rows)))))
			o, alone = r.runJob(work, t, s.args.job(t.name, 0), sink{s, make(chan struct{}), engine.PageOutput(r.Memory)})
		}
		if alone != nil {
			alone = (&page{args: s.args, memory: r.Memory, out: g.out}).stopped(alone)
		}
		if s.add(t.name, o, alone); o.Records > 0 || o.Broken != nil || o.Twice != nil {
			broken = &o
		}
	}
	if broken == nil {
		return
	}
	for _, note := range g.remarksOn(t.source, *broken) {
		noted.add(t.name, note)
	}
	if broken.Broken != nil {
		failed.add(t.name, brokenOff(ctx, t.source, *broken.Broken))
	}
}

// runTogetherOnce runs the filters on a text that is read once.
func (r runner) runTogetherOnce(ctx context.Context, t text, a args, to []*share) ([]engine.Outcome, error) {
	j, safe := a.job(t.name, 0), !r.always && t.size <= smallText
	rows := make([]engine.Rows, len(to))
	for i, s := range to {
		one := s.args.job(t.name, 0)
		one.Filter = t.before + one.Filter
		p, err := one.Prepare()
		if err != nil {
			return nil, err
		}
		j.Filters, rows[i], safe = append(j.Filters, one.Filter), s, safe && p.Safe
	}
	j.Filter = ""
	if safe {
		small, err := wholeText(t.open)
		if err != nil {
			return nil, err
		}
		if small != nil {
			return j.RunGroup(ctx, bytes.NewReader(small), rows)
		}
	}
	if r.InProcess {
		from, err := t.open()
		if err != nil {
			return nil, err
		}
		return j.RunGroup(ctx, from, rows)
	}
	o, err := engine.RunWorker(ctx, j, t.input, r.Memory, engine.PageOutput(r.Memory), engine.Untag(rows), nil)
	if err == nil && len(o.Each) != len(to) {
		err = io.ErrUnexpectedEOF
	}
	return o.Each, err
}

// showShares shows a row for each filter. If they do not all fit the page, each has its share of it.
func (g *page) showShares(all []*share, in tools.Input) error {
	rows := make([]string, len(all))
	for i, s := range all {
		rows[i] = s.row(maxHeld, in)
	}
	fits := func() (int, bool) {
		joined := strings.Join(rows, "\n")
		if in.BytesThatFit == nil {
			return len(joined), true
		}
		n := in.BytesThatFit([]byte(joined))
		return n, n == len(joined)
	}
	room, ok := fits()
	for budget := room; !ok && budget > 0; budget = budget * 7 / 8 {
		sizes := make([]int, len(all))
		for i, s := range all {
			sizes[i] = len(s.row(maxHeld, in)) + 1
		}
		limit := evenly(sizes, budget)
		for i, s := range all {
			rows[i] = s.row(limit, in)
		}
		_, ok = fits()
	}
	for i, row := range rows {
		err := g.rows.Row([]byte(row), tools.Call{Tool: "jq", Args: all[i].next(0)})
		if errors.Is(err, tools.ErrPageFull) {
			a := g.args
			a.Filter = a.Filter.From(i)
			g.rows.Next(tools.Call{Tool: "jq", Args: a})
			break
		}
		if err != nil {
			return err
		}
	}
	g.rows.SetRowRange(0, int64(len(rows)))
	return nil
}

// evenly returns the largest limit for which the sizes, each cut to it, take at most room.
func evenly(sizes []int, room int) int {
	sizes = slices.Sorted(slices.Values(sizes))
	for i, n := range sizes {
		if share := room / (len(sizes) - i); n > share {
			return share
		}
		room -= n
	}
	return maxHeld
}

// next returns the arguments of the call that shows the results of this filter from the i-th on.
func (s *share) next(i int64) args {
	a := s.args
	a.Offset = i
	return a
}

// row returns what is shown of a filter in about limit bytes: "NAME: result", or the number of results and a line for
// each.
func (s *share) row(limit int, in tools.Input) string {
	var said []string
	if s.compile != nil {
		said = append(said, "error: "+strings.TrimPrefix(s.compile.Error(), "jq: "))
	}
	if s.failed.count > 0 {
		said = append(said, "error: "+strings.Join(s.failed.lines("further source failed", "further sources failed"), "; "))
	}
	single := s.results == 1 && !s.uncounted && len(s.rows) == 1 && s.rows[0].size == len(s.rows[0].text)
	switch {
	case single && len(s.rows[0].text) <= limit:
		said = append([]string{string(s.rows[0].text)}, said...)
	case s.results > 0:
		return s.list(limit, said, in)
	case len(said) == 0:
		said = append(said, "no results")
	}
	if s.why != "" {
		said = append(said, s.why)
	}
	return s.name + ": " + strings.Join(said, "; ")
}

// list returns the number of results, errors, the call for those that are not shown, and a line for each that is.
func (s *share) list(limit int, errs []string, in tools.Input) string {
	var lines []string
	shown, size := int64(0), 0
	limit -= len(strings.Join(errs, "; ")) + maxNextCall/2
	for _, row := range s.rows {
		if size += len(row.text) + 1; size > limit && s.held > limit || row.size > len(row.text) {
			break
		}
		lines = append(lines, string(row.text))
		shown++
	}
	total := content.Plural(s.results, "result", "results")
	if s.uncounted {
		total = "over " + total
	}
	said := append([]string{total}, errs...)
	if shown < s.results {
		said[0] += fmt.Sprintf(", %d shown", shown)
		if shown == 0 { // the beginning says what it is
			lines = append(lines, content.ClipEnd(string(s.rows[0].text), max(limit, 100)))
			said[0] = total + fmt.Sprintf(", the first of %d bytes is cut", s.rows[0].size)
		}
		said = append(said, "next: "+nextCall(s.next(shown), in))
	}
	return s.name + ": " + strings.Join(said, "; ") + "\n" + strings.Join(lines, "\n")
}

// nextCall returns a call as words; if it is long or has a secret, only how it differs from this call.
func nextCall(a args, in tools.Input) string {
	b, err := content.PlainJSON(a)
	if err != nil || len(b) > maxNextCall || in.AsShown != nil && !in.AsShown(string(b)) {
		return fmt.Sprintf(`the same jq with this filter alone and {"offset":%d}`, a.Offset)
	}
	return "jq " + string(b)
}
