package tools

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// New completes a tool whose arguments are the struct Args: it derives the
// schema and decodes each call's arguments before run sees them.
//
// Field tags: `json:"name,omitempty"` (without omitempty an argument is
// required), `jsonschema:"description"`, `enum:"a|b"`, `range:"0,20"` (bounds of a number,
// either may be empty), `help:"…"` (shown on the command line only, so it may be long: the meaning and the default;
// --help adds values and bounds). New panics if it cannot describe the struct: that is a programming error.
func New[Args any](t Tool, run func(ctx context.Context, args Args, in Input, out Output) error) Tool {
	fields := fieldsOf(reflect.TypeFor[Args](), t.Name)
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
		if t.Opens != OpensNothing {
			out.ResolveWith(in.Sources.File)
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

// Checker is implemented by Args that can be wrong in ways a schema cannot express: a pattern that does not parse, a
// range that ends before it begins. Check returns the error that the tool would return for any source; it opens no
// file.
type Checker interface{ Check() error }

// check validates a value and returns it in the form to decode: an integer such as 1e3 or 2.0 as plain digits.
func (f field) check(v json.RawMessage, fields []field) (json.RawMessage, error) {
	if f.kind == stringsKind || f.kind == queriesKind {
		return v, f.checkStrings(v, fields)
	}
	wrong := func(want string) (json.RawMessage, error) {
		return nil, fmt.Errorf("argument %q must be %s, not %s", f.name, want,
			content.ClipBytes(string(v), 200))
	}
	got := jsonTypeOf(v)
	if f.kind == textKind && got != "string" {
		return json.Marshal(string(v))
	}
	if f.kind == textKind || f.schema != "" || f.kind == objectKind && isObject(v) {
		return v, nil
	}
	if f.kind == "integer" && got == "number" {
		if n, ok := normalizeInteger(string(v)); ok {
			v, got = json.RawMessage(n), "integer"
		}
	}
	if got != f.kind && (f.kind != "number" || got != "integer") {
		return nil, fmt.Errorf("argument %q must be %s, not %s: %s; valid arguments: %s",
			f.name, content.Article(f.kind), content.Article(got), content.ClipBytes(string(v), 200), fieldNames(fields))
	}
	if f.enum != nil {
		var s string
		if err := json.Unmarshal(v, &s); err != nil || !slices.Contains(f.enum, s) {
			return wrong("one of " + strings.Join(f.enum, ", "))
		}
	}
	if f.min != nil || f.max != nil {
		var n float64
		err := json.Unmarshal(v, &n)
		if err != nil || f.min != nil && n < *f.min || f.max != nil && n > *f.max {
			return wrong(boundsText(f.min, f.max))
		}
	}
	if f.kind == "integer" {
		if _, err := strconv.ParseInt(string(v), 10, 64); err != nil {
			return wrong(fmt.Sprintf("from %d to %d", int64(math.MinInt64), int64(math.MaxInt64)))
		}
	}
	return v, nil
}

// normalizeInteger writes a number in plain digits; ok is false if it is not an integer. As in JSON Schema, 2.0 and
// 1e3 are integers. An integer beyond int64 is returned unchanged.
func normalizeInteger(number string) (string, bool) {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(number), "e")
	digits, fraction, _ := strings.Cut(mantissa, ".")
	power := 0
	if exponent != "" {
		power, _ = strconv.Atoi(exponent)                     // out of range: the largest int
		power = min(max(power, math.MinInt/2), math.MaxInt/2) // so that the sums below do not overflow
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

func boundsText(lo, hi *float64) string {
	switch {
	case lo == nil:
		return fmt.Sprintf("at most %v", *hi)
	case hi == nil:
		return fmt.Sprintf("at least %v", *lo)
	default:
		return fmt.Sprintf("from %v to %v", *lo, *hi)
	}
}

func jsonTypeOf(v json.RawMessage) string {
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

func unknownArgument(name string, fields []field) error {
	hint := ""
	if n := nearestArgument(name, fields); n != "" {
		hint = fmt.Sprintf(" (did you mean %q?)", n)
	}
	return fmt.Errorf("unknown argument %q%s; valid arguments: %s", content.ClipBytes(name, 200), hint, fieldNames(fields))
}

func fieldNames(fields []field) string {
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

// nearestArgument returns the argument that a wrong name most likely means: by the synonyms that models use most, else
// the one that differs in at most two letters; "" if there is none.
func nearestArgument(name string, fields []field) string {
	name = strings.ToLower(name)
	if len(name) > 64 {
		return ""
	}
	also := map[string]string{
		"file": "path", "file_path": "path", "filename": "path", "directory": "path", "dir": "path", "uri": "source", "id": "source",
		"query": "pattern", "regex": "pattern", "expression": "filter", "program": "filter", "max_results": "limit", "range": "lines",
	}
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	switch meant := cmp.Or(also[name], name); {
	case meant != name && slices.Contains(names, meant):
		return meant
	case meant == "path" && slices.Contains(names, "source"):
		return "source"
	}
	return content.Nearest(strings.ReplaceAll(name, "-", "_"), names)
}

// checkStrings returns an error if the value is not that of a [Strings] or [Queries] argument.
func (f field) checkStrings(v json.RawMessage, fields []field) error {
	into, want := any(new(Strings)), "string or an array of strings"
	if f.kind == queriesKind {
		into, want = new(Queries), queriesKind
	}
	if json.Unmarshal(v, into) != nil {
		return fmt.Errorf("argument %q must be a %s, not %s; valid arguments: %s", f.name, want, content.ClipBytes(string(v), 200), fieldNames(fields))
	}
	return nil
}
