package investigate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/agents/chat"
	"github.com/mcp-funnel/mcp-funnel/agents/chat/chattest"
	"github.com/mcp-funnel/mcp-funnel/agents/investigator"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate"
)

// toolCall is a model's use of a tool, as an endpoint sends it.
func toolCall(name string, args any) any {
	raw, ok := args.(string)
	if !ok {
		b, err := json.Marshal(args)
		if err != nil {
			panic(err)
		}
		raw = string(b)
	}
	return object{"id": "c1", "type": "function", "function": object{"name": name, "arguments": raw}}
}

// asked is what a request asks for: the tool that ends its conversation, and the directories of its order.
func asked(r chattest.Request) (submit string, dirs []string) {
	tools, _ := r.Body["tools"].(list)
	for _, t := range tools {
		f, _ := t.(object)["function"].(object)
		if name, _ := f["name"].(string); strings.HasPrefix(name, "submit_") {
			submit = name
		}
	}
	for _, m := range r.Messages {
		if found := directoriesLine.FindStringSubmatch(m.Content); found != nil {
			dirs = strings.Split(found[1], ", ")
		}
	}
	return submit, dirs
}

var directoriesLine = regexp.MustCompile(`(?m)^directories: (.*)$`)

// submitted is the call by which a good model ends a conversation.
func submitted(r chattest.Request) chattest.Reply {
	submit, dirs := asked(r)
	var args any
	switch {
	case submit == "submit_survey":
		args = object{"description": "a tree", "confidence": 0.6, "skip_tools": []string{"jq", "submit_report"}}
	case submit == "submit_plan":
		args = object{"priority_dirs": list{}}
	case len(dirs) > 0:
		var list list
		for _, d := range dirs {
			list = append(list, object{"path": d, "summary": "The model read " + d + "."})
		}
		args = object{"dirs": list, "confidence": 0.9}
	default:
		args = object{"brief": "The model's brief.", "detailed": "The model's report."}
	}
	return chattest.Reply{ToolCalls: list{toolCall(submit, args)}}
}

// pasted are more lines of a file than a summary may have.
var pasted = strings.Join([]string{"one line", "two lines", "three", "four", "five", "six", "seven", ""}, "\n")

// model is a thinker that answers through a client.
func (b *bench) model(client *chat.Client) investigate.Thinker {
	return investigator.New(investigator.Options{
		Client: client, Name: "m", Funnel: b.f, Store: b.store, Count: b.counter.Count,
		Tools: server.Catalog(server.Parts{}),
	})
}

// TestEndpoint scripts what endpoints do. There is always a report, partial entries where they are due, and never a
// turn over the cap.
func TestEndpoint(t *testing.T) {
	good := func(_ int, r chattest.Request) chattest.Reply { return submitted(r) }
	turn := func(r chattest.Request) (n int) { // replies so far in this conversation
		for _, m := range r.Messages {
			if m.Role == "assistant" {
				n++
			}
		}
		return n
	}
	prompt := func(reply chattest.Reply, tokens int) chattest.Reply {
		b, _ := json.Marshal(object{
			"choices": list{object{"index": 0, "finish_reason": "stop", "message": object{
				"role": "assistant", "content": reply.Text, "tool_calls": reply.ToolCalls,
			}}},
			"usage": object{"prompt_tokens": tokens, "completion_tokens": 5},
		})
		return chattest.Reply{Raw: string(b)}
	}
	text := chattest.Reply{Text: "I am thinking."}
	always := func(r chattest.Reply) func(int, chattest.Request) chattest.Reply {
		return func(int, chattest.Request) chattest.Reply { return r }
	}
	calls := func(all ...any) chattest.Reply { return chattest.Reply{ToolCalls: all} }
	read := calls(toolCall("read", object{"path": "d0/f0.go"}))
	first := func(reply chattest.Reply) func(int, chattest.Request) chattest.Reply { // then a submission
		return func(_ int, r chattest.Request) chattest.Reply {
			if turn(r) == 0 {
				return reply
			}
			return submitted(r)
		}
	}
	handsIn := func(summary string, times int) func(int, chattest.Request) chattest.Reply { // of the first directory
		return func(_ int, r chattest.Request) chattest.Reply {
			submit, dirs := asked(r)
			if len(dirs) == 0 {
				return submitted(r)
			}
			note := slices.Repeat(list{object{"path": dirs[0], "summary": summary}}, times)
			return calls(toolCall(submit, object{"dirs": note, "confidence": 0.9}))
		}
	}
	for name, c := range map[string]struct {
		answer  func(n int, r chattest.Request) chattest.Reply
		by      string // who wrote the report
		partial string // reason of partial entries; "" for none
		failed  bool
	}{
		"submits at once":    {good, "model m", "", false},
		"never submits":      {always(read), "mechanical", "max turns reached", false},
		"only text":          {always(text), "mechanical", "max turns reached", false},
		"empty replies":      {always(chattest.Reply{}), "mechanical", "max turns reached", false},
		"text, then submits": {first(text), "model m", "", false},
		"reads, then submits": {func(_ int, r chattest.Request) chattest.Reply {
			if turn(r) < 2 {
				return read
			}
			return submitted(r)
		}, "model m", "", false},
		"garbage arguments": {func(n int, r chattest.Request) chattest.Reply {
			submit, _ := asked(r)
			return first(calls(toolCall(submit, `{"dirs": [`)))(n, r)
		}, "model m", "", false},
		"an empty note and half of one": {func(n int, r chattest.Request) chattest.Reply {
			submit, _ := asked(r)
			half := toolCall(submit, `{"confidence": 1, "dirs":`)
			return first(calls(toolCall(submit, `{"confidence": 1, "dirs": []}`), half))(n, r)
		}, "model m", "", false},
		"half a call as text": {always(chattest.Reply{
			Text:   "submit_report(\n    {\n        \"brief\": \"A report with an enum of type \" + typeof (result_type) +",
			Finish: "length",
		}), "mechanical", "max turns reached", false},
		"the tool's side": {always(chattest.Reply{
			Text: "<tool_response>\nerror: the function is not supported for the given type: dirs\n</tool_response>",
		}), "mechanical", "max turns reached", false},
		"always garbage": {func(_ int, r chattest.Request) chattest.Reply {
			submit, _ := asked(r)
			return calls(toolCall(submit, `{"dirs": "x"}`))
		}, "mechanical", "max turns reached", false},
		"ten calls in a turn": {
			first(calls(slices.Repeat(list{toolCall("search", object{"pattern": "func"})}, 10)...)), "model m", "", false,
		},
		"an unknown tool": {first(calls(toolCall("rm", object{"path": "/"}))), "model m", "", false},
		"reads outside": {
			first(calls(toolCall("read", object{"path": "../../etc/passwd"}))), "model m", "", false,
		},
		"budget trips on the first turn": {always(prompt(read, 7001)), "mechanical", "context budget reached", false},
		"budget trips on the third turn": {func(_ int, r chattest.Request) chattest.Reply {
			return prompt(read, 1000+3001*turn(r))
		}, "mechanical", "context budget reached", false},
		"exactly the share":       {first(prompt(read, 7000)), "model m", "", false},
		"pastes a file":           {handsIn(pasted, 1), "model m", "what was handed in was refused", false},
		"names a directory twice": {handsIn("It is named twice.", 2), "model m", "what was handed in was refused", false},
		"500 once": {func(n int, r chattest.Request) chattest.Reply {
			if n == 1 {
				return chattest.Reply{Status: 500, Raw: "{}"}
			}
			return submitted(r)
		}, "model m", "", false},
		"500 from the third on": {func(n int, r chattest.Request) chattest.Reply {
			if n >= 3 {
				return chattest.Reply{Status: 500, Raw: "{}"}
			}
			return submitted(r)
		}, "mechanical", "", true},
		"500 always": {always(chattest.Reply{Status: 500, Raw: "{}"}), "mechanical", "", true},
		"401":        {always(chattest.Reply{Status: 401, Raw: "{}"}), "mechanical", "", true},
		"no JSON":    {always(chattest.Reply{Raw: "<html>"}), "mechanical", "", true},
		"hangs":      {always(chattest.Reply{Wait: make(chan struct{})}), "mechanical", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := many(t, 5)
			write(t, dir, map[string]string{"d0/long.txt": pasted, "d1/long.txt": pasted})
			b := in(t, dir)
			most := map[string]int{}
			s := chattest.Answering(t, func(n int, r chattest.Request) chattest.Reply {
				submit, _ := asked(r)
				most[submit] = max(most[submit], turn(r)+1)
				return c.answer(n, r)
			})
			timeout := 5 * time.Second
			if name == "hangs" {
				timeout = 100 * time.Millisecond
			}
			client := expect.Value(chat.New(chat.Options{URL: s.URL, Name: "m", Context: 10_000, Timeout: timeout}))(t)
			b.i.Use(b.model(client), false)
			out, err := b.i.Run(t.Context(), b.caller(), investigate.Args{Goal: "what is this?"}, nil)
			if err != nil || out.Brief == "" || out.Detailed == "" {
				t.Fatalf("%+v, %v", out, err)
			}
			if !strings.HasPrefix(out.By, c.by) || (out.Failed != "") != c.failed {
				t.Errorf("by %q, want %q; failed: %q", out.By, c.by, out.Failed)
			}
			for submit, cap := range map[string]int{"submit_survey": 3, "submit_plan": 3, "submit_report": 25} {
				if most[submit] > cap {
					t.Errorf("%s: %d turns, at most %d", submit, most[submit], cap)
				}
			}
			entries := ""
			names, _ := filepath.Glob(filepath.Join(b.store.Dir(), "investigations", out.ID, "dirs", "*.json"))
			for _, n := range names {
				raw := expect.Value(os.ReadFile(n))(t)
				entries += string(raw) + "\n"
			}
			if got := strings.Contains(entries, `"partial":true`); got != (c.partial != "") {
				t.Errorf("partial entries: %v, want %q: %.300s", got, c.partial, entries)
			}
			if c.partial != "" && !strings.Contains(entries, fmt.Sprintf(`"partial_reason":%q`, c.partial)) &&
				!strings.Contains(entries, fmt.Sprintf(`"partial_reason":"%s before files processed"`, c.partial)) {
				t.Errorf("no partial entry for %q: %.300s", c.partial, entries)
			}
			if c.by == "mechanical" && c.partial == "" {
				checkMechanical(t, b, out.Report)
			}
			for _, r := range s.Requests() {
				if raw := fmt.Sprint(r.Body); strings.Contains(raw, "root:x:0") {
					t.Error("a file outside of the target was sent")
				}
			}
		})
	}
}

// checkMechanical checks that a report without a model says only what is there, and that no model has read anything.
func checkMechanical(t *testing.T, b *bench, r investigate.Report) {
	t.Helper()
	checkReport(t, b, r, 0, 6)
	expect.Has(t, r.Partial, "no model has read them", "partial")
}

// TestEndpointForCallers has the tool's callers wait for the endpoint in slices.
func TestEndpointForCallers(t *testing.T) {
	b := in(t, many(t, 5))
	gate := make(chan struct{})
	s := chattest.Answering(t, func(n int, r chattest.Request) chattest.Reply {
		reply := submitted(r)
		if n == 2 {
			reply.Wait = gate
		}
		return reply
	})
	client := expect.Value(chat.New(chat.Options{URL: s.URL, Name: "m", Context: 10_000}))(t)
	b.i = investigate.New(investigate.Options{Records: b.newRecords(), Slice: 300 * time.Millisecond})
	t.Cleanup(b.i.Close)
	b.i.Use(b.model(client), true)
	b.offers["investigate"] = b.i.Tool()
	expect.Contains(t, b.text(nil), "the endpoint works on, call again to continue")
	close(gate)
	text := ""
	for n := 0; n < 50 && !strings.HasPrefix(text, "done: "); n++ {
		text = b.text(nil)
	}
	expect.Contains(t, text, "done: ")
	// The report cites nothing: the notes on which it should rest are shown with it.
	expect.Contains(t, b.show("report"), "The model's brief.", "it cites nothing", "## d4\n")
}

// gated is a Thinker that counts how many tasks are worked on at once.
type gated struct {
	first              chan struct{} // the first task fails when it is closed; the others wait for their end
	tasks, now, atOnce atomic.Int64
}

func (g *gated) Think(ctx context.Context, _ investigate.Task) (investigate.Thought, error) {
	n := g.now.Add(1)
	defer g.now.Add(-1)
	for most := g.atOnce.Load(); n > most && !g.atOnce.CompareAndSwap(most, n); most = g.atOnce.Load() {
	}
	if g.tasks.Add(1) == 1 {
		<-g.first
		return investigate.Thought{}, errors.New("out of order")
	}
	<-ctx.Done()
	return investigate.Thought{}, ctx.Err()
}

// TestOneDriver has many calls wait when the endpoint fails. The first of them that returns starts the work again; the
// others do not start it a second time.
func TestOneDriver(t *testing.T) {
	for range promise.Size(1, 5) {
		b := in(t, many(t, 2))
		g := &gated{first: make(chan struct{})}
		b.i = investigate.New(investigate.Options{Records: b.newRecords(), Slice: 400 * time.Millisecond})
		t.Cleanup(b.i.Close)
		b.i.Use(g, true)
		b.offers["investigate"] = b.i.Tool()
		b.call("investigate", nil) // begins
		var group sync.WaitGroup
		for range 40 {
			group.Go(func() {
				b.call("investigate", nil)
				b.call("investigate", nil)
			})
		}
		time.Sleep(50 * time.Millisecond) // they wait
		close(g.first)
		group.Wait()
		expect.Equal(t, g.atOnce.Load(), 1, "tasks of one investigation at once")
	}
}
