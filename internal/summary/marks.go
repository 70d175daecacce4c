package summary

import (
	"bytes"

	"github.com/mcp-funnel/mcp-funnel/internal/lines"
)

// marks say whether a piece of a text has what few lines have. It is looked for in all of a piece at once, which takes
// a fraction of the time of looking in each line.
type marks struct{ escape, panic, kernel, bracket bool }

var allMarks = marks{escape: true, panic: true, kernel: true, bracket: true}

// What is looked for in a piece: panicWithin says why.
var (
	panicWord  = lines.NewLiteral("panic")
	kernelWord = lines.NewLiteral("kernel: ")
	recentCall = lines.NewLiteral("(most recent call last)")
	coreDumped = lines.NewLiteral("(core dumped)")
)

// signsPast is how many bytes [signs] reads behind those it looks at.
const signsPast = 4

// look looks for all of them at once where there are vectors: most pieces do not have even the few bytes of each by which it does that.
func (m *marks) look(p []byte) {
	n := (len(p) - signsPast) &^ 31
	if !haveVectors || n <= 0 {
		m.search(p, allMarks)
		return
	}
	escape, panic, kernel, bracket := signs(&p[0], n)
	m.search(p, marks{escape > 0, panic > 0, kernel > 0, bracket > 0})
	var end marks
	end.search(p[max(0, n-len("kernel")):], allMarks) // what is looked for by a byte within it may begin before n
	*m = marks{m.escape || end.escape, m.panic || end.panic, m.kernel || end.kernel, m.bracket || end.bracket}
}

// search looks for what may be there.
func (m *marks) search(p []byte, may marks) {
	m.escape = may.escape && bytes.IndexByte(p, 0x1b) >= 0
	m.panic = may.panic && panicWord.In(p)
	m.kernel = may.kernel && kernelWord.In(p)
	m.bracket = may.bracket && (recentCall.In(p) || coreDumped.In(p))
}
