package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
)

// accepts says which of the two types of answer the client takes. Without the header it takes anything.
func accepts(r *http.Request) (asJSON, asStream bool) {
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

// checkVersion is of the header in the sessions era, where it may be left out.
func checkVersion(r *http.Request) *Fault {
	version := r.Header.Get(mcp.HeaderProtocolVersion)
	if version == "" || mcp.IsValidProtocolVersion(version) {
		return nil
	}
	return faultf(mcp.INVALID_REQUEST, "unknown MCP-Protocol-Version %s; known: %s",
		quoted(version), strings.Join(mcp.ValidProtocolVersions, ", "))
}

// checkHeaders holds what the headers say of a request to the request itself: whatever stands between may have gone by them.
func checkHeaders(r *http.Request, f frame) *Fault {
	if f.answer {
		return faultf(mcp.INVALID_REQUEST, "responses are not sent in protocol %s: the call is repeated with inputResponses",
			mcp.ProtocolVersion20260728)
	}
	mismatch := func(name, have, want string) *Fault {
		if have == "" {
			return faultf(mcp.HEADER_MISMATCH, "header mismatch: %s is missing; the message says %s", name, quoted(want))
		}
		return faultf(mcp.HEADER_MISMATCH, "header mismatch: %s is %s, the message says %s", name, quoted(have), quoted(want))
	}
	if version, _ := oneHeader(r, mcp.HeaderProtocolVersion); version != f.protocol {
		if f.protocol == "" && f.id != nil {
			return faultf(mcp.INVALID_PARAMS, "_meta lacks %s, which protocol %s needs in every request", mcp.MetaKeyProtocolVersion, quoted(version))
		}
		if f.id != nil || f.protocol != "" { // headers of notifications are not defined
			return mismatch("MCP-Protocol-Version", version, f.protocol)
		}
	}
	if f.id == nil {
		return nil
	}
	if method, _ := oneHeader(r, mcp.HeaderMethod); method != f.method {
		return mismatch(mcp.HeaderMethod, method, f.method)
	}
	if !mcp.MethodRequiresNameHeader(mcp.MCPMethod(f.method)) {
		return nil
	}
	want := f.text("name")
	if f.method == string(mcp.MethodResourcesRead) {
		want = f.text("uri")
	}
	name, _ := oneHeader(r, mcp.HeaderName)
	plain, ok := mcp.DecodeHeaderValue(name)
	if !ok || name == "" || plain != want {
		return mismatch(mcp.HeaderName, name, want)
	}
	return nil
}

// headerWord is what the schema of a tool has where an argument is to be repeated as a header, Mcp-Param-….
const headerWord = `"x-mcp-header"`

// checkParams holds the headers that repeat arguments of a tools/call to the arguments.
func (s *Server) checkParams(r *http.Request, f frame) *Fault {
	if f.id == nil || f.method != string(mcp.MethodToolsCall) {
		return nil
	}
	name := f.text("name")
	at := slices.IndexFunc(s.offered.Tools, func(t RawTool) bool { return t.Name == name })
	if at < 0 || !bytes.Contains(s.offered.Tools[at].RawInputSchema, []byte(headerWord)) {
		return nil
	}
	args, fault := arguments(f)
	if fault != nil {
		return fault
	}
	params, err := json.Marshal(map[string]json.RawMessage{"arguments": args})
	if err == nil {
		err = mcp.ValidateParamHeadersLookup(func(name string) (string, bool) { return oneHeader(r, name) }, &s.offered.Tools[at].Tool, params)
	}
	var mismatch mcp.HeaderMismatchError
	switch {
	case errors.As(err, &mismatch):
		return faultf(mcp.HEADER_MISMATCH, "header mismatch: %s: %s", mismatch.Header, echo(mismatch.Reason))
	case err != nil:
		return faultf(mcp.INVALID_PARAMS, "%s", echo(err.Error()))
	}
	return nil
}

// oneHeader is the value of a header that may stand once, and whether it is there.
func oneHeader(r *http.Request, name string) (string, bool) {
	all := r.Header.Values(name)
	return strings.Join(all, ", "), len(all) > 0 // several are not what any message says
}
