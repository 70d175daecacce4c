package jq

import (
	"math"

	"github.com/itchyny/gojq"
)

// term applies the rule of a term, then those of its suffixes.
func (m *meter) term(t *gojq.Term, in bag) bag {
	out := m.check(m.head(t, in))
	for _, s := range t.SuffixList {
		if m.refused != "" {
			return bag{}
		}
		m.nodes++
		switch {
		case s.Iter:
			m.work += 2*out.weight + out.count // the keys of objects are sorted
			out = iterate(out)
		case s.Index != nil:
			out = m.index(s.Index, out, in)
		case s.Optional:
		default:
			return m.refuse("a suffix")
		}
		m.check(out)
	}
	return out
}

func (m *meter) head(t *gojq.Term, in bag) bag {
	same := bag{in.count, in.weight, in.largest, true}
	switch t.Type {
	case gojq.TermTypeIdentity:
		return same
	case gojq.TermTypeNull:
		return each(in, 4)
	case gojq.TermTypeTrue, gojq.TermTypeFalse:
		return each(in, 5)
	case gojq.TermTypeNumber:
		return each(in, float64(max(len(t.Number), digits)))
	case gojq.TermTypeString:
		return m.text(t.Str, in)
	case gojq.TermTypeFormat:
		switch t.Format {
		case "@text", "@json", "@html", "@uri", "@csv", "@tsv", "@sh", "@base64", "@base64d":
		default:
			return m.refuse("format %s", t.Format)
		}
		if t.Str != nil {
			return m.text(t.Str, in)
		}
		m.work += 8 * in.weight
		return grown(in, 6, 2)
	case gojq.TermTypeIndex:
		return m.index(t.Index, same, in)
	case gojq.TermTypeFunc:
		return m.function(t.Func, in)
	case gojq.TermTypeObject:
		return m.object(t.Object, in)
	case gojq.TermTypeArray:
		if t.Array.Query == nil {
			return each(in, 2)
		}
		return collect(in, m.query(t.Array.Query, in))
	case gojq.TermTypeUnary:
		return m.unary(t.Unary, in)
	case gojq.TermTypeIf:
		return m.branches(t.If, in)
	case gojq.TermTypeTry:
		body := m.query(t.Try.Body, in)
		if t.Try.Catch == nil {
			return body
		}
		// Errors that a filter does not make itself hold at most a few short previews.
		return sum(false, body, m.query(t.Try.Catch, each(in, 512)))
	case gojq.TermTypeQuery:
		return m.query(t.Query, in)
	default:
		return m.refuse("%s", termName(t.Type))
	}
}

func termName(t gojq.TermType) string {
	switch t {
	case gojq.TermTypeRecurse:
		return ".."
	case gojq.TermTypeReduce:
		return "reduce"
	case gojq.TermTypeForeach:
		return "foreach"
	case gojq.TermTypeLabel:
		return "label"
	case gojq.TermTypeBreak:
		return "break"
	default:
		return "an unknown term"
	}
}

// text is a string, with what is interpolated in it.
func (m *meter) text(s *gojq.String, in bag) bag {
	if s.Queries == nil {
		return each(in, float64(len(s.Str)+2))
	}
	parts := []bag{each(in, 2)}
	for _, q := range s.Queries {
		b := m.one(q, in)
		m.work += 8 * b.weight
		b.weight, b.largest = 6*b.weight+2*b.count, 6*b.largest+2
		parts = append(parts, b)
	}
	return sum(true, parts...)
}

// index is of[x], where x sees in. Only what is surely a key, an index or a
// slice is taken: an array as an index searches.
func (m *meter) index(x *gojq.Index, of, in bag) bag {
	m.work += of.count
	out := bag{of.count, of.weight + 4*of.count, of.largest + 4, of.single}
	if x.Name != "" {
		return out
	}
	if x.Str != nil {
		m.one(&gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeString, Str: x.Str}}, in)
		return out
	}
	for _, q := range []*gojq.Query{x.Start, x.End} {
		if q != nil && !m.scalar(q, in) {
			return m.refuse("an index that may be an array")
		}
	}
	if x.IsSlice {
		m.work += 4 * of.weight // a string is taken apart
	}
	return out
}

// scalar says whether a query surely gives at most one value that is no array or object.
func (m *meter) scalar(q *gojq.Query, in bag) bool {
	if q.Term == nil || len(q.FuncDefs) > 0 || len(q.Term.SuffixList) > 0 {
		return false
	}
	switch t := q.Term; t.Type {
	case gojq.TermTypeNumber, gojq.TermTypeNull:
		return true
	case gojq.TermTypeString:
		return m.one(q, in).single && m.refused == ""
	case gojq.TermTypeUnary:
		return t.Unary.Term.Type == gojq.TermTypeNumber && len(t.Unary.Term.SuffixList) == 0
	case gojq.TermTypeFunc:
		return m.vars[t.Func.Name].scalar && len(t.Func.Args) == 0
	default:
		return false
	}
}

func (m *meter) object(o *gojq.Object, in bag) bag {
	parts := []bag{each(in, 2)}
	for _, kv := range o.KeyVals {
		m.nodes++
		key := each(in, float64(len(kv.Key)+2))
		switch {
		case kv.KeyString != nil:
			key = m.text(kv.KeyString, in)
		case kv.KeyQuery != nil:
			key = m.one(kv.KeyQuery, in)
		}
		value := grown(in, 1, 4) // {a} is {a: .a}
		if kv.Val != nil {
			value = m.one(kv.Val, in)
		} else if len(kv.Key) > 0 && kv.Key[0] == '$' {
			v, ok := m.vars[kv.Key]
			if !ok {
				return m.refuse("%s", kv.Key)
			}
			value = each(in, v.size)
		}
		parts = append(parts, key, value, each(in, 2))
	}
	out := sum(true, parts...)
	m.work += out.count
	return out
}

func (m *meter) unary(u *gojq.Unary, in bag) bag {
	out := m.term(u.Term, in)
	if !out.single {
		return m.refuse("a product of several results")
	}
	return grown(out, 1, digits)
}

func (m *meter) branches(i *gojq.If, in bag) bag {
	m.one(i.Cond, in)
	bags := []bag{m.query(i.Then, in)}
	for _, e := range i.Elif {
		m.one(e.Cond, in)
		bags = append(bags, m.query(e.Then, in))
	}
	if i.Else != nil {
		bags = append(bags, m.query(i.Else, in))
	} else {
		bags = append(bags, bag{in.count, in.weight, in.largest, true})
	}
	single := true
	for _, b := range bags {
		single = single && b.single
	}
	return sum(single, bags...)
}

// sorted charges for sorting elements by keys: each is compared some log² times at most.
func (m *meter) sorted(elements, keys bag) {
	l := math.Log2(elements.weight + 2)
	m.work += (keys.weight + keys.count) * l * l
}

// function applies the rule of a built-in.
func (m *meter) function(f *gojq.Func, in bag) bag {
	same := bag{in.count, in.weight, in.largest, true}
	if len(f.Name) > 0 && f.Name[0] == '$' {
		v, ok := m.vars[f.Name]
		if !ok || len(f.Args) > 0 {
			return m.refuse("%s", f.Name)
		}
		return each(in, v.size)
	}
	switch len(f.Args) {
	case 0:
		return m.function0(f.Name, in, same)
	case 1:
		return m.function1(f.Name, f.Args[0], in, same)
	case 2:
		return m.function2(f.Name, f.Args[0], f.Args[1], in, same)
	default:
		return m.refuse("%s", f.Name)
	}
}

func (m *meter) function0(name string, in, same bag) bag {
	switch name {
	case "empty":
		return bag{single: true}
	case "not", "any", "all", "isnan", "isinfinite", "isfinite", "isnormal":
		m.work += in.weight
		return each(in, 5)
	case "type":
		return each(in, 9)
	case "env":
		return each(in, 2)
	case "input_filename":
		return each(in, m.name)
	case "debug", "stderr", "arrays", "objects", "iterables", "booleans", "numbers", "finites", "normals", "strings", "nulls", "values", "scalars":
		return same
	case "length", "utf8bytelength", "tonumber", "toboolean", "abs", "add", "floor", "ceil", "round", "sqrt", "fabs", "trunc",
		"log", "log2", "log10", "exp", "exp2", "exp10", "nan", "infinite", "now", "min", "max":
		m.work += 8 * in.weight
		return grown(in, 1, digits)
	case "first", "last", "trim", "ltrim", "rtrim", "ascii_downcase", "ascii_upcase", "reverse", "flatten":
		m.work += 2 * in.weight
		return grown(in, 1, 4)
	case "keys", "keys_unsorted":
		m.sorted(in, in)
		return grown(in, 4, 2)
	case "to_entries":
		m.sorted(in, in)
		return grown(in, 14, 2)
	case "from_entries":
		m.work += 8 * in.weight
		return grown(in, 2, 4)
	case "tostring", "tojson":
		m.work += 8 * in.weight
		return grown(in, 6, 2)
	case "fromjson":
		m.work += 16 * in.weight
		return grown(in, 1, 4)
	case "explode", "implode":
		m.work += 8 * in.weight
		return grown(in, 8, 2)
	case "sort", "unique":
		m.sorted(in, in)
		return grown(in, 1, 2)
	case "todate", "fromdate", "todateiso8601", "fromdateiso8601", "gmtime", "mktime":
		m.work += 64 * in.count
		return each(in, 96)
	default:
		return m.refuse("%s", name)
	}
}

func (m *meter) function1(name string, arg *gojq.Query, in, same bag) bag {
	switch name {
	case "select":
		m.one(arg, in)
		return same
	case "map":
		f := m.query(arg, m.elements(in))
		f.single = false // for each element, not for each array
		return collect(in, f)
	case "map_values":
		b := m.elements(in)
		m.work += 16 * in.weight
		return m.widened(in, m.query(arg, b))
	case "with_entries":
		b := m.elements(grown(in, 14, 2))
		m.sorted(in, in)
		inner := m.query(arg, b)
		w := 2*inner.weight + 4*in.count + 2*inner.count
		return bag{in.count, w, w, true}
	case "sort_by", "unique_by", "group_by", "min_by", "max_by":
		b := m.elements(in)
		keys := m.query(arg, b)
		keys = collect(b, keys)
		m.sorted(in, keys)
		return grown(in, 2, 4)
	case "add", "first", "last", "any", "all", "isempty":
		return m.folded(name, arg, in)
	case "has", "startswith", "endswith":
		m.one(arg, in)
		return each(in, 5)
	case "contains", "inside":
		x := m.one(arg, in)
		m.work += 8 * in.weight * x.largest // each with each
		return each(in, 5)
	case "index", "rindex", "indices":
		x := m.one(arg, in)
		m.work += 8*in.weight + in.weight*x.largest
		return grown(in, 8, 4)
	case "ltrimstr", "rtrimstr", "trimstr":
		m.one(arg, in)
		return grown(in, 1, 0)
	case "split":
		m.one(arg, in)
		m.work += 4 * in.weight
		return grown(in, 4, 2)
	case "join":
		x := m.one(arg, in)
		m.work += 8 * in.weight
		return grown(in, 1+x.largest, 2+x.largest)
	case "flatten", "nth":
		if _, ok := whole(arg); !ok {
			return m.refuse("%s of an unknown", name)
		}
		m.work += 2 * in.weight
		return grown(in, 1, 4)
	case "range":
		n, ok := whole(arg)
		if !ok {
			return m.refuse("range to an unknown")
		}
		m.work += n * in.count
		return bag{n * in.count, 5 * n * in.count, 5, false}
	case "test":
		return m.test(arg, nil, in)
	case "del":
		at, _ := m.paths(arg, in, true)
		m.work += 16 * (in.weight + at.weight)
		return same
	case "IN":
		s := m.query(arg, in)
		m.work += 8 * (s.weight + s.count*in.largest)
		return each(in, 5)
	default:
		return m.refuse("%s", name)
	}
}

func (m *meter) function2(name string, a, b *gojq.Query, in, _ bag) bag {
	switch name {
	case "limit", "skip", "nth":
		if _, ok := whole(a); !ok {
			return m.refuse("%s of an unknown", name)
		}
		out := m.query(b, in)
		m.work += 4 * out.count
		if name == "nth" {
			out.single = true
			out.count = in.count
		}
		return out
	case "any", "all":
		m.query(b, m.check(m.query(a, in)))
		return each(in, 5)
	case "range":
		from, ok := whole(a)
		to, ok2 := whole(b)
		if !ok || !ok2 {
			return m.refuse("range of unknowns")
		}
		n := max(0, to-from)
		m.work += n * in.count
		return bag{n * in.count, 5 * n * in.count, 5, false}
	case "test":
		return m.test(a, b, in)
	default:
		return m.refuse("%s", name)
	}
}

// elements is .[].
func (m *meter) elements(in bag) bag {
	m.work += 2*in.weight + in.count
	return m.check(iterate(in))
}

// widened is in with values replaced by those of a bag.
func (m *meter) widened(in, values bag) bag {
	w := in.weight + values.weight
	return bag{in.count, w, w, true}
}

// folded is what first(f), last(f), add(f), any(f), all(f) and isempty(f) make of the results of f.
func (m *meter) folded(name string, f *gojq.Query, in bag) bag {
	switch name {
	case "any", "all":
		m.query(f, m.elements(in))
		return each(in, 5)
	}
	out := m.query(f, in)
	m.work += 4 * out.weight
	switch name {
	case "isempty":
		return each(in, 5)
	case "add":
		return bag{in.count, out.weight + out.count + digits*in.count, out.weight + out.count + digits, true}
	default:
		out.single = true
		out.count = in.count
		return out
	}
}

func (m *meter) test(re, flags *gojq.Query, in bag) bag {
	pattern, ok := literal(re)
	if flags != nil && ok {
		_, ok = literal(flags)
	}
	if !ok || !shortPattern(pattern) {
		return m.refuse("a regular expression that is not short and literal")
	}
	m.work += 64 * (in.weight + in.count)
	return each(in, 5)
}
