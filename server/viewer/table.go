package viewer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/kinds"
	"github.com/mcp-funnel/mcp-funnel/kinds/record"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	csv "github.com/mcp-funnel/mcp-funnel/text/table"
	"github.com/mcp-funnel/mcp-funnel/tools/jq"
)

const (
	pageColumns = 30
	cellBytes   = 200    // of a cell beside others
	maxSorted   = 10_000 // rows in an order: as many as jq holds of a sorted array while it reads
)

// tableView shows rows of a table: all, or those that a filter chooses and orders.
func tableView(q *request, o *opened) ([]any, error) {
	all := q.listOf(o, "rows", nil, recordsBy(kinds.Table.Records))
	if q.query.Has("record") {
		return q.row(o, all, q.number("record", 0))
	}
	from := q.number("top", 0)
	known, done, wrong := all.wait(q.ctx, from+pageNodes+1)
	t, room, names := &table{Key: "rows", Empty: "There is no such row."}, pageBytes, []string(nil)
	add := func(index int64, of []string, r *csv.Row) bool {
		if names = of; index < 0 {
			return true
		}
		row := []cell{number(index).to(q.with("record", itoa(index)))}
		for i, c := range r.Cells[:min(len(r.Cells), pageColumns)] {
			row = append(row, words(q.cell(of[i], c, cellBytes)))
			room -= len(row[i+1].Text) + 30
		}
		if room < 0 && len(t.Rows) > 0 {
			return false
		}
		t.Rows = append(t.Rows, row)
		return len(t.Rows) < pageNodes
	}
	blocks := remarks(wrong)
	err := q.rowsFrom(o, all, from, add)
	if order, test := q.query.Get("sort"), strings.TrimSpace(q.query.Get("filter")); err == nil && order+test != "" {
		c, err := choiceOf(names, order, test)
		if err != nil {
			return nil, err
		}
		chosen := q.listOf(o, "jq "+c.Filter, nil, func(o *opened, _ int64) walk { return o.chosen(c) })
		known, done, wrong = chosen.wait(q.ctx, from+pageNodes+1)
		box := q.with("jq", c.Shown, "slurp", map[bool]string{true: "1"}[c.Slurp], "top", "")
		blocks = append(append(blocks, facts{{"Filter", code(c.Shown).to(box)}}), remarks(wrong)...)
		room, t.Rows = pageBytes, nil
		for i := from; err == nil && i < min(known, from+pageNodes) && room >= 0 && !q.wait; i++ {
			_, at := chosen.near(i)
			err = q.rowsFrom(o, all, at, func(i int64, of []string, r *csv.Row) bool { return add(i, of, r) && i < at })
		}
	}
	q.nameColumns(t, names)
	if more := len(names) - pageColumns; more > 0 {
		text := grouped(int64(more)) + " further columns are not shown: open a row by its number."
		blocks = append(blocks, note{text, ""})
	}
	if t.Pager = q.partPager(from, int64(len(t.Rows)), known, done, "rows"); !done {
		t.Empty = "The rows are being read."
	}
	ask := q.jump("filter", "Rows where", "top")
	last := &ask.Fields[len(ask.Fields)-1]
	ask.Submit, last.Hint, last.Size = "filter", ".amount > 5", 30
	return append(blocks, ask, t), err
}

// remarks are notes on what a text lacks, or why it was not read.
func remarks(err error) (notes []any) {
	if said, ok := errors.AsType[*content.Remarks](err); ok {
		for _, n := range said.Notes {
			notes = append(notes, note{n, "warn"})
		}
	} else if err != nil {
		notes = append(notes, note{err.Error(), "bad"})
	}
	return notes
}

// rowsFrom visits the header of a table, with the index -1, and the rows from one on, if it is known where that begins,
// with the names of all columns so far.
func (q *request) rowsFrom(o *opened, all *list, index int64, visit func(int64, []string, *csv.Row) bool) error {
	known, done, _ := all.wait(q.ctx, index+1)
	q.wait = q.wait || known <= index && !done
	at, start := all.near(index)
	_, first := all.near(0)
	head, err := o.bytesAt(0, first)
	if err != nil {
		return err
	}
	r, err := o.from(start)
	if err != nil {
		return err
	}
	var names []string
	limits := csv.Limits{MaxCell: readLine, MaxCells: 1 << 14, MaxRow: record.MaxLine / 8}
	err = csv.Read(q.ctx, io.MultiReader(bytes.NewReader(head), r), limits, func(r *csv.Row) bool {
		if r.Index == 0 {
			names = record.Names(r.Cells)
			return visit(-1, names, r) && known > index
		}
		for i := len(names); i < len(r.Cells); i++ {
			names = append(names, "column_"+strconv.Itoa(i+1))
		}
		return at+r.Index-1 < index || visit(at+r.Index-1, names, r)
	})
	if errors.As(err, new(*content.Remarks)) { // the list has those on the whole table
		err = nil
	}
	return err
}

// cell returns the beginning of a cell. The name of its column may say that it is a secret.
func (q *request) cell(name string, b []byte, n int) string {
	name = q.clip([]byte(name), cellBytes) + "="
	return strings.TrimPrefix(q.clip(append([]byte(name), b...), n+len(name)), name)
}

// nameColumns heads the columns of a page, each with a link to the next order by it, and fills up short rows.
func (q *request) nameColumns(t *table, names []string) {
	t.Heads = heads("#row")
	for i, name := range names[:min(len(names), pageColumns)] {
		h := cell{Text: q.clip([]byte(name), cellBytes), Title: "sort: smallest first", Num: len(t.Rows) > 0}
		next := name
		switch q.query.Get("sort") {
		case name:
			h.Text, h.Title, next = h.Text+" ▲", "sort: largest first", "-"+name
		case "-" + name:
			h.Text, h.Title, next = h.Text+" ▼", "in the order of the table", ""
		}
		for r, row := range t.Rows {
			if len(row) <= i+1 {
				t.Rows[r] = append(row, cell{Text: "missing", Class: "dim"})
			} else {
				h.Num = h.Num && (row[i+1].Text == "" || record.IsNumber(row[i+1].Text))
			}
		}
		for _, row := range t.Rows {
			row[i+1].Num = h.Num
		}
		t.Heads = append(t.Heads, h.to(q.with("sort", next, "top", "")))
	}
}

// row shows one row, a column a line.
func (q *request) row(o *opened, all *list, index int64) ([]any, error) {
	out, room := facts{}, pageBytes
	known, done, _ := all.wait(q.ctx, index+2)
	err := q.rowsFrom(o, all, index, func(at int64, names []string, r *csv.Row) bool {
		if at < 0 {
			return true
		}
		for i := 0; i < len(r.Cells) && room > 0; i++ {
			out = append(out, fact{q.clip([]byte(names[i]), cellBytes), code(q.cell(names[i], r.Cells[i], oneLine))})
			room -= len(out[i].Cell.Text) + 60
		}
		if more := int64(r.N - len(out)); more > 0 {
			out = append(out, fact{"Not shown", words(content.Plural(more, "cell", "cells"))})
		}
		return false
	})
	if len(out) == 0 && err == nil && !q.wait {
		err = problemf(http.StatusNotFound, "The table has no row %d.", index)
	}
	return append(q.recordPager(index, known > index+1 || !done, "row"), out), err
}

// recordPager leads from one record to those beside it, and to all.
func (q *request) recordPager(index int64, more bool, what string) []any {
	total := index + 1
	if more {
		total = -1
	}
	all := links{{Text: "all " + what + "s", To: q.with("record", "", "top", "", "from", "")}}
	return []any{all, q.pager(what+" "+grouped(index), "record", 0, index, index+1, 1, total)}
}

// choiceOf returns the filter for which a person asked.
func choiceOf(names []string, order, test string) (c jq.Choice, err error) {
	c = jq.Choice{Test: cmp.Or(test, "."), Shown: "select(" + test + ")", Filter: "select(.[1] | (" + test + "))"}
	if order == "" {
		c.Filter += " | .[0]"
		return c, nil
	}
	name, end := order, fmt.Sprintf(" | .[:%d] | .[]", maxSorted)
	if !slices.Contains(names, name) {
		name, end = strings.TrimPrefix(name, "-"), fmt.Sprintf(" | .[-%d:] | reverse | .[]", maxSorted)
	}
	if !slices.Contains(names, name) {
		return c, problemf(http.StatusBadRequest, "The table has no column %s.", content.ClipBytes(order, 100))
	}
	quoted, _ := content.PlainJSON(name)
	by := ".[" + string(quoted) + "]"
	if plainKey.MatchString(name) {
		by = "." + name
	}
	if c.Shown = "[.[] | " + c.Shown + "] | "; test == "" {
		c.Shown, c.Filter = "", "."
	}
	c.Shown += "sort_by(" + by + ")" + end
	c.Slurp = true
	c.Filter = "[.[] | " + c.Filter + " | [.[0], .[1]" + by + "]] | sort_by(.[1])" + end + " | .[0]"
	return c, nil
}

// chosen returns a walk of the numbers of the rows that a filter chooses.
func (o *opened) chosen(c jq.Choice) walk {
	return func(ctx context.Context, visit func(index, start int64) bool) error {
		n := int64(0)
		err := c.Rows(ctx, o.Text, func(row int64) bool {
			visit(n, row)
			n++
			return n < maxStarts
		})
		if err == nil && (n == maxStarts || c.Slurp && n == maxSorted) {
			err = &content.Remarks{Notes: []string{"Only the first " + grouped(n) + " rows of this filter are shown."}}
		}
		return err
	}
}
