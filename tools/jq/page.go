package jq

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/system/worker"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/jsontrunc"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/decode"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/engine"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// wholeRow is the length of the longest row, in bytes, that is held whole; of a longer row only both ends are held.
const wholeRow = 4 << 20

// page shows and counts the results of a run.
type page struct {
	out    tools.Output
	rows   tools.Page
	args   args
	size   int64 // bytes of the text, for progress
	memory int64 // bytes a worker may use, for the error

	letters bool // the note on letters that classes of the filter do not match was added

	empty bool // the only result so far is 0 or []

	next   int64           // number of the next result
	shown  int64           // results shown
	held   tools.RowBuffer // the parts of the current row
	ended  bool            // no more rows are wanted
	enough chan struct{}   // closed when ended is set

	shares []*share // of several filters

	whenFull func()
	timer    *time.Timer
}

func (g *page) Wanted() bool { return !g.ended }

func (g *page) Progress(n int64) { g.out.Progress(n, g.size, "bytes read") }

// Part adds a part of a row, and shows the row after its last part.
func (g *page) Part(b []byte, last bool) error {
	if g.ended {
		return nil
	}
	g.empty = g.next == 0 && last && g.held.Size == 0 && (string(b) == "[]" || string(b) == "0")
	if g.args.Save {
		if _, err := g.out.Write(b); err != nil || !last {
			return err
		}
		g.count()
		_, err := g.out.Write([]byte{'\n'})
		return err
	}
	call := tools.Call{Tool: "jq", Args: g.one(g.next)}
	var err error
	switch {
	case !last:
		g.held.Add(b, wholeRow)
		return nil
	case g.held.Size == 0:
		err = g.rows.Row(b, call)
	default:
		g.held.Add(b, wholeRow)
		err = g.held.Show(g.rows, call)
		room := g.held.Whole[:0]
		if cap(room) > 1<<20 {
			room = nil
		}
		g.held = tools.RowBuffer{Whole: room}
	}
	if errors.Is(err, tools.ErrPageFull) {
		g.end()
		return nil
	}
	if err == nil {
		g.count()
	}
	return err
}

// count counts a row that is shown or saved, and ends the page at the limit.
func (g *page) count() {
	g.next++
	if g.shown++; g.args.Limit > 0 && g.shown == g.args.Limit {
		g.end()
	}
}

// end stops the page: further results are only counted, for at most CountFor.
func (g *page) end() {
	g.ended = true
	close(g.enough)
	g.whenFull()
}

// one returns the arguments of a call that saves result i.
func (g *page) one(i int64) args {
	a := g.args
	a.Offset, a.Limit, a.Save = i, 1, true
	return a
}

// finish sets the range and the next call of the page, adds notes, and returns what went wrong.
func (g *page) finish(ctx context.Context, src *source.Source, o engine.Outcome, failed error) error {
	if ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	if o.Compile != "" {
		return errors.New(o.Compile)
	}
	total := o.Results
	switch {
	case failed == nil:
		g.out.Count("results", float64(total))
	case g.ended && (errors.Is(failed, context.Canceled) || errors.Is(failed, context.DeadlineExceeded)):
		total, failed = -1, nil // the page is complete; only the results after it were not counted
	default:
		total = -1
	}
	if failed == nil || g.args.Offset > 0 { // else the error says how many results came before it
		g.showRange(total)
	} else {
		g.setNext(total)
	}
	for _, note := range g.remarksOn(src, o) {
		g.out.Note(note)
	}
	if failed != nil {
		return g.stopped(failed)
	}
	if err := errorOf(ctx, src, o); err != nil {
		return err
	}
	if o.Records == 0 && total == 0 { // not if counting was stopped in the first record
		g.out.Note("the source is empty: there was nothing to run the filter on")
		return nil
	}
	g.noteNoResults(total)
	return nil
}

// remarksOn returns the notes on a text that the filter has read. src is nil for several sources in a row.
func (g *page) remarksOn(src *source.Source, o engine.Outcome) (notes []string) {
	if o.Twice != nil {
		notes = append(notes, fmt.Sprintf("duplicate keys: the last value of each counts (first: %q, before byte %d)",
			o.Twice.Key, o.Twice.Offset))
	}
	// A text of numbers alone has another kind.
	if o.Open && src != nil && !g.args.Text && (src.Kind() == content.JSON || src.Kind() == content.NDJSON) {
		notes = append(notes,
			"the last record is a number or literal, and the text ends with it: where the text is cut off, it is not complete")
	}
	return notes
}

// errorOf returns on which record the filter failed, and where the text is broken. src is nil for several sources in a
// row.
func errorOf(ctx context.Context, src *source.Source, o engine.Outcome) error {
	var wrong []string
	if o.First != nil {
		wrong = append(wrong, failureText(o))
	}
	if o.Broken != nil {
		wrong = append(wrong, brokenOff(ctx, src, *o.Broken))
	}
	if wrong == nil {
		return nil
	}
	return errors.New(strings.Join(wrong, "\n"))
}

// showRange sets the range of the page among total results (−1: not counted), and the next call.
func (g *page) showRange(total int64) {
	if !g.args.Save {
		g.rows.SetRowRange(g.args.Offset, total)
	}
	g.setNext(total)
}

func (g *page) setNext(total int64) {
	end := g.args.Offset + g.shown
	if g.args.Save || !g.ended || total >= 0 && end >= total {
		return
	}
	a := g.args
	a.Offset = end
	g.rows.Next(tools.Call{Tool: "jq", Args: a})
}

// noteNoResults says why a page of a filter without an error is empty.
func (g *page) noteNoResults(total int64) {
	switch {
	case total == 0:
		g.out.Note("no results")
	case total > 0 && g.args.Offset >= total:
		g.out.Note(fmt.Sprintf("offset %d is past the last of %d results", g.args.Offset, total))
	}
}

// failureText says why the filter failed on the first record, and on how many more it failed.
func failureText(o engine.Outcome) string {
	f := o.First
	s := fmt.Sprintf("jq: record %d", f.Record)
	if f.Element >= 0 {
		s += fmt.Sprintf(", element %d", f.Element)
	}
	s += ": " + f.Message
	if unsupportedPattern(f.Message) {
		s += "; " + strings.ToLower(noLookaround[:1]) + strings.TrimSuffix(noLookaround[1:], ".")
	}
	if f.Results > 0 {
		s += fmt.Sprintf(" (after %s of this record)", content.Plural(f.Results, "result", "results"))
	}
	if o.Failed > 1 && o.Failed == o.Records {
		s += fmt.Sprintf(
			"; the filter failed on all %d records: it runs on each in turn, \"slurp\": true gives it all of them as one array",
			o.Records,
		)
	} else if o.Failed > 1 {
		s += fmt.Sprintf("; the filter failed on %d of %d records, the others' results are complete", o.Failed, o.Records)
	} else if o.Records > 1 {
		s += fmt.Sprintf("; the other %s went well", content.Plural(o.Records-1, "record", "records"))
	}
	return s
}

// unsupportedPattern reports whether an error is that of a regular expression which uses more than RE2 has.
func unsupportedPattern(message string) bool {
	_, reason, found := strings.Cut(message, "error parsing regexp: ")
	return found && (strings.HasPrefix(reason, "invalid or unsupported Perl syntax") ||
		strings.HasPrefix(reason, "invalid named capture: `(?<") || strings.HasPrefix(reason, "invalid escape sequence"))
}

// needsLess names the forms of filters that need less memory.
func (g *page) needsLess() string {
	const figures = "`group_by(.a) | map({a: .[0].a, n: length})`, `map(.x) | add` and `sort_by(.x) | .[:5]`"
	if g.args.Slurp {
		return "without slurp it runs on one record at a time, and with slurp " + figures + " read one after the other"
	}
	return "`.[] | …`, " + figures + " read an array element by element"
}

// stopped returns the error of a run that ended early: why it ended, and what to do.
func (g *page) stopped(err error) error {
	so := "nothing came before that"
	if g.shown > 0 {
		so = content.Plural(g.shown, "result", "results") + " came before that"
	}
	var e *worker.Error
	switch {
	case errors.Is(err, worker.ErrMemory):
		return fmt.Errorf("jq: the filter needs more than %d MiB of memory; %s; %s; slice takes a part of the source, "+
			"--jq-memory raises the limit", g.memory>>20, so, g.needsLess())
	case errors.Is(err, worker.ErrCPU), errors.Is(err, context.DeadlineExceeded):
		g.out.Note(
			"narrow the filter, or take a part of the source by slice first; how long a call may take is set by the server's --call-timeout",
		)
		return fmt.Errorf("jq: stopped at the call's deadline; %s; use a narrower filter or a part of the source", so)
	case errors.As(err, &e):
		return fmt.Errorf("jq: the worker failed; %s; %w", so, err)
	default:
		return fmt.Errorf("jq: %w", err)
	}
}

// brokenOff returns the text of an error: where a source stops being JSON, and how to continue.
func brokenOff(ctx context.Context, src *source.Source, b decode.Broken) string {
	if src == nil {
		return fmt.Sprintf("jq: one of the sources is not complete JSON: byte %d of all in a row; without slurp the error names it", b.Offset)
	}
	name := decode.Clip(src.Name)
	var report jsontrunc.Report // also has the last complete element
	if t, err := src.Text(); err == nil {
		c := jsontrunc.NewChecker()
		if _, err = io.Copy(c, content.WithContext(ctx, t)); err == nil {
			report = c.Close()
		}
	}
	switch {
	case b.Cut && report.State == jsontrunc.Cut:
		b = decode.Broken{Offset: report.Offset, Pointer: decode.Middle(report.Pointer), Cut: true}
	case !b.Cut && report.State == jsontrunc.Broken:
		b = decode.Broken{Offset: report.Offset, Pointer: decode.Middle(report.Pointer), Message: decode.Clip(report.Reason)}
	default: // jsontrunc differs, for example in the depth it allows: the error that stopped the filter counts
		report = jsontrunc.Report{}
	}
	var s strings.Builder
	if b.Cut {
		fmt.Fprintf(&s, "jq: %s is cut off at byte %d", name, b.Offset)
		switch report.Inside {
		case "", content.BetweenValues:
		case "object", "array":
			fmt.Fprintf(&s, ", inside an %s", report.Inside)
		default:
			fmt.Fprintf(&s, ", inside a %s", report.Inside)
		}
	} else {
		fmt.Fprintf(&s, "jq: %s is not valid JSON at byte %d", name, b.Offset)
	}
	if b.Pointer != "" {
		fmt.Fprintf(&s, ", at %s", b.Pointer)
	}
	if b.Message != "" {
		fmt.Fprintf(&s, ": %s", b.Message)
	}
	if report.LastEnd > report.LastStart {
		fmt.Fprintf(&s, "; the last complete element is %s, bytes %d-%d", decode.Middle(report.LastPointer),
			report.LastStart, report.LastEnd-1)
	}
	s.WriteString("; grep and slice work on what is there")
	return s.String()
}

// noLookaround says how the regular expressions of this jq differ from those of others.
const noLookaround = "Regular expressions are RE2, without look-ahead, look-behind and back-references: " +
	`to divide a text before a string use split("\n…") instead.`
