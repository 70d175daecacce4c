package summary

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// detail says how much of a shape is written.
type detail struct {
	counts bool // how often a key is present; otherwise only that it may be missing
	values bool // few values, least and greatest, dates, long strings
	types  bool // otherwise only keys, and what holds other keys
	depth  int  // containers inside each other
	keys   int  // of an object
	runes  int  // in all, as weighed
}

// details are the shapes offered, from most to least. The last is for the smallest receipts: under 25 tokens.
var details = []detail{
	{counts: true, values: true, types: true, depth: 12, keys: 64, runes: 1500},
	{counts: true, values: true, types: true, depth: 6, keys: 32, runes: 700},
	{counts: true, types: true, depth: 4, keys: 32, runes: 400},
	{counts: true, types: true, depth: 3, keys: 24, runes: 240},
	{types: true, depth: 2, keys: 16, runes: 130},
	{depth: 2, keys: 16, runes: 80},
	{depth: 1, keys: 6, runes: 46},
}

// outline writes a shape; top is what stands in front ("[1204] " for NDJSON).
type outline struct {
	detail
	b      strings.Builder
	empty  string // the word for null; "null" in JSON, where strings are shown as written
	record string // the word for a record's number, "" where there are none
}

// shapes writes n in every detail, leaving out those that say no less than the one before.
func shapes(n *node, top, empty, record string) []string {
	var out []string
	for _, d := range details {
		s := d.write(n, top, empty, record)
		if len(out) == 0 || weight(s) < weight(out[len(out)-1]) {
			out = append(out, s)
		}
	}
	return out
}

// write fits n into the detail's room: less deep first, then fewer keys.
func (d detail) write(n *node, top, empty, record string) string {
	for {
		o := outline{detail: d, empty: empty, record: record}
		o.b.WriteString(top)
		o.node(n, 0, top != "" && n.kinds() > 1)
		s := o.b.String()
		if weight(s) <= d.runes {
			return s
		}
		switch {
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
			if n.array != nil && n.kinds() == 1 {
				top = "[" + span(n.array.lo, n.array.hi) + "] "
			}
			return top + "mixed"
		}
	}
}

// weight of a text, about in the order of what it costs to read: other than ASCII costs more.
func weight(s string) int { return utf8.RuneCountInString(s)*4 - 3*ascii(s) }

func ascii(s string) (n int) {
	for i := range len(s) {
		if s[i] < utf8.RuneSelf {
			n++
		}
	}
	return n
}

// kinds is how many JSON types were seen at n.
func (n *node) kinds() int {
	k := 0
	for _, is := range [...]bool{n.object != nil, n.array != nil, n.text != nil, n.number != nil, n.yes+n.no > 0, n.nulls > 0} {
		if is {
			k++
		}
	}
	return k
}

// hasKeys says whether there are keys below n.
func (n *node) hasKeys() bool {
	return n.object != nil || n.array != nil && n.array.elem.hasKeys()
}

func (o *outline) node(n *node, depth int, group bool) {
	if !o.types && depth > 0 && n.hasKeys() {
		n = &node{object: n.object, array: n.array}
	}
	k := n.kinds()
	group = group && k > 1
	if group {
		o.b.WriteByte('(')
	}
	first := true
	or := func() {
		if !first {
			o.b.WriteByte('|')
		}
		first = false
	}
	if n.object != nil {
		or()
		o.object(n.object, depth)
	}
	if n.array != nil {
		or()
		o.array(n.array, depth)
	}
	if n.text != nil {
		or()
		o.texts(n.text)
	}
	if n.number != nil {
		or()
		o.numbers(n.number)
	}
	if n.yes+n.no > 0 {
		or()
		o.truth(n)
	}
	if n.nulls > 0 {
		or()
		o.b.WriteString(o.empty)
		if o.values && k > 1 {
			o.b.WriteString(" ×" + number(n.nulls))
		}
	}
	if first {
		o.b.WriteString("?")
	}
	if group {
		o.b.WriteByte(')')
	}
}

func (o *outline) array(a *arrays, depth int) {
	o.b.WriteString("[" + span(a.lo, a.hi) + "]")
	if a.elem.kinds() == 0 {
		return
	}
	o.b.WriteByte(' ')
	if depth >= o.depth+1 {
		o.b.WriteString("…")
		return
	}
	// An array costs no depth where it is the outermost: its elements are what is asked for.
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

func (x *objects) seen() (n int) {
	for _, d := range x.fields {
		if d.n > 0 {
			n++
		}
	}
	return n
}

// choose takes as many fields as may be shown, in the order of the text, and the rarest among them: it is
// what looking at a few records does not show.
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
		o.b.WriteString(" (" + number(d.n) + " of " + number(x.n))
		if o.values && o.record != "" && d.first >= 0 && d.n*100 <= x.n {
			o.b.WriteString(", ")
			if d.n > 1 {
				o.b.WriteString("first ")
			}
			o.b.WriteString(o.record + " " + number(d.first))
		}
		o.b.WriteByte(')')
	}
}

// mapping writes an object whose keys are values themselves.
func (o *outline) mapping(x *objects, depth int) {
	o.b.WriteString("{<string>: ")
	if depth >= o.depth {
		o.b.WriteString("…")
	} else {
		o.node(x.each, depth+1, false)
	}
	o.b.WriteString(" × " + span(x.lo, x.hi))
	if o.values && x.example != "" {
		o.b.WriteString(`, as "` + escapes.Replace(cutText(x.example, 40)) + `"`)
	}
	o.b.WriteByte('}')
}

func (o *outline) texts(t *texts) {
	f := &t.few
	switch {
	case !o.values:
		o.b.WriteString("string")
	case !t.other && t.from != nil:
		if string(t.from) == string(t.to) {
			o.b.WriteString(`"` + string(t.from) + `"`)
			return
		}
		o.b.WriteString("date " + string(t.from) + "…" + string(t.to))
	case f.listed(t.n):
		o.list(f, `"`, t.n)
	default:
		o.b.WriteString("string")
		if t.distinct > 1 && t.distinct < t.n {
			o.b.WriteString(" (" + number(t.distinct) + " distinct)")
		}
		if t.longest >= 256 {
			o.b.WriteString(" to " + number(t.longest) + " bytes")
		}
	}
}

func (o *outline) numbers(t *numbers) {
	f := &t.few
	switch {
	case !o.values || t.low == nil:
		o.b.WriteString("number")
	case f.listed(t.n):
		o.list(f, "", t.n)
	case string(t.low) == string(t.top):
		o.b.Write(t.low)
	default:
		o.b.WriteString("number " + string(t.low) + "…" + string(t.top))
	}
}

func (o *outline) truth(n *node) {
	switch {
	case !o.values:
		o.b.WriteString("boolean")
	case n.no == 0:
		o.b.WriteString("true")
	case n.yes == 0:
		o.b.WriteString("false")
	default:
		o.b.WriteString("true ×" + number(n.yes) + "|false ×" + number(n.no))
	}
}

// listed says whether the values are few enough to be listed: all n the same, or each seen about twice.
func (f *few) listed(n int64) bool {
	return !f.many && (len(f.values) == 1 || n >= 2*int64(len(f.values)) && n >= 4)
}

// list writes the values, those seen most first; of one that is rare also where it stands first.
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
		o.b.WriteString(" ×" + number(v.n))
		if o.record != "" && v.first >= 0 && v.n*50 <= n {
			o.b.WriteString(" (first " + o.record + " " + number(v.first) + ")")
		}
	}
}

var escapes = strings.NewReplacer(`"`, `\"`, `\`, `\\`, "\n", `\n`, "\r", `\r`, "\t", `\t`)

// keyName is a key as it is written in a shape: quoted unless it is a plain name.
func keyName(key string) string {
	plain := key != ""
	for i := range len(key) {
		switch c := key[i]; {
		case isWord[c] && (i > 0 || c-'0' > 9), c == '-' && i > 0, c == '$', c == '@':
		default:
			plain = false
		}
	}
	if len(key) > 60 {
		key = cutText(key, 48) + "…"
	}
	if plain {
		return key
	}
	return `"` + escapes.Replace(key) + `"`
}

// settle turns objects into maps where their keys are values: very many of one kind, each in few objects, or
// names no one would give to a field.
func (n *node) settle() {
	if n.array != nil {
		n.array.elem.settle()
	}
	o := n.object
	if o == nil {
		return
	}
	if o.each == nil && o.isMap() {
		o.toMap()
	}
	if o.each != nil {
		o.each.settle()
	}
	for _, d := range o.fields {
		d.node.settle()
	}
}

func (o *objects) isMap() bool {
	k := len(o.fields)
	if k < 4 {
		return false
	}
	var present, size int64
	odd := 0
	kind := o.fields[0].node.only()
	union := map[string]bool{}
	for _, d := range o.fields {
		if d.node.only() != kind || kind == 0 {
			return false
		}
		present += d.n
		if unlikeKey(d.name) {
			odd++
		}
		if x := d.node.object; x != nil {
			for _, y := range x.fields {
				union[y.name] = true
			}
			size += int64(len(x.fields))
		}
	}
	if kind == 'o' && size*2 < int64(len(union)*k) {
		return false // the values are objects of different kinds
	}
	switch {
	case odd == k:
		return true
	case o.n == 1 && kind == 'o':
		return k >= 16
	case o.n == 1:
		return k >= 48
	default:
		return k >= 16 && present*3 < o.n*int64(k)
	}
}

// only is the one JSON type seen at n, nulls aside; 0 where there are several.
func (n *node) only() byte {
	var kind byte
	for _, x := range [...]struct {
		is   bool
		kind byte
	}{{n.object != nil, 'o'}, {n.array != nil, 'a'}, {n.text != nil, 's'}, {n.number != nil, 'n'}, {n.yes+n.no > 0, 'b'}} {
		if x.is {
			if kind != 0 {
				return 0
			}
			kind = x.kind
		}
	}
	return kind
}

// unlikeKey says of a key that it is a value: a number, an address, a path, a date, an identifier.
func unlikeKey(s string) bool {
	digits, hex := 0, 0
	for i := range len(s) {
		c := s[i]
		switch {
		case c == '/' || c == '@' || c == ':' || c == '\\':
			return true
		case c >= '0' && c <= '9':
			digits++
			hex++
		case c == '-' || c == '.':
			hex++
		case c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F':
			hex++
		}
	}
	return digits > 0 && (digits == len(s) || hex == len(s) && len(s) >= 8) || digits >= 4 && digits*2 >= len(s)
}
