package server

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

// The envelope is read here and not by encoding/json, which takes "METHOD" for "method", lets the last of
// two equal keys win and turns ids into floats.

// maxID is how long an id may be as sent, in bytes: it is echoed in every answer.
const maxID = 256

// maxParams is how long the params may be that are decoded here, in bytes. A tool's arguments are not:
// they are handed to the tool as they are.
const maxParams = 256 << 10

// frame is one JSON-RPC message whose envelope is sound.
type frame struct {
	id       json.RawMessage // as sent; nil in a notification
	key      string          // equal for equal ids, however they are spelt
	method   string
	params   map[string]json.RawMessage // the members of params; nil where there are none
	protocol string                     // the protocol version declared in _meta, or ""
	token    json.RawMessage            // _meta.progressToken as sent; nil: no progress is wanted
	level    string                     // _meta's log level, or ""
	can      json.RawMessage            // _meta's client capabilities, as sent
	size     int                        // of the whole message, in bytes

	answer        bool            // a response to a request of ours
	result, fault json.RawMessage // of a response, as sent; fault is nil unless it failed
}

// modern says that the message belongs to the stateless era.
func (f frame) modern() bool { return mcp.IsModernProtocol(f.protocol) }

// str is a member of params that has to be a string; "" where there is none.
func (f frame) str(name string) (s string, fault *Fault) {
	fault = f.member(name, &s)
	return s, fault
}

// member reads a member of params into v, which stays as it is where there is none.
func (f frame) member(name string, v any) *Fault {
	raw := f.params[name]
	if raw == nil {
		return nil
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return faultf(mcp.INVALID_PARAMS, "%s: %s", f.method, wrongType(name, err))
	}
	return nil
}

// needed is str of a member that has to be there.
func (f frame) needed(name string) (string, *Fault) {
	if raw := f.params[name]; raw == nil || string(raw) == "null" {
		return "", faultf(mcp.INVALID_PARAMS, "%s: %s is missing", f.method, name)
	}
	return f.str(name)
}

// text is a member of params that is a string, or "".
func (f frame) text(name string) string {
	s, _ := unquote(f.params[name])
	return s
}

// parse reads one message. On a fault the frame's id stands where it could be made out.
func parse(line []byte) (frame, *Fault) {
	var f frame
	f.size = len(line)
	switch start := bytes.TrimLeft(line, " \t\r\n"); {
	case len(start) == 0:
		return f, faultf(mcp.PARSE_ERROR, "not JSON: nothing was sent")
	case start[0] != '{':
		if err := sound(line); err != nil {
			return f, parseFault(err)
		}
		return f, errNotObject
	}
	env := envelope{}
	if err := members(line, env.member); err != nil {
		f.id = findID(line)
		return f, parseFault(err)
	}
	var fault *Fault
	if f.id, f.key, fault = env.id(); fault != nil {
		return f, fault
	}
	if fault := env.check(); fault != nil {
		return f, fault
	}
	if env.method == nil {
		f.answer, f.result, f.fault = true, env.result, env.fault
		return f, nil
	}
	f.method, _ = unquote(env.method)
	if fault := f.readParams(env.params); fault != nil {
		return f, fault
	}
	return f, nil
}

// sound says whether line is one JSON value.
func sound(line []byte) error {
	d := jsontext.NewDecoder(bytes.NewBuffer(line))
	if _, err := d.ReadValue(); err != nil {
		return err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return errTrailing
	}
	return nil
}

// envelope holds the members of the outermost object as sent; nil where absent.
type envelope struct {
	jsonrpc, rawID, method, params, result, fault json.RawMessage
}

var envelopeKeys = []string{"jsonrpc", "id", "method", "params", "result", "error"}

// member takes one member. Keys that MCP does not know are passed over, but not those that
// another reader might take for known ones.
func (e *envelope) member(name string, value json.RawMessage) error {
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
		return misspelt(name, envelopeKeys)
	}
	return nil
}

// misspelt is a fault where name differs from a known key in nothing but case.
func misspelt(name string, known []string) error {
	if slices.Contains(known, name) {
		return nil
	}
	for _, k := range known {
		if strings.EqualFold(name, k) {
			return faultf(mcp.INVALID_REQUEST, "unknown key %s; write %q", quoted(name), k)
		}
	}
	return nil
}

// id returns the id as sent, and a key under which equal ids meet.
func (e *envelope) id() (id json.RawMessage, key string, fault *Fault) {
	raw := e.rawID
	switch {
	case raw == nil:
		return nil, "", nil
	case len(raw) > maxID:
		return nil, "", faultf(mcp.INVALID_REQUEST, "the id is %d bytes long, at most %d are taken", len(raw), maxID)
	case raw[0] == '"':
		s, err := unquote(raw)
		if err != nil {
			return nil, "", faultf(mcp.INVALID_REQUEST, "the id is not a valid string")
		}
		return raw, "s" + s, nil
	case integer(raw):
		return raw, "n" + string(raw), nil
	}
	return nil, "", faultf(mcp.INVALID_REQUEST, "the id must be a string or an integer, not %s", echo(string(raw)))
}

func (e *envelope) check() *Fault {
	version, _ := unquote(e.jsonrpc)
	switch {
	case e.jsonrpc == nil:
		return faultf(mcp.INVALID_REQUEST, `"jsonrpc": "2.0" is missing`)
	case version != mcp.JSONRPC_VERSION:
		return faultf(mcp.INVALID_REQUEST, `jsonrpc must be "2.0", not %s`, echo(string(e.jsonrpc)))
	case e.method != nil && (e.result != nil || e.fault != nil):
		return faultf(mcp.INVALID_REQUEST, "a message has either a method or a result")
	case e.method == nil && e.result == nil && e.fault == nil:
		return faultf(mcp.INVALID_REQUEST, "method is missing")
	case e.method != nil && (e.method[0] != '"' || len(e.method) == 2):
		return faultf(mcp.INVALID_REQUEST, "method must be a string, not %s", echo(string(e.method)))
	}
	return nil
}

// paramKeys are the members of params that any method knows. A key that differs from one of them
// in case alone is refused: another reader would take it for that one.
var paramKeys = []string{
	"_meta", "argument", "arguments", "capabilities", "clientInfo", "context", "cursor", "inputResponses", "level",
	"name", "notifications", "protocolVersion", "reason", "ref", "requestId", "requestState", "task", "uri",
}

// metaKeys likewise.
var metaKeys = []string{
	"progressToken", mcp.MetaKeyProtocolVersion, mcp.MetaKeyClientInfo, mcp.MetaKeyClientCapabilities, mcp.MetaKeyLogLevel,
}

func (f *frame) readParams(raw json.RawMessage) *Fault {
	if raw == nil || string(raw) == "null" {
		return nil
	}
	if raw[0] != '{' {
		return faultf(mcp.INVALID_PARAMS, "params must be an object, not %s", kindOf(raw))
	}
	f.params = make(map[string]json.RawMessage, 4)
	err := members(raw, func(name string, value json.RawMessage) error {
		f.params[name] = value
		return misspelt(name, paramKeys)
	})
	if err == nil {
		err = f.readMeta(f.params["_meta"])
	}
	if err != nil {
		return parseFault(err)
	}
	if f.id == nil { // a notification
		return nil
	}
	size := len(raw)
	if f.method == string(mcp.MethodToolsCall) {
		size -= len(f.params["arguments"])
	}
	if size > maxParams {
		return faultf(mcp.INVALID_PARAMS, "params of %d bytes, at most %d are taken", size, maxParams)
	}
	return nil
}

func (f *frame) readMeta(raw json.RawMessage) error {
	if raw == nil || string(raw) == "null" {
		return nil
	}
	if raw[0] != '{' {
		return faultf(mcp.INVALID_PARAMS, "_meta must be an object, not %s", kindOf(raw))
	}
	return members(raw, func(name string, value json.RawMessage) error {
		switch name {
		case "progressToken":
			if string(value) == "null" { // as some clients write none
				return nil
			}
			if len(value) > maxID || (value[0] != '"' && !integer(value)) {
				return faultf(mcp.INVALID_PARAMS, "progressToken must be a string or an integer of at most %d bytes", maxID)
			}
			f.token = value
		case mcp.MetaKeyProtocolVersion:
			s, err := unquote(value)
			if err != nil {
				return faultf(mcp.INVALID_PARAMS, "%s must be a string, not %s", name, kindOf(value))
			}
			f.protocol = s
		case mcp.MetaKeyLogLevel:
			f.level, _ = unquote(value)
		case mcp.MetaKeyClientCapabilities:
			f.can = value
		default:
			return misspelt(name, metaKeys)
		}
		return nil
	})
}

// members calls visit for each member of the object that is the whole of raw, in order. It refuses
// duplicate keys and invalid UTF-8 at any depth. Values are slices of raw.
func members(raw []byte, visit func(name string, value json.RawMessage) error) error {
	d := jsontext.NewDecoder(bytes.NewBuffer(raw))
	if t, err := d.ReadToken(); err != nil {
		return err
	} else if t.Kind() != '{' {
		return errNotObject
	}
	var misspelt error // told only where the whole is sound: a fault in the grammar goes first
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

var errNotObject = faultf(mcp.INVALID_REQUEST, "a message must be an object")

var errTrailing = errors.New("something stands after the message; send each message on a line of its own")

// parseFault words what is wrong with a text that members did not take.
func parseFault(err error) *Fault {
	var fault *Fault
	if errors.As(err, &fault) {
		return fault
	}
	var at *jsontext.SyntacticError
	if !errors.As(err, &at) {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("the message breaks off")
		}
		return faultf(mcp.PARSE_ERROR, "not JSON: %s", echo(err.Error()))
	}
	why := "bad syntax"
	if at.Err != nil {
		why = at.Err.Error()
	}
	where := " at byte " + strconv.FormatInt(at.ByteOffset, 10)
	switch {
	case errors.Is(at.Err, jsontext.ErrDuplicateName):
		return faultf(mcp.INVALID_REQUEST, "the key %s stands twice%s", quoted(at.JSONPointer.LastToken()), where)
	case errors.Is(at.Err, io.ErrUnexpectedEOF):
		return faultf(mcp.PARSE_ERROR, "not JSON: the message breaks off%s", where)
	}
	return faultf(mcp.PARSE_ERROR, "not JSON: %s%s", echo(why), where)
}

// findID is the id of a message that was refused, or of which only the beginning is known, so that
// the refusal can be told apart from others; nil where there is none to be sure of: where there are
// two, or where no comma or closing brace follows it: "id": 007 is not 0.
func findID(raw []byte) json.RawMessage {
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
		if e.rawID != nil || len(rest) == 0 || rest[0] != ',' && rest[0] != '}' { // a second one; perhaps not all of it
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

func unquote(raw json.RawMessage) (string, error) {
	b, err := jsontext.AppendUnquote(nil, raw)
	return string(b), err
}

// integer says that raw is a JSON number without fraction and exponent.
func integer(raw []byte) bool {
	digits := bytes.TrimPrefix(raw, []byte("-"))
	return len(digits) > 0 && len(bytes.Trim(digits, "0123456789")) == 0
}

// kindOf names what a JSON value is.
func kindOf(raw json.RawMessage) string {
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
