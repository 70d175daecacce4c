package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
)

// New completes a tool whose arguments are the struct Args: it derives the
// schema and decodes each call's arguments before run sees them.
//
// Field tags: `json:"name,omitempty"` (without omitempty an argument is
// required), `jsonschema:"description"`, `enum:"a|b"`, `range:"0,20"` (bounds of a number,
// either may be empty), `help:"…"` (for the command line only, where words are free: what it is and its default; values and
// bounds are told by themselves). A struct that cannot be described panics: it is a mistake of the program.
func New[Args any](t Tool, run func(ctx context.Context, args Args, in Input, out Output) error) Tool {
	fields := describe(reflect.TypeFor[Args](), t.Name)
	t.Schema = schemaOf(fields)
	t.Help = map[string]string{}
	for _, f := range fields {
		t.Help[f.name] = f.help
	}
	if t.Toolset == "" {
		t.Toolset = Core
	}
	t.Run = func(ctx context.Context, in Input, out Output) error {
		args, err := decode[Args](in.Args, fields)
		if err != nil {
			return err
		}
		return run(ctx, args, in, out)
	}
	t.Check = func(args json.RawMessage) error {
		a, err := decode[Args](args, fields)
		if c, ok := any(a).(Checker); ok && err == nil {
			err = c.Check()
		}
		return err
	}
	return t
}

// Checker is implemented by Args that can be wrong in ways no schema says: a pattern that does not parse, a range that
// ends before it begins. Check says what the tool would refuse of them whatever they name, and looks at no file.
type Checker interface{ Check() error }

// decode turns a call's arguments into Args, or into one error that names what is wrong and what is valid.
func decode[Args any](raw json.RawMessage, fields []field) (args Args, err error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		raw = json.RawMessage("{}")
	}
	if raw[0] != '{' {
		return args, fmt.Errorf("arguments must be a JSON object; valid arguments: %s", names(fields))
	}
	var object json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil {
		return args, malformed(raw, err)
	}
	given, err := members(raw)
	if err != nil {
		return args, fmt.Errorf("arguments: %w", err)
	}
	clean, other := map[string]json.RawMessage{}, false
	for _, m := range given {
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == m.name })
		if i < 0 {
			return args, unknown(m.name, fields)
		}
		if _, twice := clean[m.name]; twice {
			return args, fmt.Errorf("argument %q is given twice", m.name)
		}
		if string(m.value) == "null" { // a client's way of leaving an argument out
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
			return args, fmt.Errorf("missing argument %q; valid arguments: %s", f.name, names(fields))
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
			return args, fmt.Errorf("argument %q must be %s, not %s; valid arguments: %s", te.Field, te.Type, content.ClipBytes(te.Value, 200), names(fields))
		}
		return args, fmt.Errorf("arguments: %w", err)
	}
	return args, nil
}

// malformed says where arguments stop being JSON: where they break off, or at which byte.
func malformed(raw json.RawMessage, err error) error {
	var at *json.SyntaxError
	if !errors.As(err, &at) {
		return fmt.Errorf("arguments: %w", err)
	}
	if at.Offset >= int64(len(raw)) && strings.HasPrefix(at.Error(), "unexpected end") {
		return fmt.Errorf("arguments: the JSON breaks off at byte %d, behind %s: send all of it, strings and braces closed",
			len(raw), strconv.Quote(ending(raw)))
	}
	return fmt.Errorf("arguments: not JSON at byte %d, behind %s: %w", at.Offset-1, strconv.Quote(ending(raw[:at.Offset-1])), at)
}

// ending is the end of a text, of a few chars.
func ending(text []byte) string {
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

// members reads an object's members in order, duplicates too: encoding/json
// would let the last of them win silently.
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

// check says what is wrong with a value, or gives it as it is decoded: an integer is one however it is written.
func (f field) check(v json.RawMessage, fields []field) (json.RawMessage, error) {
	got := typeOf(v)
	if f.kind == "integer" && got == "number" {
		if n, ok := whole(string(v)); ok {
			v, got = json.RawMessage(n), "integer"
		}
	}
	if got != f.kind && (f.kind != "number" || got != "integer") {
		return nil, fmt.Errorf("argument %q must be %s, not %s: %s; valid arguments: %s",
			f.name, article(f.kind), article(got), content.ClipBytes(string(v), 200), names(fields))
	}
	if f.enum != nil {
		var s string
		if err := json.Unmarshal(v, &s); err != nil || !slices.Contains(f.enum, s) {
			return nil, fmt.Errorf("argument %q must be one of %s, not %s", f.name, strings.Join(f.enum, ", "), content.ClipBytes(string(v), 200))
		}
	}
	if f.min != nil || f.max != nil {
		var n float64
		err := json.Unmarshal(v, &n)
		if err != nil || f.min != nil && n < *f.min || f.max != nil && n > *f.max {
			return nil, fmt.Errorf("argument %q must be %s, not %s", f.name, span(f.min, f.max), content.ClipBytes(string(v), 200))
		}
	}
	if f.kind == "integer" {
		if _, err := strconv.ParseInt(string(v), 10, 64); err != nil {
			return nil, fmt.Errorf("argument %q must be from %d to %d, not %s", f.name, int64(math.MinInt64), int64(math.MaxInt64), content.ClipBytes(string(v), 200))
		}
	}
	return v, nil
}

// whole is a number in digits alone, where it is an integer, as JSON Schema has it: 2.0 and 1e3 are. One that no argument takes
// stays as it is written.
func whole(number string) (string, bool) {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(number), "e")
	digits, fraction, _ := strings.Cut(mantissa, ".")
	power := 0
	if exponent != "" {
		power, _ = strconv.Atoi(exponent)                     // at the largest it can be where it is larger
		power = min(max(power, math.MinInt/2), math.MaxInt/2) // and still to be counted with
	}
	digits += fraction
	power -= len(fraction)
	for len(digits) > 0 && digits[len(digits)-1] == '0' {
		digits, power = digits[:len(digits)-1], power+1
	}
	switch {
	case digits == "" || digits == "-":
		return "0", true
	case power < 0:
		return "", false
	case power > 20:
		return number, true
	}
	n, err := strconv.ParseInt(digits+strings.Repeat("0", power), 10, 64)
	if err != nil {
		return number, true
	}
	return strconv.FormatInt(n, 10), true
}

func span(lo, hi *float64) string {
	switch {
	case lo == nil:
		return fmt.Sprintf("at most %v", *hi)
	case hi == nil:
		return fmt.Sprintf("at least %v", *lo)
	default:
		return fmt.Sprintf("from %v to %v", *lo, *hi)
	}
}

func typeOf(v json.RawMessage) string {
	switch v[0] {
	case '"':
		return "string"
	case '{':
		return "object"
	case '[':
		return "array"
	case 't', 'f':
		return "boolean"
	}
	if bytes.ContainsAny(v, ".eE") {
		return "number"
	}
	return "integer"
}

func article(kind string) string {
	if strings.ContainsRune("aeio", rune(kind[0])) {
		return "an " + kind
	}
	return "a " + kind
}

func unknown(name string, fields []field) error {
	hint := ""
	if n := nearest(name, fields); n != "" {
		hint = fmt.Sprintf(" (did you mean %q?)", n)
	}
	return fmt.Errorf("unknown argument %q%s; valid arguments: %s", content.ClipBytes(name, 200), hint, names(fields))
}

func names(fields []field) string {
	if len(fields) == 0 {
		return "none"
	}
	var b strings.Builder
	for i, f := range fields {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(f.name)
		if f.required {
			b.WriteString(" (required)")
		}
	}
	return b.String()
}

// nearest is the argument that a misspelt name most likely means: by the words models use most for our arguments,
// else the one that differs in at most two letters; "" for none.
func nearest(name string, fields []field) string {
	name = strings.ToLower(name)
	if len(name) > 64 {
		return ""
	}
	also := map[string]string{
		"file": "path", "file_path": "path", "filename": "path", "directory": "path", "dir": "path", "uri": "source", "id": "source",
		"query": "pattern", "regex": "pattern", "expression": "filter", "program": "filter", "max_results": "limit", "range": "lines",
	}
	for _, f := range fields {
		if also[name] == f.name {
			return f.name
		}
	}
	if also[name] == "path" || name == "path" {
		for _, f := range fields {
			if f.name == "source" {
				return "source"
			}
		}
	}
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	return Nearest(strings.ReplaceAll(name, "-", "_"), names)
}

// Nearest is the one of names that name was likely meant to be: at most two letters are another, missing or too much; "" if none is.
func Nearest(name string, names []string) string {
	best, at := 3, ""
	if len(name) > 100 {
		return at
	}
	for _, n := range names {
		if d := distance(name, n); d < best && d < len(n) {
			best, at = d, n
		}
	}
	return at
}

// distance is Levenshtein's.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
