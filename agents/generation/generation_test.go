package generation

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/agents/chat"
	"github.com/mcp-funnel/mcp-funnel/agents/chat/chattest"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/continuation"
)

// document has sections that differ.
func document() string {
	var list []string
	for i := range 40 {
		list = append(list, fmt.Sprintf(
			`{"id":"s%d","content_type":"paragraph","elements":[{"text":"Paragraph %d costs %d.5 and is \"quoted\" here."}]}`,
			i,
			i,
			i*i,
		))
	}
	return `{"sections":[` + strings.Join(list, ",") + `]}`
}

// writer goes on where it is asked to, and writes size bytes at a time.
func writer(doc string, size int) func(int, chattest.Request) chattest.Reply {
	return func(_ int, r chattest.Request) chattest.Reply {
		at := 0
		last := r.Messages[len(r.Messages)-1]
		if last.Role == "assistant" { // prefilled: the reply goes on without it
			at = strings.Index(doc, last.Content) + len(last.Content)
		} else if _, rest, ok := strings.Cut(last.Content, "what is new:\n```\n"); ok {
			text, _, _ := strings.Cut(rest, "\n```")
			at = strings.Index(doc, text)
		}
		return chattest.Reply{Text: doc[at:min(len(doc), at+size)], Finish: "stop"}
	}
}

func generate(t *testing.T, s *chattest.Server, profile string) (Outcome, error) {
	t.Helper()
	c, err := chat.New(chat.Options{URL: s.URL, Profile: profile})
	expect.Must(t, err)
	return Generate(t.Context(), c, Options{Prompt: "Write the plan.", Document: continuation.Options{MaxParts: 200}})
}

// TestGenerate cuts the replies at every kind of place. The endpoint always says that it finished.
func TestGenerate(t *testing.T) {
	doc := document()
	for _, profile := range []string{"default", "lfm2.5-1.2b"} {
		for size := 150; size < 1500; size += 131 {
			out, err := generate(t, chattest.Answering(t, writer(doc, size)), profile)
			if err != nil || string(out.Text) != doc || out.Verdict != continuation.Done {
				t.Errorf("%s, %d bytes at a time: %v, %d requests, %+v", profile, size, err, out.Requests, out.Reason)
			}
		}
	}
}

// TestStreamThatBreaksOff goes on after the text that was received.
func TestStreamThatBreaksOff(t *testing.T) {
	doc := document()
	write := writer(doc, len(doc))
	s := chattest.Answering(t, func(n int, r chattest.Request) chattest.Reply {
		reply := write(n, r)
		if n == 0 {
			reply.CutAfter = 100
		}
		return reply
	})
	out, err := generate(t, s, "default")
	if err != nil || string(out.Text) != doc || out.Requests != 2 {
		t.Errorf("%v %d requests, %s", err, out.Requests, out.Text)
	}
}

// TestTakesUp has replies after which the document is written all the same: an endpoint that fails once, and replies
// that begin with words.
func TestTakesUp(t *testing.T) {
	doc := document()
	for name, odd := range map[string]func(rest, restart string) string{
		"status 500":                    nil,
		"a sentence":                    func(rest, restart string) string { return "Sure, here is the rest: " + restart + rest },
		"a line":                        func(rest, restart string) string { return "Sure, here is the rest:\n\n" + restart + rest },
		"a line, and only the rest":     func(rest, _ string) string { return "Sure, here is the rest:\n\n" + rest },
		"a sentence, and only the rest": func(rest, _ string) string { return "Sure, here is the rest: " + rest },
		"a remark, and only the rest":   func(rest, _ string) string { return "(continued) " + rest },
		"a fence": func(rest, restart string) string {
			return "Sure, here is the rest:\n\n```json\n" + restart + rest + "\n```\n\nThat is all."
		},
	} {
		for _, profile := range []string{"default", "lfm2.5-1.2b"} {
			write := writer(doc, 905)
			s := chattest.Answering(t, func(n int, r chattest.Request) chattest.Reply {
				if n != 1 {
					return write(n, r)
				}
				if odd == nil {
					return chattest.Reply{Status: 500, Raw: "{}"}
				}
				return chattest.Reply{Text: odd(doc[905:], doc[strings.LastIndex(doc[:905], `{"id"`):905])}
			})
			out, err := generate(t, s, profile)
			if err != nil || strings.TrimSpace(string(out.Text)) != doc || out.Verdict != continuation.Done {
				t.Errorf("%s, %s: %v, %d requests, %s: %s", name, profile, err, out.Requests, out.Reason, out.Text)
			}
		}
	}
}

// TestStops has endpoints that never write a whole document.
func TestStops(t *testing.T) {
	always := func(r chattest.Reply) *chattest.Server {
		return chattest.Answering(t, func(int, chattest.Request) chattest.Reply { return r })
	}
	for _, tt := range []struct {
		name     string
		server   *chattest.Server
		requests int
		verdict  continuation.Verdict
		err      string
	}{
		{"nothing", always(chattest.Reply{}), 1, "", `the endpoint's reason: "stop"`},
		{"only blanks", always(chattest.Reply{Text: "\n "}), 1, "", `the endpoint's reason: "stop"`},
		{"blanks and thoughts", always(chattest.Reply{Text: "\n", Finish: "length"}), 2, "", "thinking may take them all"},
		{"only thoughts", always(chattest.Reply{Reasoning: "hm", Finish: "length"}), 2, "", "its thinking may take them all"},
		{"the same again", always(chattest.Reply{Text: `{"a": "an unfinished tex`}), 2, continuation.Stop, ""},
		{"broken", always(chattest.Reply{Text: `{"a": 1 2}`}), 1, continuation.Stop, ""},
		{"Markdown", always(chattest.Reply{Text: "# Title\n\nText"}), 1, continuation.Unknown, ""},
		{"an error inside of it", always(chattest.Reply{Status: 500, Raw: "{}"}), 2, "", "500"},
		{"an error", always(chattest.Reply{Status: 503, Raw: "{}"}), 1, "", "503"},
	} {
		out, err := generate(t, tt.server, "lfm2.5-1.2b")
		if out.Requests != tt.requests || out.Verdict != tt.verdict || (err == nil) != (tt.err == "") ||
			err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %d requests, %s %q, %v", tt.name, out.Requests, out.Verdict, out.Reason, err)
		}
	}
	s := chattest.New(t, chattest.Reply{Finish: "length"}, chattest.Reply{Text: `{"a":1}`})
	out, err := generate(t, s, "lfm2.5-1.2b")
	if err != nil || out.Verdict != continuation.Done || s.Requests()[1].Body["max_tokens"] != 2048.0 {
		t.Errorf("%v %+v, %v", err, out, s.Requests()[1].Body["max_tokens"])
	}
	if _, err := generate(t, always(chattest.Reply{}), "default"); !errors.Is(err, errEmpty) {
		t.Error(err)
	}
}

// TestTooLongIsNoRequest has a prompt, or twice the limit of a reply, for which the window has no room: what was not
// sent is not counted.
func TestTooLongIsNoRequest(t *testing.T) {
	for window, requests := range map[int]int{3: 0, 1500: 1} {
		empty := func(int, chattest.Request) chattest.Reply { return chattest.Reply{Finish: "length"} }
		s := chattest.Answering(t, empty)
		c, err := chat.New(chat.Options{URL: s.URL, Profile: "lfm2.5-1.2b", Context: window})
		expect.Must(t, err)
		out, err := Generate(t.Context(), c, Options{Prompt: "Write the plan."})
		if !errors.Is(err, chat.ErrTooLong) || len(s.Requests()) != requests || out.Requests != requests ||
			len(out.Finish) != requests {
			t.Errorf("window of %d: %d requests, not %d: %+v, %v", window, len(s.Requests()), requests, out, err)
		}
	}
}

// TestReportedErrorEnds has an endpoint that reports an error in the middle of a stream.
func TestReportedErrorEnds(t *testing.T) {
	s := chattest.New(t, chattest.Reply{
		Header: map[string]string{"Content-Type": "text/event-stream"},
		Raw: "data: {\"choices\":[{\"delta\":{\"content\":\"{\\\"a\\\":[1,\"}}]}\n\n" +
			"data: {\"error\":{\"message\":\"out of memory\"}}\n\n",
	})
	out, err := generate(t, s, "default")
	if err == nil || !strings.Contains(err.Error(), "out of memory") || string(out.Text) != `{"a":[1,` ||
		out.Requests != 1 {
		t.Errorf("%+v, %v", out, err)
	}
}
