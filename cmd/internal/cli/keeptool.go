package cli

import (
	"cmp"
	"context"
	"errors"
	"io"

	"github.com/mcp-funnel/mcp-funnel/tools"
)

// KeepTool returns a tool that copies standard input into the funnel. It is not in the catalog.
func KeepTool(in io.Reader) tools.Tool {
	type none struct{}
	return tools.New(
		tools.Tool{Name: "keep", Title: "Keep", Description: "Keeps standard input."},
		func(ctx context.Context, _ none, _ tools.Input, out tools.Output) error {
			buf := make([]byte, 256<<10)
			var done int64
			for {
				n, err := in.Read(buf)
				if n > 0 {
					if _, err := out.Write(buf[:n]); err != nil {
						return err
					}
					done += int64(n)
					out.Progress(done, 0, "bytes")
				}
				if errors.Is(err, io.EOF) {
					return nil
				}
				if err = cmp.Or(err, ctx.Err()); err != nil {
					return err
				}
			}
		},
	)
}
