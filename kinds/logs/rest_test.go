package logs

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
)

// words writes lines of random words.
func words(b *bytes.Buffer, r *rand.Rand, lines int) {
	for range lines {
		for k := range 10 {
			for range 3 + r.IntN(7) {
				b.WriteByte('a' + byte(r.IntN(26)))
			}
			b.WriteByte(" \n"[k/9])
		}
	}
}

// A text that does not repeat has the same errors, panics and stack traces, at the same lines, whether every line of
// its rest is read or only those that may be one.
func TestRest(t *testing.T) {
	if newRestSearcher == nil {
		t.Skip("this processor reads every line")
	}
	findings := []string{
		"ERROR: it broke", "main: fatal: no", "app error: x", "  [error] y", "level=error msg=z", "[core:crit] a", "emerg: b",
		"panic: boom\n\ngoroutine 1 [running]:\nmain.main()\n\t/src/main.go:3 +0x1\nexit status 2",
		"SIGSEGV: segmentation violation",
		"Traceback (most recent call last):\n  File \"a.py\", line 3, in f\nValueError: bad", "Unhandled exception. System.X",
		"Exception in thread \"main\" a.B: c\n\tat a.b(C.java:1)\nCaused by: d", "some words\n    at f (/src/a.js:3:4)",
		"before\n at g (/src/b.js:3:4)", "--- FAIL: TestX (0.1s)", "FAIL\tpkg\t0.1s", "not ok 3 - x", "npm ERR! code",
		"make: *** [x] Error 1",
		"=== RUN   TestA\nan error: printed\n--- PASS: TestA (0.00s)",
		"=== RUN   TestB\nERROR: printed\n--- FAIL: TestB (0.00s)",
		"==> a.go <==\nERROR: quoted\n==> a.txt <==", "\x1b[31mERR\x1b[0mOR: red", "the ferry of terror at noon",
		"Segmentation fault",
		"thread 'main' panicked at a.rs:1:2:\nmessage\nnote: more", "WARNING: DATA RACE", "Out of memory: Killed process 1",
		"kernel: a[1]: segfault at 0", strings.Repeat("long ", 900), "Uncaught TypeError: x",
		"terminate called after throwing", "  Failed A.B [3 ms]", "    ✕ rounds (3 ms)", " × a.ts > b 3ms",
		"x.cpp(1): error C2065: y",
		"  12:1   error    no", "test a ... FAILED", "[  FAILED  ] A.B (3 ms)", "1/3 Test #1: a ...***Failed    0.02 sec",
		"  1 failing\n\n  1) rounds:\n", "Failures:\n\n  1) Tax rounds\n", "    ✓ adds\n    1) rounds",
		"00:03 +1 -1: a [E]",
	}
	r := rand.New(rand.NewPCG(11, 12))
	var head bytes.Buffer
	for head.Len() < restAfter {
		words(&head, r, 1000)
	}
	for round := range 6 {
		var rest bytes.Buffer
		words(&rest, r, r.IntN(3000))
		for range 3 + r.IntN(20) {
			rest.WriteString(findings[r.IntN(len(findings))] + "\n")
			words(&rest, r, r.IntN(1500))
		}
		rest.WriteString("the end")
		summary := func(every bool) (s digest.Summary) {
			p := NewProse("")
			p.rest.judged = every
			for _, text := range [][]byte{head.Bytes(), rest.Bytes()} {
				for b := range slices.Chunk(text, 100_000) {
					p.Add(b)
				}
			}
			p.Finish(&s)
			return s
		}
		want, got := summary(true), summary(false)
		want.Body = append(want.Body, fmt.Sprintf("from line %d on, only errors and stack traces were looked for",
			2+bytes.Count(head.Bytes()[:restAfter-1], []byte{'\n'})))
		expect.Same(t, got, want, "round %d (-every line +findings)", round)
	}
	repeating := bytes.Repeat([]byte("a line that repeats itself, number 7\n"), restAfter/36+1000)
	p := NewProse("")
	p.Add(repeating)
	if p.inRest() {
		t.Error("a text that repeats has no rest")
	}
}
