// Package transcripts has the commands that work on transcripts of clients: context, which says what fills a context,
// and compact, which makes a transcript fit a budget.
package transcripts

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"
	"github.com/mcp-funnel/mcp-funnel/session/compaction"
	"github.com/mcp-funnel/mcp-funnel/session/transcript"
	clientusage "github.com/mcp-funnel/mcp-funnel/session/usage"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
)

// ContextCmd is the command context.
type ContextCmd struct {
	File  string `arg:"" optional:"" help:"Transcript of a client, or messages of an API as JSON; left out: the newest session of Claude Code or Codex in this directory."`
	Worst int    `env:"-" default:"10" placeholder:"N" help:"Results to list, the largest ones. Default: 10."`
	JSON  bool   `env:"-" name:"json" help:"Print everything as JSON."`
}

// Help returns the examples of the command's help.
func (c *ContextCmd) Help() string {
	return `Shows what fills a context: the tokens that the client sends, by role, by tool
and by MCP server, the largest results, and what compact could replace. It
changes nothing.

"not counted" is what the client reported last without what was counted of that
request: its system prompt, the definitions of tools, and encrypted text. What
was added to the transcript since is named beside it.

Examples:

  mcp-funnel context
  mcp-funnel context session.jsonl
  mcp-funnel context --json rollout.jsonl | jq .tools`
}

// share is a part of a context.
type share struct {
	Name    string `json:"name"`
	Results int    `json:"results,omitempty"`
	Tokens  int    `json:"tokens"`
}

// contextReport is what context prints as JSON. All sizes are tokens.
type contextReport struct {
	Format     string       `json:"format"`
	Session    string       `json:"session,omitempty"`
	Lines      int          `json:"lines"`
	Unknown    int          `json:"unknown_lines"`
	Sent       int          `json:"sent"`                  // that the client sends, as counted
	Reported   int          `json:"reported,omitempty"`    // the last prompt, as the client reported it
	Since      int          `json:"since,omitempty"`       // of sent, what was added after that prompt
	NotCounted int          `json:"not_counted,omitempty"` // reported − what of the blocks was in that prompt
	Roles      []share      `json:"roles"`
	Tools      []share      `json:"tools"`
	Servers    []share      `json:"servers"`  // MCP servers
	Repeated   share        `json:"repeated"` // results that a later result supersedes or repeats
	Repeats    []resultSize `json:"repeats"`  // these, the largest first
	Receipts   share        `json:"receipts"` // results that are receipts of this server
	Worst      []resultSize `json:"worst"`
	Replace    int          `json:"compact_could_replace"` // all but errors, the last three and small results
	Notes      []string     `json:"notes,omitempty"`       // what is counted by an estimate, or not at all
}

type resultSize struct {
	Line   int    `json:"line"`
	Turn   int    `json:"turn"`
	Tool   string `json:"tool"`
	Args   string `json:"args,omitempty"` // at most 200 characters
	Tokens int    `json:"tokens"`
	By     int    `json:"by_line,omitempty"` // of the later result that repeats it

	block, by int // indexes of the repeated block and of the later one
}

// Run prints what fills the context.
func (c *ContextCmd) Run(s *cli.Settings, w *cli.Streams) error {
	if c.File == "" {
		var err error
		if c.File, err = newestSession(); err != nil {
			return err
		}
		cli.PrintMessage(w.Err, c.File)
	}
	t, file, err := readTranscript(c.File)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it was only read
	counter, err := s.Counter()
	if err != nil {
		return err
	}
	r := examine(t, counter.Count, s.MaskText(), c.Worst)
	if err := t.Err(); err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	r.Notes = append(r.Notes, otherModel(t, s, "is counted as "+s.Model+" here; --model counts it otherwise")...)
	if c.JSON {
		return cli.WriteJSON(w.Out, r, "  ")
	}
	return writeContext(w, r)
}

// newestSession returns the newest session file of Claude Code or Codex in the current directory.
func newestSession() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	newest, at := "", time.Time{}
	for _, client := range clientusage.Clients {
		path, err := client.Find(dir, "")
		if err != nil {
			continue // the client is not installed, or was not used here
		}
		if info, err := os.Lstat(path); err == nil && info.ModTime().After(at) {
			newest, at = path, info.ModTime()
		}
	}
	if newest == "" {
		dir, _ := os.Getwd() //nolint:errcheck // it is only shown
		return "", fmt.Errorf("no session of Claude Code or Codex was found for %s: name a transcript", dir)
	}
	return newest, nil
}

// shares are sums by name.
type shares map[string]share

func (s shares) add(name string, results, tokens int) {
	sum := s[name]
	s[name] = share{name, sum.Results + results, sum.Tokens + tokens}
}

// sorted returns the sums, largest first.
func (s shares) sorted() []share {
	return slices.SortedFunc(maps.Values(s), func(a, b share) int {
		return cmp.Or(cmp.Compare(b.Tokens, a.Tokens), cmp.Compare(a.Name, b.Name))
	})
}

// examine sums up what a transcript's client sends.
func examine(t *transcript.Transcript, count func(string) int, mask func(string) string, worst int) contextReport {
	r := contextReport{
		Format: string(t.Format), Session: t.Session, Lines: t.LineCount(), Unknown: t.Unknown, Reported: t.Usage,
		Repeated: share{Name: "repeated"}, Receipts: share{Name: "receipts"}, Notes: t.Notes(),
	}
	roles, tools, servers := shares{}, shares{}, shares{}
	repeated := t.Repeated()
	sizes := make([]int, len(t.Blocks))
	for i := range t.Blocks {
		b := &t.Blocks[i]
		if !b.Sent {
			continue
		}
		n := t.Tokens(b, count)
		sizes[i] = n
		r.Sent += n
		if !b.Result() {
			roles.add(string(b.Role), 0, n)
			continue
		}
		roles.add(string(b.Role), 1, n)
		name := cmp.Or(b.Name, "unknown")
		tools.add(name, 1, n)
		if server := serverOf(name); server != "" {
			servers.add(server, 1, n)
		}
		size := resultSize{Turn: b.Turn, Tool: name, Tokens: n, block: i}
		r.Worst = append(r.Worst, size)
		by, again := repeated[i]
		switch {
		case again:
			r.Repeated.Results++
			r.Repeated.Tokens += n
			size.by = by
			r.Repeats = append(r.Repeats, size)
		case b.Receipt:
			r.Receipts.Results++
			r.Receipts.Tokens += n
		}
	}
	r.compareReport(t, sizes, count)
	r.Roles, r.Tools, r.Servers = roles.sorted(), tools.sorted(), servers.sorted()
	r.Worst, r.Repeats = largest(t, r.Worst, mask, worst), largest(t, r.Repeats, mask, worst)
	r.Replace = compaction.Replaceable(t, compaction.Options{Count: count})
	return r
}

// compareReport subtracts what was counted of the reported request from what the client reported of it. sizes are the
// tokens of each block.
func (r *contextReport) compareReport(t *transcript.Transcript, sizes []int, count func(string) int) {
	if r.Reported == 0 {
		return
	}
	reported := min(t.Reported, len(sizes))
	for _, size := range sizes[reported:] {
		r.Since += size
	}
	then := 0
	for i := range t.Blocks[:reported] {
		b := &t.Blocks[i]
		if _, cleared := t.Cleared(b.ID); cleared {
			sizes[i] = t.TokensReported(b, count)
		}
		then += sizes[i]
		if b.Sent && b.Result() && len(b.Texts) > 0 && compaction.IsPointer(b.Text()) {
			r.Notes = append(r.Notes, "the report may be older than the compaction that made the pointers before it:"+
				" what is not counted is unknown")
			return
		}
	}
	r.NotCounted = max(r.Reported-then, 0)
	if then > r.Reported {
		r.Notes = append(r.Notes, fmt.Sprintf("the client reported less than the %d tokens that were counted of it", then))
	}
}

// largest returns the largest results, with their lines. Secrets of their arguments are masked.
func largest(t *transcript.Transcript, all []resultSize, mask func(string) string, most int) []resultSize {
	slices.SortStableFunc(all, func(a, b resultSize) int { return cmp.Compare(b.Tokens, a.Tokens) })
	all = append([]resultSize{}, all[:min(len(all), max(most, 0))]...) // JSON has an empty list, not null
	number := func(i int) int {
		b := &t.Blocks[i]
		if len(b.Texts) > 0 {
			return t.Number(b.Line, b.Texts[0].Start)
		}
		return t.Number(b.Line, b.At)
	}
	for i := range all {
		of := &all[i]
		of.Args, of.Line = content.Clip(mask(t.Blocks[of.block].Args.Text()), 200), number(of.block)
		if of.by > of.block {
			of.By = number(of.by)
		}
	}
	return all
}

// otherModel returns a note that begins with the model of a transcript, if its tokens are not those of --model.
func otherModel(t *transcript.Transcript, s *cli.Settings, note string) []string {
	of, err := tokens.Parse(t.Model)
	now, _ := s.Counter() // it was made before
	if t.Model == "" || err == nil && of == now.Model() {
		return nil
	}
	if err == nil && of.Estimated() {
		note += fmt.Sprintf("; estimated, it takes %v times as many tokens as %s, ±%.0f %%", of.Factor, of.Encoding,
			100*of.Error)
	}
	return []string{t.Model + " " + note}
}

// serverOf returns the MCP server of a tool whose name a client has prefixed: mcp__SERVER__TOOL; "" for others.
func serverOf(tool string) string {
	rest, ok := strings.CutPrefix(tool, "mcp__")
	if !ok {
		return ""
	}
	server, _, _ := strings.Cut(rest, "__")
	return server
}

func writeContext(w *cli.Streams, r contextReport) error {
	t := tabwriter.NewWriter(w.Out, 0, 0, 2, ' ', 0) // it writes at Flush, which returns the error
	line := func(format string, a ...any) { _, _ = fmt.Fprintf(t, format+"\n", a...) }
	percent := func(n int) string { return fmt.Sprintf("%d %%", 100*n/max(r.Sent, 1)) }
	line("%s transcript, %d lines, %d tokens sent", r.Format, r.Lines, r.Sent)
	if r.Reported > 0 {
		text := fmt.Sprintf("%d tokens as the client reported last", r.Reported)
		if r.NotCounted > 0 {
			text += fmt.Sprintf(", %d not counted (system prompt, tool definitions, encrypted text)", r.NotCounted)
		}
		line("%s", text)
	}
	if r.Since > 0 {
		line("%d tokens were added since that report", r.Since)
	}
	for _, part := range []struct {
		title string
		all   []share
	}{{"ROLE", r.Roles}, {"TOOL", r.Tools}, {"MCP SERVER", r.Servers}} {
		if len(part.all) == 0 {
			continue
		}
		line("\n%s\tRESULTS\tTOKENS\tSHARE", part.title)
		for _, of := range part.all {
			line("%s\t%d\t%d\t%s", cli.InLine(of.Name), of.Results, of.Tokens, percent(of.Tokens))
		}
	}
	if len(r.Worst) > 0 {
		line("\nLARGEST RESULT\tTURN\tTOKENS\tTOOL")
	}
	for _, of := range r.Worst {
		line("line %d\t%d\t%d\t%s", of.Line, of.Turn, of.Tokens, cli.InLine(content.Clip(of.Tool+" "+of.Args, 100)))
	}
	line("\nrepeated by a later result: %d results, %d tokens", r.Repeated.Results, r.Repeated.Tokens)
	for _, of := range r.Repeats {
		line("line %d, by line %d\t%d\t%d\t%s", of.Line, of.By, of.Turn, of.Tokens,
			cli.InLine(content.Clip(of.Tool+" "+of.Args, 100)))
	}
	line("receipts of this server: %d results, %d tokens", r.Receipts.Results, r.Receipts.Tokens)
	line("compact could replace up to %d tokens (%s)", r.Replace, percent(r.Replace))
	for _, note := range r.Notes {
		line("note: %s", cli.InLine(note))
	}
	if r.Unknown > 0 {
		line("%d lines of an unknown kind were not counted", r.Unknown)
	}
	return t.Flush()
}
