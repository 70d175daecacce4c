package jsonrpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// These error codes are specific to this server. They come from the part of JSON-RPC's server range that MCP leaves
// to implementations.
const (
	CodeBusy   = -32010 // a limit is reached: try again
	CodeEnding = -32011 // the server is ending: the call gets no result
	CodeLate   = -32012 // the call timed out
)

// MaxEcho is the maximum number of bytes of client text that one error repeats.
const MaxEcho = 200

// Fault is a JSON-RPC error object.
type Fault struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

func (f *Fault) Error() string { return f.Message }

// Faultf returns a fault with a formatted message.
func Faultf(code int, format string, args ...any) *Fault {
	return &Fault{Code: code, Message: fmt.Sprintf(format, args...)}
}

// BadParams returns a fault for invalid params.
func BadParams(format string, args ...any) *Fault { return Faultf(mcp.INVALID_PARAMS, format, args...) }

// BadRequest returns a fault for an invalid message.
func BadRequest(format string, args ...any) *Fault {
	return Faultf(mcp.INVALID_REQUEST, format, args...)
}

// Echo cuts a client's text to [MaxEcho] bytes and escapes its hidden characters, so that an error can repeat it.
func Echo(s string) string { return content.Visible(content.ClipBytes(s, MaxEcho), false) }

// Quoted returns [Echo] of s in double quotes on one line. It replaces %q, which would escape the text of Echo again.
func Quoted(s string) string { return `"` + onOneLine.Replace(Echo(s)) + `"` }

var onOneLine = strings.NewReplacer("\n", `\n`, "\r", `\r`, "\t", `\t`, `"`, `\"`)

// WrongType words a decoding error of one member of params: it names the field, the expected type and the actual one.
func WrongType(member string, err error) string {
	var kind *json.UnmarshalTypeError
	if !errors.As(err, &kind) {
		return content.ClipBytes(err.Error(), MaxEcho)
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
	return fmt.Sprintf("%s must be %s, not %s", Echo(field), want, kind.Value)
}
