package logs

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
)

// runs is a text of few shapes of lines: in runs that differ only in digits, in runs of equal lines, and alone.
func runs(r *rand.Rand, size int) []byte {
	starts := []string{
		"",
		"y",
		"-",
		"--",
		"- ",
		"* item ",
		"1. ",
		"a.go:",
		"dir/a.txt",
		"== x ",
		"==> a",
		"INFO ",
		"ERROR ",
		"level=warn ",
		"W1120 14:30:22.1 ",
		"\t",
		"  at f (a.js:1)",
		"panic: ",
		"\x1b[1m",
		"Error: ",
		"2026-11-20 10:00:00 ",
		"2026-11-20T10:00:00Z INFO ",
		"10:00:00 - ",
		`1.2.3.4 - - [20/Nov/2026:14:30:22 +0000] "GET /" 200 `,
		"<14>1 2026-11-20T10:00:00Z host ",
		"<14>",
		"web-1  | 2026-11-20 10:00:00 INFO ",
		"web-1 | ",
		"11-20 10:00:00.123  1234  5678 E Tag: ",
		"E/Tag( 1234): ",
		"5/8/2026 4:39 PM INFO ",
		"12:00:00 ",
		"[Wed Oct 11 14:32:52 2026] [core:error] ",
		"CHAPTER ",
		"plain words of prose ",
		"é",
		strings.Repeat("long ", 30),
	}
	ends := []string{"", "", "", "x", "\r", " ", "/", ":3", ".go <==", " and more words than fit in eight bytes"}
	r.Shuffle(len(starts), func(i, j int) { starts[i], starts[j] = starts[j], starts[i] })
	r.Shuffle(len(ends), func(i, j int) { ends[i], ends[j] = ends[j], ends[i] })
	starts, ends = starts[:1+r.IntN(8)], ends[:1+r.IntN(4)]
	longest, fewest := 1+r.IntN(14), r.IntN(2)*r.IntN(12)
	var b bytes.Buffer
	for b.Len() < size {
		start, end, number := starts[r.IntN(len(starts))], ends[r.IntN(len(ends))], r.Uint64()
		digits, same := max(0, r.IntN(12)-fewest), r.IntN(3) == 0
		if longest < 4 { // words that do not repeat
			start += strings.Map(func(c rune) rune { return c - '0' + 'a' }, fmt.Sprint(number)) + " "
		}
		lines := 1 << r.IntN(longest)
		if longest < 4 {
			lines = []int{1, 1, 1, 4}[r.IntN(4)]
		}
		for range lines {
			if !same {
				number = r.Uint64()
			}
			b.WriteString(start + fmt.Sprintf("%020d", number)[20-digits:] + end + "\n")
		}
		if r.IntN(4) == 0 {
			b.WriteString([]string{"\n", "\na\n", "A TITLE\n", "aa\r\na\r\n"}[r.IntN(4)])
		}
	}
	return b.Bytes()
}

// Lines accepted because they are like the line before change a summary as lines that are parsed do: blocks of five
// bytes have every line parsed.
func TestAlikeLinesCountAsParsed(t *testing.T) {
	accepted := int64(0)
	rounds := 120
	if testing.Short() {
		rounds = 20
	}
	for round := range rounds {
		r := rand.New(rand.NewPCG(uint64(round), 4))
		text := runs(r, 20_000<<r.IntN(6))
		switch r.IntN(4) {
		case 0:
			text = slices.Concat(
				bytes.Repeat([]byte("words of prose\n"), 1100),
				[]byte("\nCHAPTER 1\nCHAPTER 2\n\n"),
				text,
			)
		case 1:
			text = slices.Concat(bytes.Repeat([]byte("words\n\n"), 1100), []byte("line 1\nline 2\nline 3\n\n"), text)
		case 2: // the probe that stops the matching is due at the second of the equal lines
			var b bytes.Buffer
			for i := range templateProbe - 2 {
				b.WriteString(strings.Map(func(c rune) rune { return c - '0' + 'a' }, fmt.Sprint(i*i)) + "\n")
			}
			text = slices.Concat(b.Bytes(), bytes.Repeat([]byte("x\n"), 40), text)
		}
		whole := int64(1) << (10 + r.IntN(12))
		for _, prose := range []bool{false, true} {
			summary := func(size int) (s digest.Summary) {
				p := NewProse("")
				logs := p.logs
				var reader digest.Summarizer = p
				if !prose {
					logs = New("")
					reader = logs
				}
				logs.patterns.whole = whole
				visit := logs.rows.Visit
				parsed := int64(0)
				logs.rows.Visit = func(line []byte, size int64) { parsed++; visit(line, size) }
				for block := range slices.Chunk(text, size) {
					reader.Add(block)
				}
				reader.Finish(&s)
				accepted += logs.rows.Number - parsed
				// Counts that a summary may not show.
				s.Body = append(s.Body, fmt.Sprint(logs.levels, logs.times.n, logs.read, logs.patterns.beyond),
					fmt.Sprint(logs.patterns.sampledBytes),
					fmt.Sprint(logs.rows.Number, logs.patterns.wholeEnd, string(logs.times.last), string(logs.panics.before)),
					fmt.Sprint(logs.panics.beforeLine, p.listing.lines, p.listing.known, p.pending, p.opening.Text()),
					fmt.Sprint(len(p.order), p.longest.line, logs.patterns.lines, logs.patterns.probed),
					fmt.Sprint(logs.patterns.misses, logs.patterns.dropped))
				for _, c := range logs.patterns.all {
					s.Body = append(s.Body, fmt.Sprint(c.n, c.sampled, c.first, c.last, c.level, c.text, c.minimum))
				}
				return s
			}
			want := summary(5)
			for _, size := range []int{len(text), 10_000} {
				if diff := cmp.Diff(want, summary(size)); diff != "" {
					t.Fatalf("round %d, prose %v, blocks of %d (-parsed +accepted)\n%s", round, prose, size, diff)
				}
			}
		}
	}
	if accepted < 100_000 {
		t.Errorf("only %d lines were accepted without parsing them", accepted)
	}
}
