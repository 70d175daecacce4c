package cli

import (
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
