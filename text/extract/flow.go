package extract

import (
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
)

// element is the role of an XML element in the flow of text.
type element int

const (
	other     element = iota
	skipped           // the element and its content are ignored
	paragraph         // becomes a line
	textRun           // its character data is text
	run               // has a style
	blank             // a tab or a line break
	hyphen
	equation    // a formula
	instruction // its character data is the code of a field
	simpleField // a field in one element
	description // of a picture
	table
	row // becomes a line
	cell
)

// dialect is the vocabulary of a format, by local name.
type dialect map[string]element

const (
	maxRepeat = 1 << 10 // columns that a cell spans or is repeated in, and rows in which one is repeated
	covered   = "\x00"  // the text of a cell that a span covers
)

// flow turns the paragraphs and table rows of an XML part into lines. A paragraph in a table cell becomes a part of the
// line of its row; a paragraph in a paragraph, as in a text box or a comment, becomes a line after the outer one.
type flow struct {
	dialect
	a       *archive
	b       *builder
	anyText bool                             // all character data in a paragraph is text, not only that of runs
	place   string                           // the place of all lines; "" to count paragraphs and rows
	section map[string]string                // elements that set place, with the place
	emit    func(place, line string)         // is called for each line, which may be empty
	see     func(e xml.StartElement) element // may be nil; returns a role that depends on attributes
	styles  styleSheet                       // of characters

	open                     []box
	skip                     int // nested elements within a skipped element
	paragraphs, tables, rows int
	formula                  *formula
	targets, links           map[string]string // parts and addresses by relationship ID
	included                 bool              // reading a part within another
	fields                   []field           // open fields of Word
	controls                 map[string]string // texts of the form of an OpenDocument file by ID
	lastControl, pictured    string
}

// box is an open paragraph, table, row or cell, or an element within one.
type box struct {
	role   element
	text   []byte
	cells  []string // of a row
	after  []string // lines within a paragraph that follow it
	size   int      // bytes of cells and lines within, about
	repeat int      // how often a row or cell is repeated; 0 for once
	span   int      // columns that follow a cell, or the last cell of a row, and have no cell
	style  style
	link   string // address that follows the text
	at     int    // length of the paragraph's text where the element starts
}

// read reads one part of the archive.
func (f *flow) read(part string) {
	f.targets, f.links = map[string]string{}, map[string]string{}
	for _, r := range f.a.relations(part) {
		if r.external {
			f.links[r.id] = r.target
		} else {
			f.targets[r.id] = r.target
		}
	}
	f.open, f.skip, f.formula = []box{{}}, 0, nil
	f.a.tokens(part, f.start, f.rest)
}

// include reads another part as if it stood at this place.
func (f *flow) include(part string) {
	if f.included || !f.a.has(part) {
		return
	}
	f.included = true
	f.a.tokens(part, f.start, f.rest)
	f.included = false
}

func (f *flow) rest(t xml.Token) error {
	switch t := t.(type) {
	case xml.CharData:
		f.chars(t)
	case xml.EndElement:
		f.end(t.Name.Local)
	}
	return f.b.err
}

func (f *flow) start(e xml.StartElement) error {
	role := f.dialect[e.Name.Local]
	if f.see != nil && role == other {
		role = f.see(e)
	}
	if f.skip > 0 || role == skipped {
		f.skip++
		return nil
	}
	if role == equation && f.formula == nil {
		f.formula = &formula{}
	}
	if f.formula != nil {
		f.formula.start(e.Name.Local, attributes(e))
		return nil
	}
	if s := f.section[e.Name.Local]; s != "" {
		f.place = s
	}
	switch inner := f.inner(); role {
	case paragraph:
		if inner == nil {
			f.paragraphs++
		}
	case table:
		if inner == nil {
			f.tables, f.rows = f.tables+1, 0
		}
	case blank:
		f.append(" ")
	case hyphen:
		f.append("-")
	}
	f.open = append(f.open, box{role: role, at: f.length()})
	f.describe(e)
	return f.b.err
}

// inner returns the innermost open paragraph, table, row or cell; nil outside of them.
func (f *flow) inner() *box {
	return f.around(func(b *box) bool { return b.role == paragraph || b.role >= table })
}

// around returns the innermost open box of a kind; nil if there is none.
func (f *flow) around(is func(*box) bool) *box {
	for i := len(f.open) - 1; i > 0; i-- {
		if is(&f.open[i]) {
			return &f.open[i]
		}
	}
	return nil
}

// within returns the innermost open box of a role, or an unused one.
func (f *flow) within(role element) *box {
	if b := f.around(func(b *box) bool { return b.role == role }); b != nil {
		return b
	}
	return &box{}
}

// outermost reports whether the innermost table is in no other box.
func (f *flow) outermost() bool {
	n := 0
	for i := range f.open {
		if r := f.open[i].role; r == paragraph || r >= table {
			n++
		}
	}
	return n == 1
}

// append adds text to the open paragraph.
func (f *flow) append(text string) {
	if b := f.inner(); b != nil && b.role == paragraph {
		b.text = append(b.text, text...)
	}
}

// length returns the length of the text of the open paragraph.
func (f *flow) length() int {
	if b := f.inner(); b != nil && b.role == paragraph {
		return len(b.text)
	}
	return 0
}

// write adds text to the open paragraph, or as a line if none is open.
func (f *flow) write(text string) {
	if b := f.inner(); b == nil || b.role != paragraph {
		f.deliver(paragraph, collapsed(text))
		return
	}
	f.append(text)
}

func (f *flow) chars(text []byte) {
	top := f.open[len(f.open)-1].role
	switch {
	case f.skip > 0:
	case f.formula != nil:
		f.formula.chars(string(text))
	case top == description:
		b := &f.open[len(f.open)-1]
		b.text = append(b.text, text...)
	case top == instruction && len(f.fields) > 0:
		x := &f.fields[len(f.fields)-1]
		x.code = append(x.code, text...)
	case f.anyText || top == textRun:
		f.append(f.styled(f.runStyle(), string(text)))
	}
}

func (f *flow) end(name string) {
	switch {
	case f.skip > 0:
		f.skip--
		return
	case f.formula != nil:
		if f.formula.end(name) {
			text := f.formula.text()
			f.formula = nil
			f.write(text)
		}
		return
	}
	b := &f.open[len(f.open)-1]
	f.open = f.open[:len(f.open)-1]
	switch b.role {
	case paragraph:
		f.deliver(paragraph, append([]string{collapsed(string(b.text))}, b.after...)...)
	case cell:
		f.endCell(b)
	case row:
		f.endRow(b)
	case description:
		f.picture(string(b.text))
	case simpleField:
		f.fieldChar("end")
	}
	if b.link != "" {
		f.endLink(b)
	}
}

// endCell adds a cell to its row, as often as it is repeated, and the columns that it covers.
func (f *flow) endCell(b *box) {
	outer := f.inner()
	if outer == nil || outer.role != row {
		return
	}
	text := collapsed(string(b.text))
	times := max(b.repeat, 1)
	if outer.size += times*(len(text)+16) + 16*b.span; outer.size > maxText {
		f.b.fail(fmt.Errorf("%w: a table row of more than %d bytes", ErrTooLarge, maxText))
		return
	}
	outer.cells = append(outer.cells, slices.Repeat([]string{text}, times)...)
	outer.cells = append(outer.cells, slices.Repeat([]string{covered}, b.span)...)
}

func (f *flow) endRow(b *box) {
	line := joined(append(b.cells, slices.Repeat([]string{covered}, b.span)...))
	if f.outermost() {
		f.rows++
	}
	f.deliver(row, slices.Repeat([]string{line}, max(b.repeat, 1))...)
}

// endLink adds the address of a link after its text. Runs of one link have the address once.
func (f *flow) endLink(b *box) {
	p := f.inner()
	if p == nil || p.role != paragraph || b.at > len(p.text) {
		f.write(linked("", b.link))
		return
	}
	address := linked(string(p.text[b.at:]), b.link)
	if before := p.text[:b.at]; address != "" && strings.HasSuffix(string(before[max(0, b.at-len(address)):]), address) {
		p.text = slices.Delete(p.text, b.at-len(address), b.at)
	}
	p.text = append(p.text, address...)
}

// deliver passes lines to the box that encloses them, or to emit.
func (f *flow) deliver(role element, lines ...string) {
	outer := f.around(func(b *box) bool { return b.role == cell || b.role == paragraph })
	for i, line := range lines {
		place := f.place
		switch {
		case outer != nil:
			if outer.size += len(line) + 16; outer.size > maxText {
				f.b.fail(fmt.Errorf("%w: more than %d bytes in a paragraph or cell", ErrTooLarge, maxText))
				return
			}
			if outer.role == paragraph {
				outer.after = append(outer.after, line)
			} else {
				outer.text = append(append(outer.text, line...), ' ')
			}
			continue
		case place == "" && role == row:
			place = fmt.Sprintf("table %d, row %d", f.tables, f.rows)
			if i < len(lines)-1 {
				f.rows++
			}
		case place == "":
			place = fmt.Sprintf("paragraph %d", f.paragraphs)
		}
		f.emit(place, line)
	}
}
