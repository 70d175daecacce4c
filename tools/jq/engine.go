package jq

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/itchyny/gojq"
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
	p, err := parse(j.Filter, j.Args, j.Name)
	if err != nil {
		return outcome{Compile: err.Error()}, nil //nolint:nilerr // it stands in the outcome
	}
	code, err := p.compile(p.query)
	if err != nil {
		return outcome{Compile: err.Error()}, nil //nolint:nilerr // it stands in the outcome
	}
	e := &engine{job: j, ctx: ctx, out: out, code: code, values: p.values}
	if f := p.elements(); f != nil && !j.Slurp && !j.Text {
		if e.each, err = p.compile(f); err != nil {
			return outcome{}, err
		}
	}
	switch {
	case j.Text && j.Slurp:
		err = e.whole(r)
	case j.Text:
		err = e.lines(r)
	default:
		err = e.records(r)
	}
	if errors.Is(err, errHalted) {
		err = nil
	}
	return e.outcome, err
}

type engine struct {
	*job
	ctx    context.Context
	out    rows
	code   *gojq.Code
	each   *gojq.Code // of one element of a top-level array, or nil
	values []any
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
func (e *engine) records(r io.Reader) (err error) {
	d := newDecoder(&watched{e.ctx, r})
	defer func() { e.Twice = d.twice }()
	all := []any{}
	for {
		if e.each != nil && d.kind() == '[' {
			err = e.elements(d)
		} else {
			var v any
			if v, err = d.next(); err == nil {
				if e.Slurp {
					all = append(all, v)
				} else {
					err = e.record(v)
				}
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return e.syntax(d, err)
		}
		e.out.progress(d.d.InputOffset())
	}
	if e.Slurp {
		return e.record(all)
	}
	return nil
}

// syntax turns what is wrong with the text into a place in the outcome.
func (e *engine) syntax(d *decoder, err error) error {
	var s *jsontext.SyntacticError
	if !errors.As(err, &s) {
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		s = &jsontext.SyntacticError{ByteOffset: d.d.InputOffset(), JSONPointer: d.d.StackPointer(), Err: err}
	}
	e.Broken = &broken{
		Offset: s.ByteOffset, Pointer: middle(string(s.JSONPointer)),
		Cut: errors.Is(s.Err, io.ErrUnexpectedEOF), Message: clip(s.Err.Error()),
	}
	return nil
}

// middle shortens a pointer to what can be shown.
func middle(s string) string {
	const most = 160
	if len(s) <= most {
		return s
	}
	return clip(s[:most/2]) + "…" + valid([]byte(s[len(s)-most/2:]))
}

// elements runs the rest of the filter on one element of an array after the
// other; as in jq, the first error ends the record, which is still read to its end.
func (e *engine) elements(d *decoder) error {
	if _, err := d.d.ReadToken(); err != nil {
		return err
	}
	record, before := e.Records, e.Results
	e.Records++
	failed := false
	for i := int64(0); d.kind() != ']'; i++ {
		if failed {
			if err := d.d.SkipValue(); err != nil {
				return unexpected(err)
			}
			continue
		}
		v, err := d.next()
		if err != nil {
			return unexpected(err)
		}
		message, err := e.apply(e.each, v)
		if message != "" {
			failed = true
			e.fail(failure{Record: record, Element: i, Results: e.Results - before, Message: message})
		}
		if err != nil {
			return err
		}
		if i&0xff == 0 {
			e.out.progress(d.d.InputOffset())
		}
	}
	_, err := d.d.ReadToken()
	return err
}

// record runs the filter on one value.
func (e *engine) record(v any) error {
	before := e.Results
	message, err := e.apply(e.code, v)
	if message != "" {
		e.fail(failure{Record: e.Records, Element: -1, Results: e.Results - before, Message: message})
	}
	e.Records++
	return err
}

func (e *engine) fail(f failure) {
	if e.Failed++; e.First == nil {
		e.First = &f
	}
}

// apply runs code on one value and hands on its results. The message is gojq's, where the filter fails.
func (e *engine) apply(code *gojq.Code, v any) (message string, err error) {
	defer func() {
		if r := recover(); r != nil { // gojq should not, and it must not take more than this run with it
			message, err = clip(fmt.Sprint("internal error of the filter's interpreter: ", r)), nil
		}
	}()
	results := code.RunWithContext(e.ctx, v, e.values...)
	for {
		v, ok := results.Next()
		if !ok {
			return "", nil
		}
		if failed, ok := v.(error); ok {
			if err := e.ctx.Err(); err != nil {
				return "", err
			}
			var halt *gojq.HaltError
			if errors.As(failed, &halt) {
				if halt.Value() == nil {
					return "", errHalted
				}
				return clip(failed.Error()), errHalted
			}
			return clip(failed.Error()), nil
		}
		if err := e.result(v); err != nil {
			return "", err
		}
	}
}

func (e *engine) result(v any) error {
	i := e.Results
	e.Results++
	if i < e.Offset || e.Limit > 0 && i >= e.Offset+e.Limit || !e.out.wanted() {
		return nil
	}
	if s, ok := v.(string); ok && e.Raw {
		return e.out.row([]byte(s))
	}
	b, err := gojq.Marshal(v)
	if err != nil {
		return err
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
