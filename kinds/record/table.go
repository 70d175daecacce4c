package record

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"io"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// TableRows writes the rows of a table as NDJSON objects whose keys are the names in the header. A cell that is a JSON
// number becomes a number with the same digits; all others become strings. The second column of one name has the key
// name_2, a cell beyond the header has the key column_N, and a missing cell has none.
func TableRows(ctx context.Context, t io.Reader, w io.Writer) error {
	var held heldRows
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
		failed = writeRow(w, &names, cells)
		return failed == nil
	}
	header, rest, err := split(ctx, t, &held)
	if err != nil {
		return err
	}
	if header.End > header.Start && !visit(header) {
		return failed
	}
	err = content.Rows(ctx, rest, func(row int64, at content.Span) bool { return row == 0 || visit(at) })
	if failed != nil {
		return failed
	}
	return err
}

// split finds the header, and returns a reader of the whole text that also writes to held.
func split(ctx context.Context, t io.Reader, held *heldRows) (content.Span, io.Reader, error) {
	var read bytes.Buffer
	header, err := content.Header(ctx, io.TeeReader(io.LimitReader(t, MaxLine), &read))
	if err != nil {
		return header, nil, err
	}
	held.r = io.MultiReader(&read, t)
	if header.End > int64(read.Len()) {
		return header, nil, fmt.Errorf("the header is longer than %d MiB", MaxLine>>20)
	}
	held.bytes = append(held.bytes, read.Bytes()[:header.End]...)
	held.skip = header.End
	return header, held, nil
}

// heldRows reads r and holds the bytes that were read and not yet cut into rows.
type heldRows struct {
	r     io.Reader
	bytes []byte
	start int64 // offset of bytes in the text
	skip  int64 // bytes that r will return and that are held already
}

func (h *heldRows) Read(p []byte) (int, error) {
	if len(h.bytes) > MaxLine+len(p) {
		return 0, fmt.Errorf("a row is longer than %d MiB", MaxLine>>20)
	}
	n, err := h.r.Read(p)
	known := min(h.skip, int64(n))
	h.skip -= known
	h.bytes = append(h.bytes, p[known:n]...)
	return n, err
}

// cut returns a row and drops all bytes before its end.
func (h *heldRows) cut(at content.Span) []byte {
	row := bytes.Clone(h.bytes[at.Start-h.start : at.End-h.start])
	h.bytes = h.bytes[at.End-h.start:]
	h.start = at.End
	return row
}

// cellsOf splits a row into its cells.
func cellsOf(row []byte, delimiter byte) ([]string, error) {
	c := csv.NewReader(bytes.NewReader(row))
	c.Comma, c.LazyQuotes, c.FieldsPerRecord = rune(delimiter), true, -1
	return c.Read()
}

// unique turns the cells of a header into unique, non-empty names.
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

// writeRow writes a row, and names the columns beyond the header.
func writeRow(w io.Writer, names *[]string, cells []string) error {
	for i := len(*names); i < len(cells); i++ {
		*names = unique(append(*names, ""))
	}
	var o Object
	for i, cell := range cells {
		o.Scalar((*names)[i], cell)
	}
	return o.WriteLine(w)
}
