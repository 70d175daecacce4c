package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

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

// wrongType says in words which part of a member of the params had which wrong type.
func wrongType(member string, err error) string {
	var kind *json.UnmarshalTypeError
	if !errors.As(err, &kind) {
		return content.ClipBytes(err.Error(), maxEcho)
	}
	field := member
	if kind.Field != "" {
		field += "." + kind.Field
	}
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
