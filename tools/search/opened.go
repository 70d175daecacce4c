package search

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/base/runes"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/packed"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// openedText is an open text to search.
type openedText struct {
	io.Reader
	io.Closer
	raw    io.ReaderAt      // as stored; nil: a document, a compressed file or a member
	size   int64            // bytes, as stored
	stored content.Encoding // not set for a smallFile, which detects it while reading
	src    *source.Source   // whose text this is; nil: the bytes of a file
}

// errBinary reports that a file is not text.
var errBinary = errors.New("binary")

// errPacked reports that a file may be compressed: openSource opens it.
var errPacked = errors.New("compressed")

// open opens a target. A worker must close it before it opens the next one.
func (w *searchWorker) open(ctx context.Context, t *target) (openedText, error) {
	switch {
	case !t.entry.IsFile():
		return w.openSource(ctx, t)
	case t.document:
		return w.openDocument(ctx, t)
	}
	return w.openFile(t)
}

// openFile opens the bytes of a file.
func (w *searchWorker) openFile(t *target) (openedText, error) {
	var err error
	if w.file, err = t.entry.OpenFile(); err != nil {
		return openedText{}, err
	}
	if size := w.file.Size(); size > 0 && size <= maxSmall && !w.Multiline {
		w.small = smallFile{file: &w.file}
		return openedText{Reader: &w.small, Closer: &w.small, raw: &w.file, size: size}, nil
	}
	r, stored, err := newTextReader(&w.file, w.file.Size())
	if err != nil {
		_ = w.file.Close()
		return openedText{}, err
	}
	return openedText{Reader: r, Closer: &w.file, raw: &w.file, size: w.file.Size(), stored: stored}, nil
}

// openSource opens a target that is not a file below a root, such as an observation.
func (w *searchWorker) openSource(ctx context.Context, t *target) (openedText, error) {
	src, held, err := t.entry.Held()
	if !held {
		src, err = t.at.Peek(ctx, t.entry.Path)
	}
	if err != nil {
		return openedText{}, err
	}
	if src.Encoding == content.NoText {
		_ = src.Close()
		if caveat := src.Caveat(); caveat != "" {
			return openedText{}, errors.New(caveat)
		}
		return openedText{}, errBinary
	}
	r, err := src.Text()
	if err != nil {
		_ = src.Close()
		return openedText{}, err
	}
	opened := openedText{Reader: r, Closer: src, size: src.Extent(), stored: src.Encoding, src: src}
	if held { // releasing the entry closes it
		opened.Closer = io.NopCloser(nil)
	} else if !src.Packed() {
		opened.raw = src
	}
	return opened, nil
}

// maxSmall is the maximum size in bytes of a file that is read with one call, into the buffer of the caller of Read.
const maxSmall = 128 << 10

// smallFile reads a small file at once and detects its encoding in the buffer of the caller. Only if it is not UTF-8,
// or has changed since it was opened, newTextReader reads it again.
type smallFile struct {
	file   *tree.Opened
	done   bool
	rest   io.Reader        // of newTextReader, if it was needed
	stored content.Encoding // set with rest
}

func (r *smallFile) Read(b []byte) (int, error) {
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
		case int64(n) < size: // the file has become shorter
		case isPlainUTF8(head):
			r.done = true
			return n, nil
		case packed.Detect(head) != "":
			return 0, errPacked
		case content.Detect(head, n < content.SniffSize) == content.NoText:
			return 0, errBinary
		}
	}
	var err error
	if r.rest, r.stored, err = newTextReader(io.NewSectionReader(r.file, 0, 1<<62), size); err != nil {
		return 0, err
	}
	return r.rest.Read(b)
}

// Close closes the file.
func (r *smallFile) Close() error { return r.file.Close() }

// rereadableFile is the input of newTextReader.
type rereadableFile interface {
	io.Reader
	io.ReaderAt
}

// headPool has buffers for the first bytes of files.
var headPool = sync.Pool{New: func() any { b := make([]byte, content.SniffSize); return &b }}

// newTextReader returns a reader of a file as UTF-8, whose encoding it detects from the first bytes. For UTF-8 it can be
// read again; bytes that are appended later are not read.
func newTextReader(f rereadableFile, size int64) (io.Reader, content.Encoding, error) {
	buf := headPool.Get().(*[]byte)
	defer headPool.Put(buf)
	n, err := io.ReadFull(f, *buf)
	whole := err == io.EOF || err == io.ErrUnexpectedEOF
	if err != nil && !whole {
		return nil, "", err
	}
	head := (*buf)[:n]
	encoding := content.UTF8
	if !isPlainUTF8(head) {
		if packed.Detect(head) != "" {
			return nil, "", errPacked
		}
		encoding = content.Detect(head, whole)
	}
	switch {
	case encoding == content.NoText:
		return nil, encoding, errBinary
	case encoding == content.UTF8BOM:
		return io.NewSectionReader(f, 3, max(size-3, 0)), encoding, nil
	case encoding != content.UTF8:
		return encoding.Reader(io.MultiReader(bytes.NewReader(bytes.Clone(head)), f)), encoding, nil
	case whole && int64(n) != size: // no size (/proc), or just changed: use the bytes read
		return bytes.NewReader(bytes.Clone(head)), encoding, nil
	case int64(n) > size:
		return struct{ io.Reader }{io.MultiReader(bytes.NewReader(bytes.Clone(head)), f)}, encoding, nil
	}
	return io.NewSectionReader(f, 0, size), encoding, nil
}

// mayBeMixed reports whether the text is searched as UTF-8 and not known to be that: smallFile looks at the beginning.
func (t openedText) mayBeMixed(stored content.Encoding) bool {
	return t.raw != nil && (stored == content.UTF8 || stored == "" && t.size > content.SniffSize)
}

// isUTF8 reports whether a text is UTF-8 to its end. It reads all of it again, for patterns that are not found in other
// bytes.
func isUTF8(ctx context.Context, r io.ReaderAt, size int64) bool {
	b := headPool.Get().(*[]byte)
	defer headPool.Put(b)
	for at := int64(0); at < size && ctx.Err() == nil; {
		n, err := r.ReadAt(*b, at)
		text := (*b)[:n]
		if err == nil {
			text = text[:runes.Complete(text)]
		}
		if runes.Invalid(text) >= 0 {
			return false
		}
		if at += int64(len(text)); err != nil {
			return true
		}
	}
	return true
}

// isPlainUTF8 reports whether head is UTF-8 without NUL or byte order mark, as in most files; its last char may be cut.
func isPlainUTF8(head []byte) bool {
	if bytes.HasPrefix(head, []byte("\xef\xbb\xbf")) || bytes.IndexByte(head, 0) >= 0 {
		return false
	}
	return utf8.Valid(head[:runes.Complete(head)])
}
