package server

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/continuation/intent"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/funnel/text"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/prompts"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// windowArgument is the argument of a prompt that replaces the server's context window.
const windowArgument = "context_window"

// promptValues returns the prompt and its values, masked and escaped, for what a client sent. A fenced value that is
// the obs:ID of a small text is replaced by that text. A long message is kept, and replaced by its receipt: the prompt
// then names the observation.
func (s promptArea) promptValues(
	ctx context.Context, p prompts.Prompt, sent map[string]string,
) (prompts.Prompt, map[string]string, error) {
	values, given := make(map[string]string, len(sent)), make(map[string]string, len(sent))
	for name, value := range sent {
		values[name] = s.promptText(value)
		if given[name] = ""; strings.TrimSpace(value) != "" {
			given[name] = "given"
		}
	}
	if _, err := p.Text(given); err != nil { // before a message is kept
		return p, nil, jsonrpc.BadParams("%s", err)
	}
	window, err := s.promptWindow(p.Name, sent)
	if err != nil {
		return p, nil, err
	}
	for _, a := range p.Arguments {
		value := strings.TrimSpace(sent[a.Name])
		id := ""
		switch {
		case a.Name == windowArgument && value == "" && window > 0:
			values[a.Name] = strconv.FormatInt(window, 10)
		case a.Fenced && isObservationName(value):
			if values[a.Name], id, err = s.observationText(ctx, value, a.Keep, window); err != nil {
				return p, nil, jsonrpc.BadParams("prompt %s: %s: %s", p.Name, a.Name, jsonrpc.Echo(err.Error()))
			}
		case a.Keep && s.bulky(value, window):
			var shown string
			if shown, id, err = s.keepMessage(ctx, value); err != nil {
				return p, nil, err
			}
			if id != "" {
				values[a.Name] = shown
			}
		}
		if id != "" {
			p = p.Kept(a.Name, id)
		}
	}
	return p, values, nil
}

// promptText masks and escapes a text for a prompt.
func (s promptArea) promptText(value string) string {
	return text.Escape(s.sanitize(value, false), text.Standalone)
}

// promptWindow returns the context window in tokens: the client's argument, else the server's; 0 if it is unknown.
func (s promptArea) promptWindow(prompt string, sent map[string]string) (int64, error) {
	value := strings.TrimSpace(sent[windowArgument])
	if value == "" {
		return int64(s.options.Window), nil
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n <= 0 || n > math.MaxInt32 {
		return 0, jsonrpc.BadParams(
			"prompt %s: %s: %s is not a number of tokens, such as 128000; leave it out if it is unknown",
			prompt,
			windowArgument,
			jsonrpc.Quoted(value),
		)
	}
	return n, nil
}

// bulky reports whether a message is stored instead of being shown whole: if it takes a tenth of the window or more. If
// the window is unknown, the limit is that of the other arguments.
func (s promptArea) bulky(message string, window int64) bool {
	if window <= 0 {
		return len(message) > prompts.MaxValue
	}
	total := s.options.Counter.Total(message)
	return intent.Bulky(int64(math.Ceil(float64(total.N)*(1+total.Margin))), window)
}

func isObservationName(value string) bool {
	return observations.IsName(value) && !strings.ContainsAny(value, " \t\n")
}

// observationText returns the text of an observation for a prompt, and its name. Instead of a text that is too long it
// returns the name alone: the prompt then says how to read it.
func (s promptArea) observationText(
	ctx context.Context, name string, message bool, window int64,
) (value, id string, err error) {
	k := callOf(ctx)
	src, err := s.options.Sources(k.conn.account).Open(ctx, name)
	if err != nil {
		return "", "", err
	}
	defer func() { _ = src.Close() }()
	most := int64(prompts.MaxValue)
	if message {
		most = prompts.MaxMessage
	}
	if src.Extent() > most || src.Encoding == content.NoText {
		return src.Name, src.Name, nil
	}
	text, err := src.Text()
	if err != nil {
		return "", "", err
	}
	stored, err := io.ReadAll(text)
	if err != nil {
		return "", "", err
	}
	if message && s.bulky(string(stored), window) || strings.TrimSpace(string(stored)) == "" {
		return src.Name, src.Name, nil
	}
	return s.promptText(string(stored)), src.Name, nil
}

// keepMessage stores a message as an observation of the caller. It returns the receipt, and the observation's name; ""
// if it could not be stored.
func (s promptArea) keepMessage(ctx context.Context, message string) (receipt, id string, err error) {
	k := callOf(ctx)
	type none struct{}
	keep := tools.New(tools.Tool{Name: "keep", Title: "Keep", Description: "Keeps a message."},
		func(_ context.Context, _ none, _ tools.Input, out tools.Output) error {
			_, err := io.WriteString(out, message)
			return err
		})
	answer, err := s.run(ctx, funnel.Request{
		Tool: keep, Args: json.RawMessage("{}"), Who: k.conn.account, Sources: s.options.Sources(k.conn.account),
		Keep: funnel.Always, Name: "message",
	})
	if err != nil {
		return "", "", err
	}
	k.logOutcome(keep.Name, answer)
	if r := answer.Receipts[0]; r.Kept && !r.Truncated {
		id = observations.Prefix + r.ObservationID
	}
	return textOf(answer), id, nil
}
