package chat

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"

	"github.com/mcp-funnel/mcp-funnel/base/runes"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// wire is a reply, or a chunk of a streamed one.
type wire struct {
	Choices []choice `json:"choices"`
	Usage   *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Details    struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// choice is one of several answers to a request. Only the first is asked for.
type choice struct {
	Index        int    `json:"index"`
	Message      *delta `json:"message"`
	Delta        *delta `json:"delta"`
	FinishReason string `json:"finish_reason"`
}

// delta is a message, or what a chunk adds to it.
type delta struct {
	Content          fragment `json:"content"`
	ReasoningContent fragment `json:"reasoning_content"` // llama.cpp, DeepSeek
	Reasoning        fragment `json:"reasoning"`         // OpenRouter, Ollama
	ToolCalls        []struct {
		Index    int    `json:"index"`
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// fragment is the inside of a JSON string as it is written: a character may be split over two of them, as bytes or as
// the two escapes of a surrogate pair.
type fragment string

// UnmarshalJSON implements [json.Unmarshaler].
func (f *fragment) UnmarshalJSON(raw []byte) error {
	switch {
	case string(raw) == "null":
	case raw[0] == '"':
		*f = fragment(raw[1 : len(raw)-1])
	default:
		return errors.New("a text of it is no string")
	}
	return nil
}

// highSurrogate matches the first escape of a surrogate pair at the end of a text.
var highSurrogate = regexp.MustCompile(`(?:^|[^\\])(?:\\\\)*(\\u[dD][89abAB][0-9a-fA-F]{2})$`)

// textOf returns the text of fragments in a row, without the first half of a character at its end.
func textOf(raw []byte) string {
	if m := highSurrogate.FindSubmatchIndex(raw[max(0, len(raw)-64):]); m != nil {
		raw = raw[:max(0, len(raw)-64)+m[2]]
	}
	text := content.AppendUnquoted(nil, raw)
	return string(text[:runes.Complete(text)])
}

// ReportError is an error that the endpoint reports in its reply, or a reply without a message. Asking again, or
// continuing from the text before it, does not help.
type ReportError struct{ Message string }

func (e *ReportError) Error() string { return e.Message }

// collector collects a reply from its chunks.
type collector struct {
	reply           Reply
	text, reasoning bytes.Buffer // fragments
	choices         bool
	done            bool // a finish reason was seen
}

func (c *collector) add(b []byte) error {
	var w wire
	if err := json.Unmarshal(b, &w); err != nil {
		return &ReportError{"the endpoint's reply is no JSON: " + err.Error()}
	}
	if len(w.Error) > 0 && string(w.Error) != "null" {
		return reportedError(b, w.Error)
	}
	if u := w.Usage; u != nil {
		c.reply.Usage = Usage{Prompt: u.Prompt, Completion: u.Completion, Cached: u.Details.Cached}
	}
	if len(w.Choices) == 0 {
		return nil
	}
	c.choices = true
	first := slices.IndexFunc(w.Choices, func(c choice) bool { return c.Index == 0 })
	if first < 0 {
		return nil // of another answer to the same request
	}
	choice := w.Choices[first]
	if choice.FinishReason != "" {
		c.reply.FinishReason, c.done = choice.FinishReason, true
	}
	d := cmp.Or(choice.Delta, choice.Message)
	if d == nil {
		return nil
	}
	c.text.WriteString(string(d.Content))
	if c.reasoning.WriteString(string(d.ReasoningContent)); d.ReasoningContent == "" {
		c.reasoning.WriteString(string(d.Reasoning))
	}
	for _, t := range d.ToolCalls {
		if t.Index < 0 || t.Index > 255 {
			return &ReportError{fmt.Sprintf("the endpoint's reply has a tool call with the index %d", t.Index)}
		}
		at := t.Index
		if choice.Message != nil { // not streamed: in order, without an index
			at = len(c.reply.ToolCalls)
		}
		for len(c.reply.ToolCalls) <= at {
			c.reply.ToolCalls = append(c.reply.ToolCalls, ToolCall{Type: "function"})
		}
		call := &c.reply.ToolCalls[at]
		call.ID = cmp.Or(call.ID, t.ID)
		call.Function.Name = cmp.Or(call.Function.Name, t.Function.Name)
		call.Function.Arguments += argumentText(t.Function.Arguments)
	}
	return nil
}

// argumentText returns arguments as text: the API has them as a string, some servers as an object.
func argumentText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

func (c *collector) result() Reply {
	c.reply.Text, c.reply.Reasoning = textOf(c.text.Bytes()), textOf(c.reasoning.Bytes())
	return c.reply
}

func parseReply(b []byte) (Reply, error) {
	var c collector
	if err := c.add(b); err != nil {
		return Reply{}, err
	}
	if !c.choices {
		return Reply{}, errNoChoices
	}
	return c.result(), nil
}

var errNoChoices = errors.New("its reply has no choices")

// maxEvent is the longest line of a stream in bytes.
const maxEvent = 1 << 20

// readStream reads server-sent events up to "[DONE]". A stream that ends before that is an error, unless the reason to
// finish was sent.
func readStream(in io.Reader, progress func(int)) (Reply, error) {
	var c collector
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 64<<10), maxEvent)
	for lines.Scan() {
		data, err := eventData(lines.Bytes())
		if err != nil {
			return c.result(), err
		}
		if len(data) == 0 {
			continue
		}
		if string(data) == "[DONE]" {
			if !c.choices {
				return Reply{}, errNoChoices
			}
			return c.result(), nil
		}
		if err := c.add(data); err != nil {
			return c.result(), err
		}
		if progress != nil {
			progress(c.text.Len() + c.reasoning.Len())
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return c.result(), fmt.Errorf("a line of the endpoint's stream has over %d bytes", maxEvent)
	case err != nil:
		return c.result(), fmt.Errorf("the endpoint's stream broke off after %d bytes of text: %w", c.text.Len(), err)
	case !c.done:
		return c.result(), fmt.Errorf("the endpoint's stream ended after %d bytes of text, without its end", c.text.Len())
	}
	return c.result(), nil
}

// eventData returns the data of a line of a stream; empty for a comment, the name of an event, or the blank line after
// one. llama.cpp sends errors as "error: {…}".
func eventData(line []byte) ([]byte, error) {
	name, data, _ := bytes.Cut(bytes.TrimSpace(line), []byte{':'})
	data = bytes.TrimSpace(data)
	switch string(name) {
	case "data":
		return data, nil
	case "", "event", "id", "retry":
		return nil, nil
	case "error":
		return nil, reportedError(data, data)
	}
	if errorText(line) != "" {
		return nil, reportedError(line, nil)
	}
	return nil, &ReportError{
		fmt.Sprintf("a line of the endpoint's stream is no event: %q", content.ClipEnd(string(line), 200)),
	}
}

// reportedError returns the error that the endpoint reports: its message in a reply, else inWords. The caller masks and
// clips it.
func reportedError(reply, inWords []byte) error {
	return &ReportError{"it reports an error: " + cmp.Or(errorText(reply), string(inWords))}
}

// errorText returns the message of an error as endpoints word it in JSON; "" if it has none.
func errorText(b []byte) string {
	var parsed struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
	}
	if json.Unmarshal(b, &parsed) != nil {
		return ""
	}
	var inner struct{ Message string }
	var plain string
	switch {
	case json.Unmarshal(parsed.Error, &inner) == nil && inner.Message != "":
		return inner.Message
	case json.Unmarshal(parsed.Error, &plain) == nil && plain != "":
		return plain
	}
	return parsed.Message
}
