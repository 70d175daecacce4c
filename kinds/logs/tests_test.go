package logs

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
)

// TestErrorsOfTests checks which lines of the output of several commands count as errors: not what a passing Go test
// prints or logs, and not the counts of "uniq -c". The last lines are the controls.
func TestErrorsOfTests(t *testing.T) {
	const pass = "=== RUN   TestA\n    a_test.go:3: error: a log\nERROR printed\npanic: recovered\n" +
		"--- PASS: TestA (0.00s)\n"
	for _, c := range []struct{ name, text, total, first, last string }{
		{"passing", pass + "PASS\nok  \tx\t0.1s\n", "", "", ""},
		{"skipped", strings.ReplaceAll(pass, "PASS", "SKIP"), "", "", ""},
		{"failing", strings.ReplaceAll(pass, "PASS", "FAIL") + pass, "1 panic, 2 errors", "line 3: ERROR printed",
			"line 5: --- FAIL: TestA (0.00s)"},
		{"without a result", "=== RUN   TestA\nERROR printed\nERROR again\nexit\n", "2 errors", "line 2: ERROR printed",
			"line 3: ERROR again"},
		{"in turns", "=== RUN   TestA\n=== PAUSE TestA\n=== RUN   TestB\n=== PAUSE TestB\n=== CONT  TestA\nERROR a\n" +
			"=== CONT  TestB\nERROR b\n--- FAIL: TestB (0.00s)\n--- PASS: TestA (0.00s)\n", "2 errors", "line 8: ERROR b",
			"line 9: --- FAIL: TestB (0.00s)"},
		{"below", "=== RUN   TestA\n=== RUN   TestA/1\nERROR x\n=== RUN   TestA/2\nERROR y\n--- FAIL: TestA (0.00s)\n" +
			"    --- PASS: TestA/1 (0.00s)\n    --- FAIL: TestA/2 (0.00s)\n", "3 errors", "line 5: ERROR y",
			"line 8:     --- FAIL: TestA/2 (0.00s)"},
		{"counts", "building\n     12 error: something\n      3 ERROR other\n   1234 [error] x\ndone\n", "", "", ""},
		{"no counts", "  ERROR other\n12: ERROR x\nERROR 12 y\n", "3 errors", "line 1:   ERROR other", "line 3: ERROR 12 y"},
		{"no test", "ERROR printed\n--- PASS: TestA (0.00s)\npanic: bare\n", "1 panic, 1 error", "line 1: ERROR printed", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, size := range []int{len(c.text), 1, 7} {
				p := NewProse("")
				for block := range slices.Chunk([]byte(c.text), size) {
					p.Add(block)
				}
				var s digest.Summary
				p.Finish(&s)
				says := strings.Join(s.Says, "\n")
				if total := strings.Join(s.Total, ", "); total != c.total {
					t.Errorf("total %q, want %q", total, c.total)
				}
				for lead, want := range map[string]string{"first error, ": c.first, "last error, ": c.last} {
					if want == "" && strings.Contains(says, lead) || !strings.Contains(says, lead+want) && want != "" {
						t.Errorf("want %q in %s", lead+want, says)
					}
				}
			}
		})
	}
}

// TestOwnFrames checks which frame of a stack of JavaScript is shown: the first one of neither node nor a package, else
// the first one.
func TestOwnFrames(t *testing.T) {
	const own, node, dep = "    at load (/src/app.js:4:14)\n", "    at read (node:fs:448:20)\n",
		"    at Object.f (/src/node_modules/dep/index.js:1:40)\n"
	for stack, want := range map[string]string{
		dep + own + node: "at load (/src/app.js:4:14)",
		node + dep + own: "at load (/src/app.js:4:14)",
		own + node:       "at load (/src/app.js:4:14)",
		node + dep:       "at read (node:fs:448:20)",
	} {
		p := NewProse("")
		p.Add([]byte("TypeError: no\n" + stack + "\nend\n"))
		var s digest.Summary
		if p.Finish(&s); len(s.Says) == 0 || !strings.HasSuffix(s.Says[0], "; "+want) {
			t.Errorf("%q: %q, want %s", stack, s.Says, want)
		}
	}
}

// TestOddLines checks that one line of many that differs from all others is shown: one with words of its own, and one
// that follows their pattern but for a word. Lines that vary in many ways show none.
func TestOddLines(t *testing.T) {
	const odd, like = "the disk of this machine is nearly full", "request 7 dropped in 7ms by the worker pool"
	stamp := func(i int) string { return fmt.Sprintf("2026-11-20T14:30:%02dZ INFO ", i%60) }
	served := func(i int) string { return fmt.Sprintf("request %d served in %dms by the worker pool", i, i) }
	names := strings.Fields("anna bert carl dora emil fred gina hans")
	for _, c := range []struct {
		name string
		odd  string
		line func(i int) string
		want bool
	}{
		{"own words", odd, served, true}, {"one word", like, served, true},
		{"other digits", "request 7 served in 7ms by the worker pool", served, false},
		{"many ways", like, func(i int) string {
			return fmt.Sprintf("request %d %s in %dms by the worker pool", i, names[i%8]+names[i/8%8], i)
		}, false},
	} {
		for _, stamped := range []bool{true, false} {
			for _, at := range []int{0, 120, 199} {
				var text strings.Builder
				for i := range 200 {
					line := c.line(i)
					if i == at {
						line = c.odd
					}
					if stamped {
						line = stamp(i) + line
					}
					text.WriteString(line + "\n")
				}
				var s digest.Summary
				if stamped {
					l := New("")
					l.Add([]byte(text.String()))
					l.Finish(&s)
				} else {
					p := NewProse("")
					p.Add([]byte(text.String()))
					p.Finish(&s)
				}
				says := strings.Join(s.Says, "\n")
				if want := fmt.Sprintf("stands out, line %d: ", at+1); strings.Contains(says, want) != c.want ||
					c.want && !strings.Contains(says, c.odd) {
					t.Errorf("%s, stamped %v, line %d: %s", c.name, stamped, at+1, says)
				}
			}
		}
	}
}
