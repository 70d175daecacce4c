package funnel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/funnel/policy"
	"github.com/mcp-funnel/mcp-funnel/funnel/text/texttest"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/session/usage"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// grepArgs are arguments like those of a paged tool: in struct order, without what is not set.
type grepArgs struct {
	Source  string `json:"source"`
	Pattern string `json:"pattern"`
	Literal bool   `json:"literal,omitempty"`
	Offset  int64  `json:"offset,omitempty"`
}

// pager shows rows from an offset on, as grep does.
func pager(rows []string, offset int, counted bool, more func(int) tools.Call) tools.Tool {
	return tool(tools.Tool{Name: "grep", Paged: true}, func(_ context.Context, out tools.Output) error {
		for i := min(offset, len(rows)); i < len(rows); i++ {
			err := out.Page().Row([]byte(rows[i]), more(i))
			if errors.Is(err, tools.ErrPageFull) {
				out.Page().Next(tools.Call{Tool: "grep", Args: grepArgs{Source: "obs:k3v9q2m7x4ab", Pattern: "<a>", Offset: int64(i)}})
				break
			}
			if err != nil {
				return err
			}
		}
		total := int64(-1)
		if counted {
			total = int64(len(rows))
		}
		out.Page().SetRowRange(int64(offset), total)
		return nil
	})
}

func noMore(int) tools.Call { return tools.Call{} }

func rowsOf(n int) (rows []string) {
	for i := range n {
		rows = append(rows, fmt.Sprintf("%d: row with something in it", i))
	}
	return rows
}

func TestPageThatIsAllIsOnlyItsRows(t *testing.T) {
	s := storeIn(t, observations.Options{})
	a := answered(t, funnelOf(t, Options{Store: s}), Request{Tool: pager(rowsOf(40), 0, true, noMore)})
	r := a.Receipts[0]
	if texted(a) != strings.Join(rowsOf(40), "\n") || !r.Complete || r.Lines != 40 || r.Kept {
		t.Errorf("%q %+v", texted(a), r)
	}
	expect.Equal(t, observed(t, s), 0, "observations of a page")
}

func TestPageThatIsNotAllBeginsWithTheWayOn(t *testing.T) {
	rows := rowsOf(1204)
	header := regexp.MustCompile(
		`^showing (\d+)-(\d+) of (1204|\?)(?:; next: grep \{"source":"obs:k3v9q2m7x4ab","pattern":"<a>","offset":(\d+)\})?$`,
	)
	for _, counted := range []bool{true, false} {
		f := funnelOf(t, Options{})
		seen := 0
		for offset := 0; offset < len(rows); {
			a := answered(t, f, Request{Tool: pager(rows, offset, counted, noMore)})
			expect.MustEqual(t, len(a.Blocks), 2, "blocks from %d", offset)
			m := header.FindStringSubmatch(a.Blocks[0].Text)
			if m == nil {
				t.Fatalf("header %q", a.Blocks[0].Text)
			}
			expect.Equal(t, m[3], map[bool]string{true: "1204", false: "?"}[counted], "total")
			shown := strings.Split(a.Blocks[1].Text, "\n")
			if got := fmt.Sprintf("%d-%d", offset, offset+len(shown)-1); got != m[1]+"-"+m[2] {
				t.Errorf("showing %s-%s, and the rows are %s", m[1], m[2], got)
			}
			for i, row := range shown {
				expect.MustEqual(t, row, rows[offset+i], "row %d", offset+i)
			}
			if r := a.Receipts[0]; r.Complete || r.ShownTokens > 4000 {
				t.Errorf("%+v", r)
			}
			seen += len(shown)
			if m[4] == "" {
				break
			}
			expect.Equal(t, m[4], fmt.Sprint(seen), "next")
			offset = seen
		}
		expect.Equal(t, seen, len(rows))
	}
}

// What has no numbered rows says in its own unit how far it reaches.
func TestPageTellsItsReach(t *testing.T) {
	for total, of := range map[int64]string{91: "91", -1: "?"} {
		reaching := tool(tools.Tool{Name: "slice", Paged: true}, func(_ context.Context, out tools.Output) error {
			out.Page().SetTextRange("bytes", 10, 19, total)
			out.Page().Next(tools.Call{Tool: "slice", Args: grepArgs{Source: "a", Offset: 20}})
			return out.Page().Row([]byte("0123456789"), tools.Call{})
		})
		a := answered(t, funnelOf(t, Options{}), Request{Tool: reaching})
		if len(a.Blocks) != 2 || !strings.HasPrefix(a.Blocks[0].Text, "showing bytes 10-19 of "+of+"; next: slice {") {
			t.Errorf("%v", a.Blocks)
		}
	}
}

// A range of a text stands there byte for byte, and is all there is where it reaches over all of it.
func TestStretchesAreShownExactly(t *testing.T) {
	for name, c := range map[string]struct {
		pieces                  []string
		from, to, total         int64
		header                  string
		lines, chars, byteCount int64
	}{
		"all":           {[]string{"ab\n", "cd\n"}, 0, 5, 6, "", 2, 6, 6},
		"its beginning": {[]string{"ab\n"}, 0, 2, 6, "showing bytes 0-2 of 6", 1, 3, 3},
		"its end":       {[]string{"d\r\n"}, 4, 6, 7, "showing bytes 4-6 of 7", 1, 3, 3},
		"a line end":    {[]string{"\n"}, 2, 2, 6, "showing bytes 2-2 of 6", 1, 1, 1},
		"no line end":   {[]string{"a"}, 0, 0, -1, "showing bytes 0-0 of ?", 1, 1, 1},
	} {
		a := answered(t, funnelOf(t, Options{}), Request{Tool: tool(tools.Tool{Name: "slice", Paged: true}, func(_ context.Context, out tools.Output) error {
			for _, piece := range c.pieces {
				if err := out.Page().Text([]byte(piece)); err != nil {
					return err
				}
			}
			out.Page().SetTextRange("bytes", c.from, c.to, c.total)
			return nil
		})})
		want := []string{c.header, strings.Join(c.pieces, "")}
		if c.header == "" {
			want = want[1:]
		}
		var got []string
		for _, b := range a.Blocks {
			got = append(got, b.Text)
		}
		r := a.Receipts[0]
		if !slices.Equal(got, want) || r.Complete != (c.header == "") || r.Lines != c.lines || r.Chars != c.chars ||
			r.Bytes != c.byteCount {
			t.Errorf("%s: %q, complete %v, %d lines, %d chars, %d bytes", name, got, r.Complete, r.Lines, r.Chars, r.Bytes)
		}
	}
}

// A row of which only the ends are at hand is shown as one that is longer than a page.
func TestRowOfEndsIsNoWhole(t *testing.T) {
	end := []byte(strings.Repeat("é", tools.MaxRowEdge/2))
	cut := func(before ...string) Answer {
		return answered(t, funnelOf(t, Options{}), Request{Tool: tool(tools.Tool{Name: "jq", Paged: true}, func(_ context.Context, out tools.Output) error {
			for _, row := range before {
				if err := out.Page().Row([]byte(row), tools.Call{}); err != nil {
					return err
				}
			}
			err := out.Page().TruncatedRow(
				end, end, 5_000_000, tools.Call{Tool: "jq", Args: grepArgs{Source: "a", Offset: int64(len(before))}},
			)
			out.Page().SetRowRange(0, int64(len(before)+1))
			if errors.Is(err, tools.ErrPageFull) {
				err = nil
			}
			return err
		})})
	}
	a := cut()
	if len(a.Blocks) != 2 || a.Receipts[0].Complete ||
		!strings.HasPrefix(a.Blocks[0].Text, "showing 0-0 of 1; row 0 is cut in its middle, whole: jq {") {
		t.Fatalf("%+v %.300q", a.Receipts[0], texted(a))
	}
	m := regexp.MustCompile(`^(é+)… (\d+) chars …(é+)$`).FindStringSubmatch(a.Blocks[1].Text)
	if m == nil {
		t.Fatalf("%.100q", a.Blocks[1].Text)
	}
	if left, _ := strconv.Atoi(m[2]); left+utf8.RuneCountInString(m[1])+utf8.RuneCountInString(m[3]) != 5_000_000+tools.MaxRowEdge {
		t.Errorf("%s chars left out between %d and %d bytes", m[2], len(m[1]), len(m[3]))
	}
	if a := cut("first"); len(a.Blocks) != 2 || a.Blocks[1].Text != "first" || a.Receipts[0].Complete {
		t.Errorf("%+v %.300q", a.Receipts[0], texted(a))
	}
}

func TestRowLongerThanAPageIsCutAndTheWayToItNamed(t *testing.T) {
	for name, long := range map[string]string{
		"letters":            strings.Repeat("abcdefghij ", 20_000),
		"one JSON line":      `{"a":"` + strings.Repeat("x y z ", 30_000) + `"}`,
		"many tokens a char": strings.Repeat("語\u202e", 15_000),
		"no valid text":      strings.Repeat("\xff", 50_000),
	} {
		t.Run(name, func(t *testing.T) {
			rows := []string{long, "after"}
			f := funnelOf(t, Options{})
			more := func(i int) tools.Call {
				return tools.Call{Tool: "slice", Args: struct {
					Source string `json:"source"`
					Lines  string `json:"lines"`
				}{"a.txt", fmt.Sprint(i + 1)}}
			}
			a := answered(t, f, Request{Tool: pager(rows, 0, true, more)})
			want := `showing 0-0 of 2; row 0 is cut in its middle, whole: slice {"source":"a.txt","lines":"1"}; next: grep {"source":"obs:k3v9q2m7x4ab","pattern":"<a>","offset":1}`
			if len(a.Blocks) != 2 || a.Blocks[0].Text != want {
				t.Fatalf("%.300q", texted(a))
			}
			r := a.Receipts[0]
			if r.ShownTokens > 4000 || r.ShownTokens < 2000 || utf8.RuneCountInString(a.Blocks[1].Text) > policy.MaxPageChars ||
				r.Complete {
				t.Errorf("%d tokens, %d chars", r.ShownTokens, utf8.RuneCountInString(a.Blocks[1].Text))
			}
			if !regexp.MustCompile(`… \d+ chars …`).MatchString(a.Blocks[1].Text) {
				t.Error("what is left out is not counted")
			}
			last := answered(t, f, Request{Tool: pager(rows, 1, true, more)})
			expect.Equal(t, texted(last), "showing 1-1 of 2\n===\nafter")
		})
	}
}

func TestLongRowBehindOthersWaitsForTheNextPage(t *testing.T) {
	rows := []string{"first", strings.Repeat("abc def ", 10_000), "last"}
	a := answered(t, funnelOf(t, Options{}), Request{Tool: pager(rows, 0, true, noMore)})
	if !strings.HasPrefix(texted(a), "showing 0-0 of 3; next: ") || a.Blocks[1].Text != "first" {
		t.Errorf("%.300q", texted(a))
	}
}

func TestNoRows(t *testing.T) {
	f := funnelOf(t, Options{})
	expect.Equal(t, texted(answered(t, f, Request{Tool: pager(nil, 0, true, noMore)})), "no rows")
	if got := texted(
		answered(t, f, Request{Tool: pager(rowsOf(3), 50, true, noMore)}),
	); got != "showing none of 3 from 50 on" {
		t.Errorf("%q", got)
	}
	a := answered(t, f, Request{Tool: tool(tools.Tool{Paged: true}, func(_ context.Context, out tools.Output) error {
		out.Note("no match in 4711 lines")
		return nil
	})})
	expect.Equal(t, texted(a), "note: no match in 4711 lines")
	a = answered(t, f, Request{Tool: tool(tools.Tool{Paged: true}, func(_ context.Context, out tools.Output) error {
		return out.Page().Row(nil, tools.Call{})
	})})
	if texted(a) != "" || a.Receipts[0].Complete != true {
		t.Errorf("one empty row: %q", texted(a))
	}
}

func TestNoteStandsBehindTheHeaderOrTheRows(t *testing.T) {
	f := funnelOf(t, Options{})
	noted := func(n int) tools.Tool {
		inner := pager(rowsOf(n), 0, true, noMore)
		return tool(tools.Tool{Name: "grep", Paged: true}, func(ctx context.Context, out tools.Output) error {
			out.Note("of a file that changed meanwhile")
			return inner.Run(ctx, tools.Input{Args: []byte(`{}`)}, out)
		})
	}
	if got := texted(
		answered(t, f, Request{Tool: noted(2)}),
	); got != strings.Join(rowsOf(2), "\n")+"\nnote: of a file that changed meanwhile" {
		t.Errorf("%q", got)
	}
	if a := answered(t, f, Request{Tool: noted(2000)}); !strings.HasPrefix(a.Blocks[0].Text, "showing 0-") ||
		!strings.HasSuffix(a.Blocks[0].Text, "\nnote: of a file that changed meanwhile") {
		t.Errorf("%q", a.Blocks[0].Text)
	}
}

func TestVeryLongArgumentsAreNotRepeated(t *testing.T) {
	pattern := strings.Repeat("long pattern ", 200)
	f := funnelOf(t, Options{})
	paged := tools.New(tools.Tool{Name: "grep", Paged: true}, func(_ context.Context, _ grepArgs, _ tools.Input, out tools.Output) error {
		_ = out.Page().Row([]byte("a row"), tools.Call{})
		out.Page().SetRowRange(0, 9)
		out.Page().Next(tools.Call{Tool: "grep", Args: grepArgs{Source: "a", Pattern: pattern, Offset: 1}})
		return nil
	})
	args, err := content.PlainJSON(grepArgs{Source: "a", Pattern: pattern})
	expect.Must(t, err)
	a := answered(t, f, Request{Tool: paged, Args: args})
	expect.Equal(t, a.Blocks[0].Text, `showing 0-0 of 9; next: the same grep with {"offset":1}`)
}

func TestSpacedArgumentsAreNotTakenForOthers(t *testing.T) {
	f := funnelOf(t, Options{})
	long := strings.Repeat("é long <pattern> ", 3000)
	asked := func(args string, next any) string {
		paged := tools.Tool{Name: "jq", Paged: true, Run: func(_ context.Context, _ tools.Input, out tools.Output) error {
			_ = out.Page().Row([]byte("a row"), tools.Call{})
			out.Page().SetRowRange(0, 9)
			out.Page().Next(tools.Call{Tool: "jq", Args: next})
			return nil
		}}
		return answered(t, f, Request{Tool: paged, Args: []byte(args)}).Blocks[0].Text
	}
	escaped := strings.ReplaceAll(long, "é", `\u00e9`)
	type filter struct {
		Filter string         `json:"filter"`
		Args   map[string]any `json:"args,omitempty"`
		Offset int            `json:"offset,omitempty"`
	}
	const start = "showing 0-0 of 9; next: the same jq with "
	for _, c := range []struct {
		name, args, want string
		next             filter
	}{
		{"spaces", `{ "args" : { "b" : [1, 2],  "a" : "` + escaped + `" }, "filter":"."}`, `{"offset":2}`,
			filter{".", map[string]any{"a": long, "b": []int{1, 2}}, 2}},
		{"a long one has changed", `{"filter":"` + long +
			`"}`, `{"offset":2}, what is too long to repeat left out`, filter{long + "x", nil, 2}},
		{"one is left out", `{"filter":"` + long + `","slurp":true}`, `{"offset":2}, without slurp`, filter{long, nil, 2}},
		{"arguments that cannot be read", `[`, `{"offset":2}, what is too long to repeat left out`, filter{long, nil, 2}},
	} {
		expect.Equal(t, asked(c.args, c.next), start+c.want, c.name)
	}
}

// Whatever the arguments and notes are, header and rows together are a page.
func TestHeaderAndRowsAreWithinThePage(t *testing.T) {
	f := funnelOf(t, Options{})
	text := rapid.Custom(func(t *rapid.T) string {
		return strings.Repeat(
			rapid.SampledFrom([]string{"a", "word ", "語", "\u202e", "\x1b", "<&>", "\"\\", "\n"}).Draw(t, "unit"),
			rapid.SampledFrom([]int{0, 1, 30, 200, 900, 60_000}).Draw(t, "times"),
		)
	})
	long := 0
	rapid.Check(t, func(t *rapid.T) {
		made := map[string]any{
			"source": text.Draw(t, "source"), "args": map[string]any{text.Draw(t, "name"): text.Draw(t, "value")},
			text.Draw(t, "unknown"): 1,
		}
		next := map[string]any{
			"source": made["source"], "args": made["args"], "filter": text.Draw(t, "filter"),
			"offset": rapid.Int64Range(0, 1<<53).Draw(t, "offset"),
		}
		args, err := json.MarshalIndent(made, "", "  ")
		expect.Must(t, err)
		long = max(long, len(args))
		row, note := text.Draw(t, "row"), text.Draw(t, "note")
		paged := tools.Tool{Name: "jq", Paged: true, Run: func(_ context.Context, _ tools.Input, out tools.Output) error {
			out.Note(note)
			for range 30_000 {
				if out.Page().Row([]byte(row), tools.Call{Tool: "slice", Args: next}) != nil {
					break
				}
			}
			out.Page().SetRowRange(1, -1)
			out.Page().Next(tools.Call{Tool: "jq", Args: next})
			return nil //nolint:nilerr // a full page is no failure
		}}
		limit := rapid.SampledFrom([]int{400, 1000, 4000, 40_000}).Draw(t, "page tokens")
		a, err := f.Call(context.Background(), Request{Tool: paged, Args: args, Limits: Limits{PageTokens: limit}})
		expect.Must(t, err)
		chars := 0
		for _, b := range a.Blocks {
			chars += utf8.RuneCountInString(b.Text)
		}
		if n := a.Receipts[0].ShownTokens; n > int64(limit) || chars > policy.MaxPageChars {
			t.Fatalf("%d tokens and %d chars on a page of %d tokens; header:\n%.2000s", n, chars, limit, a.Blocks[0].Text)
		}
		if !strings.Contains(a.Blocks[0].Text, fmt.Sprintf(`"offset":%d`, next["offset"])) {
			t.Fatalf("the way on is lost: %.2000s", a.Blocks[0].Text)
		}
	})
	if long < 60_000 {
		t.Error("no long arguments were drawn: the test has lost its subject")
	}
}

func TestPagedToolThatWrites(t *testing.T) {
	s := storeIn(t, observations.Options{})
	f := funnelOf(t, Options{Store: s})
	// A file of up to a page is shown whole, though it is over the limits of an output.
	file := numbered(150)
	for _, paged := range []bool{true, false} {
		a := answered(t, f, Request{Tool: tool(tools.Tool{Name: "read", Paged: paged}, func(_ context.Context, out tools.Output) error {
			out.Source("a.txt")
			_, err := out.Write(file)
			return err
		})})
		if texted(a) != string(file) || !a.Receipts[0].Complete {
			t.Errorf("paged %t: %.200q", paged, texted(a))
		}
	}
	a := answered(t, f, Request{Tool: tool(tools.Tool{Name: "read", Paged: true}, writes(numbered(9000)))})
	if !strings.HasPrefix(texted(a), "LARGE OUTPUT DETECTED: not kept (it stands in its source)\n") {
		t.Errorf("%.200q", texted(a))
	}
	expect.Equal(t, observed(t, s), 0, "observations")
}

// TestPageShrinksToWhatIsLeft reads pages until the context that the client reported is full: later notices are one
// line.
func TestPageShrinksToWhatIsLeft(t *testing.T) {
	f := funnelOf(t, Options{Policy: Policy{Window: 1000}})
	expect.Must(t, f.accounts.report(Session{}, usage.Usage{Source: "claude"}))
	var notices []string
	for range 12 {
		left := 1000 - f.Spent(Session{})
		a := answered(t, f, Request{Tool: pager(rowsOf(1204), 0, true, noMore)})
		r := a.Receipts[0]
		if strings.HasPrefix(texted(a), contextFull) {
			notices = append(notices, texted(a))
			continue
		}
		if r.ShownTokens > int64(left) || r.Lines == 0 {
			t.Errorf("a page of %d tokens, %d left", r.ShownTokens, left)
		}
	}
	if len(notices) < 2 || !strings.Contains(notices[0], "(reported by claude)") ||
		notices[len(notices)-1] != contextFull+"not shown" {
		t.Errorf("%q", notices)
	}
}

func TestPageOfATimeoutShowsWhatWasFound(t *testing.T) {
	deadline := newDue(t)
	a, err := funnelOf(t, Options{}).Call(deadline, Request{Args: []byte(`{}`), Tool: tool(tools.Tool{Name: "grep", Paged: true}, func(ctx context.Context, out tools.Output) error {
		_ = out.Page().Row([]byte("found"), tools.Call{})
		deadline.pass()
		<-ctx.Done()
		return ctx.Err()
	})})
	if err != nil || !regexp.MustCompile(
		`^error: grep timed out after (1m0s|5\ds); what was found until then follows\n===\nfound$`,
	).MatchString(texted(a)) || !a.Failed || a.Receipts[0].Complete {
		t.Errorf("%v %q", err, texted(a))
	}
}

func TestPageNeverPassesItsBounds(t *testing.T) {
	f := funnelOf(t, Options{})
	rapid.Check(t, func(t *rapid.T) {
		var rows []string
		for _, b := range rapid.SliceOfN(texttest.Outputs(), 0, 30).Draw(t, "rows") {
			rows = append(rows, strings.TrimSuffix(string(b), "\n"))
		}
		tokens := rapid.IntRange(400, 6000).Draw(t, "page tokens")
		a, err := f.Call(
			context.Background(),
			Request{
				Args: []byte(`{}`), Tool: pager(rows, 0, rapid.Bool().Draw(t, "counted"), noMore),
				Limits: Limits{PageTokens: tokens},
			},
		)
		expect.Must(t, err)
		last := a.Blocks[len(a.Blocks)-1].Text
		if n := a.Receipts[0].ShownTokens; n > int64(tokens) {
			t.Fatalf("a page of %d tokens, limit %d", n, tokens)
		}
		if n := utf8.RuneCountInString(last); n > policy.MaxPageChars+policy.MinReceipt {
			t.Fatalf("%d chars", n)
		}
	})
}
