// Package digesttest has helpers for the tests of the summarizers: texts, the output of other programs, and checks that
// every summary must pass.
package digesttest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/peers/peer"
	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
)

// Cases returns all texts that have a golden file, by name: testdata/cases of kinds, and the corpus.
func Cases(t testing.TB) map[string][]byte {
	t.Helper()
	var paths []string
	for up := "."; len(paths) == 0 && len(up) < 20; up += "/.." { // a test runs in its package's directory
		paths, _ = filepath.Glob(up + "/kinds/testdata/cases/*")
	}
	if len(paths) < 30 {
		t.Fatalf("%d cases", len(paths))
	}
	all := map[string][]byte{
		"corpus-novel.txt":     corpus.WarAndPeace(),
		"corpus-novel.diff":    corpus.WarAndPeaceDiff(),
		"corpus-1MB.json":      corpus.JSON1MB(),
		"corpus-5MB.json":      corpus.JSON5MB(),
		"corpus-minified.json": corpus.JSON1MBMinified(),
		"corpus-panic.log":     corpus.PanicLog(),
		"corpus-20k.csv":       corpus.CSV20k(),
		"corpus-rare.ndjson":   corpus.RareKey9k(),
		"corpus-cjk.txt":       corpus.CJK(),
		"corpus-random.bin":    corpus.Random(100_000),
		"corpus-hits.ndjson":   SearchHits(1200),
	}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(p)] = b
	}
	return all
}

// SearchHits returns the output of the search tool for n hits, sorted by file.
func SearchHits(n int) []byte {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"file":"src/dir%03d/file%04d.go","line":%d,"text":"\tif err := f(%d); err != nil {"}`+"\n",
			i*100/n, i*1000/n, i%700+1, i)
	}
	return []byte(b.String())
}

// Output runs a program and returns its standard output. Exit codes 0 and 1 are success.
func Output(t *testing.T, stdin []byte, name string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), peer.Find(t, name), args...)
	c.Stdin = bytes.NewReader(stdin)
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "LC_ALL=C")
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil && (c.ProcessState == nil || c.ProcessState.ExitCode() > 1) {
		t.Fatalf("%s %q: %v\n%s", name, args, err, errs.String())
	}
	return string(out)
}

// Promises checks what the type Summary promises of its lines and counts.
func Promises(t testing.TB, s digest.Summary) {
	t.Helper()
	for _, part := range [][]string{s.Total, s.Says, s.Shapes, s.Body} {
		for _, l := range part {
			if strings.ContainsAny(l, "\r\n") || l == "" {
				t.Errorf("not one line: %q", l)
			}
			if n := utf8.RuneCountInString(l); n > digest.MaxLine {
				t.Errorf("%d runes: %.200q", n, l)
			}
		}
	}
	if (s.Matches < 0) && s.Files >= 0 {
		t.Errorf("files %d without matches", s.Files)
	}
}
