package funnel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/mcp-funnel/mcp-funnel/internal/secrets"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

var (
	errEnded = errors.New("the call has ended")
	errLate  = errors.New("the tool asked for it too late")
)

// Bounds of what is neither kept nor clipped as text.
const (
	maxPart  = 5 << 20  // bytes of one image
	maxParts = 20 << 20 // of all of an answer
	maxNotes = 20
)

// output is the tools.Output of one call. A lock makes it safe against a tool
// that goes on writing after its call has ended; it need not be fast, for what is written is gathered below it.
type output struct {
	ctx  context.Context
	mask *secrets.Masker

	mu      sync.Mutex
	ended   bool
	paged   bool // rows go to the page
	kept    bool // the tool asked for its output to be kept
	origin  []string
	source  string
	pass    *pass
	page    *page
	parts   []*part
	counts  map[string]float64
	notes   []string
	found   int    // secrets masked in the notes
	started func() // before the first byte is kept

	report   sync.Mutex // held while a progress report is handed on
	progress func(done, total int64, message string)
	last     time.Time
}

// usable says whether the tool may still speak.
func (o *output) usable() error {
	if o.ended {
		return errEnded
	}
	return o.ctx.Err()
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.usable(); err != nil {
		return 0, err
	}
	o.pass.write(p)
	return len(p), nil
}

func (o *output) Row(b []byte, more tools.Call) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.usable(); err != nil {
		return err
	}
	if o.paged {
		return o.page.row(b, more)
	}
	o.pass.write(b)
	o.pass.write([]byte{'\n'})
	return nil
}

func (o *output) Stretch(b []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.usable(); err != nil {
		return err
	}
	if o.paged {
		return o.page.stretch(b)
	}
	o.pass.write(b)
	return nil
}

func (o *output) Cut(head, tail []byte, between int64, more tools.Call) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.usable(); err != nil {
		return err
	}
	if o.paged {
		return o.page.cut(head, tail, between, more)
	}
	for _, b := range [][]byte{head, []byte(leftOut(between)), tail, {'\n'}} {
		o.pass.write(b)
	}
	return nil
}

// fit is the [tools.Input.Fit] of the call.
func (o *output) fit(text []byte) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.paged || o.usable() != nil { // then Row says why it takes nothing
		return len(text)
	}
	return o.page.fit(text)
}

func (o *output) Span(first, total int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		return
	}
	o.page.used = true
	o.page.spanned, o.page.first, o.page.total = true, max(first, 0), max(total, -1)
}

func (o *output) Reach(unit string, from, to, total int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		return
	}
	o.page.used = true
	o.page.reach = &reach{unit, from, to, total}
}

func (o *output) Next(c tools.Call) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		return
	}
	o.page.used = true
	o.page.next = &c
}

func (o *output) Keep(from ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		return
	}
	o.origin = append(o.origin, from...)
	if o.kept {
		return
	}
	o.kept, o.paged, o.source = true, false, ""
	o.started()
}

func (o *output) Source(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		return
	}
	if !o.kept {
		o.source, o.pass.name = name, name
		o.pass.forget()
	}
}

func (o *output) Count(name string, n float64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		return
	}
	if o.counts == nil {
		o.counts = map[string]float64{}
	}
	if len(o.counts) < 100 {
		o.counts[name] = n
	}
}

func (o *output) Note(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.note(text)
}

func (o *output) note(text string) {
	if text = strings.TrimSpace(text); text != "" && !o.ended && len(o.notes) < maxNotes {
		text, n := o.mask.String(text)
		o.found += n
		o.notes = append(o.notes, text)
	}
}

// part is an image on its way.
type part struct {
	o          *output
	mime, name string
	data       []byte
	over       bool
}

func (o *output) Part(mime, name string) io.Writer {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := &part{o: o, mime: mime, name: name}
	if !o.ended {
		o.parts = append(o.parts, p)
	}
	return p
}

// Write takes more of the image; one that is too large is told, not shown, and does not fail the tool.
func (p *part) Write(b []byte) (int, error) {
	p.o.mu.Lock()
	defer p.o.mu.Unlock()
	if err := p.o.usable(); err != nil {
		return 0, err
	}
	all := len(b)
	for _, q := range p.o.parts {
		all += len(q.data)
	}
	switch {
	case p.over:
	case len(p.data)+len(b) > maxPart:
		p.over, p.data = true, nil
		p.o.note(fmt.Sprintf("%s is over %d MiB and is not shown", p.word(), maxPart>>20))
	case all > maxParts:
		p.over, p.data = true, nil
		p.o.note(fmt.Sprintf("%s is not shown: an answer takes at most %d MiB of images", p.word(), maxParts>>20))
	default:
		p.data = append(p.data, b...)
	}
	return len(b), nil
}

func (p *part) word() string {
	if p.name != "" {
		return p.name
	}
	return p.mime
}

// progressEvery is how often progress is passed on at most.
const progressEvery = 100 * time.Millisecond

func (o *output) Progress(done, total int64, message string) {
	if !o.report.TryLock() {
		return // another report is on its way
	}
	defer o.report.Unlock()
	if o.progress == nil || time.Since(o.last) < progressEvery {
		return
	}
	o.last = time.Now()
	message, _ = o.mask.String(message)
	o.progress(done, total, visibleLine(message, false))
}

// end takes the word from the tool. After it no byte is taken and no progress passed on.
func (o *output) end() {
	o.report.Lock()
	o.progress = nil
	o.report.Unlock()
	o.mu.Lock()
	o.ended = true
	o.counts = maps.Clone(o.counts)
	o.mu.Unlock()
}
