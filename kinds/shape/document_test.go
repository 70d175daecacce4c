package shape

import (
	"reflect"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/jsontrunc"
)

// One look at the text serves the shape and the checker: what this tells is what the checker tells by itself.
func TestCutIsWhatTheCheckerTells(t *testing.T) {
	rows := `[{"a":1,"b":[true,null,"x\n"]},{"a":2,"b":[]},{"a":3.5e2,"deep":[[[["y"]]]]}`
	for _, text := range []string{
		rows, rows + "]", rows + "] []", rows + "] x", rows + ",", rows +
			"\x00", rows[:20], `{"k":{"l":[1,2,{"m":"n`, `[1,2,]`, `[1,2}`, `["a` + "\n" + `"]`,
		rows + strings.Repeat(" ", 3000) + "]trailing " + strings.Repeat("z", 300), `[` + strings.Repeat(
			`{"key":"value"},`, 2000,
		) + `{"key" "`,
	} {
		for _, mark := range []string{"", "\xef\xbb\xbf"} {
			checker := jsontrunc.NewChecker()
			_, _ = checker.Write([]byte(mark + text)) // never fails
			want := checker.Close()
			for _, size := range []int{1 << 20, 100, 7} {
				d := NewDocument(content.JSON)
				for rest := mark + text; rest != ""; {
					n := min(max(size, len(mark)), len(rest))
					d.Add([]byte(rest[:n]))
					rest = rest[n:]
				}
				var s digest.Summary
				d.Finish(&s)
				if whole := want.State == jsontrunc.Whole; whole != (s.Cut == nil) || !whole && !reflect.DeepEqual(*s.Cut, want) {
					t.Errorf("%.40q… in pieces of %d: %+v, want %+v", mark+text, size, s.Cut, want)
				}
			}
		}
	}
}
