package continuation

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// TestMergeOnlyAdds delivers a whole document after one that is cut off: what would lose or contradict anything that
// has arrived is refused.
func TestMergeOnlyAdds(t *testing.T) {
	for _, tt := range expect.Table[struct{ Name, Kept, Part, Want, Reason string }](t, "testdata/merge.tsv") {
		t.Run(tt.Name, func(t *testing.T) {
			d := New(Options{})
			add(t, d, tt.Kept)
			r := add(t, d, tt.Part)
			if tt.Want == "" {
				if r.Join != "" || !strings.Contains(r.Reason, tt.Reason) {
					t.Errorf("%+v\n%s", r, d.Text())
				}
				return
			}
			if r.Verdict != Done || !strings.Contains(r.Dropped, tt.Reason) ||
				!slices.Equal(unitsOf(d.Text()), unitsOf([]byte(tt.Want))) {
				t.Errorf("%+v\n%s\nwant\n%s", r, d.Text(), tt.Want)
			}
		})
	}
}
