package jq

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/mcp-funnel/mcp-funnel/kinds"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/linesearch"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/decode"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/engine"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/plan"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// runner runs calls of the tool.
type runner struct {
	Options
	always bool // run direct filters in a worker too, for tests
}

// smallText is the size of the largest source, in bytes, on which a direct filter runs in this process. A worker for
// such a source may use the slot reserved for small jobs.
const smallText = 64 << 10

// openRecords opens a source to read its records. Of the output of a command it reads standard output alone, of a
// notebook the JSON.
func openRecords(ctx context.Context, in tools.Input, name string) (*source.Source, error) {
	src, err := in.Sources.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	if src, err = src.Stored(); err != nil {
		return nil, err
	}
	src.Rows()
	return src.StandardOutput(), nil
}

// text is what a filter runs on: a source, its records as objects, or several of these in a row.
type text struct {
	name  string
	size  int64 // bytes of the source
	open  func() (io.Reader, error)
	input engine.WorkerInput
	said  *remarks // of its records; nil if the filter reads the text itself

	before string         // of the filter that runs on it: defines the lines of the records; "": nothing
	source *source.Source // nil for several in a row
}

// remarks collects the notes of the writers of a text's records as objects, which run one after the other.
type remarks struct {
	filters []string
	said    content.Remarks
	whole   bool   // said is of a writer that read the whole text
	stop    func() // ends the last writer, and waits for it
}

// start runs a writer of objects in a goroutine, once the last one has ended. It ends with ctx, or with end.
func (r *remarks) start(ctx context.Context, write objects, from io.Reader) io.Reader {
	r.stop()
	pipe, w := io.Pipe()
	context.AfterFunc(ctx, func() { _ = w.CloseWithError(ctx.Err()) })
	var wg sync.WaitGroup
	wg.Go(func() {
		b := bufio.NewWriterSize(w, 64<<10)
		err := write(ctx, from, b)
		if d, ok := errors.AsType[*content.Remarks](err); ok {
			whole := err == error(d) //nolint:errorlint // nothing but remarks
			if whole || !r.whole {
				r.said, r.whole = *d, whole
			}
			if whole {
				err = nil
			}
		}
		if err == nil {
			err = b.Flush()
		}
		_ = w.CloseWithError(err)
	})
	r.stop = func() {
		_ = pipe.Close()
		wg.Wait()
	}
	return pipe
}

// end stops the writer that still runs, and shows what they said of the text and of the fields that the filter reads.
func (r *remarks) end(name string, out tools.Output) {
	if r == nil {
		return
	}
	r.stop()
	notes := r.said.Notes
	if len(r.said.OfFields) > 0 {
		var read []string
		for _, filter := range r.filters {
			read = append(read, plan.FieldsOf(filter)...)
		}
		slices.Sort(read)
		for _, field := range slices.Compact(read) {
			if note := r.said.OfFields[field]; note != "" && !slices.Contains(notes, note) {
				notes = append(notes[:len(notes):len(notes)], note)
			}
		}
	}
	for _, note := range notes {
		out.Note(name + ": " + note)
	}
}

// textOf returns the text of a source. Its goroutine exits when ctx is done.
func textOf(ctx context.Context, src *source.Source, a args) (text, error) {
	write, err := asObjects(ctx, src, a)
	if err != nil {
		return text{}, err
	}
	before := ""
	if strings.Contains(a.Filter.Text(), lineNumber) {
		if write, before, err = withLines(src, a, write); err != nil {
			return text{}, err
		}
	}
	size := src.Extent()
	if src.IsTable() {
		size = max(size, smallText+1) // a worker reads the rows, because another one writes them
		if before == "" {
			src.Columns(a.membersRead(a.Filter.Texts...))
		}
	}
	var said *remarks
	open := src.Text
	if write != nil {
		said = &remarks{filters: a.Filter.Texts, stop: func() {}}
		open = func() (io.Reader, error) {
			t, err := src.Text()
			if err != nil {
				return nil, err
			}
			return said.start(ctx, write, t), nil
		}
	}
	return text{src.Name, size, open, inputOf(src, open, write == nil), said, before, src}, nil
}

// classes matches a class of a regular expression in a string of a filter: "\\b".
var classes = content.Pattern(`\\\\[bBwWdD]`)

// maxLetters is the maximum number of bytes of a text that are searched for letters.
const maxLetters = 64 << 20

// noteLetters adds a note if the filter has a class such as \w, which does not match all letters of the text.
func (t text) noteLetters(ctx context.Context, g *page) {
	if !classes().MatchString(g.args.Filter.Text()) || t.source == nil || g.letters {
		return
	}
	r, err := t.source.Text()
	if err != nil {
		return // the run of the filter has said so
	}
	buf := make([]byte, 64<<10)
	for from := io.LimitReader(content.WithContext(ctx, r), maxLetters); ; {
		n, err := io.ReadFull(from, buf)
		if linesearch.HasLetters(buf[:n]) {
			g.letters = true
			g.out.Note(linesearch.LettersNote)
			return
		}
		if err != nil {
			return
		}
	}
}

// badFilter is the error of a filter that does not compile.
type badFilter struct{ error }

func (e badFilter) Unwrap() error { return e.error }

// runText runs the filter of the call on a text and shows the results after the first offset ones.
func (r runner) runText(ctx context.Context, t text, g *page, offset int64) (o engine.Outcome, err error) {
	defer t.said.end(t.name, g.out)
	defer t.noteLetters(ctx, g)
	if g.shares != nil {
		return r.runGroup(ctx, t, g), nil
	}
	output := engine.PageOutput(r.Memory)
	if g.args.Save {
		output = 0
	}
	return r.runJob(ctx, t, g.args.job(t.name, offset), sink{g, g.enough, output})
}

// job returns the job of a call on one source.
func (a args) job(name string, offset int64) engine.Job {
	return engine.Job{
		Name: name, Filter: a.Filter.Text(), Args: a.Args, Raw: a.Raw, Slurp: a.Slurp, Text: a.Text, Offset: offset, Limit: a.Limit,
	}
}

// sink receives the results of a run.
type sink struct {
	rows   engine.Rows
	enough <-chan struct{} // closed when no more rows are wanted
	output int64           // bytes that a worker may write; 0: any
}

// runJob runs a filter on a text. A fold that is unsure of its answer has given none: then gojq runs the whole filter.
func (r runner) runJob(ctx context.Context, t text, j engine.Job, to sink) (engine.Outcome, error) {
	o, err := r.runOnce(ctx, t, j, to)
	if err == nil && o.Unsure {
		j.Whole = true
		return r.runOnce(ctx, t, j, to)
	}
	return o, err
}

// runOnce runs a filter in this process if the text is small and the filter is safe, else in a worker.
func (r runner) runOnce(ctx context.Context, t text, j engine.Job, to sink) (o engine.Outcome, err error) {
	p, err := j.Prepare()
	if err == nil && t.before != "" { // an error shows the place in the filter of the call
		j.Filter = t.before + j.Filter
		p, err = j.Prepare()
	}
	if err != nil {
		return o, badFilter{err}
	}
	if !r.always && p.Safe && t.size <= smallText {
		small, err := wholeText(t.open)
		if err != nil {
			return o, err
		}
		if small != nil {
			return j.RunPlan(ctx, p, bytes.NewReader(small), to.rows)
		}
	}
	if r.InProcess {
		from, err := t.open()
		if err != nil {
			return o, err
		}
		return j.RunPlan(ctx, p, from, to.rows)
	}
	return engine.RunWorker(ctx, j, t.input, r.Memory, to.output, to.rows, to.enough)
}

// wholeText returns the text, nil if it is longer than smallText: the objects of a table are longer than its file.
func wholeText(open func() (io.Reader, error)) ([]byte, error) {
	t, err := open()
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(t, smallText+1))
	if err != nil || len(b) > smallText {
		return nil, err
	}
	return b, nil
}

// inputOf returns the source for a worker: the open file if its bytes are the text, else a stream.
func inputOf(src *source.Source, open func() (io.Reader, error), itself bool) engine.WorkerInput {
	t := engine.WorkerInput{Open: open, Small: src.Extent() <= smallText}
	if f, ok := src.ReaderAt.(*os.File); ok && itself && src.Plain() && src.Size > 0 {
		t.File, t.Size = f, src.Size
	}
	return t
}

// asObjects returns the writer of the source's records as objects, nil if the filter reads the text itself: JSON,
// NDJSON, and a text that begins like JSON, so that the filter's error says where it is broken.
func asObjects(ctx context.Context, src *source.Source, a args) (objects, error) {
	if rows, err := tableRows(ctx, src, a); rows != nil || err != nil {
		return rows, err
	}
	k := kinds.Of(src.Kind())
	switch {
	case a.Text || src.Extent() == 0 || k == kinds.JSON || k == kinds.NDJSON:
		return nil, nil
	case k == kinds.Binary:
		return nil, fmt.Errorf(
			`jq: %s is binary, neither JSON nor text: look into it with slice {"bytes": …}%s`, decode.Clip(src.Name),
			src.Instead(),
		)
	case k != kinds.Text:
		return k.Objects, nil
	}
	t, err := src.Text()
	if err != nil {
		return nil, err
	}
	window, err := io.ReadAll(io.LimitReader(content.WithContext(ctx, t), content.SniffSize))
	if err != nil {
		return nil, err
	}
	wrong := decode.CheckSyntax(window)
	begun := bytes.HasPrefix(bytes.TrimSpace(window), []byte{'{'}) ||
		bytes.HasPrefix(bytes.TrimSpace(window), []byte{'['})
	if wrong == nil || wrong.Cut && int64(len(window)) >= content.SniffSize || begun && wrong.Offset > 1 {
		return nil, nil
	}
	return k.Objects, nil
}

// membersRead returns the names of the members of a record that filters read, nil for all.
func (a args) membersRead(filters ...string) []string {
	names := []string{}
	for _, filter := range filters {
		p, err := plan.New(filter, a.Args, "", a.Slurp, a.Text)
		if err != nil || a.Slurp || p.Reads == nil || p.Reads.Indexed || p.Reads.Each != nil {
			return nil
		}
		names = slices.AppendSeq(names, maps.Keys(p.Reads.Keys))
	}
	return names
}

// lineNumber is the function of jq that returns the line number of a record.
const lineNumber = "input_line_number"

// withLines makes lineNumber work. It returns a writer of records with their line numbers, and what must stand before a
// filter: it takes the number from a record and defines lineNumber by it.
func withLines(src *source.Source, a args, write objects) (objects, string, error) {
	k := kinds.Of(src.Kind())
	from, value := "", "."
	switch {
	case a.Text || a.Slurp:
	case k == kinds.JSON, k == kinds.Text && write == nil: // perhaps a value a line
		write, from, value = kinds.NDJSON.Numbered, ".[0]", ".[1]"
	case k.Numbered != nil:
		write, from, value = k.Numbered, ".[0]", ".[1]"
	case k == kinds.Log, k == kinds.Text:
		from = ".line"
	}
	if from == "" {
		return nil, "", fmt.Errorf("jq: %s knows the line of a record of NDJSON, a table, a log or text, one at a time: "+
			"%s is %s; leave out slurp and text, or read it with slice", lineNumber, decode.Clip(src.Name), k.Name)
	}
	return write, fmt.Sprintf("%s as $__line | def %s: $__line; %s | ", from, lineNumber, value), nil
}

// objects writes the records of a text as JSON objects, one a line.
type objects func(ctx context.Context, r io.Reader, w io.Writer) error
