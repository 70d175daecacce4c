package logs

import (
	"bytes"

	"github.com/mcp-funnel/mcp-funnel/text/linesearch/literal"
)

// marks say which rare words and characters a block of text contains: escape sequences, "panic", "kernel: " and two
// phrases in brackets. Searching a whole block takes a fraction of the time of searching each line.
type marks struct{ escape, panic, kernel, bracket bool }

var allMarks = marks{escape: true, panic: true, kernel: true, bracket: true}

// The words that [marks.look] searches for; incidentWithin uses them.
var (
	panicWord  = literal.NewText("panic")
	kernelWord = literal.NewText("kernel: ")
	recentCall = literal.NewText("(most recent call last)")
	coreDumped = literal.NewText("(core dumped)")
)

// signsPast is the number of bytes that [signs] reads after the end of its range.
const signsPast = 4

// look sets the marks of p. With AVX2, one pass over p first looks for a few bytes of each word. Most blocks have
// none of these bytes and are not searched for the words.
func (m *marks) look(p []byte) {
	n := (len(p) - signsPast) &^ 31
	if !haveVectors || n <= 0 {
		m.search(p, allMarks)
		return
	}
	escape, panic, kernel, bracket := signs(&p[0], n)
	m.search(p, marks{escape > 0, panic > 0, kernel > 0, bracket > 0})
	var end marks
	end.search(p[max(0, n-len("kernel")):], allMarks) // a word that signs finds by an inner byte may begin before n
	*m = marks{m.escape || end.escape, m.panic || end.panic, m.kernel || end.kernel, m.bracket || end.bracket}
}

// search searches p for the words whose mark is set in may.
func (m *marks) search(p []byte, may marks) {
	m.escape = may.escape && bytes.IndexByte(p, 0x1b) >= 0
	m.panic = may.panic && panicWord.In(p)
	m.kernel = may.kernel && kernelWord.In(p)
	m.bracket = may.bracket && (recentCall.In(p) || coreDumped.In(p))
}
