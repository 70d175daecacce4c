package logs

import (
	"bytes"

	"github.com/mcp-funnel/mcp-funnel/text/linesearch/literal"
)

// blockBytes is the maximum size of a block in bytes.
const blockBytes = 32 << 10

// block is a part of the text that is searched for marks at once, which takes a fraction of the time of searching each
// line. If it has one, all its lines are parsed.
type block struct {
	text   []byte
	marked bool
}

// marks are the words that may begin an incident within a line; see [incidentWithin].
var marks = literal.NewTexts("panic", "kernel: ", "(most recent call last)", "(core dumped)")

// set sets the text, and whether it has an escape sequence or one of marks.
func (b *block) set(text []byte) {
	b.text, b.marked = text, bytes.IndexByte(text, 0x1b) >= 0 || marks.In(text)
}
