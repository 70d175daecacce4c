package shape

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/internal/kind/digest"
)

const (
	sampleBytes = 4 << 10 // bytes kept of an element that may be shown
	sampleMost  = 12      // maximum number of elements kept because they introduced a new key
	sampleRunes = 200     // maximum runes of an element as shown
	sampleText  = 48      // maximum runes of a string inside a shown element
)

// collection is a sequence of values that are sampled as records: the elements of the top-level array, the values of
// NDJSON, or the elements of an array that is nested in objects only.
type collection struct {
	pointer string // JSON pointer of the array
	top     bool   // the elements are the records of the text
	of      *node
	n       int64 // number of complete elements
	samples []sample
}

type sample struct {
	at     int64
	raw    []byte
	newKey *field // the key that this element introduced; nil for the first element
}

// sample stores the element that just ended. If sampleMost elements with new keys are stored, sample first drops the
// one whose new key is now the most common.
func (c *collection) sample(raw []byte, newKey *field) {
	if len(c.samples) > sampleMost {
		most := 1
		for i := 2; i < len(c.samples); i++ {
			if c.samples[i].newKey.n > c.samples[most].newKey.n {
				most = i
			}
		}
		c.samples = slices.Delete(c.samples, most, most+1)
	}
	c.samples = append(c.samples, sample{c.n, slices.Clone(raw), newKey})
}

// pointer returns the RFC 6901 pointer of the current member.
func (s *shape) pointer() string {
	var b strings.Builder
	for _, f := range s.frames {
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(f.name))
	}
	return b.String()
}

// rarest finds the key below n that the fewest objects have, among keys present in at most 5 % of their objects;
// nil if there is none. path and name are written as in the shape.
func rarest(n *node, path string, depth int) (best *field, name string) {
	if depth == 0 {
		return nil, ""
	}
	better := func(d *field, p string) {
		if d != nil && (best == nil || d.n < best.n) {
			best, name = d, p
		}
	}
	if o := n.object; o != nil {
		for _, d := range o.fields {
			at := path + "." + keyName(d.name)
			if d.n > 0 && d.n*20 <= o.n && d.first >= 0 {
				better(d, at)
			}
			better(rarest(&d.node, at, depth-1))
		}
	}
	if n.array != nil {
		better(rarest(&n.array.elem, path+"[]", depth-1))
	}
	return best, name
}

// lines returns the samples to show: the element with the rarest key, and the first element.
func (c *collection) lines() []string {
	if c == nil || len(c.samples) == 0 {
		return nil
	}
	var out []string
	if first := c.samples[0]; first.newKey == nil {
		out = append(out, c.name(first.at)+": "+brief(first.raw, ""))
	}
	rare, path := rarest(c.of, "", 8)
	if rare == nil {
		return out
	}
	for _, s := range c.samples {
		if s.at != rare.first || s.newKey == nil {
			continue
		}
		which := "the only one with "
		if rare.n > 1 {
			which = "first of " + digest.Number(rare.n) + " with "
		}
		key := rare.name
		if strings.Contains(path[1:], ".") {
			key = "" // a nested key may occur anywhere in the element
		}
		line := c.name(s.at) + ", " + which + content.Clip(path, digest.NameRunes) + ": " + brief(s.raw, key)
		return append([]string{line}, out...)
	}
	return out
}

// name returns the address of an element as slice accepts it.
func (c *collection) name(i int64) string {
	if c.top {
		return "record " + digest.Number(i)
	}
	return "at " + content.VisibleLine(c.pointer) + "/" + digest.Number(i)
}

// brief formats an element, whose first bytes are raw, in one short line without white space and with long strings
// truncated. The member with the given key is shown even if it comes late.
func brief(raw []byte, key string) string {
	var b strings.Builder
	runes, wanted := 0, -1
	add := func(part string) {
		b.WriteString(part)
		runes += utf8.RuneCountInString(part)
	}
	if key != "" {
		if i := strings.Index(string(raw), `"`+key+`"`); i > 0 {
			wanted = i
		}
	}
	for i := 0; i < len(raw); {
		if i == wanted { // leave room for the key and its value
			wanted, runes = -1, min(runes, sampleRunes/2)
		}
		if runes >= sampleRunes {
			if i <= wanted {
				add("… ")
				i, wanted, runes = wanted, -1, sampleRunes/2
				continue
			}
			add("…")
			return b.String()
		}
		switch c := raw[i]; c {
		case ' ', '\t', '\r', '\n':
			i++
		case '"':
			end := i + 1
			for end < len(raw) && raw[end] != '"' {
				if raw[end] == '\\' {
					end++
				}
				end++
			}
			if end >= len(raw) {
				add(digest.CutText(string(raw[i:]), sampleText) + "…")
				return strings.TrimSuffix(b.String(), "……") + "…"
			}
			add(`"` + shortText(string(raw[i+1:end])) + `"`)
			i = end + 1
		default:
			end := i + 1
			if strings.IndexByte("{}[],:", c) < 0 {
				for end < len(raw) && strings.IndexByte("{}[],: \t\r\n", raw[end]) < 0 {
					end++
				}
			}
			add(string(raw[i:end]))
			i = end
		}
	}
	if len(raw) == sampleBytes {
		add("…")
	}
	return b.String()
}

func shortText(s string) string {
	if len(s) <= sampleText {
		return s
	}
	if cut := digest.CutText(s, sampleText); len(cut) < len(s) {
		return strings.TrimRight(cut, `\`) + "…"
	}
	return s
}
