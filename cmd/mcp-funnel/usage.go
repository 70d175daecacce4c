package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"

	"github.com/alecthomas/kong"

	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/funnel/policy"
	clientusage "github.com/mcp-funnel/mcp-funnel/session/usage"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

type usageCmd struct {
	From  string `env:"-" enum:"stdin,claude,codex" default:"stdin" help:"Where to read: stdin (what a hook or status line writes there), or once the session file of claude or codex."`
	File  string `arg:"" optional:"" help:"With --from, the session file. Default: the newest one of the current directory."`
	Owner string `env:"-" default:"${owner}" placeholder:"NAME" help:"Identity of the client at a server over HTTP."`
	JSON  bool   `env:"-" name:"json" help:"With --from, print the record as JSON."`
}

func (c *usageCmd) Help() string {
	return `Tells the server how full the model's context is. The client runs it: put it into
the client's settings as docs/BUDGET.md shows. For a status line it prints one line,
for a hook nothing. It never ends with code 2, which would stop the client.

Examples:

  mcp-funnel usage < hook.json
  mcp-funnel usage --from codex`
}

// statusDelay is how far back a status line's figures may lie: the client runs it up to that long after the model has
// answered, and may show the output of a tool before.
const statusDelay = time.Second

// Run reads one event and enters it into the account of its session. A status line is printed even if that fails.
func (c *usageCmd) Run(s *cli.Settings, w *cli.Streams) (err error) {
	defer func() {
		if p := recover(); p != nil { // a panic ends the process with code 2
			err = fmt.Errorf("usage: internal error: %v; please report it", p)
		}
	}()
	if c.From != "stdin" {
		return c.pull(s, w)
	}
	if c.File != "" {
		return fmt.Errorf("usage: %.60q: a file needs --from claude or --from codex", c.File)
	}
	if cli.IsTerminal(w.In) {
		return errors.New("usage reads the JSON of a hook or status line from standard input; see docs/BUDGET.md")
	}
	e, err := clientusage.ParseClientEvent(w.In)
	if err != nil {
		return err
	}
	a, err := c.account(s, e.Key(), func(all *clientusage.Accounts) error { return c.enter(all, e) })
	if e.Kind == clientusage.Status {
		if e.Usage == nil {
			a.Report = nil
		} else if a.Report == nil {
			a.Report = e.Usage
		}
		if err != nil {
			cli.PrintMessage(w.Err, err) // and no more: a client shows no status line of a command that failed
		}
		_, err = fmt.Fprintln(w.Out, usageLine(s, a, e.Window))
	}
	return err
}

// account returns the account of a session after enter has changed the accounts of the store.
func (c *usageCmd) account(
	s *cli.Settings, session string, enter func(*clientusage.Accounts) error,
) (a clientusage.Account, err error) {
	err = s.WithKept(func(k *cli.Kept) (err error) {
		all := clientusage.OpenAccounts(k.Records)
		if err := enter(all); err != nil {
			return cli.ExplainWrite(k.Store, err)
		}
		a, err = all.Read(c.Owner, session)
		return err
	})
	return a, err
}

// enter writes an event into the accounts.
func (c *usageCmd) enter(all *clientusage.Accounts, e clientusage.Event) error {
	switch {
	case e.Reset:
		return all.Reset(c.Owner, e.Key())
	case e.Kind == clientusage.ToolUse && e.ToolUseID != "":
		return all.Join(c.Owner, e.ToolUseID, e.Session, e.AgentID)
	case e.Usage != nil:
		u := *e.Usage
		if e.Kind == clientusage.Status {
			u.At = time.Now().Add(-statusDelay)
		}
		return all.Report(c.Owner, e.Key(), u)
	case e.Kind == clientusage.Status:
		return all.Forget(c.Owner, e.Key(), clientusage.FromStatusLine)
	}
	return nil
}

// pull reads the last record of a session file, and enters it.
func (c *usageCmd) pull(s *cli.Settings, w *cli.Streams) error {
	client, path := clientusage.Clients[c.From], c.File
	if path == "" {
		var err error
		if path, err = sessionFile(client, ""); err != nil {
			return err
		}
	}
	u, err := client.Last(path)
	if err != nil {
		return err
	}
	var a clientusage.Account
	if u.Session != "" {
		a, err = c.account(s, u.Session, func(all *clientusage.Accounts) error { return all.Report(c.Owner, u.Session, u) })
	}
	if a.Report == nil {
		a.Report = &u
	}
	if c.JSON {
		return errors.Join(err, cli.WriteJSON(w.Out, u, "  "))
	}
	_, printed := fmt.Fprintln(w.Out, usageLine(s, a, 0))
	return errors.Join(err, printed)
}

// usageLine words an account: "context 42.0k of 200.0k | reserve 4.1k | left 78 % | 3 pointers", with "?" for what is
// unknown. What is left is a percentage of the usable part, as the policy computes it.
func usageLine(s *cli.Settings, a clientusage.Account, window int) string {
	spent := funnel.SpentOf(a)
	prompt, of, left := "?", "?", "?"
	if r := a.Report; r != nil {
		prompt = short(int64(r.PromptTokens))
	} else {
		spent = policy.Spent{}
	}
	spent.Window = cmp.Or(spent.Window, window)
	usable, window, _, known := s.Options().Policy.Usable(spent)
	if window > 0 {
		of = short(int64(window))
	}
	if a.Report != nil && known {
		left = fmt.Sprintf("%d %%", 100*max(usable-spent.Tokens, 0)/max(usable, 1))
	}
	return fmt.Sprintf("context %s of %s | reserve %s | left %s | %s", prompt, of,
		short(int64(cmp.Or(spent.Response, s.ResponseReserve))), left,
		content.Plural(int64(a.Pointers), "pointer", "pointers"))
}

// wrongUsage returns the exit code for a command line that could not be parsed. For the commands that clients run as a
// hook it is not 2, which a client takes as an order to stop.
func wrongUsage(args []string, err error) int {
	var commands []*kong.Node
	var parse *kong.ParseError
	if errors.As(err, &parse) && parse.Context != nil {
		commands = parse.Context.Model.Children
		if path := commandPath(parse.Context); path != "" {
			args = []string{path}
		}
	}
	for _, word := range args {
		if code, ok := map[string]int{"usage": failed, "hook": done}[word]; ok {
			return code
		}
		if slices.ContainsFunc(commands, func(c *kong.Node) bool { return c.Name == word }) {
			break
		}
	}
	return usage
}
