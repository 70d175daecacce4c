package cli

import (
	"slices"

	"mvdan.cc/sh/v3/syntax"

	"github.com/mcp-funnel/mcp-funnel/prompts"
	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/upstream"
)

// Upstreams are the servers whose tools an app offers besides its own.
type Upstreams struct {
	Servers []upstream.Options // none: the app offers its own tools only
	Common  upstream.Common    // Version, Observe and Optional; the app sets the rest
	Without string             // name of a tool of this program that is not offered; "": all are
}

// offer adds upstream servers to an app whose catalog is complete.
func (a *App) offer(up Upstreams, s *Settings) {
	c := up.Common
	c.Log, c.NoDelta, c.Program, c.Count = a.Log, !s.Deltas, "mcp-funnel", a.Counter.Count
	if a.Store != nil {
		records := upstream.RecordsIn(a.Records)
		c.Records = &records
	}
	if s.Store != "" {
		dir, _ := syntax.Quote(s.Store, syntax.LangPOSIX) // a path has no byte 0
		c.Program += " --store " + dir
	}
	c.JQ, _ = a.Tool("jq") // every catalog has it
	a.Catalog = slices.DeleteFunc(a.Catalog, func(t tools.Tool) bool { return c.Observe || t.Name == up.Without })
	c.Reserved = append(toolNames(a.Catalog), server.AppTool)
	for _, p := range prompts.All() {
		c.Reserved = append(c.Reserved, p.Name)
	}
	a.Upstreams = upstream.NewGroup(c, up.Servers...)
}
