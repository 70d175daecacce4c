package observations

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"time"
)

// Recording is one observation being written. Writes never fail for want of
// room: what cannot be kept is counted ([Recording.Dropped]) and named
// ([Recording.Err]). Up to 64 KiB stays in memory. Not safe for concurrent use.
//
// Every recording ends with Commit or Discard, and where Commit failed, with
// Discard after it: until then it holds a file and a part of the quota.
type Recording struct {
	s       *Store
	id      ID
	made    Made
	created time.Time

	buf     []byte // what is not in the file yet: at most a block
	whole   []byte // all of it, where it never was more than a block and is in a file by now
	file    *file  // nil while everything is in memory
	name    string // of the bytes, below the store; "" while there is no file
	key     string // of the reservation; "" while there is none
	room    int64  // reserved
	flushed int64  // in the file
	dropped int64
	hash    hash.Hash
	index   indexer

	short  error // a cap or the quota: what was kept before it can be committed
	broken error // the disk: nothing can
	ended  string
}

// Record starts an observation; the ID exists from here on. Nothing is on the
// disk before more than 64 KiB are written or it is committed, so it works on a
// store that has become full or read-only too: the recording counts, and says
// why it does not keep.
func (s *Store) Record(m Made) (*Recording, error) {
	s.tidy()
	if m.Owner == "" {
		m.Owner = Local
	}
	r := &Recording{s: s, id: newID(), made: m, created: s.now(), hash: sha256.New()}
	for range 3 { // 60 random bits, and still
		if !s.taken(r.id) {
			break
		}
		r.id = newID()
	}
	return r, nil
}

// taken says that an ID has a sidecar. Where the disk cannot tell, it has none.
func (s *Store) taken(id ID) bool {
	_, err := s.disk.stat(observationsDir + "/" + string(id) + sideExt)
	return err == nil
}

// ID is what the observation will be named.
func (r *Recording) ID() ID { return r.id }

// Write keeps p, or as much of it as there is room for. It never fails.
func (r *Recording) Write(p []byte) (int, error) {
	n := len(p)
	if r.ended != "" || r.Err() != nil {
		r.dropped += int64(n)
		return n, nil //nolint:nilerr // what is not kept is counted, and named by Err
	}
	var over int64
	if left := r.s.maxObservation - r.Size(); int64(len(p)) > left {
		over = int64(len(p)) - left
		p = p[:left]
	}
	for len(p) > 0 && r.Err() == nil {
		p = p[r.take(p):]
	}
	if over > 0 && r.Err() == nil {
		r.short = fmt.Errorf("%w: over %s (--max-observation)", ErrTooLarge, amount(r.s.maxObservation))
	}
	r.dropped += int64(len(p)) + over
	return n, nil
}

// take accepts some of p, or sets why it cannot. Of what is accepted after the
// first block the room is reserved, so that a commit does not cut it off.
func (r *Recording) take(p []byte) int {
	if len(r.buf) == blockSize {
		kept := r.flush(r.buf, r.s.step())
		if 0 < kept && kept < blockSize {
			r.dropped += int64(blockSize - kept)
			kept = blockSize
		}
		r.buf = r.buf[:copy(r.buf, r.buf[kept:])]
		return 0
	}
	// Straight from the caller: what is longer than a block, and once there is a file what is nearly one.
	if len(r.buf) == 0 && (len(p) > blockSize || r.file != nil && len(p) >= blockSize/2) {
		return r.flush(p[:min(len(p), blockSize)], r.s.step())
	}
	k := min(blockSize-len(r.buf), len(p))
	if len(r.buf)+k > blockSize/4 { // likely to be filled: no more growing
		r.buf = slices.Grow(r.buf, blockSize-len(r.buf))
	}
	if r.file != nil {
		has := len(r.buf)
		k = max(0, int(r.grant(int64(has+k), r.s.step()))-has)
	}
	r.buf = append(r.buf, p[:k]...)
	return k
}

// Size is how many bytes are kept so far.
func (r *Recording) Size() int64 { return r.flushed + int64(len(r.buf)) }

// Dropped is how many bytes were written and not kept so far.
func (r *Recording) Dropped() int64 { return r.dropped }

// Err says why bytes were dropped: [ErrTooLarge], [ErrNoRoom], or a disk's
// error. It is short enough for a receipt, and nil while all is kept.
func (r *Recording) Err() error {
	if r.broken != nil {
		return r.broken
	}
	return r.short
}

// SHA256 is the hash, in hex, of what is kept so far.
func (r *Recording) SHA256() string {
	if len(r.buf) == 0 {
		return hex.EncodeToString(r.hash.Sum(nil))
	}
	h, err := r.hash.(hash.Cloner).Clone()
	if err != nil { // only where the hash is not Go's own
		return ""
	}
	h.Write(r.buf)
	return hex.EncodeToString(h.Sum(nil))
}

// flush writes b to the file and says how much of it is kept. ahead is what to
// reserve where b has no room yet.
func (r *Recording) flush(b []byte, ahead int64) int {
	if err := r.spill(); err != nil {
		r.broken = err
		return 0
	}
	n := int(min(r.grant(int64(len(b)), ahead), int64(len(b))))
	if n == 0 {
		return 0
	}
	if _, err := r.file.Write(b[:n]); err != nil {
		r.broken = err
		return 0
	}
	r.hash.Write(b[:n])
	r.index.add(b[:n])
	r.flushed += int64(n)
	return n
}

// spill makes the file.
func (r *Recording) spill() error {
	if r.file != nil {
		return nil
	}
	if err := r.s.announce(); err != nil {
		return err
	}
	k := key(r.s.process(), r.id)
	f, err := r.s.disk.create(tmpDir + "/" + k + dataExt)
	if err != nil {
		return err
	}
	r.file, r.name, r.key = f, f.name, k
	return nil
}

// grant says how many of the next n bytes have room, reserving it, and ahead
// bytes where it must ask.
func (r *Recording) grant(n, ahead int64) int64 {
	if r.need(n) <= r.room {
		return n
	}
	got, err := r.s.reserve(r.key, r.room, r.need(n)-r.room, ahead)
	r.room += got
	if r.need(n) <= r.room {
		return n
	}
	if errors.Is(err, ErrNoRoom) {
		r.short = err
	} else {
		r.broken = err
		return 0
	}
	return max(0, n-(r.need(n)-r.room))
}

// need is the room for n more bytes, and for the index and the sidecar of it all.
func (r *Recording) need(n int64) int64 {
	return r.flushed + n + allowance + maxIndex(r.flushed+n)
}

// ReadAt reads of what is kept so far. After Discard there is nothing.
func (r *Recording) ReadAt(p []byte, off int64) (int, error) {
	switch {
	case off < 0:
		return 0, errors.New("read recording: negative offset")
	case r.ended == discarded:
		return 0, io.EOF
	case r.whole != nil:
		return readSlice(p, r.whole, off)
	}
	n := 0
	if off < r.flushed {
		if err := r.reopen(); err != nil {
			return 0, err
		}
		want := min(int64(len(p)), r.flushed-off)
		var err error
		if n, err = r.file.ReadAt(p[:want], off); int64(n) < want {
			return n, err
		}
		if n == len(p) {
			return n, nil
		}
	}
	m, err := readSlice(p[n:], r.buf, off+int64(n)-r.flushed)
	return n + m, err
}

func readSlice(p, from []byte, off int64) (int, error) {
	if off >= int64(len(from)) {
		return 0, io.EOF
	}
	n := copy(p, from[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// reopen opens the bytes again where a commit closed them.
func (r *Recording) reopen() (err error) {
	if r.file == nil {
		r.file, err = r.s.disk.open(r.name, false)
	}
	return err
}

// Discard forgets what was recorded; after a successful Commit it only closes
// what ReadAt opened. It may be called again.
func (r *Recording) Discard() error {
	if r.file != nil {
		_ = r.file.File.Close()
		r.file = nil
	}
	if r.ended == committed || r.ended == discarded {
		return nil
	}
	was := r.ended
	r.ended = discarded
	r.buf, r.whole = nil, nil
	if r.key == "" {
		return nil
	}
	var err error
	if was == failed {
		err = r.undo()
	}
	if e := r.s.disk.remove(r.name); err == nil {
		err = e
	}
	if r.room > 0 {
		r.s.settle(r.key, 0)
		r.room = 0
	}
	return err
}

// How a recording ended.
const (
	committed = "committed"
	failed    = "failed"
	discarded = "discarded"
)
