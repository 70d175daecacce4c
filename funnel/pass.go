package funnel

import (
	"io"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/internal/summary"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tokens"
)

// chunk is how many bytes go through the pass at a time: short writes are
// gathered, long ones divided, and each chunk ends between two chars.
const chunk = 32 << 10

// pass hands every byte an output consists of to all who want to see it, once, in order.
type pass struct {
	edges  *edges
	name   string          // of the file the output is, where it is one: a hint for its kind
	digest *summary.Digest // made for the first chunk
	tally  *tokens.Tally
	rec    *observations.Recording // nil: not recorded
	recErr error                   // why not, where it should have been

	buf  []byte // what has not gone through yet; at most chunk bytes
	hold []byte // the output's beginning as text, at most limit bytes, should it be shown whole
	over bool   // it is longer than that

	encoding content.Encoding // by its first chunk
	decoder  io.WriteCloser   // makes the text of it; nil where the bytes are the text
	bytes    int64            // that went into it
	stored   []byte           // what hold is the text of, as it was written

	limit  int
	record func() (*observations.Recording, error) // nil: nothing is to be kept
	asked  bool                                    // record was called
	moved  bool                                    // something went through
}

func newPass(l Limits, counter *tokens.Counter, limit int) *pass {
	return &pass{
		edges: newEdges(l.HeadLines, l.TailLines),
		tally: counter.Tally(),
		limit: limit,
	}
}

func (p *pass) write(b []byte) {
	for len(b) > 0 {
		n := min(chunk-len(p.buf), len(b))
		p.buf = append(p.buf, b[:n]...)
		b = b[n:]
		if len(p.buf) == chunk {
			p.flush(false)
		}
	}
}

func (p *pass) flush(final bool) {
	n := len(p.buf)
	if !final {
		n -= partial(p.buf)
		p.keep()
	}
	if n == 0 {
		return
	}
	b := p.buf[:n]
	if !p.moved {
		p.moved = true
		p.digest = summary.New(p.name)
		p.encoding = content.Detect(b, final)
		p.decoder = p.encoding.Writer((*decoded)(p))
	}
	if p.rec != nil {
		_, _ = p.rec.Write(b) // what it cannot keep it counts
	}
	if p.decoder == nil {
		p.text(b)
	} else {
		p.bytes += int64(n)
		if !p.over {
			p.stored = append(p.stored, b...)
		}
		_, _ = p.decoder.Write(b) // what it writes to never fails
	}
	p.buf = p.buf[:copy(p.buf, p.buf[n:])]
}

// text hands on what there is to read.
func (p *pass) text(b []byte) {
	_, _ = p.edges.Write(b)
	_, _ = p.digest.Write(b)
	_, _ = p.tally.Write(b)
	if room := p.limit - len(p.hold); !p.over {
		p.hold = append(p.hold, b[:min(room, len(b))]...)
		p.over = len(b) > room
	}
}

// decoded is where the decoder of a pass writes to.
type decoded pass

func (d *decoded) Write(b []byte) (int, error) {
	(*pass)(d).text(b)
	return len(b), nil
}

// keep starts the recording, before the first byte goes through or with what is held of a short output.
func (p *pass) keep() {
	if p.asked || p.record == nil {
		return
	}
	p.asked = true
	if p.rec, p.recErr = p.record(); p.rec == nil || !p.moved {
		return
	}
	if p.over {
		_ = p.rec.Discard()
		p.rec, p.recErr = nil, errLate
		return
	}
	if p.decoder != nil {
		_, _ = p.rec.Write(p.stored)
	} else {
		_, _ = p.rec.Write(p.hold)
	}
}

// forget drops the recording: nothing of this output is kept.
func (p *pass) forget() {
	p.record = nil
	if p.rec != nil {
		_ = p.rec.Discard()
		p.rec = nil
	}
}

// seen is what the pass found.
type seen struct {
	*edges
	summary.Summary
	total tokens.Total
}

// close ends the pass; nothing may be written any more.
func (p *pass) close() seen {
	p.flush(true)
	if p.decoder != nil {
		_ = p.decoder.Close()
		p.edges.bytes = p.bytes // as it was written, and is kept
	}
	p.edges.close()
	s := seen{edges: p.edges, total: p.tally.Total()}
	if p.digest != nil {
		s.Summary = p.digest.Close()
	} else {
		s.Summary = summary.Summary{Kind: content.Text, Records: -1, Matches: -1, Files: -1}
	}
	return s
}
