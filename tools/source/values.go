package source

import (
	"bufio"
	"context"
	"errors"
	"io"
	"iter"
	"math"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/mcp-funnel/mcp-funnel/kinds"
	"github.com/mcp-funnel/mcp-funnel/kinds/values"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// converted makes the text of a source JSON.
type converted struct {
	ctx    context.Context
	stored *Source
	read   values.Reader
	ended  atomic.Pointer[error] // how the last reader ended; nil: none did
}

// reader returns the records of a text as JSON, one a line. Its goroutine ends with the context.
func (c *converted) reader(text io.Reader) io.Reader {
	return piped(c.ctx, func(to io.Writer) error {
		b := bufio.NewWriterSize(to, 64<<10)
		ended := c.read.Objects(c.ctx, text, b)
		c.ended.Store(&ended)
		if _, ok := errors.AsType[*content.Remarks](ended); ok {
			return b.Flush()
		}
		return errors.Join(b.Flush(), ended)
	})
}

// piped returns a reader of what write writes, in a goroutine. The reader ends with the error of write, or with ctx.
func piped(ctx context.Context, write func(io.Writer) error) *io.PipeReader {
	out, in := io.Pipe()
	stop := context.AfterFunc(ctx, func() { _ = in.CloseWithError(ctx.Err()) })
	go func() {
		defer stop()
		_ = in.CloseWithError(write(in))
	}()
	return out
}

// notes returns what was noticed in a text that was read to its end, and says that this is not the text as stored.
func (c *converted) notes(name string) []string {
	notes := []string{name + " is shown as JSON"}
	if ended := c.ended.Load(); ended != nil && *ended != nil {
		said, ok := errors.AsType[*content.Remarks](*ended)
		if !ok {
			return nil
		}
		for _, n := range said.Notes {
			notes = append(notes, name+": "+n)
		}
	}
	return notes
}

// valueReader returns the reader of values for the kind of the source, and whether it has one record. It is nil for JSON and
// for kinds that are not values.
func (s *Source) valueReader(ctx context.Context) (read values.Reader, single bool, err error) {
	if read = kinds.Of(s.Kind()).Values; read == nil {
		return nil, false, nil
	}
	text, err := s.Text()
	if err != nil {
		return nil, false, err
	}
	return read, read.IsSingle(ctx, text), nil
}

// Values returns a source whose text is the records of s as JSON, if they are values in another form: one record as
// JSON, several as NDJSON, by which JSON Pointers and numbers of records count. For other kinds it returns s. Closing
// the result closes s; its readers end with ctx.
func (s *Source) Values(ctx context.Context) (*Source, error) {
	read, single, err := s.valueReader(ctx)
	if read == nil {
		return s, err
	}
	kind := content.NDJSON
	if single {
		kind = content.JSON
	}
	v := *s
	v.converted = &converted{ctx: ctx, stored: s, read: read}
	v.index, v.kind = nil, func() content.Kind { return kind }
	return &v, nil
}

// Pointers finds the JSON Pointers of lines, in ascending order, in the text of a source that [Source.Values] converts.
// It reads the text as far as it is asked.
type Pointers struct {
	next   func() (line int64, pointer string, ok bool)
	stop   func()
	line   int64 // of the next key or scalar, after that of the last call
	here   string
	last   string
	broken bool // the text ended with an error: what follows has no pointers
}

// Pointers returns nil if the source is of another kind.
func (s *Source) Pointers(ctx context.Context) (*Pointers, error) {
	p := &Pointers{}
	all, err := s.pointers(ctx, &p.broken)
	if all == nil {
		return nil, err
	}
	p.next, p.stop = iter.Pull2(all)
	return p, nil
}

// pointers returns the lines of keys and scalars with their pointers, in ascending order; nil if the source is of
// another kind. It sets broken when the text ends with an error.
func (s *Source) pointers(ctx context.Context, broken *bool) (iter.Seq2[int64, string], error) {
	read, single, err := s.valueReader(ctx)
	if read == nil {
		return nil, err
	}
	text, err := s.Text()
	if err != nil {
		return nil, err
	}
	return func(yield func(int64, string) bool) {
		index, more := 0, true
		err := read(ctx, text, values.Sink{
			Value: func(int64, []byte) error {
				if index++; !more {
					return io.EOF
				}
				return nil
			},
			Pointer: func(line int64, pointer string) {
				if !single {
					pointer = "/" + strconv.Itoa(index) + pointer
				}
				more = more && yield(line, pointer)
			},
		})
		_, remarks := errors.AsType[*content.Remarks](err)
		*broken = err != nil && !remarks
	}, nil
}

// At returns the pointer of what line shows: of the only key or scalar that begins there, of what several have in
// common, or of the one that began before. It is "" if none is known.
func (p *Pointers) At(line int64) string {
	found := ""
	for p.line <= line {
		if p.line == line && found != "" {
			found = common(found, p.here)
		} else if p.line == line {
			found = p.here
		}
		p.last = p.here
		next, here, ok := p.next()
		if !ok {
			next = math.MaxInt64
		}
		p.line, p.here = next, here
	}
	if found == "" && !p.broken {
		return p.last
	}
	return found
}

// common returns the pointer of the innermost value that holds those of both pointers. The pointer of a member and of
// its value is the same.
func common(a, b string) string {
	at := 0
	a, b = a+"/", b+"/"
	for i := 0; i < len(a) && i < len(b) && a[i] == b[i]; i++ {
		if a[i] == '/' {
			at = i
		}
	}
	return a[:at]
}

// LinesOf returns the lines of the text that a converted source shows at a pointer; 1, 0 if they are not known.
func (s *Source) LinesOf(ctx context.Context, pointer string) (from, to int64) {
	if s.converted == nil {
		return 1, 0
	}
	var broken bool
	all, err := s.converted.stored.pointers(ctx, &broken)
	if all == nil || err != nil {
		return 1, 0
	}
	for line, at := range all {
		within := at == pointer || strings.HasPrefix(at, pointer+"/")
		if within && from == 0 {
			from = line
		} else if !within && from > 0 {
			return from, max(line-1, from)
		}
	}
	return max(from, 1), 0
}

// IsConverted reports whether the text is JSON in place of what is stored.
func (s *Source) IsConverted() bool { return s.converted != nil }

// Close ends the reader.
func (p *Pointers) Close() {
	if p != nil {
		p.stop()
	}
}
