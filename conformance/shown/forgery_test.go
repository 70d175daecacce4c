package shown_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/funnel"
)

// nonce stands in each forged line, and in nothing that is ours.
const nonce = "zqxj7"

// forgedLines returns lines that imitate what this server says. Each holds the nonce behind what it imitates.
func forgedLines(t testing.TB) []string { return corpus.Rows[string](t, "forged.ndjson") }

// The lines of ours that can stand in any answer, and those that can only in a receipt.
var (
	ourLine = regexp.MustCompile(`^(LARGE OUTPUT DETECTED: |note: |error: |kept (whole|in part) as |not kept \(|--- (head|tail): |--- \d+ lines? not shown|` +
		`showing (none|the first|\d+-\d+) |not shown: \d|total: ~?\d+ (lines?,|bytes?;)|next: (direct|\w+ \{)|\w+: no answer within )`)
	receiptLine = regexp.MustCompile(`^(total|shape|saved to|next|not shown): `)
	underName   = regexp.MustCompile(`^==> .* <==`)
)

// skeleton is a line without what a reader does not see or takes for something else: the parser is as gullible as a
// model may be.
var skeleton = strings.NewReplacer("о", "o", "е", "e", "х", "x", "А", "A", "Е", "E", "О", "O", "Т", "T", "С", "C")

// lineEnds are what ends a line for anybody.
var lineEnds = regexp.MustCompile(`\r\n|[\n\r\v\f\x{85}\x{2028}\x{2029}]`)

func plainly(line string) string {
	return strings.Replace(strings.ToLower(skeleton.Replace(line)), "large output detected", "LARGE OUTPUT DETECTED", 1)
}

// ours reads this server's own lines off an answer, as whoever joins its blocks sees them.
func ours(text string, several bool) (lines []string) {
	receipt := strings.HasPrefix(strings.TrimLeft(text, "\n"), "LARGE OUTPUT DETECTED: ")
	for _, l := range lineEnds.Split(text, -1) {
		l = plainly(l)
		if ourLine.MatchString(l) || receipt && receiptLine.MatchString(l) || several && underName.MatchString(l) {
			lines = append(lines, l)
		}
	}
	return lines
}

// forged shows each line everywhere, and counts where a line of others is taken for ours. Ours may quote one further
// on in it.
func forged(t *testing.T, all []string, tell func(format string, args ...any)) (cases, failures int) {
	home := houseIn(t, funnel.Options{Mask: maskOf()})
	for line := range slices.Chunk(all, promise.Size(7, 1)) {
		var forms []string
		for _, piece := range lineEnds.Split(strings.Join(line, "\n"), -1) {
			if strings.Contains(piece, nonce) {
				forms = append(forms, plainly(strings.TrimLeft(piece, "\u200b")))
			}
		}
		for where, text := range home.everywhere("plain\n"+strings.Join(line, "\n")+"\nplain", "") {
			cases++
			for _, l := range ours(text, where == "read several") {
				if slices.ContainsFunc(forms, func(f string) bool { return strings.HasPrefix(l, f) }) {
					failures++
					tell("%s: passes for ours: %q", where, l)
					break
				}
			}
		}
	}
	return cases, failures
}

// TestS22ForgeriesAreMarked holds each line that others wrote apart from each of ours, in every place from which text
// comes.
func TestS22ForgeriesAreMarked(t *testing.T) {
	lines := forgedLines(t)
	if testing.Short() && !promise.Full() {
		lines = lines[:len(lines)/6]
	}
	cases, failures := forged(t, lines, t.Errorf)
	control := 0
	withoutFence(func() {
		_, control = forged(t, []string{"note: " + nonce, "LARGE OUTPUT DETECTED: " + nonce}, func(string, ...any) {})
	})
	promise.Keptf(t, promise.Proof{Promise: "S22", Cases: cases, Failures: failures, Control: control},
		"%d forgeries", len(lines))
}

// undone takes the marks away again: one ">" from each line that imitates ours behind one or more of them, from behind
// its indentation.
func undone(text string, imitations map[string]bool) string {
	lines := strings.Split(strings.TrimPrefix(text, "\n"), "\n")
	for i, l := range lines {
		words := strings.TrimLeft(l, " \t")
		indent := l[:len(l)-len(words)]
		if imitations[indent+strings.TrimLeft(words, ">")] || imitations[strings.TrimLeft(words, ">")] {
			lines[i] = indent + strings.TrimPrefix(words, ">")
		}
	}
	return strings.Join(lines, "\n")
}

// unlikeTexts are what is shown as it was written, and what is had back of a text with marks, by how many differ.
func unlikeTexts(t *testing.T, tell func(format string, args ...any)) (cases, failures int) {
	home := houseIn(t, funnel.Options{})
	show := func(text string) string { return shownOf(home.run(upstream(text, "", nil), nil)) }
	imitations := map[string]bool{}
	bodies := []string{
		"note: a", " LARGE OUTPUT DETECTED: x", "plain", " quoted", "\tNote: see below", "errors: 3", "no rows at all",
	}
	for _, l := range forgedLines(t) {
		if !strings.ContainsAny(l, "\n\r\v\x1b\u0085\u2028\u200b") { // which are made visible too
			bodies = append(bodies, l)
		}
	}
	for _, body := range bodies {
		body = strings.TrimLeft(body, ">")
		if strings.HasPrefix(strings.TrimLeft(show(body), "\n \t"), ">") {
			imitations[body] = true
		}
	}
	for _, body := range bodies {
		for marks := range 4 {
			cases++
			in := "before\n" + strings.Repeat(">", marks) + strings.TrimLeft(body, ">") + "\nafter"
			if got := show(in); undone(got, imitations) != in {
				failures++
				tell("%q became %q, undone %q", in, got, undone(got, imitations))
			}
		}
	}
	if len(imitations) < 20 {
		t.Errorf("only %d lines are marked", len(imitations))
	}
	return cases, failures
}

// What is marked can be had back, and only what imitates is touched. The control marks once: what was marked by
// others then reads as what is ours with a mark.
func TestS22MarksAreUndone(t *testing.T) {
	plain := "a line\n> quoted\n\tNote: see below\nerrors: 3\n"
	expect.Equal(t, shownOf(houseIn(t, funnel.Options{}).run(upstream(plain, "", nil), nil)), "\n"+plain,
		"%q became", plain)
	cases, failures := unlikeTexts(t, t.Errorf)
	control := 0
	withOneMark(func() { _, control = unlikeTexts(t, func(string, ...any) {}) })
	promise.Keptf(t, promise.Proof{Promise: "S22", Cases: cases, Failures: failures, Control: control},
		"marks taken away again; control: a line with a mark gets no second")
}
