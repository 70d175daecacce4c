package server

import (
	"slices"

	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/ask"
	"github.com/mcp-funnel/mcp-funnel/tools/deliver"
	"github.com/mcp-funnel/mcp-funnel/tools/fs"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate"
	"github.com/mcp-funnel/mcp-funnel/tools/jq"
	"github.com/mcp-funnel/mcp-funnel/tools/search"
	"github.com/mcp-funnel/mcp-funnel/tools/shell"
	"github.com/mcp-funnel/mcp-funnel/tools/write"
)

// Toolsets are the names of the toolsets, the default one first.
var Toolsets = []string{tools.Core, shell.Toolset, deliver.Toolset, write.Toolset, investigate.Toolset, ask.Toolset}

// Parts are what the tools of a catalog need, and which of them are offered.
type Parts struct {
	JQ      jq.Options
	Shell   *shell.Shell // needed by the toolset shell only
	Deliver deliver.Options
	Writer  *write.Writer // needed by the toolset write only

	Investigator *investigate.Investigator // needed by the toolset investigation only

	Asker *ask.Asker // needed by the toolset answers only

	Toolsets []string // names of [Toolsets]; none: the default one
}

// Catalog returns the tools in the order in which tools/list shows them.
func Catalog(p Parts) []tools.Tool {
	if len(p.Toolsets) == 0 {
		p.Toolsets = Toolsets[:1]
	}
	return slices.DeleteFunc([]tools.Tool{
		search.Search(),
		fs.Find(),
		fs.Read(),
		search.Grep(),
		jq.JQ(p.JQ),
		fs.Slice(),
		p.Shell.Run(),
		deliver.Tool(p.Deliver),
		p.Writer.Edit(),
		p.Writer.Write(),
		p.Writer.Move(),
		p.Writer.Remove(),
		p.Investigator.Tool(),
		p.Asker.Tool(),
	}, func(t tools.Tool) bool { return !slices.Contains(p.Toolsets, t.Toolset) })
}
