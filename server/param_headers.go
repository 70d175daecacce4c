package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
)

// headerWord is the key in a tool's schema that marks an argument which clients repeat in a header, Mcp-Param-….
const headerWord = `"x-mcp-header"`

// CheckParamHeaders returns a fault if a header that repeats an argument of a tools/call differs from the argument.
// lookup returns the value of a header and whether the header exists.
func (s *Server) CheckParamHeaders(f jsonrpc.Frame, lookup func(name string) (string, bool)) *jsonrpc.Fault {
	if f.ID == nil || f.Method != string(mcp.MethodToolsCall) {
		return nil
	}
	name := f.StringOrEmpty("name")
	at := slices.IndexFunc(s.offers.Tools, func(t RawTool) bool { return t.Name == name })
	if at < 0 || !bytes.Contains(s.offers.Tools[at].RawInputSchema, []byte(headerWord)) {
		return nil
	}
	args, fault := arguments(f)
	if fault != nil {
		return fault
	}
	params, err := json.Marshal(map[string]json.RawMessage{"arguments": args})
	if err == nil {
		err = mcp.ValidateParamHeadersLookup(lookup, &s.offers.Tools[at].Tool, params)
	}
	return HeaderFault(err)
}

// HeaderFault returns the fault for an error of mcp-go's checks of headers; nil for nil.
func HeaderFault(err error) *jsonrpc.Fault {
	var mismatch mcp.HeaderMismatchError
	switch {
	case errors.As(err, &mismatch):
		return jsonrpc.Faultf(mcp.HEADER_MISMATCH, "header mismatch: %s: %s", mismatch.Header, jsonrpc.Echo(mismatch.Reason))
	case err != nil:
		return jsonrpc.BadParams("%s", jsonrpc.Echo(err.Error()))
	}
	return nil
}
