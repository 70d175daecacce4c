package funnel

import (
	"bytes"
	"io"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/internal/panics"
	"github.com/mcp-funnel/mcp-funnel/internal/secrets"
	"github.com/mcp-funnel/mcp-funnel/internal/summary"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tokens"
)

// chunk is how many bytes go through the pass at a time: short writes are
// gathered, long ones divided, and each chunk ends between two chars. An output of at most one chunk is
// read by who writes it; of a longer one the digest, and file and tokens, are made beside it: see beside.
const chunk = 64 << 10

// Of an output of over longOutput bytes longChunk go through at a time: its blocks are handed on a quarter as often.
const (
	longOutput = 1 << 20
	longChunk  = 256 << 10
)

// pass hands every byte an output consists of to all who want to see it, once, in order.
type pass struct {
	edges  *edges
	name   string          // of the file the output is, where it is one: a hint for its kind
	digest *summary.Digest // made for the first chunk
	held   bool            // it has read nothing: hold is all there is to read
	tally  *tokens.Tally
	rec    *observations.Recording // nil: not recorded
	recErr error                   // why not, where it should have been

	mask   *secrets.Stream
	redact bool   // what is kept is masked too
	bare   *edges // of what is shown, from the first secret on; nil: nothing was masked

	buf  []byte // what has not gone through yet; at most what its block has room for, or chunk bytes
	in   *block // buf stands in; nil: by itself
	free blocks
	read *beside // of the digest; nil: nothing was handed on yet
	save *beside // of the recording and the tally

	defect any // what one of them panicked with; known when the pass is closed

	hold []byte // the beginning of what is shown, at most limit bytes, should it be shown whole
	raw  []byte // the same before its secrets were masked, from the first one on; nil: hold is
	over bool   // it is longer than that

	encoding content.Encoding // by its first chunk
	decoder  io.WriteCloser   // makes the text of it; nil where the bytes are the text
	text     []byte           // what came of it and has not gone through yet
	bytes    int64            // that went into it
	stored   []byte           // what hold is the text of, as it was written

	limit int
	begin func() (*observations.Recording, error) // nil: nothing is to be kept
	asked bool                                    // begin was called
	moved bool                                    // something went through
}

func newPass(l Limits, counter *tokens.Counter, mask *secrets.Masker, limit int) *pass {
	return &pass{
		mask:  mask.Stream(),
		edges: newEdges(l.HeadLines, l.TailLines),
		tally: counter.Tally(),
		limit: limit,
	}
}

func (p *pass) write(b []byte) {
	for len(b) > 0 {
		if p.in == nil && len(p.buf)+len(b) > chunk/16 {
			p.in = p.free.take()
			p.buf = append(p.in.data, p.buf...)
		}
		room := chunk
		if p.in != nil {
			room = cap(p.in.data)
		}
		n := min(room-len(p.buf), len(b))
		p.buf = append(p.buf, b[:n]...)
		b = b[n:]
		if len(p.buf) == room {
			p.flush(false)
			if d := p.failed(); d != nil {
				panic(d) // a defect shows in the tool's write, as if nothing ran beside it
			}
		}
	}
}

// flush sends on what of the buffer is certain.
func (p *pass) flush(final bool) {
	n := len(p.buf)
	if !final {
		n -= partial(p.buf)
		p.keep()
	}
	b := p.buf[:n]
	if !p.moved && n > 0 {
		p.moved = true
		p.digest = summary.New(p.name)
		p.encoding = content.Detect(b, final)
		p.decoder = p.encoding.Writer((*decoded)(p))
	}
	if p.decoder == nil {
		n = p.through(b, final)
	} else {
		p.decode(b, final)
	}
	if !final {
		p.turn(n)
	}
}

// turn leaves in the buffer what stands behind n, in another block where the one it stands in may still be read.
func (p *pass) turn(n int) {
	rest := p.buf[n:]
	if p.read == nil {
		p.buf = p.buf[:copy(p.buf, rest)]
		return
	}
	old := p.in
	if p.edges.bytes > longOutput {
		p.free.room = longChunk
	}
	p.in = p.free.take()
	p.buf = append(p.in.data, rest...)
	p.free.release(old)
}

// decode has the text of b go through; what is kept are the bytes.
func (p *pass) decode(b []byte, final bool) {
	p.bytes += int64(len(b))
	if !p.redact {
		p.record(b)
	}
	if !p.over {
		p.stored = append(p.stored, b...)
	}
	_, _ = p.decoder.Write(b) // what it writes to never fails
	if final {
		_ = p.decoder.Close()
	}
	n := p.through(p.text, final)
	p.text = p.text[:copy(p.text, p.text[n:])]
}

// decoded is where the decoder of a pass writes to. A chunk is at most three times as long as text.
type decoded pass

func (d *decoded) Write(b []byte) (int, error) {
	d.text = append(d.text, b...)
	return len(b), nil
}

// through has what is certain of a text seen by all: as it is by those who count it, with its secrets masked by those
// who show it. Both are the same bytes where there is no secret. It returns how much of the text that was.
func (p *pass) through(text []byte, final bool) int {
	n, shown := p.mask.Next(text, final)
	if n == 0 {
		return 0
	}
	b := text[:n]
	if p.redact {
		b = shown
	}
	if p.bare == nil && !same(b, shown) {
		p.bare, p.raw = p.edges.fork(), bytes.Clone(p.hold)
	}
	if p.bare != nil {
		_, _ = p.bare.Write(shown)
	}
	p.hand(b, shown, final)
	_, _ = p.edges.Write(b)
	if !p.over {
		p.over = max(len(p.hold)+len(shown), len(p.raw)+len(b)) > p.limit
		p.hold = append(p.hold, shown[:min(p.limit-len(p.hold), len(shown))]...)
		if p.bare != nil {
			p.raw = append(p.raw, b[:min(p.limit-len(p.raw), len(b))]...)
		}
	}
	return n
}

// hand has b kept and counted, and what is shown of it summarised: beside this where more may follow.
func (p *pass) hand(b, shown []byte, final bool) {
	switch {
	case p.read != nil:
	case final || p.decoder != nil: // a decoder's text stands in no block
		p.keepAndCount(b)
		if p.held = final && p.edges.bytes == 0 && len(shown) < min(littleText, p.limit); !p.held {
			_, _ = p.digest.Write(shown)
		}
		return
	default:
		p.read = newBeside(&p.free, func(text []byte) { _, _ = p.digest.Write(text) })
		p.save = newBeside(&p.free, p.keepAndCount)
	}
	p.save.read(job{b, p.in})
	p.read.read(job{shown, p.in})
}

func (p *pass) keepAndCount(b []byte) {
	if p.decoder == nil || p.redact {
		p.record(b)
	}
	_, _ = p.tally.Write(b)
}

func (p *pass) record(b []byte) {
	if p.rec != nil {
		_, _ = p.rec.Write(b) // what it cannot keep it counts
	}
}

// settle waits for what is read beside this. After it all is this goroutine's.
func (p *pass) settle() {
	if p.read != nil {
		p.save.settle()
		p.read.settle()
	}
}

// failed is what a reader beside this panicked with.
func (p *pass) failed() any {
	if d := p.save.defect(); d != nil {
		return d
	}
	return p.read.defect()
}

// same says that two texts are the same bytes in memory.
func same(a, b []byte) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// written is the output's beginning as it is kept.
func (p *pass) written() []byte {
	switch {
	case p.decoder != nil && !p.redact:
		return p.stored
	case p.bare != nil:
		return p.raw
	}
	return p.hold
}

// keep starts the recording, before the first byte goes through or with what is held of a short output.
func (p *pass) keep() {
	if p.asked || p.begin == nil {
		return
	}
	p.settle()
	p.asked = true
	if p.rec, p.recErr = p.begin(); p.rec == nil || !p.moved {
		return
	}
	if p.over {
		_ = p.rec.Discard()
		p.rec, p.recErr = nil, errLate
		return
	}
	_, _ = p.rec.Write(p.written())
}

// forget drops the recording: nothing of this output is kept.
func (p *pass) forget() {
	p.begin = nil
	p.settle()
	if p.rec != nil {
		_ = p.rec.Discard()
		p.rec = nil
	}
}

// seen is what the pass found.
type seen struct {
	*edges // its head and tail are masked
	summary.Summary
	digest *summary.Digest // that has read nothing, where Summary has only the kind yet …
	text   []byte          // … of this
	total  tokens.Total
}

// summarise makes the Summary of what is not shown whole.
func (s *seen) summarise() {
	if s.digest != nil {
		_, _ = s.digest.Write(s.text)
		s.Summary, s.digest = s.digest.Close(), nil
	}
}

// close ends the pass; nothing may be written any more.
func (p *pass) close() seen {
	p.flush(true)
	p.settle()
	p.free.release(p.in)
	p.free.end()
	p.buf, p.in = nil, nil
	if p.defect = p.failed(); p.defect != nil { // some of it may be missing
		p.forget()
		p.recErr = errDefect
	}
	if p.decoder != nil && !p.redact {
		p.edges.bytes = p.bytes // as it was written, and is kept
	}
	p.edges.close()
	if p.bare != nil {
		p.bare.close()
		p.edges.head, p.edges.tail, p.edges.next = p.bare.head, p.bare.tail, p.bare.next
	}
	s := seen{edges: p.edges}
	total := p.total()
	s.Summary = summary.Summary{Kind: content.Text, Records: -1, Matches: -1, Files: -1}
	switch {
	case p.digest == nil || p.defect != nil:
	case p.held:
		s.Kind, s.digest, s.text = content.Sniff(p.hold, true, p.name), p.digest, p.hold
		if s.Kind == content.JSON || s.Kind == content.NDJSON { // its matches are told of a whole, too
			s.summarise()
		}
	default:
		s.Summary = p.digest.Close()
	}
	s.total = total()
	return s
}

// littleText is counted sooner than another goroutine begins to, in bytes. Most of it is shown whole: no summary is made before it is
// known that one is needed.
const littleText = 8 << 10

// total has the rest counted beside this; what it returns waits for that.
func (p *pass) total() func() tokens.Total {
	var total tokens.Total
	if p.edges.bytes < littleText {
		total = p.tally.Total()
		return func() tokens.Total { return total }
	}
	var defect error
	done := make(chan struct{})
	go func() {
		defer close(done)
		panics.Into(&defect, func() { total = p.tally.Total() })
	}()
	return func() tokens.Total {
		<-done
		_ = panics.Again(defect)
		return total
	}
}
