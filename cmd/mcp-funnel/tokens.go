package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/mcp-funnel/mcp-funnel/base/runes"
	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"

	"github.com/mcp-funnel/mcp-funnel/funnel/policy"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
)

type tokensCmd struct {
	Files  []string `arg:"" optional:"" help:"Files to count; none or -: standard input."`
	Policy bool     `env:"-" help:"Also show what the policy would decide."`
}

func (c *tokensCmd) Run(ctx context.Context, s *cli.Settings, w *cli.Streams) error {
	counter, err := s.Counter()
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(w.Out, 0, 0, 2, ' ', tabwriter.AlignRight) // it writes at Flush, which returns the error
	head := "TOKENS\tBYTES\tLINES\t"
	if c.Policy {
		head += "VERDICT\t"
	}
	var fail error
	one := func(name string, r io.Reader) {
		n, size, encoding, err := count(ctx, counter, r)
		if err != nil {
			cli.PrintMessage(w.Err, fmt.Errorf("%s: %w", name, err))
			fail = cli.ErrFailed
			return
		}
		if head != "" {
			_, _ = fmt.Fprintln(t, head+" FILE")
			head = ""
		}
		_, _ = fmt.Fprintf(t, "%s\t%d\t%d\t", n, size.Bytes, size.Lines)
		if c.Policy {
			d := s.Options().Policy.Decide(size, policy.Spent{})
			_, _ = fmt.Fprintf(t, "%s\t", d.Verdict)
			if d.Reason != "" {
				name += " (" + d.Reason + ")"
			}
		}
		if encoding.Writer(io.Discard) != nil { // the text was decoded
			name += " (" + encoding.Note() + ")"
		}
		_, _ = fmt.Fprintf(t, " %s\n", cli.InLine(name))
	}
	if len(c.Files) == 0 {
		c.Files = []string{"-"}
	}
	for _, path := range c.Files {
		if path == "-" {
			one(path, w.In)
			continue
		}
		f, err := os.Open(path)
		if err != nil {
			cli.PrintMessage(w.Err, err)
			fail = cli.ErrFailed
			continue
		}
		one(path, f)
		_ = f.Close()
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return fail
}

// byteCount counts the bytes written to it.
type byteCount int64

func (n *byteCount) Write(p []byte) (int, error) {
	*n += byteCount(len(p))
	return len(p), nil
}

// count reads a text once and counts its tokens and lines after decoding, and its bytes as stored. It does not
// count chars: the policy needs tokens only.
func count(ctx context.Context, c *tokens.Counter, r io.Reader) (tokens.Total, policy.Size, content.Encoding, error) {
	var size policy.Size
	var stored byteCount
	text, encoding, err := content.Decode(io.TeeReader(r, &stored))
	if err != nil {
		return tokens.Total{}, size, encoding, err
	}
	t := c.Tally()
	var lines runes.LineCounter
	buf := make([]byte, 256<<10)
	if _, err := io.CopyBuffer(io.MultiWriter(&lines, t), content.WithContext(ctx, text), buf); err != nil {
		return tokens.Total{}, size, encoding, err
	}
	total := t.Total()
	size.Tokens, size.Margin, size.Bytes, size.Lines = total.N, total.Margin, int64(stored), lines.Lines()
	return total, size, encoding, nil
}
