package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"runtime"
	"sync/atomic"

	"github.com/mcp-funnel/mcp-funnel/system/worker"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// canPassFiles reports whether a worker can be passed open files.
const canPassFiles = runtime.GOOS != "windows"

// WorkerInput is the text on which a worker runs a filter.
type WorkerInput struct {
	File  *os.File // the text as a file, which the worker reads by position; nil: use Open
	Small bool     // the source has at most smallText bytes
	Size  int64    // bytes of File
	Open  func() (io.Reader, error)
}

// errorReader reads from r and stores the first error that is not io.EOF.
type errorReader struct {
	r      io.Reader
	failed atomic.Pointer[error]
}

func (r *errorReader) Read(b []byte) (int, error) {
	n, err := r.r.Read(b)
	if err != nil && err != io.EOF {
		r.failed.CompareAndSwap(nil, &err)
	}
	return n, err
}

// begun is an empty input that is closed when it is read, once.
type begun chan struct{}

func (b begun) Read([]byte) (int, error) {
	close(b)
	return 0, io.EOF
}

// PageOutput returns how many bytes a worker may write for a page: one row as large as the memory, with each byte
// escaped, and 64 MiB of rows until the worker learns that the page is full.
func PageOutput(memory int64) int64 { return 6*memory + 64<<20 }

// RunWorker runs a job in a worker process. memory is its limit in bytes. output is how many bytes the worker may
// write; 0 is no limit, for callers with a limit of their own. The caller closes enough if it wants no more rows.
func RunWorker(
	ctx context.Context, j Job, t WorkerInput, memory, output int64, to Rows, enough <-chan struct{},
) (Outcome, error) {
	s := worker.Spec{Name: WorkerName, Small: t.Small, Memory: memory, Output: output}
	read := &errorReader{}
	if t.File == nil || !canPassFiles {
		text, err := t.Open()
		if err != nil {
			return Outcome{}, err
		}
		read.r = content.WithContext(ctx, text)
	}
	started := make(begun)
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
		copied, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(copied)
			select { // a worker may write the text: it must not run while this one waits for a slot
			case <-started:
				_, _ = io.Copy(w, read)
			case <-ended:
			}
			_ = w.Close()
		}()
		defer func() {
			_, _ = r.Close(), w.Close()
			close(ended)
			<-copied
		}()
	}
	head, err := json.Marshal(j)
	if err != nil {
		return Outcome{}, err
	}
	var rest io.Reader = read
	if s.Files != nil { // the input goes on, empty, until the caller wants no more rows
		open, end := io.Pipe()
		done := make(chan struct{})
		defer close(done)
		go func() {
			select {
			case <-enough:
			case <-done:
			}
			_ = end.Close()
		}()
		rest = open
	}
	s.In = io.MultiReader(started, bytes.NewReader(append(head, '\n')), rest)
	u := &unframe{to: to}
	err = worker.Run(ctx, s, u)
	if failed := read.failed.Load(); failed != nil && ctx.Err() == nil {
		return Outcome{}, *failed // the worker took the error for the end of the text
	}
	if u.outcome != nil && err == nil {
		return *u.outcome, nil
	}
	if err == nil {
		err = errFrame
	}
	return Outcome{}, err
}
