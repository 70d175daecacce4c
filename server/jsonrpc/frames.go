package jsonrpc

import (
	"bytes"
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
		return Faultf(mcp.INVALID_PARAMS, "%s: %s", f.Method, WrongType(name, err))
	}
	return nil
}

// RequiredString returns a member of params that must be a string, or a fault if the member is missing or null.
func (f Frame) RequiredString(name string) (string, *Fault) {
	if raw := f.Params[name]; raw == nil || string(raw) == "null" {
		return "", Faultf(mcp.INVALID_PARAMS, "%s: %s is missing", f.Method, name)
	}
	return f.StringParam(name)
}

// StringOrEmpty returns a member of params if it is a string, else "".
func (f Frame) StringOrEmpty(name string) string {
	s, _ := Unquote(f.Params[name])
	return s
}

// Parse parses and checks one message. With a fault it still returns the frame's ID if it could be found.
func Parse(line []byte) (Frame, *Fault) {
	var f Frame
	f.Size = len(line)
	switch start := bytes.TrimLeft(line, " \t\r\n"); {
	case len(start) == 0:
		return f, Faultf(mcp.PARSE_ERROR, "not JSON: nothing was sent")
	case start[0] != '{':
		if err := checkOneValue(line); err != nil {
			return f, parseFault(err)
		}
		return f, errNotObject
	}
	env := envelope{}
	if err := eachMember(line, env.set); err != nil {
		f.ID = FindID(line)
		return f, parseFault(err)
	}
	var fault *Fault
	if f.ID, f.Key, fault = env.id(); fault != nil {
		return f, fault
	}
	if fault := env.check(); fault != nil {
		return f, fault
	}
	if env.method == nil {
		f.IsResponse, f.Result, f.Error = true, env.result, env.fault
		return f, nil
	}
	f.Method, _ = Unquote(env.method)
	if fault := f.readParams(env.params); fault != nil {
		return f, fault
	}
	return f, nil
}

// Meta returns a member of _meta as sent; nil if there is none.
func (f Frame) Meta(name string) json.RawMessage {
	raw := f.Params["_meta"]
	if len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	var value json.RawMessage
	_ = eachMember(raw, func(member string, v json.RawMessage) error { // Parse has checked raw
		if member == name {
			value = v
		}
		return nil
	})
	return value
}

// checkOneValue returns an error unless line is exactly one JSON value.
func checkOneValue(line []byte) error {
	d := jsontext.NewDecoder(bytes.NewBuffer(line))
	if _, err := d.ReadValue(); err != nil {
		return err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return errTrailing
	}
	return nil
}

// envelope holds the members of the outermost object as sent; a missing member is nil.
type envelope struct {
	jsonrpc, rawID, method, params, result, fault json.RawMessage
}

var envelopeKeys = []string{"jsonrpc", "id", "method", "params", "result", "error"}

// set stores one member. It ignores unknown keys, except those that differ from a known key only in case:
// another parser might accept them as the known key.
func (e *envelope) set(name string, value json.RawMessage) error {
	switch name {
	case "jsonrpc":
		e.jsonrpc = value
	case "id":
		e.rawID = value
	case "method":
		e.method = value
	case "params":
		e.params = value
	case "result":
		e.result = value
	case "error":
		e.fault = value
	default:
		return checkCase(name, envelopeKeys)
	}
	return nil
}

// checkCase returns a fault if name differs from a known key only in case.
func checkCase(name string, known []string) error {
	if slices.Contains(known, name) {
		return nil
	}
	for _, k := range known {
		if strings.EqualFold(name, k) {
			return Faultf(mcp.INVALID_REQUEST, "unknown key %s; write %q", Quoted(name), k)
		}
	}
	return nil
}

// id returns the id as sent, and the key that it shares with all equal ids.
func (e *envelope) id() (id json.RawMessage, key string, fault *Fault) {
	raw := e.rawID
	switch {
	case raw == nil:
		return nil, "", nil
	case len(raw) > maxID:
		return nil, "", Faultf(mcp.INVALID_REQUEST, "the id is %d bytes long; send at most %d", len(raw), maxID)
	case raw[0] == '"':
		s, err := Unquote(raw)
		if err != nil {
			return nil, "", Faultf(mcp.INVALID_REQUEST, "the id is not a valid string")
		}
		return raw, StringKey(s), nil
	case isInteger(raw):
		return raw, "n" + string(raw), nil
	}
	return nil, "", Faultf(mcp.INVALID_REQUEST, "the id must be a string or an integer, not %s", Echo(string(raw)))
}

// KeyOf returns the [Frame.Key] of an id as sent, or "" if the id is invalid.
func KeyOf(id json.RawMessage) string {
	_, key, _ := (&envelope{rawID: id}).id()
	return key
}

// StringKey returns the [Frame.Key] of a string id.
func StringKey(id string) string { return "s" + id }

func (e *envelope) check() *Fault {
	version, _ := Unquote(e.jsonrpc)
	switch {
	case e.jsonrpc == nil:
		return Faultf(mcp.INVALID_REQUEST, `"jsonrpc": "2.0" is missing`)
	case version != mcp.JSONRPC_VERSION:
		return Faultf(mcp.INVALID_REQUEST, `jsonrpc must be "2.0", not %s`, Echo(string(e.jsonrpc)))
	case e.method != nil && (e.result != nil || e.fault != nil):
		return Faultf(mcp.INVALID_REQUEST, "a message has either a method or a result")
	case e.method == nil && e.result == nil && e.fault == nil:
		return Faultf(mcp.INVALID_REQUEST, "method is missing")
	case e.method != nil && (e.method[0] != '"' || len(e.method) == 2):
		return Faultf(mcp.INVALID_REQUEST, "method must be a string, not %s", Echo(string(e.method)))
	}
	return nil
}

// paramKeys are the members of params of all methods. A key that differs from one of them only in case is refused,
// since another parser might accept it as that key.
var paramKeys = []string{
	"_meta", "argument", "arguments", "capabilities", "clientInfo", "context", "cursor", "inputResponses", "level",
	"name", "notifications", "protocolVersion", "reason", "ref", "requestId", "requestState", "task", "uri",
}

// metaKeys are the members of _meta, with the same rule.
var metaKeys = []string{
	"progressToken", mcp.MetaKeyProtocolVersion, mcp.MetaKeyClientInfo, mcp.MetaKeyClientCapabilities, mcp.MetaKeyLogLevel,
}

func (f *Frame) readParams(raw json.RawMessage) *Fault {
	if raw == nil || string(raw) == "null" {
		return nil
	}
	if raw[0] != '{' {
		return Faultf(mcp.INVALID_PARAMS, "params must be an object, not %s", KindOf(raw))
	}
	f.Params = make(map[string]json.RawMessage, 4)
	err := eachMember(raw, func(name string, value json.RawMessage) error {
		f.Params[name] = value
		return checkCase(name, paramKeys)
	})
	if err == nil {
		err = f.readMeta(f.Params["_meta"])
	}
	if err != nil {
		return parseFault(err)
	}
	if f.ID == nil { // a notification
		return nil
	}
	size := len(raw)
	if f.Method == string(mcp.MethodToolsCall) {
		size -= len(f.Params["arguments"])
	}
	if size > maxParams {
		return Faultf(mcp.INVALID_PARAMS,
			"params of %d bytes are too long; send at most %d, not counting a tool's arguments", size, maxParams)
	}
	return nil
}

func (f *Frame) readMeta(raw json.RawMessage) error {
	if raw == nil || string(raw) == "null" {
		return nil
	}
	if raw[0] != '{' {
		return Faultf(mcp.INVALID_PARAMS, "_meta must be an object, not %s", KindOf(raw))
	}
	return eachMember(raw, func(name string, value json.RawMessage) error {
		switch name {
		case "progressToken":
			if string(value) == "null" { // some clients send null for no token
				return nil
			}
			if len(value) > maxID || (value[0] != '"' && !isInteger(value)) {
				return Faultf(mcp.INVALID_PARAMS, "progressToken must be a string or an integer of at most %d bytes", maxID)
			}
			f.ProgressToken = value
		case mcp.MetaKeyProtocolVersion:
			s, err := Unquote(value)
			if err != nil {
				return Faultf(mcp.INVALID_PARAMS, "%s must be a string, not %s", name, KindOf(value))
			}
			f.Protocol = s
		case mcp.MetaKeyLogLevel:
			f.LogLevel, _ = Unquote(value)
		case mcp.MetaKeyClientCapabilities:
			f.Capabilities = value
		default:
			return checkCase(name, metaKeys)
		}
		return nil
	})
}

// eachMember calls visit for each member of the object raw, in order. It refuses duplicate keys and invalid UTF-8 at
// any depth, and text after the object. Values are slices of raw.
func eachMember(raw []byte, visit func(name string, value json.RawMessage) error) error {
	d := jsontext.NewDecoder(bytes.NewBuffer(raw))
	if t, err := d.ReadToken(); err != nil {
		return err
	} else if t.Kind() != '{' {
		return errNotObject
	}
	var misspelt error // the first error of visit; a syntax error anywhere takes precedence
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
		if err := visit(name, raw[end-len(value):end:end]); err != nil && misspelt == nil {
			misspelt = err
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return errTrailing
	}
	return misspelt
}

var errNotObject = Faultf(mcp.INVALID_REQUEST, "a message must be an object")

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
		return Faultf(mcp.INVALID_REQUEST, "duplicate key %s%s; remove one", Quoted(at.JSONPointer.LastToken()), where)
	case errors.Is(at.Err, io.ErrUnexpectedEOF):
		return Faultf(mcp.PARSE_ERROR, "not JSON: the message is truncated%s", where)
	}
	return Faultf(mcp.PARSE_ERROR, "not JSON: %s%s", Echo(why), where)
}

// FindID returns the id of an invalid or truncated message, so that the error can be answered under that id.
// It returns nil if the id is not certain: if there are two, or if no comma or closing brace follows it
// (in "id": 007 the id is not 0).
func FindID(raw []byte) json.RawMessage {
	d := jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return nil
	}
	var e envelope
	for d.PeekKind() == '"' {
		t, err := d.ReadToken()
		if err != nil {
			break
		}
		isID := t.String() == "id"
		value, err := d.ReadValue()
		if err != nil {
			break
		}
		if !isID {
			continue
		}
		rest := bytes.TrimLeft(raw[d.InputOffset():], " \t\r\n")
		if e.rawID != nil || len(rest) == 0 || rest[0] != ',' && rest[0] != '}' { // two ids, or part of one
			return nil
		}
		e.rawID = json.RawMessage(bytes.Clone(value))
	}
	id, _, fault := e.id()
	if fault != nil {
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
