package server

import (
	"encoding/json"

	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
)

// noCursor returns a fault if the request has a cursor. It is for lists that have only one page.
func noCursor(f jsonrpc.Frame) *jsonrpc.Fault {
	if cursor, fault := f.StringParam("cursor"); fault != nil || cursor == "" {
		return fault
	}
	return unknownCursor(f.Method)
}

func unknownCursor(method string) *jsonrpc.Fault {
	return jsonrpc.BadParams("%s: unknown cursor; omit it to start again", method)
}

// arguments returns the arguments of a tools/call as sent; {} if there are none.
func arguments(f jsonrpc.Frame) (json.RawMessage, *jsonrpc.Fault) {
	raw := f.Params["arguments"]
	if raw == nil || string(raw) == "null" {
		return json.RawMessage("{}"), nil
	}
	if raw[0] != '{' {
		return nil, jsonrpc.BadParams("%s: arguments must be an object, not %s", jsonrpc.Echo(f.StringOrEmpty("name")),
			jsonrpc.KindOf(raw))
	}
	return raw, nil
}
