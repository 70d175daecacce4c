package intent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Level says which of the three documents is checked. Their values stay apart: an action takes none from the intent.
type Level string

// The levels.
const (
	Intent Level = "intent"
	Tasks  Level = "tasks"
	Action Level = "action"
)

// Options are what a check may compare a document with. The rules that need a missing value are skipped; a note says so
// if the document has something that they apply to.
type Options struct {
	Message []byte                 // the message that the intent was taken from; nil: unknown
	Intent  []byte                 // the intent that tasks and actions belong to; nil: unknown
	Window  int64                  // the model's context window in tokens; 0: unknown
	Tokens  func([]byte) int64     // returns an upper bound of the tokens of a text; nil: its bytes
	Known   func(name string) bool // reports whether an input (obs:ID or path) exists; nil: not checked
}

// Report is the result of a check. A document without faults is valid.
type Report struct {
	Faults []string // each names the field, its value and what is allowed
	Notes  []string // values of a task that differ from the intent, and rules that were not checked
}

// maxFaults is the maximum number of faults of a report; a last line counts the others. A model that mends twenty
// faults sends the document again anyway.
const maxFaults = 20

// checker collects the faults and notes of one check.
type checker struct {
	Options
	Report
	left int // faults beyond maxFaults
}

func (c *checker) fault(format string, args ...any) {
	if len(c.Faults) == maxFaults {
		c.left++
		return
	}
	c.Faults = append(c.Faults, fmt.Sprintf(format, args...))
}

func (c *checker) note(format string, args ...any) {
	if note := fmt.Sprintf(format, args...); !slices.Contains(c.Notes, note) {
		c.Notes = append(c.Notes, note)
	}
}

// object is a JSON object whose values are not parsed yet.
type object map[string]jsontext.Value

// parse returns the fields of a document, or the fault for a text that is not one JSON object.
func parse(doc []byte) (object, string) {
	doc = bytes.TrimSpace(unfence(bytes.TrimPrefix(doc, []byte("\xef\xbb\xbf"))))
	if len(doc) == 0 {
		return nil, "the document is empty; send one JSON object"
	}
	var fields object
	if err := json.Unmarshal(doc, &fields); err != nil {
		return nil, syntaxFault(doc, err)
	}
	if fields == nil {
		return nil, "the document is null; send one JSON object"
	}
	return fields, ""
}

// unfence returns the text inside a Markdown fence that is all of doc; it returns doc itself if there is none.
func unfence(doc []byte) []byte {
	lines := bytes.TrimSpace(doc)
	if inner, ok := bytes.CutPrefix(lines, []byte("```")); ok {
		if inner, ok = bytes.CutSuffix(inner, []byte("\n```")); ok {
			_, inner, _ = bytes.Cut(inner, []byte("\n"))
			return inner
		}
	}
	return doc
}

func syntaxFault(doc []byte, err error) string {
	syntax, ok := errors.AsType[*jsontext.SyntacticError](err)
	if !ok {
		return "the document is " + kindOf(doc) + "; send one JSON object"
	}
	at := min(max(int(syntax.ByteOffset), 0), len(doc))
	line := 1 + bytes.Count(doc[:at], []byte("\n"))
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Sprintf("the document is not whole: it ends in line %d, at byte %d; send the rest", line, at)
	}
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return fmt.Sprintf("line %d: the name %q stands twice in its object; keep one",
			line, content.ClipEnd(syntax.JSONPointer.LastToken(), maxShown))
	}
	return fmt.Sprintf("line %d, byte %d: not valid JSON: %s; send one JSON object and nothing else",
		line, at, shown([]byte(strings.TrimPrefix(syntax.Err.Error(), "jsontext: "))))
}

// kindOf names the kind of a JSON value in words.
func kindOf(raw jsontext.Value) string {
	switch raw.Kind() {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a text"
	case '0':
		return "a number"
	case 'n':
		return "null"
	}
	return "true or false"
}

// maxShown is the maximum number of bytes of a value in a fault.
const maxShown = 60

// shown returns a scalar value in the form that a fault shows, and of any other value its kind.
func shown(raw jsontext.Value) string {
	if k := raw.Kind(); k == '{' || k == '[' {
		return kindOf(raw)
	}
	return content.VisibleLine(content.ClipEnd(string(bytes.ToValidUTF8(raw, []byte("\ufffd"))), maxShown))
}
