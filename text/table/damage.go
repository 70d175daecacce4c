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
	first             []bool // cells of the first row that look like data
}

func (d *Damage) row(r *Row) {
	d.lastRow, d.lastLine = r.Index-1, r.Line
	if r.Index == 1 { // a number above a number is no name
		for i, is := range d.first[:min(len(d.first), len(r.Cells))] {
			d.Headless = d.Headless || is && dataCell().Match(r.Cells[i])
		}
	}
	switch {
	case r.Index == 0:
		d.Width, d.first = r.N, dataCells(r.Cells)
		d.Headless = isHeadless(d.first)
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

// dataCell matches numbers, amounts, dates, times, addresses and truth values.
var dataCell = content.Pattern(`(?i)^ *(true|false|\S+@\S+\.\S+|[-+($€£¥]*[0-9][-+0-9.,:/'’% TZE]*[)€$£¥]?) *$`)

// dataCells says which cells of a first row look like data. Years may be names of columns, and so may cells of a series
// beside one word: "month,1,2,3".
func dataCells(cells [][]byte) []bool {
	data, n, rising := make([]bool, len(cells)), 0, true
	var before []byte
	for i, c := range cells {
		year := len(c) == 4 && (string(c[:2]) == "19" || string(c[:2]) == "20")
		if data[i] = !year && dataCell().Match(c); data[i] {
			longer := len(c) > len(before)
			rising = rising && (longer || len(c) == len(before) && bytes.Compare(before, c) < 0)
			before, n = c, n+1
		}
	}
	if rising && n > 1 && n == len(cells)-1 && !data[0] {
		return nil
	}
	return data
}

// isHeadless reports whether most cells of a first row look like data.
func isHeadless(data []bool) bool {
	n := 0
	for _, is := range data {
		if is {
			n++
		}
	}
	return 2*n > len(data)
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
