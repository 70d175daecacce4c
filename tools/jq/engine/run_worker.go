package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"sync/atomic"

	"github.com/mcp-funnel/mcp-funnel/internal/worker"
)

// WorkerInput is the text on which a worker runs a filter.
type WorkerInput struct {
	File  *os.File // to be read by position, or nil
	Small bool     // its source is of at most smallText bytes
	Size  int64    // of file
	Open  func() (io.Reader, error)
}

// gate is a reader that blocks until the channel is closed, and then returns io.EOF.
type gate chan struct{}

func (g gate) Read([]byte) (int, error) {
	<-g
	return 0, io.EOF
}

// reading reads a text for a worker and keeps the first error.
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

// PageOutput is how many bytes a worker may write for a page: one row as large as its memory, each byte of it escaped,
// and the rows under way until it hears that the page is full.
func PageOutput(memory int64) int64 { return 6*memory + 64<<20 }

// RunWorker runs a job in a worker process with a memory limit in bytes. It may write output bytes; 0 is no limit, for
// callers with a limit of their own. The caller closes enough when it wants no more rows.
func RunWorker(
	ctx context.Context, j Job, t WorkerInput, memory, output int64, to Parts, enough <-chan struct{},
) (Outcome, error) {
	s := worker.Spec{Name: WorkerName, Small: t.Small, Memory: memory, Output: output}
	read := &reading{ctx: ctx}
	var clean []func()
	defer func() {
		for _, f := range clean {
			f()
		}
	}()
	switch {
	case t.File != nil && canPassFiles:
		j.Size = t.Size
		s.Files = []*os.File{t.File}
	case canPassFiles:
		r, w, err := os.Pipe()
		if err != nil {
			return Outcome{}, err
		}
		s.Files = []*os.File{r}
		from, err := t.Open()
		if err != nil {
			_, _ = r.Close(), w.Close()
			return Outcome{}, err
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
		return Outcome{}, err
	}
	in := []io.Reader{bytes.NewReader(append(head, 0x0a))}
	if s.Files == nil {
		from, err := t.Open()
		if err != nil {
			return Outcome{}, err
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
	err = worker.Run(ctx, s, u)
	if failed := read.failed.Load(); failed != nil && ctx.Err() == nil {
		return Outcome{}, *failed // to the worker it looked like the end of the text
	}
	if u.outcome != nil && err == nil {
		return *u.outcome, nil
	}
	if err == nil {
		err = errFrame
	}
	return Outcome{}, err
}
