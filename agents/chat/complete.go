package chat

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// ErrTooLong is returned, before anything is sent, for a request that does not fit the context window.
var ErrTooLong = errors.New("the request does not fit the context window")

// StatusError is an HTTP status of the endpoint other than 200.
type StatusError struct {
	Status     int
	Message    string        // of the endpoint, at most 300 bytes
	RetryAfter time.Duration // 0: not said
	setting    string        // that names the model; "": --endpoint-name
}

func (e *StatusError) Error() string {
	s := fmt.Sprintf("the endpoint answers %d %s", e.Status, http.StatusText(e.Status))
	if e.Message != "" {
		s += ": " + e.Message
	}
	switch {
	case e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden:
		s += "; check --endpoint-key-file"
	case e.Status == http.StatusNotFound:
		s += "; check --endpoint-url (it usually ends with /v1) and " + cmp.Or(e.setting, "--endpoint-name")
	case e.RetryAfter > 0:
		s += fmt.Sprintf("; try again in %s", e.RetryAfter)
	}
	return s
}

// Complete sends a request and returns the reply. After an error in the middle of a streamed reply, the reply has the
// text that was received.
func (c *Client) Complete(ctx context.Context, r Request) (Reply, error) {
	body, masked, err := c.body(r)
	if err != nil {
		return Reply{}, err
	}
	var reply Reply
	err = c.send(ctx, "/chat/completions", body, func(resp *http.Response, in io.Reader) (err error) {
		reply, err = c.read(resp, in, r.Progress)
		reply.Masked = masked
		return err
	})
	return reply, err
}

// send posts a request and has read read the body of the reply, which is bounded in bytes and time. A status other than
// 200 is a [StatusError]. Errors are worded for the operator, with the key and secrets masked.
func (c *Client) send(ctx context.Context, path string, body []byte, read func(*http.Response, io.Reader) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	timer := time.AfterFunc(c.options.Timeout, func() {
		stop(fmt.Errorf("the endpoint sent nothing for %s; a larger --endpoint-timeout waits longer", c.options.Timeout))
	})
	defer timer.Stop()
	limit := time.AfterFunc(totalTimeouts*c.options.Timeout, func() {
		stop(&ReportError{fmt.Sprintf("the endpoint was still writing after %s, ten times the --endpoint-timeout",
			totalTimeouts*c.options.Timeout)})
	})
	defer limit.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return c.explain(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	in := &limitedBody{body: resp.Body, left: maxReply, alive: func() { timer.Reset(c.options.Timeout) }}
	if resp.StatusCode != http.StatusOK {
		return c.statusError(resp, in)
	}
	if err := read(resp, in); err != nil {
		return c.explain(ctx, err)
	}
	return nil
}

// body returns the JSON of a request, with its secrets masked, and how many there were.
func (c *Client) body(r Request) ([]byte, int, error) {
	masked, size := 0, 0
	mask := func(text string) string {
		text, n := c.mask.String(text)
		masked += n
		return text
	}
	messages := make([]Message, len(r.Messages))
	for i, m := range r.Messages {
		m.Content = mask(m.Content)
		m.ToolCalls = slices.Clone(m.ToolCalls)
		for j := range m.ToolCalls {
			f := &m.ToolCalls[j].Function
			f.Arguments = mask(f.Arguments)
			size += c.options.Count(f.Name) + c.options.Count(f.Arguments) + 8
		}
		messages[i] = m
		size += c.options.Count(m.Content) + 8
	}
	b := map[string]any{"messages": messages}
	maps.Copy(b, c.profile.Parameters)
	if c.options.Name != "" {
		b["model"] = c.options.Name
	}
	limit := cmp.Or(r.MaxTokens, c.profile.MaxTokens)
	if limit > 0 {
		b["max_tokens"] = limit
	}
	if r.Stream {
		b["stream"] = true
		b["stream_options"] = map[string]any{"include_usage": true}
	}
	if r.Prefill {
		if !c.profile.Prefill {
			return nil, 0, errors.New("this endpoint profile does not go on with an assistant's message")
		}
		b["continue_final_message"], b["add_generation_prompt"] = true, false
	}
	if len(r.Tools) > 0 {
		var list []any
		for _, t := range r.Tools {
			t.Description = mask(t.Description)
			t.Schema = c.mask.JSON(t.Schema)
			list = append(list, map[string]any{"type": "function", "function": map[string]any{
				"name": t.Name, "description": t.Description, "parameters": t.Schema}})
			size += c.options.Count(t.Name) + c.options.Count(t.Description) + c.options.Count(string(t.Schema)) + 8
		}
		b["tools"] = list
	}
	if window := c.options.Context; window > 0 && size+limit > window {
		return nil, 0, fmt.Errorf("%w: about %d tokens and a reply of %d, of %d", ErrTooLong, size, limit, window)
	}
	body, err := json.Marshal(b)
	return body, masked, err
}

// explain returns an error of the connection in words that say what to do.
func (c *Client) explain(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) &&
		!errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	var dns *net.DNSError
	var report *ReportError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &report):
		return &ReportError{fmt.Sprintf("the endpoint %s: %s", c.host, c.safe(report.Message))}
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("the endpoint %s refuses connections: is the model server running?", c.host)
	case errors.As(err, &dns):
		return fmt.Errorf("the endpoint's host %q is not found; check --endpoint-url", dns.Name)
	}
	return fmt.Errorf("the endpoint %s: %s", c.host, c.safe(err.Error()))
}

// safe masks secrets in a text of the endpoint, and the key.
func (c *Client) safe(s string) string {
	if c.key != "" {
		s = strings.ReplaceAll(s, c.key, "[key]")
	}
	s, _ = c.mask.String(s)
	return content.ClipEnd(strings.Join(strings.Fields(s), " "), 300)
}

// statusError reads the body of an error.
func (c *Client) statusError(resp *http.Response, in io.Reader) error {
	b, _ := io.ReadAll(io.LimitReader(in, 64<<10)) // as much of it as there is
	text := cmp.Or(errorText(b), string(b))
	e := &StatusError{Status: resp.StatusCode, Message: c.safe(text)}
	after := resp.Header.Get("Retry-After")
	if s, err := strconv.Atoi(after); err == nil && s > 0 {
		e.RetryAfter = time.Duration(s) * time.Second
	} else if at, err := http.ParseTime(after); err == nil {
		e.RetryAfter = max(time.Until(at).Round(time.Second), 0)
	}
	return e
}

// limitedBody is the body of a reply. Each byte resets the time limit.
type limitedBody struct {
	body  io.Reader
	left  int64
	alive func()
}

var errTooLarge = errors.New("the reply is larger than is read")

func (l *limitedBody) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errTooLarge
	}
	if int64(len(p)) > l.left {
		p = p[:l.left]
	}
	n, err := l.body.Read(p)
	l.left -= int64(n)
	if n > 0 {
		l.alive()
	}
	return n, err
}

// read reads a reply, streamed or not.
func (c *Client) read(resp *http.Response, in io.Reader, progress func(int)) (Reply, error) {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch kind {
	case "text/event-stream":
		return readStream(in, progress)
	case "application/json", "":
		b, err := io.ReadAll(in)
		if err != nil {
			return Reply{}, err
		}
		return parseReply(b)
	}
	return Reply{}, notJSON(kind)
}

func notJSON(kind string) error {
	return fmt.Errorf("it answers with %q, not JSON: is it an OpenAI-compatible API? check --endpoint-url",
		content.ClipEnd(kind, 200))
}
