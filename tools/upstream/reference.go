package upstream

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/schema"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// An argument may name a text instead of having it: {"$obs": "obs:ID"}, also with "jq": "FILTER" (and "slurp": true) or
// "lines": "A-B", or as one string: obs:ID, obs:ID jq FILTER, obs:ID lines A-B. The server gets the text of the
// observation, the results of the filter (strings as they are, one a line), or those lines. Where the schema does not
// allow this text as a string, it gets the JSON value that the text is.

// Limits of the texts that arguments may name, in bytes: of one, and of all of a call.
const (
	maxReference  = 8 << 20
	maxReferences = 16 << 20
)

// reference names a text.
type reference struct {
	Obs   string  `json:"$obs"`
	JQ    *string `json:"jq"`
	Slurp bool    `json:"slurp"` // as of the tool jq
	Lines *string `json:"lines"`
}

// parseReference returns the reference in a string; ok is false if it has another form.
func parseReference(s string) (r reference, ok bool) {
	const size = len(observations.Prefix) + 12
	if len(s) < size || !strings.HasPrefix(s, observations.Prefix) {
		return r, false
	}
	if _, err := observations.ParseID(s[:size]); err != nil {
		return r, false
	}
	r.Obs = s[:size]
	rest := s[size:]
	if filter, ok := strings.CutPrefix(rest, " jq "); ok {
		r.JQ = &filter
	} else if lines, ok := strings.CutPrefix(rest, " lines "); ok {
		r.Lines = &lines
	} else if rest != "" {
		return r, false
	}
	return r, true
}

// mayRefer reports whether a value can have a reference.
func mayRefer(raw json.RawMessage) bool {
	return bytes.Contains(raw, []byte("obs")) || bytes.Contains(raw, []byte(`\u`))
}

func isObservation(word string) bool {
	r, ok := parseReference(word)
	return ok && r.Obs == word
}

// resolver replaces references by what they name.
type resolver struct {
	jq    tools.Tool
	in    tools.Input
	root  schema.Schema
	notes []string // notes for the answer
	size  int      // bytes of all texts so far
	used  bool     // a reference was replaced by its text
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
		if r, ok := parseReference(strings.TrimSpace(text)); ok {
			return s.text(ctx, r, of)
		}
		if word, _, _ := strings.Cut(text, " "); isObservation(word) {
			s.notes = append(s.notes, jsonrpc.Quoted(text)+" was passed on as it is: a reference is obs:ID, obs:ID jq FILTER or "+
				"obs:ID lines A-B")
		}
	case '{':
		var object map[string]json.RawMessage
		if err := json.Unmarshal(trimmed, &object); err != nil {
			return nil, err
		}
		if object["$obs"] != nil {
			r, err := objectReference(trimmed)
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

// objectReference returns the reference that an object with the member $obs is.
func objectReference(object []byte) (r reference, err error) {
	d := json.NewDecoder(bytes.NewReader(object))
	d.DisallowUnknownFields()
	err = d.Decode(&r)
	id, wrong := observations.ParseID(strings.TrimSpace(r.Obs))
	r.Obs = observations.Prefix + string(id)
	if err != nil || wrong != nil || r.JQ != nil && r.Lines != nil || r.Slurp && r.JQ == nil {
		return r, fmt.Errorf(`a reference has the form {"$obs": "obs:ID"}, perhaps with "jq" (and "slurp": true) or `+
			`"lines": not %s`, jsonrpc.Quoted(string(object)))
	}
	return r, nil
}

// text returns the text of a reference: as a JSON string if the schema allows it, else as the value that it is.
func (s *resolver) text(ctx context.Context, r reference, of any) (json.RawMessage, error) {
	text, err := s.read(ctx, r, s.root.IsBase64(of, func(string) bool { return false }))
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
		s.notes = append(s.notes, name+" is passed on in base64, as the schema of the argument says")
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

// read returns the text of a reference. Lines have their ends, but for the last one. A whole text is decoded to UTF-8,
// unless it is or its bytes are wanted.
func (s *resolver) read(ctx context.Context, r reference, bytes bool) (string, error) {
	if _, err := observations.ParseID(r.Obs); err != nil {
		return "", err
	}
	src, err := s.in.Sources.Open(ctx, r.Obs)
	if err != nil {
		return "", err
	}
	defer src.Close() //nolint:errcheck // it was only read
	if why := src.Caveat(); why != "" {
		return "", errors.New(why)
	}
	if r.JQ != nil && src.Binary() {
		return "", errors.New("it is binary: jq would change its bytes")
	}
	if r.JQ != nil {
		return s.filtered(ctx, r)
	}
	text, err := src.Text()
	if err != nil {
		return "", err
	}
	if r.Lines == nil && (bytes || src.Encoding == content.UTF8BOM) {
		text = io.NewSectionReader(src, 0, src.Size)
	} else {
		s.notes = append(s.notes, src.Notes()...)
	}
	if r.Lines == nil {
		b, err := io.ReadAll(io.LimitReader(text, maxReference+1))
		if err == nil && len(b) > maxReference {
			err = errTooLarge
		}
		return string(b), err
	}
	from, to, err := parseLines(*r.Lines)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	in := bufio.NewReaderSize(text, 64<<10)
	for line := int64(1); to == 0 || line <= to; {
		part, err := in.ReadSlice('\n')
		if line >= from {
			if b.Write(part); b.Len() > maxReference {
				return "", errTooLarge
			}
		}
		switch {
		case err == nil:
			line++
		case errors.Is(err, io.EOF) && (line > from || line == from && len(part) > 0):
			return withoutEnd(b.String()), nil
		case errors.Is(err, io.EOF):
			return "", fmt.Errorf("it has no line %d", from)
		case !errors.Is(err, bufio.ErrBufferFull):
			return "", err
		}
	}
	return withoutEnd(b.String()), nil
}

// withoutEnd returns a text without the end of its last line, \n or \r\n.
func withoutEnd(text string) string {
	if line, ok := strings.CutSuffix(text, "\n"); ok {
		return strings.TrimSuffix(line, "\r")
	}
	return text
}

var errTooLarge = fmt.Errorf("it has over %d MiB: choose a part by jq or lines", maxReference>>20)

// parseLines parses A-B, A- or A, counted from 1; to is 0 for the last line.
func parseLines(s string) (from, to int64, err error) {
	first, last, isRange := strings.Cut(strings.TrimSpace(s), "-")
	from, err = strconv.ParseInt(first, 10, 64)
	if to = from; err == nil && isRange {
		if to = 0; last != "" {
			to, err = strconv.ParseInt(last, 10, 64)
		}
	}
	if err != nil || from < 1 || to != 0 && to < from {
		return 0, 0, fmt.Errorf("lines are 5, 5-9 or 5- (to the end), counted from 1: not %s", jsonrpc.Quoted(s))
	}
	return from, to, nil
}

// filtered returns the results of a reference's filter, one a line; strings as they are.
func (s *resolver) filtered(ctx context.Context, r reference) (string, error) {
	in := s.in
	var err error
	in.Args, err = json.Marshal(map[string]any{
		"source": r.Obs, "filter": *r.JQ, "slurp": r.Slurp, "raw": true, "save": true,
	})
	if err != nil {
		return "", err
	}
	g := &gatherer{}
	if err := s.jq.Run(ctx, in, g); err != nil {
		return "", err
	}
	s.notes = append(s.notes, g.notes...)
	if g.failed != nil {
		return "", g.failed
	}
	if g.more {
		return "", errTooLarge
	}
	return strings.TrimSuffix(g.rows.String(), "\n"), nil
}

// gatherer takes all rows of a tool: it is the output, and the page of the output.
type gatherer struct {
	tools.Discard
	rows   strings.Builder
	begun  bool
	more   bool // there are rows after the last one
	failed error
	notes  []string
}

func (g *gatherer) Page() tools.Page            { return g }
func (g *gatherer) Note(text string)            { g.notes = append(g.notes, text) }
func (g *gatherer) Write(b []byte) (int, error) { return len(b), g.add(b, false) }

func (g *gatherer) add(b []byte, row bool) error {
	if g.begun && row {
		g.rows.WriteByte('\n')
	}
	g.begun = true
	if g.rows.Write(b); g.rows.Len() > maxReference {
		g.failed = errTooLarge
		return tools.ErrPageFull
	}
	return nil
}

func (g *gatherer) Row(b []byte, _ tools.Call) error { return g.add(b, true) }
func (g *gatherer) Text(b []byte) error              { return g.add(b, false) }
func (g *gatherer) Next(tools.Call)                  { g.more = true }
func (g *gatherer) TruncatedRow([]byte, []byte, int64, tools.Call) error {
	g.failed = errTooLarge
	return tools.ErrPageFull
}

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
