package viewer

import (
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// file is the page of a text that is no observation of its own: a file below the person's roots, or a text of a place
// such as inv:.
func (q *request) file() (*page, error) {
	name := q.query.Get("name")
	if name == "" {
		return &page{Title: "A file", Blocks: []any{form{To: q.url("file"), Submit: "Open", Fields: []field{
			{Name: "name", Label: "Name", Hint: "path below a root, inv:ID", Size: 40},
		}}}}, nil
	}
	o, err := q.open(q.ctx, name)
	if err != nil {
		return nil, err
	}
	defer o.Close()
	p := &page{Title: content.Clip(o.Name, 100), Notes: o.Notes(), Blocks: []any{facts{
		{"Name", code(o.Name)}, {"Kind", words(string(o.kind))}, {"Size", bytesCell(o.Size)}, {"Changed", when(o.Modified)},
	}}}
	return p, q.showText(p, o)
}
