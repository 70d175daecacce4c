package jq

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// maxRow is the longest row of a table that is made an object, in bytes.
const maxRow = 16 << 20

// opener gives the text that the filter sees, from its start: the source's own, or, of
// a table, its rows as objects, one a line. What it opens ends with ctx.
func opener(ctx context.Context, src *tools.Source, a args) func() (io.Reader, error) {
	if src.Kind() != content.Table || a.Text {
		return src.Text
	}
	return func() (io.Reader, error) {
		t, err := src.Text()
		if err != nil {
			return nil, err
		}
		r, w := io.Pipe()
		context.AfterFunc(ctx, func() { _ = w.CloseWithError(ctx.Err()) })
		go func() { _ = w.CloseWithError(rowObjects(ctx, t, w)) }()
		return r, nil
	}
}

// rowObjects writes the rows of a table as NDJSON: the header's names, and the cells as
// strings or, where they are written as JSON writes numbers, as these numbers with
// their digits. A second column of one name is name_2; a cell beyond the header is column_N; a missing cell has no key.
func rowObjects(ctx context.Context, t io.Reader, w io.Writer) error {
	var held window
	var names []string
	var delimiter byte
	var failed error
	row := -1
	visit := func(at content.Span) bool {
		var cells []string
		text := held.cut(at)
		if names == nil {
			delimiter = content.Delimiter(text)
		}
		if cells, failed = cellsOf(text, delimiter); failed != nil {
			failed = fmt.Errorf("row %d: %w", max(row, 0), failed)
			return false
		}
		if row++; names == nil {
			names = unique(cells)
			return true
		}
		_, failed = w.Write(rowObject(&names, cells))
		return failed == nil
	}
	header, rest, err := split(ctx, t, &held)
	if err != nil {
		return err
	}
	if header.End > header.Start && !visit(header) {
		return failed
	}
	err = content.Records(ctx, rest, content.Table, func(_ int64, at content.Span) bool { return visit(at) })
	if failed != nil {
		return failed
	}
	return err
}

// split finds the header, and gives the text again from its start, which held goes on to hold.
func split(ctx context.Context, t io.Reader, held *window) (content.Span, io.Reader, error) {
	var read bytes.Buffer
	header, err := content.Header(ctx, io.TeeReader(io.LimitReader(t, maxRow), &read))
	if err != nil {
		return header, nil, err
	}
	held.r = io.MultiReader(&read, t)
	if header.End > int64(read.Len()) {
		return header, nil, fmt.Errorf("the header is longer than %d MiB", maxRow>>20)
	}
	held.bytes = append(held.bytes, read.Bytes()[:header.End]...)
	held.skip = header.End
	return header, held, nil
}

// window holds what was read of a text and not yet taken as a row.
type window struct {
	r     io.Reader
	bytes []byte
	start int64 // of bytes in the text
	skip  int64 // bytes of r that are held already
}

func (h *window) Read(p []byte) (int, error) {
	if len(h.bytes) > maxRow+len(p) {
		return 0, fmt.Errorf("a row is longer than %d MiB", maxRow>>20)
	}
	n, err := h.r.Read(p)
	fresh := p[:n]
	known := min(h.skip, int64(n))
	h.skip -= known
	h.bytes = append(h.bytes, fresh[known:]...)
	return n, err
}

// cut takes a row out, and forgets what stands before its end.
func (h *window) cut(at content.Span) []byte {
	row := bytes.Clone(h.bytes[at.Start-h.start : at.End-h.start])
	h.bytes = h.bytes[at.End-h.start:]
	h.start = at.End
	return row
}

func cellsOf(row []byte, delimiter byte) ([]string, error) {
	c := csv.NewReader(bytes.NewReader(row))
	c.Comma, c.LazyQuotes, c.FieldsPerRecord = rune(delimiter), true, -1
	return c.Read()
}

// unique makes names of a header's cells: none twice, none empty.
func unique(cells []string) []string {
	names := make([]string, 0, len(cells))
	taken := map[string]bool{}
	for i, name := range cells {
		if name == "" {
			name = fmt.Sprintf("column_%d", i+1)
		}
		base := name
		for n := 2; taken[name]; n++ {
			name = fmt.Sprintf("%s_%d", base, n)
		}
		taken[name] = true
		names = append(names, name)
	}
	return names
}

// numeral is a number as JSON writes it: 007 and +5 stay strings.
var numeral = content.Pattern(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?$`)

func rowObject(names *[]string, cells []string) []byte {
	for i := len(*names); i < len(cells); i++ {
		*names = unique(append(*names, ""))
	}
	var b bytes.Buffer
	b.WriteByte('{')
	for i, cell := range cells {
		if i > 0 {
			b.WriteByte(',')
		}
		quoted(&b, (*names)[i])
		b.WriteByte(':')
		if numeral().MatchString(cell) {
			b.WriteString(cell)
		} else {
			quoted(&b, cell)
		}
	}
	b.WriteString("}\n")
	return b.Bytes()
}

func quoted(b *bytes.Buffer, s string) {
	q, _ := json.Marshal(s) // a string always can be
	b.Write(q)
}
