package transcript_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/session/transcript"
	"github.com/mcp-funnel/mcp-funnel/session/transcript/transcripttest"
)

// withID returns the result of a call as a line with an id.
func withID(id, uuid, text string) string {
	return fmt.Sprintf(`{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,`+
		`"content":%q}]},"uuid":%q,"sessionId":"old-session"}`, id, text, uuid)
}

// boundary returns a compaction with metadata.
func boundary(meta string) string {
	return `{"type":"system","subtype":"compact_boundary","uuid":"end","sessionId":"old-session","compactMetadata":` +
		meta + `}`
}

const segment = `{"preservedSegment":{"headUuid":"l2","anchorUuid":"end","tailUuid":"l3"}}`

// TestPreserved checks that messages which a compaction kept count as sent, though they stand before its boundary.
func TestPreserved(t *testing.T) {
	for meta, want := range map[string]string{
		segment: "b=two c=three e=five",
		`{"preservedMessages":{"anchorUuid":"end","uuids":["l1","l3"],"allUuids":["l1"]}}`: "a=one c=three e=five",
		`{"trigger":"auto"}`: "e=five",
		`{"preservedSegment":{"headUuid":"nowhere","anchorUuid":"end","tailUuid":"l3"}}`: "e=five",
		`{"preservedSegment":{"headUuid":"l3","anchorUuid":"end","tailUuid":"l1"}}`:      "e=five",
		`{"preservedSegment":7,"preservedMessages":{"uuids":[1,null]}}`:                  "e=five",
	} {
		text := lines(user, withID("a", "l1", "one"), withID("b", "l2", "two"), withID("c", "l3", "three"),
			withID("d", "l4", "four"), boundary(meta), withID("e", "l5", "five"))
		got, err := transcript.Read(text)
		if err != nil || sentOf(got) != want {
			t.Errorf("%s: %v, %q, want %q", meta, err, sentOf(got), want)
		}
	}
	twice, err := transcript.Read(lines(user, withID("a", "l2", "one"), withID("b", "l3", "two"), boundary(segment),
		strings.Replace(boundary(`{}`), `"end"`, `"end2"`, 1), withID("e", "l5", "five")))
	if err != nil || sentOf(twice) != "e=five" {
		t.Errorf("a second compaction: %v, %q", err, sentOf(twice))
	}
}

// TestUsageEndsAtBoundary checks that a figure from before a compaction is not reported as the present one.
func TestUsageEndsAtBoundary(t *testing.T) {
	const report = `{"type":"assistant","message":{"role":"assistant","content":[],"usage":{"input_tokens":70}}}`
	for want, text := range map[int][]byte{
		0:  lines(user, report, boundary(`{}`)),
		70: lines(user, boundary(`{}`), report),
	} {
		if got, err := transcript.Read(text); err != nil || got.Usage != want {
			t.Errorf("%d, %v, want %d", got.Usage, err, want)
		}
	}
}

// TestForkNamesPreserved checks that a fork's boundary names the fork's own lines.
func TestForkNamesPreserved(t *testing.T) {
	text := lines(user, withID("b", "l2", "two"), withID("c", "l3", "three"), boundary(segment),
		withID("e", "l5", "five"))
	before := expect.Value(transcript.Read(text))(t)
	n := 0
	forked, _, err := before.Fork("new-session", func() string { n++; return fmt.Sprint("new-", n) })
	expect.Must(t, err)
	fork := transcripttest.All(forked)
	for _, old := range []string{`"l2"`, `"l3"`, `"end"`, `"old-session"`} {
		if bytes.Contains(fork, []byte(old)) {
			t.Errorf("the fork names %s\n%s", old, fork)
		}
	}
	after, err := transcript.Read(fork)
	if err != nil || sentOf(after) != sentOf(before) || sentOf(after) != "b=two c=three e=five" {
		t.Errorf("%v, the fork sends %q", err, sentOf(after))
	}
}

// TestCodexCompacted checks that the history that replaced the one before counts, and not the message beside it.
func TestCodexCompacted(t *testing.T) {
	item := func(kind, payload string) string {
		return `{"timestamp":"2026-11-20T10:00:00.000Z","type":"` + kind + `","payload":` + payload + `}`
	}
	text := lines(item("session_meta", `{"id":"s"}`),
		item("response_item", `{"type":"function_call_output","call_id":"a","output":"one"}`),
		item("compacted", `{"message":"summary","replacement_history":[`+
			`{"type":"message","role":"user","content":[{"type":"input_text","text":"summary"}]},`+
			`{"type":"function_call_output","call_id":"b","output":"two"},{"type":"compaction","encrypted_content":"x"}]}`))
	got := expect.Value(transcript.Read(text))(t)
	expect.MustEqual(t, sentOf(got), "b=two")
	summaries := 0
	for _, b := range got.Blocks {
		if b.Text() == "summary" {
			summaries++
		}
	}
	if summaries != 1 {
		t.Errorf("the summary counts %d times", summaries)
	}
}

// TestForkOfFork checks that the field that names the origin of a fork is not written twice.
func TestForkOfFork(t *testing.T) {
	text := transcripttest.Make(transcript.Codex, []transcripttest.Call{{ID: "a", Tool: "x", Result: "r"}})
	for _, session := range []string{"first", "second"} {
		got := expect.Value(transcript.Read(text))(t)
		fork, _, err := got.Fork(session, func() string { return "" })
		expect.Must(t, err)
		text = transcripttest.All(fork)
	}
	if bytes.Count(text, []byte(`"forked_from_id"`)) != 1 ||
		!bytes.Contains(text, []byte(`"forked_from_id":"first"`)) {
		t.Errorf("%s", bytes.SplitN(text, []byte("\n"), 2)[0])
	}
}

// TestRepeatedByGood checks that only a result that the model has makes an earlier one superfluous.
func TestRepeatedByGood(t *testing.T) {
	read := func(result string, failed bool) transcripttest.Call {
		return transcripttest.Call{
			ID:     "id-" + result,
			Tool:   "Read",
			Args:   map[string]any{"path": "x"},
			Result: result,
			Failed: failed,
		}
	}
	for _, c := range []struct {
		calls []transcripttest.Call
		want  int
	}{
		{[]transcripttest.Call{read("one", false), read("two", false)}, 1},
		{[]transcripttest.Call{read("one", false), read("gone", true)}, 0},
	} {
		got, err := transcript.Read(transcripttest.Make(transcript.Anthropic, c.calls))
		if err != nil || len(got.Repeated()) != c.want {
			t.Errorf("%v, %v, want %d", err, got.Repeated(), c.want)
		}
	}
}
