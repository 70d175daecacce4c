package chat_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/agents/chat"
	"github.com/mcp-funnel/mcp-funnel/agents/chat/chattest"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

func client(t *testing.T, o chat.Options) *chat.Client {
	t.Helper()
	c, err := chat.New(o)
	expect.Must(t, err)
	return c
}

func hello(stream bool) chat.Request {
	return chat.Request{Messages: []chat.Message{{Role: "user", Content: "hello"}}, Stream: stream}
}

func TestComplete(t *testing.T) {
	const key = "sk-endpoint-key-0123456789abcdef"
	file := filepath.Join(t.TempDir(), "key")
	expect.Must(t, os.WriteFile(file, []byte(key+"\n"), 0o600))
	for _, stream := range []bool{false, true} {
		s := chattest.New(t, chattest.Reply{Text: "Good day, Übung 😀", Reasoning: "hm", Finish: "length"})
		c := client(t, chat.Options{URL: s.URL, Name: "m", KeyFile: file, Profile: "lfm2.5-1.2b"})
		r, err := c.Complete(t.Context(), hello(stream))
		if err != nil || r.Text != "Good day, Übung 😀" || r.Reasoning != "hm" || r.FinishReason != "length" ||
			r.Usage.Prompt != 100 || r.Usage.Cached != 40 {
			t.Errorf("%+v %v", r, err)
		}
		got := s.Requests()[0]
		if got.Header.Get("Authorization") != "Bearer "+key || got.Body["model"] != "m" || got.Body["top_k"] != 50.0 ||
			got.Body["max_tokens"] != 1024.0 ||
			got.Messages[0].Content != "hello" {
			t.Errorf("%+v", got)
		}
	}
	s := chattest.New(t, chattest.Reply{Text: "x"})
	if _, err := client(t, chat.Options{URL: s.URL}).Complete(t.Context(), hello(false)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"temperature", "max_tokens", "top_p", "model", "stream", "tools", "continue_final_message",
	} {
		if v, ok := s.Requests()[0].Body[name]; ok {
			t.Errorf("the default profile sends %s: %v", name, v)
		}
	}
}

// TestErrors has the answers of an endpoint that are none.
func TestErrors(t *testing.T) {
	wide := strings.Repeat("x", 4000)
	for _, tt := range []struct {
		name  string
		reply chattest.Reply
		says  string
		text  string // received all the same
	}{
		{"400", chattest.Reply{Status: 400, Raw: `{"error":{"message":"bad parameter top_k"}}`},
			"400 Bad Request: bad parameter top_k", ""},
		{"401", chattest.Reply{Status: 401, Raw: `{"error":"no key"}`}, "check --endpoint-key-file", ""},
		{"404", chattest.Reply{Status: 404, Raw: "not here"}, "check --endpoint-url", ""},
		{"429", chattest.Reply{Status: 429, Header: map[string]string{"Retry-After": "7"}, Raw: "{}"}, "try again in 7s", ""},
		{"500 with much text", chattest.Reply{Status: 500, Raw: wide}, "500 Internal Server Error", ""},
		{"503", chattest.Reply{Status: 503, Raw: `{"message":"loading model"}`}, "loading model", ""},
		{"an error with status 200", chattest.Reply{Raw: `{"error":{"message":"overloaded"}}`}, "overloaded", ""},
		{"429 until a date", chattest.Reply{Status: 429, Raw: "{}",
			Header: map[string]string{"Retry-After": time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)}},
			"try again in", ""},
		{"no choices", chattest.Reply{Raw: `{}`}, "no choices", ""},
		{"no JSON", chattest.Reply{Raw: `{"choices`}, "no JSON", ""},
		{"a page", chattest.Reply{Raw: "<html>", Header: map[string]string{"Content-Type": "text/html"}},
			"is it an OpenAI-compatible API", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := chattest.New(t, tt.reply)
			r, err := client(t, chat.Options{URL: s.URL}).Complete(t.Context(), hello(false))
			if err == nil || !strings.Contains(err.Error(), tt.says) || len(err.Error()) > 600 {
				t.Errorf("%+v %v", r, err)
			}
		})
	}
	t.Run("a stream that breaks off", func(t *testing.T) {
		s := chattest.New(t, chattest.Reply{Text: "one two three four five", CutAfter: 2})
		r, err := client(t, chat.Options{URL: s.URL}).Complete(t.Context(), hello(true))
		if err == nil || !strings.Contains(err.Error(), "stream") || r.Text != "one two three " {
			t.Errorf("%+v %v", r, err)
		}
	})
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for r.Context().Err() == nil {
			_, _ = w.Write([]byte(": still here\n"))
			w.(http.Flusher).Flush()
			time.Sleep(time.Millisecond)
		}
	}))
	defer endless.Close()
	silent := chattest.New(t, slices.Repeat([]chattest.Reply{{Wait: make(chan struct{})}}, 2)...)
	for _, tt := range []struct {
		name   string
		o      chat.Options
		stream bool
		says   string
	}{
		{"nobody listens", chat.Options{URL: closed.URL}, false, "is the model server running?"},
		{"silence", chat.Options{URL: silent.URL, Timeout: 50 * time.Millisecond}, true, "sent nothing for 50ms"},
		{"never silent, and without end", chat.Options{URL: endless.URL + "/v1", Timeout: 200 * time.Millisecond}, true,
			"still writing after 2s"},
		{"a reply without end", chat.Options{
			URL: chattest.New(t, chattest.Reply{Text: strings.Repeat("x", 17<<20)}).URL,
		}, false, "larger than is read"},
	} {
		_, err := client(t, tt.o).Complete(t.Context(), hello(tt.stream))
		if err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(20*time.Millisecond, cancel)
		_, err := client(t, chat.Options{URL: silent.URL}).Complete(ctx, hello(true))
		expect.ErrorIs(t, err, context.Canceled)
	})
	t.Run("too long for the window", func(t *testing.T) {
		s := chattest.New(t)
		r := chat.Request{Messages: []chat.Message{{Role: "user", Content: strings.Repeat("word ", 9000)}}}
		_, err := client(t, chat.Options{URL: s.URL, Profile: "lfm2.5-1.2b"}).Complete(t.Context(), r)
		if !errors.Is(err, chat.ErrTooLong) || len(s.Requests()) != 0 {
			t.Errorf("%v, %d requests", err, len(s.Requests()))
		}
	})
}

// TestStaysAtItsHost has an endpoint that redirects to another host, which would get the key: that is not followed.
func TestStaysAtItsHost(t *testing.T) {
	other := chattest.New(t, chattest.Reply{Text: "stolen"})
	redirect := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+"/chat/completions", http.StatusTemporaryRedirect)
	}))
	defer redirect.Close()
	r, err := client(t, chat.Options{URL: redirect.URL + "/v1"}).Complete(t.Context(), hello(false))
	if err == nil || !strings.Contains(err.Error(), "not followed") || len(other.Requests()) != 0 {
		t.Errorf("%+v %v, %d requests", r, err, len(other.Requests()))
	}
	// The control: a client without that rule follows.
	resp, err := http.Post(redirect.URL+"/v1/chat/completions", "application/json", strings.NewReader(`{}`))
	expect.Must(t, err)
	_ = resp.Body.Close()
	expect.Equal(t, len(other.Requests()), 1, "the redirect leads nowhere")
}

func TestOptions(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		expect.Must(t, os.WriteFile(path, []byte(text), mode))
		return path
	}
	for _, tt := range []struct {
		name string
		o    chat.Options
		says string // "": no error
	}{
		{"none", chat.Options{}, "--endpoint-url"},
		{"no URL", chat.Options{URL: "localhost:8080"}, "write it as"},
		{"loopback", chat.Options{URL: "http://127.0.0.1:8080/v1"}, ""},
		{"loopback by name", chat.Options{URL: "http://localhost:8080/v1"}, ""},
		{"loopback of IPv6", chat.Options{URL: "http://[::1]:8080/v1"}, ""},
		{"like loopback", chat.Options{URL: "http://127.0.0.1.example.com/v1"}, "another machine"},
		{"remote", chat.Options{URL: "https://example.com/v1"}, "--endpoint-allow-remote"},
		{"remote, allowed", chat.Options{URL: "https://example.com/v1", AllowRemote: true}, ""},
		{"a password", chat.Options{URL: "http://u:p@127.0.0.1/v1"}, "--endpoint-key-file"},
		{"a profile", chat.Options{URL: "http://127.0.0.1/v1", Profile: "x"}, "not known"},
		{"no key", chat.Options{URL: "http://127.0.0.1/v1", KeyFile: filepath.Join(dir, "none")}, "key file"},
		{"an open key", chat.Options{URL: "http://127.0.0.1/v1", KeyFile: put("open", "k", 0o644)}, "chmod 600"},
		{"an empty key", chat.Options{URL: "http://127.0.0.1/v1", KeyFile: put("empty", "\n", 0o600)}, "one line"},
		{"two keys", chat.Options{URL: "http://127.0.0.1/v1", KeyFile: put("two", "a\nb", 0o600)}, "one line"},
		{"a directory", chat.Options{URL: "http://127.0.0.1/v1", KeyFile: dir}, "regular file"},
		{"a FIFO", chat.Options{URL: "http://127.0.0.1/v1", KeyFile: filepath.Join(dir, "fifo")}, "regular file"},
	} {
		switch {
		case runtime.GOOS == "windows" && (tt.name == "an open key" || tt.name == "a FIFO"):
			continue // no modes, no FIFOs
		case tt.name == "a FIFO":
			expect.Must(t, exec.CommandContext(t.Context(), "mkfifo", tt.o.KeyFile).Run())
		}
		_, err := chat.New(tt.o)
		if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// TestToolCalls reads calls whose arguments are a text, as the API has it, and an object, as some servers send it.
func TestToolCalls(t *testing.T) {
	tools := []chat.Tool{{Name: "find", Description: "finds", Schema: []byte(`{"type":"object"}`)}}
	for _, tt := range []struct {
		name  string
		reply chattest.Reply
		args  string
	}{
		{"native", chattest.Reply{ToolCalls: []any{map[string]any{"id": "1", "type": "function",
			"function": map[string]any{"name": "find", "arguments": `{"a":1}`}}}}, `{"a":1}`},
		{"native, an object", chattest.Reply{ToolCalls: []any{map[string]any{"id": "1",
			"function": map[string]any{"name": "find", "arguments": map[string]any{"a": 1}}}}}, `{"a":1}`},
	} {
		s := chattest.New(t, tt.reply)
		r := hello(false)
		r.Tools = tools
		reply, err := client(t, chat.Options{URL: s.URL}).Complete(t.Context(), r)
		expect.Must(t, err)
		got := ""
		if len(reply.ToolCalls) == 1 {
			got = reply.ToolCalls[0].Function.Arguments
		}
		expect.Equal(t, got, tt.args, "%s: %+v", tt.name, reply)
	}
}

// TestLongErrorsHideTheKey has the key where the error's text is clipped.
func TestLongErrorsHideTheKey(t *testing.T) {
	const key = "a-key-of-no-known-form-0123456789"
	file := filepath.Join(t.TempDir(), "key")
	expect.Must(t, os.WriteFile(file, []byte(key), 0o600))
	for n := 150; n < 340; n += 7 {
		s := chattest.New(t, chattest.Reply{Raw: `{"error":"` + strings.Repeat("x", n) + key + `"}`})
		_, err := client(t, chat.Options{URL: s.URL, KeyFile: file}).Complete(t.Context(), hello(false))
		if err == nil || strings.Contains(err.Error(), key[:8]) {
			t.Errorf("%d: %v", n, err)
		}
	}
}

// TestSecretsAreNotSent puts a token into a prompt.
func TestSecretsAreNotSent(t *testing.T) {
	token := "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
	s := chattest.New(t, chattest.Reply{Text: "ok"})
	r := hello(false)
	r.Messages[0].Content = "my token is " + token
	r.Messages = append(r.Messages, chat.Message{Role: "assistant", ToolCalls: []chat.ToolCall{
		{Function: chat.Function{Name: "find", Arguments: `{"path":"` + token + `"}`}}}})
	r.Tools = []chat.Tool{{Name: "find", Description: "with " + token, Schema: []byte(`{"default":"` + token + `"}`)}}
	reply, err := client(t, chat.Options{URL: s.URL}).Complete(t.Context(), r)
	expect.Must(t, err)
	if sent := fmt.Sprint(s.Requests()[0].Body); strings.Contains(sent, token) || reply.Masked < 3 {
		t.Errorf("%s, %d masked", sent, reply.Masked)
	}
}
