package cli

import (
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/records"
	"github.com/mcp-funnel/mcp-funnel/server/links"
)

// checkLinkBase returns an error if the URL of links is none; "" is allowed.
func (s *Settings) checkLinkBase() error {
	if s.LinkBase == "" {
		return nil
	}
	if err := links.CheckBase(s.LinkBase); err != nil {
		return Usagef("--link-base %.100q: %w", s.LinkBase, err)
	}
	return nil
}

// Links returns what makes links with the key of a store, and makes that key if there is none.
func (s *Settings) Links(store *observations.Store, kept records.Store) (*links.Links, error) {
	if s.LinkBase == "" {
		return nil, Usagef("set --link-base to the URL at which mcp-funnel serve --http is reached, here and for the server")
	}
	if err := s.checkLinkBase(); err != nil {
		return nil, err
	}
	all, err := links.New(s.LinkBase, kept)
	return all, ExplainWrite(store, err)
}

// openLinks opens the links of an app whose callers are on other machines, and returns how receipts get theirs; nil if
// there are none. As without a store, the tools work without them; a replica does not start, since the others have them.
func (a *App) openLinks(s *Settings) (func(owner string, id observations.ID) string, error) {
	if s.LinkBase == "" || a.local || a.Store == nil {
		return nil, nil
	}
	all, err := s.Links(a.Store, a.Records)
	if err != nil && s.IsRemote() {
		return nil, err
	}
	if err != nil {
		a.Log.Warn("there are no links", "cause", err)
		return nil, nil
	}
	a.Links = all
	return func(owner string, id observations.ID) string {
		url, _, _ := all.Read(owner, id, links.Life) // its time is one that links may have
		return url
	}, nil
}
