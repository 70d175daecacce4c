package funnel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// A large output is stored whole, and the answer is its receipt.
func ExampleFunnel_Call() {
	dir, err := os.MkdirTemp("", "store")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	store, err := observations.OpenStore(observations.Options{Dir: dir, MinFree: 1})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	f, err := funnel.New(funnel.Options{Store: store})
	if err != nil {
		log.Fatal(err)
	}

	count := tools.New(tools.Tool{Name: "count", Title: "Count", Description: "Counts to 1000."},
		func(_ context.Context, _ struct{}, _ tools.Input, out tools.Output) error {
			for n := range 1000 {
				if _, err := fmt.Fprintln(out, "line", n+1); err != nil {
					return err
				}
			}
			return nil
		})
	answer, err := f.Call(context.Background(), funnel.Request{Tool: count, Args: json.RawMessage("{}")})
	if err != nil {
		log.Fatal(err)
	}
	first, _, _ := strings.Cut(answer.Blocks[0].Text, " as obs:")
	fmt.Println(first)
	fmt.Println(
		answer.Receipts[0].Lines, "lines, kept:", answer.Receipts[0].Kept, "complete:", answer.Receipts[0].Complete,
	)
	// Output:
	// LARGE OUTPUT DETECTED: kept whole
	// 1000 lines, kept: true complete: false
}
