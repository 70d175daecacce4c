package table

import (
	"bytes"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Row is one row of a table; its cells are valid until the next one.
type Row struct {
	Index int64 // from 0, which is the header
	Line  int64 // its first line, from 1
	At    content.Span
	Cells [][]byte // without quotes
	N     int      // number of cells, also those that are not in Cells
	Long  bool     // Limits.MaxRow was met: cells are missing or cut
}

// Limits bound the part of a row that is kept.
type Limits struct {
	MaxCell    int  // bytes of a cell; 0: all
	MaxCells   int  // cells of a row; 0: all
	MaxRow     int  // bytes of all cells of a row; 0: no limit
	HeaderOnly bool // Row.Cells of other rows stays empty
}

// Scanner finds the rows of a table that arrives in blocks of any size. Empty lines are no rows. It holds up to some
// MiB to see where a quoted cell ends.
type Scanner struct {
	Dialect
	Limits
	visit func(*Row) bool

	off  int64  // offset of the next byte
	held []byte // bytes from there on that have arrived
	wait int    // how many of them it takes to continue: twice as many as last time, so that short blocks cost no more
	line int64  // of the next byte
	cell bool   // within a cell
	cr   bool   // the byte before is a CR

	row    Row
	kept   []byte // bytes of the cells
	ends   []int  // of the cells in kept
	size   int    // of the current cell
	damage Damage
}

// New returns a scanner that visits each row, the header too, until visit returns false.
func New(d Dialect, visit func(*Row) bool) *Scanner {
	return &Scanner{Dialect: d, visit: visit, line: 1, row: Row{Line: 1}}
}

// Damage describes what is wrong with the rows so far.
func (s *Scanner) Damage() Damage { return s.damage }

// Write scans the next block. It returns false if visit did; the scanner must not be used afterwards.
func (s *Scanner) Write(p []byte) bool {
	if n := min(int64(s.Skip)-s.off, int64(len(p))); n > 0 {
		s.off += n
		s.line, s.row.Line, s.row.At.Start = 2, 2, s.off
		p = p[n:]
	}
	if len(s.held) > 0 {
		if s.held = append(s.held, p...); len(s.held) < s.wait {
			return true
		}
		p = s.held
	}
	return s.scan(p, false)
}

// End ends the text. It returns false if visit did.
func (s *Scanner) End() bool {
	return s.scan(s.held, true) && (s.off == s.row.At.Start || s.endRow(s.off))
}

// scan scans p, which begins at s.off, and holds what it cannot decide without more of the text.
func (s *Scanner) scan(p []byte, final bool) bool {
	for len(p) > 0 {
		n := 0
		switch {
		case !s.cell:
			var known bool
			if n, known = s.openCell(p, final); !known {
				s.held, s.wait = append(s.held[:0], p...), 2*len(p)
				return true
			}
			s.cell = true
		case p[0] == s.Delimiter:
			s.endCell()
			n, s.cr = 1, false
		case p[0] == '\n' || s.CR && p[0] == '\r':
			if !s.endRow(s.off) {
				return false
			}
			n = 1
			s.line++
			s.beginRow(s.off + 1)
		default:
			for n < len(p) && p[n] != s.Delimiter && p[n] != '\n' && (!s.CR || p[n] != '\r') {
				n++
			}
			s.keep(p[:n])
			s.cr = p[n-1] == '\r'
		}
		s.off += int64(n)
		p = p[n:]
	}
	s.held = s.held[:0]
	return true
}

// keeps reports whether the next cell is kept.
func (s *Scanner) keeps() bool {
	return (!s.HeaderOnly || s.row.Index == 0) && (s.MaxCells == 0 || len(s.row.Cells)+len(s.ends) < s.MaxCells)
}

// openCell scans the start of a cell: blanks and a whole quoted text, or nothing. known is false if that cannot be
// decided without more text.
func (s *Scanner) openCell(p []byte, final bool) (n int, known bool) {
	blanks := 0
	for blanks < min(len(p), maxBlanks) && p[blanks] == ' ' && s.Delimiter != '\t' {
		blanks++
	}
	if blanks == len(p) && !final && blanks < maxBlanks {
		return 0, false
	}
	if blanks == len(p) || p[blanks] != '"' {
		return 0, true
	}
	q, known := s.look(p[blanks:], final)
	if !known || q.is == literal || q.is == loose && blanks > 0 {
		return 0, known
	}
	text := p[blanks+1 : blanks+q.end]
	if q.is == unclosed {
		s.damage.unclosed(s.line)
	}
	s.damage.Inside = q.is == open
	s.line += int64(bytes.Count(text, []byte{s.lineByte()}))
	if bytes.Contains(text, []byte(`""`)) {
		text = bytes.ReplaceAll(text, []byte(`""`), []byte{'"'})
	}
	s.keep(text)
	s.cr = false
	return blanks + q.next, true
}

func (s *Scanner) lineByte() byte {
	if s.CR {
		return '\r'
	}
	return '\n'
}

// keep adds bytes to the current cell.
func (s *Scanner) keep(p []byte) {
	s.size += len(p)
	if !s.keeps() {
		return
	}
	if s.MaxCell > 0 {
		p = p[:min(len(p), max(0, s.MaxCell-(len(s.kept)-s.from())))]
	}
	if s.MaxRow > 0 && len(s.kept)+len(p) > s.MaxRow {
		s.row.Long = true
		return
	}
	s.kept = append(s.kept, p...)
}

// from returns where the current cell begins in kept.
func (s *Scanner) from() int {
	if n := len(s.ends); n > 0 {
		return s.ends[n-1]
	}
	return 0
}

func (s *Scanner) endCell() {
	switch {
	case !s.keeps():
	case s.MaxRow > 0 && len(s.ends) > s.MaxRow/8:
		s.row.Long = true
	default:
		s.ends = append(s.ends, len(s.kept))
	}
	s.row.N++
	s.size, s.cell = 0, false
}

// endRow ends the row at the offset of its line end and visits it, unless the line is empty. It returns false if visit
// did.
func (s *Scanner) endRow(at int64) bool {
	if s.cr {
		at--
		if n := len(s.kept); n > 0 && n-s.from() == s.size {
			s.kept = s.kept[:n-1]
		}
	}
	if at <= s.row.At.Start {
		return true
	}
	s.endCell()
	for i, end := range s.ends {
		from := 0
		if i > 0 {
			from = s.ends[i-1]
		}
		s.row.Cells = append(s.row.Cells, s.kept[from:end:end])
	}
	return s.visitRow(at)
}

// visitRow visits the row, which ends at an offset.
func (s *Scanner) visitRow(at int64) bool {
	s.row.At.End = at
	s.damage.row(&s.row)
	if !s.visit(&s.row) {
		return false
	}
	s.row.Index++
	return true
}

// beginRow begins the row at an offset.
func (s *Scanner) beginRow(at int64) {
	s.row = Row{Index: s.row.Index, Line: s.line, At: content.Span{Start: at}, Cells: s.row.Cells[:0]}
	s.kept, s.ends, s.size, s.cell, s.cr = s.kept[:0], s.ends[:0], 0, false, false
}
