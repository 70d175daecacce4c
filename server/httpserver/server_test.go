package httpserver

import (
	"testing"

	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/server/servertest"
	"github.com/mcp-funnel/mcp-funnel/server/servertest/started"
)

var (
	runs           = started.Runs
	withAskTools   = started.WithAskTools
	newTestServer  = started.Server
	makeTestServer = started.New
)

func withStore(t testing.TB) func(*server.Options) {
	return func(o *server.Options) { o.Store = servertest.NewTestStore(t) }
}
