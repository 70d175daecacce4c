package kinds

import (
	"bytes"
	"context"
	"io"

	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/kinds/record"
	"github.com/mcp-funnel/mcp-funnel/kinds/shape"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/table"
)

// Table is CSV or TSV.
var Table = &Kind{
	Name:       content.Table,
	Ext:        "csv",
	MIME:       tableMIME,
	Sniff:      func(s *Sample) bool { return s.ext != ".md" && len(s.lines()) > 0 && isTable(s.text, s.whole, s.ext) },
	Summarizer: func(_ string, prefix []byte) digest.Summarizer { return shape.NewTable(prefix) },
	Records:    tableRecords,
	Objects:    record.TableRows,
	Numbered:   record.NumberedRows,
	RecordIs:   "a row, an object with the names of the header",
	RecordNote: "numbers as numbers",
	Shares:     Shares{Says: 0.3, Shape: 0.4, Body: 0.3},
}

func tableMIME(prefix []byte) string {
	if table.DialectOf(prefix).Delimiter == '\t' {
		return "text/tab-separated-values"
	}
	return "text/csv"
}

// tableRecords visits the rows after the header.
func tableRecords(ctx context.Context, r io.Reader, visit func(index int64, at content.Span) bool) error {
	return table.Rows(ctx, r, func(row *table.Row) bool { return row.Index == 0 || visit(row.Index-1, row.At) })
}

// isTable reports whether the text is CSV or TSV: all rows have as many columns as the first row, and at least two.
// Prose with commas rarely has equal rows; the remaining checks reject prose and code that do. A file with the name of
// a table may have ragged rows, which its summary counts.
func isTable(p []byte, whole bool, ext string) bool {
	c := columnCensus{}
	named := ext == ".csv" || ext == ".tsv"
	rows := table.New(table.DialectOf(p), func(row *table.Row) bool {
		c.add(row.Cells)
		// stop as soon as further rows cannot change the result
		return c.rows < 300 && (named || c.columns > 1 && c.same == c.rows)
	})
	if rows.Write(p) && whole {
		rows.End()
	}
	spaced := (rows.Delimiter == ',' || rows.Delimiter == ';') && c.spaced*2 > c.cells-c.rows // prose or code
	switch {
	case c.rows == 0:
		return false
	case named && c.same*10 >= c.rows*9:
		return true
	case named: // ragged rows are counted; a space after most commas is prose
		return c.columns > 1 && !spaced
	case c.columns < 2 || c.rows < 2 || c.same < c.rows:
		return false
	case c.unnamed && c.verdicts*2 > c.rows:
		return false // the output of a test runner, such as go test
	case (rows.Delimiter == ',' || rows.Delimiter == '|') && c.columns == 2 && c.rows < 3:
		return false // two lines with a comma each
	case spaced:
		return false
	}
	return c.empty*2 <= c.rows && c.nameless*2 < c.columns && c.odd*10 <= c.cells
}

// columnCensus counts properties that distinguish a table from other lines with commas.
type columnCensus struct {
	columns       int  // number of cells in the first row
	rows, same    int  // same: number of rows with exactly columns cells
	cells, spaced int  // spaced: number of cells that begin with a space, not counting first cells
	empty         int  // number of rows whose first cell is empty
	nameless      int  // number of empty cells in the first row
	odd           int  // number of cells with unbalanced brackets
	verdicts      int  // number of rows that begin with the result of a test
	unnamed       bool // the first row does, or its first cell is empty
}

// verdict matches a cell with the result of a test.
var verdict = content.Pattern(`^(?i:ok|pass(?:ed)?|fail(?:ed)?|skip(?:ped)?|\?) *$`)

func (c *columnCensus) add(fields [][]byte) {
	if c.rows == 0 {
		c.columns = len(fields)
	}
	c.rows++
	is := len(fields[0]) <= 8 && verdict().Match(fields[0])
	if is {
		c.verdicts++
	}
	if c.rows == 1 {
		c.unnamed = is || len(fields[0]) == 0
	}
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
