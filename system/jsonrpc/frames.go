package jsonrpc

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mark3labs/mcp-go/mcp"
)

// This file decodes the envelope without encoding/json, which accepts "METHOD" for "method", uses the last of two
// duplicate keys and turns ids into floats.

// maxID is the maximum length of an id as sent, in bytes. Every answer repeats the id.
const maxID = 256

// maxParams is the maximum length of params in bytes, without a tool's arguments: the server passes those to the tool
// undecoded.
const maxParams = 256 << 10

// Frame is one JSON-RPC message with a valid envelope.
type Frame struct {
	ID            json.RawMessage // as sent; nil in a notification
	Key           string          // the id without its spelling: equal ids have equal keys
	Method        string
	Params        map[string]json.RawMessage // the members of params; nil if there are none
	Protocol      string                     // the protocol version declared in _meta, or ""
	ProgressToken json.RawMessage            // _meta.progressToken as sent; nil: the client wants no progress
	LogLevel      string                     // the log level in _meta, or ""
	Capabilities  json.RawMessage            // the client capabilities in _meta, as sent
	Size          int                        // bytes of the whole message

	IsResponse    bool            // the message is a response to a request of this server
	Result, Error json.RawMessage // of a response, as sent; Error is nil if the request succeeded
}

// Stateless reports whether the message uses the stateless protocol (2026-07-28 and later).
func (f Frame) Stateless() bool { return mcp.IsModernProtocol(f.Protocol) }

// StringParam returns a member of params that must be a string; "" if it is missing.
func (f Frame) StringParam(name string) (s string, fault *Fault) {
	fault = f.Param(name, &s)
	return s, fault
}

// Param decodes a member of params into v. If the member is missing, v does not change.
func (f Frame) Param(name string, v any) *Fault {
	raw := f.Params[name]
	if raw == nil {
		return nil
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return BadParams("%s: %s", f.Method, WrongType(name, err))
	}
	return nil
}

// RequiredString returns a member of params that must be a string, or a fault if the member is missing or null.
func (f Frame) RequiredString(name string) (string, *Fault) {
	if raw := f.Params[name]; raw == nil || string(raw) == "null" {
		return "", BadParams("%s: %s is missing", f.Method, name)
	}
	return f.StringParam(name)
}

// StringOrEmpty returns a member of params if it is a string, else "".
func (f Frame) StringOrEmpty(name string) string {
	s, _ := Unquote(f.Params[name])
	return s
}

// Meta returns a member of _meta as sent; nil if there is none.
func (f Frame) Meta(name string) (value json.RawMessage) {
	_ = EachMember(f.Params["_meta"], func(member string, v, _ json.RawMessage) { // Parse has checked _meta
		if member == name {
			value = v
		}
	})
	return value
}

// Parse parses and checks one message. With a fault it still returns the frame's ID if it could be found.
func Parse(line []byte) (Frame, *Fault) {
	var f Frame
	f.Size = len(line)
	if len(bytes.TrimLeft(line, whiteSpace)) == 0 {
		return f, Faultf(mcp.PARSE_ERROR, "not JSON: nothing was sent")
	}
	envelope, err := members(line, envelopeKeys)
	if err != nil {
		f.ID = FindID(line)
		return f, parseFault(err)
	}
	var fault *Fault
	if f.Key, fault = KeyOf(envelope["id"]); fault != nil {
		return f, fault
	}
	f.ID = envelope["id"]
	if fault := checkEnvelope(envelope); fault != nil {
		return f, fault
	}
	if envelope["method"] == nil {
		f.IsResponse, f.Result, f.Error = true, envelope["result"], envelope["error"]
		return f, nil
	}
	f.Method, _ = Unquote(envelope["method"])
	if err := f.readParams(envelope["params"]); err != nil {
		return f, parseFault(err)
	}
	return f, nil
}

const whiteSpace = " \t\r\n" // of JSON

// KeyOf returns the [Frame.Key] of an id as sent, or a fault if the id is invalid.
func KeyOf(id json.RawMessage) (string, *Fault) {
	switch {
	case id == nil:
		return "", nil
	case len(id) > maxID:
		return "", BadRequest("the id is %d bytes long; send at most %d", len(id), maxID)
	case id[0] == '"':
		s, err := Unquote(id)
		if err != nil {
			return "", BadRequest("the id is not a valid string")
		}
		return StringKey(s), nil
	case isInteger(id):
		return "n" + string(id), nil
	}
	return "", BadRequest("the id must be a string or an integer, not %s", Echo(string(id)))
}

// StringKey returns the [Frame.Key] of a string id.
func StringKey(id string) string { return "s" + id }

// checkEnvelope returns a fault unless the message is a request, a notification or a response of JSON-RPC 2.0.
func checkEnvelope(e map[string]json.RawMessage) *Fault {
	version, _ := Unquote(e["jsonrpc"])
	method, isResponse := e["method"], e["result"] != nil || e["error"] != nil
	switch {
	case e["jsonrpc"] == nil:
		return BadRequest(`"jsonrpc": "2.0" is missing`)
	case version != mcp.JSONRPC_VERSION:
		return BadRequest(`jsonrpc must be "2.0", not %s`, Echo(string(e["jsonrpc"])))
	case method != nil && isResponse:
		return BadRequest("a message has either a method or a result")
	case method == nil && !isResponse:
		return BadRequest("method is missing")
	case method != nil && (method[0] != '"' || len(method) == 2):
		return BadRequest("method must be a string, not %s", Echo(string(method)))
	}
	return nil
}

// These are the known members of the message, of the params of all methods, and of _meta.
var (
	envelopeKeys = []string{"jsonrpc", "id", "method", "params", "result", "error"}
	paramKeys    = []string{
		"_meta", "argument", "arguments", "capabilities", "clientInfo", "context", "cursor", "inputResponses", "level",
		"name", "notifications", "protocolVersion", "reason", "ref", "requestId", "requestState", "task", "uri",
	}
	metaKeys = []string{
		"progressToken", mcp.MetaKeyProtocolVersion, mcp.MetaKeyClientInfo, mcp.MetaKeyClientCapabilities,
		mcp.MetaKeyLogLevel,
	}
)

func (f *Frame) readParams(raw json.RawMessage) (err error) {
	if f.Params, err = optionalMembers("params", raw, paramKeys); err != nil {
		return err
	}
	meta, err := optionalMembers("_meta", f.Params["_meta"], metaKeys)
	if err != nil {
		return err
	}
	token := meta["progressToken"]
	if token != nil && string(token) != "null" { // some clients send null for no token
		if len(token) > maxID || token[0] != '"' && !isInteger(token) {
			return BadParams("progressToken must be a string or an integer of at most %d bytes", maxID)
		}
		f.ProgressToken = token
	}
	if version := meta[mcp.MetaKeyProtocolVersion]; version != nil {
		if f.Protocol, err = Unquote(version); err != nil {
			return BadParams("%s must be a string, not %s", mcp.MetaKeyProtocolVersion, KindOf(version))
		}
	}
	f.LogLevel, _ = Unquote(meta[mcp.MetaKeyLogLevel])
	f.Capabilities = meta[mcp.MetaKeyClientCapabilities]
	size := len(raw)
	if f.Method == string(mcp.MethodToolsCall) {
		size -= len(f.Params["arguments"])
	}
	if f.ID != nil && size > maxParams {
		return BadParams("params of %d bytes are too long; send at most %d, not counting a tool's arguments", size, maxParams)
	}
	return nil
}

// optionalMembers is members for an object that may be missing or null. It returns a fault for other values.
func optionalMembers(name string, raw json.RawMessage, known []string) (map[string]json.RawMessage, error) {
	if raw == nil || string(raw) == "null" {
		return nil, nil
	}
	if raw[0] != '{' {
		return nil, BadParams("%s must be an object, not %s", name, KindOf(raw))
	}
	return members(raw, known)
}

// members returns the known members of an object as sent, and ignores the others. It returns a fault if a key differs
// from a known key only in case, since another parser might accept it as that key.
func members(raw []byte, known []string) (map[string]json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	var misspelt error // a syntax error anywhere takes precedence
	err := EachMember(raw, func(name string, value, _ json.RawMessage) {
		if slices.Contains(known, name) {
			all[name] = value
			return
		}
		sameLetters := func(k string) bool { return strings.EqualFold(name, k) }
		if at := slices.IndexFunc(known, sameLetters); at >= 0 && misspelt == nil {
			misspelt = BadRequest("unknown key %s; write %q", Quoted(name), known[at])
		}
	})
	return all, cmp.Or(err, misspelt)
}

// EachMember calls visit for each member of the object raw, in order, with the text that follows the value. Unless
// options allow them, it refuses duplicate keys and invalid UTF-8 at any depth. It refuses text after the object.
func EachMember(raw []byte, visit func(name string, value, rest json.RawMessage), options ...jsontext.Options) error {
	d := jsontext.NewDecoder(bytes.NewBuffer(raw), options...)
	if d.PeekKind() != '{' {
		_, err := d.ReadValue()
		return cmp.Or(err, checkEnd(d), error(errNotObject))
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() == '"' {
		t, err := d.ReadToken()
		if err != nil {
			return err
		}
		name := t.String()
		value, err := d.ReadValue()
		if err != nil {
			return err
		}
		end := int(d.InputOffset())
		visit(name, raw[end-len(value):end:end], raw[end:])
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	return checkEnd(d)
}

// checkEnd returns an error if text follows the value that d has read.
func checkEnd(d *jsontext.Decoder) error {
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return errTrailing
	}
	return nil
}

var errNotObject = BadRequest("a message must be an object")

var errTrailing = errors.New("unexpected data after the message; send each message on its own line")

// parseFault turns a decoding error into a fault. It returns an error that is a fault already unchanged.
func parseFault(err error) *Fault {
	var fault *Fault
	if errors.As(err, &fault) {
		return fault
	}
	var at *jsontext.SyntacticError
	if !errors.As(err, &at) {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("the message is truncated")
		}
		return Faultf(mcp.PARSE_ERROR, "not JSON: %s", Echo(err.Error()))
	}
	why := "bad syntax"
	if at.Err != nil {
		why = at.Err.Error()
	}
	where := " at byte " + strconv.FormatInt(at.ByteOffset, 10)
	switch {
	case errors.Is(at.Err, jsontext.ErrDuplicateName):
		return BadRequest("duplicate key %s%s; remove one", Quoted(at.JSONPointer.LastToken()), where)
	case errors.Is(at.Err, io.ErrUnexpectedEOF):
		return Faultf(mcp.PARSE_ERROR, "not JSON: the message is truncated%s", where)
	}
	if strings.Contains(why, "surrogate") { // of a text that was cut inside of an escape
		where += "; send both halves of the character, or end the string before it"
	}
	return Faultf(mcp.PARSE_ERROR, "not JSON: %s%s", Echo(why), where)
}

// FindID returns the id of an invalid or truncated message, so that the error can be answered under that id.
// It returns nil if the id is not certain: if there are two, or if no comma or closing brace follows it
// (in "id": 007 the id is not 0).
func FindID(raw []byte) json.RawMessage {
	var id json.RawMessage
	certain := true
	_ = EachMember(raw, func(name string, value, rest json.RawMessage) {
		if name == "id" {
			next := bytes.TrimLeft(rest, whiteSpace)
			certain = certain && id == nil && len(next) > 0 && (next[0] == ',' || next[0] == '}')
			id = bytes.Clone(value)
		}
	}, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if _, fault := KeyOf(id); fault != nil || !certain {
		return nil
	}
	return id
}

// Unquote decodes a JSON string. It returns an error if raw is no valid JSON string.
func Unquote(raw json.RawMessage) (string, error) {
	b, err := jsontext.AppendUnquote(nil, raw)
	return string(b), err
}

// isInteger reports whether a JSON number has neither a fraction nor an exponent.
func isInteger(raw []byte) bool {
	digits := bytes.TrimPrefix(raw, []byte("-"))
	return len(digits) > 0 && len(bytes.Trim(digits, "0123456789")) == 0
}

// KindOf names the type of a JSON value for an error, as in "must be an object, not a string".
func KindOf(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	}
	return "a number"
}
