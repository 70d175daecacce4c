package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"

	"github.com/mcp-funnel/mcp-funnel/funnel"
)

// print writes the text of an answer as the model would see it, or the whole answer as JSON. It returns cli.ErrFailed
// for a failed call.
func print(w *cli.Streams, a funnel.Answer, asJSON bool) error {
	show := printText
	if asJSON {
		show = printJSON
	}
	if err := show(w, a); err != nil {
		return err
	}
	if a.Failed {
		return cli.ErrFailed
	}
	return nil
}

// printText writes the blocks of an answer, each with a line end.
func printText(w *cli.Streams, a funnel.Answer) error {
	for _, b := range a.Blocks {
		text := b.Text
		if b.MIME != "" {
			text = fmt.Sprintf("[%s, %d bytes]", b.MIME, len(b.Data))
		}
		if !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		if _, err := io.WriteString(w.Out, text); err != nil {
			return err
		}
	}
	return nil
}

// printJSON writes a whole answer as JSON.
func printJSON(w *cli.Streams, a funnel.Answer) error {
	type block struct {
		Text string `json:"text,omitempty"`
		MIME string `json:"mime,omitempty"`
		Name string `json:"name,omitempty"`
		Data []byte `json:"data,omitempty"`
	}
	blocks := make([]block, len(a.Blocks))
	for i, b := range a.Blocks {
		blocks[i] = block(b)
	}
	return cli.WriteJSON(w.Out, map[string]any{"blocks": blocks, "receipts": a.Receipts, "failed": a.Failed}, "  ")
}
