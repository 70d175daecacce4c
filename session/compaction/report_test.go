package compaction_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/session/compaction"
	"github.com/mcp-funnel/mcp-funnel/session/transcript"
	"github.com/mcp-funnel/mcp-funnel/session/transcript/transcripttest"
)

// reported returns a session of Claude Code of so many results of 1,000 tokens, whose last answer reports a prompt.
func reported(results, prompt, output int, answer string) []byte {
	var out bytes.Buffer
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(&out, format+"\n", args...) }
	line(`{"type":"user","sessionId":"s","message":{"role":"user","content":"hi"}}`)
	for i := range results {
		line(`{"type":"assistant","message":{"role":"assistant","content":[{"type":"tool_use","id":"c%d","name":"n",`+
			`"input":{"n":%d}}]}}`, i, i)
		line(`{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c%d","content":%q}]}}`,
			i, strings.Repeat(" word", 1000-1)+fmt.Sprint(i%10))
	}
	line(`{"type":"assistant","message":{"role":"assistant","model":"claude-opus-4-7","id":"m%d","content":[%s],`+
		`"usage":{"input_tokens":%d,"output_tokens":%d}}}`, prompt, answer, prompt, output)
	return out.Bytes()
}

const ok = `{"type":"text","text":"ok"}`

// TestBudgetCoversTheReport checks that what the client reported and was not counted is a part of the budget, and that
// a result is known to fit only if its upper bound does.
func TestBudgetCoversTheReport(t *testing.T) {
	signed := `{"type":"thinking","thinking":"","signature":"` + strings.Repeat("c", 5000) + `"}`
	pdf := `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBE"}},` + ok
	document := transcripttest.Make(transcript.Anthropic, []transcripttest.Call{
		{ID: "a", Tool: "x", Result: strings.Repeat(" word", 3000)}, {ID: "b", Tool: "x", Result: "y"},
	})
	for _, c := range []struct {
		name   string
		text   []byte
		budget int
		margin float64
		want   string // of the error, or the doubt; "" if it is known to fit
	}{
		{"it fits", reported(10, 30_000, 1, ok), 31_000, 0, ""},
		{"the estimate is wide, and nothing is replaced", reported(10, 30_000, 1, ok), 31_000, 0.35, ""},
		{"outputs go", reported(10, 30_000, 1, ok), 25_000, 0, ""},
		{"outputs go, by an estimate", reported(10, 30_000, 1, ok), 27_000, 0.35, ""},
		{"no output is enough", reported(10, 30_000, 1, ok), 15_000, 0, "system prompt, definitions of tools"},
		{"known only by the estimate", reported(10, 30_000, 1, ok), 25_000, 0.6, "it may have up to"},
		{"the answer is long", reported(1, 30_000, 4000, ok), 31_000, 0, "it may have up to 34000 tokens"},
		{"the answer is encrypted", reported(1, 30_000, 1, signed), 31_000, 0, "it may have up to 35000 tokens"},
		{"no report", reported(10, 0, 0, ok), 9_000, 0, ""},
		{"a file and no report", reported(10, 0, 0, pdf), 9_000, 0, "line 22 has files or binary data"},
		{"a file since the report", reported(10, 30_000, 1, pdf), 99_000, 0, "line 22 has files or binary data"},
		{"a document of an API", document, 2500, 0, ""},
	} {
		tr := read(t, c.text)
		_, r, err := compact(tr, &compaction.Map{}, newKeeper(t), compaction.Options{
			Budget: c.budget, Keep: 1, Count: count, Margin: c.margin,
		})
		said := r.Doubt
		if err != nil {
			said = err.Error()
		}
		if !strings.Contains(said, c.want) || c.want == "" && (said != "" || r.Most > c.budget) {
			t.Errorf("%s: %q, want %q; %+v", c.name, said, c.want, r)
		}
		noted := strings.Contains(r.Note, "reports no usage")
		if err == nil && noted != strings.Contains(c.name, "no report") {
			t.Errorf("%s: note %q", c.name, r.Note)
		}
		if tr.Usage > 0 && r.Before < tr.Usage {
			t.Errorf("%s: %d tokens before, reported %d", c.name, r.Before, tr.Usage)
		}
	}
}

// TestReportOlderThanCompaction checks that a compacted session whose report is older than its pointers is counted as
// it was compacted, and one whose report is newer by that report.
func TestReportOlderThanCompaction(t *testing.T) {
	k, m := newKeeper(t), &compaction.Map{}
	o := compaction.Options{Budget: 26_000, Keep: 1, Count: count}
	out, first, err := compact(read(t, reported(10, 30_000, 1, ok)), m, k, o)
	if err != nil || first.Replaced == 0 {
		t.Fatalf("%v, %+v", err, first)
	}
	same, second, err := compact(read(t, out), m, k, o)
	if err != nil || second.Rest != first.Rest || second.After != first.After || !bytes.Equal(same, out) {
		t.Errorf("%v, %+v, first %+v", err, second, first)
	}
	answer := reported(0, first.After, 1, ok)
	grown := append(bytes.Clone(out), answer[bytes.IndexByte(answer, '\n')+1:]...)
	_, third, err := compact(read(t, grown), m, k, o)
	if err != nil || third.Before != first.After+1 || third.Rest > first.Rest {
		t.Errorf("%v, %+v, first %+v", err, third, first)
	}
}

// TestReportedBounds checks random sessions: the estimate lies below its upper bound, and neither is below what the
// report leaves after all that was replaced.
func TestReportedBounds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		prompt := rapid.IntRange(1, 40_000).Draw(rt, "prompt")
		text := reported(rapid.IntRange(0, 12).Draw(rt, "results"), prompt, rapid.IntRange(0, 3000).Draw(rt, "output"), ok)
		o := compaction.Options{
			Budget: rapid.IntRange(1, 40_000).Draw(rt, "budget"), Keep: rapid.IntRange(-1, 3).Draw(rt, "keep"), Count: count,
			Margin: rapid.SampledFrom([]float64{0, 0.25, 0.5}).Draw(rt, "margin"),
		}
		_, r, err := compact(read(rt, text), &compaction.Map{}, newKeeper(t), o)
		var over *compaction.BudgetError
		switch {
		case errors.As(err, &over):
			if over.Least <= o.Budget {
				rt.Fatal(err)
			}
		case err != nil:
			rt.Fatal(err)
		case r.After > r.Before, r.After < r.Rest, r.Most < r.After, r.After > o.Budget, r.Before < prompt,
			(r.Doubt == "") != (r.Most <= o.Budget):
			rt.Fatalf("%+v", r)
		}
	})
}

// TestReportFarTooLow checks that the larger figure counts where a report is far below the text, and that the note says
// so; a report that the error of the counts explains is believed.
func TestReportFarTooLow(t *testing.T) {
	for _, c := range []struct {
		prompt int
		margin float64
		before int // at least
		noted  bool
	}{
		{20_500, 0.35, 80_000, true}, {20_500, 0, 80_000, true}, {79_000, 0, 79_000, false}, {65_000, 0.25, 65_000, false},
		{50_000, 0.25, 80_000, true},
	} {
		_, r, err := compact(read(t, reported(80, c.prompt, 1, ok)), &compaction.Map{}, newKeeper(t), compaction.Options{
			Budget: 45_000, Keep: 1, Count: count, Margin: c.margin,
		})
		noted := strings.Contains(r.Note, fmt.Sprintf("the session reports %d tokens", c.prompt))
		if err != nil || r.Before < c.before || r.Replaced == 0 || noted != c.noted {
			t.Errorf("%+v: %v, %+v", c, err, r)
		}
	}
}
