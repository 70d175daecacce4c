package shape

import (
	"bytes"
	"encoding/json"
	"hash/maphash"
	"strconv"

	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

const (
	columnsMost  = 512     // maximum number of columns examined
	cellBytes    = 256     // bytes kept of a cell
	distinctMost = 1024    // maximum number of distinct values counted per column
	distinctAll  = 1 << 16 // maximum number of distinct values over all columns
	numbersShown = 8
)

// table summarises CSV and TSV: the number of rows, counted as in kinds.Records, and statistics of each
// column.
type table struct {
	delimiter byte

	state  cell
	quoted int64 // length of the current quoted cell in bytes
	empty  bool  // the row is empty so far, except for a \r
	field  []byte
	clean  bool // field holds the complete cell, not only the first cellBytes bytes
	row    int  // number of complete cells in the current row
	line   int64

	columns []*column
	files   digest.FileCounts // files named by the rows
	wide    int               // number of cells in the header; 0 before the header
	rows    int64
	odd     int64 // number of rows whose cell count differs from the header
	oddRow  int64
	oddLine int64
	oddSize int
	start   int64 // line number at which the current row begins
	opened  int64 // line number at which the quoted cell began

	seed   maphash.Seed
	values int // number of distinct values in memory
}

type cell uint8

const (
	cellStart cell = iota
	cellBare
	cellQuoted
	cellQuote // after a quote in a quoted cell: the end of the cell, or the first of two quotes
)

// column holds the name and statistics of one column.
type column struct {
	node
	name        string
	place       uint8 // result of [digest.ColumnPlace]
	least, most int64 // record numbers of the minimum and the maximum
	latest      float64
	rising      bool // each number is greater than the one before
	distinct    map[uint64]struct{}
	many        bool
}

func NewTable(prefix []byte) *table {
	return &table{
		delimiter: content.Delimiter(digest.WithoutMark(prefix)), empty: true, clean: true, line: 1, start: 1,
		seed: maphash.MakeSeed(),
	}
}

func (t *table) Add(p []byte) {
	for len(p) > 0 {
		n := t.plainRun(p)
		if n > 0 {
			t.appendField(p[:n])
			p = p[n:]
			continue
		}
		t.step(p[0])
		p = p[1:]
	}
}

// plainRun returns the number of leading bytes of p that are plain content of the current cell.
func (t *table) plainRun(p []byte) int {
	n := 0
	switch t.state {
	case cellQuoted:
		if t.quoted >= content.MaxQuoted {
			return 0
		}
		n = bytes.IndexByte(p, '"')
		if n < 0 {
			n = len(p)
		}
		n = int(min(int64(n), content.MaxQuoted-t.quoted))
		t.quoted += int64(n)
		t.line += int64(bytes.Count(p[:n], []byte{'\n'}))
	case cellBare:
		for n < len(p) && p[n] != '\n' && p[n] != t.delimiter {
			n++
		}
	}
	return n
}

func (t *table) appendField(p []byte) {
	t.empty = false
	room := cellBytes - len(t.field)
	if len(p) > room {
		p, t.clean = p[:room], false
	}
	t.field = append(t.field, p...)
}

func (t *table) step(c byte) {
	if t.state == cellQuote {
		t.state = cellBare
		if c == '"' {
			t.state = cellQuoted
			t.quoted++
			t.appendField([]byte{'"'})
			return
		}
	}
	switch {
	case c == '\n' && (t.state != cellQuoted || t.quoted >= content.MaxQuoted):
		t.endRow()
		t.line++
		t.start = t.line
	case t.state == cellQuoted:
		t.quoted++
		if c == '"' {
			t.state = cellQuote
		} else {
			t.appendField([]byte{c})
		}
	case c == t.delimiter:
		t.empty = false
		t.endCell()
		t.state = cellStart
	case c == '"' && t.state == cellStart && t.delimiter != '\t':
		t.empty = false
		t.state, t.quoted, t.opened = cellQuoted, 1, t.line
	case c == '\r' && t.state == cellStart && t.row == 0 && len(t.field) == 0 && t.empty:
		// a \r alone on its line is not a row
		t.state = cellBare
		t.field = append(t.field, c)
	default:
		t.state = cellBare
		t.appendField([]byte{c})
	}
}

// endRow ends a row. Blank lines are not rows.
func (t *table) endRow() {
	if t.empty {
		t.field, t.state = t.field[:0], cellStart
		return
	}
	if n := len(t.field); t.clean && n > 0 && t.field[n-1] == '\r' {
		t.field = t.field[:n-1]
	}
	t.endCell()
	if t.wide == 0 {
		t.wide = t.row
	} else {
		if t.row != t.wide {
			if t.odd++; t.odd == 1 {
				t.oddRow, t.oddLine, t.oddSize = t.rows, t.start, t.row
			}
		}
		t.rows++
		t.files.End()
	}
	t.state, t.row, t.empty = cellStart, 0, true
}

func (t *table) endCell() {
	switch i := t.row; {
	case i >= columnsMost:
	case t.wide == 0:
		name := string(bytes.TrimSpace(t.field))
		t.columns = append(t.columns, &column{name: name, place: digest.ColumnPlace(name)})
	case i < len(t.columns):
		t.cell(t.columns[i], bytes.TrimSpace(t.field))
	}
	t.row++
	t.field, t.clean = t.field[:0], true
}

// cell adds a value to the statistics of a column.
func (t *table) cell(c *column, b []byte) {
	switch {
	case len(b) == 0:
		c.nulls++
		return
	case isTruth(b, "true"):
		c.yes++
		return
	case isTruth(b, "false"):
		c.no++
		return
	case isCellNumber(b):
		t.addNumber(c, b)
	default:
		ensure(&c.text).add(b, int64(len(b)), t.rows)
		if c.place > 0 {
			t.files.AddName(c.place, b, -1)
		}
	}
	if c.many {
		return
	}
	h := maphash.Bytes(t.seed, b)
	if _, ok := c.distinct[h]; ok {
		return
	}
	if len(c.distinct) >= distinctMost || t.values >= distinctAll {
		t.values -= len(c.distinct)
		c.many, c.distinct = true, nil
		return
	}
	if c.distinct == nil {
		c.distinct = map[uint64]struct{}{}
	}
	c.distinct[h] = struct{}{}
	t.values++
}

func (t *table) addNumber(c *column, b []byte) {
	v := parseNumber(b)
	if c.number == nil {
		c.number = &numbers{}
		c.least, c.most, c.rising = t.rows, t.rows, true
	} else {
		if v < c.number.lo {
			c.least = t.rows
		}
		if v > c.number.hi {
			c.most = t.rows
		}
		c.rising = c.rising && v > c.latest
	}
	c.latest = v
	c.number.put(b, v, t.rows)
}

// isTruth reports whether b is the given word in any case: true, True, TRUE.
func isTruth(b []byte, word string) bool {
	return len(b) == len(word) && (string(b) == word || bytes.EqualFold(b, []byte(word)))
}

// isCellNumber reports whether b, which has no space at its ends, is a JSON number of at most 32 bytes. Longer numbers
// and numbers with leading zeros, such as 007, are identifiers.
func isCellNumber(b []byte) bool {
	return len(b) <= 32 && (b[0] == '-' || b[0]-'0' <= 9) && json.Valid(b)
}

func (t *table) Finish(s *digest.Summary) {
	inside := t.state == cellQuoted
	t.endRow()
	s.Records = t.rows
	s.Total = []string{content.Plural(t.rows, "row", "rows") + ", " + content.Plural(int64(t.wide), "column", "columns")}
	if inside {
		s.Says = append(
			s.Says,
			"breaks off inside a quoted cell that begins at line "+digest.Number(t.opened)+", in record "+digest.Number(t.rows-1),
		)
	}
	if t.odd > 0 {
		s.Says = append(s.Says, content.Plural(t.odd, "row has", "rows have")+" not "+content.Plural(int64(t.wide), "cell", "cells")+
			": first record "+digest.Number(t.oddRow)+" (line "+digest.Number(t.oddLine)+") with "+digest.Number(int64(t.oddSize)))
	}
	if t.wide > columnsMost {
		s.Says = append(s.Says, "only the first "+digest.Number(columnsMost)+" columns are described")
	}
	row := &objects{n: t.rows, complete: t.rows, lo: int64(t.wide), hi: int64(t.wide), omitted: t.wide - len(t.columns)}
	data := 0
	for _, c := range t.columns {
		if c.text != nil && !c.many {
			c.text.distinct = int64(len(c.distinct))
			if c.number != nil {
				c.text.distinct = 0
			}
		}
		row.fields = append(row.fields, &field{name: c.name, node: c.node, n: t.rows})
		if c.name != "" && (isCellNumber([]byte(c.name)) || isDate([]byte(c.name))) {
			data++
		}
	}
	if 2*data > len(t.columns) {
		s.Says = append(s.Says, "the first row, taken as the header, looks like data")
	}
	if t.rows == 0 {
		for _, f := range row.fields {
			f.n = 1 // show the column names although there are no rows
		}
		row.n = 1
	}
	if t.wide > 0 {
		s.Shapes = shapes(&node{object: row}, "["+digest.Number(t.rows)+"] ", "empty", "record")
	}
	if t.files.MostOf(t.rows) {
		s.Matches, s.Files = t.files.Elements, t.files.Distinct()
		total, _ := t.files.Total()
		s.Total = append(s.Total, total)
		if line := t.files.TopLine(); line != "" && s.Files >= 0 {
			s.Body = append(s.Body, line)
		}
	}
	s.Body = append(s.Body, t.numberLines()...)
}

// numberLines returns a line per numeric column: minimum, maximum with their records, and mean. Columns whose numbers
// only rise, such as a key or a time, are omitted.
func (t *table) numberLines() []string {
	var out []string
	for _, c := range t.columns {
		n := c.number
		if n == nil || n.n < 3 || c.rising || len(out) == numbersShown || n.lo == n.hi {
			continue
		}
		out = append(out, content.Clip(keyName(c.name), digest.NameRunes)+": least "+string(n.low)+" (record "+digest.Number(c.least)+"), greatest "+string(n.top)+
			" (record "+digest.Number(c.most)+"), mean "+strconv.FormatFloat(n.sum/float64(n.n), 'g', 6, 64))
	}
	return out
}
