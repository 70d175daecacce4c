package answerer

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/agents/chat"
	"github.com/mcp-funnel/mcp-funnel/agents/loop"
	"github.com/mcp-funnel/mcp-funnel/prompts"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools/ask"
)

const (
	maxPassage    = 4000     // bytes of a passage that are sent: 400 tokens of text in most languages
	maxExtraction = 16 << 10 // bytes of a reply that are read: the time is quadratic in its opening brackets
)

// Extract implements [ask.Extractor]: the model is shown the passage with numbered lines and names the lines, so that
// it cannot change what they say. A reply is {"lines": [2, 3]}, alone or within other text.
func (a *Answerer) Extract(ctx context.Context, question, passage string) ([]int, error) {
	var numbered strings.Builder
	last := 0
	for line := range strings.Lines(content.ClipEnd(passage, maxPassage)) {
		last++
		fmt.Fprintf(&numbered, "%d: %s\n", last, strings.TrimRight(line, "\r\n"))
	}
	reply, err := a.client.Complete(ctx, chat.Request{Messages: []chat.Message{
		{Role: "system", Content: prompts.Work("extract").System},
		{Role: "user", Content: "Question: " + question + "\n\n" + prompts.Fence(chat.BreakControls(numbered.String()))},
	}})
	if err != nil {
		return nil, err
	}
	for text := content.ClipBytes(loop.WithoutThoughts(reply.Text), maxExtraction); ; text = text[1:] {
		at := strings.IndexByte(text, '{')
		if at < 0 {
			return nil, ask.ErrUnreadable
		}
		text = text[at:]
		var r struct{ Lines *[]int }
		if json.NewDecoder(strings.NewReader(text)).Decode(&r) != nil || r.Lines == nil {
			continue
		}
		for _, n := range *r.Lines {
			if n < 1 || n > last {
				return nil, fmt.Errorf("%w: there is no line %d", ask.ErrUnreadable, n)
			}
		}
		return *r.Lines, nil
	}
}
