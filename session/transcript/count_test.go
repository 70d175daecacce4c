package transcript_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/session/transcript"
	"github.com/mcp-funnel/mcp-funnel/session/transcript/transcripttest"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
)

var counter = tokens.New(tokens.O200k)

// sentTokens returns the tokens that a client would send.
func sentTokens(t *transcript.Transcript) (n int) {
	for i := range t.Blocks {
		n += t.Tokens(&t.Blocks[i], counter.Count)
	}
	return n
}

func readFile(t *testing.T, name string) *transcript.Transcript {
	t.Helper()
	text := expect.Value(os.ReadFile(filepath.Join("testdata", name)))(t)
	return expect.Value(transcript.Read(text))(t)
}

// TestEveryBlockCounts checks that the text of each type of block is counted, and that what is estimated or not counted
// is named.
func TestEveryBlockCounts(t *testing.T) {
	const words = "some words of a text that is read by the model"
	n := counter.Count(words)
	image := `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}`
	for _, c := range []struct {
		block string
		want  int
		notes string
	}{
		{`{"type":"text","text":"TEXT"}`, n, ""},
		{`{"type":"thinking","thinking":"TEXT","signature":"c2ln"}`, n, ""},
		{`{"type":"thinking","thinking":"","signature":"c2ln"}`, 0, "encrypted text is not counted: 4 bytes"},
		{`{"type":"redacted_thinking","data":"c2ln"}`, 0, "encrypted text is not counted: 4 bytes"},
		{`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"TEXT"}}`, n, ""},
		{`{"type":"document","source":{"type":"content","content":[{"type":"text","text":"TEXT"},` + image + `]}}`,
			n + tokens.Image, "images are counted as 1600 tokens each: 1"},
		{`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0="}}`, 0,
			"files and binary data are not counted: application/pdf"},
		{`{"type":"document","source":{"type":"file","file_id":"file_1"}}`, 0,
			"files and binary data are not counted: file"},
		{`{"type":"search_result","content":[{"type":"text","text":"TEXT"}]}`, n, ""},
		{`{"type":"mcp_tool_result","tool_use_id":"m","content":[{"type":"text","text":"TEXT"}]}`, n, ""},
		{`{"type":"web_search_tool_result","tool_use_id":"w","content":[{"type":"web_search_result","title":"TEXT",` +
			`"encrypted_content":"AAAA"}]}`, n, "encrypted text is not counted: 4 bytes"},
		{`{"type":"advisor_tool_result","tool_use_id":"w","content":{"type":"advisor_result","text":"TEXT"}}`, n, ""},
		{`{"type":"hologram","form":{"says":"TEXT"}}`, n, "blocks of unknown types are counted by their text: hologram"},
		{`{"type":"hologram","text":"TEXT"}`, n, "blocks of unknown types are counted by their text: hologram"},
		{`{"type":"tool_result","tool_use_id":"a","content":[{"type":"hologram","text":"TEXT"}]}`, n,
			"blocks of unknown types are counted by their text: hologram"},
		{image, tokens.Image, "images are counted as 1600 tokens each: 1"},
		{`{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"TEXT"},` + image + `]}`,
			n + tokens.Image, "images are counted as 1600 tokens each: 1"},
		{`{"type":"tool_result","tool_use_id":"a","content":[{"type":"document","source":{"type":"text","data":"TEXT"}}]}`,
			n, ""},
	} {
		line := `{"type":"user","message":{"role":"user","content":[` + strings.ReplaceAll(c.block, "TEXT", words) +
			`]}}`
		got, err := transcript.Read([]byte(line + "\n"))
		if err != nil || sentTokens(got) != c.want || strings.Join(got.Notes(), "; ") != c.notes {
			t.Errorf("%s: %v, %d tokens, want %d; %q", c.block, err, sentTokens(got), c.want, got.Notes())
		}
	}
}

// TestItemsCount checks that the parts of the other formats are counted too.
func TestItemsCount(t *testing.T) {
	const words = "some words of a text that is read by the model"
	n, user := counter.Count(words), counter.Count("hi")
	for _, c := range []struct {
		text  string
		want  int
		notes string
	}{
		{`{"input":[{"role":"user","content":[{"type":"input_text","text":"hi"},{"type":"input_image",` +
			`"image_url":"data:image/png;base64,iVBO"}]},{"type":"mcp_call","output":"TEXT"}]}`, n + user + tokens.Image,
			"images are counted as 1600 tokens each: 1"},
		{`{"input":[{"role":"user","content":[{"type":"input_text","text":"hi"},{"type":"input_file",` +
			`"file_data":"data:application/pdf;base64,JVBE"}]}]}`, user, "files and binary data are not counted: base64"},
		{`{"input":[{"role":"user","content":[{"type":"input_text","text":"hi"}]},{"type":"reasoning","summary":[` +
			`{"type":"summary_text","text":"TEXT"}],"encrypted_content":"AAAA"}]}`, n + user,
			"encrypted text is not counted: 4 bytes"},
		{`{"messages":[{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image_url","image_url":` +
			`{"url":"https://x.example/a.png"}}]},{"role":"assistant","content":null,"refusal":"TEXT"}]}`,
			n + user + tokens.Image, "images are counted as 1600 tokens each: 1"},
	} {
		got, err := transcript.Read([]byte(strings.ReplaceAll(c.text, "TEXT", words)))
		if err != nil || sentTokens(got) != c.want || strings.Join(got.Notes(), "; ") != c.notes {
			t.Errorf("%s: %v, %d tokens, want %d; %q", c.text, err, sentTokens(got), c.want, got.Notes())
		}
	}
	ghost := `{"input":[{"role":"user","content":[{"type":"input_text","text":"hi"}]},{"type":"ghost_snapshot","x":"y"}]}`
	if got, err := transcript.Read([]byte(ghost)); err != nil || sentTokens(got) != user {
		t.Errorf("a snapshot: %v, %d tokens", err, sentTokens(got))
	}
	tools := `{"system":"hi","tools":[{"name":"TEXT"}],"messages":[{"role":"user","content":"hi"}]}`
	got, err := transcript.Read([]byte(strings.ReplaceAll(tools, "TEXT", words)))
	if want := 2*user + counter.Count(`[{"name":"`+words+`"}]`); err != nil || sentTokens(got) != want {
		t.Errorf("definitions of tools: %v, %d tokens, want %d", err, sentTokens(got), want)
	}
}

// TestSampleFiles checks the tokens of two recorded forms of session files.
func TestSampleFiles(t *testing.T) {
	blocks := readFile(t, "blocks.jsonl")
	// 20 characters of the document are 3 tokens, 14 of the result 3, 13 of the search result 2.
	if n := sentTokens(blocks); n < 340 || n > 420 {
		t.Errorf("blocks.jsonl has %d tokens", n)
	}
	results := map[string]string{}
	for _, b := range blocks.Blocks {
		if b.Result() {
			results[b.ID] = b.Name
		}
	}
	expect.Equal(t, results["mcptoolu_1"], "mcp__s__q", "%v", results)
	expect.Equal(t, results["srvtoolu_9"], "web_search", "%v", results)
	dup := readFile(t, "dup.jsonl")
	var once [][]byte
	all := bytes.SplitAfter(transcripttest.All(dup.Bytes()), []byte("\n"))
	for i := 0; i < dup.Lines(); i += 2 {
		once = append(once, all[i])
	}
	single, err := transcript.Read(bytes.Join(once, nil))
	if err != nil || sentTokens(dup) != sentTokens(single) || sentOf(dup) != sentOf(single) || dup.Again != len(once) ||
		dup.Blocks[len(dup.Blocks)-1].Turn != 1 || dup.Usage != 52_003 {
		t.Errorf("%v, %d tokens, once %d; %d lines again; %+v", err, sentTokens(dup), sentTokens(single), dup.Again,
			dup.RequestSize)
	}
}

// TestAgainAfterBoundary checks that a file that was appended to itself counts as it did before.
func TestAgainAfterBoundary(t *testing.T) {
	text := lines(user, withID("a", "l1", "one"), withID("b", "l2", "two"), boundary(`{}`), withID("c", "l3", "three"))
	got, err := transcript.Read(append(text[:len(text):len(text)], text...))
	if err != nil || sentOf(got) != "c=three" || got.Again != 5 {
		t.Errorf("%v, %q, %d lines again", err, sentOf(got), got.Again)
	}
}

// TestReportPosition checks which blocks a report is of: those before the first line of its answer.
func TestReportPosition(t *testing.T) {
	answer := func(id, block string, usage int) string {
		u, _ := json.Marshal(map[string]int{"input_tokens": usage, "output_tokens": 9})
		return `{"type":"assistant","message":{"role":"assistant","model":"m","id":"` + id + `","content":[` + block +
			`],"usage":` + string(u) + `}}`
	}
	text := lines(user, answer("A", `{"type":"text","text":"a"}`, 70), result("x", "one", ""),
		answer("A", `{"type":"tool_use","id":"y","name":"n","input":{}}`, 70), result("y", "two", ""),
		`{"type":"system","subtype":"microcompact_boundary","microcompactMetadata":{"compactedToolIds":["x"]}}`)
	got, err := transcript.Read(text)
	if err != nil || got.Reported != 1 || got.Usage != 70 || got.Output != 9 || got.Model != "m" {
		t.Fatalf("%v, %+v", err, got.RequestSize)
	}
	got, err = transcript.Read(append(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"+answer("B", "", 80)+"\n")...))
	if err != nil || got.Reported != 5 || got.Usage != 80 {
		t.Fatalf("%v, %+v", err, got.RequestSize)
	}
	got.Reported = 3 // the result was cleared after that report
	if b := &got.Blocks[2]; got.Tokens(b, counter.Count) != 0 || got.TokensReported(b, counter.Count) != 1 {
		t.Errorf("%d now, %d then", got.Tokens(b, counter.Count), got.TokensReported(b, counter.Count))
	}
	codex, err := transcript.Read(transcripttest.Make(transcript.Codex, []transcripttest.Call{{ID: "a", Result: "r"}}))
	if err != nil || codex.Reported != len(codex.Blocks)-1 {
		t.Errorf("%v, %+v of %d blocks", err, codex.RequestSize, len(codex.Blocks))
	}
}

// TestReportForms checks the forms in which clients write a report.
func TestReportForms(t *testing.T) {
	const item = `{"timestamp":"t","type":"response_item","payload":{"type":"message","role":"assistant","content":[` +
		`{"type":"output_text","text":"a"}]}}`
	codex := func(info string) string {
		return `{"timestamp":"t","type":"event_msg","payload":{"type":"token_count","info":` + info + `}}`
	}
	claude := func(usage string) string {
		return `{"type":"assistant","message":{"role":"assistant","content":[],"usage":` + usage + `}}`
	}
	const last = `{"last_token_usage":{"input_tokens":70,"output_tokens":5}}`
	for _, c := range []struct {
		text                    []byte
		usage, output, reported int
	}{
		{lines(item, codex(last)), 70, 5, 0},
		{lines(item, codex(last), codex("null")), 70, 5, 0},
		{lines(item, codex(last), codex(`{"last_token_usage":{"input_tokens":0,"total_tokens":40}}`)), 40, 0, 1},
		{lines(user, claude(`{"input_tokens":90,"iterations":[{"type":"message","input_tokens":30},`+
			`{"type":"message","input_tokens":40,"cache_read_input_tokens":2},{"type":"x","input_tokens":9}]}`)), 42, 0, 1},
		{lines(user, claude(`{"input_tokens":90,"iterations":[]}`)), 90, 0, 1},
	} {
		got, err := transcript.Read(c.text)
		if err != nil || got.Usage != c.usage || got.Output != c.output || got.Reported != c.reported {
			t.Errorf("%s: %v, %+v", c.text, err, got.RequestSize)
		}
	}
}

// TestAttachments checks that what Claude Code adds to a message is counted, with a note.
func TestAttachments(t *testing.T) {
	const words = "some words of a text that is read by the model"
	got, err := transcript.Read(lines(user, `{"type":"attachment","attachment":{"type":"file","content":"`+words+`"}}`))
	if want := counter.Count("hi") + counter.Count(words); err != nil || sentTokens(got) != want ||
		!strings.Contains(strings.Join(got.Notes(), ""), "by their text: attachment") {
		t.Errorf("%v, %d tokens, want %d, %q", err, sentTokens(got), want, got.Notes())
	}
}

// TestLineNumbers checks the lines of blocks in a document with line ends.
func TestLineNumbers(t *testing.T) {
	for _, format := range transcripttest.Formats {
		text := transcripttest.Make(format, []transcripttest.Call{{ID: "call_a", Tool: "x", Result: "the result"}})
		if format != transcript.Claude && format != transcript.Codex {
			var pretty bytes.Buffer
			expect.Must(t, json.Indent(&pretty, text, "", "  "))
			text = pretty.Bytes()
		}
		got := expect.Value(transcript.Read(text))(t)
		for _, b := range got.Blocks {
			if !b.Result() {
				continue
			}
			l := b.Texts[0]
			want := 1 + bytes.Count(text[:bytes.Index(text, []byte("the result"))], []byte("\n"))
			expect.Equal(t, got.Number(l.Line, l.Start), want, "%s: line", format)
			if n := got.Number(b.Line, b.At); n > want || want-n > 5 {
				t.Errorf("%s: the block begins in line %d, its text in %d", format, n, want)
			}
		}
	}
}
