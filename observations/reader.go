package observations

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/observations/backend"
)

// Reader reads one observation. No process evicts the observation while it is open. Safe for concurrent use.
type Reader struct {
	Observation Observation

	s      *Store
	blob   backend.Blob
	lines  func() (backend.Index, error) // loads or rebuilds the index at first use
	closed sync.Once
}

// Open opens an observation of this owner, which counts as use; an observation of another owner is [ErrNotFound].
func (s *Store) Open(owner string, id ID) (*Reader, error) {
	r, err := s.Peek(owner, id)
	if err == nil {
		r.Use()
	}
	return r, err
}

// Peek is Open, but does not count as use.
func (s *Store) Peek(owner string, id ID) (*Reader, error) {
	o, b, err := s.Backend.Open(owner, id)
	if err != nil {
		return nil, err
	}
	r := &Reader{Observation: o, s: s, blob: b}
	r.lines = sync.OnceValues(r.loadIndex)
	return r, nil
}

// Use notes that the observation is used now. A store that became read-only can still be read: then nothing is noted.
func (r *Reader) Use() {
	now := r.s.options.Now()
	if r.s.Use(r.Observation.ID, now) == nil {
		r.Observation.Used = now.Round(0)
	}
}

// ReadAt reads the bytes as the tool wrote them.
func (r *Reader) ReadAt(p []byte, off int64) (int, error) { return r.blob.ReadAt(p, off) }

// SyscallConn gives access to the file's descriptor, so that a caller can map its pages.
func (r *Reader) SyscallConn() (syscall.RawConn, error) { return r.blob.SyscallConn() }

// Path returns the path of a file with all bytes, for programs. It may be a copy, which stays for a minute at least;
// the error is [ErrNoRoom] if there is no room for one.
func (r *Reader) Path() (string, error) { return r.blob.Path() }

// Size returns the number of stored bytes.
func (r *Reader) Size() int64 { return r.Observation.Bytes }

// Close closes the file and allows eviction. It may be called again.
func (r *Reader) Close() (err error) {
	r.closed.Do(func() { err = r.blob.Close() })
	return err
}

// LineOffset returns the byte offset of a line, counted from 1. If line is beyond the last one, at is the last line. It
// reads the index and at most 64 KiB of text.
func (r *Reader) LineOffset(line int64) (offset, at int64, err error) {
	if line <= 1 || r.Size() == 0 {
		return 0, 1, nil
	}
	x, err := r.lines()
	if err != nil {
		return 0, 1, err
	}
	in, found := x.Find(func(b backend.Block) bool { return line-1 <= b.Lines+b.Newlines })
	if !found {
		return r.LineOffset(in.Lines + in.Newlines + 1)
	}
	text, err := r.block(in.At)
	if err != nil {
		return 0, 1, err
	}
	at = 0
	for n := in.Lines; n < line-1; n++ {
		i := bytes.IndexByte(text[at:], '\n')
		if i < 0 {
			return 0, 1, fmt.Errorf("%w: obs:%s: its line index does not match its data", ErrDamaged, r.Observation.ID)
		}
		at += int64(i) + 1
	}
	if in.At+at == r.Size() { // a final newline ends a line and starts none
		return r.LineOffset(line - 1)
	}
	return in.At + at, line, nil
}

// CharOffset returns the byte offset of a rune, counted from 0. If char is beyond the last one, the result is the end
// of the text. It reads the index and at most 64 KiB of text. An invalid byte counts as one rune.
func (r *Reader) CharOffset(char int64) (offset, at int64, err error) {
	if char <= 0 {
		return 0, 0, nil
	}
	x, err := r.lines()
	if err != nil {
		return 0, 0, err
	}
	in, found := x.Find(func(b backend.Block) bool { return char < b.Chars+b.Runes })
	if !found {
		return r.Size(), in.Chars + in.Runes, nil
	}
	text, err := r.block(in.At)
	if err != nil {
		return 0, 0, err
	}
	i := int(in.Skip)
	for n := in.Chars; n < char && i < len(text); n++ {
		_, size := utf8.DecodeRune(text[i:])
		i += size
	}
	return in.At + int64(i), char, nil
}

// block reads one block of the text, plus the bytes of the next block that complete its last rune.
func (r *Reader) block(at int64) ([]byte, error) {
	b := make([]byte, min(backend.BlockSize+utf8.UTFMax, max(0, r.Size()-at)))
	n, err := r.ReadAt(b, at)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return b[:n], err
}

// loadIndex reads the index, or rebuilds it if it is missing or damaged.
func (r *Reader) loadIndex() (backend.Index, error) {
	size := r.Size()
	if b, err := r.blob.Lines(); err == nil {
		if x, err := backend.ParseIndex(b, size); err == nil {
			return x, nil
		}
	}
	var x backend.Indexer
	if _, err := io.CopyBuffer(&x, io.NewSectionReader(r, 0, size), make([]byte, backend.BlockSize)); err != nil {
		return backend.Index{}, err
	}
	rebuilt := x.Finish()
	r.blob.SetLines(rebuilt)
	return backend.ParseIndex(rebuilt, size)
}

// Verify reads the data and compares size and sha256; it returns ErrDamaged if they differ. It does not count as use.
func (s *Store) Verify(owner string, id ID) error {
	open := s.Backend.Open
	if b, ok := s.Backend.(interface {
		OpenAny(owner string, id ID) (Observation, backend.Blob, error)
	}); ok { // also what is too old, and never a copy
		open = b.OpenAny
	}
	o, b, err := open(owner, id)
	if err != nil {
		return err
	}
	defer func() { _ = b.Close() }()
	h := sha256.New()
	if _, err := io.CopyBuffer(h, io.NewSectionReader(b, 0, o.Bytes), make([]byte, backend.BlockSize)); err != nil {
		return fmt.Errorf("verify obs:%s: %w", id, err)
	}
	if sum := hex.EncodeToString(h.Sum(nil)); sum != o.SHA256 {
		return fmt.Errorf("%w: obs:%s: its sha256 was %s and is %s", ErrDamaged, id, o.SHA256, sum)
	}
	return nil
}
