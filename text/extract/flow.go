package extract

import (
	"encoding/xml"
	"fmt"
)

// element is the role of an XML element in the flow of text.
type element int

const (
	other     element = iota
	skipped           // the element and its content are ignored
	paragraph         // becomes a line
	textRun           // its character data is text
	blank             // a tab or a line break
	hyphen
	table
	row // becomes a line
	cell
)

// dialect is the vocabulary of a format, by local name.
type dialect map[string]element

// flow turns the paragraphs and table rows of an XML part into lines. A paragraph in a table cell becomes a part of the
// line of its row; a paragraph in a paragraph, as in a text box or a comment, becomes a line after the outer one.
type flow struct {
	dialect
	anyText bool                             // all character data in a paragraph is text, not only that of runs
	place   string                           // the place of all lines; "" to count paragraphs and rows
	section map[string]string                // elements that set place, with the place
	emit    func(place, line string) error   // is called for each line, which may be empty
	see     func(e xml.StartElement) element // may be nil; returns a role that depends on attributes

	open                     []box
	skip                     int // nested elements within a skipped element
	paragraphs, tables, rows int
}

// box is an open paragraph, table, row or cell, or an element within one.
type box struct {
	role  element
	text  []byte
	cells []string // of a row
	after []string // lines within a paragraph that follow it
}

// read reads one part of the archive.
func (f *flow) read(a *archive, part string) error {
	f.open, f.skip = []box{{}}, 0
	return a.tokens(part, f.start, func(t xml.Token) error {
		switch t := t.(type) {
		case xml.CharData:
			f.chars(t)
		case xml.EndElement:
			return f.end()
		}
		return nil
	})
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
	case row:
		if inner != nil && inner.role == table && f.outermost() {
			f.rows++
		}
	case blank:
		if inner != nil {
			inner.text = append(inner.text, ' ')
		}
	case hyphen:
		if inner != nil {
			inner.text = append(inner.text, '-')
		}
	}
	f.open = append(f.open, box{role: role})
	return nil
}

// inner returns the innermost open paragraph, table, row or cell; nil outside of them.
func (f *flow) inner() *box {
	for i := len(f.open) - 1; i > 0; i-- {
		if r := f.open[i].role; r == paragraph || r >= table {
			return &f.open[i]
		}
	}
	return nil
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

func (f *flow) chars(text []byte) {
	if f.skip > 0 || !f.anyText && f.open[len(f.open)-1].role != textRun {
		return
	}
	if b := f.inner(); b != nil && b.role == paragraph {
		b.text = append(b.text, text...)
	}
}

func (f *flow) end() error {
	if f.skip > 0 {
		f.skip--
		return nil
	}
	b := &f.open[len(f.open)-1]
	f.open = f.open[:len(f.open)-1]
	switch b.role {
	case paragraph:
		for _, line := range append([]string{collapsed(string(b.text))}, b.after...) {
			if err := f.deliver(paragraph, line); err != nil {
				return err
			}
		}
	case cell:
		if outer := f.inner(); outer != nil && outer.role == row {
			outer.cells = append(outer.cells, collapsed(string(b.text)))
		}
	case row:
		return f.deliver(row, joined(b.cells))
	}
	return nil
}

// deliver passes a line to the box that encloses it, or to emit.
func (f *flow) deliver(role element, line string) error {
	for i := len(f.open) - 1; i > 0; i-- {
		switch outer := &f.open[i]; outer.role {
		case cell:
			outer.text = append(append(outer.text, line...), ' ')
			return nil
		case paragraph:
			outer.after = append(outer.after, line)
			return nil
		}
	}
	switch {
	case f.place != "":
		return f.emit(f.place, line)
	case role == row:
		return f.emit(fmt.Sprintf("table %d, row %d", f.tables, f.rows), line)
	}
	return f.emit(fmt.Sprintf("paragraph %d", f.paragraphs), line)
}
