package viewer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/kinds"
	"github.com/mcp-funnel/mcp-funnel/kinds/record"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

const (
	recordsBytes = 4 << 20  // that are read of the records of a page
	fileBytes    = 64 << 20 // that are read of a file of a diff
)

// entry is a record of a diff, of a git log, or of what search found.
type entry struct {
	File, Status, Commit, Author, Date, Subject, Text string
	Old                                               string `json:"old_file"`
	Files, Added, Deleted, Line                       *int64
	Truncated                                         bool

	at content.Span
}

// entries returns records from one on, and a pager. Of a long record it reads the beginning, and says Truncated.
func (q *request) entries(o *opened, from, n int64) (all []entry, p *pager, notes []any, err error) {
	k := kinds.Of(o.kind)
	spans := recordsBy(k.Records)
	l := q.listOf(o, "records", nil, spans)
	known, done, wrong := l.wait(q.ctx, from+n+1)
	starts, err := l.page(q.ctx, o, spans, from, n+1)
	for i, room := 0, int64(recordsBytes); err == nil && i < min(len(starts), int(n)); i++ {
		at := content.Span{Start: starts[i], End: 1 << 62} // of the last one it is found below
		if i+1 < len(starts) {
			at.End = starts[i+1]
		} else if o.Plain() {
			at.End = max(o.Size, at.Start)
		}
		var b []byte
		limit := min(at.End-at.Start, max(room, readLine))
		if b, err = o.bytesAt(at.Start, limit); int64(len(b)) < limit {
			at.End = at.Start + int64(len(b))
		}
		object := bytes.NewBuffer(b)
		if k.Objects != nil {
			object = new(bytes.Buffer)
			_ = k.Objects(q.ctx, bytes.NewReader(b), object) // the list has the remarks
		}
		e := entry{at: at}
		_ = json.NewDecoder(object).Decode(&e) // what has another form has no fields
		e.Truncated = e.Truncated || int64(len(b)) < at.End-at.Start
		all, room = append(all, e), room-int64(len(b))
	}
	return all, q.partPager(from, int64(len(all)), known, done, "records"), remarks(wrong), err
}

// figure returns the cell of a figure that a record may lack.
func (e *entry) figure(n *int64) cell {
	switch {
	case n == nil:
		return cell{Text: "–", Title: "not counted", Num: true}
	case e.Truncated:
		return cell{Text: "≥ " + grouped(*n), Num: true}
	}
	return number(*n)
}

// recordsView shows the files of a diff, or the commits of a log; or one of them.
func recordsView(q *request, o *opened) ([]any, error) {
	if q.query.Has("record") {
		return q.record(o, q.number("record", 0))
	}
	from := q.number("top", 0)
	all, p, notes, err := q.entries(o, from, pageNodes)
	t := &table{Key: "records", Empty: "There is no such record.", Pager: p}
	text := func(s string) cell { return words(q.clip([]byte(s), cellBytes)) }
	for i, e := range all {
		n := itoa(from + int64(i))
		row := []cell{cell{Text: n, Num: true}.to(q.with("record", n, "top", ""))}
		if t.Heads = heads("#Record", "File", "Status", "#Added", "#Deleted"); o.kind == content.Diff {
			row = append(row, text(strings.TrimPrefix(e.Old+" → "+e.File, e.File+" → ")), words(cmp.Or(e.Status, "unknown")))
		} else {
			t.Heads = heads("#Record", "Commit", "Author", "Date", "Subject", "#Files", "#Added", "#Deleted")
			commit := code(e.Commit[:min(len(e.Commit), 12)])
			row = append(row, commit, text(e.Author), text(e.Date), text(e.Subject), e.figure(e.Files))
		}
		t.Rows = append(t.Rows, append(row, e.figure(e.Added), e.figure(e.Deleted)))
	}
	if err == nil && from == 0 && len(all) > 0 && all[0].at.Start > 0 { // git show begins with the commit
		var b []byte
		b, err = o.bytesAt(0, min(all[0].at.Start, oneLine))
		notes = append(notes, pre(q.masks().Text(b)))
	}
	return append(notes, t), err
}

// record shows a file of a diff, or a commit.
func (q *request) record(o *opened, index int64) ([]any, error) {
	all, p, notes, err := q.entries(o, index, 1)
	if err == nil && len(all) == 0 && !q.wait {
		err = problemf(http.StatusNotFound, "There is no record %d.", index)
	}
	if err != nil || len(all) == 0 {
		return notes, err
	}
	show := q.window
	if o.kind == content.Diff {
		show = q.hunks
	}
	blocks, err := show(o, all[0].at, "record "+grouped(index))
	return slices.Concat(notes, q.recordPager(index, p.Next != "", "record"), blocks), err
}

// hunks shows a file of a diff, the old text beside the new one.
func (q *request) hunks(o *opened, at content.Span, _ string) ([]any, error) {
	t := &table{Key: "hunks", Heads: heads("#Line", "Old", "#Line", "New"), Empty: "There is no such line."}
	from, room, mask := q.number("top", 0), pageBytes, q.masks()
	free := 0 // the first row that has only a removed line
	var hunk content.HunkLines
	var before, after int64
	part := content.Span{Start: at.Start, End: min(at.End, at.Start+fileBytes)}
	err := o.lines(q.ctx, part, readLine, func(all *record.Lines, b []byte) bool {
		b = content.WithoutEscapes(nil, b)
		inside, added, removed := hunk.Take(b)
		if !inside && bytes.HasPrefix(b, []byte("@@")) && hunk.Header(b) {
			_, plus, _ := bytes.Cut(b, []byte{'+'})
			_, _ = fmt.Sscanf(string(b[bytes.IndexByte(b, '-'):]), "-%d", &before)
			_, _ = fmt.Sscanf(string(plus), "%d", &after)
		}
		numbered := inside && !bytes.HasPrefix(b, []byte{'\\'})
		number := func(n *int64, here bool) (c cell) {
			if c.Num = true; here && numbered && (n == &after || len(hunk.Old) == 1) { // a merge has several old texts
				c.Text = itoa(*n)
				*n++
			}
			return c
		}
		old, now, none := number(&before, !added), number(&after, !removed), cell{Class: "same"}
		shown, more := cutLine(mask, all, b)
		text := cell{Text: shown + more, Class: "code"}
		row := []cell{old, text, now, text}
		switch {
		case all.Number <= from:
			return true
		case added && free < len(t.Rows):
			text.Class += " added"
			copy(t.Rows[free][2:], []cell{now, text})
			free, room = free+1, room-len(text.Text)-60
			return true
		case len(t.Rows) == pageLines || room < 0:
			t.Pager = &pager{Text: "of this file", First: q.with("top", ""), Next: q.with("top", itoa(all.Number-1))}
			return false
		case removed:
			row[1].Class += " removed"
			row[2], row[3] = none, none
		case added:
			row[3].Class += " added"
			row[0], row[1] = none, none
		default:
			if !inside {
				row[1].Class, row[3].Class = "code dim", "code dim"
			}
			row[0].Class, row[1].Class = "same", row[1].Class+" same"
			room -= len(text.Text)
		}
		if t.Rows, room = append(t.Rows, row), room-len(text.Text)-60; !removed {
			free = len(t.Rows)
		}
		return true
	})
	if at.End-at.Start > fileBytes {
		return []any{note{"Only the first " + size(fileBytes) + " of this file are shown beside each other.", "warn"}, t}, err
	}
	return []any{t}, err
}

// isFound reports whether a text is what search found.
func isFound(o *opened) bool {
	b, err := o.bytesAt(0, readLine)
	var e entry
	return err == nil && o.kind == content.NDJSON &&
		json.NewDecoder(bytes.NewReader(b)).Decode(&e) == nil && e.File != "" && e.Line != nil && e.Text != ""
}

// foundView shows what search found, by file.
func foundView(q *request, o *opened) ([]any, error) {
	all, p, blocks, err := q.entries(o, q.number("top", 0), pageNodes)
	for i, e := range all {
		line := line{Text: q.clip([]byte(e.Text), lineBytes)}
		if e.Line != nil {
			line.N, line.To = *e.Line, q.url("file", "name", e.File, "line", itoa(*e.Line))
		}
		if i == 0 || e.File != all[i-1].File {
			blocks = append(blocks, links{{Text: cmp.Or(e.File, "without a file"), To: q.url("file", "name", e.File)}}, &lines{})
		}
		last := blocks[len(blocks)-1].(*lines) //nolint:forcetypeassert // it was added above
		last.Lines = append(last.Lines, line)
	}
	return append(blocks, p), err
}
