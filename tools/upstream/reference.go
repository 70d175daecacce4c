package upstream

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/schema"
	"github.com/mcp-funnel/mcp-funnel/tools/reference"
)

// An argument may be a reference. Where the schema does not allow its text as a string, the server gets the JSON value
// that the text is.

// maxReferences bounds the texts that the arguments of a call may name, in bytes.
const maxReferences = 16 << 20

// mayRefer reports whether a value can have a reference.
func mayRefer(raw json.RawMessage) bool {
	return bytes.Contains(raw, []byte("obs")) || bytes.Contains(raw, []byte(`\u`))
}

func isObservation(word string) bool {
	r, ok := reference.Parse(word)
	return ok && r.Obs == word
}

// resolver replaces references by what they name.
type resolver struct {
	reference.Reader
	root schema.Schema
	size int  // bytes of all texts so far
	used bool // a reference was replaced by its text
}

// resolve returns the arguments of a tool with their references replaced. Values without one are returned as they are
// written.
func (s *resolver) resolve(ctx context.Context, args, of json.RawMessage) (json.RawMessage, error) {
	s.root = schema.Parse(of)
	return s.value(ctx, args, s.root.Root)
}

// value returns a value of a schema with its references replaced.
func (s *resolver) value(ctx context.Context, raw json.RawMessage, of any) (json.RawMessage, error) {
	if !mayRefer(raw) {
		return raw, nil
	}
	trimmed := bytes.TrimSpace(raw)
	switch trimmed[0] {
	case '"':
		var text string
		if err := json.Unmarshal(trimmed, &text); err != nil {
			return nil, err
		}
		if r, ok := reference.Parse(strings.TrimSpace(text)); ok {
			return s.text(ctx, r, of)
		}
		if word, _, _ := strings.Cut(text, " "); isObservation(word) {
			s.Notes = append(s.Notes, jsonrpc.Quoted(text)+" was passed on as it is: a reference is obs:ID, obs:ID jq FILTER or "+
				"obs:ID lines A-B")
		}
	case '{':
		var object map[string]json.RawMessage
		if err := json.Unmarshal(trimmed, &object); err != nil {
			return nil, err
		}
		if object["$obs"] != nil {
			r, err := reference.Decode(trimmed)
			if err != nil {
				return nil, err
			}
			return s.text(ctx, r, of)
		}
		for name, value := range object {
			if err := s.replace(ctx, &value, func() any { return s.root.Member(of, name) }); err != nil {
				return nil, err
			}
			object[name] = value
		}
		return json.Marshal(object)
	case '[':
		var list []json.RawMessage
		if err := json.Unmarshal(trimmed, &list); err != nil {
			return nil, err
		}
		for i := range list {
			if err := s.replace(ctx, &list[i], func() any { return s.root.Element(of, i) }); err != nil {
				return nil, err
			}
		}
		return json.Marshal(list)
	}
	return raw, nil
}

// replace replaces the references in a value; of returns its schema.
func (s *resolver) replace(ctx context.Context, value *json.RawMessage, of func() any) (err error) {
	if mayRefer(*value) {
		*value, err = s.value(ctx, *value, of())
	}
	return err
}

// text returns the text of a reference: as a JSON string if the schema allows it, else as the value that it is.
func (s *resolver) text(ctx context.Context, r reference.Reference, of any) (json.RawMessage, error) {
	text, err := s.Read(ctx, r, s.root.IsBase64(of, func(string) bool { return false }))
	if err == nil {
		text, err = s.encoded(r.Obs, text, of)
	}
	asString := err == nil && s.root.Allows(of, func(value any) bool { return value == any(text) })
	if err == nil && !asString && !json.Valid([]byte(text)) {
		// If the schema allows other strings, conform names them.
		asString = s.root.Allows(of, func(value any) bool { _, ok := value.(string); return ok })
		if !asString {
			err = errors.New("the schema of this argument wants no string, and the text is not one JSON value: make one by " +
				`jq, such as [.rows[].name], or of several records with "slurp": true`)
		}
	}
	if err != nil && !r.Slurp && strings.Contains(err.Error(), `"slurp": true`) {
		err = fmt.Errorf("%w\n"+`a reference with slurp has the form {"$obs": %q, "jq": "FILTER", "slurp": true}`,
			err, r.Obs)
	}
	if err != nil {
		return nil, fmt.Errorf("%s is not passed on, and the tool is not called: %w", jsonrpc.Echo(r.Obs), err)
	}
	if s.size += len(text); s.size > maxReferences {
		return nil, fmt.Errorf("the texts that this call names have over %d MiB: the tool is not called", maxReferences>>20)
	}
	s.used = true
	if !asString {
		return json.RawMessage(text), nil
	}
	return json.Marshal(text)
}

// encoded returns a text in base64 if the schema says so and it is not yet. Otherwise a text that is no UTF-8 is an
// error: JSON has no other bytes.
func (s *resolver) encoded(name, text string, of any) (string, error) {
	isText := utf8.ValidString(text)
	if s.root.IsBase64(of, func(description string) bool {
		return !isText && base64Words().MatchString(description) && !notBase64().MatchString(description)
	}) {
		if _, err := base64.StdEncoding.DecodeString(text); err == nil {
			return text, nil
		}
		s.Notes = append(s.Notes, name+" is passed on in base64, as the schema of the argument says")
		return base64.StdEncoding.EncodeToString([]byte(text)), nil
	}
	if !isText {
		return "", fmt.Errorf("its %d bytes are no UTF-8 text, and the schema of the argument does not say contentEncoding "+
			"base64", len(text))
	}
	return text, nil
}

// Descriptions that ask for base64, and some that ask for the opposite.
var (
	base64Words = content.Pattern(`(?i)\bbase-?64\b`)
	notBase64   = content.Pattern(`(?i)\b(not|no|never|without|instead of|or)\b[^.;]{0,20}\bbase-?64\b`)
)

// conform returns an error if arguments do not fit a schema. It returns nil if the schema cannot be used, refers to
// another document or means very many steps, or if an argument has a number that no float64 holds: the server checks
// them then.
func conform(of, args json.RawMessage) error {
	var one jsonschema.Schema
	whole := schema.Parse(of)
	var value any
	if json.Unmarshal(of, &one) != nil || json.Unmarshal(args, &value) != nil || !whole.Bounded(value) {
		return nil //nolint:nilerr // the server checks them
	}
	resolved, err := one.Resolve(nil)
	if err != nil {
		return nil //nolint:nilerr // the server checks them
	}
	if err := resolved.Validate(value); err != nil {
		return fmt.Errorf("the arguments do not fit the schema of the tool, which was not called: %s",
			content.ClipBytes(err.Error(), 300))
	}
	return nil
}

// schemaOf returns the schema of a tool's arguments; nil if they have no reference.
func (s *Server) schemaOf(tool string, args json.RawMessage) json.RawMessage {
	if !mayRefer(args) {
		return nil
	}
	return s.member(tool, "inputSchema")
}

// member returns a member of a tool's approved definition; nil if there is none.
func (s *Server) member(tool, name string) json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	var of map[string]json.RawMessage
	_ = json.Unmarshal(definition(s.record.Approved, tool), &of) // a definition is JSON
	return of[name]
}
