package source

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Directory returns the path of a directory below a root on this machine; "" is the first root.
func (s Set) Directory(name string) (string, error) {
	if name == "" {
		if len(s.Roots) == 0 {
			return "", s.noRoot()
		}
		return s.Roots[0].Dir(), nil
	}
	root, rel, shown, err := s.resolve(name)
	if err != nil {
		return "", err
	}
	rel = existing(root, rel)
	fi, err := root.Stat(rel)
	if err != nil {
		return "", s.place(root).nameError(err)
	}
	if !fi.IsDir() {
		return "", fmt.Errorf("%s is a file: name a directory", content.ClipBytes(shown, 200))
	}
	return filepath.Join(root.Dir(), filepath.FromSlash(rel)), nil
}

// Streams calls visit for each part of an observation, in order, with the stream to which it was written.
func (s *Source) Streams(visit func(stderr bool, r io.Reader) error) error {
	part := func(stderr bool, from, to int64) error {
		if from >= to {
			return nil
		}
		return visit(stderr, io.NewSectionReader(s.ReaderAt, from, to-from))
	}
	at := int64(0)
	for _, r := range s.stderr() {
		if err := part(false, at, r[0]); err != nil {
			return err
		}
		if err := part(true, r[0], r[1]); err != nil {
			return err
		}
		at = r[1]
	}
	return part(false, at, s.Size)
}

// HasStderr reports whether the source is the output of a command with parts that were written to standard error.
func (s *Source) HasStderr() bool { return len(s.stderr()) > 0 }

// stderr returns the ranges of standard error within the source, as far as it was stored.
func (s *Source) stderr() (ranges [][2]int64) {
	if s.Observation == nil {
		return nil
	}
	for _, r := range s.Observation.Stats.Stderr {
		if r[0] < s.Size {
			ranges = append(ranges, [2]int64{r[0], min(r[1], s.Size)})
		}
	}
	return ranges
}

// StandardOutput returns the source without standard error, if the command that wrote it wrote both. The offsets of its
// bytes are those of standard output alone. Closing it closes s.
func (s *Source) StandardOutput() *Source {
	ranges := s.stderr()
	size := s.Size
	for _, r := range ranges {
		size -= r[1] - r[0]
	}
	if len(ranges) == 0 || size == 0 {
		return s
	}
	out := *s
	out.ReaderAt, out.Size, out.index = newWithout(s.ReaderAt, ranges, s.Size), size, nil
	return &out
}

// without reads a text without some of its ranges.
type without struct {
	r     io.ReaderAt
	parts []partOf // what is left
}

type partOf struct{ at, from, size int64 } // offset in the result, in the text, length

func newWithout(r io.ReaderAt, ranges [][2]int64, size int64) *without {
	w := &without{r: r}
	at, from := int64(0), int64(0)
	for _, out := range append(ranges[:len(ranges):len(ranges)], [2]int64{size, size}) {
		if n := out[0] - from; n > 0 {
			w.parts = append(w.parts, partOf{at, from, n})
			at += n
		}
		from = out[1]
	}
	return w
}

// ReadAt implements [io.ReaderAt].
func (w *without) ReadAt(b []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, os.ErrInvalid
	}
	i := sort.Search(len(w.parts), func(i int) bool { return w.parts[i].at+w.parts[i].size > off })
	for ; i < len(w.parts) && n < len(b); i++ {
		p := w.parts[i]
		skip := off + int64(n) - p.at
		want := min(int64(len(b)-n), p.size-skip)
		k, err := w.r.ReadAt(b[n:n+int(want)], p.from+skip)
		n += k
		if int64(k) < want {
			if err == nil {
				err = io.ErrUnexpectedEOF
			}
			return n, err
		}
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}
