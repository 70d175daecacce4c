package values

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/mcp-funnel/mcp-funnel/kinds/record"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// maxAliased is the maximum number of values of one document that aliases and merge keys may repeat.
const maxAliased = 200_000

// YAML reads the documents of a YAML stream, each a record, by the core schema of YAML 1.2: no, 0b11 and 1_000 are
// strings, 017 is 17, and big integers keep their digits. Aliases and merge keys are resolved; more than 200,000
// repeated values are refused. Members that occur twice are written twice. .inf and .nan are strings; keys that are no
// scalars are written as JSON in a string, and tags of other schemas are dropped; remarks say so. Comments are dropped.
//

var YAML = guarded("YAML", readYAML)

func readYAML(ctx context.Context, r io.Reader, sink Sink) error {
	in := &bounded{r: r, left: MaxRecord, separators: maxSeparators}
	decoder := yaml.NewDecoder(in)
	w := yamlWriter{ctx: ctx, pointer: sink.Pointer}
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
		if err := w.value(&doc, "", 0); err != nil {
			return fmt.Errorf("document %d: %w", n, err)
		}
		line := doc.Line
		if len(doc.Content) > 0 {
			line = doc.Content[0].Line
		}
		if err := sink.Value(int64(line), w.json); err != nil {
			return err
		}
	}
}

// yamlError returns a parser's error without the name of its package.
func yamlError(err error, document int) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if document > 1 {
		text = fmt.Sprintf("document %d: %s", document, text)
	}
	return fmt.Errorf("it is not valid YAML: %s", text)
}

// yamlWriter writes documents as JSON.
type yamlWriter struct {
	remarks
	ctx     context.Context
	pointer func(line int64, pointer string)
	json    []byte
	aliased int  // values that were written through an alias
	inAlias bool // the current value is one of them
	noted   map[string]bool
}

// once adds a note on the first value of its sort.
func (w *yamlWriter) once(sort, format string, args ...any) {
	if w.noted == nil {
		w.noted = map[string]bool{}
	}
	if !w.noted[sort] {
		w.noted[sort] = true
		w.add(format, args...)
	}
}

// mark reports the pointer of a line. Lines within an alias are those of its anchor, so they have another pointer.
func (w *yamlWriter) mark(n *yaml.Node, pointer string) {
	if w.pointer != nil && !w.inAlias {
		w.pointer(int64(n.Line), pointer)
	}
}

func (w *yamlWriter) value(n *yaml.Node, at string, depth int) error {
	switch {
	case depth > maxDepth:
		return fmt.Errorf("line %d: values are nested more than %d deep", n.Line, maxDepth)
	case len(w.json) > MaxRecord:
		return fmt.Errorf("line %d: its JSON is longer than %d MiB; slice and grep read its text", n.Line, MaxRecord>>20)
	}
	if w.inAlias {
		if w.aliased++; w.aliased > maxAliased {
			return fmt.Errorf("its aliases repeat more than %d values, as a bomb does; slice and grep read its text", maxAliased)
		}
	}
	if n.Style&yaml.TaggedStyle != 0 && !strings.HasPrefix(n.Tag, "!!") {
		w.once("tag", "JSON has no tags: %s at line %d is dropped, as all are", content.Clip(n.Tag, 40), n.Line)
	}
	switch n.Kind {
	case yaml.DocumentNode:
		if len(n.Content) == 0 {
			w.json = append(w.json, "null"...)
			return nil
		}
		return w.value(n.Content[0], at, depth)
	case yaml.AliasNode:
		was := w.inAlias
		w.inAlias = true
		err := w.value(n.Alias, at, depth+1)
		w.inAlias = was
		return err
	case yaml.SequenceNode:
		w.json = append(w.json, '[')
		for i, e := range n.Content {
			if i > 0 {
				w.json = append(w.json, ',')
			}
			if err := w.value(e, element(at, i), depth+1); err != nil {
				return err
			}
		}
		w.json = append(w.json, ']')
		return nil
	case yaml.MappingNode:
		return w.object(n, at, depth)
	}
	w.mark(n, at)
	w.scalar(n)
	return nil
}

// object writes a mapping. The members of a merge key stand in its place, without those that the mapping has itself.
func (w *yamlWriter) object(n *yaml.Node, at string, depth int) error {
	var own map[string]bool // names of the members, if there is a merge key
	for i := 0; i+1 < len(n.Content) && own == nil; i += 2 {
		if isMerge(n.Content[i]) {
			own = map[string]bool{}
		}
	}
	for i := 0; i+1 < len(n.Content) && own != nil; i += 2 {
		if k := n.Content[i]; !isMerge(k) {
			own[w.key(k)] = true
		}
	}
	w.json = append(w.json, '{')
	start := len(w.json)
	if err := w.members(n, own, false, at, depth, start); err != nil {
		return err
	}
	w.json = append(w.json, '}')
	return nil
}

// members writes the members of a mapping, those of a merged one only if taken lacks them.
func (w *yamlWriter) members(n *yaml.Node, taken map[string]bool, merged bool, at string, depth, start int) error {
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if isMerge(k) {
			if err := w.merge(v, taken, at, depth+1, start); err != nil {
				return err
			}
			continue
		}
		name := w.key(k)
		if merged {
			if taken[name] {
				continue
			}
			taken[name] = true
		}
		if len(w.json) > start {
			w.json = append(w.json, ',')
		}
		w.json = append(record.Quote(w.json, name), ':')
		pointer := ""
		if w.pointer != nil {
			pointer = member(at, name)
			w.mark(k, pointer)
		}
		if err := w.value(v, pointer, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// merge writes the members of the value of a merge key: a mapping, or a sequence of them, of which earlier ones count.
func (w *yamlWriter) merge(v *yaml.Node, taken map[string]bool, at string, depth, start int) error {
	if depth > maxDepth {
		return fmt.Errorf("line %d: values are nested more than %d deep", v.Line, maxDepth)
	}
	if v.Kind == yaml.AliasNode {
		v = v.Alias
	}
	if w.aliased++; w.aliased > maxAliased {
		return fmt.Errorf("its merge keys repeat more than %d values, as a bomb does; slice and grep read its text", maxAliased)
	}
	was := w.inAlias
	w.inAlias = true
	defer func() { w.inAlias = was }()
	switch v.Kind {
	case yaml.MappingNode:
		return w.members(v, taken, true, at, depth, start)
	case yaml.SequenceNode:
		for _, e := range v.Content {
			if err := w.merge(e, taken, at, depth+1, start); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("line %d: the merge key << needs a mapping or a sequence of mappings", v.Line)
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
	w.once("key", "the key at line %d is no scalar, so it is written as JSON in a string", k.Line)
	inner := yamlWriter{ctx: w.ctx, inAlias: true, aliased: w.aliased}
	if err := inner.value(k, "", maxDepth/2); err != nil {
		return fmt.Sprintf("(key of line %d)", k.Line)
	}
	w.aliased = inner.aliased
	return string(inner.json)
}

// scalar writes a scalar by the core schema.
func (w *yamlWriter) scalar(n *yaml.Node) {
	tag := ""
	if n.Style&yaml.TaggedStyle != 0 {
		tag = n.Tag
	}
	plain := n.Style&^yaml.TaggedStyle == 0
	switch tag {
	case "", "!!int", "!!float", "!!bool", "!!null":
	default:
		plain = false
	}
	if plain || tag != "" && tag != "!!str" && strings.HasPrefix(tag, "!!") {
		if json, ok := coreScalar(n.Value, tag); ok {
			if json == "" {
				w.once("inf", "JSON has no %s: it is a string, at line %d first", n.Value, n.Line)
				json = string(record.Quote(nil, n.Value))
			}
			w.json = append(w.json, json...)
			return
		}
	}
	w.json = record.Quote(w.json, n.Value)
}

var (
	yamlInt     = content.Pattern(`^[-+]?[0-9]+$`)
	yamlFloat   = content.Pattern(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
	yamlOctal   = content.Pattern(`^0o[0-7]+$`)
	yamlHex     = content.Pattern(`^0x[0-9a-fA-F]+$`)
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
	match := func(pattern func() *regexp.Regexp) bool { return pattern().MatchString(s) }
	switch {
	case match(yamlInt):
		return decimal(s), true
	case match(yamlFloat):
		return decimal(s), true
	case match(yamlOctal), match(yamlHex):
		return integer(s), true
	case match(yamlNoFloat):
		return "", true
	}
	return "", false
}
