// Package source resolves the names in a call to sources: files below the roots, observations, and the sources of other
// places.
//
// It returns notes that an answer must show.
package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/mcp-funnel/mcp-funnel/kinds"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/extract"
	"github.com/mcp-funnel/mcp-funnel/text/packed"
)

// A Source is an open text. Offsets are those of its bytes as stored. Not safe for concurrent use, except ReadAt.
type Source struct {
	io.ReaderAt        // of a root: an *os.File, or a copy in memory if the file reports no size
	Name        string // as the next call should name it: "src/a.go", "obs:k3v9q2m7x4ab"
	Size        int64
	Modified    time.Time
	Observation *observations.Observation // nil for other sources
	Encoding    content.Encoding          // by its first bytes
	Document    *Document                 // the document whose text this is, or that has no text; nil: not a document

	kind      func() content.Kind
	closer    io.Closer
	index     *observations.Reader // has the index of lines and chars; nil: there is none
	converted *converted           // makes the text JSON; nil: it stays as it is
	database  *database            // whose tables or rows this is; nil: not a database
	packed    *unpacking           // of a compressed file; nil: the stored bytes are not compressed
	damage    string               // what is wrong with a file or a member, known since it was opened
	inside    bool                 // of a compressed file or an archive: the text is no file of its own
	notes     []string             // what else an answer must say of it
}

// ReadError returns the error for a file that could not be read, under the name that the caller uses.
func ReadError(shown string, err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		err = at.Err // it would name the path a second time
	}
	return fmt.Errorf("read %s: %w", content.ClipBytes(shown, 200), err)
}

// maxUnsized is the largest file that is read although it reports no size, in bytes.
const maxUnsized = 1 << 20

// readUnsized reads a file that reports size 0 into memory: files of the kernel (/proc, /sys) always do, and a file
// that is being written may have done so a moment ago.
func (s *Source) readUnsized() error {
	const page = 4096 // some files can only be read in whole pages
	text := make([]byte, page)
	n, err := s.ReadAt(text, 0)
	if n == len(text) {
		text = make([]byte, maxUnsized+page)
		n, err = s.ReadAt(text, 0)
	}
	switch {
	case n > maxUnsized:
		return fmt.Errorf("it reports no size and has over %d bytes, perhaps no end; it cannot be read", maxUnsized)
	case err != nil && !errors.Is(err, io.EOF):
		return err
	case n > 0:
		s.ReaderAt, s.Size = bytes.NewReader(text[:n]), int64(n)
	}
	return nil
}

// sniff detects the encoding from the first bytes. The kind is detected on first use, because reading text or lines
// does not need it.
func (s *Source) sniff(name string) error {
	most := int64(content.SniffSize)
	if s.packed != nil {
		name = packed.TrimExtension(name)
	} else {
		most = min(most, s.Size+1) // one byte more than the file, to see its end
	}
	text, err := s.Head(most)
	if err != nil {
		return err
	}
	whole := int64(len(text)) < most
	if s.Encoding = content.Detect(text, whole); !s.isDecoded() {
		text, err = io.ReadAll(io.LimitReader(s.Encoding.Reader(bytes.NewReader(text)), content.SniffSize))
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
	}
	s.kind = sync.OnceValue(func() content.Kind { return kinds.Sniff(text, whole, name) })
	return nil
}

// Stored returns the bytes of a document that is JSON, a notebook, in place of its text. Closing it closes s, as an
// error does.
func (s *Source) Stored() (*Source, error) {
	f, ok := s.closer.(*os.File)
	if s.Document == nil || !ok || extract.Format(f.Name()) != "ipynb" {
		return s, nil
	}
	stored := *s
	at, err := f.Stat()
	if err == nil {
		stored.ReaderAt, stored.Size, stored.Document = f, at.Size(), nil
		err = stored.sniff(path.Base(f.Name()))
	}
	if err != nil {
		_ = s.Close()
	}
	return &stored, err
}

// Kind returns the kind of the source: the one recorded with an observation, else the one of its first bytes.
func (s *Source) Kind() content.Kind { return s.kind() }

// Binary reports whether the kind is binary. It is cheaper than Kind.
func (s *Source) Binary() bool {
	return (s.Observation != nil || s.Encoding != content.UTF8) && s.Kind() == content.Binary
}

// IsArchive reports whether the source is an archive that find and search look into.
func (s *Source) IsArchive() bool { return !s.inside && packed.IsArchive(s, s.Size) }

// Instead names what reads a binary source, to add to an error; "" if nothing is known.
func (s *Source) Instead() string {
	if s.IsArchive() {
		return "; it is an archive: find with this path lists its members, search with it looks inside"
	}
	b := make([]byte, 4)
	if _, err := s.ReadAt(b, 0); err != nil || string(b) != "PAR1" {
		return ""
	}
	return "; it is Parquet, which duckdb or pyarrow reads in a script"
}

// Close closes the source.
func (s *Source) Close() error { return s.closer.Close() }

// Use marks an observation as used, as [Place.Open] does. It does nothing for other sources.
func (s *Source) Use() {
	if r, ok := s.closer.(*observations.Reader); ok {
		r.Use()
		s.Observation.Used = r.Observation.Used
	}
}

// Notes returns notes of one line each that an answer must show: that the source was decoded, and its [Source.Caveat].
func (s *Source) Notes() []string {
	notes := append([]string{s.Caveat()}, s.notes...)
	if stored := s.Coding(); isEncoded(stored) {
		notes = append(notes, s.Name+": "+stored.Note())
	}
	if s.converted != nil {
		notes = append(notes, s.converted.notes(s.Name)...)
	}
	if s.Document != nil {
		notes = append(notes, s.Document.note(s.Name))
	}
	if s.database != nil {
		notes = append(notes, s.database.note(s.Name))
	}
	return slices.DeleteFunc(notes, func(note string) bool { return note == "" })
}

// Caveat returns a note if the source is incomplete, damaged or changed after it was opened, else "". A file that only
// grew has not changed as far as it was read.
func (s *Source) Caveat() string {
	if damage := s.damageNote(); damage != "" {
		return damage
	}
	if o := s.Observation; o != nil && o.Dropped > 0 {
		return fmt.Sprintf(
			"%s was kept in part, its first %d bytes of %d: this answer does not cover the rest", s.Name, o.Bytes,
			o.Bytes+o.Dropped,
		)
	}
	f, ok := s.ReaderAt.(*os.File)
	if s.database != nil && s.database.beside != "" {
		return s.database.beside
	} else if s.database != nil {
		f, ok = s.database.file, true
	}
	if !ok {
		return ""
	}
	switch now, err := f.Stat(); {
	case err != nil || now.Size() > s.Size:
		return ""
	case now.Size() < s.Size:
		return fmt.Sprintf(
			"%s became shorter during this call, from %d to %d bytes: this answer may mix old and new content; call again",
			s.Name, s.Size, now.Size(),
		)
	case !now.ModTime().Equal(s.Modified):
		return s.Name + " was written to during this call: this answer may mix old and new content; call again"
	}
	return ""
}

// Plain reports whether the stored bytes are the text (UTF-8 without BOM, or binary), so that offsets into both are
// the same.
func (s *Source) Plain() bool {
	return s.packed == nil && s.isDecoded() && s.converted == nil && !s.IsTable()
}

// isDecoded reports whether the content is the text, in UTF-8 or binary.
func (s *Source) isDecoded() bool { return s.Encoding == content.UTF8 || s.Encoding == content.NoText }

// Text returns a reader of the whole text, decoded to UTF-8.
func (s *Source) Text() (text io.Reader, err error) {
	text = io.NewSectionReader(s.ReaderAt, 0, s.Size)
	switch {
	case s.IsTable():
		return &records{database: s.database}, nil
	case s.packed != nil:
		text = s.Encoding.Reader(s.unpacked())
	case s.Plain():
		return text, nil
	default:
		text, _, err = content.Decode(text)
	}
	if s.converted != nil && err == nil {
		text = s.converted.reader(text)
	}
	return text, err
}

// LineOffset returns the last indexed line at or before line (from 1) and the offset of its first byte; 1, 0 without an
// index.
func (s *Source) LineOffset(line int64) (known, at int64) {
	return s.indexed((*observations.Reader).LineOffset, line, 1)
}

// CharOffset returns the last indexed char at or before char (from 0) and its offset; 0, 0 without an index.
func (s *Source) CharOffset(char int64) (known, at int64) {
	return s.indexed((*observations.Reader).CharOffset, char, 0)
}

// indexed looks up the n-th line or char; without an index it returns the first.
func (s *Source) indexed(
	find func(*observations.Reader, int64) (offset, known int64, err error), n, first int64,
) (known, at int64) {
	if s.index != nil && s.Plain() {
		if offset, known, err := find(s.index, n); err == nil {
			return known, offset
		}
	}
	return first, 0
}
