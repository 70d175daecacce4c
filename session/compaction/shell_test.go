package compaction_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/session/compaction"
	"github.com/mcp-funnel/mcp-funnel/session/transcript"
	"github.com/mcp-funnel/mcp-funnel/session/transcript/transcripttest"
)

// shellJSON puts JSON around an output as Codex does: with Go's escapes, or with those of serde.
func shellJSON(output string, escape bool, failed bool) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(escape)
	_ = e.Encode(output)
	code := `0`
	if failed {
		code = `2`
	}
	return `{"output":` + strings.TrimSpace(out.String()) + `,"metadata":{"exit_code":` + code + `,"seconds":0.1}}`
}

// TestShellOutputsAreStoredAsText stores random outputs of Codex's shell without the JSON around them, and restores the
// rollout byte for byte.
func TestShellOutputsAreStoredAsText(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 7))
		output := transcripttest.Text(r, 4000)
		whole := shellJSON(output, rapid.Bool().Draw(rt, "escape"), false)
		if rapid.Bool().Draw(rt, "spaces") {
			whole = strings.Replace(whole, `":`, `" : `, 1)
		}
		format := rapid.SampledFrom([]transcript.Format{transcript.Codex, transcript.Responses}).Draw(rt, "format")
		text := transcripttest.Make(format, []transcripttest.Call{
			{ID: "a", Tool: "shell", Result: whole}, {ID: "b", Tool: "shell", Result: shellJSON(output, false, true)},
			{ID: "c", Tool: "shell", Result: "y"},
		})
		k, m := newKeeper(t), &compaction.Map{}
		tr := read(rt, text)
		o := compaction.Options{Budget: tr.Usage - 1, Keep: 1, Count: count}
		if tr.Usage == 0 {
			o.Budget = 3 * count(whole) / 2
		}
		out, report, err := compact(read(rt, text), m, k, o)
		if err != nil || report.Replaced != 1 || len(m.Swaps) != 1 {
			rt.Fatalf("%v, %+v", err, report)
		}
		expect.MustEqual(rt, string(expect.Value(k.Read(m.Swaps[0].Observation))(rt)), output)
		if same, again, err := compact(read(rt, text), m, k, o); err != nil || !bytes.Equal(same, out) {
			rt.Fatalf("%v, %+v", err, again)
		}
		restores(rt, out, m, k, text)
	})
}

// TestOlderShellMaps checks that a map that has the JSON around an output as its text is replayed and restored.
func TestOlderShellMaps(t *testing.T) {
	whole := shellJSON(strings.Repeat("word ", 3000), false, false)
	calls := []transcripttest.Call{{ID: "a", Tool: "shell", Result: whole}, {ID: "b", Tool: "shell", Result: "y"}}
	text := transcripttest.Make(transcript.Codex, calls)
	k, m := newKeeper(t), &compaction.Map{}
	older := read(t, text)
	for i := range older.Blocks {
		older.Blocks[i].Inner = nil // as an older version read it
	}
	o := compaction.Options{Budget: 1000, Keep: 1, Count: count}
	out, report, err := compact(older, m, k, o)
	if err != nil || report.Replaced != 1 || m.Swaps[0].Literals[0].Inner != "" {
		t.Fatalf("%v, %+v", err, report)
	}
	same, report, err := compact(read(t, text), m, k, o)
	if err != nil || !bytes.Equal(same, out) || report.Replayed != 1 {
		t.Errorf("%v, %+v", err, report)
	}
	restores(t, out, m, k, text)
}
