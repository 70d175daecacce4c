package search

import (
	"bytes"
	"fmt"
	"io"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// rows passes on whole lines, up to a limit, and counts all.
type rows struct {
	to    io.Writer
	limit int64 // 0: none
	count int64
}

// Write implements [io.Writer]. It writes b without the lines over the limit, and counts all lines.
func (r *rows) Write(b []byte) (int, error) {
	if r.limit == 0 {
		return r.to.Write(b)
	}
	kept := 0
	for at := 0; at < len(b); {
		size := bytes.IndexByte(b[at:], '\n') + 1
		if r.count < r.limit {
			kept = at + size
		}
		if size == 0 { // the line goes on in the next block
			if r.count < r.limit {
				kept = len(b)
			}
			break
		}
		r.count++
		at += size
	}
	if kept > 0 {
		if n, err := r.to.Write(b[:kept]); err != nil {
			return n, err
		}
	}
	return len(b), nil
}

// note says that rows are left out; "" if none are.
func (r *rows) note() string {
	if r.limit == 0 || r.count <= r.limit {
		return ""
	}
	all := content.Plural(r.count, "row", "rows")
	return fmt.Sprintf("the first %d of %s are shown: raise limit for more", r.limit, all)
}
