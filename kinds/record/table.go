package record

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/mcp-funnel/mcp-funnel/text/table"
)

// TableRows writes the rows of a table as NDJSON objects whose keys are the names in the header. A cell that is a JSON
// number becomes a number with the same digits; all others become strings. The second column of one name has the key
// name_2, a cell beyond the header has the key column_N, and a missing cell has none. The error is that of
// [table.Read].
func TableRows(ctx context.Context, t io.Reader, w io.Writer) error {
	return tableRows(ctx, t, w, nil)
}

// NumberedRows is [TableRows], but writes each object in an array, after the number of the row's first line.
func NumberedRows(ctx context.Context, t io.Reader, w io.Writer) error {
	return tableRows(ctx, t, w, func(r *table.Row) int64 { return r.Line })
}

// IndexedRows is [TableRows], but writes each object in an array, after the number of the row, from 0.
func IndexedRows(ctx context.Context, t io.Reader, w io.Writer) error {
	return tableRows(ctx, t, w, func(r *table.Row) int64 { return r.Index - 1 })
}

func tableRows(ctx context.Context, t io.Reader, w io.Writer, number func(*table.Row) int64) error {
	var names []string
	var failed error
	err := table.Read(ctx, t, table.Limits{MaxRow: MaxLine}, func(r *table.Row) bool {
		switch {
		case r.Long:
			failed = fmt.Errorf("row %d is longer than %d MiB", r.Index, MaxLine>>20)
		case r.Index == 0:
			names = Names(r.Cells)
		default:
			o := Row(&names, r.Cells)
			if number == nil {
				failed = o.WriteLine(w)
				break
			}
			_, failed = fmt.Fprintf(w, "[%d,%s]\n", number(r), o.Text())
		}
		return failed == nil
	})
	if failed != nil {
		return errors.Join(failed, err)
	}
	return err
}

// Names turns the cells of a header into the unique, non-empty keys of the objects of [TableRows].
func Names(cells [][]byte) []string {
	names := make([]string, 0, len(cells))
	taken := map[string]bool{}
	for i, cell := range cells {
		name := string(bytes.TrimSpace(cell))
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

// Row returns a row as an object, as [TableRows] does, and names the columns beyond the header.
func Row(names *[]string, cells [][]byte) (o Object) {
	for i := len(*names); i < len(cells); i++ {
		name := fmt.Sprintf("column_%d", i+1)
		for n := 2; slices.Contains(*names, name); n++ {
			name = fmt.Sprintf("column_%d_%d", i+1, n)
		}
		*names = append(*names, name)
	}
	for i, cell := range cells {
		o.Scalar((*names)[i], string(cell))
	}
	return o
}
