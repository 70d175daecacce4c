package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
)

// Codes of our own, from the part of JSON-RPC's server range that MCP leaves to implementations.
const (
	codeBusy   = -32010 // too much at once: try again
	codeEnding = -32011 // the server is ending: no answer will come
	codeLate   = -32012 // no answer within the call time-out
)

// maxEcho is how many bytes of anything a caller sent stand in an error.
const maxEcho = 200

// Fault is an error as JSON-RPC has it.
type Fault struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

func (f *Fault) Error() string { return f.Message }

func faultf(code int, format string, args ...any) *Fault {
	return &Fault{Code: code, Message: fmt.Sprintf(format, args...)}
}

// echo is a caller's text, fit to stand in an error.
func echo(s string) string { return content.Visible(content.ClipBytes(s, maxEcho), false) }

// quoted is a caller's text between quotes, on one line. (%q would escape once more what echo has escaped.)
func quoted(s string) string { return `"` + onOneLine.Replace(echo(s)) + `"` }

var onOneLine = strings.NewReplacer("\n", `\n`, "\r", `\r`, "\t", `\t`, `"`, `\"`)

// notFound is the fault for a resource that is not there: its code differs between the eras.
func notFound(modern bool, format string, args ...any) *Fault {
	code := mcp.RESOURCE_NOT_FOUND
	if modern {
		code = mcp.INVALID_PARAMS
	}
	return faultf(code, format, args...)
}

// translate turns what mcp-go says went wrong into what a client can act on. cause is the error
// behind it where mcp-go told us, else nil.
func (s *Server) translate(f frame, details mcp.JSONRPCErrorDetails, cause error) *Fault {
	out := &Fault{Code: details.Code, Message: details.Message, Data: details.Data}
	var own *Fault
	var unparsable *mcpserver.UnparsableMessageError
	switch {
	case errors.As(cause, &own):
		return own
	case errors.As(cause, &unparsable):
		return faultf(mcp.INVALID_PARAMS, "%s: %s", f.method, wrongType(unparsable))
	case errors.Is(cause, mcpserver.ErrToolNotFound):
		return faultf(mcp.INVALID_PARAMS, "unknown tool %s; tools: %s", quoted(f.text("name")), strings.Join(s.names, ", "))
	case errors.Is(cause, mcpserver.ErrPromptNotFound):
		return faultf(mcp.INVALID_PARAMS, "unknown prompt %s; prompts: %s", quoted(f.text("name")), strings.Join(s.promptNames(), ", "))
	case errors.Is(cause, mcpserver.ErrResourceNotFound):
		return notFound(f.modern(), "unknown resource %s; resources are %s and %s",
			quoted(f.text("uri")), observationTemplate, receiptTemplate)
	case errors.Is(cause, context.DeadlineExceeded):
		return faultf(codeLate, "%s: no answer within %s", f.method, s.timeout)
	case f.method == string(mcp.MethodResourcesList) && details.Code == mcp.INVALID_PARAMS:
		return unknownCursor(f.method)
	case details.Code == mcp.METHOD_NOT_FOUND && cause == nil:
		return faultf(mcp.METHOD_NOT_FOUND, "unknown method %s", quoted(f.method))
	}
	out.Message = content.ClipBytes(out.Message, 2*maxEcho)
	return out
}

func unknownCursor(method string) *Fault {
	return faultf(mcp.INVALID_PARAMS, "%s: unknown cursor; leave it out to begin again", method)
}

// wrongType says in words which member of the params had which wrong type.
func wrongType(err error) string {
	var kind *json.UnmarshalTypeError
	if !errors.As(err, &kind) {
		return content.ClipBytes(err.Error(), maxEcho)
	}
	field := strings.TrimPrefix(kind.Field, "params.")
	want := kind.Type.String()
	switch kind.Type.Kind().String() {
	case "string":
		want = "a string"
	case "map", "struct", "ptr":
		want = "an object"
	case "slice", "array":
		want = "an array"
	case "bool":
		want = "true or false"
	case "float64", "int", "int64":
		want = "a number"
	}
	return fmt.Sprintf("%s must be %s, not %s", echo(field), want, kind.Value)
}
