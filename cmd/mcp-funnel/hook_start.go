package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/session/hook"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
	clientusage "github.com/mcp-funnel/mcp-funnel/session/usage"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// sessionStart is the word of the hook that runs when a session starts.
const sessionStart = "session-start"

// Limits of what it prints and reads.
const (
	startReferences = 10
	startTokens     = 200
	startAge        = 7 * 24 * time.Hour // earlier calls are not read: the client waits
)

// started returns what to print when a session starts; nil: nothing.
func (c *hookCmd) started(_ context.Context, in []byte, s *cli.Settings, w *cli.Streams) ([]byte, error) {
	start, err := hook.ParseStart(in)
	if err != nil || !start.Again || !s.Enabled {
		return nil, err
	}
	ranked, err := c.used(s, start, w)
	if err != nil || len(ranked) == 0 {
		return nil, err
	}
	counter, err := s.Counter()
	if err != nil {
		return nil, err
	}
	var kept []observations.Observation
	err = s.WithStore(func(store *observations.Store) error {
		for _, id := range ranked {
			if o, data, err := store.Backend.Open(c.Owner, id); err == nil { // it can be read
				_ = data.Close()
				kept = append(kept, maskFields(s, o))
			}
			if len(kept) == startReferences {
				break
			}
		}
		return nil
	})
	if err != nil || len(kept) == 0 {
		return nil, err
	}
	text := "Stored outputs that this session used; slice, grep and jq read them at source obs:ID"
	if command := c.command(s.Store); command != "" {
		text = "Stored outputs that this session used; a shell reads one by: " + command + " slice source=obs:ID lines=1-40"
	}
	for width := 120; len(kept) > 0; {
		lines := text
		for _, o := range kept {
			lines += "\n" + reference(o, width)
		}
		if counter.Count(lines) <= startTokens {
			return hook.AddContext(lines), nil
		}
		if width -= 12; width < 24 {
			width, kept = 24, kept[:len(kept)-1]
		}
	}
	return nil, fmt.Errorf("the command that reads one has over %d tokens: hook it up with --configured", startTokens)
}

// reference returns a line for a stored output: its ID, tool and arguments in at most width bytes, size and kind.
func reference(o observations.Observation, width int) string {
	asked, args := o.Tool, map[string]any{}
	_ = json.Unmarshal(o.Args, &args) // long ones are stored as the beginning of their text, and left out
	for _, name := range slices.Sorted(maps.Keys(args)) {
		asked += " " + fmt.Sprint(args[name])
	}
	size := content.Plural(o.Stats.Lines, "line", "lines")
	if o.Stats.Lines <= 1 {
		size = short(o.Stats.Tokens) + " tokens"
	}
	asked = content.ClipBytes(strings.Join(strings.Fields(content.Visible(asked, false)), " "), width)
	return fmt.Sprintf("obs:%s %s: %s %s", o.ID, asked, size, o.Stats.Kind)
}

// used returns the outputs that a session used: by the calls that name its ID, and by the client's own transcript, which
// also mentions those of calls that the server did not know to be of this session.
func (c *hookCmd) used(s *cli.Settings, start hook.Start, w *cli.Streams) (ranked []observations.ID, err error) {
	var calls []trace.Call
	err = s.WithTrace(func(log trace.Store) error {
		for call, err := range log.Read(time.Now().Add(-startAge), nil) {
			if err == nil && call.Session == start.Key() && call.Owner == c.Owner {
				call.Opened = nil // it may be long
				calls = append(calls, call)
			}
		}
		return nil
	})
	text, unread := clientusage.Tail(start.Transcript)
	if unread != nil && !errors.Is(unread, fs.ErrNotExist) {
		cli.PrintMessage(w.Err, fmt.Sprintf("hook: what only the transcript mentions is not listed: %s", unread))
	}
	return hook.Rank(calls, hook.Mentions(text)), err
}
