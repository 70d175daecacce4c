package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/tokens"
)

type tokensCmd struct {
	Files  []string `arg:"" optional:"" help:"Files to count; none: standard input."`
	Policy bool     `env:"-" help:"Also say what the policy would decide."`
}

func (c *tokensCmd) Run(ctx context.Context, s *Settings, w *streams) error {
	counter, err := s.counter()
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(w.out, 0, 0, 2, ' ', tabwriter.AlignRight) // it writes, and may fail, at its flush
	head := "TOKENS\tBYTES\tLINES\t"
	if c.Policy {
		head += "VERDICT\t"
	}
	var fail error
	one := func(name string, r io.Reader) {
		n, size, err := count(ctx, counter, r)
		if err != nil {
			complain(w.err, fmt.Errorf("%s: %w", name, err))
			fail = errFailed
			return
		}
		if head != "" {
			_, _ = fmt.Fprintln(t, head+" FILE")
			head = ""
		}
		_, _ = fmt.Fprintf(t, "%s\t%d\t%d\t", totalText(n), size.Bytes, size.Lines)
		if c.Policy {
			d := s.policy().Decide(size, 0)
			_, _ = fmt.Fprintf(t, "%s\t", d.Verdict)
			if d.Reason != "" {
				name += " (" + d.Reason + ")"
			}
		}
		_, _ = fmt.Fprintf(t, " %s\n", inLine(name))
	}
	if len(c.Files) == 0 {
		one("-", w.in)
	}
	for _, path := range c.Files {
		f, err := os.Open(path)
		if err != nil {
			complain(w.err, err)
			fail = errFailed
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

// count reads a text once. Its chars are not counted: the policy asks for tokens alone.
func count(ctx context.Context, c *tokens.Counter, r io.Reader) (tokens.Total, funnel.Size, error) {
	var size funnel.Size
	t := c.Tally()
	buf := make([]byte, 256<<10)
	last := byte('\n')
	for {
		n, err := r.Read(buf)
		if n > 0 {
			last = buf[n-1]
		}
		size.Lines += int64(bytes.Count(buf[:n], []byte{'\n'}))
		size.Bytes += int64(n)
		_, _ = t.Write(buf[:n]) // never fails
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return tokens.Total{}, size, err
		}
	}
	if last != '\n' {
		size.Lines++
	}
	total := t.Total()
	size.Tokens = total.N
	return total, size, nil
}

// totalText writes an estimate as such: ~24600 ±1.0 % from samples, ≈24600 ±25.0 % by a model's factor.
func totalText(t tokens.Total) string {
	if t.Margin == 0 {
		return fmt.Sprint(t.N)
	}
	sign := "~"
	if t.Estimated {
		sign = "≈"
	}
	return fmt.Sprintf("%s%d ±%.1f %%", sign, t.N, 100*t.Margin)
}
