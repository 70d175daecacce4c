package chat

import (
	"errors"
	"strings"
	"testing"
)

func FuzzReadStream(f *testing.F) {
	f.Add("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]\n")
	f.Add(
		": ping\n\nevent: x\ndata:{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":3}]},\"finish_reason\":\"stop\"}]}",
	)
	f.Fuzz(func(t *testing.T, stream string) {
		r, err := readStream(strings.NewReader(stream), nil)
		if err == nil && !strings.Contains(stream, "[DONE]") && r.FinishReason == "" {
			t.Errorf("%q has no end: %+v", stream, r)
		}
		if len(r.Text) > len(stream) {
			t.Errorf("%q gives more text: %q", stream, r.Text)
		}
	})
}

// TestStreams has streams as endpoints write them: characters that are split over two events, errors among the events,
// further choices.
func TestStreams(t *testing.T) {
	event := func(content string) string {
		return `data: {"choices":[{"index":0,"delta":{"content":"` + content + "\"}}]}\n\n"
	}
	const end = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
	for _, tt := range []struct{ name, stream, text, says string }{
		{"a surrogate pair in two events", event(`a \ud83d`) + event(`\ude00 b`) + end, "a \U0001f600 b", ""},
		{"a surrogate pair with an event between", event(`\ud83d`) + event(``) + event(`\ude00`) + end, "\U0001f600", ""},
		{"the bytes of a character in two events", event("caf\xc3") + event("\xa9") + end, "café", ""},
		{"half a pair at the end", event(`a \ud83d`) + end, "a ", ""},
		{"half a character at the end", event("a \xe2\x82") + end, "a ", ""},
		{"an escaped backslash before it", event(`a \\ud83d`) + end, `a \ud83d`, ""},
		{"a lone surrogate in the middle", event(`a \ud83d`) + event(`b`) + end, "a \ufffdb", ""},
		{"an error event", event("one") + "data: {\"error\":{\"message\":\"out of memory\"}}\n\n" + end,
			"one", "out of memory"},
		{"an error as llama.cpp writes it", event("one") + "error: {\"message\":\"slot lost\"}\n\n", "one", "slot lost"},
		{"an error that is no event", event("one") + "{\"error\":\"overloaded\"}\n", "one", "overloaded"},
		{"an event that is no JSON", event("one") + "data: {\"choices\n\n" + end, "one", "no JSON"},
		{"a line that is no event", event("one") + "<html>\n" + end, "one", "no event"},
		{"another choice", event("one") + `data: {"choices":[{"index":1,"delta":{"content":"TWO"}}]}` + "\n\n" + end,
			"one", ""},
		{"another choice first", `data: {"choices":[{"index":1,"delta":{"content":"TWO"}},{"index":0,"delta":{"content":"one"}}]}` +
			"\n\n" + end, "one", ""},
		{"comments and names", ": ping\nevent: message\nid: 7\nretry: 10\n" + event("one") + end, "one", ""},
	} {
		r, err := readStream(strings.NewReader(tt.stream), nil)
		var report *ReportError
		if r.Text != tt.text || (err == nil) != (tt.says == "") ||
			err != nil && (!strings.Contains(err.Error(), tt.says) || !errors.As(err, &report)) {
			t.Errorf("%s: %q, %v", tt.name, r.Text, err)
		}
	}
}
