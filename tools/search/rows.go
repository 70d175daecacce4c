package search

import (
	"bytes"
	"fmt"
	"io"

	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// maxWhole is how many bytes of rows are held to be stored if a limit leaves some out.
const maxWhole = 8 << 20

// rows passes on whole lines, up to a limit, and counts all.
type rows struct {
	to    io.Writer
	limit int64 // 0: none
	count int64
	whole []byte // all lines if there is a limit, and if they have at most maxWhole bytes
}

// Write implements [io.Writer]. It writes b without the lines over the limit, and counts and holds all lines.
func (r *rows) Write(b []byte) (int, error) {
	if r.limit > 0 && len(r.whole) <= maxWhole {
		r.whole = append(r.whole, b...)
	}
	kept := 0
	for line := range bytes.Lines(b) {
		if r.limit == 0 || r.count < r.limit {
			kept += len(line)
		}
		if line[len(line)-1] == '\n' { // else the line goes on in the next block
			r.count++
		}
	}
	if kept > 0 {
		if n, err := r.to.Write(b[:kept]); err != nil {
			return n, err
		}
	}
	return len(b), nil
}

// note says that rows are left out, and stores all of them; "" if none are.
func (r *rows) note(out tools.Output, args searchArgs) string {
	if r.limit == 0 || r.count <= r.limit {
		return ""
	}
	said := fmt.Sprintf("the first %d of %s are shown", r.limit, content.Plural(r.count, "row", "rows"))
	if len(r.whole) <= maxWhole {
		id, err := out.Store(tools.Stored{Text: r.whole, Name: "search", Args: args})
		if err == nil && id != "" {
			return said + ", all kept whole as obs:" + id
		}
	}
	return said + ": raise limit for more"
}
