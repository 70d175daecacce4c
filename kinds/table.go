package kinds

import (
	"bytes"
	"context"
	"io"

	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/kinds/record"
	"github.com/mcp-funnel/mcp-funnel/kinds/shape"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Table is CSV or TSV.
var Table = &Kind{
	Name:       content.Table,
	Ext:        "csv",
	MIME:       tableMIME,
	Sniff:      func(s *Sample) bool { return s.ext != ".md" && len(s.lines()) > 0 && isTable(s.text, s.whole, s.ext) },
	Summarizer: func(_ string, prefix []byte) digest.Summarizer { return withoutMark(shape.NewTable(prefix)) },
	Records:    tableRecords,
	Objects:    record.TableRows,
	RecordIs:   "a row, an object with the names of the header",
	RecordNote: "numbers as numbers",
	Shares:     Shares{Says: 0.3, Shape: 0.4, Body: 0.3},
}

func tableMIME(prefix []byte) string {
	if content.Delimiter(prefix) == '\t' {
		return "text/tab-separated-values"
	}
	return "text/csv"
}

// tableRecords visits the rows after the header.
func tableRecords(ctx context.Context, r io.Reader, visit func(index int64, at content.Span) bool) error {
	return content.Rows(ctx, r, func(row int64, at content.Span) bool { return row == 0 || visit(row-1, at) })
}

// isTable reports whether the text is CSV or TSV: all rows have as many columns as the first row, and at least two.
// Prose with commas rarely has equal rows; the remaining checks reject prose and code that do. A file with the name of
// a table may have ragged rows, which its summary counts.
func isTable(p []byte, whole bool, ext string) bool {
	c := columnCensus{delimiter: content.Delimiter(p)}
	named := ext == ".csv" || ext == ".tsv"
	content.RowsOf(p, whole, func(row []byte) bool {
		c.add(row)
		// stop as soon as further rows cannot change the result
		return c.rows < 300 && (named || c.columns > 1 && c.same == c.rows)
	})
	switch {
	case c.rows == 0:
		return false
	case named && c.same*10 >= c.rows*9:
		return true
	case named: // ragged rows are counted; a space after most commas is prose
		return c.columns > 1 && (c.delimiter == '\t' || c.spaced*2 <= c.cells-c.rows)
	case c.columns < 2 || c.rows < 2 || c.same < c.rows:
		return false
	case c.delimiter == ',' && c.columns == 2 && c.rows < 3:
		return false // two lines with a comma each
	case c.delimiter != '\t' && c.spaced*2 > c.cells-c.rows:
		return false // a space after most commas: prose or code
	}
	return c.empty*2 <= c.rows && c.nameless*2 < c.columns && c.odd*10 <= c.cells
}

// columnCensus counts properties that distinguish a table from other lines with commas.
type columnCensus struct {
	delimiter     byte
	columns       int // number of cells in the first row
	rows, same    int // same: number of rows with exactly columns cells
	cells, spaced int // spaced: number of cells that begin with a space, not counting first cells
	empty         int // number of rows whose first cell is empty
	nameless      int // number of empty cells in the first row
	odd           int // number of cells with unbalanced brackets
}

func (c *columnCensus) add(row []byte) {
	fields := splitRow(row, c.delimiter)
	if c.rows == 0 {
		c.columns = len(fields)
	}
	c.rows++
	if len(fields) == c.columns {
		c.same++
	}
	c.cells += len(fields)
	for i, f := range fields {
		if i > 0 && len(f) > 0 && f[0] == ' ' {
			c.spaced++
		}
		if len(bytes.TrimSpace(f)) == 0 {
			if i == 0 {
				c.empty++
			}
			if c.rows == 1 {
				c.nameless++
			}
		}
		if !balanced(f) {
			c.odd++
		}
	}
}

// splitRow splits a row into fields; quotes stay part of a field.
func splitRow(row []byte, delimiter byte) [][]byte {
	var fields [][]byte
	start, quoted := 0, false
	for i, c := range row {
		switch {
		case c == '"' && delimiter != '\t':
			// A doubled quote closes and opens again.
			if quoted || i == start || row[i-1] == '"' {
				quoted = !quoted
			}
		case c == delimiter && !quoted:
			fields = append(fields, row[start:i])
			start = i + 1
		}
	}
	return append(fields, row[start:])
}

// balanced reports whether the brackets in a cell match. Code that is split at commas often has unbalanced cells.
func balanced(cell []byte) bool {
	n := 0
	for _, c := range cell {
		switch c {
		case '(', '[', '{':
			n++
		case ')', ']', '}':
			n--
		}
	}
	return n == 0
}
