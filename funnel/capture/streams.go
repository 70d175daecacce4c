package capture

import (
	"bytes"
	"slices"
	"sort"
)

// maxStderr is how many ranges of standard error are remembered; of an output with more, none are.
const maxStderr = 4096

// Streams are the parts of an output that were written to standard error, in order.
type Streams struct {
	ranges   []streamRange
	lost     bool // there are too many ranges
	bytes    int64
	newlines int64
}

type streamRange struct {
	from, to          int64 // bytes
	fromLine, endLine int64 // lines that hold them, from 0; endLine is behind the last
}

// add counts bytes of an output.
func (s *Streams) add(b []byte, stderr bool) {
	if len(b) == 0 {
		return
	}
	from, line := s.bytes, s.newlines
	s.bytes += int64(len(b))
	s.newlines += int64(bytes.Count(b, []byte{'\n'}))
	if !stderr || s.lost {
		return
	}
	end := s.newlines
	if b[len(b)-1] != '\n' {
		end++
	}
	if n := len(s.ranges); n > 0 && s.ranges[n-1].to == from {
		s.ranges[n-1].to, s.ranges[n-1].endLine = s.bytes, end
		return
	}
	if len(s.ranges) == maxStderr {
		s.lost, s.ranges = true, nil
		return
	}
	s.ranges = append(s.ranges, streamRange{from, s.bytes, line, end})
}

// Mixed reports whether the output has parts of both streams.
func (s *Streams) Mixed() bool { return len(s.ranges) > 0 && s.size() < s.bytes }

// Only reports whether all of the output was written to standard error.
func (s *Streams) Only() bool { return len(s.ranges) > 0 && s.size() == s.bytes }

func (s *Streams) size() (n int64) {
	for _, r := range s.ranges {
		n += r.to - r.from
	}
	return n
}

// Lines returns how many lines hold standard error.
func (s *Streams) Lines() (n int64) {
	behind := int64(0)
	for _, r := range s.ranges {
		n += max(r.endLine-max(r.fromLine, behind), 0)
		behind = r.endLine
	}
	return n
}

// HasStderr reports whether a line, counted from 0, holds standard error.
func (s *Streams) HasStderr(line int64) bool {
	i := sort.Search(len(s.ranges), func(i int) bool { return s.ranges[i].endLine > line })
	return i < len(s.ranges) && s.ranges[i].fromLine <= line
}

// Ranges returns the bytes of standard error as pairs of offsets, the second one behind the last byte.
func (s *Streams) Ranges() [][2]int64 {
	out := make([][2]int64, len(s.ranges))
	for i, r := range s.ranges {
		out[i] = [2]int64{r.from, r.to}
	}
	return out
}

// stdout calls visit for each part of the output, given by its offsets, that is no standard error.
func (s *Streams) stdout(visit func(from, to int64)) {
	at := int64(0)
	for _, r := range append(slices.Clone(s.ranges), streamRange{from: s.bytes, to: s.bytes}) {
		if r.from > at {
			visit(at, r.from)
		}
		at = r.to
	}
}
