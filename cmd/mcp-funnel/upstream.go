package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools/upstream"
)

// upstreamCmd is the command upstream.
type upstreamCmd struct {
	List    upstreamList    `cmd:"" default:"withargs" help:"List the servers that wrap has started, and their tools that are held back."`
	Diff    upstreamDiff    `cmd:"" help:"Show what changed in the definitions of tools that are held back."`
	Approve upstreamApprove `cmd:"" help:"Approve definitions of tools as the server lists them now."`
}

// Help returns the help of the command.
func (*upstreamCmd) Help() string {
	return `The tools of a server are trusted as they are when wrap first starts it. A tool
whose definition changes later, or that is new, is held back: calls of it are
refused until a person has looked at it (diff) and approved it (approve).`
}

// withRecords calls f with the records of the store.
func withRecords(s *cli.Settings, f func(upstream.Records) error) error {
	return s.WithKept(func(k *cli.Kept) error { return f(upstream.RecordsIn(k.Records)) })
}

type upstreamList struct{}

func (upstreamList) Run(s *cli.Settings, w *cli.Streams) error {
	return withRecords(s, func(all upstream.Records) error {
		keys, err := all.Keys()
		if err != nil {
			return err
		}
		for _, key := range keys {
			r, err := all.Load(key)
			if err != nil {
				cli.PrintMessage(w.Err, cli.InLine(err.Error()))
				continue
			}
			line := fmt.Sprintf("%s  %s  %s", key, content.Plural(int64(len(r.Approved)), "tool", "tools"),
				cli.InLine(strings.Join(r.Command, " ")))
			if r.Dir != "" {
				line += "  in " + cli.InLine(r.Dir)
			}
			for _, h := range r.Held {
				line += fmt.Sprintf("\n  held back, %s: %s", h.Why, cli.InLine(h.Name))
			}
			if _, err := fmt.Fprintln(w.Out, line); err != nil {
				return err
			}
		}
		return nil
	})
}

type upstreamDiff struct {
	Server string   `arg:"" help:"The server, as list names it."`
	Tools  []string `arg:"" optional:"" name:"tool" help:"Tools; left out: all that are held back."`
}

func (c *upstreamDiff) Run(s *cli.Settings, w *cli.Streams) error {
	return withRecords(s, func(all upstream.Records) error {
		r, err := recordOf(all, c.Server)
		if err != nil {
			return err
		}
		return printChanges(w, r, c.Server, c.Tools)
	})
}

// printChanges prints what changed in the definitions of tools: of all that are held back, if none is named.
func printChanges(w *cli.Streams, r *upstream.Record, server string, names []string) error {
	if len(names) == 0 {
		for _, h := range r.Held {
			names = append(names, h.Name)
		}
	}
	for _, name := range names {
		approved, listed := r.Definitions(name)
		if approved == nil && listed == nil {
			return fmt.Errorf("the server %s has no tool %.100q", server, name)
		}
		lines := append([]string{name}, upstream.ChangedLines(approved, listed)...)
		for _, line := range lines {
			if _, err := fmt.Fprintln(w.Out, content.Visible(line, false)); err != nil {
				return err
			}
		}
	}
	return nil
}

type upstreamApprove struct {
	Server string   `arg:"" help:"The server, as list names it."`
	Tools  []string `arg:"" optional:"" name:"tool" help:"Tools; left out: all that are held back."`
	Yes    bool     `env:"-" short:"y" help:"Do not ask."`
}

func (c *upstreamApprove) Run(s *cli.Settings, w *cli.Streams) error {
	return withRecords(s, func(all upstream.Records) error {
		r, err := recordOf(all, c.Server)
		if err != nil {
			return err
		}
		if len(r.Held) == 0 {
			cli.PrintMessage(w.Err, "nothing is held back")
			return nil
		}
		// What is approved is what is shown here: the server may have changed it again since diff.
		if err := printChanges(w, r, c.Server, c.Tools); err != nil {
			return err
		}
		if !c.Yes {
			if !cli.IsTerminal(w.In) {
				return cli.Usagef("nothing is approved; add --yes to approve this")
			}
			if _, err := fmt.Fprint(w.Err, "Approve this? (y/N) "); err != nil {
				return err
			}
			if !saysYes(w) {
				return errors.New("nothing is approved")
			}
		}
		var names []string
		if err := all.Change(c.Server, func(now *upstream.Record) (*upstream.Record, error) {
			shownNames := c.Tools
			for _, h := range r.Held {
				if len(c.Tools) == 0 {
					shownNames = append(shownNames, h.Name)
				}
				_, shown := r.Definitions(h.Name)
				if now == nil || !bytes.Equal(shown, definitionNow(now, h.Name)) {
					return nil, fmt.Errorf("the server has changed %.100q again meanwhile: nothing is approved", h.Name)
				}
			}
			var err error
			names, err = now.Approve(shownNames...)
			return now, err
		}); err != nil {
			return err
		}
		cli.PrintMessage(w.Err, "approved: "+cli.InLine(strings.Join(names, ", "))+"; the next call finds them")
		return nil
	})
}

func definitionNow(r *upstream.Record, name string) json.RawMessage {
	_, listed := r.Definitions(name)
	return listed
}

// recordOf returns the record of a server that a user names.
func recordOf(all upstream.Records, key string) (*upstream.Record, error) {
	keys, err := all.Keys()
	if err != nil {
		return nil, err
	}
	if !slices.Contains(keys, key) {
		return nil, fmt.Errorf("no server %.40q: mcp-funnel upstream list names them", key)
	}
	return all.Load(key)
}
