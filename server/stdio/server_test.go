package stdio

import "github.com/mcp-funnel/mcp-funnel/server/servertest/started"

var (
	runs           = started.Runs
	withAskTools   = started.WithAskTools
	newTestServer  = started.Server
	makeTestServer = started.New
)
