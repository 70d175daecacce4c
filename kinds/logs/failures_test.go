package logs

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
)

// summary reads a text in blocks of a size.
func summary(s digest.Summarizer, text string, size int) digest.Summary {
	for block := range slices.Chunk([]byte(text), size) {
		s.Add(block)
	}
	var sum digest.Summary
	s.Finish(&sum)
	return sum
}

// job returns 900 lines of a build with some lines in their middle.
func job(format string, lines ...string) string {
	var text strings.Builder
	for i := range 900 {
		line := []string{"step %d of the job took %d ms", "copied asset number %d to target %d",
			"checked module %d, size %d"}[i%3]
		fmt.Fprintf(&text, format+line+"\n", i, i%80)
		for _, l := range lines {
			if i == 449 {
				fmt.Fprintf(&text, format+"%s\n", l)
			}
		}
	}
	return text.String()
}

// TestFailureAmongOthers: a line that reports a failure is an error, whatever its runner indents, with the time of a
// CI before it or without.
func TestFailureAmongOthers(t *testing.T) {
	for _, failed := range []string{
		"  Failed Shop.Tax.Rounds [3 ms]", "  Failed Shop.Tax.Rounds(a: 1) [1 m 3 s]", "  X Shop.Tax.Rounds [< 1ms]",
		"failed Shop.Tax.Rounds (3ms)", "    Shop.Tax.Rounds [FAIL]", "  12:1   error    'rate' is not defined   no-undef",
		"  12:1  ✖  Unexpected unit  unit-no-unknown", "✖ 3 problems (2 errors, 1 warning)",
		`  C:\src\tax.cpp(14): error C2065: 'rate': undeclared identifier`, "tax.obj : error LNK2019: unresolved external",
		`     1>C:\src\tax.cpp(14,5): fatal error C1083: Cannot open`, "CSC : error CS2001: Source file not found",
		"  src/tax.ts(3,7): error TS1005: ';' expected.", "src/tax.ts:3:7 - error TS2304: Cannot find name 'rate'.",
		"    --- FAIL: TestTax/rounds (0.00s)", "    not ok 3 - rounds", "    ✕ rounds (3 ms)", "    ✕ rounds",
		" × src/tax.test.ts > rounds 3ms", " FAIL  src/tax.test.ts > rounds", "✗ rounds [0.12ms]", "(fail) rounds [0.12ms]",
		"  ✘  12 [chromium] › tax.spec.ts:3:1 › rounds (2.1s)", "[  FAILED  ] Tax.Rounds (3 ms)",
		"TaxTest > rounds() FAILED",
		"tests/test_tax.py::test_round FAILED                    [ 40%]", "test_round (tax.TaxTest) ... FAIL",
		"test tax::rounds ... FAILED", "rounds ... FAILED (3ms)", "- should round *** FAILED ***",
		"12/30 Test #12: tax_round ...........***Failed    0.02 sec", "	 12 - tax_round (Failed)",
		"00:03 +12 -1: Tax rounds [E]",
		"Test Case '-[TaxTests testRound]' failed (0.003 seconds).", "//tax:test      FAILED in 0.3s", "FAILED: tax.o",
		"tests/test_tax.py::test_a_long_name FAILED" + strings.Repeat(" ", 40) + "[ 50%]", "  rounds (FAILED - 1)",
		"Rounds half up                                | FAIL |", "t.TaxTest  Time elapsed: 0.1 s  <<< FAILURE!",
	} {
		for _, stamp := range []string{"", "2026-11-20T14:30:22.1234567Z "} {
			text, s := job(stamp, failed), digest.Summarizer(NewProse(""))
			if stamp != "" {
				s = New("")
			}
			sum := summary(s, text, 4000)
			if says := strings.Join(sum.Says, "\n"); !strings.Contains(says, "first error, line 451: "+stamp+failed) ||
				!strings.Contains(strings.Join(sum.Total, ", "), "1 error") {
				t.Errorf("%q: %q, %s", stamp+failed, sum.Total, says)
			}
		}
	}
}

// TestNumberedFailures: numbered lines name failed tests in the reports that number them, and nowhere else. Indented
// lines are shown where few lines are.
func TestNumberedFailures(t *testing.T) {
	for _, c := range []struct{ lines, total, says string }{
		{"    ✓ adds (2ms)|    1) rounds half up", "1 error", "first error, line 452:     1) rounds half up"},
		{"  1 failing||  1) Tax|       rounds:", "1 error", "first error, line 453:   1) Tax"},
		{"Failures:||  1) Tax rounds", "1 error", "first error, line 453:   1) Tax rounds"},
		{"There was 1 failure:||1) TaxTest::testRound", "1 error", "first error, line 453: 1) TaxTest::testRound"},
		{"  1 failed|  1) [chromium] › tax.spec.ts:3:1 › rounds", "1 error", "first error, line 452:   1) [chromium]"},
		{"    1) rounds half up", "", "stands out, line 451: 1) rounds half up"},
		{"1) buy milk|2) mend the fence", "", ""}, {"✓ tea|1) buy milk", "", ""},
		{"two are ✗ here", "", ""}, {"✗ no dogs", "", ""}, {"the ok failed to fail", "", ""},
	} {
		sum := summary(NewProse(""), job("", strings.Split(c.lines, "|")...), 4000)
		if total, says := strings.Join(sum.Total, ", "), strings.Join(sum.Says, "\n"); total != c.total ||
			!strings.Contains(says, c.says) || c.total == "" && strings.Contains(says, "error") {
			t.Errorf("%q: %q, %s", c.lines, total, says)
		}
	}
}

// TestStrayLines: what a tool wrote beside a list of paths or matches is shown, errors first.
func TestStrayLines(t *testing.T) {
	list := func(format string, lines ...string) string {
		var text strings.Builder
		for i := range 900 {
			fmt.Fprintf(&text, format+"\n", i)
			if i == 449 {
				text.WriteString(strings.Join(lines, "\n") + "\n")
			}
		}
		return text.String()
	}
	const paths, found, counts = "shop/a%d/b.txt", "shop/a.go:%d: x", "shop/a%d.go:3"
	for _, c := range []struct{ text, total, says string }{
		{list(paths, "ERROR: disk full", "fatal: cannot write index"), "900 paths in 900 directories, 2 other lines",
			"stands out, line 451: ERROR: disk full\nstands out, line 452: fatal: cannot write index"},
		{list(paths, "find: '/srv/x': Permission denied"), "900 paths in 900 directories, 1 other line",
			"stands out, line 451: find: '/srv/x': Permission denied"},
		{list(paths, "a name/of words.txt", "b c/d", "e f/g", "h i/j", "k l", "\x1b[31m[error] a/b.ts: no\x1b[0m"),
			"900 paths in 900 directories, 6 other lines",
			"stands out, line 456: [error] a/b.ts: no\nstands out, line 451: a name/of words.txt\nstands out, line 452: b c/d\n" +
				"stands out, line 453: e f/g"},
		{list(paths, "Killed"), "900 paths in 900 directories, 1 other line", "stands out, line 451: Killed"},
		{list(paths, "README.md", "LICENSE"), "900 paths in 900 directories", ""},
		{list(paths, "src/a.ts:3:7: Unexpected token"), "900 paths in 900 directories, 1 other line",
			"stands out, line 451: src/a.ts:3:7: Unexpected token"},
		{list(found, "grep: shop/private: Permission denied"), "900 matches in 1 file, 1 other line",
			"stands out, line 451: grep: shop/private: Permission denied"},
		{list(counts, "rg: shop/private: Permission denied (os error 13)"),
			"2700 matches in 900 files, a count per file, 1 other line",
			"stands out, line 451: rg: shop/private: Permission denied (os error 13)"},
	} {
		for _, size := range []int{len(c.text), 7} {
			sum := summary(NewProse(""), c.text, size)
			if total, says := strings.Join(sum.Total, "; "), strings.Join(sum.Says,
				"\n"); total != c.total || says != c.says {
				t.Errorf("%q; want %q:\n%s\nwant\n%s", total, c.total, says, c.says)
			}
		}
	}
}

// TestVerdictEndsAStack: the stack of a failed test ends before the next test, which may fail too.
func TestVerdictEndsAStack(t *testing.T) {
	const stack = "  Stack Trace:\n     at Shop.Tax.Rounds() in /src/Tax.cs:line 14\n"
	sum := summary(NewProse(""),
		"  Failed A [3 ms]\n"+stack+"  Passed B [1 ms]\n  Failed C [3 ms]\n"+stack+"  Passed D [1 ms]\n", 99)
	if says := strings.Join(sum.Says, "\n"); !strings.Contains(says, "lines 2-3") ||
		!strings.Contains(says, "last error, line 5:   Failed C [3 ms]") {
		t.Error(says)
	}
}

// TestEachFailure: of a few indented failures all are named.
func TestEachFailure(t *testing.T) {
	var lines []string
	for _, name := range strings.Fields("Rounds Adds Divides Halves") {
		lines = append(lines, "  Failed Shop."+name+" [3 ms]", "  Passed Shop.Other [1 ms]", "  Passed Shop.Another [1 ms]")
	}
	sum := summary(NewProse(""), job("", lines...), 4000)
	says := strings.Join(sum.Says, "\n")
	for _, name := range strings.Fields("Rounds Adds Divides Halves") {
		if !strings.Contains(says, "Shop."+name) {
			t.Errorf("%s is not in %s", name, says)
		}
	}
}
