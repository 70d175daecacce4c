package cli

import (
	"context"
	"sync"

	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/server/viewer"
)

// Viewer returns the pages for people. The app must have a store. secret is what replicas share; nil: nothing.
func (a *App) Viewer(s *Settings, anyOwner bool, secret []byte) *viewer.Viewer {
	return viewer.New(viewer.Options{
		Store: a.Store, Records: a.Records, Trace: a.Trace, Funnel: a.Funnel, Tools: a.Catalog, Sources: a.SourcesOf,
		Counter: a.Counter, Mask: s.Masker().OnPanic(a.LogUnsearched), Investigator: a.Investigator, Asker: a.Asker,
		Log: a.Log, Secret: secret, AnyOwner: anyOwner,
	})
}

// Pages returns the pages for clients that render MCP Apps, until ctx ends; nil if there is no store. The viewer is made
// when the first client shows one.
func (a *App) Pages(ctx context.Context, s *Settings) *server.App {
	if a.Store == nil {
		return nil
	}
	made := sync.OnceValue(func() *viewer.Viewer {
		view := a.Viewer(s, false, nil)
		context.AfterFunc(ctx, view.Close)
		return view
	})
	return &server.App{
		Document: func() string { return made().Document() },
		Page: func(ctx context.Context, owner string, dirs []string, page string) (title, html string, status int) {
			return made().Render(ctx, viewer.Who{Owner: owner, Roots: dirs}, page)
		},
	}
}
