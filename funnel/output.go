package funnel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-funnel/mcp-funnel/funnel/capture"
	"github.com/mcp-funnel/mcp-funnel/funnel/page"
	"github.com/mcp-funnel/mcp-funnel/funnel/text"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/text/secrets"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

var (
	errEnded = errors.New("the call has ended")
	errBegun = errors.New("the output has begun: open its streams before anything is written")
	errPaged = errors.New("the output is a page: only rows may follow")
)

// Limits of images and notes, which are neither stored nor clipped as text.
const (
	maxImage  = 5 << 20  // bytes of one image
	maxImages = 20 << 20 // bytes of all images of an answer
	maxNotes  = 20
)

// output is the [tools.Output] of one call. Its lock guards against a tool that continues to write after its call has
// ended.
type output struct {
	ctx  context.Context
	mask *secrets.Masker

	mu       sync.Mutex
	ended    bool
	paged    bool // rows go to the page
	whole    bool // see [Request.Whole]: there are no pages
	kept     bool // the tool asked for its output to be kept
	origin   []string
	source   string
	name     string // see [tools.Output.Streams]
	capture  *capture.Writer
	page     *page.Page
	images   []*image
	counts   map[string]float64
	notes    []string
	found    []string                                // see [tools.Output.Findings]
	masked   int                                     // secrets masked in the notes
	quoted   bool                                    // see [tools.Output.Quoted]
	same     bool                                    // see [tools.Output.Since]
	since    string                                  // see [tools.Output.Since]
	replaces string                                  // see [tools.Output.Answered]
	stored   func(id string)                         // called when the output is stored; nil: nothing is
	record   func() (*observations.Recording, error) // opens the recording of the output
	store    func(tools.Stored) (string, error)      // see [tools.Output.Store]
	extra    any                                     // see [tools.Output.Attach]
	result   *tools.Result                           // see [tools.Output.Pass]
	resolve  func(name string) (string, bool)        // see [tools.Output.ResolveWith]

	progressMu sync.Mutex // held while a progress report is passed on
	progress   func(done, total int64, message string)
	held       atomic.Pointer[report] // the latest that was not passed on; nil: none
	pace       pace
}

func (o *output) ResolveWith(resolve func(name string) (string, bool)) {
	o.set(func() { o.resolve = resolve })
}

// ready returns an error if the call has ended or its context is done.
func (o *output) ready() error {
	if o.ended {
		return errEnded
	}
	return o.ctx.Err()
}

// writable returns an error if bytes must not be written: the call has ended, or rows of a page were.
func (o *output) writable() error {
	if err := o.ready(); err != nil || !o.paged || o.page.Empty() {
		return err
	}
	return errPaged
}

func (o *output) Write(p []byte) (int, error) { return o.write(p, o.capture.Write) }

func (o *output) write(p []byte, to writerFunc) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.writable(); err != nil {
		return 0, err
	}
	return to(p)
}

// writerFunc is an [io.Writer].
type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// Streams implements [tools.Output].
func (o *output) Streams(name string) func(stderr bool) io.Writer {
	late := false
	o.set(func() {
		if late = o.capture.Begun(); !late {
			o.name = name
			o.capture.SplitStreams()
		}
	})
	return func(stderr bool) io.Writer {
		switch {
		case late:
			return writerFunc(func([]byte) (int, error) { return 0, errBegun })
		case stderr:
			return writerFunc(func(p []byte) (int, error) { return o.write(p, o.capture.WriteStderr) })
		}
		return o
	}
}

func (o *output) Findings(lines []string) { o.set(func() { o.found = lines }) }

func (o *output) OnStored(f func(id string)) { o.set(func() { o.stored = f }) }

// Answered implements [tools.Output].
func (o *output) Answered(replaces string) {
	o.Keep()
	o.set(func() {
		o.replaces = replaces
		o.capture.MarkNews()
	})
}

func (o *output) Cut(n int64) { o.set(func() { o.capture.Cut(n) }) }

func (o *output) Quoted() { o.set(func() { o.quoted = true }) }

func (o *output) Since(says string, same bool) {
	o.set(func() {
		o.since, _ = o.mask.String(says)
		o.same = same
	})
}

func (o *output) Pass(r tools.Result) { o.set(func() { o.result = &r }) }

func (o *output) Attach(v any) { o.set(func() { o.extra = v }) }

// Store implements [tools.Output].
func (o *output) Store(s tools.Stored) (string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.ready(); err != nil {
		return "", err
	}
	return o.store(s)
}

// add calls toPage if rows go to the page, else it writes the parts.
func (o *output) add(toPage func() error, parts ...[]byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.ready(); err != nil {
		return err
	}
	if o.paged {
		return toPage()
	}
	for _, b := range parts {
		_, _ = o.capture.Write(b) // never fails
	}
	return nil
}

func (o *output) Row(b []byte, more tools.Call) error {
	return o.add(func() error { return o.page.AddRow(b, more) }, b, []byte{'\n'})
}

func (o *output) Text(b []byte) error {
	return o.add(func() error { return o.page.AddText(b) }, b)
}

func (o *output) TruncatedRow(head, tail []byte, between int64, more tools.Call) error {
	if o.whole {
		return fmt.Errorf("a row of over %d chars is too long for this: slice chars=… reads a part of it, jq save=true keeps it",
			between)
	}
	return o.add(func() error { return o.page.AddTruncatedRow(head, tail, between, more) },
		head, []byte(text.LeftOut(between)), tail, []byte{'\n'})
}

// bytesThatFit is the [tools.Input.BytesThatFit] of the call.
func (o *output) bytesThatFit(b []byte) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.paged || o.ready() != nil { // Row then returns the error
		return len(b)
	}
	return o.page.BytesThatFit(b)
}

// set runs f under the lock, unless the tool has ended.
func (o *output) set(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.ended {
		f()
	}
}

// Page implements [tools.Output]: the output is the page too. What is stored as a whole stays so.
func (o *output) Page() tools.Page {
	o.set(func() {
		if !o.capture.Begun() {
			o.paged = !o.kept && !o.whole
		}
	})
	return o
}

func (o *output) SetRowRange(first, total int64) {
	o.set(func() { o.page.SetRowRange(first, total) })
}

func (o *output) SetTextRange(unit string, from, to, total int64) {
	o.set(func() { o.page.SetTextRange(unit, from, to, total) })
}

func (o *output) Next(c tools.Call) { o.set(func() { o.page.SetNext(c) }) }

func (o *output) Keep(from ...string) {
	o.set(func() {
		o.origin = append(o.origin, from...)
		if o.kept {
			return
		}
		o.kept, o.paged, o.source = true, false, ""
		o.capture.RecordWith(o.record)
	})
}

func (o *output) Source(name string) {
	o.set(func() {
		if !o.kept {
			o.source = name
			o.capture.SetName(name)
			o.capture.Discard()
		}
	})
}

func (o *output) Count(name string, n float64) {
	o.set(func() {
		if o.counts == nil {
			o.counts = map[string]float64{}
		}
		if len(o.counts) < 100 {
			o.counts[name] = n
		}
	})
}

func (o *output) Note(note string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.note(note)
}

// note appends a note; the caller holds o.mu.
func (o *output) note(note string) {
	if note = strings.TrimSpace(note); note != "" && !o.ended && len(o.notes) < maxNotes {
		note, n := o.mask.String(note)
		o.masked += n
		o.notes = append(o.notes, note)
	}
}

// image collects an image that the tool writes.
type image struct {
	o          *output
	mime, name string
	data       []byte
	tooLarge   bool
}

func (o *output) Part(mime, name string) io.Writer {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := &image{o: o, mime: mime, name: name}
	if !o.ended {
		o.images = append(o.images, p)
	}
	return p
}

// Write never fails for an image that is too large: a note reports it, and it is not shown.
func (p *image) Write(b []byte) (int, error) {
	p.o.mu.Lock()
	defer p.o.mu.Unlock()
	if err := p.o.ready(); err != nil {
		return 0, err
	}
	all, label := len(b), cmp.Or(p.name, p.mime)
	for _, q := range p.o.images {
		all += len(q.data)
	}
	switch {
	case p.tooLarge:
	case len(p.data)+len(b) > maxImage:
		p.tooLarge, p.data = true, nil
		p.o.note(fmt.Sprintf("%s is over %d MiB and is not shown", label, maxImage>>20))
	case all > maxImages:
		p.tooLarge, p.data = true, nil
		p.o.note(fmt.Sprintf("%s is not shown: an answer takes at most %d MiB of images", label, maxImages>>20))
	default:
		p.data = append(p.data, b...)
	}
	return len(b), nil
}

const (
	progressEvery = 100 * time.Millisecond // average time between two progress reports
	progressSaved = time.Second            // longest time without reports that later ones may make up for
)

// pace holds back reports that come too often. Reports that come late, and therefore close to the next ones, are let
// through: one every progressEvery since the call began is, however unevenly they arrive.
type pace struct{ next time.Time }

// allows reports whether a report may be passed on now, and counts it if so.
func (p *pace) allows(now time.Time) bool {
	if now.Before(p.next) {
		return false
	}
	if saved := now.Add(-progressSaved); p.next.Before(saved) {
		p.next = saved
	}
	p.next = p.next.Add(progressEvery)
	return true
}

// report is one report of progress.
type report struct {
	done, total int64
	message     string
}

// Progress passes a report on, or holds it until one may pass: the latest before a pause is never dropped.
func (o *output) Progress(done, total int64, message string) {
	now := report{done, total, message}
	if o.progressMu.TryLock() { // else another report is being passed on
		defer o.progressMu.Unlock()
		if o.progress == nil {
			return
		}
		if o.pace.allows(time.Now()) {
			o.held.Store(nil)
			o.pass(now)
			return
		}
	}
	if o.held.Swap(&now) == nil {
		time.AfterFunc(progressEvery, o.passHeld)
	}
}

// passHeld passes the report on that is held, if any.
func (o *output) passHeld() {
	o.progressMu.Lock()
	defer o.progressMu.Unlock()
	if r := o.held.Swap(nil); r != nil && o.progress != nil {
		o.pace.allows(time.Now())
		o.pass(*r)
	}
}

// pass passes a report on. The caller holds progressMu.
func (o *output) pass(r report) {
	message, _ := o.mask.String(r.message)
	o.progress(r.done, r.total, text.VisibleLine(message, false))
}

// close ends the output: later writes fail, and no progress is reported any more.
func (o *output) close() {
	o.passHeld()
	o.progressMu.Lock()
	o.progress = nil
	o.progressMu.Unlock()
	o.mu.Lock()
	o.ended = true
	o.mu.Unlock()
}
