//go:build ignore

// Generate writes the tables: the two vocabularies from the public rank files in module tiktoken-go-loader, and the
// rune classes from package unicode.
package main

import (
	"fmt"
	"os"

	loader "github.com/pkoukk/tiktoken-go-loader"

	"github.com/mcp-funnel/mcp-funnel/tokens/tables"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run() error {
	for _, name := range []string{"o200k_base", "cl100k_base"} {
		ranks, err := loader.NewOfflineLoader().LoadTiktokenBpe(name + ".tiktoken")
		if err != nil {
			return err
		}
		tokens, err := tables.InOrder(ranks)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		table, err := tables.Build(tokens)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := os.WriteFile(name+".table", table, 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile("classes.table", tables.BuildClasses(), 0o644)
}
