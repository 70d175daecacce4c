package shape

import (
	"bytes"
	"encoding/json"
	"hash/maphash"
	"strconv"

	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/table"
)

const (
	columnsMost  = 512     // maximum number of columns examined
	cellBytes    = 256     // bytes kept of a cell
	distinctMost = 1024    // maximum number of distinct values counted per column
	distinctAll  = 1 << 16 // maximum number of distinct values over all columns
	numbersShown = 8
	straysShown  = 4
)

// tableSummary summarises tables: the number of rows, counted as in kinds.Records, and statistics of each column.
type tableSummary struct {
	scan *table.Scanner

	columns []*column
	files   digest.FileCounts // files named by the rows
	wide    int               // number of cells in the header; 0 before the header
	rows    int64
	strays  []stray // the first rows of one cell with words: what a program wrote beside its table

	seed   maphash.Seed
	values int // number of distinct values in memory
}

// stray is a row that is none of the table.
type stray struct {
	line int64
	text string
}

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

// NewTable returns a summarizer for a table that begins with prefix.
func NewTable(prefix []byte) digest.Summarizer {
	t := &tableSummary{seed: maphash.MakeSeed()}
	t.scan = table.New(table.DialectOf(prefix), t.row)
	t.scan.Limits = table.Limits{MaxCell: cellBytes, MaxCells: columnsMost}
	return t
}

func (t *tableSummary) Add(p []byte) { t.scan.Write(p) }

func (t *tableSummary) row(r *table.Row) bool {
	if r.Index == 0 {
		t.wide = r.N
		for _, c := range r.Cells {
			name := string(bytes.TrimSpace(c))
			t.columns = append(t.columns, &column{name: name, place: digest.ColumnPlace(name)})
		}
		return true
	}
	if r.N == 1 && t.wide > 1 && len(t.strays) < straysShown && bytes.IndexByte(r.Cells[0], ' ') > 0 {
		t.strays = append(t.strays, stray{r.Line, string(r.Cells[0])})
	}
	for i, c := range r.Cells[:min(len(r.Cells), len(t.columns))] {
		t.cell(t.columns[i], bytes.TrimSpace(c))
	}
	t.rows++
	t.files.End()
	return true
}

// cell adds a value to the statistics of a column.
func (t *tableSummary) cell(c *column, b []byte) {
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

func (t *tableSummary) addNumber(c *column, b []byte) {
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

func (t *tableSummary) Finish(s *digest.Summary) {
	t.scan.End()
	s.Records = t.rows
	s.Total = []string{content.Plural(t.rows, "row", "rows") + ", " + content.Plural(int64(t.wide), "column", "columns")}
	s.Damage = t.scan.Damage().Notes()
	s.Says = append(s.Says, s.Damage...)
	for _, l := range t.strays {
		s.Says = append(s.Says, s.AddQuote("stands out, line "+digest.Number(l.line), l.line,
			content.Clip(l.text, digest.LineRunes), ""))
	}
	if t.wide > columnsMost {
		s.Says = append(s.Says, "only the first "+digest.Number(columnsMost)+" columns are described")
	}
	each := lengths{complete: t.rows, lo: int64(t.wide), hi: int64(t.wide)}
	row := &objects{n: t.rows, lengths: each, omitted: t.wide - len(t.columns)}
	for _, c := range t.columns {
		if c.text != nil && !c.many {
			c.text.distinct = int64(len(c.distinct))
			if c.number != nil {
				c.text.distinct = 0
			}
		}
		row.fields = append(row.fields, &field{name: c.name, node: c.node, n: t.rows})
	}
	if t.rows == 0 {
		for _, f := range row.fields {
			f.n = 1 // show the column names although there are no rows
		}
		row.n = 1
	}
	if t.wide > 0 {
		top := "[" + digest.Number(t.rows) + "] "
		s.Shapes = shapes(details, &node{object: row}, top, "empty", "record")
		s.Examples = shapes(exampleDetails, &node{object: row}, top, "empty", "record")
		s.Form = form.write(&node{object: row}, "", "empty", "record")
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
func (t *tableSummary) numberLines() []string {
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
