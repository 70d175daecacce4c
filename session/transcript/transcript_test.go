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

func lines(all ...string) []byte { return []byte(strings.Join(all, "\n") + "\n") }

const user = `{"type":"user","message":{"role":"user","content":"hi"},"uuid":"u1","sessionId":"s1"}`

func result(id, text, more string) string {
	return fmt.Sprintf(
		`{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":%q}]}%s}`,
		id,
		text,
		more,
	)
}

// sentOf returns the ids of the results that the client would send, with what it would send.
func sentOf(t *transcript.Transcript) string {
	var all []string
	for i := range t.Blocks {
		b := &t.Blocks[i]
		if !b.Sent || !b.Result() {
			continue
		}
		text := b.Text()
		if by, ok := t.Cleared(b.ID); ok {
			text = by
		}
		all = append(all, b.ID+"="+text)
	}
	return strings.Join(all, " ")
}

// TestClaudeRecords checks what the records beside the messages change.
func TestClaudeRecords(t *testing.T) {
	cases := []struct {
		name string
		text []byte
		sent string
	}{
		{"results", lines(user, result("a", "one", ""), result("b", "two", "")), "a=one b=two"},
		{"a compaction ends what was before", lines(
			user,
			result("a", "one", ""),
			`{"type":"system","subtype":"compact_boundary","compactMetadata":{"trigger":"auto"}}`,
			result("b", "two", ""),
		), "b=two"},
		{"a side chain is another context", lines(
			user, result("a", "one", `,"isSidechain":true`), result("b", "two", ""),
		), "b=two"},
		{"a boundary of a side chain ends nothing", lines(
			user, result("a", "one", ""), `{"type":"system","subtype":"compact_boundary","isSidechain":true}`,
		), "a=one"},
		{"cleared results", lines(
			user,
			result("a", "one", ""),
			result("b", "two", ""),
			`{"type":"system","subtype":"microcompact_boundary","microcompactMetadata":{"compactedToolIds":["a"]}}`,
		), "a= b=two"},
		{"replaced results", lines(
			user,
			result("a", "one", ""),
			`{"type":"content-replacement","replacements":[{"kind":"tool-result","toolUseId":"a","replacement":"less"}]}`,
		), "a=less"},
	}
	for _, c := range cases {
		got, err := transcript.Read(c.text)
		if err != nil || got.Format != transcript.Claude || sentOf(got) != c.sent || got.Unknown != 0 {
			t.Errorf("%s: %v, %+v, %q, want %q", c.name, err, got, sentOf(got), c.sent)
		}
	}
}

// TestUsage checks that the last reported prompt is found, with what was read from the cache.
func TestUsage(t *testing.T) {
	for _, format := range []transcript.Format{transcript.Codex, transcript.Claude} {
		got, err := transcript.Read(
			transcripttest.Make(format, []transcripttest.Call{{ID: "a", Tool: "x", Result: "r"},
				{ID: "b", Tool: "x", Result: "r"}}),
		)
		want := transcripttest.Overhead
		for i := range got.Reported {
			want += got.TokensReported(&got.Blocks[i], counter.Count)
		}
		if err != nil || got.Usage != want {
			t.Errorf("%s: %d, want %d, %v", format, got.Usage, want, err)
		}
	}
	for _, u := range []string{`-5`, `1e9`, `"9"`, `99999999999999999999`, `null`, `1.5`} {
		text := lines(
			user,
			`{"type":"assistant","message":{"role":"assistant","content":[],"usage":{"input_tokens":`+u+`}}}`,
		)
		if got, err := transcript.Read(text); err != nil || got.Usage != 0 {
			t.Errorf("%s: %d, %v", u, got.Usage, err)
		}
	}
}

// TestFormats checks that every format is recognised, and that calls name their results.
func TestFormats(t *testing.T) {
	calls := []transcripttest.Call{
		{ID: "a", Tool: "Read", Args: map[string]any{"path": "x"}, Result: "text of x", Parts: true},
		{ID: "b", Tool: "Bash", Result: "no", Failed: true}, {ID: "c", Tool: "Bash", Open: true},
	}
	for _, format := range transcripttest.Formats {
		got, err := transcript.Read(transcripttest.Make(format, calls))
		if err != nil || got.Format != format {
			t.Errorf("%s: %v, %+v", format, err, got)
			continue
		}
		var results []string
		for _, b := range got.Blocks {
			if b.Result() {
				results = append(results, fmt.Sprintf("%s %s %t %d", b.ID, b.Name, b.Error, b.Turn))
			}
		}
		failed := format != transcript.Chat // it has no field for that
		want := fmt.Sprint([]string{"a Read false 1", fmt.Sprintf("b Bash %t 1", failed)})
		expect.Equal(t, fmt.Sprint(results), want, "%s: %s", format, results)
	}
}

func TestBadInput(t *testing.T) {
	whole := lines(user, result("a", "one", ""))
	torn, err := transcript.Read(append(whole[:len(whole):len(whole)], `{"type":"user","mess`...))
	if err != nil || !torn.Torn || torn.Unknown != 1 || sentOf(torn) != "a=one" {
		t.Errorf("torn: %v, %+v", err, torn)
	}
	odd, err := transcript.Read(lines(
		user,
		`{"type":"of-tomorrow"}`,
		"no json",
		"",
		`[1]`,
		`{"type":"user","message":7}`,
		`{"type":"user","message":{"role":"user","content":[{"type":"hologram"},7,null,{"type":"tool_result","tool_use_id":"orphan","content":[{"type":"image","source":{}}]}]}}`,
	))
	if err != nil || odd.Unknown != 4 || !strings.Contains(sentOf(odd), "orphan=") {
		t.Errorf("odd: %v, %+v", err, odd)
	}
	for _, bad := range []string{
		"", "  \n", "hello", "{}", "[]", `{"messages":7}`, `[[1]]`, "\xff\xfe", strings.Repeat("[", 100_000),
		`{"type":"user"}` + "\n" + `{"x":1}`,
	} {
		if got, err := transcript.Read([]byte(bad)); err == nil {
			t.Errorf("%.40q is read as %s", bad, got.Format)
		}
	}
}

// TestFork checks that a fork has a new session, a chain as before, and nothing of the old ids.
func TestFork(t *testing.T) {
	calls := []transcripttest.Call{{ID: "a", Tool: "x", Result: "r"}}
	for format, old := range map[transcript.Format]string{
		transcript.Claude: "11111111-1111-4111-8111-111111111111", transcript.Codex: "22222222-2222-4222-8222-222222222222",
	} {
		text := transcripttest.Make(format, calls)
		before := expect.Value(transcript.Read(append(text[:len(text):len(text)], `{"torn`...)))(t)
		n := 0
		forked, moved, err := before.Fork("new-session", func() string { n++; return fmt.Sprint("new-", n) })
		expect.Must(t, err)
		fork := transcripttest.All(forked)
		after, err := transcript.Read(fork)
		if err != nil || after.Session != "new-session" || len(after.Blocks) != len(before.Blocks) ||
			after.Torn {
			t.Errorf("%s: %v, %+v", format, err, after)
		}
		if has := bytes.Contains(fork, []byte(old)); has != (format == transcript.Codex) { // it says where it came from
			t.Errorf("%s: the old session is named: %t\n%s", format, has, fork)
		}
		if format == transcript.Claude {
			if bytes.Contains(fork, []byte("00000000-")) || bytes.Contains(fork, []byte("file-history-snapshot")) ||
				bytes.Count(
					fork,
					[]byte(`"new-1"`),
				) != 2 || moved[0] != -1 ||
				moved[1] != 0 ||
				moved[len(moved)-1] != -1 {
				t.Errorf("%v\n%s", moved, fork)
			}
		}
	}
	chat := expect.Value(transcript.Read(transcripttest.Make(transcript.Chat, calls)))(t)
	if _, _, err := chat.Fork("x", func() string { return "y" }); err == nil {
		t.Error("messages of an API have no session")
	}
}

// FuzzRead checks that nothing is lost: a transcript without edits is written as it was read, and every string is where
// it is said to be.
func FuzzRead(f *testing.F) {
	for _, format := range transcripttest.Formats {
		f.Add(
			transcripttest.Make(
				format,
				[]transcripttest.Call{{ID: "a", Tool: "x", Result: "r\n\"", Parts: true}},
			),
		)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := transcript.Read(text)
		if err != nil {
			return
		}
		expect.Equal(t, string(transcripttest.All(got.Apply(nil))), string(text), "it is written differently")
		for _, b := range got.Blocks {
			for _, l := range append(b.Texts, b.Copies...) {
				same, ok := got.Find(l.Line, l.Number)
				raw := l.Raw()
				if !ok || same != l || raw[0] != '"' || raw[len(raw)-1] != '"' || got.Err() != nil {
					t.Errorf("%+v is %+v", l, same)
				}
			}
		}
	})
}

// TestTooManyValues checks that a document of which no node fits the memory is refused, and says why.
func TestTooManyValues(t *testing.T) {
	text := []byte(`{"messages":[{"role":"user","content":"x"}],"x":[0` + strings.Repeat(",0", 2_100_000) + "]}")
	expect.Fails(t, expect.Err(transcript.Read(text)), "over 2000000 values")
	expect.Equal(t, transcript.InnerText("short", transcript.Span{Start: 2, End: 50_000}), "")
}
