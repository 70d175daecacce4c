package capture

import (
	"bytes"

	"github.com/mcp-funnel/mcp-funnel/funnel/text"
)

// News is the end of an output whose beginning an earlier answer has shown.
type News struct {
	Line int64 // the line in which it begins, from 0
	Size int64 // bytes

	edges *edges
	held  hold
}

// Head returns its first lines, with their secrets masked.
func (n *News) Head() []text.Line { return n.edges.head }

// Beginning returns its first bytes, with their secrets masked; all reports that nothing follows.
func (n *News) Beginning() (b []byte, all bool) { return n.held.shown, !n.held.overflow }

func (n *News) add(shown []byte) {
	_, _ = n.edges.Write(shown)
	n.held.add(shown, shown)
}

// MarkNews says that an earlier answer has shown what was written so far. An unfinished line counts as new.
func (w *Writer) MarkNews() {
	if w.block == nil { // a consumer reads blocks only
		w.block = w.pool.acquire()
		w.buf = append(w.block.data, w.buf...)
	}
	if end := bytes.LastIndexByte(w.buf, '\n') + 1; end > 0 {
		open := bytes.Clone(w.buf[end:])
		w.buf = w.buf[:end]
		w.flush(false)
		w.buf = append(w.buf, open...)
	}
	w.news = &News{
		Line: w.edges.lines, Size: w.edges.bytes, edges: newEdges(w.edges.headLines, 0), held: hold{limit: w.hold.limit},
	}
}

// closeNews adds the news to c.
func (w *Writer) closeNews(c *Captured) {
	if n := w.news; n != nil {
		n.edges.close()
		n.Size = w.edges.bytes - n.Size
		c.News = n
	}
}
