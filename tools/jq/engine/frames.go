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
	framePart     = 'p' // a part of a row; the next frame continues the row
	frameRow      = 'r' // the last, or only, part of a row
	frameProgress = 'b' // how many bytes of the text were read so far, 8 bytes big-endian
	frameOutcome  = 'o' // the outcome of the run, JSON; the last frame

	frameHead = 5        // bytes of type and length
	frameMost = 64 << 10 // bytes after those, at most
)

// frames writes the rows, progress and outcome of a run as frames.
type frames struct {
	enough atomic.Bool  // no more rows are wanted
	read   atomic.Int64 // bytes of the text

	mu       sync.Mutex
	w        *bufio.Writer
	reported int64 // bytes of the last progress frame
}

// flushLoop sends progress and flushes every flushEvery, until the process ends.
func (f *frames) flushLoop() {
	for range time.Tick(flushEvery) {
		f.mu.Lock()
		if n := f.read.Load(); n != f.reported {
			f.reported = n
			_ = f.frame(frameProgress, binary.BigEndian.AppendUint64(nil, uint64(n)))
		}
		_ = f.w.Flush() // the next write returns the error
		f.mu.Unlock()
	}
}

// flushEvery is the longest time that a row is buffered in the worker, so that slow filters show progress.
const flushEvery = 30 * time.Millisecond

func (f *frames) Wanted() bool { return !f.enough.Load() }

func (f *frames) Progress(n int64) { f.read.Store(n) }

func (f *frames) Part(b []byte, last bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(b) > frameMost {
		if err := f.frame(framePart, b[:frameMost]); err != nil {
			return err
		}
		b = b[frameMost:]
	}
	kind := byte(frameRow)
	if !last {
		kind = framePart
	}
	return f.frame(kind, b)
}

// end writes the outcome, and blocks all later frames.
func (f *frames) end(o Outcome) error {
	b, err := json.Marshal(o)
	if err != nil {
		return err
	}
	f.mu.Lock() // never unlocked: no frame may follow the outcome
	if err := f.frame(frameOutcome, b); err != nil {
		return err
	}
	return f.w.Flush()
}

func (f *frames) frame(kind byte, b []byte) error {
	_, _ = f.w.Write(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(b)))) // the next write returns the error
	_, err := f.w.Write(b)
	return err
}

// unframe parses the answer of a worker in the parent process. It buffers at most one frame and one write, and trusts
// no byte of the answer.
type unframe struct {
	to      Rows
	buf     []byte
	outcome *Outcome
}

var errFrame = errors.New("jq: the worker's answer makes no sense")

func (u *unframe) Write(b []byte) (int, error) {
	u.buf = append(u.buf, b...)
	rest := u.buf
	for len(rest) >= frameHead {
		size := binary.BigEndian.Uint32(rest[1:])
		if size > frameMost {
			return 0, errFrame
		}
		end := frameHead + int(size)
		if len(rest) < end {
			break
		}
		if err := u.frame(rest[0], rest[frameHead:end]); err != nil {
			return 0, err
		}
		rest = rest[end:]
	}
	u.buf = append(u.buf[:0], rest...)
	return len(b), nil
}

// frame passes the content of a frame to its receiver.
func (u *unframe) frame(kind byte, b []byte) error {
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
