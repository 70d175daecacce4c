package main

import (
	"bufio"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

type obsRm struct {
	IDs []string `arg:"" name:"id" optional:"" help:"obs:ID or ID, one or more."`
	All bool     `env:"-" help:"Remove all observations, pinned ones too, after a question."`
	Yes bool     `env:"-" help:"Do not ask."`
}

func (c *obsRm) Run(s *cli.Settings, w *cli.Streams, of *observationsCmd) error {
	switch {
	case c.All && len(c.IDs) > 0:
		return cli.Usagef("rm takes either IDs or --all")
	case !c.All && len(c.IDs) == 0:
		return cli.Usagef("rm needs the IDs of observations (observations list shows them), or --all")
	}
	return s.WithStore(func(store *observations.Store) error {
		if c.All {
			return c.removeAll(store, w, of)
		}
		return c.removeIDs(store, w, of)
	})
}

func (c *obsRm) removeIDs(store *observations.Store, w *cli.Streams, of *observationsCmd) error {
	ids, err := parseIDs(c.IDs)
	if err != nil {
		return err
	}
	var pinned []string
	for _, id := range ids {
		name := observations.Prefix + string(id)
		if o, err := store.Stat(of.owner(store, id), id); err == nil && o.Pinned &&
			!slices.Contains(pinned, name) {
			pinned = append(pinned, name)
		}
	}
	if len(pinned) > 0 {
		are, them := "is", "it"
		if len(pinned) > 1 {
			are, them = "are", "them"
		}
		subject := content.ClipBytes(strings.Join(pinned, ", "), 200) + " " + are + " pinned"
		if err := c.confirm(w, subject, "remove "+them); err != nil {
			return err
		}
	}
	return forEachID(w, ids, func(id observations.ID) error {
		o, err := remove(store, of.owner(store, id), id)
		if err == nil && o.Pinned {
			cli.PrintMessage(w.Err, "removed obs:"+string(id)+", which was pinned")
		}
		return err
	})
}

func (c *obsRm) removeAll(store *observations.Store, w *cli.Streams, of *observationsCmd) error {
	list, others, err := of.list(store, true)
	if err != nil {
		return err
	}
	defer reportOthers(w, others, "removes")
	list = slices.DeleteFunc(list, func(o observations.Observation) bool { return o.Expired != nil })
	if len(list) == 0 {
		_, err := fmt.Fprintln(w.Out, "nothing is kept in", cli.InLine(store.Dir()))
		return err
	}
	pinned, size := 0, int64(0)
	for _, o := range list {
		size += o.Bytes
		if o.Pinned {
			pinned++
		}
	}
	subject := fmt.Sprintf("%s, %s, in %s", cli.ObservationsText(len(list)), cli.BytesText(size),
		cli.InLine(store.Dir()))
	if pinned > 0 {
		subject += fmt.Sprintf(", %d pinned", pinned)
	}
	if err := c.confirm(w, subject, "remove all"); err != nil {
		return err
	}
	removed, freed, failures := 0, int64(0), error(nil)
	for _, o := range list {
		if _, err := remove(store, o.Owner, o.ID); err != nil {
			cli.PrintMessage(w.Err, explain(o.ID, err))
			failures = cli.ErrFailed
			continue
		}
		removed, freed = removed+1, freed+o.Bytes
	}
	if _, err := fmt.Fprintf(w.Out, "removed %s, %s\n", cli.ObservationsText(removed), cli.BytesText(freed)); err != nil {
		return err
	}
	return failures
}

// remove removes one observation and returns what it was. One that is removed already is not an error.
func remove(store *observations.Store, owner string, id observations.ID) (observations.Observation, error) {
	o, err := store.Stat(owner, id)
	if err == nil || !errors.Is(err, observations.ErrExpired) {
		err = store.Remove(owner, id)
	}
	if errors.Is(err, observations.ErrNotFound) && store.RemoveDamaged(id) == nil {
		return observations.Observation{ID: id}, nil
	}
	if errors.Is(err, observations.ErrExpired) {
		return o, nil
	}
	return o, cli.ExplainWrite(store, err)
}

// confirm returns nil if --yes is given, or if the person at the terminal agrees. Without a terminal it refuses.
func (c *obsRm) confirm(w *cli.Streams, subject, what string) error {
	if c.Yes {
		return nil
	}
	if !cli.IsTerminal(w.In) || !cli.IsTerminal(w.Err) {
		return cli.Usagef("%s: nothing is removed; add --yes to %s", subject, what)
	}
	if _, err := fmt.Fprintf(w.Err, "%s; %s? [y/N] ", subject, what); err != nil {
		return err
	}
	if saysYes(w) {
		return nil
	}
	return errors.New("nothing is removed")
}

// saysYes reads the answer of the person at the terminal. The end of input is a no.
func saysYes(w *cli.Streams) bool {
	answer, _ := bufio.NewReader(w.In).ReadString('\n') //nolint:errcheck // the end is no answer
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}
