package extract

import (
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
)

// Limits of a workbook; those of rows and columns are Excel's.
const (
	maxSharedTags = 3 << 20 // XML elements of the shared strings
	maxRow        = 1 << 20
	maxColumn     = 1 << 14
)

// workbook is what cells refer to.
type workbook struct {
	a       *archive
	b       *builder
	shared  []string
	formats []string // of cell styles: codes of number formats
	epoch   bool     // days count from 1904
}

// sheet is a sheet as the workbook lists it.
type sheet struct {
	name, part string
	kind       string // worksheet, chartsheet …
}

func readXlsx(b *builder, a *archive, main string) error {
	w := &workbook{a: a, b: b}
	sheets, hidden, err := w.sheets(main)
	if err != nil {
		return err
	}
	var others []string
	for _, s := range sheets {
		if s.kind != "worksheet" {
			others = append(others, s.name)
		} else if err := w.read(s); err != nil {
			return fmt.Errorf("sheet %s: %w", s.name, err)
		}
	}
	if len(hidden) > 0 {
		b.note("%s, included: %s", count(len(hidden), "hidden sheet"), list(hidden))
	}
	if len(others) > 0 {
		b.note("%s without cells: %s", count(len(others), "sheet"), list(others))
	}
	return nil
}

// sheets returns the sheets of the workbook in its order, and the names of hidden ones. It reads what cells refer to.
func (w *workbook) sheets(main string) (sheets []sheet, hidden []string, err error) {
	rels, err := w.a.relations(main)
	if err != nil {
		return nil, nil, err
	}
	byID := map[string]relation{}
	for _, r := range rels {
		byID[r.id] = r
		switch exists := w.a.has(r.target); {
		case exists && r.kind == "sharedStrings":
			err = w.readShared(r.target)
		case exists && r.kind == "styles":
			err = w.readStyles(r.target)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	err = w.a.tokens(main, func(e xml.StartElement) error {
		switch e.Name.Local {
		case "workbookPr":
			w.epoch = isTrue(attr(e, "date1904"))
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
	return sheets, hidden, err
}

func isTrue(s string) bool { return s == "1" || s == "true" }

// readShared reads the strings that cells share, without pronunciations.
func (w *workbook) readShared(part string) error {
	tags, phonetic, inText := 0, 0, false
	var text strings.Builder
	return w.a.tokens(part, func(e xml.StartElement) error {
		if tags++; tags > maxSharedTags {
			return fmt.Errorf("%w: more than %d elements of shared strings", ErrTooLarge, maxSharedTags)
		}
		switch e.Name.Local {
		case "si":
			text.Reset()
		case "rPh":
			phonetic++
		case "t":
			inText = phonetic == 0
		}
		return nil
	}, func(t xml.Token) error {
		switch t := t.(type) {
		case xml.CharData:
			if inText {
				text.Write(t)
			}
		case xml.EndElement:
			switch t.Name.Local {
			case "si":
				w.shared = append(w.shared, collapsed(text.String()))
			case "rPh":
				phonetic--
			case "t":
				inText = false
			}
		}
		return nil
	})
}

// readStyles reads the number formats of cell styles.
func (w *workbook) readStyles(part string) error {
	codes, inCells := map[string]string{}, false
	return w.a.tokens(part, func(e xml.StartElement) error {
		switch e.Name.Local {
		case "numFmt":
			codes[attr(e, "numFmtId")] = attr(e, "formatCode")
		case "cellXfs":
			inCells = true
		case "xf":
			if !inCells {
				break
			}
			id := attr(e, "numFmtId")
			code, custom := codes[id]
			if !custom {
				code = builtIn(id)
			}
			w.formats = append(w.formats, code)
		}
		return nil
	}, func(t xml.Token) error {
		if e, ok := t.(xml.EndElement); ok && e.Name.Local == "cellXfs" {
			inCells = false
		}
		return nil
	})
}

// cellText is a cell while it is read.
type cellText struct {
	column      int
	kind, style string
	text        strings.Builder
}

// read adds the rows of a sheet.
func (w *workbook) read(s sheet) error {
	row, column := 0, 0
	var cells []string // of the row, from column 1
	var c *cellText
	inValue := false
	return w.a.tokens(s.part, func(e xml.StartElement) error {
		switch e.Name.Local {
		case "row":
			row, column, cells = row+1, 0, cells[:0]
			if n, err := strconv.Atoi(attr(e, "r")); err == nil {
				row = n
			}
			if row < 1 || row > maxRow {
				return fmt.Errorf("%w: row %d", ErrBroken, row)
			}
		case "c":
			column++
			if at := columnOf(attr(e, "r")); at > 0 {
				column = at
			}
			if column > maxColumn {
				return fmt.Errorf("%w: column %d", ErrBroken, column)
			}
			c = &cellText{column: column, kind: attr(e, "t"), style: attr(e, "s")}
		case "v", "t":
			inValue = c != nil
		}
		return nil
	}, func(t xml.Token) error {
		switch t := t.(type) {
		case xml.CharData:
			if inValue {
				c.text.Write(t)
			}
		case xml.EndElement:
			switch t.Name.Local {
			case "v", "t":
				inValue = false
			case "c":
				if text := w.shown(c); text != "" {
					for len(cells) < c.column {
						cells = append(cells, "")
					}
					cells[c.column-1] = text
				}
				c = nil
			case "row":
				return w.add(s.name, row, cells)
			}
		}
		return nil
	})
}

// add adds a row from its first cell with text on.
func (w *workbook) add(sheet string, row int, cells []string) error {
	for i, c := range cells {
		if c != "" {
			return w.b.add(fmt.Sprintf("%s!%s%d", sheet, columnName(i+1), row), joined(cells[i:]))
		}
	}
	return nil
}

// shown returns the text of a cell as a spreadsheet shows it, with dates in ISO form.
func (w *workbook) shown(c *cellText) string {
	raw := c.text.String()
	switch c.kind {
	case "s":
		if n, err := strconv.Atoi(strings.TrimSpace(raw)); err == nil && n >= 0 && n < len(w.shared) {
			return w.shared[n]
		}
		return ""
	case "b":
		if isTrue(strings.TrimSpace(raw)) {
			return "TRUE"
		}
		return "FALSE"
	case "", "n":
		v, err := strconv.ParseFloat(strings.TrimSpace(raw), 64)
		if err != nil {
			return collapsed(raw)
		}
		code := ""
		if n, err := strconv.Atoi(c.style); err == nil && n >= 0 && n < len(w.formats) {
			code = w.formats[n]
		}
		return collapsed(formatNumber(v, code, w.epoch))
	}
	return collapsed(raw)
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

// columnName returns the letters of a column: A for 1, AA for 27.
func columnName(n int) (name string) {
	for ; n > 0; n = (n - 1) / 26 {
		name = string(rune('A'+(n-1)%26)) + name
	}
	return name
}
