package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/agents/chat"
	"github.com/mcp-funnel/mcp-funnel/agents/chat/chattest"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// TestCompactor runs long conversations whose outputs do not fit the window together.
func TestCompactor(t *testing.T) {
	stored := map[string]string{}
	store := func(name string, text []byte) (string, error) {
		id := fmt.Sprintf("obs:%026d", len(stored))
		stored[id] = name + "\n" + string(text)
		return id, nil
	}
	count := func(s string) int { return (len(s) + 2) / 3 }
	for _, size := range []int{900, 5000, 60_000} { // of an output, in bytes; the last one alone exceeds the window
		clear(stored)
		s := chattest.Answering(t, func(n int, _ chattest.Request) chattest.Reply {
			if n == 19 {
				return reply(9, "", submit("", "good"))
			}
			return reply(9, "", echo("", fmt.Sprint("look at ", n)))
		})
		c, err := chat.New(chat.Options{URL: s.URL, Context: 8000, Count: count})
		expect.Must(t, err)
		o := options(c)
		o.MaxTurns, o.Compact = 20, Compactor(store, count)
		o.Tools[0].Call = func(context.Context, json.RawMessage) (string, error) {
			return fmt.Sprintf("%d <b>%s", len(stored), strings.Repeat("word ", size/5)), nil
		}
		r := Run(t.Context(), o)
		if r.Ending != Submitted || r.Turns != 20 || (len(stored) == 0) != (size < 1000) {
			t.Fatalf("%d bytes: %s after %d turns, %d stored: %v", size, r.Ending, r.Turns, len(stored), r.Err)
		}
		checkPairs(t, r.Messages)
		all := fmt.Sprint(r.Messages)
		for id := range stored {
			if !strings.Contains(all, "at source "+id) || !strings.HasPrefix(stored[id], `echo {"text":"look at `) {
				t.Errorf("%s: %.80q", id, stored[id])
			}
		}
		if r.Messages[0].Content != "Be brief." || r.Messages[1].Content != "Look." {
			t.Errorf("%+v", r.Messages[:2])
		}
	}
}

// TestCompactorFails checks that a conversation that cannot be compacted ends and says why.
func TestCompactorFails(t *testing.T) {
	count := func(s string) int { return (len(s) + 2) / 3 }
	full := func(string, []byte) (string, error) { return "", errors.New("the disk is full") }
	long := strings.Repeat("word ", 1000)
	call := chat.ToolCall{ID: "a", Type: "function", Function: chat.Function{Name: "echo", Arguments: "{}"}}
	for why, messages := range map[string][]chat.Message{
		"the disk is full": {{Role: "user", Content: "Look."}, {Role: "assistant", ToolCalls: []chat.ToolCall{call}},
			{Role: "tool", Content: long, ToolCallID: "a"}},
		"messages 1": {{Role: "user", Content: long}}, // 1667 tokens of messages, which stay
	} {
		c, err := chat.New(chat.Options{URL: chattest.New(t).URL, Context: 1000, Count: count})
		expect.Must(t, err)
		o := options(c)
		o.Messages, o.Compact = messages, Compactor(full, count)
		r := Run(t.Context(), o)
		if r.Ending != OverBudget || !errors.Is(r.Err, chat.ErrTooLong) || !strings.Contains(r.Err.Error(), why) {
			t.Errorf("%s: %s: %v", why, r.Ending, r.Err)
		}
		checkPairs(t, r.Messages)
	}
	// a compaction that does not help is tried once
	c, _ := chat.New(chat.Options{URL: chattest.New(t).URL, Context: 1000, Count: count})
	tried := 0
	o := options(c)
	o.Messages[0].Content = long
	o.Compact = func(m []chat.Message, _ int) ([]chat.Message, error) { tried++; return m, nil }
	if r := Run(t.Context(), o); r.Ending != OverBudget || tried != 1 {
		t.Errorf("%s, tried %d times", r.Ending, tried)
	}
}
