// Package chattest is an OpenAI-compatible endpoint for tests: a real HTTP server on loopback with scripted replies.
package chattest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// Reply is a scripted reply. The zero value of Status is 200.
type Reply struct {
	Text      string
	Reasoning string
	Finish    string // "stop" by default
	Status    int
	Header    map[string]string
	Raw       string // sent instead of a reply, as it is
	CutAfter  int    // of a streamed reply: the connection is closed after that many chunks of 7 characters; 0: it is not
	ToolCalls []any
	Wait      chan struct{} // the reply begins when it is closed
}

// Request is a request as it arrived.
type Request struct {
	Header   http.Header
	Body     map[string]any
	Messages []struct{ Role, Content string }
}

// Server answers requests with its replies, one after the other.
type Server struct {
	URL string // with /v1

	mu       sync.Mutex
	answer   func(n int, r Request) Reply
	requests []Request
}

// New starts a server that answers with these replies, and ends it with the test. A request after the last reply is an
// error 500.
func New(t testing.TB, replies ...Reply) *Server {
	t.Helper()
	return Answering(t, func(n int, _ Request) Reply {
		if n < len(replies) {
			return replies[n]
		}
		return Reply{Status: http.StatusInternalServerError, Raw: `{"error":{"message":"no reply is left in the script"}}`}
	})
}

// Answering starts a server whose replies a function makes of the requests, counted from 0.
func Answering(t testing.TB, answer func(n int, r Request) Reply) *Server {
	t.Helper()
	s := &Server{answer: answer}
	h := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(h.Close)
	s.URL = h.URL + "/v1"
	return s
}

// Requests returns the requests so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(io.LimitReader(r.Body, 64<<20)) // a broken request has no messages
	req := Request{Header: r.Header}
	_ = json.Unmarshal(raw, &req.Body)
	_ = json.Unmarshal(raw, &struct{ Messages any }{&req.Messages})
	s.mu.Lock()
	n := len(s.requests)
	s.requests = append(s.requests, req)
	reply := Reply{Status: http.StatusNotFound, Raw: "no such path"}
	if r.URL.Path == "/v1/chat/completions" {
		reply = s.answer(n, req)
	}
	s.mu.Unlock()
	if reply.Wait != nil {
		select {
		case <-reply.Wait:
		case <-r.Context().Done():
			return
		}
	}
	stream, _ := req.Body["stream"].(bool)
	reply.write(w, stream)
}

func (r Reply) write(w http.ResponseWriter, stream bool) {
	kind := "application/json"
	if stream && r.Raw == "" {
		kind = "text/event-stream"
	}
	w.Header().Set("Content-Type", kind)
	for k, v := range r.Header {
		w.Header().Set(k, v)
	}
	if r.Status != 0 {
		w.WriteHeader(r.Status)
	}
	finish := cmp.Or(r.Finish, "stop")
	usage := map[string]any{
		"prompt_tokens": 100, "completion_tokens": len(r.Text) / 4,
		"prompt_tokens_details": map[string]any{"cached_tokens": 40},
	}
	switch {
	case r.Raw != "":
		_, _ = io.WriteString(w, r.Raw)
	case stream:
		r.stream(w, finish, usage)
	default:
		message := map[string]any{"role": "assistant", "content": r.Text, "reasoning_content": r.Reasoning}
		if r.ToolCalls != nil {
			message["tool_calls"] = r.ToolCalls
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"choices": []any{map[string]any{"message": message, "finish_reason": finish}}, "usage": usage,
		})
	}
}

func (r Reply) stream(w http.ResponseWriter, finish string, usage map[string]any) {
	send := func(v any) {
		b, _ := json.Marshal(v)
		_, _ = fmt.Fprintf(w, "data: %s\n\n", b)
		w.(http.Flusher).Flush()
	}
	runes := []rune(r.Text)
	if r.Reasoning != "" {
		send(map[string]any{"choices": []any{map[string]any{"delta": map[string]any{"reasoning_content": r.Reasoning}}}})
	}
	for n := 1; len(runes) > 0; n++ {
		k := min(7, len(runes))
		send(map[string]any{"choices": []any{map[string]any{"delta": map[string]any{"content": string(runes[:k])}}}})
		runes = runes[k:]
		if n == r.CutAfter {
			panic(http.ErrAbortHandler)
		}
	}
	send(map[string]any{"choices": []any{map[string]any{"delta": map[string]any{}, "finish_reason": finish}}})
	send(map[string]any{"choices": []any{}, "usage": usage})
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}
