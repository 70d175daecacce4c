package viewer

import "net/http"

// file is the page of a file below the person's roots, or of a text of another place such as inv:.
func (q *request) file() (*page, error) {
	o, err := q.open(q.ctx, q.query.Get("name"))
	if err != nil {
		if q.who.Operator {
			err = problemf(http.StatusNotFound, "%s. Files are shown below the --root of mcp-funnel view.", err)
		}
		return nil, err
	}
	defer o.Close()
	p := &page{Title: q.short(o.Name, 100), Notes: o.Notes(), Blocks: []any{facts{
		{"Name", code(o.Name)}, {"Kind", words(string(o.kind))}, {"Size", bytesCell(o.Size)}, {"Changed", when(o.Modified)},
	}}}
	return p, q.showText(p, o)
}
