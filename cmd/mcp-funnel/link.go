package main

import (
	"fmt"
	"time"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"

	"github.com/mcp-funnel/mcp-funnel/observations"
)

type linkCmd struct {
	ID  string  `arg:"" optional:"" help:"obs:ID or ID, which the link reads."`
	For cli.Age `env:"-" default:"15m" placeholder:"TIME" help:"How long the link can be used, at most 7d."`
	Put bool    `env:"-" help:"Print a link that stores what is sent to it, once, instead of one that reads."`
}

func (linkCmd) Help() string {
	return `A server that serves this store with --http and --link-base answers the link, without a token: whoever has it
can use it. It sends the bytes as they are stored, and masks nothing.

  mcp-funnel link obs:k3v9q2m7x4ab --link-base https://funnel.example
  curl -T big.json "$(mcp-funnel link --put --link-base https://funnel.example)"`
}

// Run prints a link. Observations of the command line are the operator's, and so is what its links store.
func (c *linkCmd) Run(s *cli.Settings, w *cli.Streams) error {
	switch {
	case c.Put && c.ID != "":
		return cli.Usagef("--put stores a new observation: leave out %.60q, or --put", c.ID)
	case !c.Put && c.ID == "":
		return cli.Usagef("name what the link reads, as in mcp-funnel link obs:ID, or write --put for a link that stores")
	}
	return s.WithKept(func(k *cli.Kept) error {
		store := k.Store
		all, err := s.Links(store, k.Records)
		if err != nil {
			return err
		}
		var url, use string
		var until time.Time
		if c.Put {
			use = "PUT to it once"
			url, until, err = all.Store(observations.Local, time.Duration(c.For))
		} else {
			use = "GET it"
			ids, wrong := parseIDs([]string{c.ID})
			if wrong != nil {
				return wrong
			}
			if _, err := store.Stat(observations.Local, ids[0]); err != nil {
				return explain(ids[0], err)
			}
			url, until, err = all.Read(observations.Local, ids[0], time.Duration(c.For))
		}
		if err != nil {
			return cli.Usagef("--for: %w", err)
		}
		cli.PrintMessage(w.Err, use+" until "+until.Local().Format(listTime)+"; whoever has it needs no token")
		_, err = fmt.Fprintln(w.Out, url)
		return err
	})
}
