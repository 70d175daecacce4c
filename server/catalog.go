package server

import (
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/fs"
	"github.com/mcp-funnel/mcp-funnel/tools/jq"
	"github.com/mcp-funnel/mcp-funnel/tools/search"
)

// Catalog returns the tools in the order in which tools/list shows them.
func Catalog(o jq.Options) []tools.Tool {
	return []tools.Tool{
		search.Search(),
		fs.Find(),
		fs.Read(),
		search.Grep(),
		jq.JQ(o),
		fs.Slice(),
	}
}
