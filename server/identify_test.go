package server

import (
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
)

func TestAccounted(t *testing.T) {
	conn := newTestServer(t).Connect(t.Context())
	for meta, want := range map[string]string{
		``: "stateless", `"funnel/session":"chat 1"`: "key chat 1", `"funnel/session":""`: "", `"funnel/session":7`: "",
		`"funnel/session":"` + strings.Repeat("x", maxSessionKey+1) + `"`: "",
	} {
		if meta != "" {
			meta = "," + meta
		}
		f, fault := jsonrpc.Parse(
			[]byte(
				`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"` + meta + `}}}`,
			),
		)
		if fault != nil {
			t.Fatal(fault)
		}
		fault = conn.Identify("anna", f)
		who := conn.account
		if want == "" && fault == nil || want != "" && (fault != nil || who != funnel.Session{ID: want, Owner: "anna"}) {
			t.Errorf("%s: %+v %v", meta, who, fault)
		}
	}
	if _ = conn.Identify("anna", jsonrpc.Frame{}); conn.account.ID != conn.id || conn.account.Owner != "anna" {
		t.Errorf("%+v", conn.account)
	}
}
