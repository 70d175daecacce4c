package observations

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations/storefs"
)

// Recording is one observation being written. Write does not fail when there is no room: it counts the bytes that are
// not stored ([Recording.Dropped]) and keeps the reason ([Recording.Err]). Up to 64 KiB stay in memory. Not safe for
// concurrent use.
//
// Every recording ends with Commit or Discard. If Commit failed, Discard must follow: until then the recording holds a
// file and a part of the quota.
type Recording struct {
	s          *Store
	id         ID
	provenance Provenance
	created    time.Time

	buf      []byte        // bytes not in the file yet: at most a block
	small    []byte        // all bytes, if they never exceeded a block and are in a file by now
	file     *storefs.File // nil while everything is in memory
	name     string        // of the data file, relative to the store; "" without a file
	key      string        // of the reservation; "" without one
	reserved int64         // bytes reserved
	flushed  int64         // bytes in the file
	dropped  int64
	hash     hash.Hash
	index    indexer

	capErr  error // a cap or the quota was hit: earlier bytes can be committed
	diskErr error // the disk failed: nothing can be committed
	state   string
}

// Record starts an observation and assigns its ID. It writes to the disk only after 64 KiB, or on Commit, so it also
// works on a full or read-only store: then the recording counts bytes and says why they are not stored.
func (s *Store) Record(m Provenance) (*Recording, error) {
	s.quota.tidyIfDue()
	if m.Owner == "" {
		m.Owner = Local
	}
	r := &Recording{s: s, provenance: m, created: s.files.now(), hash: sha256.New()}
	for range 4 { // in case 60 random bits collide
		r.id = RandomID()
		if _, err := s.files.disk.Stat(r.id.file(sideExt)); err != nil {
			break
		}
	}
	return r, nil //nolint:nilerr // a file that cannot be found is a free name
}

// ID returns the ID under which the observation is committed.
func (r *Recording) ID() ID { return r.id }

// Write stores as much of p as there is room for. It never returns an error.
func (r *Recording) Write(p []byte) (int, error) {
	n := len(p)
	if r.state != "" || r.Err() != nil {
		r.dropped += int64(n)
		return n, nil //nolint:nilerr // Dropped counts the bytes, and Err has the error
	}
	var over int64
	if left := r.s.maxObservation - r.Size(); int64(len(p)) > left {
		over = int64(len(p)) - left
		p = p[:left]
	}
	for len(p) > 0 && r.Err() == nil {
		p = p[r.accept(p):]
	}
	if over > 0 && r.Err() == nil {
		r.capErr = fmt.Errorf("%w: over %s (--max-observation)", ErrTooLarge, formatBytes(r.s.maxObservation))
	}
	r.dropped += int64(len(p)) + over
	return n, nil
}

// Drop counts n bytes of the output that the caller cut before they reached Write.
func (r *Recording) Drop(n int64) {
	if r.dropped += n; n > 0 && r.capErr == nil {
		r.capErr = fmt.Errorf("%w: the output was cut", ErrTooLarge)
	}
}

// accept stores some of p and returns how much, or sets why it cannot. Room is reserved for every byte after the first
// block, so that Commit drops none of them.
func (r *Recording) accept(p []byte) int {
	if len(r.buf) == blockSize {
		kept := r.flush(r.buf, r.s.quota.reserveAhead())
		if 0 < kept && kept < blockSize {
			r.dropped += int64(blockSize - kept)
			kept = blockSize
		}
		r.buf = r.buf[:copy(r.buf, r.buf[kept:])]
		return 0
	}
	// Write without buffering: more than a block, or with an open file at least half of one.
	if len(r.buf) == 0 && (len(p) > blockSize || r.file != nil && len(p) >= blockSize/2) {
		return r.flush(p[:min(len(p), blockSize)], r.s.quota.reserveAhead())
	}
	k := min(blockSize-len(r.buf), len(p))
	if len(r.buf)+k > blockSize/4 { // likely to be filled: allocate a whole block
		r.buf = slices.Grow(r.buf, blockSize-len(r.buf))
	}
	if r.file != nil {
		has := len(r.buf)
		k = max(0, int(r.reserveRoom(int64(has+k), r.s.quota.reserveAhead()))-has)
	}
	r.buf = append(r.buf, p[:k]...)
	return k
}

// Size returns the number of bytes stored so far.
func (r *Recording) Size() int64 { return r.flushed + int64(len(r.buf)) }

// Dropped returns the number of bytes written but not stored so far.
func (r *Recording) Dropped() int64 { return r.dropped }

// Err returns why bytes were dropped: [ErrTooLarge], [ErrNoRoom] or a disk error; nil if none were. It is short enough
// for a receipt.
func (r *Recording) Err() error { return cmp.Or(r.diskErr, r.capErr) }

// flush writes b to the file and returns how many of its bytes were stored. If b has no room yet, flush reserves up to
// ahead bytes.
func (r *Recording) flush(b []byte, ahead int64) int {
	if err := r.createFile(); err != nil {
		r.diskErr = err
		return 0
	}
	n := int(min(r.reserveRoom(int64(len(b)), ahead), int64(len(b))))
	if n == 0 {
		return 0
	}
	if _, err := r.file.Write(b[:n]); err != nil {
		r.diskErr = err
		return 0
	}
	r.hash.Write(b[:n])
	_, _ = r.index.Write(b[:n])
	r.flushed += int64(n)
	return n
}

func (r *Recording) createFile() error {
	if r.file != nil {
		return nil
	}
	if err := r.s.files.createLiveFile(); err != nil {
		return err
	}
	k := key(r.s.files.processName(), r.id)
	f, err := r.s.files.disk.Create(storefs.TmpDir + "/" + k + dataExt)
	if err != nil {
		return err
	}
	r.file, r.name, r.key = f, f.Name, k
	return nil
}

// reserveRoom returns how many of the next n bytes have room. If the reservation is too small for them, it is extended
// by what they need, or by ahead bytes if that is more and there is room.
func (r *Recording) reserveRoom(n, ahead int64) int64 {
	if r.roomNeeded(n) <= r.reserved {
		return n
	}
	got, err := r.s.quota.reserve(r.provenance.Owner, r.key, r.reserved, r.roomNeeded(n)-r.reserved, ahead)
	r.reserved += got
	if r.roomNeeded(n) <= r.reserved {
		return n
	}
	if errors.Is(err, ErrNoRoom) {
		r.capErr = err
	} else {
		r.diskErr = err
		return 0
	}
	return max(0, n-(r.roomNeeded(n)-r.reserved))
}

// roomNeeded returns the bytes the observation takes with n more bytes, its index and its sidecar.
func (r *Recording) roomNeeded(n int64) int64 {
	return r.flushed + n + allowance + maxIndex(r.flushed+n)
}

// ReadAt reads the bytes stored so far; after Discard there are none.
func (r *Recording) ReadAt(p []byte, off int64) (int, error) {
	switch {
	case off < 0:
		return 0, errors.New("read recording: negative offset")
	case r.state == discarded:
		return 0, io.EOF
	case r.small != nil:
		return bytes.NewReader(r.small).ReadAt(p, off)
	}
	n := 0
	if off < r.flushed {
		var err error
		if r.file == nil { // Commit closed it
			if r.file, err = r.s.files.disk.Open(r.name, false); err != nil {
				return 0, err
			}
		}
		want := min(int64(len(p)), r.flushed-off)
		if n, err = r.file.ReadAt(p[:want], off); int64(n) < want {
			return n, err
		}
		if n == len(p) {
			return n, nil
		}
	}
	m, err := bytes.NewReader(r.buf).ReadAt(p[n:], off+int64(n)-r.flushed)
	return n + m, err
}

// Discard deletes an uncommitted recording. After a successful Commit it only closes the file ReadAt opened. It may be
// called again.
func (r *Recording) Discard() error {
	if r.file != nil {
		_ = r.file.File.Close()
		r.file = nil
	}
	if r.state == committed || r.state == discarded {
		return nil
	}
	was := r.state
	r.state = discarded
	r.buf, r.small = nil, nil
	if r.key == "" {
		return nil
	}
	var err error
	if was == failed {
		err = r.undoCommit()
	}
	err = cmp.Or(err, r.s.files.disk.Remove(r.name))
	if r.reserved > 0 {
		r.s.quota.endReservation(r.key, r.provenance.Owner, 0)
		r.reserved = 0
	}
	return err
}

// States in which a recording has ended.
const (
	committed = "committed"
	failed    = "failed"
	discarded = "discarded"
)
