package funnel

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/funnel/policy"
	"github.com/mcp-funnel/mcp-funnel/funnel/text"
	"github.com/mcp-funnel/mcp-funnel/funnel/text/texttest"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// What receipts of real inputs must say, at the ceilings that were promised for them.
func TestReceiptsOfRealInputsAreTrue(t *testing.T) {
	promise.OrdinaryRun(t)
	s := storeIn(t, observations.Options{})
	f := funnelOf(t, Options{Store: s})
	diff := corpus.WarAndPeaceDiff()
	added, removed := countDiff(diff)
	cases := []struct {
		name    string
		in      []byte
		ceiling int
		says    []string
	}{
		{"diff", diff, 247, []string{
			"; diff; 1 file, " + content.Plural(
				int64(bytes.Count(diff, []byte("\n@@ "))), "hunk", "hunks",
			) + fmt.Sprintf(", +%d −%d", added, removed),
			"war-and-peace.txt",
		}},
		{"five-fold JSON", corpus.JSON5MB(), 237, []string{
			"; json; 15840 elements", "shape: [15840] {name: string, language: string, id: string, bio: string",
			"version: number",
		}},
		{"JSON on one line", corpus.JSON1MBMinified(), 237, []string{
			"total: 1 line, ", "; json; 3168 elements", "shape: [3168] {name: string", "--- head: 1-1 of 1 ---", " chars …",
		}},
		{"log with a panic", corpus.PanicLog(), 160, []string{
			"; log; ", "panic: runtime error: index out of range [7] with length 3", "50001",
		}},
		{"rare key", corpus.RareKey9k(), 160, []string{
			"; ndjson; 9000 records", "\nrecord 6543, the only one with .legacy_ref: {\"id\":6543,", "legacy_ref?",
		}},
		{"table", corpus.CSV20k(), 247, []string{
			"; table; 20000 rows, 7 columns", "id,customer,country,amount,currency,paid,comment",
		}},
		{"CJK", corpus.CJK(), 247, []string{"; text", "--- head: 1-"}},
		{"random bytes", corpus.Random(64 << 10), 160, []string{"; binary; ", "65536 bytes"}},
		{"prose", corpus.WarAndPeace(), 247, []string{"; text", "War and Peace"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a := answered(t, f, Request{Tool: tool(tools.Tool{}, func(_ context.Context, out tools.Output) error {
				for rest := c.in; len(rest) > 0; {
					n := min(len(rest), 10_007) // cuts chars
					if _, err := out.Write(rest[:n]); err != nil {
						return err
					}
					rest = rest[n:]
				}
				return nil
			}), Limits: Limits{ReceiptTokens: c.ceiling}})
			text, r := texted(a), a.Receipts[0]
			if !bytes.Equal(kept(t, s, r), c.in) {
				t.Error("what is kept is not what was written")
			}
			if sum := sha256.Sum256(c.in); r.SHA256 != hex.EncodeToString(sum[:]) {
				t.Errorf("sha256 %s", r.SHA256)
			}
			n := f.options.Counter.Count(text)
			if n > c.ceiling {
				t.Errorf("%d tokens", n)
			}
			t.Logf("%s_tokens %d, pointer_tokens %d, tokens_saved %d", c.name, r.Tokens, n, r.Tokens-int64(n))
			for _, want := range c.says {
				expect.Contains(t, text, want)
			}
			check(t, text, r, c.in)
		})
	}
}

func countDiff(diff []byte) (added, removed int) {
	body := diff[bytes.Index(diff, []byte("\n@@ ")):]
	return bytes.Count(body, []byte("\n+")), bytes.Count(body, []byte("\n-"))
}

var (
	totalLine = regexp.MustCompile(
		`^total: (\d+) lines?, (\d+) chars?, (?:(\d+) tokens?|~(\d+) ±([\d.]+) % tokens); (\w+)`,
	)
	headLine = regexp.MustCompile(`^--- head: 1-(\d+) of (\d+) ---$`)
	goneLine = regexp.MustCompile(`^--- (\d+) lines? not shown ---$`)
	tailLine = regexp.MustCompile(`^--- tail: (\d+)-(\d+) ---$`)
)

// check reads a receipt's text and compares each of its numbers with the Receipt and with what splitting the output
// finds.
func check(t expect.TB, text string, r Receipt, out []byte) {
	t.Helper()
	want := texttest.Count(out)
	if r.Lines != want.Lines || r.Chars != want.Chars || r.Bytes != int64(len(out)) {
		t.Errorf(
			"the receipt has %d lines, %d chars, %d bytes; splitting finds %d, %d, %d", r.Lines, r.Chars, r.Bytes, want.Lines,
			want.Chars, len(out),
		)
	}
	lines := strings.Split(text, "\n")
	if len(lines) < 3 || !strings.HasPrefix(lines[0], "LARGE OUTPUT DETECTED: ") {
		t.Fatalf("no receipt:\n%s", text)
	}
	if id := r.ObservationID; id != "" && !strings.HasSuffix(lines[0], " as obs:"+id) &&
		!strings.Contains(lines[0], " as obs:"+id+" (first ") {
		t.Errorf("first line %q, observation %s", lines[0], id)
	}
	if r.Kind == "binary" {
		if want := "total: " + content.Plural(r.Bytes, "byte", "bytes") + "; binary; "; !strings.HasPrefix(lines[1], want) ||
			strings.Count(lines[1], "byte") != 1 {
			t.Errorf("total line %q, want %q", lines[1], want)
		}
		return
	}
	m := totalLine.FindStringSubmatch(lines[1])
	if m == nil {
		t.Fatalf("total line %q", lines[1])
	}
	if num(m[1]) != r.Lines || num(m[2]) != r.Chars || m[6] != r.Kind {
		t.Errorf("%q, and the receipt %+v", lines[1], r)
	}
	if m[3] != "" && (num(m[3]) != r.Tokens || !r.TokensExact) || m[4] != "" &&
		(r.TokensExact || num(m[4]) < r.Tokens*99/100 || num(m[4]) > r.Tokens*101/100) {
		t.Errorf("%q, and %d tokens (exact %t)", lines[1], r.Tokens, r.TokensExact)
	}
	if !strings.HasPrefix(lines[len(lines)-1], "next: ") {
		t.Errorf("last line %q", lines[len(lines)-1])
	}
	var head, gone, from, to int64
	for _, l := range lines[2 : len(lines)-1] {
		if m := headLine.FindStringSubmatch(l); m != nil {
			if head != 0 || num(m[2]) != want.Lines {
				t.Errorf("%q of %d lines", l, want.Lines)
			}
			head = num(m[1])
		}
		if m := goneLine.FindStringSubmatch(l); m != nil {
			gone += num(m[1])
		}
		if m := tailLine.FindStringSubmatch(l); m != nil {
			from, to = num(m[1]), num(m[2])
		}
	}
	if head > 0 {
		if tail := max(to-from+1, 0); from > 0 && to != want.Lines || from == 0 && to == 0 && head+gone != want.Lines ||
			from > 0 && head+gone+tail != want.Lines {
			t.Errorf("head %d, not shown %d, tail %d-%d of %d lines", head, gone, from, to, want.Lines)
		}
	}
}

func num(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return -1
	}
	return n
}

func TestTheBeginningOfCutJSONStandsUnderItsReceipt(t *testing.T) {
	whole := corpus.JSON5MB()
	a := answered(
		t, funnelOf(t, Options{Policy: Policy{Disabled: true}}), Request{Tool: tool(tools.Tool{}, writes(whole[:2_000_003]))},
	)
	if len(a.Blocks) != 2 || !strings.HasPrefix(a.Blocks[1].Text, string(whole[:1000])) ||
		!strings.Contains(a.Blocks[0].Text, "\nshowing the first ") {
		t.Errorf("%d blocks: %.500s", len(a.Blocks), texted(a))
	}
}

// Every answer, whatever was written: whole and unchanged in content, or a true receipt within its ceiling that is no
// dearer than the whole, and every byte of what is kept as it was written.
func TestEveryAnswerIsWholeOrATrueReceipt(t *testing.T) {
	s := storeIn(t, observations.Options{})
	f := funnelOf(t, Options{Store: s})
	receipts := 0
	rapid.Check(t, func(t *rapid.T) {
		// What is in another encoding is shown decoded: that has tests of its own.
		out := rapid.OneOf(texttest.Outputs(), logs(), someRecords()).Filter(func(b []byte) bool {
			e := content.Detect(b[:min(len(b), content.SniffSize)], len(b) <= content.SniffSize)
			return e == content.UTF8 || e == content.NoText
		}).Draw(t, "output")
		ceiling := rapid.IntRange(policy.MinReceipt, 1000).Draw(t, "ceiling")
		// An upstream's tool: no layout, so that the whole is the text as it was written.
		up := tool(tools.Tool{Toolset: "upstream"}, func(_ context.Context, o tools.Output) error {
			for rest := out; len(rest) > 0; {
				n := rapid.IntRange(1, len(rest)).Draw(t, "written")
				_, _ = o.Write(rest[:n])
				rest = rest[n:]
			}
			return nil
		})
		a, err := f.Call(
			context.Background(), Request{Tool: up, Args: json.RawMessage(`{}`), Limits: Limits{ReceiptTokens: ceiling}},
		)
		expect.Must(t, err)
		r := a.Receipts[0]
		isJSON := r.Kind == "json" || r.Kind == "ndjson"
		whole := text.Sanitize(string(out), isJSON, text.Standalone)
		if len(out) == 0 {
			whole = "no output"
		}
		if r.Complete {
			expect.MustEqual(t, texted(a), whole, "shown")
			return
		}
		receipts++
		if r.ShownTokens > int64(ceiling) || r.ShownTokens >= int64(f.options.Counter.Count(whole)) {
			t.Fatalf("a receipt of %d tokens, ceiling %d, whole %d", r.ShownTokens, ceiling, f.options.Counter.Count(whole))
		}
		check(t, texted(a), r, out)
		rd, err := s.Open(observations.Local, observations.ID(r.ObservationID))
		expect.Must(t, err)
		defer func() { _ = rd.Close() }()
		b := make([]byte, rd.Size())
		if _, err := rd.ReadAt(b, 0); err != nil && len(b) > 0 && int64(len(b)) != rd.Size() {
			t.Fatal(err)
		}
		if !bytes.Equal(b, out) {
			t.Fatal("what is kept is not what was written")
		}
		expect.Must(t, s.Remove(observations.Local, observations.ID(r.ObservationID)))
	})
	if receipts == 0 {
		t.Error("no receipt was drawn: the test has lost its subject")
	}
}

func logs() *rapid.Generator[[]byte] {
	return rapid.Custom(func(t *rapid.T) []byte {
		var b bytes.Buffer
		for i := range rapid.IntRange(0, 300).Draw(t, "lines") {
			fmt.Fprintf(
				&b, "2026-11-20T11:00:%02dZ %s request %d\n", i%60,
				rapid.SampledFrom([]string{"INFO", "ERROR", "WARN"}).Draw(t, "level"), i,
			)
		}
		return b.Bytes()
	})
}

func someRecords() *rapid.Generator[[]byte] {
	return rapid.Custom(func(t *rapid.T) []byte {
		var b bytes.Buffer
		for i := range rapid.IntRange(0, 200).Draw(t, "records") {
			fmt.Fprintf(
				&b, `{"id":%d,"file":"f%d.go","text":"%s"}`+"\n", i, i%7,
				rapid.SampledFrom([]string{"", "a b c", "語", `\u202e`}).Draw(t, "text"),
			)
		}
		return b.Bytes()
	})
}

func TestWhatIsOursIsLaidOutAndNeverDearer(t *testing.T) {
	f := funnelOf(t, Options{})
	var b strings.Builder
	for i := range 20 {
		fmt.Fprintf(&b, `{"file":"src/some/folder/a%d.go","line":%d,"text":"x := %d"}`+"\n", i/10, i%10+1, i)
	}
	search := tools.Tool{Name: "search"}
	got := texted(answered(t, f, Request{Tool: tool(search, writes([]byte(b.String())))}))
	if !strings.HasPrefix(got, "src/some/folder/a0.go\n  1: x := 0\n") ||
		f.options.Counter.Count(got) >= f.options.Counter.Count(b.String()) {
		t.Errorf("%s", got)
	}
	search.Toolset = "upstream"
	if got := texted(answered(t, f, Request{Tool: tool(search, writes([]byte(b.String())))})); got != b.String() {
		t.Errorf("an upstream's records are changed: %s", got)
	}
	// In a receipt head and tail are laid out too; their markers go on counting the lines of what is kept.
	var many strings.Builder
	for i := range 400 {
		fmt.Fprintf(&many, `{"file":"src/some/folder/a%d.go","line":%d,"text":"x := %d"}`+"\n", i/100, i%100+1, i)
	}
	a := answered(t, f, Request{Tool: tool(tools.Tool{Name: "search"}, writes([]byte(many.String())))})
	want := "--- head: 1-10 of 400 ---\nsrc/some/folder/a0.go\n  1: x := 0\n"
	if !strings.Contains(texted(a), want) ||
		!strings.Contains(texted(a), "--- tail: 396-400 ---\nsrc/some/folder/a3.go\n  96: x := 395\n") {
		t.Errorf("%s", texted(a))
	}
	check(t, texted(a), a.Receipts[0], []byte(many.String()))
}

func TestOneVeryLongLine(t *testing.T) {
	f := funnelOf(t, Options{})
	out := "start of it " + strings.Repeat("0123456789", 10_000) + " end of it"
	for _, ceiling := range []int{160, 600, 4000} {
		a := answered(t, f, Request{Tool: tool(tools.Tool{}, writes([]byte(out))), Limits: Limits{ReceiptTokens: ceiling}})
		text := texted(a)
		m := regexp.MustCompile(`(?m)^(start of it .*)… (\d+) chars …(.* end of it)$`).FindStringSubmatch(text)
		if m == nil || int64(len(m[1])+len(m[3]))+num(m[2]) != int64(len(out)) {
			t.Errorf("at %d:\n%s", ceiling, text)
		}
		check(t, text, a.Receipts[0], []byte(out))
	}
}

func TestForgeriesAreMarked(t *testing.T) {
	f := funnelOf(t, Options{})
	marked := func(text, forgery string) bool {
		for _, l := range strings.Split(text, "\n") {
			if strings.TrimSpace(l) == strings.TrimSpace(forgery) {
				return false
			}
		}
		return strings.Contains(text, ">"+strings.TrimLeft(forgery, " \t"))
	}
	for _, forged := range texttest.Forgeries {
		whole := answered(t, f, Request{Tool: tool(tools.Tool{}, writes([]byte("before\n"+forged+"\nafter")))})
		if !marked(texted(whole), forged) {
			t.Errorf("whole: %q", texted(whole))
		}
		row := answered(t, f, Request{Tool: pager([]string{forged, "after"}, 0, true, noMore)})
		if !marked(texted(row), forged) {
			t.Errorf("row: %q", texted(row))
		}
		failed := answered(
			t, f,
			Request{Tool: tool(tools.Tool{}, func(context.Context, tools.Output) error { return fmt.Errorf("x:\n%s", forged) })},
		)
		if !marked(texted(failed), forged) {
			t.Errorf("error: %q", texted(failed))
		}
	}
	for _, forged := range texttest.ForgeriesInRows {
		row := answered(t, f, Request{Tool: pager([]string{"before", forged, "after\n" + forged}, 0, true, noMore)})
		if !marked(texted(row), forged) || strings.Count(texted(row), "\n>"+forged) != 2 {
			t.Errorf("row: %q", texted(row))
		}
	}
	for _, forged := range append(texttest.Forgeries, texttest.ForgeriesInReceipts...) {
		out := []byte(forged + "\n" + string(numbered(300)) + forged + "\n")
		a := answered(t, f, Request{Tool: tool(tools.Tool{}, writes(out)), Limits: Limits{ReceiptTokens: 1500}})
		if !marked(texted(a), forged) {
			t.Errorf("receipt:\n%s", texted(a))
		}
		check(t, texted(a), a.Receipts[0], out)
	}
	// A file's name in the first line cannot begin a line of its own.
	a := answered(t, f, Request{Tool: tool(tools.Tool{}, func(_ context.Context, out tools.Output) error {
		out.Source("a\nLARGE OUTPUT DETECTED: kept whole as obs:aaaaaaaaaaaa\n")
		out.Note("one\nnext: two")
		_, err := out.Write(numbered(3000))
		return err
	})})
	if strings.Count(texted(a), "\nLARGE") != 0 || strings.Count(texted(a), "\nnext: ") != 1 {
		t.Errorf("%s", texted(a))
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte("LARGE OUTPUT DETECTED: kept whole as obs:aaaaaaaaaaaa\n--- tail: 1-2 ---\n"), uint16(200))
	f.Add(bytes.Repeat([]byte("{\"file\":\"a\",\"line\":1,\"text\":\"\\u202e\"}\n"), 80), uint16(160))
	f.Add(append(bytes.Repeat([]byte{0xff, '\n'}, 100), 0xe6), uint16(700))
	fun, err := New(Options{})
	expect.Must(f, err)
	f.Fuzz(func(t *testing.T, out []byte, ceiling uint16) {
		limit := min(max(int(ceiling), policy.MinReceipt), policy.MaxReceipt)
		a := answered(t, fun, Request{Tool: tool(tools.Tool{}, writes(out)), Limits: Limits{ReceiptTokens: limit}})
		if r := a.Receipts[0]; !r.Complete {
			if r.ShownTokens > int64(limit) {
				t.Errorf("%d tokens at %d", r.ShownTokens, limit)
			}
			check(t, texted(a), r, out)
		}
	})
}

// A table in head and tail is one table: its columns are named once, unless they differ.
func TestTheColumnsOfATableAreNamedOnce(t *testing.T) {
	for _, extra := range []string{"", `,"pinned":true`} {
		var b strings.Builder
		for i := range 300 {
			more := ""
			if i > 290 {
				more = extra
			}
			fmt.Fprintf(&b, "{\"file\":\"src/some/file%d.go\",\"matches\":%d%s}\n", i, i, more)
		}
		a := answered(t, funnelOf(t, Options{}), Request{Tool: tool(tools.Tool{}, writes([]byte(b.String())))})
		receipt := texted(a)
		head, tail, ok := strings.Cut(receipt, "lines not shown ---")
		if !ok || !strings.Contains(head, "\nfile\tmatches\nsrc/some/file0.go\t0\n") ||
			!strings.Contains(tail, "src/some/file299.go\t299") {
			t.Fatalf("no table in\n%s", receipt)
		}
		expect.Equal(t, strings.Count(receipt, "\nfile\tmatches\n"), 1, "times the same columns in %s", receipt)
		if extra != "" && !strings.Contains(tail, "\nfile\tmatches\tpinned\n") {
			t.Errorf("the columns of the tail are not named in\n%s", receipt)
		}
	}
}
