package plan

import (
	"slices"
	"strings"

	"github.com/itchyny/gojq"
)

// leaving returns a query with the results of q. It calls leave on those that depend on the value, because the filter
// may keep them.
func (p *inPlace) leaving(q *gojq.Query) *gojq.Query {
	if p.free(q) {
		return q
	}
	if q.Term == nil && q.Op == gojq.OpComma && len(q.FuncDefs) == 0 {
		return &gojq.Query{Left: p.leaving(q.Left), Op: gojq.OpComma, Right: p.leaving(q.Right)}
	}
	if t := plainTerm(q); t != nil {
		object := t.Type == gojq.TermTypeObject && !slices.ContainsFunc(t.Object.KeyVals, computesKey)
		if object || t.Type == gojq.TermTypeQuery || t.Type == gojq.TermTypeArray {
			return asQuery(withParts(t, func(q *gojq.Query) *gojq.Query { return asQuery(bracketed(p.leaving(q))) }))
		}
	}
	return piped(asQuery(bracketed(q)), call(leaveName, variable(ownerVar)))
}

// free reports whether the results of a query do not depend on its input.
func (p *inPlace) free(q *gojq.Query) bool {
	if q == nil {
		return true
	}
	if len(q.FuncDefs) > 0 {
		return false
	}
	if q.Term == nil {
		return p.free(q.Left) && (q.Op == gojq.OpPipe && len(q.Patterns) == 0 || q.Op < gojq.OpAssign && p.free(q.Right))
	}
	switch t := q.Term; t.Type {
	case gojq.TermTypeNull, gojq.TermTypeTrue, gojq.TermTypeFalse, gojq.TermTypeNumber, gojq.TermTypeString,
		gojq.TermTypeQuery, gojq.TermTypeArray, gojq.TermTypeUnary, gojq.TermTypeObject:
	case gojq.TermTypeFormat:
		if t.Str == nil {
			return false
		}
	case gojq.TermTypeFunc:
		if t.Func.Name[0] != '$' {
			return false
		}
	default:
		return false
	}
	return all(parts(q.Term), p.free) && all(indexQueries(q.Term), p.free)
}

// single reports whether a query surely has exactly one result, or fails.
func (p *inPlace) single(q *gojq.Query) bool {
	if q == nil || len(q.FuncDefs) > 0 {
		return false
	}
	if q.Term != nil {
		return p.singleTerm(q.Term)
	}
	switch q.Op {
	case gojq.OpComma:
		return false
	case gojq.OpPipe:
		return len(q.Patterns) <= 1 && simplePatterns(q.Patterns) && p.single(q.Left) && p.single(q.Right)
	}
	return p.single(q.Right) && (q.Op < gojq.OpAssign && p.single(q.Left) || q.Op >= gojq.OpAssign && p.place(q.Left))
}

func (p *inPlace) singleTerm(t *gojq.Term) bool {
	for _, s := range t.SuffixList {
		if s.Index == nil {
			return false
		}
	}
	switch t.Type {
	case gojq.TermTypeFunc:
		if !p.singleCall(t.Func) {
			return false
		}
	case gojq.TermTypeArray: // one result, however many its query has
		t = &gojq.Term{Type: gojq.TermTypeArray, Array: &gojq.Array{}, SuffixList: t.SuffixList}
	case gojq.TermTypeIdentity, gojq.TermTypeNull, gojq.TermTypeTrue, gojq.TermTypeFalse, gojq.TermTypeNumber,
		gojq.TermTypeIndex, gojq.TermTypeString, gojq.TermTypeFormat, gojq.TermTypeUnary, gojq.TermTypeQuery,
		gojq.TermTypeIf, gojq.TermTypeObject:
	default:
		return false
	}
	return all(parts(t), p.single) && all(indexQueries(t), p.single)
}

// singleCall reports whether a function has one result for each combination of its arguments.
func (p *inPlace) singleCall(f *gojq.Func) bool {
	switch {
	case p.defined[f.Name]:
		return false
	case f.Name[0] == '$':
		return true
	case strings.Contains(gathering, " "+f.Name+" "): // one result, however many its argument has
		return len(f.Args) <= 1
	}
	return strings.Contains(scalarFunctions, " "+f.Name+" ") && all(f.Args, p.single) || len(f.Args) == 0 &&
		(f.Name == "first" || f.Name == "last")
}

// Functions of gojq with exactly one result, between spaces.
const (
	gathering = " map map_values with_entries add any all group_by unique_by sort_by min_by max_by "

	scalarFunctions = " length utf8bytelength not keys min max unique sort reverse flatten type tostring tonumber tojson " +
		"fromjson toarray ascii_downcase ascii_upcase trim ltrim rtrim explode implode floor ceil round sqrt fabs abs pow log " +
		"to_entries from_entries transpose has contains inside startswith endswith ltrimstr rtrimstr split join test index " +
		"rindex indices getpath todate fromdate mktime gmtime strftime strptime error "
)
