// Package investigator answers the orders of an investigation through a model's endpoint: one conversation for each,
// with the tools of this server.
package investigator

import (
	"context"
	_ "embed" // schemas.json
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/mcp-funnel/mcp-funnel/agents/chat"
	"github.com/mcp-funnel/mcp-funnel/agents/loop"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/prompts"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// Options of New.
type Options struct {
	Client *chat.Client
	Name   string // of the model, for the notes that it writes
	Funnel *funnel.Funnel
	Tools  []tools.Tool        // that read: those of the core toolset
	Store  *observations.Store // keeps outputs that a long conversation has no room for; nil: it ends earlier
	Count  func(string) int    // tokens of a text
}

// Thinker is an [investigate.Thinker].
type Thinker struct{ options Options }

// New returns a Thinker. It sends nothing.
func New(o Options) *Thinker { return &Thinker{o} }

// budgetShare is the share of the context window above which a conversation is ended.
const budgetShare = 0.7

// session is the session of the ledger and of the trace for calls that a model makes.
const session = "investigate"

// Think implements [investigate.Thinker].
func (t *Thinker) Think(ctx context.Context, task investigate.Task) (investigate.Thought, error) {
	submit := submitTool(task.Prompt)
	o := loop.Options{
		Client: t.options.Client, System: prompts.Work(task.Prompt).System,
		Messages: []chat.Message{{Role: "user", Content: task.Text}},
		Tools:    append(t.tools(task), submit), MaxTurns: task.Turns,
		Submit: submit.Name, Accept: func(raw json.RawMessage) error { return task.Accept(raw) },
		Nudge:       "Call " + submit.Name + " now.",
		LastTurn:    "This is the last turn. Call " + submit.Name + " now with what you know.",
		BudgetShare: budgetShare, Progress: task.Progress, MaxToolText: t.maxText(),
	}
	if t.options.Store != nil {
		o.Compact = loop.Compactor(t.keep(task.Owner), t.options.Count)
	}
	r := loop.Run(ctx, o)
	if task.Spend != nil {
		task.Spend(r.Usage.Prompt, r.Usage.Completion)
	}
	thought := investigate.Thought{
		Note: r.Submitted, Turns: r.Turns, By: strings.TrimSpace(investigate.ByModel + t.options.Name),
	}
	switch r.Ending {
	case loop.Submitted:
	case loop.OverBudget:
		thought.Partial = investigate.OverBudget
		if r.Calls == 0 {
			thought.Partial = investigate.OverBudgetBefore
		}
	case loop.Failed:
		return thought, fmt.Errorf("the endpoint failed: %w", r.Err)
	case loop.Cancelled:
		return thought, r.Err
	default:
		thought.Partial = investigate.OutOfTurns
	}
	return thought, nil
}

// maxText returns how many bytes of one answer of a tool are passed on: a quarter of the window.
func (t *Thinker) maxText() int {
	if window := t.options.Client.Context(); window > 0 {
		return max(window, 2000) // bytes: about a quarter of as many tokens
	}
	return 0
}

// submitTool is the tool by which a conversation hands in its result.
func submitTool(prompt string) loop.Tool {
	name := "submit_" + prompt
	if prompt == "directory" {
		name = "submit_report"
	}
	return loop.Tool{Name: name, Description: "Hand in the result and end.", Schema: schemas()[prompt]}
}

//go:embed schemas.json
var schemasJSON []byte

// schemas are the arguments of the submit tools, by prompt.
var schemas = sync.OnceValue(func() map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(schemasJSON, &all); err != nil {
		panic("investigator: schemas.json: " + err.Error())
	}
	return all
})

// tools returns the tools that a task may use: none for survey and plan, only those that look into notes for the
// report.
func (t *Thinker) tools(task investigate.Task) (list []loop.Tool) {
	for _, tool := range t.options.Tools {
		switch {
		case task.Prompt == "survey" || task.Prompt == "plan", slices.Contains(task.Skip, tool.Name),
			task.Prompt == "report" && !slices.Contains([]string{"search", "read", "jq"}, tool.Name):
			continue
		}
		list = append(list, loop.Tool{
			Name: tool.Name, Description: tool.Description, Schema: tool.Schema,
			Call: func(ctx context.Context, args json.RawMessage) (string, error) { return t.call(ctx, task, tool, args) },
		})
	}
	return list
}

// call runs a tool as for any client: through the funnel, with the policy and the trace.
func (t *Thinker) call(
	ctx context.Context, task investigate.Task, tool tools.Tool, args json.RawMessage,
) (string, error) {
	limits := funnel.Limits{}
	if window := t.options.Client.Context(); window > 0 {
		limits.PageTokens = max(window/8, 200)
		limits.ReceiptTokens = min(max(window/16, 160), 600)
	}
	if t.options.Store != nil { // outputs that the conversation had no room for
		task.Sources.Places = append(slices.Clone(task.Sources.Places), source.Observations(t.options.Store, task.Owner))
	}
	a, err := t.options.Funnel.Call(ctx, funnel.Request{
		Tool: tool, Args: args, Who: funnel.Session{ID: session, Owner: task.Owner}, Sources: task.Sources, Limits: limits,
	})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, block := range a.Blocks {
		b.WriteString(strings.TrimRight(block.Text, "\n") + "\n")
	}
	if a.Failed {
		return "", errors.New(strings.TrimSuffix(strings.TrimPrefix(b.String(), "error: "), "\n"))
	}
	return b.String(), nil
}

// keep stores outputs that a conversation has no room for.
func (t *Thinker) keep(owner string) func(name string, text []byte) (string, error) {
	return func(name string, text []byte) (string, error) {
		r, err := t.options.Store.Record(observations.Provenance{Owner: owner, Tool: "investigate", Name: name})
		if err != nil {
			return "", err
		}
		defer r.Discard() //nolint:errcheck // after Commit it does nothing
		if _, err := r.Write(text); err != nil {
			return "", err
		}
		o, err := r.Commit(observations.Stats{Kind: "text", Ext: "txt", Status: "success"})
		if err != nil {
			return "", err
		}
		return observations.Prefix + string(o.ID), nil
	}
}
