package tokens

import "github.com/mcp-funnel/mcp-funnel/tokens/tables"

// Unpack loads the larger table, for its benchmark.
func Unpack() { unpack(tables.O200k) }
