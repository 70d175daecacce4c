package fs

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// cheapRecords is how many bytes are parsed on only to tell how many records there are, when the page is full.
const cheapRecords = 16 << 20

// list is what has records: a source, or a value within it.
type list struct {
	name  string
	end   int64 // of it, in bytes of the source
	each  func(visit func(i int64, at content.Span) bool) error
	call  func(span) tools.Call
	whole func(i int64, row part) tools.Call // shows all of a record
}

// records shows elements of an array, lines of NDJSON, rows of a table (its header above the first), hunks of a diff.
func (s *slicer) records(r span) error {
	kind := s.src.Kind()
	l := list{name: s.src.Name, end: s.src.Size}
	l.each = func(visit func(int64, content.Span) bool) error {
		return content.Records(s.ctx, s.text.reader(0), kind, visit)
	}
	l.call = func(r span) tools.Call { return s.call("records", r) }
	l.whole = func(i int64, row part) tools.Call {
		// A pointer goes on element by element. In JSON that is no array a record has none.
		if kind == content.NDJSON || kind == content.JSON && s.isArray() {
			return s.callAt("/" + strconv.FormatInt(i, 10))
		}
		return s.bytesOf(row)
	}
	return s.list(l, r)
}

// isArray says that the text begins as an array.
func (s *slicer) isArray() bool {
	var b [64]byte
	n, _ := newText(s.ctx, s.src, s.out).ReadAt(b[:], 0) // an error shows where the text is read
	return strings.HasPrefix(strings.TrimLeft(string(b[:n]), " \t\r\n"), "[")
}

// list shows the records r of a list.
func (s *slicer) list(l list, r span) error {
	asked := r
	total := int64(-1)
	if r.last > 0 {
		total = 0
		if err := l.each(func(i int64, at content.Span) bool {
			total = i + 1
			s.out.Progress(at.End, s.text.size, "bytes read")
			return true
		}); err != nil && (total == 0 || !isSyntax(err)) {
			return s.recordsError(err, 0)
		}
		if total == 0 {
			return past("records", asked, l.name, 0)
		}
		r = r.resolve(0, total)
	}
	// Records are read by a text of their own: where it must be decoded, the one that finds them has gone further.
	p := recordPage{s: s, list: l, r: r, text: newText(s.ctx, s.src, s.out)}
	err := l.each(p.visit)
	if p.err != nil {
		return p.err
	}
	err = s.linesLost(err)
	switch {
	case err != nil && !isSyntax(err), err != nil && p.shown == 0:
		return s.recordsError(err, p.seen)
	case err != nil:
		s.out.Note(s.recordsError(err, p.seen).Error())
		if total = -1; breaksOff(err) {
			total = p.seen // no more are complete
		}
		if total < 0 || r.to >= total-1 {
			s.out.Next(s.call("bytes", span{from: p.end, to: open})) // what no record shows
		}
	case !p.stopped:
		total = p.seen
	}
	if p.shown == 0 && !p.full {
		return past("records", asked, l.name, p.seen)
	}
	if p.full {
		s.out.Next(l.call(span{from: p.next, to: r.to}))
	}
	s.out.Span(r.from, total)
	if err == nil && r.to != open && total >= 0 && r.to >= total {
		s.out.Note(fmt.Sprintf("the source ends at record %d", total-1))
	}
	return nil
}

func isSyntax(err error) bool {
	var syntax *content.SyntaxError
	return errors.As(err, &syntax)
}

// breaksOff says whether a text just ends too early.
func breaksOff(err error) bool {
	var syntax *content.SyntaxError
	return errors.As(err, &syntax) && syntax.Cut
}

// linesLost tells of lines that are no records. They are no error: those behind them were read.
func (s *slicer) linesLost(err error) error {
	var syntax *content.SyntaxError
	switch {
	case !errors.As(err, &syntax):
		return err
	case syntax.Lines > 0:
		err = nil
	case syntax.Before == nil:
		return err
	default:
		syntax = syntax.Before
	}
	lines := "a line is"
	if syntax.Lines > 1 {
		lines = fmt.Sprintf("%d lines are", syntax.Lines)
	}
	s.out.Note(fmt.Sprintf("%s not JSON in %s, and no record: at the first, %s; to look there: %s", lines, s.src.Name, syntax, words(s.around(syntax.Offset))))
	return err
}

// around is the slice that shows what stands at a byte.
func (s *slicer) around(at int64) tools.Call {
	return s.call("bytes", span{from: max(at-200, 0), to: at + 100})
}

// recordsError words where a text breaks off after so many records.
func (s *slicer) recordsError(err error, records int64) error {
	var syntax *content.SyntaxError
	if !errors.As(err, &syntax) {
		return fmt.Errorf("records: %s: %w", s.src.Name, err)
	}
	return fmt.Errorf("%s breaks off in record %d: %w; to look there: %s", s.src.Name, records, err, words(s.around(syntax.Offset)))
}

// recordPage shows records while the page takes them, and counts on where that is cheap.
type recordPage struct {
	s       *slicer
	list    list
	text    *text
	r       span
	seen    int64 // records passed so far
	shown   int64
	end     int64 // of the last of them, in bytes
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
		p.stopped = p.list.end-at.End > cheapRecords
		return !p.stopped
	}
	if p.err = p.show(i, at); errors.Is(p.err, tools.ErrPageFull) {
		p.err, p.full, p.next = nil, true, i
		return true
	}
	p.shown++
	p.stopped = p.err != nil
	return p.err == nil
}

func (p *recordPage) show(i int64, at content.Span) error {
	l, err := readPart(p.text, at)
	if err != nil {
		return err
	}
	if p.shown == 0 && p.s.src.Kind() == content.Table && !l.Long {
		if l.Whole, err = p.underHeader(l.Whole); err != nil {
			return err
		}
	}
	return l.Show(p.s.out, p.list.whole(i, l))
}

// underHeader puts the header of the table above its first row shown.
func (p *recordPage) underHeader(row []byte) ([]byte, error) {
	at, err := content.Header(p.s.ctx, newText(p.s.ctx, p.s.src, p.s.out).reader(0))
	if err != nil {
		return nil, err
	}
	h, err := readPart(newText(p.s.ctx, p.s.src, p.s.out), at)
	if err != nil || h.Long {
		return row, err
	}
	return append(append(h.Whole, '\n'), row...), nil
}
