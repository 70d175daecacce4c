package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"

	"github.com/mcp-funnel/mcp-funnel/continuation"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

type joinCmd struct {
	Parts  []string `arg:"" help:"Files with the parts, in order; - is standard input."`
	Output string   `short:"o" env:"-" placeholder:"FILE" help:"Write the joined text to this new file instead of standard output."`
	JSON   bool     `env:"-" name:"json" help:"Print how each part was joined to standard error as JSON."`
}

func (c *joinCmd) Help() string {
	return `Joins the parts of a JSON document that was cut off: a part may begin again
anywhere, if what it repeats can be found without guessing. A part that fits in
two ways is refused: the text joined so far is written, and the exit code is 1.
It is also 1 if the joined text is not whole.

Example:

  mcp-funnel join answer1.txt answer2.txt -o report.json`
}

func (c *joinCmd) Run(ctx context.Context, s *cli.Settings, w *cli.Streams) error {
	d := continuation.New(continuation.Options{MaxParts: max(len(c.Parts), s.MaxParts)})
	var last continuation.Result
	for i, name := range c.Parts {
		part, err := readPart(ctx, name, w)
		if err != nil {
			return err
		}
		last = d.Add(part)
		if err := c.report(w, name, i+1, last); err != nil {
			return err
		}
		if last.Join == "" {
			break
		}
	}
	if err := c.write(d.Text(), w); err != nil {
		return err
	}
	if last.Join != "" && last.State != continuation.Whole {
		cli.PrintMessage(w.Err, "the joined text is not whole: "+d.Position())
	}
	if last.Join == "" || last.State != continuation.Whole {
		return cli.ErrFailed
	}
	return nil
}

// report reports how a part was joined.
func (c *joinCmd) report(w *cli.Streams, name string, n int, r continuation.Result) error {
	if c.JSON {
		return cli.WriteJSON(w.Err, map[string]any{
			"part": n, "file": name, "state": r.State, "join": r.Join, "reason": r.Reason, "dropped": r.Dropped,
		}, "")
	}
	text := fmt.Sprintf("part %d, %s: %s", n, name, r.Join)
	if r.Join == "" {
		text = fmt.Sprintf("part %d, %s: not joined: %s", n, name, r.Reason)
	}
	if r.Dropped != "" {
		text += "; left out: " + content.ClipBytes(r.Dropped, 100)
	}
	cli.PrintMessage(w.Err, text)
	return nil
}

// write writes the joined text.
func (c *joinCmd) write(text []byte, w *cli.Streams) error {
	if c.Output == "" {
		_, err := w.Out.Write(text)
		return err
	}
	f, err := os.OpenFile(c.Output, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s exists already: name a new file, or remove it", c.Output)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// maxPart is the largest part in bytes: that of a document of deliver. To join one takes about 25 times its size.
const maxPart = 64 << 20

// readPart reads a part from a file or standard input.
func readPart(ctx context.Context, name string, w *cli.Streams) ([]byte, error) {
	in, closeInput, err := openInput(name, w)
	if err != nil {
		return nil, err
	}
	defer closeInput()
	b, err := io.ReadAll(io.LimitReader(content.WithContext(ctx, in), maxPart+1))
	if err == nil && len(b) > maxPart {
		err = fmt.Errorf("it has over %d bytes (64 MiB), the largest part that is read", int64(maxPart))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return b, nil
}
