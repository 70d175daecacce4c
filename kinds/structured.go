package kinds

import (
	"context"
	"errors"
	"io"
	"iter"
	"runtime"

	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/kinds/shape"
	"github.com/mcp-funnel/mcp-funnel/kinds/values"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// structured returns the descriptor of a kind whose records are values in another form than JSON.
func structured(k Kind, read values.Reader) *Kind {
	if k.Summarizer == nil {
		k.Summarizer = func(string, []byte) digest.Summarizer { return newPulled(read, nil) }
	}
	k.Records, k.Objects, k.Numbered, k.Values = read.Spans, read.Objects, read.Numbered, read
	k.Shares = Shares{Says: 0.3, Shape: 0.45, Body: 0.6}
	return &k
}

// pulled summarises a text by its records. Their reader pulls the text, so it runs in a coroutine.
type pulled struct {
	*feed
	next func() (struct{}, bool)
}

// feed is what the coroutine shares with its summarizer. It must not refer to pulled: that is how a summarizer that is
// dropped ends its coroutine.
type feed struct {
	block []byte // not yet read
	ended bool   // no more blocks come
	yield func(struct{}) bool

	document digest.Summarizer             // nil before the second record
	first    []byte                        // the first record
	also     func(line int64, json []byte) // receives each record; may be nil
	records  int64
	err      error
}

func newPulled(read values.Reader, also func(line int64, json []byte)) *pulled {
	f := &feed{also: also}
	next, stop := iter.Pull(func(yield func(struct{}) bool) {
		f.yield = yield
		f.err = read(context.Background(), f, values.Sink{Value: f.record})
		for !f.ended && yield(struct{}{}) { // after an error, the rest of the text is not read
		}
	})
	p := &pulled{f, next}
	runtime.AddCleanup(p, func(stop func()) { stop() }, stop)
	return p
}

// Read implements [io.Reader]: it waits for the next block.
func (f *feed) Read(p []byte) (int, error) {
	for len(f.block) == 0 {
		if f.ended || !f.yield(struct{}{}) {
			return 0, io.EOF
		}
	}
	n := copy(p, f.block)
	f.block = f.block[n:]
	return n, nil
}

// record receives a record. A single one is summarised as JSON, several as NDJSON.
func (f *feed) record(line int64, json []byte) error {
	f.records++
	if f.also != nil {
		f.also(line, json)
	}
	if f.records == 1 {
		f.first = append(f.first, json...)
		return nil
	}
	if f.records == 2 {
		f.document = shape.NewDocument(content.NDJSON)
		f.document.Add(append(f.first, '\n'))
		f.first = nil
	}
	f.document.Add(json)
	f.document.Add([]byte{'\n'})
	return nil
}

// Add returns when the reader has read b and waits for more, or if it has failed.
func (p *pulled) Add(b []byte) {
	p.block = b
	p.next()
}

func (p *pulled) Finish(s *digest.Summary) {
	p.ended = true
	p.next()
	if p.records < 2 {
		p.document = shape.NewDocument(content.JSON)
		p.document.Add(p.first)
	}
	if p.records > 0 {
		p.document.Finish(s)
	}
	s.First = digest.First{} // its offset would be one of the JSON
	if s.Records < 0 {
		s.Records = p.records
	}
	if p.err != nil {
		if _, remarks := errors.AsType[*content.Remarks](p.err); !remarks {
			s.Damage = append(s.Damage, p.err.Error())
		}
		s.Says = append([]string{p.err.Error()}, s.Says...)
	}
	runtime.KeepAlive(p)
}
