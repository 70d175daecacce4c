package engine

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// The worker answers in frames: one byte for the type, a big-endian length of four bytes, and that many bytes.
const (
	framePart     = 'p' // a piece of a row that goes on in the next frame
	frameRow      = 'r' // the last, or only, piece of a row
	frameProgress = 'b' // bytes of the text read so far, 8 bytes
	frameOutcome  = 'o' // how it went, JSON; the last one

	frameHead = 5
	frameMost = 64 << 10
)

// frames writes the rows, progress and outcome of a run as frames.
type frames struct {
	enough atomic.Bool
	read   atomic.Int64 // bytes of the text

	mu   sync.Mutex
	w    *bufio.Writer
	told int64 // of read
}

// flushing sends progress and flushes every flushEvery, until the process ends.
func (f *frames) flushing() {
	for range time.Tick(flushEvery) {
		f.mu.Lock()
		if n := f.read.Load(); n != f.told {
			f.told = n
			_ = f.frame(frameProgress, binary.BigEndian.AppendUint64(nil, uint64(n)))
		}
		_ = f.w.Flush() // an error stays, and the next row finds it
		f.mu.Unlock()
	}
}

// flushEvery is how long a row stays in the worker at most, so that slow filters show progress.
const flushEvery = 30 * time.Millisecond

func (f *frames) Wanted() bool { return !f.enough.Load() }

func (f *frames) Progress(n int64) { f.read.Store(n) }

func (f *frames) Row(b []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(b) > frameMost {
		if err := f.frame(framePart, b[:frameMost]); err != nil {
			return err
		}
		b = b[frameMost:]
	}
	return f.frame(frameRow, b)
}

func (f *frames) end(o Outcome) error {
	b, err := json.Marshal(o)
	if err != nil {
		return err
	}
	f.mu.Lock() // and never unlocked: this is the last word
	if err := f.frame(frameOutcome, b); err != nil {
		return err
	}
	return f.w.Flush()
}

func (f *frames) frame(kind byte, b []byte) error {
	var head [frameHead]byte
	head[0] = kind
	binary.BigEndian.PutUint32(head[1:], uint32(len(b)))
	if _, err := f.w.Write(head[:]); err != nil {
		return err
	}
	_, err := f.w.Write(b)
	return err
}

// Parts receives rows in parts.
type Parts interface {
	Part(b []byte, last bool) error
	Progress(bytes int64)
}

// unframe parses the answer of a worker in the parent process. It holds at most one frame, and trusts no byte of it.
type unframe struct {
	to      Parts
	buf     []byte
	outcome *Outcome
}

var errFrame = errors.New("jq: the worker's answer makes no sense")

func (u *unframe) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		if len(u.buf) == 0 && len(b) >= frameHead { // the usual case: whole frames, nothing copied
			if size, err := frameSize(b); err != nil {
				return 0, err
			} else if len(b) >= size {
				if err := u.take(b[:size]); err != nil {
					return 0, err
				}
				b = b[size:]
				continue
			}
		}
		want := frameHead
		if len(u.buf) >= frameHead {
			var err error
			if want, err = frameSize(u.buf); err != nil {
				return 0, err
			}
		}
		k := min(want-len(u.buf), len(b))
		u.buf = append(u.buf, b[:k]...)
		b = b[k:]
		if len(u.buf) < frameHead {
			continue
		}
		if want, err := frameSize(u.buf); err != nil {
			return 0, err
		} else if len(u.buf) == want {
			if err := u.take(u.buf); err != nil {
				return 0, err
			}
			u.buf = u.buf[:0]
		}
	}
	return n, nil
}

func frameSize(b []byte) (int, error) {
	n := binary.BigEndian.Uint32(b[1:])
	if n > frameMost {
		return 0, errFrame
	}
	return frameHead + int(n), nil
}

func (u *unframe) take(f []byte) error {
	kind, b := f[0], f[frameHead:]
	if u.outcome != nil {
		return errFrame
	}
	switch kind {
	case framePart, frameRow:
		return u.to.Part(b, kind == frameRow)
	case frameProgress:
		if len(b) != 8 {
			return errFrame
		}
		u.to.Progress(int64(binary.BigEndian.Uint64(b)))
		return nil
	case frameOutcome:
		u.outcome = new(Outcome)
		if err := json.Unmarshal(b, u.outcome); err != nil {
			return errFrame
		}
		return nil
	default:
		return errFrame
	}
}
