package jq

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/kinds/record"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/extract"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// tableRows returns a writer of the rows of the tables in an HTML file as objects, as [record.TableRows] writes those
// of a table, and nil if it is another file or has no table of two rows. The first row of a table is its header. With
// several tables, a record has the number of its own.
func tableRows(ctx context.Context, src *source.Source, a args) (objects, error) {
	if a.Text || extract.Format(src.Name) != "html" {
		return nil, nil
	}
	t, err := src.Text()
	if err != nil {
		return nil, err
	}
	last, rows := 0, 0
	err = extract.TableRows(ctx, t, func(table int, _ [][]byte) error {
		last, rows = max(last, table), rows+1
		return nil
	})
	switch {
	case err != nil || rows == last: // headers alone
		return nil, err
	case strings.Contains(a.Filter.Text(), lineNumber):
		return nil, fmt.Errorf("jq: %s is not known of rows in HTML: give text", lineNumber)
	}
	return func(ctx context.Context, r io.Reader, w io.Writer) error {
		columns := map[int][]string{} // by table
		err := extract.TableRows(ctx, r, func(table int, cells [][]byte) error {
			names, known := columns[table]
			if !known {
				columns[table] = record.Names(cells)
				return nil
			}
			o := record.Row(&names, cells)
			columns[table] = names
			if last > 1 {
				o.Int("#table", int64(table))
			}
			return o.WriteLine(w)
		})
		if err != nil {
			return err
		}
		return &content.Remarks{Notes: []string{"rows of its " + content.Plural(int64(last), "table", "tables") +
			", the first row of each as names; text=true reads the lines of its source"}}
	}, nil
}
