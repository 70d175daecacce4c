package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/tools/investigate"
)

// TestScanText has more languages than are listed: the report says how many are left out.
func TestScanText(t *testing.T) {
	for n, want := range map[int]string{12: "", 13: "  and 1 more\n", 20: "  and 8 more\n"} {
		r := investigate.ScanReport{Languages: map[string]int64{}}
		for i := range n {
			r.Languages[fmt.Sprint("L", i)] = int64(i)
		}
		text := scanText(r)
		if got := strings.Count(text, "more\n"); !strings.Contains(text, want) || (got > 0) != (want != "") {
			t.Errorf("%d languages, want %q:\n%s", n, want, text)
		}
	}
}
