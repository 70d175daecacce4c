package remote

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

	"github.com/jackc/pgx/v5"

	"github.com/mcp-funnel/mcp-funnel/observations/backend"
)

const (
	// wholeAt is how many bytes of an object are read in ranges before all of it is copied to the cache.
	wholeAt = 1 << 20
	// window is how many bytes a range has at least: a line is looked up, then the text behind it is read.
	window = 256 << 10
)

// blob implements [backend.Blob]. Its bytes are in the row, in the cache, or read in ranges from the bucket and
// compared with the hashes of their blocks.
type blob struct {
	s     *Store
	o     stored
	small *bytes.Reader // nil if the bytes are in an object

	mu     sync.Mutex
	copied backend.Blob // in the cache; nil if there is none
	no     bool         // the cache has no room for it
	closed bool
	asked  int64 // bytes read in ranges
	lines  []byte
	sums   []byte
	at     int64  // of part
	part   []byte // the last range
}

func (s *Store) open(o stored) (backend.Blob, error) {
	b := &blob{s: s, o: o}
	if !o.object {
		if err := b.compare(int64(len(o.body)), sha256.Sum256(o.body)); err != nil {
			return nil, err
		}
		b.small = bytes.NewReader(o.body)
	} else if copied, err := s.cached(o); err == nil {
		b.copied = copied
	}
	return b, nil
}

func (b *blob) compare(size int64, sum [sha256.Size]byte) error {
	if size != b.o.Bytes {
		return fmt.Errorf("%w: obs:%s: %d bytes were stored, but there are %d", backend.ErrDamaged, b.o.ID, b.o.Bytes, size)
	}
	if has := hex.EncodeToString(sum[:]); has != b.o.SHA256 {
		return fmt.Errorf("%w: obs:%s: its sha256 was %s and is %s", backend.ErrDamaged, b.o.ID, b.o.SHA256, has)
	}
	return nil
}

// cached opens the copy in the cache.
func (s *Store) cached(o stored) (backend.Blob, error) {
	copied, err := s.cache.OpenCopy(o.Owner, o.ID, o.SHA256)
	if err != nil {
		return nil, err
	}
	_ = s.cache.Use(o.ID, s.limits.Now()) // it goes earlier if that cannot be noted
	return copied, nil
}

// ReadAt implements [io.ReaderAt].
func (b *blob) ReadAt(p []byte, off int64) (int, error) {
	if b.small != nil {
		return b.small.ReadAt(p, off)
	}
	if off < 0 {
		return 0, errors.New("read observation: negative offset")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return 0, fs.ErrClosed
	}
	b.asked += int64(len(p))
	if b.copied == nil && !b.no && (b.o.Bytes <= wholeAt || b.asked > wholeAt) {
		if err := b.copy(); err != nil {
			return 0, err
		}
	}
	if b.copied != nil {
		return b.copied.ReadAt(p, off)
	}
	n := 0
	for n < len(p) && off < b.o.Bytes {
		if off < b.at || off >= b.at+int64(len(b.part)) {
			if err := b.fetch(off, len(p)-n); err != nil {
				return n, err
			}
		}
		k := copy(p[n:], b.part[off-b.at:])
		n, off = n+k, off+int64(k)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// fetch reads the range around an offset, in whole blocks, and compares their hashes.
func (b *blob) fetch(off int64, n int) error {
	if err := b.index(); err != nil {
		return err
	}
	at := off - off%backend.BlockSize
	if head := b.s.heads.get(b.o.ID); at == 0 && head != nil {
		b.at, b.part = 0, head
		return nil
	}
	end := min(b.o.Bytes, max(at+window, roundUp(off+int64(min(n, wholeAt)))))
	buf := bytes.NewBuffer(make([]byte, 0, end-at))
	if err := b.s.bucket.read(b.s.ctx, b.s.bucket.key(string(b.o.ID)), buf, at, end); err != nil {
		return b.failed(err)
	}
	part := buf.Bytes()
	for i := int64(0); i < int64(len(part)); i += backend.BlockSize {
		sum := sha256.Sum256(part[i:min(i+backend.BlockSize, int64(len(part)))])
		k := (at + i) / backend.BlockSize * sumSize
		if !bytes.Equal(sum[:sumSize], b.sums[k:k+sumSize]) {
			return fmt.Errorf("%w: obs:%s: other bytes than were stored, from %d on", backend.ErrDamaged, b.o.ID, at+i)
		}
	}
	if b.at, b.part = at, part; at == 0 && len(part) <= window {
		b.s.heads.put(b.o.ID, part)
	}
	return nil
}

// heads are the first ranges of objects: each call looks there for the kind of its source. 8 MiB at most.
type heads struct {
	mu    sync.Mutex
	byID  map[backend.ID][]byte
	order []backend.ID // the oldest is the first
}

func (h *heads) get(id backend.ID) []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.byID[id]
}

func (h *heads) put(id backend.ID, head []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byID[id] == nil {
		h.order = append(h.order, id)
	}
	h.byID[id] = head
	if len(h.order) > 32 {
		delete(h.byID, h.order[0])
		h.order = h.order[1:]
	}
}

func roundUp(n int64) int64 {
	return (n + backend.BlockSize - 1) / backend.BlockSize * backend.BlockSize
}

// failed says that the object is missing, or why it cannot be read now.
func (b *blob) failed(err error) error {
	if errors.Is(err, errMissing) {
		if _, gone := b.s.Stat(b.o.Owner, b.o.ID); errors.Is(gone, backend.ErrExpired) {
			return gone // it was removed meanwhile
		}
		return fmt.Errorf("%w: obs:%s: %w", backend.ErrDamaged, b.o.ID, err)
	}
	return fmt.Errorf("read obs:%s: %w", b.o.ID, err)
}

// index loads line index and hashes.
func (b *blob) index() error {
	if b.sums != nil {
		return nil
	}
	type row struct{ Lines, Sums []byte }
	all, err := query(b.s, b.o.Owner, pgx.RowToStructByPos[row],
		"select lines, sums from blocks where id = $1", string(b.o.ID))
	if err != nil {
		return b.failed(err)
	}
	if len(all) == 0 || int64(len(all[0].Sums)) != roundUp(b.o.Bytes)/backend.BlockSize*sumSize {
		return b.failed(errMissing)
	}
	b.lines, b.sums = all[0].Lines, all[0].Sums
	return nil
}

// copy copies all bytes to the cache, once for all goroutines, and compares their hash.
func (b *blob) copy() error {
	if b.small == nil {
		if err := b.index(); err != nil {
			return err
		}
	}
	_, err, _ := b.s.copying.Do(string(b.o.ID), func() (any, error) { return nil, b.download() })
	if err != nil && !errors.Is(err, backend.ErrNoRoom) && !errors.Is(err, fs.ErrExist) { // a damaged copy is open
		return err
	}
	if b.copied, err = b.s.cached(b.o); err != nil { // there is no room, or another process has made some already
		b.copied, b.no = nil, true
		return nil //nolint:nilerr // ranges go on
	}
	b.part = nil
	return nil
}

func (b *blob) download() error {
	if copied, err := b.s.cached(b.o); err == nil { // by another goroutine
		return copied.Close()
	}
	o := b.o.Observation
	o.Used = time.Time{} // now
	w, err := b.s.cache.CreateAs(o.ID, backend.Provenance{Owner: o.Owner, Tool: o.Tool}, o.Created)
	if err != nil {
		return err
	}
	defer func() { _ = w.Discard() }()
	if n, err := w.Room(o.Bytes, 0); err != nil {
		return err
	} else if n < o.Bytes {
		return backend.ErrNoRoom
	}
	if b.small != nil {
		if _, err = w.Write(b.o.body); err == nil {
			_, err = w.Commit(o, nil)
		}
		return err
	}
	hash := sha256.New()
	if err := b.s.bucket.read(b.s.ctx, b.s.bucket.key(string(o.ID)), io.MultiWriter(w, hash), 0, o.Bytes); err != nil {
		return b.failed(err)
	}
	if err := b.compare(o.Bytes, [sha256.Size]byte(hash.Sum(nil))); err != nil {
		return err
	}
	_, err = w.Commit(o, b.lines)
	return err
}

// Lines implements [backend.Blob].
func (b *blob) Lines() ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.small != nil {
		return nil, fs.ErrNotExist // rebuilt at once
	}
	err := b.index()
	return b.lines, err
}

// SetLines implements [backend.Blob].
func (b *blob) SetLines([]byte) {}

// SyscallConn implements [backend.Blob]: whoever maps a file reads most of it.
func (b *blob) SyscallConn() (syscall.RawConn, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.small == nil && b.copied == nil && !b.no && !b.closed {
		if err := b.copy(); err != nil {
			return nil, err
		}
	}
	if b.copied == nil {
		return nil, errors.ErrUnsupported
	}
	return b.copied.SyscallConn()
}

// Path implements [backend.Blob].
func (b *blob) Path() (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.copied == nil && !b.no && !b.closed {
		if err := b.copy(); err != nil {
			return "", err
		}
	}
	if b.copied == nil {
		return "", fmt.Errorf("%w for a copy of obs:%s (--cache-size)", backend.ErrNoRoom, b.o.ID)
	}
	return b.copied.Path()
}

// Close implements [io.Closer].
func (b *blob) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	b.closed = true
	if b.copied != nil {
		return b.copied.Close()
	}
	return nil
}
