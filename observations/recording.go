package observations

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations/backend"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Recording is one observation being written. Write does not fail when there is no room: it counts the bytes that are
// not stored ([Recording.Dropped]) and keeps the reason ([Recording.Err]). Up to 64 KiB stay in memory. Not safe for
// concurrent use.
//
// Every recording ends with Commit or Discard. If Commit failed, Discard must follow: until then the recording holds a
// file and a part of the quota.
type Recording struct {
	w          backend.Writer
	limits     *Options
	provenance Provenance
	created    time.Time

	buf     []byte // bytes not written yet: at most a block
	small   []byte // all bytes, if they never exceeded a block and are written by now
	writing bool   // not everything is in memory
	flushed int64  // bytes written
	dropped int64
	hash    hash.Hash
	index   backend.Indexer

	capErr  error // a cap or the quota was hit: earlier bytes can be committed
	diskErr error // the disk or network failed: nothing can be committed
	state   string
}

// Record starts an observation and assigns its ID. It stores bytes only after 64 KiB, or on Commit, so it also works on
// a full or read-only store: then the recording counts bytes and says why they are not stored.
func (s *Store) Record(m Provenance) (*Recording, error) {
	m.Owner = cmp.Or(m.Owner, Local)
	at := s.options.Now()
	w, err := s.Create(m, at)
	if err != nil {
		return nil, err
	}
	return &Recording{w: w, limits: &s.options, provenance: m, created: at, hash: sha256.New()}, nil
}

// ID returns the ID under which the observation is committed.
func (r *Recording) ID() ID { return r.w.ID() }

// Write stores as much of p as there is room for. It never returns an error.
func (r *Recording) Write(p []byte) (int, error) {
	n := len(p)
	if r.state != "" || r.Err() != nil {
		r.dropped += int64(n)
		return n, nil //nolint:nilerr // Dropped counts the bytes, and Err has the error
	}
	var over int64
	if left := r.limits.MaxObservation - r.Size(); int64(len(p)) > left {
		over = int64(len(p)) - left
		p = p[:left]
	}
	for len(p) > 0 && r.Err() == nil {
		p = p[r.accept(p):]
	}
	if over > 0 && r.Err() == nil {
		r.capErr = fmt.Errorf("%w: over %s (--max-observation)", ErrTooLarge, backend.FormatBytes(r.limits.MaxObservation))
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
	if len(r.buf) == backend.BlockSize {
		kept := r.flush(r.buf, r.limits.Ahead())
		if 0 < kept && kept < backend.BlockSize {
			r.dropped += int64(backend.BlockSize - kept)
			kept = backend.BlockSize
		}
		r.buf = r.buf[:copy(r.buf, r.buf[kept:])]
		return 0
	}
	// Write without buffering: more than a block, or with an open file at least half of one.
	if len(r.buf) == 0 && (len(p) > backend.BlockSize || r.writing && len(p) >= backend.BlockSize/2) {
		return r.flush(p[:min(len(p), backend.BlockSize)], r.limits.Ahead())
	}
	k := min(backend.BlockSize-len(r.buf), len(p))
	if len(r.buf)+k > backend.BlockSize/4 { // likely to be filled: allocate a whole block
		r.buf = slices.Grow(r.buf, backend.BlockSize-len(r.buf))
	}
	if r.writing {
		has := len(r.buf)
		room, _ := r.reserveRoom(has+k, r.limits.Ahead()) // why not comes from Err
		k = max(0, room-has)
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

// flush writes b and returns how many of its bytes were stored. If b has no room yet, flush reserves up to ahead bytes.
func (r *Recording) flush(b []byte, ahead int64) int {
	n, _ := r.reserveRoom(len(b), ahead) // why not comes from Err
	if n == 0 {
		return 0
	}
	if _, err := r.w.Write(b[:n]); err != nil {
		r.diskErr = err
		return 0
	}
	r.hash.Write(b[:n])
	_, _ = r.index.Write(b[:n])
	r.flushed += int64(n)
	return n
}

// reserveRoom returns how many of the next n bytes have room, and sets the error if they are fewer.
func (r *Recording) reserveRoom(n int, ahead int64) (int, error) {
	room, err := r.w.Room(int64(n), ahead)
	r.writing = true
	if errors.Is(err, ErrNoRoom) {
		r.capErr = err
	} else if err != nil {
		r.diskErr = err
	}
	return int(room), err
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
		want := min(int64(len(p)), r.flushed-off)
		var err error
		if n, err = r.w.ReadAt(p[:want], off); int64(n) < want {
			return n, err
		}
		if n == len(p) {
			return n, nil
		}
	}
	m, err := bytes.NewReader(r.buf).ReadAt(p[n:], off+int64(n)-r.flushed)
	return n + m, err
}

// Commit stores the observation. Once it returns nil the observation survives the death of the process, and with
// [Options.Fsync] a power loss.
//
// The observation reports what a cap or the quota dropped (Dropped, Cause); Commit drops nothing more. If the disk
// failed, or the bytes still in memory have no room, Commit returns that error and nothing is stored; ReadAt works
// until Discard.
func (r *Recording) Commit(seen Stats) (Observation, error) {
	if r.state != "" {
		return Observation{}, fmt.Errorf("commit obs:%s: it has %s already", r.ID(), r.state)
	}
	r.state = failed
	err := r.diskErr
	if err == nil {
		err = r.flushAll()
	}
	o := backend.NewObservation(r.ID(), r.provenance, r.created)
	o.File = backend.DataName(r.provenance.Tool, r.created, o.ID, seen.Ext)
	o.Bytes, o.Dropped = r.flushed, r.dropped
	if r.capErr != nil && r.dropped > 0 {
		o.Cause = content.ClipEnd(r.capErr.Error(), 200)
	}
	o.SHA256 = hex.EncodeToString(r.hash.Sum(nil))
	o.Stats = seen.Bounded()
	if err == nil {
		o, err = r.w.Commit(o, r.index.Finish())
	}
	if err != nil {
		return Observation{}, fmt.Errorf("not kept: %w", err)
	}
	r.state = committed
	return o, nil
}

// flushAll writes the bytes still in memory: all of them or none.
func (r *Recording) flushAll() error {
	if !r.writing {
		r.small = r.buf
	}
	if _, err := r.reserveRoom(len(r.buf), 0); err != nil {
		return err
	}
	if r.Size() == 0 && r.dropped > 0 { // an empty observation would claim there was no output
		return r.Err()
	}
	if r.flush(r.buf, 0); r.diskErr == nil {
		r.buf = nil
	}
	return r.diskErr
}

// Discard deletes an uncommitted recording. After a successful Commit it only closes the file ReadAt opened. It may be
// called again.
func (r *Recording) Discard() error {
	if r.state != committed {
		r.state, r.buf, r.small = discarded, nil, nil
	}
	if !r.writing {
		return nil
	}
	return r.w.Discard()
}

// States in which a recording has ended.
const (
	committed = "been committed"
	failed    = "failed"
	discarded = "been discarded"
)
