package table

import (
	"bytes"
	"fmt"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Damage describes what is wrong with a table. Records are rows after the header, from 0; lines are counted from 1.
type Damage struct {
	Width    int  // cells of the header
	Headless bool // the first row looks like data: numbers, dates and times

	Odd               int64 // rows with another number of cells than the header
	OddRow, OddLine   int64 // the first of them
	OddCells          int
	Unclosed          int64 // cells without a closing quote: each ends with its line, or after MaxQuoted bytes
	UnclosedLine      int64 // of the first of them
	Inside            bool  // the text breaks off inside a quoted cell
	lastRow, lastLine int64
}

func (d *Damage) row(r *Row) {
	d.lastRow, d.lastLine = r.Index-1, r.Line
	switch {
	case r.Index == 0:
		d.Width, d.Headless = r.N, headless(r.Cells)
	case r.N != d.Width:
		if d.Odd++; d.Odd == 1 {
			d.OddRow, d.OddLine, d.OddCells = r.Index-1, r.Line, r.N
		}
	}
}

func (d *Damage) unclosed(line int64) {
	if d.Unclosed++; d.Unclosed == 1 {
		d.UnclosedLine = line
	}
}

// headless reports whether most cells of a first row are numbers, dates or times. Years may be names of columns.
func headless(cells [][]byte) bool {
	data := 0
	for _, c := range cells {
		year := len(c) == 4 && (string(c[:2]) == "19" || string(c[:2]) == "20")
		if !year && bytes.ContainsAny(c, "0123456789") && len(bytes.Trim(c, "0123456789.,+-eE%:/TZ ")) == 0 {
			data++
		}
	}
	return 2*data > len(cells)
}

// Notes returns a line for each kind of damage, and for a missing header.
func (d Damage) Notes() (notes []string) {
	if d.Headless {
		notes = append(notes, "the first row, taken as the header, looks like data")
	}
	if d.Inside {
		notes = append(notes, fmt.Sprintf("breaks off inside a quoted cell, in record %d (line %d)", d.lastRow, d.lastLine))
	}
	if d.Unclosed > 0 {
		notes = append(notes, fmt.Sprintf("%s not closed: the first opens a cell in line %d, which was ended with the line",
			content.Plural(d.Unclosed, "quote is", "quotes are"), d.UnclosedLine))
	}
	if d.Odd > 0 {
		notes = append(notes, fmt.Sprintf("%s not %s: first record %d (line %d) with %d",
			content.Plural(d.Odd, "row has", "rows have"), content.Plural(int64(d.Width), "cell", "cells"), d.OddRow, d.OddLine,
			d.OddCells))
	}
	return notes
}

// err returns a [*content.Remarks] with the notes, nil if there are none.
func (d Damage) err() error {
	if notes := d.Notes(); len(notes) > 0 {
		return &content.Remarks{Notes: notes}
	}
	return nil
}
