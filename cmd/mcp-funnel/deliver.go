package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"

	"github.com/mcp-funnel/mcp-funnel/base/runes"
	"github.com/mcp-funnel/mcp-funnel/continuation"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/text/jsontrunc"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/deliver"
)

type deliverCmd struct {
	File   string `arg:"" optional:"" help:"File with the part; left out or -: standard input."`
	After  string `env:"-" placeholder:"obs:ID" help:"The document so far, as the last answer named it; left out: the part is the first."`
	As     string `env:"-" enum:"document,intent,tasks,action,text,markdown,code" default:"document" help:"What is delivered: ${enum}. The fields of an intent, tasks or action are checked; of text, markdown and code nothing is parsed."`
	Intent string `env:"-" placeholder:"obs:ID" help:"What to check against: the intent, or for an intent the message that it was taken from."`
	JSON   bool   `env:"-" name:"json" help:"Print the whole answer as JSON."`
}

func (d *deliverCmd) Help() string {
	return `Does what the tool deliver does: stores the part, joins it to the document so
far, and says what to send next. The exit code is 0 once the document is whole,
else 1.

Examples:

  mcp-funnel deliver part1.txt
  mcp-funnel deliver --after obs:x7m2k9q4b3va part2.txt`
}

func (d *deliverCmd) Run(ctx context.Context, s *cli.Settings, w *cli.Streams) error {
	part, err := readPart(ctx, cmp.Or(d.File, "-"), w)
	if err != nil {
		return err
	}
	if part, err = wholeCharacters(part); err != nil {
		return fmt.Errorf("%s: %w", cmp.Or(d.File, "-"), err)
	}
	args, err := json.Marshal(deliver.Args{Part: tools.Text(part), After: d.After, As: d.As, Intent: d.Intent})
	if err != nil {
		return err
	}
	return cli.Do(ctx, s, w, "deliver", func(ctx context.Context, app *cli.App, bar *cli.Bar) error {
		a, err := callTool(ctx, s, w, app, bar, funnel.Request{Tool: deliver.Tool(s.Deliver()), Args: args}, d.JSON)
		if err == nil && a.Receipts[0].Metadata["whole"] != 1 {
			err = cli.ErrFailed
		}
		return err
	})
}

// wholeCharacters returns a part in UTF-8, without the beginning of a character at its end: the restart text does not
// have it either.
func wholeCharacters(part []byte) ([]byte, error) {
	part, err := continuation.Decode(part)
	if err != nil {
		return nil, err
	}
	if len(runes.TrimStart(part)) < len(part) {
		return nil, errors.New("it begins inside of a character: begin with the restart text")
	}
	end := runes.Complete(part)
	if end < len(part) {
		if r, err := jsontrunc.Check(bytes.NewReader(part)); err != nil || r.State == jsontrunc.Trailing {
			return nil, errors.New("bytes that are not UTF-8 follow the end of the document")
		}
	}
	return part[:end], nil
}
