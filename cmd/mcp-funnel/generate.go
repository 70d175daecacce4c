package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcp-funnel/mcp-funnel/chat"
	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/internal/continuation"
	"github.com/mcp-funnel/mcp-funnel/internal/generation"
)

type generate struct {
	System string `env:"-" placeholder:"TEXT" help:"System message."`
	JSON   bool   `env:"-" name:"json" help:"Print the figures to standard error as JSON."`
}

func (g *generate) Help() string {
	return `Sends the prompt on standard input to the endpoint (--endpoint-url), and asks it
to go on until the JSON document it writes is whole. Parsing decides that: what
the endpoint gives as its reason to finish is only reported.

The document goes to standard output, as far as it came. The exit code is 0 if it
is whole, else 1.

Example:

  mcp-funnel generate --endpoint-url http://127.0.0.1:8080/v1 < prompt.txt > report.json`
}

// maxPrompt is the largest prompt in bytes.
const maxPrompt = 16 << 20

func (g *generate) Run(ctx context.Context, s *Settings, w *streams) error {
	prompt, err := readPart(ctx, "-", w)
	switch {
	case err != nil:
		return err
	case len(prompt) == 0:
		return usagef("standard input is empty: give the prompt there")
	case len(prompt) > maxPrompt:
		return fmt.Errorf("the prompt has %d bytes, and may have %d", len(prompt), maxPrompt)
	}
	client, counter, err := s.endpoint()
	if err != nil {
		return err
	}
	ctx, stop := untilSignal(ctx)
	defer stop()
	bar := newBar(w.err, "generate")
	out, err := generation.Generate(ctx, client, generation.Options{
		System: g.System, Prompt: string(prompt),
		Document: continuation.Options{
			MaxParts: s.MaxParts, OutlineTokens: s.OutlineTokens, Tokens: counter.Count,
		},
		Progress: func(part, bytes int) { bar.progress(int64(bytes), 0, fmt.Sprintf("bytes of part %d", part)) },
		Report: func(part int, r chat.Reply, joined continuation.Result, d *continuation.Document) {
			bar.end()
			how := joined.Join
			if how == "" {
				how = "not joined: " + joined.Reason
			}
			printMessage(w.err, fmt.Sprintf("part %d: %d bytes, %s; %s", part, len(r.Text), how, d.Position()))
		},
	})
	bar.end()
	if _, e := w.out.Write(out.Text); e != nil {
		return e
	}
	if g.JSON {
		if e := writeJSON(w.err, generateFigures(out, err), ""); e != nil {
			return e
		}
	}
	for _, f := range out.Review {
		printMessage(w.err, "look at: "+f)
	}
	switch {
	case err != nil:
		return err
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
