package kinds

import (
	"context"
	"errors"
	"io"
	"runtime"

	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/kinds/shape"
	"github.com/mcp-funnel/mcp-funnel/kinds/values"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// structured returns the descriptor of a kind whose records are values in another form than JSON.
func structured(k Kind, read values.Reader) *Kind {
	if k.Summarizer == nil {
		k.Summarizer = func(string, []byte) digest.Summarizer { return newPiped(read, nil) }
	}
	k.Records, k.Objects, k.Numbered, k.Values = read.Spans, read.Objects, read.Numbered, read
	k.Shares = Shares{Says: 0.3, Shape: 0.45, Body: 0.6}
	return &k
}

// piped summarises a text by its records. Their reader runs in a goroutine, which ends with the text or with the
// summarizer: it must not refer to piped.
type piped struct {
	*summed
	text *io.PipeWriter
}

// summed is the summary of the records so far.
type summed struct {
	document digest.Summarizer             // nil before the second record
	first    []byte                        // the first record
	also     func(line int64, json []byte) // receives each record; may be nil
	records  int64
	err      error
	done     chan struct{} // closed when the reader has ended
}

func newPiped(read values.Reader, also func(line int64, json []byte)) *piped {
	f := &summed{also: also, done: make(chan struct{})}
	text, w := io.Pipe()
	go func() {
		defer close(f.done)
		f.err = read(context.Background(), text, values.Sink{Value: f.record})
		_ = text.Close() // after an error, the rest of the text is not read
	}()
	p := &piped{f, w}
	runtime.AddCleanup(p, func(w *io.PipeWriter) { _ = w.Close() }, w)
	return p
}

// record receives a record. A single one is summarised as JSON, several as NDJSON.
func (f *summed) record(line int64, json []byte) error {
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

// Add returns when the reader has read b, or if it has failed.
func (p *piped) Add(b []byte) { _, _ = p.text.Write(b) }

func (p *piped) Finish(s *digest.Summary) {
	_ = p.text.Close()
	<-p.done
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
}
