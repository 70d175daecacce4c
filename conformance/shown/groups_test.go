package shown_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/funnel"
)

// TestReceiptOfGroupsCountsOccurrences: a receipt of show=groups says that its counts are of occurrences, and how many
// lines these are in; other receipts of search count matching lines.
func TestReceiptOfGroupsCountsOccurrences(t *testing.T) {
	h := houseIn(t, funnel.Options{})
	for f := range 3 {
		var b strings.Builder
		for i := range 1000 {
			fmt.Fprintf(&b, "call of name%d, then name%d\n", f*1000+i, f*1000+i)
		}
		h.file(fmt.Sprintf("f%d.txt", f), b.String())
	}
	for show, want := range map[string]string{
		"groups": "; counts are occurrences: 6000 in 3000 matching lines of 3 files, 3000 groups; 3000 records\n",
		"":       "; 3000 matches in 3 files\n",
	} {
		args := map[string]any{"pattern": `name\d+`}
		if show != "" {
			args["show"] = show
		}
		if got := shownOf(h.call("search", args)); !strings.Contains(got, "LARGE OUTPUT") || !strings.Contains(got, want) {
			t.Errorf("show=%q: no %q in\n%s", show, want, got)
		}
	}
}
