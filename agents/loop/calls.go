package loop

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/agents/chat"
	"github.com/mcp-funnel/mcp-funnel/base/panics"
	"github.com/mcp-funnel/mcp-funnel/base/runes"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

const (
	maxError = 4 << 10 // bytes of a tool's error
	maxName  = 64      // bytes of a tool's name in the OpenAI API
)

// invalid matches what the OpenAI API does not accept in a tool's name.
var invalid = regexp.MustCompile(`[^a-zA-Z0-9_-]`)

// call is a tool call of the model, checked.
type call struct {
	id      string
	name    string
	submits bool
	run     func(ctx context.Context, args json.RawMessage) (string, error)
	args    json.RawMessage
	problem string // shown to the model instead of running the call; "": none
}

// answer runs the calls of a message, submissions last, and adds the message and one answer for each call, in the order
// of the calls. It returns "" if the conversation continues.
func (c *conversation) answer(ctx context.Context, turn int, m chat.Message) Ending {
	m.ToolCalls = slices.Clone(m.ToolCalls)
	calls := make([]call, len(m.ToolCalls))
	for i := range m.ToolCalls {
		calls[i] = c.check(&m.ToolCalls[i])
	}
	answers := make([]chat.Message, len(calls))
	var ending Ending
	for _, submits := range []bool{false, true} {
		for i, k := range calls {
			if k.submits != submits {
				continue
			}
			var text string
			switch {
			case ctx.Err() != nil:
				text = "error: not run, the conversation was cancelled"
			case k.problem != "":
				text = k.problem
			case ending == Submitted:
				text = fmt.Sprintf("error: not run, an earlier call of %s was accepted", k.name)
			case submits:
				text, ending = c.submit(turn, k)
			default:
				text = c.run(ctx, turn, k)
			}
			answers[i] = chat.Message{Role: "tool", Content: text, ToolCallID: k.id}
		}
	}
	c.add(m)
	c.add(answers...)
	if ending == "" && ctx.Err() != nil {
		return c.cancelled(ctx)
	}
	return ending
}

// check finds the tool of a call and its arguments. It changes the call to one that endpoints accept in the next
// request: with a unique id, a valid name, and a JSON object as arguments.
func (c *conversation) check(t *chat.ToolCall) call {
	for n := len(c.ids); t.ID == "" || c.ids[t.ID]; n++ {
		t.ID = fmt.Sprintf("call%05d", n) // nine letters and digits, as the templates of Mistral require
	}
	c.ids[t.ID], t.Type = true, "function"
	f := &t.Function
	k := call{id: t.ID, name: f.Name, submits: c.o.Submit != "" && f.Name == c.o.Submit}
	if i := slices.Index(c.names, f.Name); i >= 0 {
		k.run = c.o.Tools[i].Call
	} else if !k.submits {
		k.problem = fmt.Sprintf("error: there is no tool %q; the tools are: %s", content.ClipBytes(f.Name, maxName),
			strings.Join(c.names, ", "))
		f.Name = cmp.Or(invalid.ReplaceAllString(f.Name[:min(len(f.Name), maxName)], "_"), "unnamed")
	}
	raw := cmp.Or(strings.TrimSpace(f.Arguments), "{}")
	k.args, f.Arguments = json.RawMessage(raw), raw
	var value any
	err := json.Unmarshal(k.args, &value)
	if _, object := value.(map[string]any); object {
		return k
	}
	f.Arguments = "{}" // endpoints that parse the arguments of earlier calls would refuse the conversation
	why := "an object is needed, such as {}"
	if err != nil {
		why = err.Error()
	}
	k.problem = cmp.Or(k.problem, fmt.Sprintf("error: the arguments of %s are not a JSON object: %s; they were: %s",
		k.name, why, content.ClipBytes(raw, 200)))
	return k
}

// submit returns the answer to a submission, and Submitted if it is accepted.
func (c *conversation) submit(turn int, k call) (string, Ending) {
	if c.cut {
		return "error: not accepted: the reply reached its limit of tokens, and the call may lack its end; " +
			"submit a shorter one", ""
	}
	c.progress(turn, "checking the submission")
	_, err := c.guard(turn, k.name, func() (string, error) { return "", c.o.Accept(k.args) })
	if err != nil {
		return "error: not accepted: " + content.ClipEnd(err.Error(), maxError), ""
	}
	c.r.Submitted = k.args
	return "accepted", Submitted
}

// run runs a tool and returns the text that is shown to the model.
func (c *conversation) run(ctx context.Context, turn int, k call) string {
	c.progress(turn, "calling %s", k.name)
	c.r.Calls++
	text, err := c.guard(turn, k.name, func() (string, error) { return k.run(ctx, k.args) })
	if size := len(text); size > c.o.MaxToolText {
		shown := text[:runes.Complete([]byte(text[:c.o.MaxToolText]))]
		text = fmt.Sprintf("%s\n[cut: the first %d of %d bytes are shown]", shown, len(shown), size)
	}
	if err != nil {
		text = strings.TrimLeft(text+"\nerror: "+content.ClipEnd(err.Error(), maxError), "\n")
	}
	return text
}

// guard calls f and returns a panic as an error. The stack is reported as progress; the model does not see it.
func (c *conversation) guard(turn int, name string, f func() (string, error)) (text string, err error) {
	var panicked error
	panics.Into(&panicked, func() { text, err = f() })
	if p, ok := errors.AsType[*panics.Caught](panicked); ok {
		c.progress(turn, "%s panicked: %v", name, p)
		return "", fmt.Errorf("%s panicked: %v", name, p.Value)
	}
	return text, err
}
