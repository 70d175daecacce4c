package shell_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/tools/shell"
)

// TestOutcomes checks that a receipt has the outcome of a package manager, also if it succeeded.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	b := newBench(t, shell.Options{})
	const output = "npm warn deprecated x@1\nadded 104 packages, and audited 105 packages in 3s\n" +
		"2 high severity vulnerabilities\n"
	for _, end := range []string{"exit 0", "exit 1"} {
		text, _ := b.run("seq 3000; cat <<'END'\n" + output + "END\nseq 3000; " + end)
		for _, want := range []string{"line 3002: added 104 packages", "line 3003: 2 high severity vulnerabilities"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in %s", end, want, text)
			}
		}
	}
}

// TestFindings compares the lines that the receipt of a failed command names, for the output of well-known programs.
func TestFindings(t *testing.T) {
	t.Parallel()
	b := newBench(t, shell.Options{})
	for _, c := range corpus.Rows[tried](t, "findings.ndjson") {
		t.Run(c.Name, func(t *testing.T) {
			b.t = t
			text, _ := b.run("cat <<'END'\n" + c.Output + "END\nseq 3000; exit 1")
			expect.Contains(t, text, c.Want)
			if text, _ = b.run("cat <<'END'\n" + c.Output + "END\nseq 3000 #"); strings.Contains(text, "line 1: ") ||
				strings.Contains(text, "line 3: ") {
				t.Errorf("findings of a command that succeeded:\n%s", text)
			}
		})
	}
}

// TestFirstErrorLines checks that a receipt of a failed command has its first lines of standard error, which lie in the
// middle of the output, and that they are left out if the head has them.
func TestFirstErrorLines(t *testing.T) {
	t.Parallel()
	b := newBench(t, shell.Options{})
	const late = "; sleep 0.1; for i in 1 2 3 4 5 6 7; do echo find: $i: Permission denied >&2; done; sleep 0.1; "
	text, _ := b.run("seq 3000" + late + "seq 3000; exit 1")
	const want = "standard error, line 3001: find: 1: Permission denied\n" +
		"standard error, line 3002: find: 2: Permission denied\n" +
		"standard error, line 3003: find: 3: Permission denied\n… and 4 more lines of standard error\n"
	if !strings.Contains(text, want) {
		t.Errorf("no %q in %s", want, text)
	}
	for _, without := range []string{"seq 3000" + late + "seq 3000 #", "seq 6000 >&2; exit 1"} {
		if text, _ = b.run(without); strings.Contains(text, "standard error, line") {
			t.Errorf("%s: lines of standard error: %s", without, text)
		}
	}
}

// TestRealTests runs failing tests of Go and JavaScript: the receipt has name, place and message of each failed test,
// and nothing that a passing one printed.
func TestRealTests(t *testing.T) {
	t.Parallel()
	var caches []string // Go's own library is in the cache of these tests: it need not be compiled again
	if out, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output(); err == nil {
		caches = append(caches, strings.TrimSpace(string(out)))
	}
	b := newBench(t, shell.Options{AllowCache: caches})
	write := func(name, text string) {
		expect.Must(t, os.WriteFile(filepath.Join(b.root, name), []byte(text), 0o600))
	}
	write("go.mod", "module example.com/x\n\ngo 1.24\n")
	write("x_test.go", `package x

import (
	"fmt"
	"testing"
)

func TestPass(t *testing.T) {
	for i := range 300 {
		t.Logf("error: only a log, %d", i)
	}
	fmt.Println("ERROR printed by a passing test")
}

func TestFail(t *testing.T) { t.Errorf("got %d, want 3", 1) }

func TestBelow(t *testing.T) {
	t.Run("a", func(t *testing.T) { t.Log("error: fine") })
	t.Run("b", func(t *testing.T) { t.Error("no b") })
}
`)
	write("x.test.js", `const test = require('node:test');
test('passes', () => { for (let i = 0; i < 300; i++) console.log('Error: only a log'); });
test('adds', () => { require('node:assert').strictEqual(2, 3); });
`)
	for _, c := range []struct {
		program, command string
		want             []string
	}{
		{"go", "go test -v .", []string{"--- FAIL: TestFail (0.00s)\n", "x_test.go:15: got 1, want 3\n",
			"--- FAIL: TestBelow/b (0.00s)\n", "x_test.go:19: no b\n"}},
		{"go", "go test -json .", []string{"--- FAIL: TestFail (0.00s)\n", "x_test.go:15: got 1, want 3\n", ":19: no b"}},
		{"go", "seq 3000; go test .", []string{"--- FAIL: TestFail (0.00s)\n", "x_test.go:15: got 1, want 3\n", ":19: no b"}},
		{"node", "node --test x.test.js", []string{": adds: ", "x.test.js:3: Expected values to be strictly equal: 2 !== 3"}},
	} {
		t.Run(c.command, func(t *testing.T) {
			needs(t, c.program)
			b.t = t
			texts, _ := b.follow(fmt.Sprintf("export CGO_ENABLED=0 GOFLAGS='-trimpath -vet=off' GOCACHE=%q\n%s",
				strings.Join(caches, ""), c.command)) // a first build may take long
			text := texts[len(texts)-1]
			findings, _, _ := strings.Cut(text, "--- head")
			for _, want := range c.want {
				if !strings.Contains(findings, want) {
					t.Errorf("no %q in %s", want, text)
				}
			}
			for _, line := range strings.Split(findings, "\n") {
				if strings.HasPrefix(line, "line ") && strings.Contains(line, "only a log") ||
					strings.Contains(line, "printed by a passing") || strings.Contains(line, "error: fine") {
					t.Errorf("of a passing test: %s", line)
				}
			}
		})
	}
}

// TestQuotedErrors checks that errors of a file that a command only prints are not named as those of the command. The
// control is a command of which nobody knows what it runs.
func TestQuotedErrors(t *testing.T) {
	t.Parallel()
	b := newBench(t, shell.Options{})
	var log strings.Builder
	for i := range 2000 {
		level := "INFO"
		if i%100 == 50 {
			level = "ERROR"
		}
		fmt.Fprintf(&log, "2026-01-01T10:%02d:%02dZ %s server: request %d took %d ms\n", i/60, i%60, level, i, i%77)
	}
	log.WriteString("main.go:12:3: undefined: x\nmake: *** [all] Error 2\n")
	expect.Must(t, os.WriteFile(filepath.Join(b.root, "app.log"), []byte(log.String()), 0o600))
	for command, named := range map[string]bool{
		"cat app.log": false, "cat app.log; grep -q nothing app.log": false, "tail -n 1500 app.log | sed s/a/b/ | awk 1; false | cat": false,
		"for f in *.log; do head -n 1900 $f; done": false,
		"sh -c 'cat app.log'":                      true, "$(echo cat) app.log": true, "cat app.log; . ./none": true,
	} {
		text, _ := b.run(command)
		says := strings.Contains(text, "first error, ") || strings.Contains(text, "undefined: x\n--- head") ||
			strings.Contains(text, "failed test")
		if !strings.Contains(text, "LARGE OUTPUT DETECTED") || says != named {
			t.Errorf("%s: an error is named: %v\n%s", command, says, text)
		}
	}
}
