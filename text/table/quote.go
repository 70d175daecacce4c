package table

import "bytes"

const (
	// MaxQuoted is the maximum length of a quoted cell, in bytes. A longer one ends with its line, so that a stray
	// quote does not swallow the rest of the table.
	MaxQuoted = 1 << 20

	maxBlanks = 64 // before or after a quoted text
	rowsAfter = 5  // lines that show whether rows follow a quote that is not closed
)

// quoteIs is the role of a quote at the start of a cell.
type quoteIs uint8

const (
	literal  quoteIs = iota // a character
	quoted                  // the first of two around the cell
	loose                   // the first of two, with text of the cell after the second
	unclosed                // the first of a cell that ends with its line
	open                    // the first of a cell in which the text is truncated
)

// quote describes a quote at the start of a cell.
type quote struct {
	is   quoteIs
	end  int // of the quoted text
	next int // offset of the text after it: a delimiter, the line end, or more of the cell
}

// look decides the role of the quote at the start of p. known is false if more text may follow and the end of the cell,
// or the line after it, has not arrived.
//
// A cell that spans lines may lack its closing quote: then the next quote opens another cell, or each of the lines has
// as many cells as the header. Most programs do not quote if the delimiter is a tab: a quote is then a character unless
// it opens a cell that another quote closes.
func (s *Scanner) look(p []byte, final bool) (q quote, known bool) {
	tabs := s.Delimiter == '\t'
	end := closingQuote(p[:min(len(p), MaxQuoted+1)])
	if end < 0 {
		if !final && len(p) < MaxQuoted {
			return q, false
		}
		return s.lookUnclosed(p, final), true
	}
	next := end + 1
	for next < len(p) && next < end+maxBlanks && p[next] == ' ' {
		next++
	}
	if next == len(p) && !final {
		return q, false
	}
	closed := next == len(p) || p[next] == s.Delimiter || p[next] == '\n' || p[next] == '\r'
	lines := bytes.IndexByte(p[:end], s.lineByte()) >= 0
	switch {
	case closed && (!lines || !tabs):
		return quote{quoted, end, next}, true
	case !lines && tabs:
		return q, true
	case !lines:
		return quote{loose, end, end + 1}, true
	}
	rows, known := s.areRows(p, end, final)
	switch {
	case !known:
		return q, false
	case tabs && closed && !(rows && s.fillsRow(p)):
		return quote{quoted, end, next}, true
	case tabs:
		return q, true
	case rows || s.opensCell(p[:end]):
		end = bytes.IndexByte(p, s.lineByte())
		return quote{unclosed, withoutCR(p, end), end}, true
	}
	return quote{loose, end, end + 1}, true
}

// closingQuote returns the offset of the first quote of p, after the first byte, that is not doubled; -1 if there is
// none.
func closingQuote(p []byte) int {
	for i := 1; ; i += 2 {
		n := bytes.IndexByte(p[min(i, len(p)):], '"')
		if n < 0 {
			return -1
		}
		if i += n; i+1 >= len(p) || p[i+1] != '"' {
			return i
		}
	}
}

// lookUnclosed decides the role of a quote without a closing one: if rows follow, its cell ends with the line.
func (s *Scanner) lookUnclosed(p []byte, final bool) quote {
	line := bytes.IndexByte(p, s.lineByte())
	limit := min(len(p), MaxQuoted)
	switch {
	case s.Delimiter == '\t':
		return quote{}
	case line >= 0 && s.rowsFollow(p[line+1:], final):
		return quote{unclosed, withoutCR(p, line), line}
	case final && limit == len(p):
		return quote{open, limit, limit}
	}
	return quote{unclosed, limit, limit}
}

// withoutCR returns the end of the text in a line that ends at an offset.
func withoutCR(p []byte, end int) int {
	if end > 1 && p[end-1] == '\r' {
		return end - 1
	}
	return end
}

// rowsFollow reports whether the first lines of p have as many cells as the header.
func (s *Scanner) rowsFollow(p []byte, final bool) bool {
	n := 0
	for n < rowsAfter && len(p) > 0 {
		end := bytes.IndexByte(p, s.lineByte())
		if end < 0 && !final {
			break
		}
		if end < 0 {
			end = len(p)
		}
		if s.cellsOf(p[:end]) != s.damage.Width {
			return false
		}
		n++
		p = p[min(end+1, len(p)):]
	}
	return n > 0 && s.damage.Width > 1
}

// areRows reports whether the lines of p after the first, up to the one with the byte at through, have as many cells as
// the header.
func (s *Scanner) areRows(p []byte, through int, final bool) (rows, known bool) {
	if s.damage.Width < 2 {
		return false, true
	}
	for at := bytes.IndexByte(p, s.lineByte()) + 1; at <= through; {
		end := bytes.IndexByte(p[at:], s.lineByte())
		if end < 0 && !final && len(p) < 2*MaxQuoted {
			return false, false
		}
		if end < 0 {
			end = len(p) - at
		}
		if s.cellsOf(p[at:at+end]) != s.damage.Width {
			return false, true
		}
		at += end + 1
	}
	return true, true
}

// fillsRow reports whether the row has as many cells as the header if it ends with the first line of p, which starts at
// the current cell.
func (s *Scanner) fillsRow(p []byte) bool {
	line := p[:bytes.IndexByte(p, s.lineByte())]
	return s.row.N+1+bytes.Count(line, []byte{s.Delimiter}) == s.damage.Width
}

// opensCell reports whether a quote after p would open a cell.
func (s *Scanner) opensCell(p []byte) bool {
	p = bytes.TrimRight(p, " ")
	last := p[len(p)-1]
	return last == s.Delimiter || last == s.lineByte()
}

// cellsOf returns the number of cells in a line.
func (s *Scanner) cellsOf(line []byte) int {
	if s.Delimiter == '\t' {
		return bytes.Count(line, []byte{'\t'}) + 1
	}
	n, begin := 1, true
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == s.Delimiter:
			n++
			begin = true
		case c == '"' && begin:
			if end := closingQuote(line[i:]); end > 0 {
				i += end
			}
			begin = false
		case c != ' ':
			begin = false
		}
	}
	return n
}
