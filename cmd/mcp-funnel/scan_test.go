package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate"
)

// TestScanText has more languages, kinds and directories than are listed: the report says how many are left out.
func TestScanText(t *testing.T) {
	for n, want := range map[int]string{12: "", 13: "  and 1 more\n", 20: "  and 8 more\n"} {
		r := investigate.ScanReport{Languages: map[string]int64{}, MIME: map[string]int64{}}
		for i := range n {
			r.Languages[fmt.Sprint("L", i)] = int64(i)
			r.MIME[fmt.Sprint("text/k", i)] = int64(i)
		}
		text := scanText(r)
		if got := strings.Count(text, "more\n"); !strings.Contains(text, want) || (got == 2) != (want != "") {
			t.Errorf("%d languages, want %q:\n%s", n, want, text)
		}
	}
}

// TestScanTree shows directories as a tree, with what each takes of the disk; of many the largest.
func TestScanTree(t *testing.T) {
	r := investigate.ScanReport{MIME: map[string]int64{"text/x-small": 7}}
	add := func(path string, disk int64) {
		d := slices.Grow(r.Directories, 1)
		d = d[:len(d)+1]
		d[len(d)-1].Path, d[len(d)-1].Files, d[len(d)-1].Bytes, d[len(d)-1].DiskBytes = path, 3, 1234, disk
		r.Directories = d
	}
	add(".", 90_000)
	add("api", 50_000)
	add("api/v\n1", 50_000)
	for i := range 40 {
		add(fmt.Sprintf("d%02d", i), int64(i))
	}
	text := scanText(r)
	expect.Contains(t, text,
		"         7  text/x-small\n", "\n         3          1 234         90 000  .\n", "50 000    api\n",
		`50 000      v\x0a1`+"\n", " 39    d39\n", "  and 3 smaller ones")
	expect.Lacks(t, text, "d02\n")
}
