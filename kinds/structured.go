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
	k.Summarizer = func(string, []byte) digest.Summarizer { return newPulled(read, nil) }
	k.Records, k.Objects, k.Numbered, k.Values = read.Spans, read.Objects, read.Numbered, read
	k.Shares = Shares{Says: 0.3, Shape: 0.45, Body: 0.6}
	return &k
}

// pulled summarises a text by its records. Their reader pulls the text, so it runs in a coroutine.
type pulled struct {
	feed *feed
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
		f.err = read(context.Background(), f, values.Sink{Value: f.add})
		f.block = nil
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

// add receives a record. A single one is summarised as JSON, several as NDJSON.
func (f *feed) add(line int64, json []byte) error {
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

func (p *pulled) Add(b []byte) {
	p.feed.block = b
	for len(p.feed.block) > 0 {
		if _, ok := p.next(); !ok {
			return
		}
	}
}

func (p *pulled) Finish(s *digest.Summary) {
	f := p.feed
	f.ended = true
	for {
		if _, ok := p.next(); !ok {
			break
		}
	}
	if f.records < 2 {
		f.document = shape.NewDocument(content.JSON)
		f.document.Add(f.first)
	}
	if f.records > 0 {
		f.document.Finish(s)
	}
	s.First = digest.First{} // its offset would be one of the JSON
	if s.Records < 0 {
		s.Records = f.records
	}
	if f.err != nil {
		if _, remarks := errors.AsType[*content.Remarks](f.err); !remarks {
			s.Damage = append(s.Damage, f.err.Error())
		}
		s.Says = append([]string{f.err.Error()}, s.Says...)
	}
	runtime.KeepAlive(p)
}
