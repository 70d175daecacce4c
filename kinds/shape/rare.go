package shape

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

const (
	rareDepth   = 8   // maximum number of nested objects and arrays in which a rare key is looked for
	rareShort   = 120 // maximum runes of an element that is shown instead of its rare value
	rarePath    = 60  // maximum bytes of a path that is shown whole
	identifiers = 2   // maximum number of identifying fields shown
)

// step leads from a value to a member, or to any element of an array.
type step struct {
	key     string
	element bool
}

// rarest finds the key below n that the fewest objects have, among keys present in at most 5 % of their objects;
// nil if there is none. path leads from n to the key.
func rarest(n *node, depth int) (best *field, path []step) {
	if depth == 0 {
		return nil, nil
	}
	better := func(d *field, rest []step, s ...step) {
		if d != nil && (best == nil || d.n < best.n) {
			best, path = d, slices.Concat(s, rest)
		}
	}
	if o := n.object; o != nil {
		for _, d := range o.fields {
			if d.n > 0 && d.n*20 <= o.n && d.first >= 0 {
				better(d, nil, step{key: d.name})
			}
			below, rest := rarest(&d.node, depth-1)
			better(below, rest, step{key: d.name})
		}
	}
	if n.array != nil {
		below, rest := rarest(&n.array.elem, depth-1)
		better(below, rest, step{element: true})
	}
	return best, path
}

// pathText formats a path as jq takes it. A long one is reduced to its ends: ".status…lastState".
func pathText(path []step) string {
	var b strings.Builder
	for _, s := range path {
		if s.element {
			b.WriteString("[]")
		} else {
			b.WriteString("." + keyName(s.key))
		}
	}
	text := b.String()
	if first, last := path[0], path[len(path)-1]; len(text) > rarePath && len(path) > 2 && !first.element {
		text = "." + keyName(first.key) + "…" + keyName(last.key)
	}
	return content.Clip(text, digest.NameRunes)
}

// rareLine describes the element with the rarest key: its place, the value of that key, and the fields that identify
// the element. An element of a few words is shown whole, unless it
// is the first, which has a line of its own. rareLine returns "" if no key is rare.
func (c *collection) rareLine() string {
	if c == nil {
		return ""
	}
	rare, path := rarest(c.of, rareDepth)
	if rare == nil {
		return ""
	}
	for _, s := range c.samples {
		if s.at != rare.first {
			continue
		}
		which := "the only one with "
		if rare.n > 1 {
			which = "first of " + digest.Number(rare.n) + " with "
		}
		line := c.name(s.at) + ", " + which + pathText(path) + ": "
		whole := brief(s.raw)
		if s.at > 0 && utf8.RuneCountInString(whole) <= rareShort {
			return line + whole
		}
		raw, ok := valueAt(decoderOf(s.raw), s.raw, path)
		if !ok {
			return line + whole
		}
		line += brief(raw)
		if named := identity(s.raw, path); named != "" {
			line += "; in the element with " + named
		}
		return line
	}
	return ""
}

func decoderOf(raw []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// valueAt returns the first value at path below the next value of d, which reads raw. A value that raw ends inside of
// is returned up to that end. If there is none, d has read the whole next value.
func valueAt(d *jsontext.Decoder, raw []byte, path []step) (value []byte, ok bool) {
	kind := d.PeekKind()
	if len(path) == 0 {
		from := d.InputOffset()
		_ = d.SkipValue()
		to := d.InputOffset()
		if to == from {
			to = int64(len(raw))
		}
		return bytes.TrimLeft(raw[from:to], " \t\r\n:,"), true
	}
	open := byte('{')
	if path[0].element {
		open = '['
	}
	if byte(kind) != open {
		_ = d.SkipValue()
		return nil, false
	}
	_, _ = d.ReadToken()
	before := int64(-1)
	for k := d.PeekKind(); k != 0 && k != '}' && k != ']'; k = d.PeekKind() {
		if d.InputOffset() == before { // raw ends inside of the value that was to be skipped
			return nil, false
		}
		before = d.InputOffset()
		if open == '{' {
			name, err := d.ReadToken()
			if err != nil {
				return nil, false
			}
			if name.String() != path[0].key {
				if d.SkipValue() != nil {
					return nil, false
				}
				continue
			}
		}
		if value, ok = valueAt(d, raw, path[1:]); ok {
			return value, true
		}
	}
	_, _ = d.ReadToken()
	return nil, false
}

// identifying lists the keys that identify an element, the most telling first.
var identifying = []string{"name", "id", "key", "title", "uid", "uuid", "slug", "sha", "number", "file", "path", "url"}

// identityIn lists the objects inside an element that are searched if the element has no identifying key itself.
var identityIn = []string{"metadata", "properties", "attributes"}

// identity returns the identifying fields of an element, such as `id 17, name "web"`; "" if there are none. The field
// at not is left out.
func identity(raw []byte, not []step) string {
	var out []string
	add := func(at string, path ...step) {
		if len(out) == identifiers || slices.Equal(path, not) {
			return
		}
		if v, ok := valueAt(decoderOf(raw), raw, path); ok && len(v) > 0 && strings.IndexByte("{[nft", v[0]) < 0 {
			out = append(out, at+" "+brief(v))
		}
	}
	for _, key := range identifying {
		add(key, step{key: key})
	}
	for _, outer := range identityIn {
		for _, key := range identifying {
			if len(out) < identifiers {
				add(outer+"."+key, step{key: outer}, step{key: key})
			}
		}
	}
	return strings.Join(out, ", ")
}
