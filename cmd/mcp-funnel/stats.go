package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"

	"github.com/mcp-funnel/mcp-funnel/session/stats"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools/upstream"
)

type statsCmd struct {
	Since cli.Age `env:"-" default:"30d" placeholder:"TIME" help:"Only calls of this last time: 90m, 12h, 7d. Default: 30d, which is all that is kept."`
	JSON  bool    `env:"-" name:"json" help:"Print everything as JSON."`
	Line  bool    `env:"-" xor:"form" help:"Print one line, for a status line."`

	Servers bool `env:"-" xor:"form" help:"Show what each wrapped server cost and was used for, and which one to drop."`
}

func (c *statsCmd) Help() string {
	return `Sums up the calls of all clients that use this store. All figures are tokens.

seen       of the outputs that calls of this tool made
shown      of the answers
fetched    of later answers that read such an output again
net        seen - shown - fetched: what was saved; of the total also - tool list
vs client  the same against what the client would have cut by itself

"largest command" is the one whose calls saw most: its share may make the total
say little about the others.

"reads of over half" counts reads and slices that showed over half of an output
whose receipt said to direct jq, grep or slice at it. "receipts show too little"
names tools of which over 30 % of the receipts were followed by a read.

--servers: schemas of a server's tools as a session listed them last, listed by
all sessions together, and what was shown and saved of its outputs. "drop this":
the lists took more than all its outputs have, shown or saved.

Examples:

  mcp-funnel stats --since 7d
  mcp-funnel stats --json | jq .events`
}

func (c *statsCmd) Run(s *cli.Settings, w *cli.Streams) error {
	sum, skipped := stats.New(), 0
	var fail error
	err := s.WithTrace(func(log trace.Store) error {
		for call, err := range log.Read(time.Now().Add(-time.Duration(c.Since)), &skipped) {
			if err != nil {
				cli.PrintMessage(w.Err, err)
				fail = cli.ErrFailed
				continue
			}
			sum.Add(call)
		}
		return nil
	})
	if err != nil {
		return err
	}
	r := sum.Report(skipped)
	if c.Servers {
		return errors.Join(c.servers(s, w, r), fail)
	}
	switch {
	case c.JSON:
		err = cli.WriteJSON(w.Out, r, "  ")
	case c.Line:
		_, err = fmt.Fprintln(w.Out, statsLine(r))
	default:
		err = writeStats(w, r)
	}
	if err != nil {
		return err
	}
	return fail
}

// servers prints what each wrapped server cost and was used for.
func (c *statsCmd) servers(s *cli.Settings, w *cli.Streams, r stats.Report) error {
	counter, err := s.Counter()
	var all []*upstream.Cost
	if err == nil {
		err = withRecords(s, func(known upstream.Records) (err error) {
			all, err = known.Costs(r, counter.Count)
			return err
		})
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return cli.WriteJSON(w.Out, all, "  ")
	}
	t := tabwriter.NewWriter(w.Out, 0, 0, 2, ' ', tabwriter.AlignRight) // it writes at Flush, which returns the error
	_, _ = fmt.Fprintln(t, "SERVER\tTOOLS\tSCHEMAS\tSESSIONS\tLISTED\tCALLS\tSHOWN\tSAVED\tNEVER USED\t")
	said := "\n"
	for _, of := range all {
		name := cli.InLine(of.Server)
		_, _ = fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n", name, of.Tools, of.Schemas,
			of.Listed.Sessions, of.Listed.Tokens, of.Calls.Calls, of.Calls.Shown+of.Calls.Fetched, of.Calls.Net, len(of.Unused))
		if of.Error != "" {
			said += name + ": " + of.Error + "\n"
		}
		if of.Drop {
			said += fmt.Sprintf("%s: drop this, or wrap it with --defer: its lists took %d tokens in %s, its outputs have %d\n",
				name, of.Listed.Tokens, content.Plural(int64(of.Listed.Sessions), "session", "sessions"), of.Calls.Seen)
		}
		if len(of.Unused) > 0 {
			said += name + ": never used: " + cli.InLine(strings.Join(of.Unused, ", ")) + "\n"
		}
	}
	_, _ = fmt.Fprint(t, said)
	return t.Flush()
}

// statsLine returns the sums in one line, and what is left of the context that was decided on last.
func statsLine(r stats.Report) string {
	line := fmt.Sprintf("%d calls, %s of %s tokens shown, %s saved", r.Total.Calls,
		short(r.Total.Shown+r.Total.Fetched), short(r.Total.Seen), short(r.Total.Net))
	if last := r.Last; last.Limited {
		line += fmt.Sprintf(", prompt %s, left %s", short(int64(last.Spent)), short(int64(last.Left)))
		if usable := last.Spent + last.Left; usable > 0 {
			line += fmt.Sprintf(" (%d %%)", 100*last.Left/usable)
		}
	}
	return line + fmt.Sprintf(", %d pointers", r.Events.Pointers)
}

// short formats a number of tokens: 999, 12.3k, 4.56M.
func short(n int64) string {
	switch abs := max(n, -n); {
	case abs < 1000:
		return strconv.FormatInt(n, 10)
	case abs < 1_000_000:
		return strconv.FormatFloat(float64(n)/1000, 'f', 1, 64) + "k"
	}
	return strconv.FormatFloat(float64(n)/1_000_000, 'f', 2, 64) + "M"
}

// percent formats a share of 0 to 1. It rounds down, so that 100 % is all.
func percent(share float64) string { return fmt.Sprintf("%d %%", int(100*share)) }

func writeStats(w *cli.Streams, r stats.Report) error {
	t := tabwriter.NewWriter(w.Out, 0, 0, 2, ' ', tabwriter.AlignRight) // it writes at Flush, which returns the error
	row := func(name string, of stats.Tool, list int64) {
		_, _ = fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n", cli.InLine(name), of.Calls, of.Seen, of.Shown,
			of.Fetched, of.Net, of.Client-of.Shown-of.Fetched-list, of.Receipts, of.Refetch)
	}
	_, _ = fmt.Fprintln(t, "TOOL\tCALLS\tSEEN\tSHOWN\tFETCHED\tNET\tVS CLIENT\tRECEIPTS\tREAD AGAIN\t")
	for _, of := range r.Tools {
		row(of.Name, of, 0)
	}
	_, _ = fmt.Fprintf(t, "tool list\t\t\t%d\t\t%d\t%d\t\t\t\n", r.List, -r.List, -r.List)
	row("total", r.Total, r.List)
	if err := t.Flush(); err != nil {
		return err
	}
	line := func(format string, a ...any) { _, _ = fmt.Fprintf(t, format+"\n", a...) }
	line("")
	if of := r.Largest; of != nil {
		line("largest command: %s (%s): %s of all tokens seen, %d of %d", cli.InLine(of.Name),
			content.Plural(int64(of.Calls), "call", "calls"), percent(of.Share), of.Seen, r.Total.Seen)
	}
	for _, of := range r.Tools {
		if of.TooHard {
			line("%s: %d of %d receipts were followed by a read: receipts show too little; raise --tool-limit %s.receipt-tokens",
				cli.InLine(of.Name), of.Refetch, of.Receipts, cli.InLine(of.Name))
		}
	}
	if r.Events.Ignored > 0 {
		line("%d reads of over half of an output whose receipt was shown", r.Events.Ignored)
	}
	if r.Total.Notices > 0 {
		line("outputs not shown, because the client reported a full context: %d", r.Total.Notices)
	}
	if r.Events.Violations > 0 {
		line("%d answers were over what the client reported as left: please report this", r.Events.Violations)
	}
	for _, of := range r.Observed {
		text := fmt.Sprintf("wrap --observe: %s: %d tokens in %s, of which receipts (%d) would have saved %d",
			cli.InLine(of.Name), of.Seen, content.Plural(int64(of.Calls), "call", "calls"), of.Receipts, of.Net)
		if of.Net <= 0 {
			text += ": don't wrap it for this tool"
		}
		line("%s", text)
	}
	for _, cut := range r.Cuts {
		line("vs client: %s shows %d tokens of one output (%s); others show all", cut.Client, cut.Tokens, cut.Source)
	}
	if r.Skipped > 0 {
		line("%d lines of the trace were skipped: torn, or of another version", r.Skipped)
	}
	return t.Flush()
}
