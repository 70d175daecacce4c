//go:build linux

package linesearch

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// counted counts what is read of a file.
type counted struct {
	*os.File
	read atomic.Int64
}

func (c *counted) ReadAt(b []byte, at int64) (int, error) {
	n, err := c.File.ReadAt(b, at)
	c.read.Add(int64(n))
	return n, err
}

// log writes lines of a log, every nth of them with a needle.
func log(t *testing.T, size, nth int) (*counted, []byte) {
	t.Helper()
	var b bytes.Buffer
	for i := 1; b.Len() < size; i++ {
		said := "request served from the cache"
		if i%nth == 0 {
			said = "deadline exceeded"
		}
		fmt.Fprintf(&b, "2026-11-02T03:04:05Z level=info n=%d %s\n", i, said)
	}
	path := filepath.Join(t.TempDir(), "log")
	expect.Must(t, os.WriteFile(path, b.Bytes(), 0o600))
	f, err := os.Open(path)
	expect.Must(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return &counted{File: f}, b.Bytes()
}

// sparseMatcher returns a matcher that can scan the file sparsely.
func sparseMatcher(t *testing.T, f *counted, size int64) *Matcher {
	t.Helper()
	m, err := Compile(Pattern{Expr: "deadline exceeded"})
	expect.Must(t, err)
	s := &lineScan{m: m, out: &emitter{}, readerAt: io.NewSectionReader(f, 0, size)}
	if s.newSparseScan() == nil {
		t.Skip(
			"files cannot be looked at here: no AVX2, or the directory for temporary files is on another file system",
		)
	}
	return m
}

// Where needles are rare next to nothing is read; where they are not, all of it, once and a bit. The lines are the
// same.
func TestSurveyReadsLittle(t *testing.T) {
	for _, c := range []struct {
		nth         int
		least, most float64 // of the size
	}{
		{1 << 30, 0, 0},
		{20_000, 0.001, 0.05},
		{10, 1, 1.2},
	} {
		f, text := log(t, 12<<20, c.nth)
		m := sparseMatcher(t, f, int64(len(text)))
		want, totals := scanAll(t, m, Options{}, bytes.NewReader(text))
		got, gotTotals := scanAll(t, m, Options{}, io.NewSectionReader(f, 0, int64(len(text))))
		if totals != gotTotals || len(want) != len(got) {
			t.Fatalf(
				"every %dth line: %d lines, %+v, and in memory %d, %+v",
				c.nth,
				len(got),
				gotTotals,
				len(want),
				totals,
			)
		}
		for i := range want {
			expect.MustEqual(t, want[i], got[i], "every %dth line, memory", c.nth)
		}
		if part := float64(f.read.Load()) / float64(len(text)); part < c.least || part > c.most {
			t.Errorf("every %dth line: %.3f of the text was read, not %.3f to %.3f", c.nth, part, c.least, c.most)
		}
	}
}

// A file that is cut off, and grows again, while it is searched: the search ends, and tells only lines that were there.
func TestSurveyOfAFileThatBecomesShorter(t *testing.T) {
	f, text := log(t, 12<<20, 5_000)
	m := sparseMatcher(t, f, int64(len(text)))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for size := int64(1); ctx.Err() == nil; size = (size*7 + 1<<20) % int64(len(text)) {
			if os.Truncate(f.Name(), size) != nil || os.Truncate(f.Name(), int64(len(text))) != nil {
				return
			}
			if err := os.WriteFile(f.Name(), text, 0o600); err != nil {
				return
			}
		}
	}()
	for range 60 {
		_, err := m.Scan(ctx, io.NewSectionReader(f, 0, int64(len(text))), Options{}, func(l Line) error {
			if !bytes.Contains(l.Text, []byte("deadline exceeded")) {
				t.Errorf("told as a match: %.200q", l.Text)
			}
			return nil
		})
		expect.Must(t, err)
	}
	cancel()
	<-done
}

// A text that is written to in place while it is looked at: its lines may be those of before or after, or of both,
// but each that is told as a match is one, they are told one after the other, none overlaps another, and the scan
// ends.
func TestSurveyOfAFileThatIsWrittenTo(t *testing.T) {
	const size = 12 << 20
	for name, put := range map[string]func(a, b []byte){
		"a line end comes and goes in a last line that has none": func(a, b []byte) {
			for i := 0; i < size-40_000; i += 100 {
				a[i], b[i] = '\n', '\n'
			}
			b[size-20_000] = '\n'
		},
		"line ends at the borders of chunks": func(a, b []byte) {
			for i := 2 << 20; i+9000 < size; i += 2 << 20 {
				a[i+9000], b[i+500] = '\n', '\n'
			}
		},
		"lines and needles": func(a, b []byte) {
			for i := 0; i+4001 < size; i += 4001 {
				a[i], b[i+1777] = '\n', '\n'
			}
			for i := 0; i+2000 < size; i += 300_001 {
				copy(a[i+5:], "deadline exceeded")
				copy(b[i+23:], "deadline exceeded")
			}
		},
	} {
		a, b := bytes.Repeat([]byte("x"), size), bytes.Repeat([]byte("x"), size)
		put(a, b)
		path := filepath.Join(t.TempDir(), "text")
		expect.Must(t, os.WriteFile(path, a, 0o600))
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		expect.Must(t, err)
		m := sparseMatcher(t, &counted{File: f}, size)
		shared, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		expect.Must(t, err)
		var stop atomic.Bool
		done := make(chan struct{})
		go func() {
			defer close(done)
			var differ []int
			for i := range a {
				if a[i] != b[i] {
					differ = append(differ, i)
				}
			}
			for !stop.Load() {
				for _, i := range differ {
					shared[i] = b[i]
				}
				runtime.Gosched()
				for _, i := range differ {
					shared[i] = a[i]
				}
				runtime.Gosched()
			}
		}()
		for range 80 {
			told, number := int64(0), int64(0)
			_, err := m.Scan(t.Context(), io.NewSectionReader(f, 0, size), Options{}, func(l Line) error {
				if l.Offset < told || l.Number <= number {
					t.Errorf(
						"%s: line %d at %d is told after line %d, which ends at %d",
						name,
						l.Number,
						l.Offset,
						number,
						told,
					)
				}
				told, number = l.Offset+l.Size, l.Number
				if l.Size < 2000 && !bytes.Contains(l.Text, []byte("deadline exceeded")) {
					t.Errorf("%s: told as a match: %.200q", name, l.Text)
				}
				return nil
			})
			expect.OK(t, err, name)
		}
		stop.Store(true)
		<-done
		_ = unix.Munmap(shared)
		_ = f.Close()
	}
}
