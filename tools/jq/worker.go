package jq

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-funnel/mcp-funnel/internal/child"
)

// WorkerName is what [Worker] is called among the workers that child.Main gets.
const WorkerName = "jq"

// Workers are the worker functions of this package, for child.Main.
func Workers() map[string]child.Worker { return map[string]child.Worker{WorkerName: Worker} }

// The worker answers in frames: one byte for the type, four for the length, most significant first, and so many bytes.
const (
	framePart     = 'p' // a piece of a row that goes on in the next frame
	frameRow      = 'r' // the last, or only, piece of a row
	frameProgress = 'b' // bytes of the text read so far, 8 bytes
	frameOutcome  = 'o' // how it went, JSON; the last one

	frameHead = 5
	frameMost = 64 << 10
)

// Worker runs a filter. Its input begins with the job, a line of JSON; the end
// of its input means that no more rows are wanted, only their number. The text is the one file it gets; where
// files cannot be passed it is the rest of the input.
func Worker(ctx context.Context, in io.Reader, files []*os.File, out io.Writer) error {
	input := bufio.NewReaderSize(in, 64<<10)
	line, err := input.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("no job: %w", err)
	}
	var j job
	if err := json.Unmarshal(line, &j); err != nil {
		return fmt.Errorf("job: %w", err)
	}
	debug.SetGCPercent(garbage)
	w := &frames{w: bufio.NewWriterSize(out, frameMost)}
	go w.flushing()
	var text io.Reader = input
	if len(files) > 0 {
		text = files[0]
		if j.Size > 0 {
			text = io.NewSectionReader(files[0], 0, j.Size)
		}
		go func() {
			_, _ = io.Copy(io.Discard, input)
			w.enough.Store(true)
		}()
	}
	o, err := j.run(ctx, text, w)
	if err != nil {
		return err
	}
	return w.end(o)
}

// garbage is how much a worker lets lie before it collects it, in percent of what it holds: mostly little is held, and
// the memory limit, which child sets, makes it collect earlier where it is much.
const garbage = 400

// flushEvery is how long a row stays in the worker at most: a slow program is seen to work.
const flushEvery = 30 * time.Millisecond

// frames writes what a run has to say.
type frames struct {
	enough atomic.Bool
	read   atomic.Int64 // bytes of the text

	mu   sync.Mutex
	w    *bufio.Writer
	told int64 // of read
}

// flushing hands on what was said, again and again, until the process ends.
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

func (f *frames) wanted() bool { return !f.enough.Load() }

func (f *frames) progress(n int64) { f.read.Store(n) }

func (f *frames) row(b []byte) error {
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

func (f *frames) end(o outcome) error {
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

// parts takes rows in pieces.
type parts interface {
	part(b []byte, last bool) error
	progress(bytes int64)
}

// unframe is the parent's end: it takes the worker's answer as it comes, and
// holds no more of it than one frame. It trusts nothing of what it reads.
type unframe struct {
	to      parts
	buf     []byte
	outcome *outcome
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
		return u.to.part(b, kind == frameRow)
	case frameProgress:
		if len(b) != 8 {
			return errFrame
		}
		u.to.progress(int64(binary.BigEndian.Uint64(b)))
		return nil
	case frameOutcome:
		u.outcome = new(outcome)
		if err := json.Unmarshal(b, u.outcome); err != nil {
			return errFrame
		}
		return nil
	default:
		return errFrame
	}
}

// text is the text a filter runs on.
type text struct {
	file *os.File // to be read by position, or nil
	size int64    // of file
	r    func() (io.Reader, error)
}

// gate is a Read that waits until it is opened, and then is at its end.
type gate chan struct{}

func (g gate) Read([]byte) (int, error) {
	<-g
	return 0, io.EOF
}

// reading reads a text for a worker, and remembers what went wrong.
type reading struct {
	ctx    context.Context
	r      io.Reader
	failed atomic.Pointer[error]
}

func (r *reading) from(text io.Reader) *reading {
	r.r = text
	return r
}

func (r *reading) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := r.r.Read(b)
	if err != nil && err != io.EOF {
		r.failed.CompareAndSwap(nil, &err)
	}
	return n, err
}

// pageOutput is what a worker may write where a page is wanted: one row as large as its memory can hold, each byte of it
// escaped, and what is under way until it hears that the page is full.
func pageOutput(memory int64) int64 { return 6*memory + 64<<20 }

// runWorker runs a job in a worker, which may write so many bytes (0: as many as it likes, they are kept by those who have
// their own bounds); enough is closed when no more rows are wanted.
func runWorker(ctx context.Context, j job, t text, memory, output int64, to parts, enough <-chan struct{}) (outcome, error) {
	s := child.Spec{Name: WorkerName, Memory: memory, Output: output}
	read := &reading{ctx: ctx}
	var clean []func()
	defer func() {
		for _, f := range clean {
			f()
		}
	}()
	switch {
	case t.file != nil && canPassFiles:
		j.Size = t.size
		s.Files = []*os.File{t.file}
	case canPassFiles:
		r, w, err := os.Pipe()
		if err != nil {
			return outcome{}, err
		}
		s.Files = []*os.File{r}
		from, err := t.r()
		if err != nil {
			_, _ = r.Close(), w.Close()
			return outcome{}, err
		}
		copied := make(chan struct{})
		go func() {
			defer close(copied)
			_, _ = io.Copy(w, read.from(from))
			_ = w.Close()
		}()
		clean = append(clean, func() {
			_, _ = r.Close(), w.Close()
			<-copied
		})
	}
	head, err := json.Marshal(j)
	if err != nil {
		return outcome{}, err
	}
	in := []io.Reader{bytes.NewReader(append(head, 0x0a))}
	if s.Files == nil {
		from, err := t.r()
		if err != nil {
			return outcome{}, err
		}
		in = append(in, read.from(from))
	} else {
		shut := make(gate)
		done := make(chan struct{})
		clean = append(clean, func() { close(done) })
		go func() {
			select {
			case <-enough:
			case <-done:
			}
			close(shut)
		}()
		in = append(in, shut)
	}
	s.In = io.MultiReader(in...)
	u := &unframe{to: to}
	err = child.Run(ctx, s, u)
	if failed := read.failed.Load(); failed != nil && ctx.Err() == nil {
		return outcome{}, *failed // to the worker it looked like the end of the text
	}
	if u.outcome != nil && err == nil {
		return *u.outcome, nil
	}
	if err == nil {
		err = errFrame
	}
	return outcome{}, err
}
