package shape

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

const (
	sampleBytes = 16 << 10 // bytes kept of an element that may be shown
	sampleMost  = 12       // maximum number of elements kept because they introduced a new key
	sampleRunes = 200      // maximum runes of an element as shown
	sampleText  = 48       // maximum runes of a string inside a shown element
)

type sample struct {
	at     int64
	raw    []byte
	newKey *field // the key that this element introduced; nil for the first element
}

// sample stores the element that just ended. If sampleMost elements with new keys are stored, sample first drops the
// one whose new key is now the most common, and of equally common ones that in the object with the most keys.
func (c *collection) sample(raw []byte, newKey *field) {
	if len(c.samples) > sampleMost {
		most := 1
		for i := 2; i < len(c.samples); i++ {
			if c.samples[i].newKey.moreCommon(c.samples[most].newKey) {
				most = i
			}
		}
		c.samples = slices.Delete(c.samples, most, most+1)
	}
	c.samples = append(c.samples, sample{c.n, slices.Clone(raw), newKey})
}

// moreCommon reports whether d distinguishes an element less than e: more objects have it, or the objects have more
// keys. A key of a map distinguishes least.
func (d *field) moreCommon(e *field) bool {
	if d, e := d.in.each != nil, e.in.each != nil; d != e {
		return d
	}
	return cmp.Or(cmp.Compare(d.n, e.n), cmp.Compare(len(d.in.fields), len(e.in.fields))) > 0
}

// firstLine shows the first element; "" if it is not held.
func (c *collection) firstLine() string {
	if c == nil || len(c.samples) == 0 || c.samples[0].newKey != nil {
		return ""
	}
	return c.name(c.samples[0].at) + ": " + brief(c.samples[0].raw)
}

// name returns the address of an element as slice accepts it.
func (c *collection) name(i int64) string {
	if c.top {
		return "record " + digest.Number(i)
	}
	return "at " + content.VisibleLine(c.pointer) + "/" + digest.Number(i)
}

// brief formats a value, whose first bytes are raw, in one short line without white space and with long strings
// truncated.
func brief(raw []byte) string {
	var b strings.Builder
	runes := 0
	add := func(part string) {
		b.WriteString(part)
		runes += utf8.RuneCountInString(part)
	}
	for i := 0; i < len(raw); {
		if runes >= sampleRunes {
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
				return strings.TrimRight(b.String(), "…") + "…"
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
