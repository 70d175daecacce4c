package logs

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
)

// told is what a reader of logs says of a text that comes in pieces of so many bytes.
func told(text []byte, whole int64, piece int) digest.Summary {
	l := New("")
	l.patterns.whole = whole
	for p := range slices.Chunk(text, piece) {
		l.Add(p)
	}
	var s digest.Summary
	l.Finish(&s)
	return s
}

// A line that begins as one before it is told as if it were parsed: pieces shorter than a line have each parsed.
func TestAlike(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 1))
	stamps := []string{"2026-11-0%d 10:00:0%d ", "2026-11-0%d 10:00:0%d,123 ", "[2026-11-0%d 10:00:0%d +0100] ", "1%d:20:3%d ", "Nov %d 10:00:0%d ", "2026-11-0%dT10:00:0%dZ|", "time=2026-11-0%dT10:00:0%d ",
		"16%d000000%d ", "[ %d23.45678%d] ", "2026-11-0%d 10:0%d+0100 ", "0%d/Nov/202%d ", "%d-%d ", "W11%d 14:30:2%d.123456 ", "<1%d>Oct 11 14:30:2%d ",
		"5/%d/2026 4:0%d PM ", "0%d/18/2026 04:3%d:00 ", "web-%d | 2026-11-0%dT10:00:00Z ", "1%d-26 04:00:0%d.123 ",
		"Wed Oct 1%d 14:32:5%d 2026 "}
	words := []string{"INFO x", "WARN  y", "DEBUG z 1", "TRACE a", "INFO: b", "INFOS c", "ERROR d", "WARNING e", "INFO-4 f", "DEBUG", "INFO ", "Exception in thread \"main\"", "panic: runtime error: 1",
		"INFO thread 'a' panicked at x", "INFO Traceback (most recent call last)", "INFO a (core dumped)", "INFO kernel: segfault at 1", "notice", "", "+0100 INFO x", "Z INFO", "12:00:01 INFO x", "Nov 2026 INFO x",
		"\x1b[31mINFO\x1b[0m x", "INFO \tat a.b(C.java:1)", "level=info INFO x"}
	more := []string{
		"\tat a.b(C.java:1)", "  at f (/x.js:1:2)", "goroutine 1 [running]:", "", "Caused by: x", "==> a.go <==", "plain",
	}
	for round := range 300 {
		var b bytes.Buffer
		stamp := stamps[r.IntN(len(stamps))]
		for range 60 {
			switch {
			case r.IntN(12) == 0:
				stamp = stamps[r.IntN(len(stamps))]
			case r.IntN(12) == 0:
				b.WriteString(more[r.IntN(len(more))] + "\n")
			}
			word := words[r.IntN(6)] // mostly what is common
			if r.IntN(6) == 0 {
				word = words[r.IntN(len(words))]
			}
			fmt.Fprintf(&b, stamp, r.IntN(10), r.IntN(10))
			b.WriteString(word + []string{" and more of it", " 17", ""}[r.IntN(3)] + []string{"\n", "\r\n"}[r.IntN(8)/7])
		}
		text := b.Bytes()
		want := told(text, patternsWhole, 5)
		for _, piece := range []int{len(text), 777, 100} {
			if diff := cmp.Diff(want, told(text, patternsWhole, piece)); diff != "" {
				t.Fatalf("round %d, pieces of %d (-parsed +alike)\n%s\n%s", round, piece, diff, text)
			}
		}
	}
}

// largeLog is of so many bytes; few of its lines are errors, and one is a panic.
func largeLog(size int) []byte {
	r := rand.New(rand.NewPCG(3, 3))
	var b bytes.Buffer
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "2026-11-%02dT%02d:%02d:%02dZ ", 1+i/86400%28, i/3600%24, i/60%60, i%60)
		switch k := r.IntN(3000); {
		case k == 0:
			fmt.Fprintf(&b, "ERROR store.disk write failed after %dms\n", r.IntN(900))
		case k == 1:
			fmt.Fprintf(&b, "WARN  a rare warning of %d things\n", r.IntN(9))
		case k < 900:
			fmt.Fprintf(&b, "WARN  http.server slow request id=%016x\n", r.Uint64())
		case k < 2000:
			fmt.Fprintf(&b, "INFO  http.server request served path=/v1/items/%d took=%dms\n", r.IntN(9000), r.IntN(90))
		default:
			fmt.Fprintf(&b, "DEBUG cache lookup of key %d in shard %d\n", r.IntN(9000), r.IntN(64))
		}
		if i == 100_000 {
			b.WriteString("panic: all is lost\n\ngoroutine 1 [running]:\nmain.main()\n\t/src/main.go:7 +0x1\n")
		}
	}
	return b.Bytes()
}

var aboutCount = regexp.MustCompile(
	`^about (\d+)× (.*) \((first line|seen at line) (\d+)(; from samples of (\d+) MiB)?\)$`,
)

// Of a log so large that patterns are from samples all is told as it is of one that is read in full, but how often
// they stand there.
func TestPatternsFromSamples(t *testing.T) {
	promise.WithoutRace(t)
	text := largeLog(24 << 20)
	want, got := told(text, 1<<40, 64<<10), told(text, 1<<20, 64<<10)
	expect.Same(t, got.Total, want.Total, "total (-all +samples)")
	expect.Same(t, got.Says, want.Says, "says (-all +samples)")
	if len(want.Body) < 3 || len(got.Body) < 3 {
		t.Fatalf("%q\n%q", want.Body, got.Body)
	}
	for i, line := range got.Body {
		if strings.Contains(line, "rare") {
			continue
		}
		m := aboutCount.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("%q", line)
			continue
		}
		if (m[5] != "") != (i == 0) || i == 0 && m[6] != "2" {
			t.Errorf("what the samples are is told once, first: %q", got.Body)
		}
		about, _ := strconv.Atoi(m[1])
		exact := 0
		for _, w := range want.Body {
			if strings.Contains(w, m[2]) {
				_, _ = fmt.Sscanf(w, "%d×", &exact)
				if !strings.Contains(w, "(first line "+m[4]+")") {
					t.Errorf("%q, %q", line, w)
				}
			}
		}
		if about*20 < exact*19 || about*20 > exact*21 {
			t.Errorf("%q, in truth %d", line, exact)
		}
	}
	if small := told(text[:1<<20], 1<<20, 64<<10); strings.Contains(strings.Join(small.Body, "\n"), "about") {
		t.Errorf("of a small log nothing is about: %q", small.Body)
	}
	for _, piece := range []int{len(text), 1000} {
		expect.Same(t, told(text, 1<<20, piece), got, "pieces of %d", piece)
	}
}

// What was seen in few samples is not multiplied, and a pattern that is first seen in one is not said to be first
// there.
func TestSamplesSayNoMoreThanTheyKnow(t *testing.T) {
	ts := newTemplates()
	for range 20 {
		ts.add([]byte("INFO often"), 7, info).sampled++
	}
	for range 3 {
		ts.add([]byte("INFO now and then"), 8, info).sampled++
	}
	ts.add([]byte("ERROR once"), 9, failure)
	ts.estimate(16.4)
	counts := []string{}
	for _, c := range ts.common() {
		counts = append(counts, c.count())
	}
	expect.Same(t, counts, []string{"about 330×", "3+×", "1×"})
	for n, want := range map[int64]int64{7: 7, 99: 99, 104: 100, 105: 110, 98_765: 99_000, 99_900: 100_000} {
		expect.Equal(t, rounded(n), want, n)
	}
}
