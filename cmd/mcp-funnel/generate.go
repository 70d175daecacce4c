package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"

	"github.com/mcp-funnel/mcp-funnel/agents/chat"
	"github.com/mcp-funnel/mcp-funnel/agents/generation"
	"github.com/mcp-funnel/mcp-funnel/continuation"
	"github.com/mcp-funnel/mcp-funnel/continuation/intent"
	"github.com/mcp-funnel/mcp-funnel/prompts"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/secrets"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
)

type generate struct {
	As     string `env:"-" enum:"document,intent,tasks,action" default:"document" help:"What to write: ${enum}. For an intent standard input is the user's message, for an action its objective; the fields are checked."`
	Intent string `env:"-" placeholder:"FILE" help:"The intent that tasks or an action belong to, as generate --as intent wrote it."`
	System string `env:"-" placeholder:"TEXT" help:"System message."`
	JSON   bool   `env:"-" name:"json" help:"Print the figures to standard error as JSON."`
}

func (g *generate) Help() string {
	return `Sends the prompt on standard input to the endpoint (--endpoint-url), and asks it
to go on until the JSON document it writes is whole. Parsing decides that: what
the endpoint gives as its reason to finish is only reported.

The document goes to standard output, as far as it came. The exit code is 0 if it
is whole, else 1.

Examples:

  mcp-funnel generate --endpoint-url http://127.0.0.1:8080/v1 < prompt.txt > report.json
  mcp-funnel generate --as intent < message.txt > intent.json
  mcp-funnel generate --as tasks --intent intent.json > tasks.json`
}

// maxPrompt is the largest prompt in bytes.
const maxPrompt = 16 << 20

func (g *generate) Run(ctx context.Context, s *cli.Settings, w *cli.Streams) error {
	var prompt []byte
	var err error
	if g.As != string(intent.Tasks) { // tasks follow from the intent alone
		prompt, err = readPart(ctx, "-", w)
	}
	switch {
	case err != nil:
		return err
	case len(bytes.TrimSpace(prompt)) == 0 && g.As != string(intent.Tasks):
		return cli.Usagef("standard input is empty: give the prompt there")
	case len(prompt) > maxPrompt:
		return fmt.Errorf("the prompt has %d bytes, and may have %d", len(prompt), maxPrompt)
	}
	task, err := g.task(ctx, string(prompt), s.ContextWindow, w)
	if err != nil {
		return err
	}
	client, counter, err := s.Endpoint()
	if err != nil {
		return err
	}
	ctx, stop := cli.UntilSignal(ctx)
	defer stop()
	mask := secrets.New() // the client masks what it sends
	bar := cli.NewBar(w.Err, "generate", time.Now())
	out, err := generation.Generate(ctx, client, generation.Options{
		System: g.System, Prompt: task.prompt,
		Document: continuation.Options{
			MaxParts: s.MaxParts, OutlineTokens: s.OutlineTokens, Tokens: counter.Count,
			AsShown: func(before, text string) bool {
				shown, _ := mask.String(before + text)
				return strings.HasSuffix(shown, text)
			},
		},
		Progress: func(part, bytes int) { bar.Progress(int64(bytes), 0, fmt.Sprintf("bytes of part %d", part)) },
		Report: func(part int, r chat.Reply, joined continuation.Result, d *continuation.Document) {
			bar.End()
			how := joined.Join
			if how == "" {
				how = "not joined: " + joined.Reason
			}
			cli.PrintMessage(w.Err, fmt.Sprintf("part %d: %d bytes, %s; %s", part, len(r.Text), how, d.Position()))
		},
	})
	bar.End()
	if _, e := w.Out.Write(out.Text); e != nil {
		return e
	}
	if g.JSON {
		if e := cli.WriteJSON(w.Err, generateFigures(out, err), ""); e != nil {
			return e
		}
	}
	for _, f := range out.Review {
		cli.PrintMessage(w.Err, "look at: "+f)
	}
	if n := len(out.Finish); out.Verdict == continuation.Done && n > 0 && out.Finish[n-1] == "length" {
		cli.PrintMessage(w.Err,
			`look at: the endpoint gives "length" as its reason to finish, though the document parses`)
	}
	faults := 0
	if out.Verdict == continuation.Done {
		faults = task.check(out.Text, int64(client.Context()), counter, w)
	}
	switch {
	case err != nil:
		return err
	case faults > 0:
		return fmt.Errorf("the %s has %s", g.As, content.Plural(int64(faults), "fault", "faults"))
	case out.Verdict == continuation.Unknown:
		return errors.New("what was written is not JSON: whether it is complete cannot be told")
	case out.Verdict != continuation.Done:
		return fmt.Errorf("the document is not whole: %s", content.ClipBytes(out.Reason, 300))
	}
	return nil
}

func generateFigures(out generation.Outcome, err error) map[string]any {
	figures := map[string]any{
		"state": out.State, "verdict": out.Verdict, "reason": out.Reason, "requests": out.Requests, "bytes": len(out.Text),
		"usage": out.Usage, "finish_reasons": out.Finish, "masked": out.Masked,
	}
	if err != nil {
		figures["error"] = err.Error()
	}
	return figures
}

// task is what generate asks for.
type task struct {
	level  intent.Level // "": a document, of which no field is checked
	prompt string
	given  []byte // the message of an intent, or the intent of tasks and actions
}

// task returns the prompt for what is to be written.
func (g *generate) task(ctx context.Context, given string, window int, w *cli.Streams) (*task, error) {
	t := &task{level: intent.Level(g.As), prompt: given}
	values := map[string]string{}
	switch t.level {
	case intent.Intent:
		t.given = []byte(given)
		values["message"] = given
		if window > 0 {
			values["context_window"] = strconv.Itoa(window)
		}
	case intent.Tasks, intent.Action:
		if g.Intent == "" {
			return nil, cli.Usagef("--as %s needs --intent FILE", g.As)
		}
		kept, err := readPart(ctx, g.Intent, w)
		if err != nil {
			return nil, err
		}
		t.given = kept
		values["intent"] = string(kept)
		if t.level == intent.Action {
			values["objective"] = given
		}
	default:
		t.level = ""
		return t, nil
	}
	for _, p := range prompts.All() {
		if p.Name == g.As {
			text, err := p.Text(values)
			if err != nil {
				return nil, err
			}
			// The last paragraph names tools, which an endpoint does not have.
			text, _, _ = strings.Cut(text, "\nPass your JSON to `deliver`")
			t.prompt = strings.TrimSpace(text) + "\n\nAnswer with the JSON only."
		}
	}
	return t, nil
}

// check checks the fields of what was written, reports faults and notes, and returns the number of faults.
func (t *task) check(text []byte, window int64, counter *tokens.Counter, w *cli.Streams) int {
	if t.level == "" {
		return 0
	}
	o := intent.Options{Window: window, Tokens: func(b []byte) int64 {
		n := counter.Total(string(b))
		return int64(math.Ceil(float64(n.N) * (1 + n.Margin)))
	}}
	if t.level == intent.Intent {
		o.Message = t.given
	} else {
		o.Intent = t.given
	}
	r := intent.Check(t.level, text, o)
	for _, f := range r.Faults {
		cli.PrintMessage(w.Err, "fault: "+f)
	}
	for _, n := range r.Notes {
		cli.PrintMessage(w.Err, "note: "+n)
	}
	return len(r.Faults)
}
