package extract

import (
	"encoding/xml"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Limits of a workbook; those of rows and columns are Excel's.
const (
	maxSharedTags = 3 << 20 // XML elements of a part with texts, such as the shared strings
	maxRow        = 1 << 20
	maxColumn     = 1 << 14
)

// workbook is what cells refer to.
type workbook struct {
	a       *archive
	b       *builder
	shared  []string
	formats []string // of cell styles: codes of number formats
	numbers *formatter
}

// sheet is a sheet as the workbook lists it.
type sheet struct {
	name, part string
	kind       string // worksheet, chartsheet …
}

func readXlsx(b *builder, a *archive, main string) {
	w := &workbook{a: a, b: b, numbers: newFormatter()}
	sheets, hidden := w.sheets(main)
	var others []string
	for _, s := range sheets {
		switch {
		case a.err != nil:
			return
		case s.kind != "worksheet":
			others = append(others, s.name)
		default:
			w.read(s)
			a.within("sheet", s.name)
		}
	}
	if len(hidden) > 0 {
		b.note("%s, included: %s", count(len(hidden), "hidden sheet"), list(hidden))
	}
	if len(others) > 0 {
		b.note("%s without cells: %s", count(len(others), "sheet"), list(others))
	}
}

// sheets returns the sheets of the workbook in its order, and the names of hidden ones. It reads what cells refer to.
func (w *workbook) sheets(main string) (sheets []sheet, hidden []string) {
	byID := map[string]relation{}
	for _, r := range w.a.relations(main) {
		byID[r.id] = r
		switch exists := w.a.has(r.target); {
		case exists && r.kind == "sharedStrings":
			w.a.texts(r.target, "si", "t", func(_ xml.StartElement, text string) { w.shared = append(w.shared, text) })
		case exists && r.kind == "styles":
			w.readStyles(r.target)
		}
	}
	w.a.tokens(main, func(e xml.StartElement) error {
		switch e.Name.Local {
		case "workbookPr":
			w.numbers.epoch = isTrue(attr(e, "date1904"))
		case "sheet":
			r := byID[attr(e, "id")]
			s := sheet{attr(e, "name"), r.target, r.kind}
			sheets = append(sheets, s)
			if state := attr(e, "state"); state != "" && state != "visible" {
				hidden = append(hidden, s.name)
			}
		}
		return nil
	}, ignore)
	return sheets, hidden
}

func isTrue(s string) bool { return s == "1" || s == "true" }

// readStyles reads the number formats of cell styles.
func (w *workbook) readStyles(part string) {
	codes, inCells := map[string]string{}, false
	w.a.tokens(part, func(e xml.StartElement) error {
		switch e.Name.Local {
		case "numFmt":
			codes[attr(e, "numFmtId")] = attr(e, "formatCode")
		case "cellXfs":
			inCells = true
		case "cellStyles", "dxfs":
			inCells = false
		case "xf":
			id := attr(e, "numFmtId")
			code, custom := codes[id]
			if !custom {
				code = builtIn(id)
			}
			if inCells {
				w.formats = append(w.formats, code)
			}
		}
		return nil
	}, ignore)
}

// texts calls each for every element of a part that has a name, with the text of its descendants named inner, but for
// pronunciations.
func (a *archive) texts(part, name, inner string, each func(e xml.StartElement, text string)) {
	tags, skip, inText := 0, false, false
	var outer xml.StartElement
	var text strings.Builder
	a.tokens(part, func(e xml.StartElement) error {
		if tags++; tags > maxSharedTags {
			return fmt.Errorf("%w: more than %d elements of texts", ErrTooLarge, maxSharedTags)
		}
		switch e.Name.Local {
		case name:
			outer = e.Copy()
			text.Reset()
		case "rPh", "Fallback":
			skip = true
		case "br":
			text.WriteByte(' ')
		}
		inText = e.Name.Local == inner && !skip
		return nil
	}, func(t xml.Token) error {
		switch t := t.(type) {
		case xml.CharData:
			if inText {
				text.Write(t)
			}
		case xml.EndElement:
			inText = false
			switch t.Name.Local {
			case "rPh", "Fallback":
				skip = false
			case name:
				each(outer, unescaped(text.String()))
			}
		}
		return nil
	})
}

var escape = content.Pattern(`_x[0-9A-Fa-f]{4}_`)

// unescaped returns a collapsed text, with the characters that a workbook writes as _x000D_.
func unescaped(text string) string {
	if strings.Contains(text, "_x") {
		text = escape().ReplaceAllStringFunc(text, func(e string) string {
			n, _ := strconv.ParseUint(e[2:6], 16, 16)
			return string(rune(n))
		})
	}
	return collapsed(text)
}

// grid is a sheet while it is read.
type grid struct {
	*workbook
	sheet
	row, column int
	cells       []string // of the row, from column 1
	cell        *gridCell
	into        *strings.Builder // takes the text of the element
	phonetic    bool             // within a pronunciation
	rows        []gridRow
	size        int               // bytes of the rows
	unsaved     int               // formulas without a value
	masters     map[string]string // by the number of a shared formula: its first cell
	links       [][3]string       // cell, address or "", ID of the address
	margin      strings.Builder   // a header or footer
	margins     []string
}

// gridRow is a row from its first cell with text on, which stands in a column from 0.
type gridRow struct {
	row, first int
	text       string
}

// gridCell is a cell while it is read.
type gridCell struct {
	kind, style   string
	text, formula strings.Builder
	master        string // the cell that has its formula
	valued        bool
}

// read adds a sheet: its rows, from the first column with text on, then what lies on it.
func (w *workbook) read(s sheet) {
	g := &grid{workbook: w, sheet: s, masters: map[string]string{}}
	w.a.tokens(s.part, g.start, g.rest)
	left := maxColumn
	for _, r := range g.rows {
		left = min(left, r.first)
	}
	for _, r := range g.rows {
		line := strings.Repeat(" | ", r.first-left) + r.text
		w.b.add(s.name+"!"+cellName(left+1, r.row), line)
	}
	if g.unsaved > 0 {
		w.b.note("%s: %s without a saved value, shown as =FORMULA", s.name, count(g.unsaved, "formula"))
	}
	if g.addExtras(); w.b.err != nil {
		w.a.fail(w.b.err)
	}
}

func (g *grid) start(e xml.StartElement) error {
	g.into = nil
	switch e.Name.Local {
	case "row":
		g.row, g.column, g.cells = g.row+1, 0, g.cells[:0]
		if n, err := strconv.Atoi(attr(e, "r")); err == nil {
			g.row = n
		}
		if g.row < 1 || g.row > maxRow {
			return fmt.Errorf("%w: row %d", ErrBroken, g.row)
		}
	case "c":
		g.column++
		if at := columnOf(attr(e, "r")); at > 0 {
			g.column = at
		}
		if g.column > maxColumn {
			return fmt.Errorf("%w: column %d", ErrBroken, g.column)
		}
		g.cell = &gridCell{kind: attr(e, "t"), style: attr(e, "s")}
	case "rPh":
		g.phonetic = true
	case "v", "t":
		if g.cell != nil && !g.phonetic {
			g.into = &g.cell.text
			g.cell.valued = g.cell.valued || e.Name.Local == "t" || g.cell.kind == "str" // else an empty value is none
		}
	case "f":
		if g.cell != nil {
			g.into = &g.cell.formula
			if id := attr(e, "si"); id != "" && g.masters[id] == "" {
				g.masters[id] = cellName(g.column, g.row)
			} else if id != "" {
				g.cell.master = g.masters[id]
			}
		}
	case "hyperlink":
		g.links = append(g.links, [3]string{attr(e, "ref"), "", attr(e, "id")})
	case "oddHeader", "evenHeader", "firstHeader", "oddFooter", "evenFooter", "firstFooter":
		g.margin.Reset()
		g.into = &g.margin
	}
	return nil
}

func (g *grid) rest(t xml.Token) error {
	switch t := t.(type) {
	case xml.CharData:
		if g.into != nil {
			g.into.Write(t)
		}
	case xml.EndElement:
		if g.into == &g.margin {
			g.margins = append(g.margins, g.margin.String())
		}
		g.into = nil
		switch t.Name.Local {
		case "rPh":
			g.phonetic = false
		case "c":
			g.endCell()
		case "row":
			return g.endRow()
		}
	}
	return nil
}

var linkFormula = content.Pattern(`(?i)^HYPERLINK\("([^"]+)"`)

func (g *grid) endCell() {
	c := g.cell
	c.valued = c.valued || c.text.Len() > 0
	text, formula := g.shown(c), unescaped(c.formula.String())
	if m := linkFormula().FindStringSubmatch(formula); m != nil {
		g.links = append(g.links, [3]string{cellName(g.column, g.row), m[1]})
	}
	if !c.valued && (formula != "" || c.master != "") {
		g.unsaved++
		if text = "=" + formula; formula == "" {
			text = "=(the formula of " + c.master + ")"
		}
	}
	if text != "" {
		for len(g.cells) < g.column {
			g.cells = append(g.cells, "")
		}
		g.cells[g.column-1] = text
	}
	g.cell = nil
}

func (g *grid) endRow() error {
	if first := slices.IndexFunc(g.cells, func(c string) bool { return c != "" }); first >= 0 {
		g.rows = append(g.rows, gridRow{g.row, first, joined(g.cells[first:])})
		g.size += len(g.rows[len(g.rows)-1].text)
	}
	if g.size > maxText {
		return fmt.Errorf("%w: more than %d bytes of text", ErrTooLarge, maxText)
	}
	return nil
}

// shown returns the text of a cell as a spreadsheet shows it.
func (g *grid) shown(c *gridCell) string {
	raw, code := strings.TrimSpace(c.text.String()), ""
	if n, err := strconv.Atoi(c.style); err == nil && n >= 0 && n < len(g.formats) {
		code = g.formats[n]
	}
	n, err := strconv.ParseFloat(raw, 64)
	switch {
	case !c.valued:
		return ""
	case c.kind == "b":
		return strings.ToUpper(strconv.FormatBool(isTrue(raw)))
	case (c.kind == "" || c.kind == "n") && err == nil:
		return collapsed(g.numbers.number(n, code))
	case c.kind == "s":
		if raw = ""; err == nil && n >= 0 && int(n) < len(g.shared) {
			raw = g.shared[int(n)]
		}
	default:
		raw = unescaped(raw)
	}
	return collapsed(g.numbers.text(raw, code))
}

var marginCode = content.Pattern(`&("[^"]*"|K[0-9A-F]{6}|K\d\d[+-]\d{3}|\d+|.)`)

// addExtras adds the links, headers, footers, comments, text boxes and pictures of the sheet. It skips headers and
// footers with the number of the page or the name of the sheet, which programs add by themselves.
func (g *grid) addExtras() {
	rels := g.a.relations(g.part)
	add := func(cell, what, text string) {
		place := g.name
		if cell != "" {
			place, what = place+"!"+cell, what+" "+cell
		}
		if text != "" {
			g.b.add(place, what+": "+text)
		}
	}
	addresses := map[string]string{}
	for _, r := range rels {
		if r.external {
			addresses[r.id] = r.target
		}
	}
	for _, l := range g.links {
		add(l[0], "link of", collapsed(l[1]+addresses[l[2]]))
	}
	for _, m := range g.margins {
		if !strings.Contains(m, "&P") && !strings.Contains(m, "&A") {
			add("", "header or footer", unescaped(marginCode().ReplaceAllString(m, " ")))
		}
	}
	for _, r := range rels {
		switch exists := g.a.has(r.target); {
		case exists && r.kind == "comments":
			g.a.texts(r.target, "comment", "t", func(e xml.StartElement, text string) {
				if _, thread, ok := strings.Cut(text, " Comment: "); ok && strings.HasPrefix(text, "[Threaded comment]") {
					text = thread // what precedes it says that old programs cannot edit it
				}
				add(attr(e, "ref"), "comment on", text)
			})
		case exists && r.kind == "drawing":
			g.a.texts(r.target, "p", "t", func(_ xml.StartElement, text string) { add("", "text box", text) })
			g.a.texts(r.target, "cNvPr", "", func(e xml.StartElement, _ string) {
				add("", "picture", collapsed(attr(e, "descr")))
			})
		}
	}
}

// columnOf returns the column of a cell's name, from 1; 0 if it names none, and more than maxColumn if it is too high.
func columnOf(name string) (n int) {
	for i := 0; i < len(name) && name[i] >= 'A' && name[i] <= 'Z'; i++ {
		if n = n*26 + int(name[i]-'A') + 1; n > maxColumn {
			return n
		}
	}
	return n
}

// cellName returns the name of a cell, such as B2, by its column and row from 1.
func cellName(column, row int) string { return columnName(column) + strconv.Itoa(row) }

// columnName returns the letters of a column: A for 1, AA for 27.
func columnName(n int) (name string) {
	for ; n > 0; n = (n - 1) / 26 {
		name = string(rune('A'+(n-1)%26)) + name
	}
	return name
}
