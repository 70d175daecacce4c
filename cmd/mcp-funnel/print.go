package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// print writes the text of an answer as the model would see it, or the whole answer as JSON. It returns cli.ErrFailed
// for a failed call.
func print(w *cli.Streams, a funnel.Answer, asJSON bool) error {
	print := printText
	if asJSON {
		print = printJSON
	}
	if err := print(w, a); err != nil {
		return err
	}
	if a.Failed {
		return cli.ErrFailed
	}
	return nil
}

// show prints a value as JSON, or as a text for a person.
func show(w *cli.Streams, asJSON bool, v any, text func() string) error {
	if asJSON {
		return cli.WriteJSON(w.Out, v, "")
	}
	_, err := io.WriteString(w.Out, text())
	return err
}

// printable masks the secrets of a text and escapes its hidden characters: notes quote files.
func printable(s *cli.Settings, text string) string {
	return content.Visible(s.MaskText()(text), false)
}

// masked is a value whose secrets are masked in JSON.
type masked struct {
	s *cli.Settings
	v any
}

// MarshalJSON implements [json.Marshaler].
func (m masked) MarshalJSON() ([]byte, error) {
	raw, err := json.Marshal(m.v)
	if err != nil {
		return nil, err
	}
	return m.s.Masker().JSON(raw).MarshalJSON()
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
