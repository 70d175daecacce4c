package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// decode decodes the arguments of a call. Its error names the first invalid argument and the valid ones.
func decode[Args any](raw json.RawMessage, fields []field) (args Args, err error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		raw = json.RawMessage("{}")
	}
	if raw[0] != '{' {
		return args, fmt.Errorf("arguments must be a JSON object; valid arguments: %s", fieldNames(fields))
	}
	var object json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil {
		return args, explainSyntax(raw, err)
	}
	given, err := members(raw)
	if err != nil {
		return args, fmt.Errorf("arguments: %w", err)
	}
	clean, other := map[string]json.RawMessage{}, false
	for _, m := range given {
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == m.name })
		if i < 0 {
			return args, unknownArgument(m.name, fields)
		}
		if _, twice := clean[m.name]; twice {
			return args, fmt.Errorf("argument %q is given twice", m.name)
		}
		if string(m.value) == "null" { // clients send null for an omitted argument
			other = true
			continue
		}
		if clean[m.name], err = fields[i].check(m.value, fields); err != nil {
			return args, err
		}
		other = other || !bytes.Equal(clean[m.name], m.value)
	}
	for _, f := range fields {
		if _, ok := clean[f.name]; f.required && !ok {
			return args, fmt.Errorf("missing argument %q; valid arguments: %s", f.name, fieldNames(fields))
		}
	}
	if other {
		if raw, err = json.Marshal(clean); err != nil {
			return args, fmt.Errorf("arguments: %w", err)
		}
	}
	if err := json.Unmarshal(raw, &args); err != nil {
		var te *json.UnmarshalTypeError
		if errors.As(err, &te) {
			return args, fmt.Errorf("argument %q must be %s, not %s; valid arguments: %s", te.Field, te.Type,
				content.ClipBytes(te.Value, 200), fieldNames(fields))
		}
		return args, fmt.Errorf("arguments: %w", err)
	}
	return args, nil
}

// explainSyntax returns the error for arguments that are not JSON: truncated, or invalid at a byte.
func explainSyntax(raw json.RawMessage, err error) error {
	var at *json.SyntaxError
	if !errors.As(err, &at) {
		return fmt.Errorf("arguments: %w", err)
	}
	if at.Offset >= int64(len(raw)) && strings.HasPrefix(at.Error(), "unexpected end") {
		return fmt.Errorf("arguments: the JSON is truncated at byte %d, after %s: send the whole object, with strings and braces closed",
			len(raw), strconv.Quote(lastChars(raw)))
	}
	return fmt.Errorf("arguments: invalid JSON at byte %d, after %s: %w", at.Offset-1,
		strconv.Quote(lastChars(raw[:at.Offset-1])), at)
}

// lastChars returns at most the last 40 bytes of a text, in whole chars.
func lastChars(text []byte) string {
	const few = 40
	from := max(0, len(text)-few)
	for from < len(text) && !utf8.RuneStart(text[from]) {
		from++
	}
	return string(text[from:])
}

type member struct {
	name  string
	value json.RawMessage
}

// members returns the members of an object in order, with duplicates: encoding/json would silently use the last one.
func members(raw json.RawMessage) ([]member, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	var ms []member
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, ok := t.(string)
		if !ok {
			return nil, errors.New("not an object")
		}
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return nil, err
		}
		ms = append(ms, member{name, v})
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	return ms, nil
}
