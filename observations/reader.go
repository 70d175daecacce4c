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
)

// Reader reads one observation. Opening it counts as use; while it is open, no
// process takes the observation to make room. Safe for concurrent use.
type Reader struct {
	Observation Observation

	s      *Store
	data   *file
	lines  func() (index, error) // loaded, or made again, at the first question
	closed sync.Once
}

// Open opens an observation of this owner; another owner's is [ErrNotFound].
func (s *Store) Open(owner string, id ID) (*Reader, error) {
	s.tidy()
	o, err := s.owned(owner, id)
	if err != nil {
		return nil, err
	}
	if !o.Pinned && s.now().Sub(o.Used) > s.maxAge { // no sweep has come by yet
		_ = s.lockedWithin(patience, func(l *ledger) error {
			if e := s.entryOf(o); s.aged(e) {
				freed, _ := s.expire(l, e, whyAge)
				l.Kept -= freed
			}
			return nil
		})
	}
	r, err := s.open(owner, id)
	if err != nil {
		return nil, err
	}
	// A store that cannot be written to any more can still be read.
	now := s.now()
	if s.disk.touch(observationsDir+"/"+string(id)+sideExt, now) == nil {
		r.Observation.Used = now.Round(0)
	}
	return r, nil
}

// open opens without counting as use. Who cleans up locks the data alone, writes
// the tombstone, then removes the data: coming between these steps, it looks again.
func (s *Store) open(owner string, id ID) (*Reader, error) {
	gone := 0
	for pause := time.Millisecond; ; pause *= 2 {
		o, err := s.owned(owner, id)
		if err != nil {
			return nil, err
		}
		data, err := s.disk.open(observationsDir+"/"+o.File, false)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if gone++; gone > 1 { // else there would be a tombstone by now
				return nil, fmt.Errorf("%w: obs:%s: its data file %s is gone", ErrDamaged, id, o.File)
			}
			continue
		case errors.Is(err, errNotRegular):
			return nil, fmt.Errorf("%w: obs:%s: %s is not a file", ErrDamaged, id, o.File)
		case err != nil:
			return nil, fmt.Errorf("open obs:%s: %w", id, err)
		}
		ok, err := data.hold(false)
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

func (s *Store) reader(o Observation, data *file) (*Reader, error) {
	info, err := data.Stat()
	if err != nil {
		err = fmt.Errorf("open obs:%s: %w", o.ID, err)
	} else if info.Size() != o.Bytes {
		err = fmt.Errorf("%w: obs:%s: %d bytes were kept and %d are there", ErrDamaged, o.ID, o.Bytes, info.Size())
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

// SyscallConn is that of the file, for its bytes to be looked at where the kernel holds them.
func (r *Reader) SyscallConn() (syscall.RawConn, error) { return r.data.SyscallConn() }

// Size is the number of bytes kept.
func (r *Reader) Size() int64 { return r.Observation.Bytes }

// Close lets go of the observation. It may be called again.
func (r *Reader) Close() (err error) {
	r.closed.Do(func() { err = r.data.Close() })
	return err
}

// LineOffset says where a line starts (lines count from 1): at is the line, and
// offset its first byte. Of a line behind the last, it is the last line. It
// reads the index and at most 64 KiB of the text.
func (r *Reader) LineOffset(line int64) (offset, at int64, err error) {
	if line <= 1 || r.Size() == 0 {
		return 0, 1, nil
	}
	x, err := r.lines()
	if err != nil {
		return 0, 1, err
	}
	in, all, found := x.newline(line - 1)
	if !found {
		return r.LineOffset(all + 1)
	}
	text, err := r.block(in.at)
	if err != nil {
		return 0, 1, err
	}
	at = 0
	for n := in.lines; n < line-1; n++ {
		i := bytes.IndexByte(text[at:], '\n')
		if i < 0 {
			return 0, 1, fmt.Errorf("%w: obs:%s: its lines are not where they were", ErrDamaged, r.Observation.ID)
		}
		at += int64(i) + 1
	}
	if in.at+at == r.Size() { // a newline at the end ends a line and begins none
		return r.LineOffset(line - 1)
	}
	return in.at + at, line, nil
}

// CharOffset says where a rune starts (they count from 0): at is the rune, and
// offset its first byte. Of one behind the last, it is the end of the text. It
// reads the index and at most 64 KiB of the text. An invalid byte is one rune.
func (r *Reader) CharOffset(char int64) (offset, at int64, err error) {
	if char <= 0 {
		return 0, 0, nil
	}
	x, err := r.lines()
	if err != nil {
		return 0, 0, err
	}
	in, all, found := x.char(char)
	if !found {
		return r.Size(), all, nil
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

// block reads a block of the text, and of the next one what a last rune needs.
func (r *Reader) block(at int64) ([]byte, error) {
	b := make([]byte, min(blockSize+utf8.UTFMax, max(0, r.Size()-at)))
	n, err := r.ReadAt(b, at)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return b[:n], err
}

// loadIndex reads the index, or makes it again where it is absent or damaged.
func (r *Reader) loadIndex() (index, error) {
	id, size := r.Observation.ID, r.Size()
	name := observationsDir + "/" + string(id) + indexExt
	if b, _, err := r.s.disk.read(name, maxIndex(size)); err == nil {
		if x, err := parseIndex(b, size); err == nil {
			return x, nil
		}
	}
	var x indexer
	if _, err := io.CopyBuffer(&x, io.NewSectionReader(r, 0, size), make([]byte, blockSize)); err != nil {
		return index{}, err
	}
	made := x.finish()
	// For the next one. Where it cannot be written, it is made again. It is
	// counted first: the quota file may say too much, never too little.
	counted := r.s.lockedWithin(patience, func(l *ledger) error {
		if err := r.s.announce(); err != nil {
			return err
		}
		l.Kept += int64(len(made))
		return nil
	})
	if counted == nil {
		_ = r.s.place(key(r.s.process(), id), indexExt, made)
	}
	return parseIndex(made, size)
}

// Write makes an indexer what [io.Copy] can write to.
func (x *indexer) Write(p []byte) (int, error) {
	x.add(p)
	return len(p), nil
}

// Verify reads the data again and compares size and sha256; ErrDamaged where they differ. It is no use.
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
