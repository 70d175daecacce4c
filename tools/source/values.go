package source

import (
	"bufio"
	"context"
	"errors"
	"io"
	"iter"
	"strconv"
	"strings"
	"sync"

	"github.com/mcp-funnel/mcp-funnel/kinds"
	"github.com/mcp-funnel/mcp-funnel/kinds/values"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// converted makes the text of a source JSON.
type converted struct {
	ctx  context.Context
	kind content.Kind // of the text as it is stored
	read values.Reader

	mu   sync.Mutex
	said *content.Remarks // of a reader that reached the end

	broken bool // a reader did not
}

// reader returns the records of a text as JSON, one a line. Its goroutine ends with the context.
func (c *converted) reader(text io.Reader) io.Reader {
	out, in := io.Pipe()
	stop := context.AfterFunc(c.ctx, func() { _ = in.CloseWithError(c.ctx.Err()) })
	go func() {
		defer stop()
		b := bufio.NewWriterSize(in, 64<<10)
		err := c.read.Objects(c.ctx, text, b)
		c.mu.Lock()
		if said, ok := errors.AsType[*content.Remarks](err); ok {
			c.said, err = said, nil
		}
		c.broken = err != nil
		c.mu.Unlock()
		_ = in.CloseWithError(errors.Join(b.Flush(), err))
	}()
	return out
}

// notes returns what was noticed in a text that was read to its end, and says that this is not the text as stored.
func (c *converted) notes(name string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken {
		return nil
	}
	notes := []string{name + " is shown as JSON"}
	if c.said != nil {
		for _, n := range c.said.Notes {
			notes = append(notes, name+": "+n)
		}
	}
	return notes
}

// Values returns a source whose text is the records of s as JSON, if they are values in another form: one record as
// JSON, several as NDJSON, by which JSON Pointers and numbers of records count. For other kinds it returns s. Closing
// the result closes s; its readers end with ctx.
func (s *Source) Values(ctx context.Context) (*Source, error) {
	read := kinds.Of(s.Kind()).Values
	if read == nil {
		return s, nil
	}
	text, err := s.Text()
	if err != nil {
		return s, err
	}
	kind := content.NDJSON
	if read.IsSingle(ctx, text) {
		kind = content.JSON
	}
	v := *s
	v.converted = &converted{ctx: ctx, kind: s.Kind(), read: read}
	v.index, v.kind = nil, func() content.Kind { return kind }
	return &v, nil
}

// Pointers finds the JSON Pointers of lines, in ascending order, in the text of a source that [Source.Values] converts.
// It reads the text as far as it is asked.
type Pointers struct {
	next   func() (mark, bool)
	stop   func()
	held   mark // read, and of a line after that of the last call; its pointer is "" if there is none
	last   string
	ended  bool
	broken bool // the text ended with an error: what follows has no pointers
}

// mark is the line of a key or scalar, and its pointer.
type mark struct {
	line    int64
	pointer string
}

// Pointers returns nil if the source is of another kind.
func (s *Source) Pointers(ctx context.Context) (*Pointers, error) {
	read := kinds.Of(s.Kind()).Values
	if read == nil {
		return nil, nil
	}
	text, err := s.Text()
	if err != nil {
		return nil, err
	}
	single := read.IsSingle(ctx, text)
	if text, err = s.Text(); err != nil {
		return nil, err
	}
	p := &Pointers{}
	p.next, p.stop = iter.Pull(func(yield func(mark) bool) {
		index, more := 0, true
		var prefix string
		if !single {
			prefix = "/0"
		}
		err := read(ctx, text, values.Sink{
			Value: func(int64, []byte) error {
				if index++; !single {
					prefix = "/" + strconv.Itoa(index)
				}
				if !more {
					return io.EOF
				}
				return nil
			},
			Pointer: func(line int64, pointer string) { more = more && yield(mark{line, prefix + pointer}) },
		})
		_, remarks := errors.AsType[*content.Remarks](err)
		p.broken = err != nil && !remarks
	})
	return p, nil
}

// At returns the pointer of what line shows: of the only key or scalar that begins there, of what several have in
// common, or of the one that began before. It is "" if none is known.
func (p *Pointers) At(line int64) string {
	found := ""
	for !p.ended {
		if p.held.line == 0 {
			m, ok := p.next()
			if !ok {
				p.ended = true
				break
			}
			p.held = m
		}
		if p.held.line > line {
			break
		}
		if p.held.line == line {
			if found == "" {
				found = p.held.pointer
			} else {
				found = common(found, p.held.pointer)
			}
		}
		p.last, p.held = p.held.pointer, mark{}
	}
	switch {
	case found != "":
		return found
	case p.broken:
		return ""
	}
	return p.last
}

// common returns the pointer of the innermost value that holds those of both pointers. The pointer of a member and of
// its value is the same.
func common(a, b string) string {
	n, at := min(len(a), len(b)), 0
	i := 0
	for i < n && a[i] == b[i] {
		if a[i] == '/' {
			at = i
		}
		i++
	}
	if i == n && (len(a) == n || a[n] == '/') && (len(b) == n || b[n] == '/') {
		return a[:n]
	}
	return a[:at]
}

// LinesOf returns the lines of the text that a converted source shows at a pointer; 1, 0 if they are not known.
func (s *Source) LinesOf(ctx context.Context, pointer string) (from, to int64) {
	if s.converted == nil {
		return 1, 0
	}
	stored := *s
	kind := s.converted.kind
	stored.converted, stored.kind = nil, func() content.Kind { return kind }
	p, err := stored.Pointers(ctx)
	if err != nil {
		return 1, 0
	}
	defer p.Close()
	for {
		m, ok := p.next()
		within := ok && (m.pointer == pointer || strings.HasPrefix(m.pointer, pointer+"/"))
		switch {
		case within && from == 0:
			from = m.line
		case !within && from > 0 && ok:
			return from, max(m.line-1, from)
		case !ok && from > 0:
			return from, 0
		case !ok:
			return 1, 0
		}
	}
}

// IsConverted reports whether the text is JSON in place of what is stored.
func (s *Source) IsConverted() bool { return s.converted != nil }

// Close ends the reader.
func (p *Pointers) Close() {
	if p != nil {
		p.stop()
	}
}
