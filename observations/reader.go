package observations

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/observations/storefs"
)

// Reader reads one observation. No process evicts the observation while it is open. Safe for concurrent use.
type Reader struct {
	Observation Observation

	s      *Store
	data   *storefs.File
	lines  func() (index, error) // loads or rebuilds the index at first use
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
	s.quota.tidyIfDue()
	o, err := s.Stat(owner, id)
	if err != nil {
		return nil, err
	}
	if !o.Pinned && s.files.now().Sub(o.Used) > s.quota.maxAge { // no sweep has removed it yet
		_ = s.quota.lockedWithin(lockPatience, func(l *ledger) error {
			if e := s.files.entryOf(o); s.quota.isTooOld(e) && !s.quota.isFresh(e) {
				l.expire(e, whyAge)
			}
			return nil
		})
	}
	return s.open(owner, id)
}

// Use notes that the observation is used now. A store that became read-only can still be read: then nothing is noted.
func (r *Reader) Use() {
	now := r.s.files.now()
	if r.s.files.disk.Touch(r.Observation.ID.file(sideExt), now) == nil {
		r.Observation.Used = now.Round(0)
	}
}

// open opens without counting as use. A process that expires an observation locks the data exclusively, writes the
// tombstone and removes the data; open retries if it finds an observation between these steps.
func (s *Store) open(owner string, id ID) (*Reader, error) {
	gone := 0
	for pause := time.Millisecond; ; pause *= 2 {
		o, err := s.Stat(owner, id)
		if err != nil {
			return nil, err
		}
		data, err := s.files.disk.Open(storefs.ObservationsDir+"/"+o.File, false)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if gone++; gone > 1 { // an expiring process would have written a tombstone by now
				return nil, fmt.Errorf("%w: obs:%s: its data file %s is missing", ErrDamaged, id, o.File)
			}
			continue
		case errors.Is(err, storefs.ErrNotRegular):
			return nil, fmt.Errorf("%w: obs:%s: %s is not a file", ErrDamaged, id, o.File)
		case err != nil:
			return nil, fmt.Errorf("open obs:%s: %w", id, err)
		}
		ok, err := data.LockLinked(false)
		if ok {
			return s.reader(o, data)
		}
		_ = data.File.Close()
		if err != nil {
			return nil, fmt.Errorf("open obs:%s: %w", id, noLocks(err))
		}
		if pause > 250*time.Millisecond {
			return nil, fmt.Errorf("open obs:%s: it is being removed", id)
		}
		time.Sleep(pause)
	}
}

func (s *Store) reader(o Observation, data *storefs.File) (*Reader, error) {
	info, err := data.Stat()
	if err != nil {
		err = fmt.Errorf("open obs:%s: %w", o.ID, err)
	} else if info.Size() != o.Bytes {
		err = fmt.Errorf("%w: obs:%s: %d bytes were stored, but the file has %d", ErrDamaged, o.ID, o.Bytes, info.Size())
	}
	if err != nil {
		_ = data.File.Close()
		return nil, err
	}
	r := &Reader{Observation: o, s: s, data: data}
	r.lines = sync.OnceValues(r.loadIndex)
	return r, nil
}

// ReadAt reads the bytes as the tool wrote them.
func (r *Reader) ReadAt(p []byte, off int64) (int, error) { return r.data.ReadAt(p, off) }

// SyscallConn gives access to the file's descriptor, so that a caller can map its pages.
func (r *Reader) SyscallConn() (syscall.RawConn, error) { return r.data.SyscallConn() }

// Size returns the number of stored bytes.
func (r *Reader) Size() int64 { return r.Observation.Bytes }

// Close closes the file and allows eviction. It may be called again.
func (r *Reader) Close() (err error) {
	r.closed.Do(func() { err = r.data.Close() })
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
	in, found := x.find(func(b block) bool { return line-1 <= b.lines+b.newlines })
	if !found {
		return r.LineOffset(in.lines + in.newlines + 1)
	}
	text, err := r.block(in.at)
	if err != nil {
		return 0, 1, err
	}
	at = 0
	for n := in.lines; n < line-1; n++ {
		i := bytes.IndexByte(text[at:], '\n')
		if i < 0 {
			return 0, 1, fmt.Errorf("%w: obs:%s: its line index does not match its data", ErrDamaged, r.Observation.ID)
		}
		at += int64(i) + 1
	}
	if in.at+at == r.Size() { // a final newline ends a line and starts none
		return r.LineOffset(line - 1)
	}
	return in.at + at, line, nil
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
	in, found := x.find(func(b block) bool { return char < b.chars+b.runes })
	if !found {
		return r.Size(), in.chars + in.runes, nil
	}
	text, err := r.block(in.at)
	if err != nil {
		return 0, 0, err
	}
	i := int(in.skip)
	for n := in.chars; n < char && i < len(text); n++ {
		_, size := utf8.DecodeRune(text[i:])
		i += size
	}
	return in.at + int64(i), char, nil
}

// block reads one block of the text, plus the bytes of the next block that complete its last rune.
func (r *Reader) block(at int64) ([]byte, error) {
	b := make([]byte, min(blockSize+utf8.UTFMax, max(0, r.Size()-at)))
	n, err := r.ReadAt(b, at)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return b[:n], err
}

// loadIndex reads the index, or rebuilds it if it is missing or damaged.
func (r *Reader) loadIndex() (index, error) {
	id, size := r.Observation.ID, r.Size()
	if b, _, err := r.s.files.disk.Read(id.file(indexExt), maxIndex(size)); err == nil {
		if x, err := parseIndex(b, size); err == nil {
			return x, nil
		}
	}
	var x indexer
	if _, err := io.CopyBuffer(&x, io.NewSectionReader(r, 0, size), make([]byte, blockSize)); err != nil {
		return index{}, err
	}
	rebuilt := x.finish()
	// Store the rebuilt index if possible. Add its size to the quota file first: that may count too much, never too
	// little.
	counted := r.s.quota.lockedWithin(lockPatience, func(l *ledger) error {
		if err := r.s.files.createLiveFile(); err != nil {
			return err
		}
		l.add(r.Observation.Owner, int64(len(rebuilt)))
		return nil
	})
	if counted == nil {
		_ = r.s.files.writeBeside(key(r.s.files.processName(), id), indexExt, rebuilt)
	}
	return parseIndex(rebuilt, size)
}

// Verify reads the data and compares size and sha256; it returns ErrDamaged if they differ. It does not count as use.
func (s *Store) Verify(owner string, id ID) error {
	r, err := s.open(owner, id)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	h := sha256.New()
	if _, err := io.CopyBuffer(h, io.NewSectionReader(r, 0, r.Size()), make([]byte, blockSize)); err != nil {
		return fmt.Errorf("verify obs:%s: %w", id, err)
	}
	if sum := hex.EncodeToString(h.Sum(nil)); sum != r.Observation.SHA256 {
		return fmt.Errorf("%w: obs:%s: its sha256 was %s and is %s", ErrDamaged, id, r.Observation.SHA256, sum)
	}
	return nil
}
