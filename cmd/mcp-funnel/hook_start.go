package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/session/hook"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
	clientusage "github.com/mcp-funnel/mcp-funnel/session/usage"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// sessionStart is the word of the hook that runs when a session starts.
const sessionStart = "session-start"

// Limits of what it prints and reads.
const (
	startReferences = 10
	startTokens     = 200
	startAge        = 7 * 24 * time.Hour // calls before are not looked at: the client waits
)

// widths are the lengths to which tool and arguments of an output are cut until all fit, in characters.
var widths = []int{120, 60, 40, 24}

// started returns what to print when a session starts; nil: nothing.
func (c *hookCmd) started(ctx context.Context, s *cli.Settings, w *cli.Streams) ([]byte, error) {
	in, err := hookInput(w)
	if err != nil {
		return nil, err
	}
	start, err := hook.ParseStart(in)
	if err != nil || !start.Again || !s.Enabled {
		return nil, err
	}
	ranked, err := c.used(ctx, s, start)
	if err != nil || len(ranked) == 0 {
		return nil, err
	}
	counter, err := s.Counter()
	if err != nil {
		return nil, err
	}
	var kept []observations.Observation
	if err := s.WithStore(func(store *observations.Store) error {
		for _, id := range ranked {
			o, err := store.Stat(c.Owner, id) // an error: it can no longer be read
			if err == nil && len(kept) < startReferences {
				kept = append(kept, maskFields(s, o))
			}
		}
		return nil
	}); err != nil || len(kept) == 0 {
		return nil, err
	}
	how := "slice, grep and jq read them at source obs:ID"
	if command := c.command(s.Store); command != "" {
		how = "a shell reads one by: " + command + " slice source=obs:ID lines=1-40"
	}
	for n := len(kept); ; n-- {
		for _, width := range widths {
			text := "Stored outputs that this session used; " + how + "\n" + describeKept(kept[:n], width)
			if n == 0 {
				return nil, fmt.Errorf("the command that reads one has over %d tokens", startTokens)
			}
			if counter.Count(text) <= startTokens {
				return hook.AddContext(text), nil
			}
		}
	}
}

// describeKept has a line for each output: its reference, the tool and what it was asked, in at most width characters,
// its size and kind.
func describeKept(all []observations.Observation, width int) string {
	lines := make([]string, len(all))
	for i, o := range all {
		size := content.Plural(o.Stats.Lines, "line", "lines")
		if o.Stats.Lines <= 1 {
			size = short(o.Stats.Tokens) + " tokens"
		}
		asked := strings.Join(strings.Fields(content.Visible(o.Tool+" "+valuesOf(o.Args), false)), " ")
		lines[i] = fmt.Sprintf("obs:%s %s: %s %s", o.ID, content.Clip(asked, width), size, o.Stats.Kind)
	}
	return strings.Join(lines, "\n")
}

// valuesOf returns the values of arguments without their names: texts as they are, others as JSON.
func valuesOf(args json.RawMessage) string {
	var all []string
	err := jsonrpc.EachMember(args, func(_ string, value, _ json.RawMessage) {
		text := string(value)
		_ = json.Unmarshal(value, &text) // of another type: as it is written
		all = append(all, text)
	})
	if err != nil { // long arguments are stored as the beginning of their text
		return string(args)
	}
	return strings.Join(all, " ")
}

// used returns the outputs that a session used, as its calls say that name its ID. A server that was not told the ID
// has none: then the client's own transcript says which outputs it mentions.
func (c *hookCmd) used(ctx context.Context, s *cli.Settings, start hook.Start) ([]observations.ID, error) {
	var uses hook.Uses
	var calls []trace.Call
	err := s.WithTrace(func(log trace.Store) error {
		for call, err := range log.Read(time.Now().Add(-startAge), nil) {
			if err == nil && call.Session == start.Key() && call.Owner == c.Owner {
				calls = append(calls, trace.Call{
					At: call.At, Source: call.Source, Origin: call.Origin, Observation: call.Observation,
				})
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
		return nil
	})
	slices.SortStableFunc(calls, func(a, b trace.Call) int { return a.At.Compare(b.At) }) // each process has a file
	for _, call := range calls {
		uses.AddCall(call)
	}
	ranked := uses.Ranked()
	if err != nil || len(ranked) > 0 || start.Transcript == "" {
		return ranked, err
	}
	text, err := clientusage.Tail(start.Transcript)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the transcript: %w", err)
	}
	uses.AddTranscript(text)
	return uses.Ranked(), nil
}
