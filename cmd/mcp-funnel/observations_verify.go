package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"

	"github.com/mcp-funnel/mcp-funnel/observations"
)

type obsVerify struct {
	IDs []string `arg:"" name:"id" optional:"" help:"obs:ID or ID; none: all."`
}

func (c *obsVerify) Run(ctx context.Context, s *cli.Settings, w *cli.Streams, of *observationsCmd) error {
	kept, err := s.OpenKept(nil)
	if err != nil {
		return err
	}
	defer kept.Close()
	store := kept.Store
	ids, err := parseIDs(c.IDs)
	if err != nil {
		return err
	}
	var halves []observations.ID
	if len(ids) == 0 {
		var others int
		if ids, halves, others, err = of.verifiable(store); err != nil {
			return err
		}
		defer reportOthers(w, others, "verifies")
	}
	good, gone, bar := 0, 0, cli.NewBar(w.Err, "verify", time.Now())
	err = forEachID(w, ids, func(id observations.ID) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := store.Verify(of.owner(store, id), id)
		if len(c.IDs) == 0 && errors.Is(err, observations.ErrExpired) { // it expired after it was listed
			gone++
			return nil
		}
		if err != nil {
			return err
		}
		good++
		bar.Progress(int64(good), int64(len(ids)), "observations")
		return nil
	})
	bar.End()
	for _, id := range halves {
		cli.PrintMessage(w.Err, fmt.Sprintf("obs:%s: %v: its sidecar is missing or unreadable; repeat the call that made it",
			id, observations.ErrDamaged))
		err = cli.ErrFailed
	}
	if _, e := fmt.Fprintf(w.Out, "%d of %d intact\n", good, len(ids)-gone+len(halves)); e != nil {
		return e
	}
	return err
}

// verifiable returns the observations that a verify without IDs reads, those whose sidecar is missing or
// unreadable, so that their owner is unknown, and the number of those that belong to other owners.
func (c *observationsCmd) verifiable(store *observations.Store) (
	ids, halves []observations.ID, others int, err error,
) {
	if halves, err = store.Damaged(); err != nil {
		return nil, nil, 0, err
	}
	list, err := store.List("", true)
	if err != nil {
		return nil, nil, 0, err
	}
	for _, o := range list {
		halves = slices.DeleteFunc(halves, func(id observations.ID) bool { return id == o.ID })
		switch {
		case o.Expired != nil:
		case c.AnyOwner || o.Owner == observations.Local:
			ids = append(ids, o.ID)
		default:
			others++
		}
	}
	return ids, halves, others, nil
}
