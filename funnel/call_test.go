package funnel

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

type runFunc func(ctx context.Context, out tools.Output) error

// tool is a real tool that does what run does.
func tool(t tools.Tool, run runFunc) tools.Tool {
	if t.Name == "" {
		t.Name = "fetch"
	}
	return tools.New(
		t, func(ctx context.Context, _ struct{}, _ tools.Input, out tools.Output) error { return run(ctx, out) },
	)
}

func writes(b []byte) runFunc {
	return func(_ context.Context, out tools.Output) error {
		_, err := out.Write(b)
		return err
	}
}

func storeIn(t testing.TB, o observations.Options) *observations.Store {
	t.Helper()
	o.Dir = filepath.Join(t.TempDir(), "store")
	if o.MinFree == 0 {
		o.MinFree = 1 << 20
	}
	s, err := observations.OpenStore(o)
	expect.Must(t, err)
	return s
}

func funnelOf(t testing.TB, o Options) *Funnel {
	t.Helper()
	f, err := New(o)
	expect.Must(t, err)
	return f
}

func answered(t testing.TB, f *Funnel, r Request) Answer {
	t.Helper()
	if r.Args == nil {
		r.Args = json.RawMessage(`{}`)
	}
	a, err := f.Call(t.Context(), r)
	expect.Must(t, err, "call")
	if len(a.Receipts) == 0 {
		t.Fatal("an answer without a receipt")
	}
	var shown int64
	for _, b := range a.Blocks {
		if b.MIME != "" {
			continue
		}
		shown += int64(f.options.Counter.Count(b.Text))
		expect.Equal(t, content.Visible(b.Text, false), b.Text, "hidden characters in what is shown")
	}
	expect.Equal(t, shown, a.Receipts[0].ShownTokens, "shown_tokens, blocks")
	return a
}

func texted(a Answer) string {
	var parts []string
	for _, b := range a.Blocks {
		parts = append(parts, b.Text)
	}
	return strings.Join(parts, "\n===\n")
}

func kept(t testing.TB, s *observations.Store, r Receipt) []byte {
	t.Helper()
	rd, err := s.Open(observations.Local, observations.ID(r.ObservationID))
	expect.Must(t, err, "receipt's observation")
	defer func() { _ = rd.Close() }()
	b, err := io.ReadAll(io.NewSectionReader(rd, 0, rd.Size()))
	expect.Must(t, err)
	return b
}

func observed(t testing.TB, s *observations.Store) int {
	t.Helper()
	l, err := s.List("", true)
	expect.Must(t, err)
	return len(l)
}

func numbered(n int) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, "line %d of the output, with something to read in it\n", i+1)
	}
	return b.Bytes()
}

func TestSmallOutputIsPassedOnUnchangedAndNotKept(t *testing.T) {
	s := storeIn(t, observations.Options{})
	f := funnelOf(t, Options{Store: s})
	for _, out := range []string{"one line", "two\nlines\n", `{"a": 1}`, strings.Repeat("x\n", 50), strings.Repeat("x", 2000)} {
		a := answered(t, f, Request{Tool: tool(tools.Tool{}, writes([]byte(out)))})
		r := a.Receipts[0]
		if texted(a) != out || !r.Complete || r.Kept || r.Truncated || a.Failed || r.Status != "success" {
			t.Errorf("%.40q: %.80q, %+v", out, texted(a), r)
		}
	}
	expect.Equal(t, observed(t, s), 0, "observations of small outputs")
}

func TestLargeOutputIsKeptAndAnsweredWithItsReceipt(t *testing.T) {
	s := storeIn(t, observations.Options{})
	f := funnelOf(t, Options{Store: s})
	out := numbered(1204)
	a := answered(t, f, Request{Tool: tool(tools.Tool{}, writes(out))})
	r := a.Receipts[0]
	if !r.Kept || r.Complete || r.Truncated || r.URI != "observation://"+r.ObservationID || r.SavedTo != "" {
		t.Errorf("receipt %+v", r)
	}
	if !bytes.Equal(kept(t, s, r), out) {
		t.Error("what is kept is not what was written")
	}
	if sum := sha256.Sum256(out); r.SHA256 != hex.EncodeToString(sum[:]) {
		t.Errorf("sha256 %s", r.SHA256)
	}
	text := texted(a)
	lines := strings.Split(text, "\n")
	expect.Equal(t, lines[0], "LARGE OUTPUT DETECTED: kept whole as obs:"+r.ObservationID, "first line")
	if want := fmt.Sprintf(
		"total: 1204 lines, %d chars, %d tokens; text", r.Chars, r.Tokens,
	); !strings.HasPrefix(lines[1], want) {
		t.Errorf("second line %q, want %q", lines[1], want)
	}
	if want := "next: direct jq, grep or slice at source obs:" + r.ObservationID +
		" (for jq, a record is a line {line, text}); do not read it whole"; lines[len(lines)-1] != want {
		t.Errorf("last line %q, want %q", lines[len(lines)-1], want)
	}
	for _, want := range []string{"\n--- head: 1-10 of 1204 ---\nline 1 of", "\n--- 1189 lines not shown ---\n--- tail: 1200-1204 ---\nline 1200 of"} {
		expect.Contains(t, text, want)
	}
	expect.Equal(t, mustOpen(t, s, r).Stats.Receipt, text, "receipt kept")
}

func mustOpen(t testing.TB, s *observations.Store, r Receipt) observations.Observation {
	t.Helper()
	rd, err := s.Open(observations.Local, observations.ID(r.ObservationID))
	expect.Must(t, err)
	defer func() { _ = rd.Close() }()
	return rd.Observation
}

func TestLargeIsOverTheLimitsNotAtThem(t *testing.T) {
	f := funnelOf(t, Options{})
	// Long words, so that no receipt is as cheap as the whole.
	fifty := strings.Repeat("internationalization of characters 4711 0815\n", 50)
	for name, c := range map[string]struct {
		out    string
		limits Limits
		whole  bool
	}{
		"50 lines of over 2,000 chars":     {fifty, Limits{}, false},
		"50 lines, more chars allowed":     {fifty, Limits{LargeChars: 3000}, true},
		"51 lines":                         {fifty + "x", Limits{LargeChars: 3000, ReceiptTokens: 200}, false},
		"51 lines allowed":                 {fifty + "x", Limits{LargeChars: 3000, LargeLines: 51}, true},
		"2,001 chars on one line":          {strings.Repeat("0815 ", 400) + "x", Limits{ReceiptTokens: 160}, false},
		"2,000 chars that are 6,000 bytes": {strings.Repeat("語", 2000), Limits{}, true},
	} {
		a := answered(t, f, Request{Tool: tool(tools.Tool{}, writes([]byte(c.out))), Limits: c.limits})
		expect.Equal(t, a.Receipts[0].Complete, c.whole, "%s: complete, %.200s", name, texted(a))
	}
}

// What counts is the text as it would be shown: records are shown as rows, without their keys.
func TestLargeIsWhatWouldBeShown(t *testing.T) {
	f := funnelOf(t, Options{})
	hits := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `{"file":"internal/a%d.go","line":%d,"text":"\tTODO: %d"}`+"\n", i/10, i, i)
		}
		return b.String()
	}
	for n, whole := range map[int]bool{40: true, 45: true, 46: false} { // with the line of each file
		out := hits(n)
		a := answered(
			t,
			f,
			Request{Tool: tool(tools.Tool{Name: "search"}, writes([]byte(out))), Limits: Limits{ReceiptTokens: 160}},
		)
		if a.Receipts[0].Complete != whole || len(out) < 2000 {
			t.Errorf("%d hits in %d chars: complete %t\n%s", n, len(out), a.Receipts[0].Complete, texted(a))
		}
	}
}

// A receipt must save the share of the output's tokens that the operator set.
func TestAReceiptMustPay(t *testing.T) {
	f := funnelOf(t, Options{})
	out := string(numbered(60)) // about 900 tokens; its smallest receipt has 160
	count := f.options.Counter.Count
	for _, saving := range []int{0, 1, 40, 80, 90} {
		a := answered(t, f, Request{
			Tool: tool(tools.Tool{}, writes([]byte(out))), Limits: Limits{ReceiptTokens: 400, MinSaving: saving},
		})
		want := saving
		if want == 0 {
			want = 40
		}
		shown := count(texted(a))
		if whole := texted(a) == out; !whole && 100*shown > (100-want)*count(out) || whole && saving <= 1 {
			t.Errorf("min saving %d: %d of %d tokens shown, whole %t", saving, shown, count(out), whole)
		}
	}
	whole := answered(t, f, Request{
		Tool: tool(tools.Tool{}, writes([]byte(out))), Limits: Limits{ReceiptTokens: 400, MinSaving: 90},
	})
	if texted(whole) != out {
		t.Errorf("a receipt that cannot save 90 %% is shown:\n%s", texted(whole))
	}
}

func TestNeverWorseThanTheOutput(t *testing.T) {
	f := funnelOf(t, Options{Store: storeIn(t, observations.Options{})})
	for name, out := range map[string]string{
		"many short lines": strings.Repeat("a\n", 60),
		"blank lines":      strings.Repeat("\n", 900),
		"spaces":           strings.Repeat(" ", 8_000),
	} {
		a := answered(t, f, Request{Tool: tool(tools.Tool{}, writes([]byte(out)))})
		if texted(a) != out || a.Receipts[0].Kept {
			t.Errorf("%s: %.200q", name, texted(a))
		}
	}
}

func TestFirstLineSaysWhatBecameOfTheOutput(t *testing.T) {
	big := numbered(5000)
	failing := storeIn(t, observations.Options{Quota: 1000, MaxObservation: 1 << 20})
	cases := []struct {
		name    string
		options Options
		request Request
		want    string // regexp
	}{
		{"no store", Options{}, Request{Tool: tool(tools.Tool{}, writes(big))}, `^not kept \(there is no store\)$`},
		{"keeping not wanted", Options{Store: storeIn(t, observations.Options{})}, Request{
			Tool: tool(tools.Tool{}, writes(big)), Keep: Never,
		}, `^not kept \(keeping was not asked for\)$`},
		{"a cap", Options{
			Store: storeIn(t, observations.Options{MaxObservation: 100_000}),
		}, Request{Tool: tool(tools.Tool{}, writes(big))}, `^kept in part as obs:[0-9a-z]{12} \(first 100000 bytes\)$`},
		{"no room", Options{Store: failing}, Request{
			Tool: tool(tools.Tool{}, writes(big)),
		}, `^not kept \(no room in the store: its quota of 1000 bytes is used up \(--quota\)\)$`},
		{
			"a source",
			Options{Store: storeIn(t, observations.Options{})},
			Request{Tool: tool(tools.Tool{Paged: true}, func(_ context.Context, out tools.Output) error {
				out.Source("docs/big.txt")
				_, err := out.Write(big)
				return err
			})},
			`^read from docs/big\.txt$`,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := funnelOf(t, c.options)
			a := answered(t, f, c.request)
			first, _, _ := strings.Cut(texted(a), "\n")
			subject, ok := strings.CutPrefix(first, "LARGE OUTPUT DETECTED: ")
			if !ok || !regexp.MustCompile(c.want).MatchString(subject) {
				t.Errorf("first line %q, want %s", first, c.want)
			}
			r := a.Receipts[0]
			expect.Equal(t, r.Kept, strings.Contains(first, ": kept "), "%q, and kept", first)
			if strings.Contains(first, "in part") {
				if !r.Truncated ||
					!bytes.Equal(kept(t, c.options.Store, r), big[:mustOpen(t, c.options.Store, r).Bytes]) {
					t.Errorf("kept in part: %+v", r)
				}
			}
			if r.Bytes != int64(len(big)) || r.Lines != 5000 {
				t.Errorf("the totals are not of all of it: %+v", r)
			}
		})
	}
	a := answered(t, funnelOf(t, cases[4].options), cases[4].request)
	last := texted(a)[strings.LastIndex(texted(a), "\n")+1:]
	if last != "next: direct jq, grep or slice at source docs/big.txt "+
		"(for jq, a record is a line {line, text}); do not read it whole" {
		t.Errorf("last line %q", last)
	}
	expect.Equal(t, observed(t, cases[4].options.Store), 0, "observations of what stands in a file")
}

func TestSavedToIsNamedOnlyWhereAskedFor(t *testing.T) {
	s := storeIn(t, observations.Options{})
	for _, saved := range []bool{false, true} {
		f := funnelOf(t, Options{Store: s, SavedTo: saved})
		a := answered(t, f, Request{Tool: tool(tools.Tool{}, writes(numbered(600)))})
		r := a.Receipts[0]
		if got := strings.Contains(texted(a), "\nsaved to: "+r.SavedTo+"\n"); got != saved ||
			(r.SavedTo != "") != saved {
			t.Errorf("saved to %q, in the text %t, want %t", r.SavedTo, got, saved)
		}
		if saved {
			if b, err := os.ReadFile(r.SavedTo); err != nil || !bytes.Equal(b, numbered(600)) {
				t.Errorf("the file named: %v", err)
			}
		}
		if strings.Contains(mustOpen(t, s, r).Stats.Receipt, "saved to") {
			t.Error("the receipt that is kept names a path")
		}
	}
}

func TestHintNamesOnlyWhatIsOffered(t *testing.T) {
	for _, c := range []struct {
		offered []string
		want    string
	}{
		{[]string{"search", "grep", "slice", "jq"}, "next: direct jq, grep or slice at source docs " +
			"(for jq, a record is a line {line, text}); do not read it whole"},
		{[]string{"slice", "grep"}, "next: direct grep or slice at source docs; do not read it whole"},
		{[]string{"slice"}, "next: direct slice at source docs; do not read it whole"},
		{[]string{"search"}, "next: do not read it whole"},
	} {
		f := funnelOf(t, Options{Offered: c.offered})
		a := answered(t, f, Request{Tool: tool(tools.Tool{}, func(_ context.Context, out tools.Output) error {
			out.Source("docs")
			_, err := out.Write(numbered(1000))
			return err
		})})
		if text := texted(a); text[strings.LastIndex(text, "\n")+1:] != c.want {
			t.Errorf("%v: %q", c.offered, text[strings.LastIndex(text, "\n")+1:])
		}
	}
}

func TestKeepAlways(t *testing.T) {
	s := storeIn(t, observations.Options{})
	f := funnelOf(t, Options{Store: s})
	a := answered(
		t, f, Request{Tool: tool(tools.Tool{Name: "keep"}, writes([]byte("little"))), Keep: Always, Name: "a name"},
	)
	r := a.Receipts[0]
	if texted(a) != "little" || !r.Kept || !r.Complete || string(kept(t, s, r)) != "little" {
		t.Errorf("%q %+v", texted(a), r)
	}
	if o := mustOpen(t, s, r); o.Name != "a name" || o.Tool != "keep" ||
		!strings.HasPrefix(o.Stats.Receipt, "SAVED as obs:") {
		t.Errorf("%+v", o)
	}
}

func TestToolThatAsksForKeepingIsAnsweredWithAReceipt(t *testing.T) {
	s := storeIn(t, observations.Options{})
	f := funnelOf(t, Options{Store: s})
	for _, rows := range []int{1, 3, 20_000} {
		a := answered(
			t,
			f,
			Request{Tool: tool(tools.Tool{Name: "grep", Paged: true}, func(_ context.Context, out tools.Output) error {
				out.Keep("obs:k3v9q2m7x4ab", "src/a.go")
				for i := range rows {
					if err := out.Page().Row([]byte(strconv.Itoa(i)+": row"), tools.Call{}); err != nil {
						return err
					}
				}
				return nil
			})},
		)
		r := a.Receipts[0]
		want := "SAVED as obs:" + r.ObservationID
		if rows < 20_000 {
			want = "SAVED as obs:" + r.ObservationID + ": " + content.Plural(int64(rows), "line", "lines") + ", all of "
		}
		if r.Complete != (rows < 20_000) || len(a.Blocks) != 1+map[bool]int{true: 1}[r.Complete] {
			t.Errorf("%d rows: complete %t, %d blocks", rows, r.Complete, len(a.Blocks))
		}
		if r.Complete && a.Blocks[1].Text != string(kept(t, s, r)) {
			t.Errorf("%q is not all of it", a.Blocks[1].Text)
		}
		if !strings.HasPrefix(texted(a), want) || !r.Kept || r.Lines != int64(rows) {
			t.Errorf("%d rows: %s", rows, texted(a))
		}
		expect.Same(t, mustOpen(t, s, r).Origin, []string{"obs:k3v9q2m7x4ab", "src/a.go"})
		expect.Equal(t, bytes.Count(kept(t, s, r), []byte("\n")), rows, "rows kept")
	}
	before := observed(t, s)
	a := answered(
		t,
		f,
		Request{Tool: tool(tools.Tool{Name: "jq", Paged: true}, func(_ context.Context, out tools.Output) error {
			out.Keep("obs:k3v9q2m7x4ab")
			out.Note("no results")
			return nil
		})},
	)
	if texted(a) != "note: no results" || observed(t, s) != before {
		t.Errorf("nothing to keep: %q", texted(a))
	}
}

func TestWhatWasToBeKeptIsShownWholeOnlyWhereThatIsCheaper(t *testing.T) {
	s := storeIn(t, observations.Options{})
	f := funnelOf(t, Options{Store: s})
	keeps := func(out string, note string) Request {
		return Request{Tool: tool(tools.Tool{Name: "jq", Paged: true}, func(_ context.Context, o tools.Output) error {
			o.Keep("obs:k3v9q2m7x4ab")
			o.Note(note)
			_, err := o.Write([]byte(out))
			return err
		})}
	}
	a := answered(t, f, keeps("400\n", ""))
	r := a.Receipts[0]
	if want := "SAVED as obs:" + r.ObservationID + ": 1 line, all of it below\n===\n400\n"; texted(a) != want ||
		!r.Complete || !r.Kept {
		t.Errorf("%q %+v", texted(a), r)
	}
	if got := mustOpen(t, s, r).Stats.Receipt; !strings.HasPrefix(
		got, "SAVED as obs:"+r.ObservationID+"\n",
	) {
		t.Errorf("the receipt kept: %q", got)
	}
	a = answered(t, f, keeps("400\nnote: not ours", "of a file that changed"))
	if want := "SAVED as obs:" + a.Receipts[0].ObservationID +
		": 2 lines, all of them below\nnote: of a file that changed\n===\n400\n>note: not ours\n"; texted(a) != want {
		t.Errorf("%q", texted(a))
	}
	for lines := 1; lines < 40; lines++ {
		out := string(numbered(lines))
		a := answered(t, f, keeps(out, ""))
		whole := f.options.Counter.Count(out)
		if n := a.Receipts[0].ShownTokens; a.Receipts[0].Complete != (len(a.Blocks) == 2) || n > int64(whole)+40 ||
			a.Receipts[0].Complete && a.Blocks[1].Text != out {
			t.Errorf("%d lines: %d tokens for %d, complete %t", lines, n, whole, a.Receipts[0].Complete)
		}
	}
	a = answered(t, f, keeps(string(numbered(200)), ""))
	if !strings.HasPrefix(texted(a), "SAVED as obs:") || a.Receipts[0].Complete {
		t.Errorf("%q", texted(a))
	}
	// What could not be kept says so in the same place.
	a = answered(t, funnelOf(t, Options{}), keeps("400\n", ""))
	if texted(a) != "not kept (there is no store): 1 line, all of it below\n===\n400\n" || a.Receipts[0].Kept {
		t.Errorf("%q", texted(a))
	}
}

func TestImagesPassAndTheTooLargeAreTold(t *testing.T) {
	f := funnelOf(t, Options{})
	png := bytes.Repeat([]byte{0x89, 'P', 0, 0xff}, 100)
	a := answered(t, f, Request{Tool: tool(tools.Tool{Paged: true}, func(_ context.Context, out tools.Output) error {
		w := out.Part("image/png", "a\x1b.png")
		_, _ = w.Write(png[:100])
		_, _ = w.Write(png[100:])
		_, err := io.Copy(out.Part("image/jpeg", "huge.jpg"), io.LimitReader(zeros{}, maxImage+1))
		return err
	})})
	want := []Block{
		{Text: "note: huge.jpg is over 5 MiB and is not shown"}, {MIME: "image/png", Name: `a\x1b.png`, Data: png},
	}
	expect.Same(t, a.Blocks, want)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestNotesAreAlwaysShown(t *testing.T) {
	f := funnelOf(t, Options{})
	noted := func(b []byte) runFunc {
		return func(_ context.Context, out tools.Output) error {
			out.Note("3 directories could not be read")
			_, err := out.Write(b)
			return err
		}
	}
	if got := texted(
		answered(t, f, Request{Tool: tool(tools.Tool{}, noted([]byte("a hit")))}),
	); got != "a hit\nnote: 3 directories could not be read" {
		t.Errorf("whole: %q", got)
	}
	if got := texted(
		answered(t, f, Request{Tool: tool(tools.Tool{}, noted(nil))}),
	); got != "note: 3 directories could not be read" {
		t.Errorf("nothing: %q", got)
	}
	for _, tokens := range []int{160, 600} {
		got := texted(
			answered(
				t,
				f,
				Request{Tool: tool(tools.Tool{}, noted(numbered(500))), Limits: Limits{ReceiptTokens: tokens}},
			),
		)
		if !strings.Contains(got, "\nnote: 3 directories could not be read\n") {
			t.Errorf("receipt of %d: %s", tokens, got)
		}
	}
	if got := texted(answered(t, f, Request{Tool: tool(tools.Tool{}, writes(nil))})); got != "no output" {
		t.Errorf("nothing at all: %q", got)
	}
}

func TestProgressIsPassedOnSparsely(t *testing.T) {
	var n atomic.Int64
	f := funnelOf(t, Options{})
	var late func()
	answered(
		t,
		f,
		Request{
			Progress: func(done, total int64, _ string) { n.Add(1) },
			Tool: tool(tools.Tool{}, func(_ context.Context, out tools.Output) error {
				for i := range 100_000 {
					out.Progress(int64(i), 100_000, "lines")
				}
				late = func() { out.Progress(1, 1, "late") }
				return nil
			}),
		},
	)
	if got := n.Load(); got < 1 || got > 20 {
		t.Errorf("%d of 100,000 reports passed on", got)
	}
	before := n.Load()
	time.Sleep(progressEvery + 20*time.Millisecond)
	if late(); n.Load() != before {
		t.Error("progress after the answer")
	}
}

// The latest report before a pause, and before the end, is passed on.
func TestTheLastReportIsPassedOn(t *testing.T) {
	got := make(chan int64, 200)
	answered(t, funnelOf(t, Options{}), Request{
		Progress: func(done, _ int64, _ string) { got <- done },
		Tool: tool(tools.Tool{}, func(ctx context.Context, out tools.Output) error {
			for i := range int64(100) {
				out.Progress(i, 200, "")
			}
			for at := int64(-1); at < 99; {
				select {
				case at = <-got:
				case <-time.After(time.Minute):
					t.Error("the last report before the pause is missing")
					return nil
				}
			}
			for i := range int64(100) {
				out.Progress(100+i, 200, "")
			}
			return nil
		}),
	})
	last := int64(0)
	for len(got) > 0 {
		last = <-got
	}
	expect.Equal(t, last, 199, "last report before the end")
}

// Reports of a tool that keeps the pace pass, however late some of them come; a flood is held back.
func TestPace(t *testing.T) {
	began := time.Now()
	for name, c := range map[string]struct {
		at           []time.Duration // in ms since the beginning
		atLeast, top int
	}{
		"even":               {[]time.Duration{0, 110, 220, 330}, 4, 4},
		"the first was late": {[]time.Duration{60, 110, 220, 330}, 4, 4},
		"all at once":        {[]time.Duration{330, 330, 330, 330}, 4, 4},
		"too early":          {[]time.Duration{0, 50, 99}, 1, 1},
		"a flood":            {slices.Collect(millis(0, 1000)), 10, 10},
		"a flood, late":      {slices.Collect(millis(100_000, 101_000)), 10, 21},
	} {
		p, passed := pace{next: began}, 0
		for _, at := range c.at {
			if p.allows(began.Add(at * time.Millisecond)) {
				passed++
			}
		}
		if passed < c.atLeast || passed > c.top {
			t.Errorf("%s: %d of %d passed, not %d to %d", name, passed, len(c.at), c.atLeast, c.top)
		}
	}
}

func millis(from, to time.Duration) iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		for at := from; at < to && yield(at); at++ {
		}
	}
}

func TestEveryCallIsTraced(t *testing.T) {
	dir := t.TempDir()
	l, err := trace.Open(dir)
	expect.Must(t, err)
	f := funnelOf(t, Options{Store: storeIn(t, observations.Options{}), Trace: l})
	big := answered(
		t, f, Request{Tool: tool(tools.Tool{Name: "a"}, writes(numbered(500))), Who: Session{ID: "s1"}},
	).Receipts[0]
	answered(
		t, f,
		Request{
			Tool: tool(
				tools.Tool{Name: "b"},
				func(context.Context, tools.Output) error { return errors.New("broken\n\x1b") },
			),
		},
	)
	expect.Must(t, l.Close())
	var calls []trace.Call
	files, _ := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	for _, name := range files {
		b, err := os.ReadFile(name)
		expect.Must(t, err)
		for line := range strings.Lines(string(b)) {
			var c trace.Call
			expect.Must(t, json.Unmarshal([]byte(line), &c))
			calls = append(calls, c)
		}
	}
	expect.MustEqual(t, len(calls), 2, "lines in %v", files)
	a, b := calls[0], calls[1]
	if a.Tool != "a" || a.Session != "s1" || a.Owner != "local" || !a.Kept || a.Observation != big.ObservationID ||
		a.SeenTokens != big.Tokens || a.ShownTokens != big.ShownTokens || a.Verdict != "ok" {
		t.Errorf("%+v", a)
	}
	if b.Status != "failure" || b.Error != `broken\x0a\x1b` || b.Kept {
		t.Errorf("%+v", b)
	}
}

func TestCountsGoIntoTheReceipt(t *testing.T) {
	f := funnelOf(t, Options{})
	a := answered(t, f, Request{Tool: tool(tools.Tool{Name: "search"}, func(_ context.Context, out tools.Output) error {
		out.Count("total_matches", 4321)
		out.Count("files_with_matches", 300)
		for i := range 300 {
			if _, err := fmt.Fprintf(out, "{\"file\":\"dir/file%d.go\",\"matches\":%d}\n", i, 300-i); err != nil {
				return err
			}
		}
		return nil
	})})
	r := a.Receipts[0]
	if r.Matches == nil || *r.Matches != 4321 || r.Files == nil || *r.Files != 300 {
		t.Errorf("%+v", r)
	}
	if !strings.Contains(texted(a), "; ndjson; 4321 matches in 300 files") ||
		strings.Contains(texted(a), "300 matches in") {
		t.Errorf("%s", texted(a))
	}
}
