package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"

	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tools"
	writing "github.com/mcp-funnel/mcp-funnel/tools/write"
)

type undo struct {
	ID   string `arg:"" optional:"" placeholder:"obs:ID" help:"Change to undo, as its answer and observations list --changes name it. Default: the last one."`
	JSON bool   `env:"-" name:"json" help:"Print the whole answer as JSON."`
}

func (u *undo) Help() string {
	return `It puts back what edit, write, move or remove changed, if that is still as the change left it, and prints what differs
otherwise. Undoing is a change too, and can be undone.

Example:

  mcp-funnel observations list --changes
  mcp-funnel undo obs:k3v9q2m7x4ab`
}

// Run grants, for this one call, the directories of the files that the change names.
func (u *undo) Run(ctx context.Context, s *cli.Settings, w *cli.Streams) error {
	id, change, err := u.find(s)
	if err != nil {
		return err
	}
	s.Toolsets, s.Root, s.Confirm = []string{tools.Core, writing.Toolset}, nil, false
	for _, path := range []string{change.Path, change.To} {
		if path == "" {
			continue
		}
		dir := filepath.Dir(path)
		for at, err := os.Stat(dir); err != nil || !at.IsDir(); at, err = os.Stat(dir) {
			dir = filepath.Dir(dir)
		}
		s.Root = append(s.Root, dir)
	}
	s.AllowWrite = s.Root
	return cli.Do(ctx, s, w, "undo", func(ctx context.Context, app *cli.App, bar *cli.Bar) error {
		t, err := app.Tool("write")
		if err != nil {
			return err
		}
		args, err := json.Marshal(map[string]string{"undo": observations.Prefix + string(id)})
		if err == nil {
			_, err = callTool(ctx, s, w, app, bar, funnel.Request{Tool: t, Args: args}, u.JSON)
		}
		return err
	})
}

// onlyChanges returns the observations of a list that keep a change of a file, in its place.
func onlyChanges(list []observations.Observation) []observations.Observation {
	return slices.DeleteFunc(list, func(o observations.Observation) bool { _, ok := writing.ChangeOf(&o); return !ok })
}

// find returns the change that is to be undone.
func (u *undo) find(s *cli.Settings) (id observations.ID, change writing.Change, err error) {
	err = s.WithStore(func(store *observations.Store) error {
		all, err := store.List(observations.Local, false)
		if err != nil {
			return err
		}
		if u.ID != "" {
			if id, err = observations.ParseID(u.ID); err != nil {
				return cli.Usagef("%w; observations list --changes shows those there are", err)
			}
		}
		at := slices.IndexFunc(all, func(o observations.Observation) bool {
			var ok bool
			change, ok = writing.ChangeOf(&o)
			return ok && (u.ID == "" || o.ID == id)
		})
		if at < 0 {
			return cli.Usagef("there is no such change: observations list --changes shows those that can be undone")
		}
		id = all[at].ID
		return nil
	})
	return id, change, err
}
