package search

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/internal/tree"
)

// opened is a text to search.
type opened struct {
	io.Reader
	io.Closer
	stored content.Encoding // of a small file see there
	part   bool             // an observation that was kept in part
}

// errBinary says that a file is not text.
var errBinary = errors.New("binary")

// open opens a target. Only one of a worker's files is open at a time.
func (w *worker) open(ctx context.Context, t *target) (opened, error) {
	if t.id != "" {
		return w.openObservation(ctx, t.name())
	}
	if err := w.openFile(t); err != nil {
		return opened{}, err
	}
	if size := w.file.Size(); size > 0 && size <= maxSmall && !w.Multiline {
		w.small = small{file: &w.file}
		return opened{Reader: &w.small, Closer: &w.small}, nil
	}
	r, stored, err := text(&w.file, w.file.Size())
	if err != nil {
		_ = w.file.Close()
		return opened{}, err
	}
	return opened{Reader: r, Closer: closer{r, &w.file}, stored: stored}, nil
}

func (w *worker) openFile(t *target) (err error) {
	if t.in != nil {
		w.file, err = t.in.Open(t.path)
		return err
	}
	f, fi, err := t.place.Root.OpenFile(t.path)
	if err == nil {
		w.file = tree.OpenedFile(f, fi.Size())
	}
	return err
}

func (s *searcher) openObservation(ctx context.Context, name string) (opened, error) {
	src, err := s.in.Sources.Open(ctx, name)
	if err != nil {
		return opened{}, err
	}
	if src.Encoding == content.NoText {
		_ = src.Close()
		return opened{}, errBinary
	}
	r, err := src.Text()
	if err != nil {
		_ = src.Close()
		return opened{}, err
	}
	return opened{Reader: r, Closer: src, stored: src.Encoding, part: src.Observation != nil && src.Observation.Dropped > 0}, nil
}

// maxSmall is the size up to which a file is read at once, into the buffer of whoever asks for its text.
const maxSmall = 128 << 10

// small is a file that is read at once. That it is UTF-8 is seen where it was read to; only if it is not, or has
// changed since it was opened, is it read again by text.
type small struct {
	file   *tree.Opened
	done   bool
	rest   io.Reader        // what text made of it
	stored content.Encoding // known with rest
}

func (r *small) Read(b []byte) (int, error) {
	switch {
	case r.rest != nil:
		return r.rest.Read(b)
	case r.done:
		return 0, io.EOF
	}
	size := r.file.Size()
	if int64(len(b)) >= size {
		n, err := r.file.ReadAt(b[:size], 0)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		head := b[:min(n, content.SniffSize)]
		switch {
		case int64(n) < size: // it has just become shorter
		case plain(head):
			r.done = true
			return n, nil
		case content.Detect(head, n < content.SniffSize) == content.NoText:
			return 0, errBinary
		}
	}
	var err error
	if r.rest, r.stored, err = text(io.NewSectionReader(r.file, 0, 1<<62), size); err != nil {
		return 0, err
	}
	return r.rest.Read(b)
}

// Close closes the file.
func (r *small) Close() error { return closer{r.rest, r.file}.Close() }

// closer closes a file, and gives back what the reader that text made of it holds.
type closer struct {
	r io.Reader
	f *tree.Opened
}

func (c closer) Close() error {
	if p, ok := c.r.(*peeked); ok {
		p.free()
	}
	return c.f.Close()
}

// file is what text reads.
type file interface {
	io.Reader
	io.ReaderAt
}

// peeked is a file of which the first bytes were read to know what it holds.
type peeked struct {
	file
	head *[]byte
	size int64
	n    int // of head
	pos  int64
}

var heads = sync.Pool{New: func() any { b := make([]byte, content.SniffSize); return &b }}

// text reads a file as UTF-8; close it with a [closer]. A file in UTF-8 without byte order mark, which most are, can be read again.
func text(f file, size int64) (io.Reader, content.Encoding, error) {
	p := &peeked{file: f, size: size, head: heads.Get().(*[]byte)}
	var err error
	p.n, err = io.ReadFull(f, *p.head)
	whole := err == io.EOF || err == io.ErrUnexpectedEOF
	if err != nil && !whole {
		p.free()
		return nil, "", err
	}
	head := (*p.head)[:p.n]
	encoding := content.UTF8
	if !plain(head) {
		encoding = content.Detect(head, whole)
	}
	switch {
	case encoding == content.NoText:
		p.free()
		return nil, encoding, errBinary
	case encoding == content.UTF8BOM:
		p.free()
		return io.NewSectionReader(f, 3, max(size-3, 0)), encoding, nil
	case encoding != content.UTF8:
		copied := bytes.Clone(head)
		p.free()
		return encoding.Reader(io.MultiReader(bytes.NewReader(copied), f)), encoding, nil
	case int64(p.n) > size || whole && int64(p.n) < size: // it says no size (/proc), or has just changed: what is read is what counts
		p.size = int64(p.n)
		if !whole {
			return struct{ io.Reader }{io.MultiReader(bytes.NewReader(bytes.Clone(head)), f)}, encoding, nil
		}
	}
	return p, encoding, nil
}

// plain says quickly what is true of most files: UTF-8 (perhaps cut in a character at its end), without NUL or byte order mark.
func plain(head []byte) bool {
	if bytes.HasPrefix(head, []byte("\xef\xbb\xbf")) || bytes.IndexByte(head, 0) >= 0 {
		return false
	}
	for n := 1; n < utf8.UTFMax && n <= len(head); n++ {
		if c := head[len(head)-n]; utf8.RuneStart(c) {
			if !utf8.FullRune(head[len(head)-n:]) {
				head = head[:len(head)-n]
			}
			break
		}
	}
	return utf8.Valid(head)
}

func (p *peeked) free() {
	if p.head != nil {
		heads.Put(p.head)
		p.head = nil
	}
}

// Size is the file's as it was opened: what is written to it meanwhile is not read.
func (p *peeked) Size() int64 { return p.size }

// Outer is the file, as [io.SectionReader.Outer] tells it.
func (p *peeked) Outer() (r io.ReaderAt, off, n int64) { return p.file, 0, p.size }

func (p *peeked) Read(b []byte) (n int, err error) {
	left := p.size - p.pos
	switch {
	case left <= 0:
		return 0, io.EOF
	case p.pos < int64(p.n):
		n = copy(b, (*p.head)[p.pos:p.n])
	default:
		n, err = p.file.Read(b[:min(int64(len(b)), left)])
	}
	p.pos += int64(n)
	return n, err
}
