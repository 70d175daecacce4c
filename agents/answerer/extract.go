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

// maxPassage is the maximum number of bytes of a passage that is sent: 400 tokens of text in most languages.
const maxPassage = 4000

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
	for text := loop.WithoutThoughts(reply.Text); ; text = text[1:] {
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
