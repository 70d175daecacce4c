package diff

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/kinds/record"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// maxHunks is the maximum number of hunks kept of one file, about 2 MB of JSON. More are counted.
const maxHunks = 20_000

// File is one file of a diff.
type File struct {
	At      content.Span // from its first header to the last line of its last hunk
	Hunks   []Hunk       // the first maxHunks
	Omitted int64        // hunks after these
	changed *changed
}

// Hunk is one hunk of a file.
type Hunk struct {
	At    content.Span // from "@@" to the end of the last line
	lines int64
	hunk  *hunk
}

// Name returns the name of the file: the new one, or the old one of a deleted file.
func (f *File) Name() string { return f.changed.name() }

// Damage returns what the diff lacks of the file, "" if nothing: a hunk ends before it has the lines that its header
// announces, or the diff breaks off inside the file.
func (f *File) Damage() string { return f.changed.damage }

// Files calls visit for each file of a diff until visit returns false. Files are numbered from 0. If the diff is cut,
// the error is a [*content.Remarks].
func Files(ctx context.Context, r io.Reader, visit func(index int64, f *File) bool) error {
	s := fileScanner{visit: visit}
	p := parser{onFile: s.begin, onHunk: func(*hunk) {}}
	lines := record.NewLines(ctx, r, digest.LineBytes)
	for {
		line, err := lines.Next()
		if errors.Is(err, io.EOF) {
			p.finish()
			s.finish()
			if notes := p.damage(); len(notes) > 0 && !s.enough {
				return &content.Remarks{Notes: notes}
			}
			return nil
		}
		if err != nil {
			return err
		}
		before := p.hunk
		if p.line(line, lines.Number, lines.Unended); s.enough {
			return nil
		}
		s.add(&p, before, line, lines.At)
	}
}

// fileScanner collects the lines of one file after another.
type fileScanner struct {
	visit  func(int64, *File) bool
	index  int64
	file   *File // nil before the first
	enough bool  // visit wants no more
}

// begin finishes the file before, and starts another.
func (s *fileScanner) begin(c *changed) {
	s.finish()
	s.file = &File{At: content.Span{Start: -1}, changed: c}
}

func (s *fileScanner) finish() {
	if s.file == nil || s.enough {
		return
	}
	s.enough = !s.visit(s.index, s.file)
	s.index++
	s.file = nil
}

// add adds a line that p has read to the current file. before is the hunk in which the line before it was.
func (s *fileScanner) add(p *parser, before *hunk, line []byte, at content.Span) {
	f := s.file
	if f == nil || p.now == nil || len(line) == 0 && p.hunk == nil || f.changed.hunks > 0 && p.hunk == nil {
		return
	}
	if f.At.Start < 0 {
		f.At.Start = at.Start
	}
	f.At.End = at.End
	switch {
	case p.hunk == nil:
	case p.hunk == before:
		if f.Omitted == 0 {
			h := &f.Hunks[len(f.Hunks)-1]
			h.At.End = at.End
			h.lines++
		}
	case len(f.Hunks) == maxHunks:
		f.Omitted++
	default:
		f.Hunks = append(f.Hunks, Hunk{At: at, lines: 1, hunk: p.hunk})
	}
}

// status returns added, deleted, modified or renamed; "" if the diff does not say.
func (f *File) status() string {
	switch c := f.changed; {
	case c.state != "":
		return c.state
	case c.vague:
		return ""
	case c.moved:
		return "renamed"
	}
	return "modified"
}

// Objects writes each file of a diff as an object:
//
//	{"file", "old_file", "status": "added"|"deleted"|"modified"|"renamed", "added", "deleted",
//	 "hunks": [{"at", "lines", "added", "deleted", "header"}]}
//
// old_file is null for an added file, and file is the old name of a deleted one. The counts of a binary file are null.
// status is null if the diff does not say. A hunk's at is the line of its header in the diff, from 1; lines counts the
// header too. A file of which the diff lacks lines has "truncated": true, and the error is that of [Files]; a file with
// over 20,000 hunks has "hunks_omitted".
func Objects(ctx context.Context, r io.Reader, w io.Writer) error {
	var failed error
	err := Files(ctx, r, func(_ int64, f *File) bool {
		failed = f.write(w)
		return failed == nil
	})
	return cmp.Or(failed, err)
}

func (f *File) write(w io.Writer) error {
	c := f.changed
	var o record.Object
	o.String("file", f.Name())
	old := c.from
	switch {
	case c.state == "added" && !c.moved, old == null:
		old = ""
	case old == "":
		old = f.Name()
	}
	o.StringOrNull("old_file", old)
	o.StringOrNull("status", f.status())
	if c.uncounted {
		o.Raw("added", "null")
		o.Raw("deleted", "null")
	} else {
		o.Int("added", c.added)
		o.Int("deleted", c.removed)
	}
	o.Raw("hunks", f.hunkList())
	if f.Omitted > 0 {
		o.Int("hunks_omitted", f.Omitted)
	}
	if c.damage != "" {
		o.Raw("truncated", "true")
	}
	return o.WriteLine(w)
}

func (f *File) hunkList() string {
	var b strings.Builder
	b.WriteByte('[')
	for i, h := range f.Hunks {
		if i > 0 {
			b.WriteByte(',')
		}
		var o record.Object
		o.Int("at", h.hunk.line)
		o.Int("lines", h.lines)
		o.Int("added", h.hunk.added)
		o.Int("deleted", h.hunk.removed)
		o.String("header", h.hunk.header)
		b.WriteString(o.Text())
	}
	b.WriteByte(']')
	return b.String()
}

// Spans calls visit with the place of each file until visit returns false.
func Spans(ctx context.Context, r io.Reader, visit func(index int64, at content.Span) bool) error {
	return Files(ctx, r, func(i int64, f *File) bool { return visit(i, f.At) })
}

// PointError is the error of a pointer that names nothing in a diff.
type PointError struct{ Pointer, Reason string }

func (e *PointError) Error() string {
	return fmt.Sprintf("%s: %s; a diff has files, /N, and their hunks, /N/hunks/M, from 0", e.Pointer, e.Reason)
}
