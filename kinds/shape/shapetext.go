package shape

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
)

// detail limits how much of a shape is written.
type detail struct {
	counts bool // show how often a key is present; otherwise only that the key may be missing
	values bool // show values if they are few, minimum and maximum, dates, lengths of long strings
	list   int  // maximum number of distinct values to list at one path
	sample bool // show one value in place of its type
	types  bool // show types; otherwise only keys and the containers that have keys
	depth  int  // maximum nesting depth
	keys   int  // maximum number of keys per object
	runes  int  // maximum Weight of the shape
}

// fewMiddle is the number of listed values at which a shape that is too long loses other parts first.
const fewMiddle = 5

// details lists the levels of detail from most to least. The last level is for the smallest receipts: under 25
// tokens.
var details = []detail{
	{counts: true, values: true, list: fewValues, types: true, depth: 12, keys: 64, runes: 1500},
	{counts: true, values: true, list: fewValues, types: true, depth: 6, keys: 32, runes: 700},
	{counts: true, values: true, list: fewMiddle, types: true, depth: 6, keys: 32, runes: 700},
	{counts: true, types: true, depth: 4, keys: 32, runes: 400},
	{counts: true, types: true, depth: 3, keys: 24, runes: 240},
	{types: true, depth: 2, keys: 16, runes: 130},
	{depth: 2, keys: 16, runes: 80},
	{depth: 1, keys: 6, runes: 46},
}

// exampleDetails are the levels of detail of a shape with an example value of each scalar.
var exampleDetails = []detail{
	{sample: true, types: true, depth: 4, keys: 16, runes: 230},
	{sample: true, types: true, depth: 3, keys: 16, runes: 170},
	{sample: true, types: true, depth: 1, keys: 16, runes: 140},
	{depth: 2, keys: 16, runes: 120},
	{depth: 1, keys: 12, runes: 70},
}

// form is the detail by which texts of one form are told from others: keys and types.
var form = detail{types: true, depth: 3, keys: 64, runes: 2000}

// outline writes a shape.
type outline struct {
	detail
	b      strings.Builder
	empty  string // word for null; "null" in JSON, where strings are shown as written
	record string // word for a record in "record 12"; "" if there are no records
}

// shapes writes n at each level of detail and drops results that are not shorter than the one before. top is the
// prefix, such as "[1204] " for NDJSON.
func shapes(levels []detail, n *node, top, empty, record string) []string {
	var out []string
	for _, d := range levels {
		s := d.write(n, top, empty, record)
		if len(out) == 0 || Weight(s) < Weight(out[len(out)-1]) {
			out = append(out, s)
		}
	}
	return out
}

// write reduces depth, keys, values and types step by step until the shape of n has at most d.runes.
func (d detail) write(n *node, top, empty, record string) string {
	for {
		o := outline{detail: d, empty: empty, record: record}
		o.b.WriteString(top)
		o.node(n, 0, top != "" && len(n.types()) > 1)
		s := o.b.String()
		if Weight(s) <= d.runes {
			return s
		}
		switch {
		case d.values && d.list > fewMiddle:
			d.list = max(fewMiddle, d.list-3)
		case d.depth > 4:
			d.depth--
		case d.keys > 24:
			d.keys = d.keys * 3 / 4
		case d.values && d.runes < 1000:
			d.values = false
		case d.types && d.runes < 500:
			d.types = false
		case d.depth > 2:
			d.depth--
		case d.keys > 8:
			d.keys--
		case d.counts || d.values || d.types:
			d.counts, d.values, d.types = false, false, false
		case d.depth > 1:
			d.depth--
		case d.keys > 1:
			d.keys--
		case d.depth > 0:
			d.depth--
		default:
			if n.array != nil && len(n.types()) == 1 {
				top = "[" + digest.Span(n.array.lo, n.array.hi) + "] "
			}
			return top + "mixed"
		}
	}
}

// Weight estimates the cost of a text in a receipt: 1 for an ASCII character, 4 for any other.
func Weight(s string) (weight int) {
	for _, r := range s {
		if weight++; r >= utf8.RuneSelf {
			weight += 3
		}
	}
	return weight
}

// types returns a letter for each JSON type of the values at n: object, array, string, number, boolean; 0 for null.
func (n *node) types() string {
	letters := make([]byte, 0, 6)
	for i, is := range [...]bool{n.object != nil, n.array != nil, n.text != nil, n.number != nil, n.yes+n.no > 0, n.nulls > 0} {
		if is {
			letters = append(letters, "oasnb0"[i])
		}
	}
	return string(letters)
}

// hasKeys reports whether n or its array elements include objects.
func (n *node) hasKeys() bool {
	return n.object != nil || n.array != nil && n.array.elem.hasKeys()
}

// node writes the types at n, separated by "|", in parentheses if group is true and there are several. Without
// o.types, types below the top level are omitted next to containers that have keys.
func (o *outline) node(n *node, depth int, group bool) {
	if !o.types && depth > 0 && n.hasKeys() {
		n = &node{object: n.object, array: n.array}
	}
	types := n.types()
	group = group && len(types) > 1
	if group {
		o.b.WriteByte('(')
	}
	for i, t := range types {
		if i > 0 {
			o.b.WriteByte('|')
		}
		switch t {
		case 'o':
			o.object(n.object, depth)
		case 'a':
			o.array(n.array, depth)
		case 's':
			o.texts(n.text)
		case 'n':
			o.numbers(n.number)
		case 'b':
			o.truth(n)
		default:
			o.b.WriteString(o.empty)
			if o.values && i > 0 {
				o.b.WriteString(" ×" + digest.Number(n.nulls))
			}
		}
	}
	if types == "" {
		o.b.WriteString("?")
	}
	if group {
		o.b.WriteByte(')')
	}
}

func (o *outline) array(a *arrays, depth int) {
	o.b.WriteString("[" + digest.Span(a.lo, a.hi) + "]")
	if a.elem.types() == "" {
		return
	}
	o.b.WriteByte(' ')
	if depth >= o.depth+1 {
		o.b.WriteString("…")
		return
	}
	// The outermost array does not count towards the depth, because callers want to see its elements.
	next := depth
	if depth > 0 {
		next++
	}
	o.node(&a.elem, next, true)
}

func (o *outline) object(x *objects, depth int) {
	if x.each != nil {
		o.mapping(x, depth)
		return
	}
	if depth >= o.depth {
		if x.hi == 0 {
			o.b.WriteString("{}")
		} else {
			o.b.WriteString("object")
		}
		return
	}
	shown := o.choose(x)
	o.b.WriteByte('{')
	for i, d := range shown {
		if i > 0 {
			o.b.WriteString(", ")
		}
		o.field(x, d, depth)
	}
	if left := x.seen() - len(shown); left > 0 {
		if len(shown) > 0 {
			o.b.WriteString(", ")
		}
		o.b.WriteString("… " + strconv.Itoa(left) + " more")
	}
	o.b.WriteByte('}')
}

// seen returns the number of keys, with those that have no field.
func (x *objects) seen() int {
	n := x.omitted
	for _, d := range x.fields {
		if d.n > 0 {
			n++
		}
	}
	return n
}

// choose returns the fields to show in text order, at most o.keys. If fields are omitted, the rarest field replaces
// the last one, because a look at a few records would not reveal it.
func (o *outline) choose(x *objects) []*field {
	all := make([]*field, 0, len(x.fields))
	var rare *field
	for _, d := range x.fields {
		if d.n == 0 {
			continue
		}
		all = append(all, d)
		if d.n*20 <= x.n && (rare == nil || d.n < rare.n) {
			rare = d
		}
	}
	if len(all) <= o.keys {
		return all
	}
	shown := all[:o.keys:o.keys]
	if rare != nil && !slices.Contains(shown, rare) && o.keys > 1 {
		shown = append(shown[:o.keys-1:o.keys-1], rare)
	}
	return shown
}

func (o *outline) field(x *objects, d *field, depth int) {
	o.b.WriteString(keyName(d.name))
	missing := d.n < x.n
	if missing {
		o.b.WriteByte('?')
	}
	if !o.types && (depth+1 >= o.depth || !d.node.hasKeys()) {
		return
	}
	o.b.WriteString(": ")
	o.node(&d.node, depth+1, false)
	if missing && o.counts && o.types {
		o.b.WriteString(" (" + digest.Number(d.n) + " of " + digest.Number(x.n))
		if o.values && o.record != "" && d.first >= 0 && d.n*100 <= x.n {
			o.b.WriteString(", ")
			if d.n > 1 {
				o.b.WriteString("first ")
			}
			o.b.WriteString(o.record + " " + digest.Number(d.first))
		}
		o.b.WriteByte(')')
	}
}

// mapping writes an object whose keys are data.
func (o *outline) mapping(x *objects, depth int) {
	o.b.WriteString("{<string>: ")
	if depth >= o.depth {
		o.b.WriteString("…")
	} else {
		o.node(x.each, depth+1, false)
	}
	o.b.WriteString(" × " + digest.Span(x.lo, x.hi))
	if o.values && x.example != "" {
		o.b.WriteString(`, as "` + escapes.Replace(digest.CutText(x.example, 40)) + `"`)
	}
	o.b.WriteByte('}')
}

func (o *outline) texts(t *texts) {
	f := &t.few
	switch {
	case o.sample && len(t.example) <= exampleBytes && utf8.ValidString(t.example): // a cut secret would not be masked
		o.b.WriteString(`"` + t.example + `"`)
	case !o.values:
		o.b.WriteString("string")
	case !t.other && t.from != nil:
		if string(t.from) == string(t.to) {
			o.b.WriteString(`"` + string(t.from) + `"`)
			return
		}
		o.b.WriteString("date " + string(t.from) + "…" + string(t.to))
	case f.listed(t.n, o.detail.list):
		o.list(f, `"`, t.n)
	default:
		o.b.WriteString("string")
		if t.distinct > 1 && t.distinct < t.n {
			o.b.WriteString(" (" + digest.Number(t.distinct) + " distinct)")
		}
		if t.longest >= 256 {
			o.b.WriteString(" to " + digest.Number(t.longest) + " bytes")
		}
	}
}

func (o *outline) numbers(t *numbers) {
	f := &t.few
	switch {
	case o.sample && t.example != "":
		o.b.WriteString(t.example)
	case !o.values || t.low == nil:
		o.b.WriteString("number")
	case f.listed(t.n, o.detail.list):
		o.list(f, "", t.n)
	case string(t.low) == string(t.top):
		o.b.Write(t.low)
	default:
		o.b.WriteString("number " + string(t.low) + "…" + string(t.top))
	}
}

func (o *outline) truth(n *node) {
	switch {
	case !o.values && !(o.sample && n.yes*n.no == 0):
		o.b.WriteString("boolean")
	case n.no == 0:
		o.b.WriteString("true")
	case n.yes == 0:
		o.b.WriteString("false")
	default:
		o.b.WriteString("true ×" + digest.Number(n.yes) + "|false ×" + digest.Number(n.no))
	}
}

// listed reports whether the n values are few enough to list: all are equal, or at most limit are distinct and each
// occurs about twice.
func (f *few) listed(n int64, limit int) bool {
	k := len(f.values)
	return !f.many && (k == 1 || k <= limit && n >= 2*int64(k) && n >= 4)
}

// list writes the values, most frequent first, and for a rare value the first record with it.
func (o *outline) list(f *few, quote string, n int64) {
	all := slices.Clone(f.values)
	slices.SortStableFunc(all, func(a, b value) int { return cmp.Compare(b.n, a.n) })
	for i, v := range all {
		if i > 0 {
			o.b.WriteByte('|')
		}
		if quote != "" && o.empty != "null" {
			v.text = escapes.Replace(v.text)
		}
		o.b.WriteString(quote + v.text + quote)
		if len(all) == 1 {
			return
		}
		o.b.WriteString(" ×" + digest.Number(v.n))
		if o.record != "" && v.first >= 0 && v.n*50 <= n {
			o.b.WriteString(" (first " + o.record + " " + digest.Number(v.first) + ")")
		}
	}
}

var escapes = strings.NewReplacer(`"`, `\"`, `\`, `\\`, "\n", `\n`, "\r", `\r`, "\t", `\t`)

// keyName formats a key for a shape: quoted unless it is a plain name.
func keyName(key string) string {
	plain := key != ""
	for i := range len(key) {
		switch c := key[i]; {
		case digest.IsWord[c] && (i > 0 || c-'0' > 9), c == '-' && i > 0, c == '$', c == '@':
		default:
			plain = false
		}
	}
	if len(key) > 60 {
		key = digest.CutText(key, 48) + "…"
	}
	if plain {
		return key
	}
	return `"` + escapes.Replace(key) + `"`
}
