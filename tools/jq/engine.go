package jq

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"unicode/utf8"

	"github.com/itchyny/gojq"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
)

// job is one run of a filter over a text, in this process or in a worker: the answers are the same.
type job struct {
	Name   string                     `json:"name"` // of the source
	Filter string                     `json:"filter"`
	Args   map[string]json.RawMessage `json:"args,omitempty"`
	Raw    bool                       `json:"raw,omitempty"`
	Slurp  bool                       `json:"slurp,omitempty"`
	Text   bool                       `json:"text,omitempty"`
	Offset int64                      `json:"offset,omitempty"` // results that are only counted
	Limit  int64                      `json:"limit,omitempty"`  // results wanted after those; 0: all
	Size   int64                      `json:"size,omitempty"`   // bytes of the file, where it is read by position; else it is a pipe

	window int // bytes, in tests; 0: windowSize
}

// rows takes results.
type rows interface {
	row(b []byte) error   // one that is wanted
	wanted() bool         // false: the rest need only be counted
	progress(bytes int64) // of the text, so far; cheap
}

// outcome is how a run went.
type outcome struct {
	Results int64      `json:"results"` // all of them, wanted or not
	Records int64      `json:"records"` // texts the filter was run on
	Failed  int64      `json:"failed,omitempty"`
	First   *failure   `json:"first,omitempty"`
	Broken  *broken    `json:"broken,omitempty"` // where reading ended before the end of the text
	Twice   *duplicate `json:"twice,omitempty"`
	Open    bool       `json:"open,omitempty"`    // the last record is a number or literal, which the text ends with: it is complete to jq
	Compile string     `json:"compile,omitempty"` // the filter does not compile: nothing was run
}

// failure is a record on which the filter failed.
type failure struct {
	Record  int64  `json:"record"`
	Element int64  `json:"element"` // of the array that the record is, where it was read element by element; else -1
	Results int64  `json:"results"` // that the record gave before it failed
	Message string `json:"message"`
}

// broken says where the text is not JSON.
type broken struct {
	Offset  int64  `json:"offset"`
	Pointer string `json:"pointer"`
	Cut     bool   `json:"cut"` // it just ends
	Message string `json:"message"`
}

// run runs the filter over the whole text. The error is of the reader, of rows
// or of ctx; what is wrong with filter and text stands in the outcome.
func (j *job) run(ctx context.Context, r io.Reader, out rows) (outcome, error) {
	p, err := j.prepare()
	if err != nil {
		return outcome{Compile: err.Error()}, nil //nolint:nilerr // it stands in the outcome
	}
	e := &engine{job: j, ctx: ctx, out: out, prepared: p}
	e.again, _ = r.(byPosition)
	switch {
	case j.Text && j.Slurp:
		err = e.whole(r)
	case j.Text:
		err = e.lines(r)
	default:
		err = e.records(r)
	}
	if errors.Is(err, errHalted) || errors.Is(err, errBroken) {
		err = nil
	}
	return e.outcome, err
}

// byPosition is a text that can be read twice.
type byPosition interface {
	io.ReaderAt
	Size() int64
}

type engine struct {
	*job
	*prepared
	ctx context.Context
	out rows

	again byPosition // the text, where it can be read twice
	spine []frame    // what is open where large values are taken apart
	quick quick
	keys  map[string]string // of all slow decoders
	twice atomic.Bool       // a key stood twice
	full  atomic.Bool       // no more rows are wanted
	outcome
}

// errHalted ends a run regularly: the filter called halt.
var errHalted = errors.New("halted")

// whole takes the text as one string.
func (e *engine) whole(r io.Reader) error {
	b, err := io.ReadAll(&watched{e.ctx, r})
	if err != nil {
		return err
	}
	return e.record(valid(b))
}

// lines takes each line as a string, without its newline.
func (e *engine) lines(r io.Reader) error {
	b := bufio.NewReaderSize(&watched{e.ctx, r}, 64<<10)
	var at int64
	for {
		line, err := b.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return err
		}
		if len(line) > 0 {
			at += int64(len(line))
			if line[len(line)-1] == '\n' {
				line = line[:len(line)-1]
			}
			if err := e.record(valid(line)); err != nil {
				return err
			}
			e.out.progress(at)
		}
		if err == io.EOF {
			return nil
		}
	}
}

// valid is the text with U+FFFD in place of each byte that is not UTF-8.
func valid(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	return string([]rune(string(b)))
}

// records takes JSON values, one after the other.
func (e *engine) records(r io.Reader) error {
	w := newView(&watched{e.ctx, r}, e.windowFor())
	s := &sequence{e: e, node: e.reads}
	all := []any{}
	if e.Slurp {
		s.node, s.blind = e.reads.element(), e.reads.nothing()
		s.unit = func(v any) error {
			all = append(all, v)
			return nil
		}
	} else {
		s.unit, s.record = e.record, e.large
		if e.inElements() {
			s.elements = e.elements
		}
		if e.cheap {
			s.ahead, s.merge, s.sieve = e.recordAhead, e.merge, e.sieve
		}
	}
	if err := s.drive(w); err != nil || !e.Slurp {
		return err
	}
	return e.record(all)
}

// windowFor is how much is read at once: no more than there is, where that is known.
func (e *engine) windowFor() int {
	switch {
	case e.window > 0:
		return e.window
	case e.again != nil && e.again.Size() < windowSize:
		return int(max(e.again.Size(), 0)) + 1<<10
	}
	return windowSize
}

// inElements says that an array is told of by its elements, whatever its size.
func (e *engine) inElements() bool {
	return e.plan != nil && e.plan.flows() && e.plan.path == nil && e.plan.from == 0 && e.plan.to < 0
}

// recordAhead runs the filter on a record in a lane.
func (e *engine) recordAhead(v any, m *made) {
	before := m.n
	f, err := e.on(v, func(v any) error { return m.add(e, v, asRow) })
	if f != nil {
		f.Record, f.Results = m.records, m.n-before
		if m.failed++; m.first == nil {
			m.first = f
		}
	}
	m.records++
	m.err = err
}

// merge hands on what a lane made of records.
func (e *engine) merge(m *made) error {
	if err := m.each(e.row); err != nil {
		return err
	}
	e.Results += m.n - int64(len(m.ends))
	if m.first != nil {
		m.first.Record += e.Records
		e.fail(*m.first)
		e.Failed += m.failed - 1
	}
	e.Records += m.records
	return m.err
}

// large runs the filter on a record that is too large to be held.
func (e *engine) large(w *view, c byte) error {
	record, before := e.Records, e.Results
	switch {
	case e.plan == nil:
	case e.inElements() && c == '[':
		e.Records++
		h, err := e.stream(w)
		if err != nil {
			return err
		}
		return h.finish(record, before, true)
	case c == e.plan.opens() && (!e.plan.flows() || e.again != nil):
		return e.along(w)
	}
	v, err := e.big(w, c, e.reads)
	if err != nil {
		return err
	}
	return e.record(v)
}

// middle shortens a pointer to what can be shown, in one line.
func middle(s string) string {
	const most = 160
	s = content.VisibleLine(s)
	if len(s) <= most {
		return s
	}
	return clip(s[:most/2]) + "…" + valid([]byte(s[len(s)-most/2:]))
}

// elements runs the rest of the filter on one element of an array after the
// other, by the slow decoder; as in jq, the first error ends the record, which is still read to its end.
func (e *engine) elements(d *decoder) error {
	if _, err := d.d.ReadToken(); err != nil {
		return err
	}
	record, before := e.Records, e.Results
	e.Records++
	failed := false
	for i := int64(0); d.kind() != ']'; i++ {
		v, err := e.part(d, e.eachReads, failed)
		if err != nil {
			return unexpected(err)
		}
		if failed {
			continue
		}
		r := e.run(e.each, v, e.result)
		if r.message != "" {
			failed = true
			e.fail(failure{Record: record, Element: i, Results: e.Results - before, Message: r.message})
		}
		if r.err != nil {
			return r.err
		}
	}
	_, err := d.d.ReadToken()
	return err
}

// record runs the filter on one value.
func (e *engine) record(v any) error {
	before := e.Results
	f, err := e.on(v, e.result)
	if f != nil {
		f.Record, f.Results = e.Records, e.Results-before
		e.fail(*f)
	}
	e.Records++
	return err
}

// on runs the filter on one value, or on one element of it after the other, and says where it failed.
func (e *engine) on(v any, emit func(any) error) (*failure, error) {
	a, ok := v.([]any)
	if !ok || !e.inElements() {
		r := e.run(e.code, v, emit)
		if r.message == "" {
			return nil, r.err
		}
		return &failure{Element: -1, Message: r.message}, r.err
	}
	for i, v := range a {
		r := e.run(e.each, v, emit)
		if r.message != "" {
			return &failure{Element: int64(i), Message: r.message}, r.err
		}
		if r.err != nil {
			return nil, r.err
		}
	}
	return nil, nil
}

func (e *engine) fail(f failure) {
	if e.Failed++; e.First == nil {
		e.First = &f
	}
}

// run runs a filter on one value and hands on its results; nil: the value itself. Lanes run several at once.
func (e *engine) run(f *filter, v any, emit func(any) error) (r ran) {
	if f == nil {
		return ran{err: emit(v)}
	}
	if f.direct != nil {
		switch w, a := f.direct(v); a {
		case noResult:
			return ran{}
		case oneResult:
			return ran{err: emit(w)}
		}
	}
	defer func() {
		if p := recover(); p != nil { // gojq should not, and it must not take more than this run with it
			r = ran{message: clip(fmt.Sprint("internal error of the filter's interpreter: ", p))}
		}
	}()
	results := f.code.RunWithContext(e.ctx, v, e.values...)
	for {
		v, ok := results.Next()
		if !ok {
			return ran{}
		}
		if failed, ok := v.(error); ok {
			if err := e.ctx.Err(); err != nil {
				return ran{err: err}
			}
			var halt *gojq.HaltError
			if errors.As(failed, &halt) {
				if halt.Value() == nil {
					return ran{err: errHalted}
				}
				return ran{clip(failed.Error()), errHalted}
			}
			return ran{message: clip(failed.Error())}
		}
		if err := emit(v); err != nil {
			return ran{err: err}
		}
	}
}

// wanted says that the next result is one to be shown.
func (e *engine) wanted() bool {
	if e.Limit > 0 && e.Results >= e.Offset+e.Limit || !e.out.wanted() {
		e.full.Store(true)
		return false
	}
	return e.Results >= e.Offset
}

func (e *engine) result(v any) error {
	if !e.wanted() {
		e.Results++
		return nil
	}
	b, err := e.write(v, asRow)
	if err != nil {
		return err
	}
	return e.row(b)
}

// row hands on a result that is written.
func (e *engine) row(b []byte) error {
	wanted := e.wanted()
	e.Results++
	if !wanted {
		return nil
	}
	return e.out.row(b)
}

// watched is a reader that ends with its context.
type watched struct {
	ctx context.Context
	r   io.Reader
}

func (w *watched) Read(b []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.r.Read(b)
}
