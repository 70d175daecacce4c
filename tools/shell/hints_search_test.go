package shell

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/text/linesearch/literal"
)

// Lines without a sign are skipped: the findings are those of a reader that inspects every line, whatever the blocks.
func TestFindingsOfEveryLine(t *testing.T) {
	parts := []string{
		"a.go:3:5: undefined", "a.c:3:1: fatal error: no", "src/a.ts(3,7): error TS2322: x",
		"make[1]: *** [all] Error 1",
		"--- FAIL: TestX (0.0s)", "    a_test.go:3: got 1", "        a_test.go:4: more",
		"FAIL\tx", "FAIL", "panic: x",
		"ERROR x", "FAILED t::x", "test a ... FAILED", "not ok 1", "  ✕ a", "✗ a", "  ● a › b", "ValueError: x",
		"a.b.IOException", "KeyError", "KeyError\r", "a.IOException\r",
		"internal error: x", "x.c:3: internal error: y",
		"Uncaught x", "fatal: not a repository", "E   assert 1", "a.py:3: Failed",
		"error: x", "error[E03]: x", "npm ERR! x",
		"npm error x", "added 3 packages", "removed 1 package in 3s", "changed 2 packages", "up to date in 1s",
		"3 high severity vulnerabilities", "found 0 vulnerabilities",
		"Successfully installed a-1", `  File "a.py", line 3`,
		`  File "/usr/lib/python3/a.py", line 3`, "\x1b[31merr\x1b[0mor: x", "  File \x1b[35m\"a.py\"\x1b[0m, line \x1b[3m3",
		"=== RUN   TestX", "=== CONT  TestY", "=== PAUSE TestX", "    --- FAIL: TestX/a (0.00s)",
		"--- PASS: TestX (0.00s)",
		"--- FAIL: TestY (0.00s)", "ok  \tx\t0.1s", "\t/src/a_test.go:9 +0x1",
		"x.TestX()", "panic: test timed out after 1s",
		"\t\tTestX (1s)", "got:", `{"Action":"output","Package":"p","Test":"TestX","Output":"    a.go:1: x\n"}`,
		`{"Action":"fail","Package":"p"}`, "=== FAILURES ===", "__ test_a __", "-- Captured stdout call --",
		"FAILED a.py::test_a - x", "=== short test summary info ===",
		"=== 1 failed in 0.1s ===", "FAIL ./a.test.js", "  ● Console",
		"    Expected: 1", "      at f (a.test.js:1:2)", "Tests:       1 failed",
		"failures:", "---- t::x stdout ----",
		"thread 't::x' panicked at src/a.rs:1:2:", "test result: FAILED. 1",
		"     Running unittests x", "not ok 2 - b",
		"  error: 'x'", "  ...", "✖ adds (1ms)", "[ERROR] a.B.c -- Time elapsed: 0.1 s <<< FAILURE!",
		"A > b() FAILED",
		"[INFO]  T E S T S", "Tests run: 1, Failures: 1, Errors: 0, Skipped: 0",
		"/src/a.js:3", "    at f (/src/a.js:3:4)",
		"    at node:internal/x:1:2", "    indented", "plain", "", "1", strings.Repeat("long ", 100), "progress\rerror: x",
		"xerror", "éclair",
	}
	rounds := 400
	if testing.Short() {
		rounds = 80
	}
	for round := range rounds {
		r := rand.New(rand.NewPCG(uint64(round), 7))
		var text strings.Builder
		var want findings
		for range r.IntN(120) {
			line := parts[r.IntN(len(parts))]
			if r.IntN(3) == 0 {
				line = fmt.Sprint("line ", r.IntN(1000))
			}
			times := 1
			if r.IntN(8) == 0 {
				times += r.IntN(30)
			}
			for range times {
				text.WriteString(line + "\n")
				want.addLines([]byte(line + "\n"))
			}
		}
		for _, size := range []int{1, 7, 100, 1 << 20} {
			var got findings
			for block := range slices.Chunk([]byte(text.String()), size) {
				got.add(block)
			}
			if diff := cmp.Diff(want.state(), got.state()); diff != "" {
				t.Fatalf(
					"round %d, blocks of %d (-every line +signs)\n%s\n%s",
					round,
					size,
					diff,
					text.String(),
				)
			}
		}
	}
}

// state is all that findings know at the end of a line.
func (f *findings) state() string {
	tests := fmt.Sprint(f.tests.open(), f.tests.fresh, f.tests.broken, f.tests.goTests.current, f.tests.list == nil)
	for _, failed := range f.tests.list {
		tests += fmt.Sprintf("\n%+v", *failed)
	}
	return fmt.Sprintf("%v %q line %d, held %v, frame %v own %v trace %d %v\n%s",
		f.others, f.outcomes, f.line, f.held, f.frame, f.own, f.trace, f.script, tests)
}

// A line that a pattern matches has one of the texts that are looked for before: else it would be passed over.
func TestMayMatterMissesNoMatch(t *testing.T) {
	for _, pattern := range []*regexp.Regexp{finding(), outcome(), pythonFrame()} {
		line := rapid.StringMatching(pattern.String())
		rapid.Check(t, func(t *rapid.T) {
			if l := line.Draw(t, "line"); !mayMatter([]byte(l)) {
				t.Fatalf("%q is passed over", l)
			}
		})
	}
}

// A line that begins what a runner says of failed tests is looked at, and has a sign, so that no block skips it.
func TestMayBeTestMissesNoMatch(t *testing.T) {
	patterns := []*regexp.Regexp{pytestSummary(), cargoResult(), cargoPanic(), runStart()}
	for _, r := range runners {
		if r.begins != nil {
			patterns = append(patterns, r.begins())
		} else if !r.named {
			patterns = append(patterns, r.fails())
		}
	}
	for _, pattern := range patterns {
		line := rapid.StringMatching(strings.Trim(pattern.String(), "^$"))
		rapid.Check(t, func(t *rapid.T) {
			l := line.Draw(t, "line")
			if !pattern.MatchString(l) {
				t.Skip()
			}
			signed := slices.ContainsFunc(findingSigns, func(n literal.Needle) bool { return strings.Contains(l, n.Text) })
			if !mayBeTest([]byte(l)) || !signed {
				t.Fatalf("%q is passed over, sign %v", l, signed)
			}
		})
	}
}
