package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/session/transcript"
	"github.com/mcp-funnel/mcp-funnel/session/transcript/transcripttest"
)

// contextOf returns what context prints of a transcript: as JSON, and as text.
func contextOf(t *testing.T, text []byte) (report map[string]any, out string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "session")
	write(t, file, string(text))
	code, raw, said := runs(t, "context", "--json", file)
	expect.MustEqual(t, code, done, said)
	expect.Must(t, json.Unmarshal([]byte(raw), &report))
	_, out, _ = runs(t, "context", file)
	return report, out
}

// TestContextNamesRepeats checks the column of results, which reads a later one repeats, and the lines of a document
// with line ends.
func TestContextNamesRepeats(t *testing.T) {
	read := func(id, path, result string) transcripttest.Call {
		return transcripttest.Call{ID: id, Tool: "Read", Args: map[string]any{"path": path}, Result: result}
	}
	calls := []transcripttest.Call{
		read("a", "x.go", "the first"), read("b", "y.go", "another"), read("c", "x.go", "the second"),
	}
	for _, format := range transcripttest.Formats {
		text := transcripttest.Make(format, calls)
		if format == transcript.Anthropic {
			var pretty bytes.Buffer
			expect.Must(t, json.Indent(&pretty, text, "", " "))
			text = pretty.Bytes()
		}
		lineOf := func(result string) float64 {
			return 1 + float64(bytes.Count(text[:bytes.Index(text, []byte(result))], []byte("\n")))
		}
		r, out := contextOf(t, text)
		if want := float64(bytes.Count(bytes.TrimSpace(text), []byte("\n")) + 1); r["lines"] != want {
			t.Errorf("%s: %v lines, want %v", format, r["lines"], want)
		}
		repeats, _ := r["repeats"].([]any)
		expect.MustEqual(t, len(repeats), 1, "%s: %v", format, r["repeats"])
		of := repeats[0].(map[string]any)
		if !strings.Contains(fmt.Sprint(of["args"]), "x.go") || of["line"] != lineOf("the first") ||
			of["by_line"] != lineOf("the second") {
			t.Errorf("%s: %v, lines %v and %v", format, of, lineOf("the first"), lineOf("the second"))
		}
		if want := fmt.Sprintf("line %v, by line %v", of["line"], of["by_line"]); !strings.Contains(out, want) {
			t.Errorf("%s: no %q in\n%s", format, want, out)
		}
		for _, role := range r["roles"].([]any) {
			of := role.(map[string]any)
			if of["name"] == "tool" && of["results"] != 3.0 || of["name"] != "tool" && of["results"] != nil {
				t.Errorf("%s: %v", format, of)
			}
		}
	}
}

// TestContextOfAStaleReport checks that a report is compared with what was in its request only, and not at all if it
// may be older than a compaction.
func TestContextOfAStaleReport(t *testing.T) {
	const session = `{"type":"user","message":{"role":"user","content":"hi"}}
{"type":"assistant","message":{"role":"assistant","model":"claude-opus-4-7","id":"A","content":[{"type":"tool_use",` +
		`"id":"a","name":"n","input":{}}],"usage":{"input_tokens":5000}}}
{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"RESULT"}]}}
`
	long := strings.Repeat("one more word ", 3000)
	r, out := contextOf(t, []byte(strings.Replace(session, "RESULT", long, 1)))
	if r["not_counted"] != 4999.0 || r["since"].(float64) < 9000 || r["sent"].(float64) != 1+r["since"].(float64) ||
		!strings.Contains(out, "were added since that report") || !strings.Contains(out, "claude-opus-4-7 is counted as") {
		t.Errorf("%v\n%s", r, out)
	}
	again := strings.Replace(session, "RESULT",
		"[9 tokens, 1 line of text; read it with slice, grep or jq at source obs:k3v9q2m7x4ab]", 1)
	again += strings.Replace(session[strings.Index(session, "\n")+1:], `"id":"A"`, `"id":"B"`, 1)
	r, out = contextOf(t, []byte(again))
	if since, _ := r["since"].(float64); r["not_counted"] != nil || since == 0 ||
		!strings.Contains(out, fmt.Sprintf("%v tokens were added since that report", since)) ||
		!strings.Contains(out, "the report may be older than the compaction") {
		t.Errorf("%v\n%s", r, out)
	}
	high := strings.Replace(session, "hi", strings.Repeat("one more word ", 3000), 1)
	if _, out = contextOf(t, []byte(high)); !strings.Contains(out, "the client reported less than the") {
		t.Error(out)
	}
}

// TestContextOfSamples checks the tokens of two recorded forms of session files.
func TestContextOfSamples(t *testing.T) {
	for name, want := range map[string][2]float64{"blocks": {380, 400}, "dup": {430, 460}} {
		code, out, said := runs(t, "context", "--json",
			filepath.Join("..", "..", "session", "transcript", "testdata", name+".jsonl"))
		var r struct {
			Sent  float64
			Notes []string
		}
		if err := json.Unmarshal([]byte(out), &r); err != nil || code != done || r.Sent < want[0] || r.Sent > want[1] ||
			len(r.Notes) < 2 {
			t.Errorf("%s: %v, %s %+v", name, err, said, r)
		}
	}
}
