package mcpclient

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
)

// answerGrace is how long calls may still be answered after a message that may have been the answer to one of them.
// Some servers write to their log what they send.
const answerGrace = 500 * time.Millisecond

// ownStream is what a stream of the server's own messages gives as its call: no call fails by what comes there.
const ownStream = "own"

// receive handles a line of the server, or the data of an event: a message, several, or something else. of is the key
// of the only call that can be answered there; "" is any. The caller no longer uses the line.
func (l *link) receive(line []byte, of string) {
	f, fault := jsonrpc.Parse(line)
	if fault == nil && !(f.IsResponse && f.ID == nil) {
		l.handle(f, line)
		return
	}
	parts := []json.RawMessage{line}
	if jsonrpc.IsBatch(line) {
		if all, fault := jsonrpc.SplitBatch(line); fault == nil {
			parts = all
		}
	}
	for _, part := range parts {
		for len(part) > 0 {
			first, rest := firstObject(part)
			if f, ok := leniently(first); ok {
				l.handle(f, first)
			} else {
				l.broken(first, of, fault)
			}
			if part = rest; len(rest) > 0 {
				l.warn("a server wrote more than one message on a line", first)
			}
		}
	}
}

// handle handles a message.
func (l *link) handle(f jsonrpc.Frame, line []byte) {
	switch {
	case f.IsResponse:
		l.answered(f)
	case f.Method == "notifications/progress":
		l.progressed(line)
	case f.ID != nil:
		l.asks(f, paramsOf(line))
	case f.Method == "notifications/cancelled" && l.cancelled(line):
	case l.handler.Notify != nil:
		l.hearing.Lock()
		defer l.hearing.Unlock()
		l.handler.Notify(f.Method, paramsOf(line))
	}
}

// Options for messages that jsonrpc refuses: with duplicate names or lone surrogates, which some encoders write.
var lenient = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}

// firstObject divides a line after the JSON object that it begins with. Without one all is the first part.
func firstObject(line []byte) (first, rest []byte) {
	d := jsontext.NewDecoder(bytes.NewBuffer(line), lenient...)
	if d.PeekKind() != '{' {
		return line, nil
	}
	if _, err := d.ReadValue(); err != nil {
		return line, nil
	}
	end := d.InputOffset()
	return line[:end], bytes.TrimSpace(line[end:])
}

// leniently parses a message that jsonrpc refuses: one with duplicate names or lone surrogates, a request of any size,
// or a response with an id such as 1.0.
func leniently(line []byte) (f jsonrpc.Frame, ok bool) {
	var m struct {
		JSONRPC, Method   string
		ID, Result, Error json.RawMessage
	}
	if json.Unmarshal(line, &m) != nil {
		return f, false
	}
	m.ID = wholeID(m.ID)
	key, fault := jsonrpc.KeyOf(m.ID)
	response := m.Method == "" && m.ID != nil && (m.Result != nil || m.Error != nil)
	f = jsonrpc.Frame{ID: m.ID, Key: key, Method: m.Method, IsResponse: response, Result: m.Result, Error: m.Error}
	return f, fault == nil && (response || m.Method != "" && m.JSONRPC == "2.0") // else it may be a line of a log
}

// wholeID returns an id that is written as a fraction, such as 1.0, as an integer; others as they are.
func wholeID(id json.RawMessage) json.RawMessage {
	if n, err := strconv.ParseFloat(string(id), 64); err == nil && n == math.Trunc(n) && math.Abs(n) < 1<<53 {
		return strconv.AppendInt(nil, int64(n), 10)
	}
	return id
}

// broken handles a text that is no message. If it is an answer that cannot be read, or has one, its call fails; if it
// does not say which call that is, all calls fail that are not answered soon.
func (l *link) broken(text []byte, of string, why *jsonrpc.Fault) {
	m := outlineOf(text)
	switch before := answerWithin(text); {
	case m.isAnswer(text) && json.Valid(text):
		l.warn("a server answered without a usable id", text)
		if m.has["error"] && m.id == nil && l.isSpared() {
			return
		}
		l.fail(of, m.id, "the server sent no usable answer: "+jsonrpc.Quoted(string(text)))
	case m.isAnswer(text):
		l.warn("a server sent an answer that is no JSON", text)
		l.fail(of, m.id, "the answer of the server is no JSON: "+why.Message)
	case before.has != nil && !json.Valid(text):
		l.warn("a server wrote other text before a message on the same line", text)
		cause := "the server wrote other text before its answer, on the same line: " + jsonrpc.Quoted(string(text))
		id := bytes.Clone(before.id)
		l.later(func() { l.fail(of, id, cause) }) // it may be a line of a log
	default:
		l.warn("a server wrote something else than a message", text)
	}
}

// warn logs something unusual of a server, once for each kind.
func (l *link) warn(what string, line []byte) {
	l.mu.Lock()
	first := !l.odd[what]
	l.odd[what] = true
	l.mu.Unlock()
	if first {
		l.log.Warn(what, "line", jsonrpc.Quoted(string(line)))
	}
}

// isSpared reports whether an error without an id may answer a notification that was sent during open calls.
func (l *link) isSpared() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	spared := l.spared > 0
	l.spared = max(l.spared-1, 0)
	return spared
}

// fail ends a call with an error. Without an id that is the call of, or any that is not answered soon if of is "".
func (l *link) fail(of string, id json.RawMessage, why string) {
	text, _ := json.Marshal(jsonrpc.Faultf(internalError, "%s", why)) // two plain members
	if key, fault := jsonrpc.KeyOf(wholeID(id)); fault == nil && id != nil {
		l.answered(jsonrpc.Frame{Key: key, Error: text})
		return
	}
	l.mu.Lock()
	open := []string{of}
	if of == "" {
		open = slices.Collect(maps.Keys(l.waiting))
	}
	l.mu.Unlock()
	l.later(func() {
		for _, key := range open {
			l.answered(jsonrpc.Frame{Key: key, Error: text})
		}
	})
}

// maxLate is how many functions of [link.later] may wait; a server that floods us gets no more.
const maxLate = 1000

// later runs a function after answerGrace.
func (l *link) later(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.late == maxLate {
		return
	}
	l.late++
	time.AfterFunc(answerGrace, func() {
		l.mu.Lock()
		l.late--
		l.mu.Unlock()
		f()
	})
}

// answered ends the call that a response belongs to.
func (l *link) answered(f jsonrpc.Frame) {
	w := l.forget(f.Key)
	if number, text := strings.CutPrefix(f.Key, "s"); w == nil && text { // some servers make a text of a number
		w = l.forget("n" + number)
	}
	if w != nil { // else it is late, or has a wrong id
		w.response = f
		w.end(errAnswered)
	}
}

// outline is what can be seen of a message that may be no JSON.
type outline struct {
	id  json.RawMessage // nil: not seen, or null
	has map[string]bool // members that it has
}

// isAnswer reports whether a text with this outline was meant as a response.
func (o outline) isAnswer(text []byte) bool {
	return !o.has["method"] &&
		(o.has["jsonrpc"] || (o.has["result"] || o.has["error"]) && (o.has["id"] || !json.Valid(text)))
}

// outlineOf finds the members of the object that a text begins with, or is a line of.
func outlineOf(text []byte) outline {
	o, depth := outline{has: map[string]bool{}}, 0
	inner, inBatch := bytes.CutPrefix(text, []byte("["))
	switch text = bytes.TrimSpace(inner); {
	case len(text) > 0 && text[0] == '"':
		depth = 1 // a line of a message that was written on several
	case len(text) == 0 || text[0] != '{':
		return o
	}
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth <= 0 {
				return o
			}
		case '"':
			name, rest := token(text[i:])
			i = len(text) - len(rest) - 1
			value, isMember := bytes.CutPrefix(bytes.TrimLeft(rest, " \t"), []byte(":"))
			if depth != 1 || !isMember {
				continue
			}
			switch member := strings.Trim(string(name[:min(len(name), 9)]), `"`); member {
			case "id":
				id, rest := token(bytes.TrimLeft(value, " \t"))
				if len(rest) > 0 && string(id) != "null" && !inBatch { // else it may be cut
					o.id = id
				}
				fallthrough
			case "jsonrpc", "method", "result", "error":
				o.has[member] = true
			}
		}
	}
	return o
}

// token divides a text after the JSON string, or the word, that it begins with.
func token(text []byte) (first, rest []byte) {
	end := 1
	if len(text) > 0 && text[0] == '"' {
		for end < len(text) && text[end] != '"' {
			if text[end] == '\\' {
				end++
			}
			end++
		}
		end = min(end+1, len(text))
	} else if end = bytes.IndexAny(text[:min(len(text), 256)], ",]} \t"); end < 0 {
		end = len(text)
	}
	return text[:end], text[end:]
}

// answerWithin returns the outline of a response that stands behind other text; it has no members if there is none.
func answerWithin(text []byte) outline {
	for range 8 { // a line of a log has few
		at := bytes.Index(text[min(1, len(text)):], []byte(`{"`))
		if at < 0 {
			break
		}
		text = text[1+at:]
		if o := outlineOf(text); o.has["jsonrpc"] && o.isAnswer(text) {
			return o
		}
	}
	return outline{}
}
