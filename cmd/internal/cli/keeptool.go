package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// Keep stores what a reader has, whole, as the output of a tool that is not in the catalog.
func (a *App) Keep(ctx context.Context, in io.Reader, r funnel.Request) (funnel.Answer, error) {
	type none struct{}
	r.Args, r.Keep = json.RawMessage("{}"), funnel.Always
	r.Tool = tools.New(
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
	return a.Call(ctx, r)
}
