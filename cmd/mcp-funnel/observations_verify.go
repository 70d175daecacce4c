package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mcp-funnel/mcp-funnel/observations"
)

type obsVerify struct {
	IDs []string `arg:"" name:"id" optional:"" help:"obs:ID or ID; none: all."`
}

func (c *obsVerify) Run(ctx context.Context, s *Settings, w *streams, of *observationsCmd) error {
	store, err := s.openStore()
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	words := c.IDs
	var halves []observations.ID
	if len(words) == 0 {
		var others int
		if words, halves, others, err = of.all(store); err != nil {
			return err
		}
		defer tellOthers(w, others, "verifies")
	}
	good, gone, bar := 0, 0, newBar(w.err, "verify")
	err = each(w, words, func(id observations.ID) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := store.Verify(of.owner(store, id), id)
		if len(c.IDs) == 0 && errors.Is(err, observations.ErrExpired) { // since it was listed: it is no more of all
			gone++
			return nil
		}
		if err != nil {
			return err
		}
		good++
		bar.progress(int64(good), int64(len(words)), "observations")
		return nil
	})
	bar.end()
	if err != nil && !errors.Is(err, errFailed) { // no ID was looked at
		return err
	}
	for _, id := range halves {
		if _, e := fmt.Fprintf(w.err, "mcp-funnel: obs:%s: %v: its sidecar is missing or unreadable; repeat the call that made it\n", id, observations.ErrDamaged); e != nil {
			return e
		}
		err = errFailed
	}
	if _, e := fmt.Fprintf(w.out, "%d of %d intact\n", good, len(words)-gone+len(halves)); e != nil {
		return e
	}
	return err
}

// all are those that a verify of all looks at; those of which a half is missing, so that nothing says any more whose they
// are; and how many there are of others.
func (c *observationsCmd) all(store *observations.Store) (words []string, halves []observations.ID, others int, err error) {
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
			words = append(words, string(o.ID))
		default:
			others++
		}
	}
	return words, halves, others, nil
}
