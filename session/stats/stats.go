// Package stats sums up a trace: what was seen, shown and read again later, per tool, and what that saved.
package stats

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
)

// Tool sums up the calls of one tool, or of all. Figures without a unit are tokens.
type Tool struct {
	Name    string `json:"name"`
	Server  string `json:"server,omitempty"` // of a row of Report.Upstream: the server that has the tool
	Calls   int    `json:"calls"`
	Seen    int64  `json:"seen"`    // of the outputs
	Shown   int64  `json:"shown"`   // of the answers
	Kept    int64  `json:"kept"`    // seen by the calls whose output is stored
	Fetched int64  `json:"fetched"` // shown by later calls that read an output of this tool
	Net     int64  `json:"net"`     // seen − shown − fetched; of all tools also − list
	Client  int64  `json:"client"`  // what clients would have shown: they cut at their own limit, see Cut, or show all

	Receipts int  `json:"receipts"`       // outputs shown as a receipt
	Refetch  int  `json:"refetched"`      // of these, outputs that were read later
	TooHard  bool `json:"too_hard"`       // over 30 % of at least five receipts were read later: they show too little
	Ignored  int  `json:"ignored"`        // reads of over half of an output that had been shown as a receipt
	Failed   int  `json:"failed"`         // calls with another status than success
	Notices  int  `json:"notices"`        // outputs that were not shown
	Over     int  `json:"over,omitempty"` // answers with more tokens than were left
}

// Report sums up a trace.
type Report struct {
	Tools []Tool `json:"tools"` // by seen, largest first
	Total Tool   `json:"total"`
	// Observed are tools whose outputs were passed on whole. They are not in the total. Shown and net are what a
	// receipt would have shown and saved.
	Observed []Tool `json:"observed,omitempty"`
	// Upstream has the rows of Tools and Observed that are of upstream servers, a row for each server.
	Upstream []Tool `json:"upstream,omitempty"`
	List     int64  `json:"list"` // tokens of the tool list and instructions, once for each session that listed tools
	// Lists are those of upstream servers by their names. They are not in the total: without us they would cost the same.
	Lists    map[string]List `json:"lists,omitempty"`
	Sessions int             `json:"sessions"`
	Skipped  int             `json:"skipped"` // lines that are not of this version

	Cuts []Cut `json:"client_cuts"` // limits that Client assumes

	Largest *Command `json:"largest_command,omitempty"` // nil: no call named its command, or they were too many

	Events Events `json:"events"`

	Last trace.Call `json:"-"` // the last call that knew what was left
}

// List sums up the lists of one upstream server's tools.
type List struct {
	Sessions int   `json:"sessions"` // that listed them
	Tokens   int64 `json:"tokens"`   // of the first list of each session
	Last     int64 `json:"last"`     // of the latest one
}

// Command sums up the calls that ran the same programs. Figures without a unit are tokens.
type Command struct {
	Name  string  `json:"name"` // tool and programs: "run go test"
	Calls int     `json:"calls"`
	Seen  int64   `json:"seen"`
	Shown int64   `json:"shown"`
	Share float64 `json:"share"` // of the tokens that all calls saw, 0 to 1
}

// maxCommands bounds how many commands are remembered. If there are more, the largest one is unknown.
const maxCommands = 20_000

// Events are the numbers of what happened, by the names that telemetry uses.
type Events struct {
	Decisions   map[string]int `json:"context_budget_decision"` // by verdict, where a window or budget was known
	DryRuns     int            `json:"context_budget_decision_dry_run"`
	Violations  int            `json:"context_budget_violation"` // must stay 0
	Pointers    int            `json:"pointer_created"`
	Refetches   int            `json:"pointer_refetch_count"`
	Compactions int            `json:"compactions"` // compactions_per_session is this by sessions
	Saved       int64          `json:"tokens_saved"`
	Summaries   int            `json:"summary_count"`
	Ignored     int            `json:"guidance_ignored"`
}

// Cut is what a client does with a large output by itself.
type Cut struct {
	Client string `json:"client"` // beginning of the name in initialize
	Tokens int64  `json:"tokens"` // it shows at most
	Source string `json:"source"`
}

// cuts are the limits of clients that publish one.
var cuts = []Cut{
	{"claude-code", 25_000, "MAX_MCP_OUTPUT_TOKENS, as documented"},
	{"codex", 10_000, "tool_output_token_limit, as documented"},
}

// Too many later reads of at least so many receipts say that receipts show too little.
const (
	refetchShare = 0.3
	fewReceipts  = 5
)

// maxOutputs is the maximum number of outputs that are remembered: the first ones. A read of any other output counts as
// a call of its own, in Seen and Shown and not in Fetched.
const maxOutputs = 200_000

// Sum collects the calls of a trace, in the order in which they were made. The zero value is not ready: use New.
type Sum struct {
	tools   map[key]*Tool
	watched map[key]*Tool // passed on whole
	named   map[string]*Command
	outputs map[string]*output // by observation ID
	listed  map[string]bool    // by session
	seenBy  map[string]bool    // sessions
	report  Report
}

// key is what a row is of.
type key struct{ tool, server string }

// output is a stored output that was shown as a receipt.
type output struct {
	tool    *Tool
	tokens  int64
	receipt bool
	fetched bool
}

// New returns an empty sum.
func New() *Sum {
	s := &Sum{
		tools: map[key]*Tool{}, watched: map[key]*Tool{}, named: map[string]*Command{},
		outputs: map[string]*output{}, listed: map[string]bool{}, seenBy: map[string]bool{},
	}
	s.report.Events.Decisions, s.report.Lists = map[string]int{}, map[string]List{}
	return s
}

// Add adds one call.
func (s *Sum) Add(c trace.Call) {
	session := c.Owner + "\x00" + c.Session
	s.seenBy[session] = true
	switch c.Via {
	case trace.ViaList:
		if session += "\x00" + c.Server; s.listed[session] {
			return
		}
		s.listed[session] = true
		if of := s.report.Lists[c.Server]; c.Server == "" {
			s.report.List += c.ShownTokens
		} else {
			s.report.Lists[c.Server] = List{of.Sessions + 1, of.Tokens + c.ShownTokens, c.ShownTokens}
		}
		return
	case trace.ViaCompaction:
		s.report.Events.Compactions++
		s.report.Events.Saved += c.SeenTokens - c.ShownTokens
		return
	case trace.ViaObserved:
		s.observe(c)
		return
	}
	t := s.tool(c)
	if c.Via == trace.ViaCommand { // run shows what its command made of it, and counts that
		if t.Calls++; c.Status != "success" {
			t.Failed++
		}
		return
	}
	s.count(t, c)
	if of := s.read(c); of != nil {
		s.fetch(of, c)
		return
	}
	t.Seen += c.SeenTokens
	t.Shown += c.ShownTokens
	t.Client += clientShows(c)
	s.countCommand(c)
	if c.Observation == "" {
		return
	}
	receipt := c.Kept && c.ShownTokens < c.SeenTokens
	if len(s.outputs) < maxOutputs {
		s.outputs[c.Observation] = &output{tool: t, tokens: c.SeenTokens, receipt: receipt}
	}
	if receipt {
		t.Receipts++
		s.report.Events.Pointers++
	}
}

// observe counts a call that was passed on whole.
func (s *Sum) observe(c trace.Call) {
	t := row(s.watched, key{c.Tool, c.Server})
	t.Calls++
	t.Seen, t.Shown = t.Seen+c.SeenTokens, t.Shown+c.ShownTokens
	if c.ShownTokens < c.SeenTokens {
		t.Receipts++
	}
}

// count counts what happened in a call.
func (s *Sum) count(t *Tool, c trace.Call) {
	e := &s.report.Events
	t.Calls++
	if c.Kept {
		t.Kept += c.SeenTokens
	}
	if c.Status != "success" {
		t.Failed++
	}
	if c.Notice {
		t.Notices++
	}
	if c.Violation > 0 {
		t.Over++
		e.Violations++
	}
	if c.Limited {
		e.Decisions[c.Verdict]++
		s.report.Last = c
		if c.DryRun {
			e.DryRuns++
		}
	}
	if c.Verdict == "needs_summary" && !c.DryRun {
		e.Summaries++
	}
}

// countCommand counts a call that names its command.
func (s *Sum) countCommand(c trace.Call) {
	if c.Name == "" || c.Via != trace.ViaTool || len(s.named) > maxCommands {
		return
	}
	name := c.Tool + " " + c.Name
	if s.named[name] == nil {
		s.named[name] = &Command{Name: name}
	}
	of := s.named[name]
	of.Calls++
	of.Seen += c.SeenTokens
	of.Shown += c.ShownTokens
}

// largest returns the command that saw most, with its share of all tokens seen.
func (s *Sum) largest(seen int64) (most *Command) {
	if len(s.named) > maxCommands || seen <= 0 {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(s.named)) {
		if of := *s.named[name]; most == nil || of.Seen > most.Seen {
			of.Share = float64(of.Seen) / float64(seen)
			most = &of
		}
	}
	return most
}

// fetch counts a call that reads a stored output again.
func (s *Sum) fetch(of *output, c trace.Call) {
	of.tool.Fetched += c.ShownTokens
	if !of.receipt {
		return
	}
	s.report.Events.Refetches++
	if !of.fetched {
		of.fetched = true
		of.tool.Refetch++
	}
	if (c.Tool == "read" || c.Tool == "slice") && 2*c.ShownTokens > of.tokens {
		of.tool.Ignored++
		s.report.Events.Ignored++
	}
}

// tool returns the row of a call's tool. Reads of resources and prompts have rows of their own.
func (s *Sum) tool(c trace.Call) *Tool {
	name := c.Tool
	if c.Via != trace.ViaTool {
		name += " (" + c.Via + ")"
	}
	return row(s.tools, key{name, c.Server})
}

// row returns the row of a key, and adds it if it is missing.
func row(rows map[key]*Tool, of key) *Tool {
	if rows[of] == nil {
		rows[of] = &Tool{Name: of.tool, Server: of.server}
	}
	return rows[of]
}

// byName returns rows by the names of their tools, and adds those of upstream servers to the report.
func (r *Report) byName(rows map[key]*Tool) (all []Tool) {
	for _, of := range slices.SortedFunc(maps.Keys(rows), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.tool, b.tool), cmp.Compare(a.server, b.server))
	}) {
		t := *rows[of]
		if t.Net = t.Seen - t.Shown - t.Fetched; t.Server != "" {
			r.Upstream = append(r.Upstream, t)
		}
		if n := len(all); n == 0 || all[n-1].Name != t.Name {
			all = append(all, Tool{Name: t.Name})
		}
		all[len(all)-1].Add(t)
	}
	return all
}

// read returns the first stored output that a call reads; nil if it reads none that is known.
func (s *Sum) read(c trace.Call) *output {
	for name := range strings.SplitSeq(c.Source, ", ") {
		if id, err := observations.ParseID(name); err == nil {
			if of := s.outputs[string(id)]; of != nil {
				return of
			}
		}
	}
	return nil
}

// clientShows returns the tokens that the client of a call would have shown of the whole output.
func clientShows(c trace.Call) int64 {
	for _, cut := range cuts {
		if strings.HasPrefix(strings.ToLower(c.Client), cut.Client) {
			return min(c.SeenTokens, cut.Tokens)
		}
	}
	return c.SeenTokens
}

// Report returns the sums so far; skipped is the number of lines that were no calls.
func (s *Sum) Report(skipped int) Report {
	r := s.report
	r.Skipped, r.Sessions, r.Cuts = skipped, len(s.seenBy), cuts
	r.Total = Tool{Name: "total"}
	for _, t := range r.byName(s.tools) {
		t.TooHard = t.Receipts >= fewReceipts && float64(t.Refetch) > refetchShare*float64(t.Receipts)
		r.Tools = append(r.Tools, t)
		r.Total.Add(t)
	}
	r.Total.Net -= r.List
	r.Observed = r.byName(s.watched)
	slices.SortStableFunc(r.Observed, func(a, b Tool) int { return cmp.Compare(b.Net, a.Net) })
	r.Largest = s.largest(r.Total.Seen)
	r.Events.Saved += max(r.Total.Net, 0)
	slices.SortStableFunc(r.Tools, func(a, b Tool) int { return cmp.Compare(b.Seen, a.Seen) })
	return r
}

// Add adds the figures of another row.
func (t *Tool) Add(o Tool) {
	t.Calls += o.Calls
	t.Seen += o.Seen
	t.Shown += o.Shown
	t.Kept += o.Kept
	t.Fetched += o.Fetched
	t.Net += o.Net
	t.Client += o.Client
	t.Receipts += o.Receipts
	t.Refetch += o.Refetch
	t.Ignored += o.Ignored
	t.Failed += o.Failed
	t.Notices += o.Notices
	t.Over += o.Over
}
