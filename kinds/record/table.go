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
	return tableRows(ctx, t, w, false)
}

// NumberedRows is [TableRows], but writes each object in an array, after the number of the row's first line.
func NumberedRows(ctx context.Context, t io.Reader, w io.Writer) error {
	return tableRows(ctx, t, w, true)
}

func tableRows(ctx context.Context, t io.Reader, w io.Writer, numbered bool) error {
	var names []string
	var failed error
	err := table.Read(ctx, t, table.Limits{MaxRow: MaxLine}, func(r *table.Row) bool {
		switch {
		case r.Long:
			failed = fmt.Errorf("row %d is longer than %d MiB", r.Index, MaxLine>>20)
		case r.Index == 0:
			names = unique(r.Cells)
		default:
			o := object(&names, r.Cells)
			if !numbered {
				failed = o.WriteLine(w)
				break
			}
			_, failed = fmt.Fprintf(w, "[%d,%s]\n", r.Line, o.Text())
		}
		return failed == nil
	})
	if failed != nil {
		return errors.Join(failed, err)
	}
	return err
}

// unique turns the cells of a header into unique, non-empty names.
func unique(cells [][]byte) []string {
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

// object returns a row as an object, and names the columns beyond the header.
func object(names *[]string, cells [][]byte) (o Object) {
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
