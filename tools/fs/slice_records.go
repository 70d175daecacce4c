package fs

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/kinds"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/table"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// maxCountedRecordBytes is the maximum number of bytes that are parsed only to count records, when the page is full.
const maxCountedRecordBytes = 16 << 20

// recordList is a list of records: of a source, or of a JSON value in it.
type recordList struct {
	name  string
	end   int64 // offset of its end in the source, in bytes
	each  func(visit func(i int64, at content.Span) bool) error
	call  func(sliceRange) tools.Call
	whole func(i int64, row textRow) tools.Call // returns the call that shows all of a record
}

// showRecords shows elements of an array, lines of NDJSON, rows of a table (its header above the first), hunks of a
// diff.
func (s *slicer) showRecords(r sliceRange) error {
	name := s.src.Kind()
	l := recordList{name: s.src.Name, end: s.src.Size}
	l.each = func(visit func(int64, content.Span) bool) error {
		err := kinds.Records(s.ctx, s.text.reader(0), name, visit)
		if d, ok := errors.AsType[*content.Remarks](err); ok {
			s.noteDamage(d)
			return nil
		}
		return err
	}
	l.call = func(r sliceRange) tools.Call { return s.call("records", r) }
	l.whole = func(i int64, row textRow) tools.Call {
		// By pointer, the next pages go element by element. Records of JSON that is not an array have no pointer.
		if name == content.NDJSON || name == content.JSON && s.isArray() {
			return s.pointerCall("/" + strconv.FormatInt(i, 10))
		}
		if s.src.IsConverted() {
			return s.pointerCall("")
		}
		return s.bytesCall(row)
	}
	return s.showList(l, r)
}

// noteDamage notes what is damaged in the source.
func (s *slicer) noteDamage(d *content.Remarks) {
	for _, note := range d.Notes {
		s.out.Note(s.src.Name + ": " + note)
	}
}

// isArray reports whether the text begins with "[".
func (s *slicer) isArray() bool {
	var b [64]byte
	n, _ := newSourceText(s.ctx, s.src, s.out).ReadAt(b[:], 0) // an error shows where the text is read
	return strings.HasPrefix(strings.TrimLeft(string(b[:n]), " \t\r\n"), "[")
}

// showList shows the records r of a list.
func (s *slicer) showList(l recordList, r sliceRange) error {
	asked := r
	total := int64(-1)
	if r.last > 0 {
		total = 0
		err := l.each(func(i int64, at content.Span) bool {
			total = i + 1
			s.out.Progress(at.End, s.text.size, "bytes read")
			return true
		})
		if _, isSyntax := errors.AsType[*content.SyntaxError](err); err != nil && (total == 0 || !isSyntax) {
			return s.recordsError(err, 0)
		}
		if total == 0 {
			return pastEnd("records", asked, l.name, 0)
		}
		r = r.resolveLast(0, total)
	}
	p := recordPage{s: s, list: l, r: r}
	err := l.each(p.visit)
	if p.err != nil {
		return p.err
	}
	err = s.noteSkippedLines(err)
	syntax, isSyntax := errors.AsType[*content.SyntaxError](err)
	switch {
	case err != nil && (!isSyntax || p.shown == 0):
		return s.recordsError(err, p.seen)
	case err != nil:
		s.out.Note(s.recordsError(err, p.seen).Error())
		if total = -1; syntax.Cut { // the text ends too early
			total = p.seen // no more are complete
		}
		if total < 0 || r.to >= total-1 {
			s.page.Next(s.call("bytes", sliceRange{from: p.end, to: openEnd})) // what no record shows
		}
	case !p.stopped:
		total = p.seen
	}
	if p.shown == 0 && !p.full {
		return pastEnd("records", asked, l.name, p.seen)
	}
	if p.full {
		s.page.Next(l.call(sliceRange{from: p.next, to: r.to}))
	}
	s.page.SetRowRange(r.from, total)
	if err == nil && r.to != openEnd && total >= 0 && r.to >= total {
		s.out.Note(fmt.Sprintf("the source ends at record %d", total-1))
	}
	return nil
}

// noteSkippedLines notes NDJSON lines that are not JSON and returns the error that remains: the lines after them were
// read.
func (s *slicer) noteSkippedLines(err error) error {
	syntax, ok := errors.AsType[*content.SyntaxError](err)
	switch {
	case !ok:
		return err
	case syntax.Lines > 0:
		err = nil
	case syntax.Before == nil:
		return err
	default:
		syntax = syntax.Before
	}
	lost := fmt.Sprintf("1 line of %s is not JSON and was skipped", s.src.Name)
	if syntax.Lines > 1 {
		lost = fmt.Sprintf("%d lines of %s are not JSON and were skipped; the first", syntax.Lines, s.src.Name)
	}
	s.out.Note(fmt.Sprintf("%s: %s; to see it: %s", lost, syntax, callText(s.callAround(syntax.Offset))))
	return err
}

// recordsError returns the error of a text that cannot be parsed after so many records.
func (s *slicer) recordsError(err error, records int64) error {
	syntax, ok := errors.AsType[*content.SyntaxError](err)
	if !ok {
		return fmt.Errorf("records: %s: %w", s.src.Name, err)
	}
	return fmt.Errorf("%s cannot be parsed in record %d: %w; to see it: %s", s.src.Name, records, err,
		callText(s.callAround(syntax.Offset)))
}

// recordPage shows records until the page is full, then counts the rest if it has at most maxCountedRecordBytes.
type recordPage struct {
	s       *slicer
	list    recordList
	r       sliceRange
	seen    int64 // records visited so far
	shown   int64
	end     int64 // of the last of them, in bytes
	shownTo int64 // end of the last one that was tried
	next    int64 // the first that the page did not take
	full    bool
	stopped bool // before the end of the text
	err     error
}

func (p *recordPage) visit(i int64, at content.Span) bool {
	p.seen, p.end = i+1, at.End
	if i%1024 == 0 {
		p.s.out.Progress(at.End, p.s.text.size, "bytes read")
	}
	if i < p.r.from {
		return true
	}
	if p.full || i > p.r.to {
		left := p.list.end - at.End
		if !p.s.src.Plain() { // the size of a decoded text is not known, and the rows of a view may have no end
			left = at.Start - p.shownTo
		}
		p.stopped = left > maxCountedRecordBytes
		return !p.stopped
	}
	p.shownTo = at.End
	if p.err = p.showRecord(i, at); errors.Is(p.err, tools.ErrPageFull) {
		p.err, p.full, p.next = nil, true, i
		return true
	}
	p.shown++
	p.stopped = p.err != nil
	return p.err == nil
}

func (p *recordPage) showRecord(i int64, at content.Span) error {
	l, err := readPart(p.s.text, at)
	if err != nil {
		return err
	}
	if p.shown == 0 && p.s.src.Kind() == content.Table && !l.Long {
		if l.Whole, err = p.withHeader(l.Whole); err != nil {
			return err
		}
	}
	return l.Show(p.s.page, p.list.whole(i, l))
}

// withHeader returns the row with the header line of the table above it.
func (p *recordPage) withHeader(row []byte) ([]byte, error) {
	at, err := table.Header(p.s.ctx, newSourceText(p.s.ctx, p.s.src, p.s.out).reader(0))
	if err != nil {
		return nil, err
	}
	h, err := readPart(newSourceText(p.s.ctx, p.s.src, p.s.out), at)
	if err != nil || h.Long {
		return row, err
	}
	return append(append(h.Whole, '\n'), row...), nil
}
