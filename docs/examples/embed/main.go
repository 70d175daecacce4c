// Command embed shows how a Go program uses the funnel without a server: it declares a tool, calls it, and works on the
// stored output.
//
//	go run ./docs/examples/embed
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"

	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/search"
)

// squaresArgs are the arguments of the tool. The schema that clients see comes from the struct and its tags.
type squaresArgs struct {
	UpTo int `json:"up_to" range:"1,100000" help:"Largest number to square."`
}

// squares is a tool that writes one NDJSON record per number. It knows nothing of tokens, receipts or MCP.
func squares() tools.Tool {
	return tools.New(tools.Tool{
		Name:        "squares",
		Title:       "Squares",
		Description: "List square numbers as NDJSON.",
		Effect:      tools.ReadOnly,
	}, func(ctx context.Context, a squaresArgs, _ tools.Input, out tools.Output) error {
		for n := 1; n <= a.UpTo; n++ {
			if err := ctx.Err(); err != nil {
				return err
			}
			if _, err := fmt.Fprintf(out, "{\"n\":%d,\"square\":%d}\n", n, n*n); err != nil {
				return err
			}
		}
		return nil
	})
}

func main() {
	dir, err := os.MkdirTemp("", "embed")
	if err != nil {
		log.Fatal(err)
	}
	err = run(context.Background(), dir)
	_ = os.RemoveAll(dir)
	if err != nil {
		log.Fatal(err)
	}
}

// run makes two calls: one whose output is large, so that the answer is a receipt, and a grep on what was stored.
func run(ctx context.Context, dir string) error {
	store, err := observations.OpenStore(observations.Options{Dir: dir})
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	f, err := funnel.New(funnel.Options{Store: store})
	if err != nil {
		return err
	}
	me := funnel.Session{ID: "embed", Owner: observations.Local}
	sources, done, err := tools.OpenSources(store, me.Owner)
	if err != nil {
		return err
	}
	defer done()

	answer, err := f.Call(ctx, funnel.Request{
		Tool: squares(), Args: json.RawMessage(`{"up_to":500}`), Who: me, Sources: sources,
	})
	if err != nil {
		return err
	}
	fmt.Println(answer.Blocks[0].Text)

	id := answer.Receipts[0].ObservationID
	args := fmt.Sprintf(`{"source":"obs:%s","pattern":"\"square\":\\d+000}"}`, id)
	if answer, err = f.Call(
		ctx, funnel.Request{Tool: search.Grep(), Args: json.RawMessage(args), Who: me, Sources: sources},
	); err != nil {
		return err
	}
	fmt.Println(answer.Blocks[0].Text)
	return nil
}
