package server

import (
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/fs"
	"github.com/mcp-funnel/mcp-funnel/tools/jq"
	"github.com/mcp-funnel/mcp-funnel/tools/search"
)

// Catalog is the list of tools, in the order in which they are offered.
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
