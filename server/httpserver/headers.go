package httpserver

import (
	"encoding/json"
	"mime"
	"net/http"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
)

// acceptedTypes returns which of the two response types the Accept header allows: both if there is none.
func acceptedTypes(r *http.Request) (asJSON, asStream bool) {
	all := r.Header.Values("Accept")
	if len(all) == 0 {
		return true, true
	}
	for part := range strings.SplitSeq(strings.Join(all, ","), ",") {
		kind, params, err := mime.ParseMediaType(part)
		if err != nil || strings.Trim(params["q"], "0.") == "" && params["q"] != "" {
			continue
		}
		asJSON = asJSON || kind == "*/*" || kind == "application/*" || kind == "application/json"
		asStream = asStream || kind == "*/*" || kind == "text/*" || kind == "text/event-stream"
	}
	return asJSON, asStream
}

// checkVersion checks MCP-Protocol-Version for protocols with sessions, where it is optional.
func checkVersion(r *http.Request) *jsonrpc.Fault {
	version := r.Header.Get(mcp.HeaderProtocolVersion)
	if version == "" || mcp.IsValidProtocolVersion(version) {
		return nil
	}
	return jsonrpc.BadRequest("unsupported MCP-Protocol-Version %s; supported: %s",
		jsonrpc.Quoted(version), strings.Join(mcp.ValidProtocolVersions, ", "))
}

// checkHeaders requires that version, method and name in the headers equal those in the message: a proxy may have
// decided by the headers.
func checkHeaders(r *http.Request, f jsonrpc.Frame) *jsonrpc.Fault {
	if f.IsResponse {
		return jsonrpc.BadRequest("protocol %s has no responses from clients; repeat the call with inputResponses",
			mcp.ProtocolVersion20260728)
	}
	if version, _ := oneHeader(r, mcp.HeaderProtocolVersion); version != f.Protocol {
		if f.Protocol == "" && f.ID != nil {
			return jsonrpc.BadParams("_meta lacks %s, which protocol %s requires in every request",
				mcp.MetaKeyProtocolVersion, jsonrpc.Quoted(version))
		}
		if f.ID != nil || f.Protocol != "" { // the protocol defines no headers for notifications
			return server.HeaderFault(mcp.HeaderMismatchError{
				Header: "MCP-Protocol-Version", Reason: "the message says " + jsonrpc.Quoted(f.Protocol),
			})
		}
	}
	if f.ID == nil {
		return nil
	}
	params, _ := json.Marshal(map[string]string{"name": f.StringOrEmpty("name"), "uri": f.StringOrEmpty("uri")}) // strings
	return server.HeaderFault(mcp.ValidateStandardHeaders(func(name string) string {
		value, _ := oneHeader(r, name)
		return value
	}, f.Protocol, mcp.MCPMethod(f.Method), params))
}

// oneHeader returns the value of a header that may occur once, and whether it is present.
func oneHeader(r *http.Request, name string) (string, bool) {
	all := r.Header.Values(name)
	return strings.Join(all, ", "), len(all) > 0 // joined, several equal no value of a message
}
