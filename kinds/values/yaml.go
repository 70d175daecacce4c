package values

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/mcp-funnel/mcp-funnel/kinds/record"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

const (
	maxAliased = 200_000 // values of one document that aliases and merge keys repeat
	maxInLine  = 100_000 // separators of a line: the parser uses 2,500 bytes for each until the line ends
)

// YAML reads the documents of a YAML stream, each a record, by the core schema of YAML 1.2: no, 0b11 and 1_000 are
// strings, 017 is 17, and big integers keep their digits. Aliases and merge keys are resolved; more than 200,000
// repeated values are refused. Members that occur twice are written twice. .inf and .nan are strings; keys that are no
// scalars are written as JSON in a string, and tags of other schemas are dropped; remarks say so. Comments are dropped.
var YAML = guarded("YAML", readYAML)

func readYAML(_ context.Context, r io.Reader, sink Sink) error {
	in := &bounded{r: r, maxLine: maxInLine, separators: map[string]int{
		"\n": 1, ",": 1, "[": 1, "{": 1, "- ": 1, "-\t": 1, "? ": 1, "?\t": 1, "\n%": 100, // it looks through all directives
	}}
	text := bufio.NewReader(in)
	if start, err := text.Peek(1024); err == nil || errors.Is(err, io.EOF) {
		if at := yamlVersion().FindIndex(start); at != nil { // the parser knows 1.1 alone, and the schema is ours
			start[at[1]-1] = '1'
		}
	}
	decoder := yaml.NewDecoder(text)
	w := yamlWriter{pointer: sink.Pointer}
	for n := 1; ; n++ {
		var doc yaml.Node
		err := decoder.Decode(&doc)
		switch {
		case in.failed != nil:
			return in.failed
		case errors.Is(err, io.EOF):
			return w.err()
		case err != nil:
			return yamlError(err, n)
		}
		in.reset()
		w.json, w.aliased = w.json[:0], 0
		if w.value(&doc, "", 0); w.failed != nil {
			return fmt.Errorf("document %d: %w", n, w.failed)
		}
		line := doc.Line
		if len(doc.Content) > 0 && doc.Content[0].Value+doc.Content[0].Tag != "!!null" { // an empty one is after the text
			line = doc.Content[0].Line
		}
		if err := sink.Value(int64(line), w.json); err != nil {
			return err
		}
	}
}

var yamlVersion = content.Pattern(`^(\x{feff}|#.*\n|\s)*%YAML 1\.[0-9]`)

// yamlError returns a parser's error with its line, without the name of its package.
func yamlError(err error, document int) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if at, ok := errors.AsType[*yaml.LoadError](err); ok {
		text = fmt.Sprintf("line %d: %s", at.Mark.Line, at.Message)
		if at.Mark.Line == 0 {
			text = fmt.Sprintf("byte %d: %s", at.Mark.Index, at.Message)
		}
	}
	if document > 1 {
		text = fmt.Sprintf("document %d: %s", document, text)
	}
	return fmt.Errorf("it is not valid YAML: %s", text)
}

// yamlWriter writes documents as JSON. After an error it writes nothing.
type yamlWriter struct {
	remarks
	pointer func(line int64, pointer string)
	json    []byte
	failed  error
	aliased int  // values that were written through an alias
	inAlias bool // the current value is one of them
	inKey   bool // it is a key
}

// mark reports the pointer of a line. Lines within an alias are those of its anchor, so they have another pointer.
func (w *yamlWriter) mark(n *yaml.Node, pointer string) {
	if w.pointer != nil && !w.inAlias && w.failed == nil {
		w.pointer(int64(n.Line), pointer)
	}
}

// enter counts a value or member, and reports whether it may be written.
func (w *yamlWriter) enter(n *yaml.Node, depth int) bool {
	if w.inAlias {
		w.aliased++
	}
	switch {
	case w.failed != nil:
	case depth > maxDepth:
		w.failed = fmt.Errorf("line %d: values are nested more than %d deep", n.Line, maxDepth)
	case len(w.json) > MaxRecord: // of numbers, which an alias may repeat
		w.failed = tooLong(int64(n.Line))
	case w.aliased > maxAliased:
		w.failed = fmt.Errorf(
			"aliases and merge keys repeat more than %d values, as a bomb does; slice and grep read its text", maxAliased,
		)
	}
	return w.failed == nil
}

func (w *yamlWriter) value(n *yaml.Node, at string, depth int) {
	if !w.enter(n, depth) {
		return
	}
	if n.Style&yaml.TaggedStyle != 0 && !strings.HasPrefix(n.Tag, "!!") {
		w.add("JSON has no tags: %s at line %d is dropped, as all are", content.Clip(n.Tag, 40), n.Line)
	}
	switch n.Kind {
	case yaml.DocumentNode:
		if len(n.Content) == 0 {
			w.json = append(w.json, "null"...)
			return
		}
		w.value(n.Content[0], at, depth)
	case yaml.AliasNode:
		was := w.inAlias
		w.inAlias = true
		w.value(n.Alias, at, depth+1)
		w.inAlias = was
	case yaml.SequenceNode:
		w.json = append(w.json, '[')
		for i, e := range n.Content {
			if i > 0 {
				w.json = append(w.json, ',')
			}
			w.value(e, element(at, i), depth+1)
		}
		w.json = append(w.json, ']')
	case yaml.MappingNode:
		w.json = append(w.json, '{')
		w.members(n, nil, at, depth, len(w.json))
		w.json = append(w.json, '}')
	default:
		w.mark(n, at)
		w.scalar(n)
	}
}

// quote writes a string of a node, unless the JSON becomes too long.
func (w *yamlWriter) quote(n *yaml.Node, s string) {
	if len(w.json)+len(s) > MaxRecord {
		w.failed = cmp.Or(w.failed, tooLong(int64(n.Line)))
		return
	}
	w.json = record.Quote(w.json, s)
}

// members writes the members of a mapping that taken lacks. The members of a merge key stand in its place, without
// those that the mapping has itself.
func (w *yamlWriter) members(n *yaml.Node, taken map[string]bool, at string, depth, start int) {
	names := make([]string, len(n.Content)/2)
	for i := range names {
		if k := n.Content[2*i]; !w.enter(k, depth) {
			return
		} else if !isMerge(k) {
			names[i] = w.key(k)
		} else if taken == nil {
			taken = map[string]bool{}
		}
	}
	own := map[string]bool{}
	for i, name := range names {
		if taken != nil && !isMerge(n.Content[2*i]) && !taken[name] {
			own[name] = true
		}
	}
	maps.Copy(taken, own)
	for i, name := range names {
		k, v := n.Content[2*i], n.Content[2*i+1]
		if isMerge(k) {
			w.merge(v, taken, at, depth+1, start)
			continue
		}
		if taken != nil && !own[name] {
			continue
		}
		if len(w.json) > start {
			w.json = append(w.json, ',')
		}
		w.quote(k, name)
		w.json = append(w.json, ':')
		pointer := ""
		if w.pointer != nil {
			pointer = member(at, name)
			w.mark(k, pointer)
		}
		w.value(v, pointer, depth+1)
	}
}

// merge writes the members of the value of a merge key: a mapping, or a sequence of them, of which earlier ones count.
func (w *yamlWriter) merge(v *yaml.Node, taken map[string]bool, at string, depth, start int) {
	if v.Kind == yaml.AliasNode {
		v = v.Alias
	}
	was := w.inAlias
	w.inAlias = true
	defer func() { w.inAlias = was }()
	switch {
	case !w.enter(v, depth):
	case v.Kind == yaml.MappingNode:
		w.members(v, taken, at, depth, start)
	case v.Kind == yaml.SequenceNode:
		for _, e := range v.Content {
			w.merge(e, taken, at, depth+1, start)
		}
	default:
		w.failed = fmt.Errorf("line %d: the merge key << needs a mapping or a sequence of mappings", v.Line)
	}
}

// isMerge reports whether a key is the merge key.
func isMerge(k *yaml.Node) bool {
	return k.Kind == yaml.ScalarNode && k.Value == "<<" && (k.Style == 0 || k.Tag == "!!merge")
}

// key returns the name of a member.
func (w *yamlWriter) key(k *yaml.Node) string {
	for k.Kind == yaml.AliasNode {
		k = k.Alias
	}
	if k.Kind == yaml.ScalarNode {
		return k.Value
	}
	if w.inKey { // each level would double the escapes
		w.failed = fmt.Errorf("line %d: a key within a key is no scalar", k.Line)
		return ""
	}
	w.add("the key at line %d is no scalar, so it is written as JSON in a string", k.Line)
	inner := yamlWriter{inKey: true, inAlias: true, aliased: w.aliased}
	inner.value(k, "", 0)
	w.aliased, w.failed = inner.aliased, inner.failed
	return string(inner.json)
}

// scalar writes a scalar by the core schema.
func (w *yamlWriter) scalar(n *yaml.Node) {
	tag, core := "", n.Style == 0 // plain
	if n.Style&yaml.TaggedStyle != 0 {
		tag, core = n.Tag, strings.HasPrefix(n.Tag, "!!") && n.Tag != "!!str"
	}
	if json, ok := coreScalar(n.Value, tag); ok && core {
		if w.json = append(w.json, json...); json != "" {
			return
		}
		w.add("JSON has no %s: it is a string, at line %d first", content.Clip(n.Value, 40), n.Line)
	}
	w.quote(n, n.Value)
}

var (
	yamlNumber  = content.Pattern(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
	yamlInteger = content.Pattern(`^0(o[0-7]+|x[0-9a-fA-F]+)$`)
	yamlNoFloat = content.Pattern(`^([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$`)
)

// coreScalar returns the JSON of a plain scalar that is no string, by section 10.3 of YAML 1.2.2. It returns "", true
// for a number that JSON lacks.
func coreScalar(s, tag string) (json string, ok bool) {
	switch s {
	case "", "~", "null", "Null", "NULL":
		return "null", tag == "" || tag == "!!null"
	case "true", "True", "TRUE":
		return "true", tag == "" || tag == "!!bool"
	case "false", "False", "FALSE":
		return "false", tag == "" || tag == "!!bool"
	}
	if c := s[0]; c != '-' && c != '+' && c != '.' && (c < '0' || c > '9') {
		return "", false
	}
	switch {
	case yamlNumber().MatchString(s):
		return decimal(s), true
	case yamlInteger().MatchString(s) && len(s) <= 10_000: // a longer one takes more than a millisecond
		i, _ := new(big.Int).SetString(s, 0) // no error: the pattern matches
		return i.String(), true
	}
	return "", yamlInteger().MatchString(s) || yamlNoFloat().MatchString(s)
}

// decimal returns a decimal number as JSON writes it, with all its digits: 017 is 17, +.5 is 0.5, 1. is 1.0.
func decimal(s string) string {
	digits := strings.TrimLeft(strings.TrimLeft(s, "+-"), "0")
	if digits == "" || digits[0] < '0' || digits[0] > '9' {
		digits = "0" + digits
	}
	if whole, after, dotted := strings.Cut(digits, "."); dotted && (after == "" || after[0] > '9') {
		digits = whole + ".0" + after
	}
	if s[0] == '-' {
		return "-" + digits
	}
	return digits
}
