package receipt

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-funnel/mcp-funnel/funnel/text"
	"github.com/mcp-funnel/mcp-funnel/kinds/logs"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// maxFields is the maximum number of fields of a line that are compared.
const maxFields = 400

// field is a field of a record: a member of a JSON object at any depth, or a key=value pair of a log.
type field struct {
	name  string // JSON Pointer or key
	value string
	at    text.Range // with its key
}

// varyingFields returns, for each line of head and tail, the fields whose value is not the same in all lines: those
// with most values first, then in the order of the line.
func varyingFields(kind content.Kind, lines []text.Line) [][]text.Range {
	fields := make([][]field, len(lines))
	values, lacking := map[string]map[string]bool{}, map[string]int{}
	records := 0
	for i, l := range lines {
		fields[i] = fieldsOf(kind, l)
		if len(fields[i]) > 0 {
			records++
		}
		for _, f := range fields[i] {
			if values[f.name] == nil {
				values[f.name] = map[string]bool{}
			}
			values[f.name][f.value] = true
			lacking[f.name]--
		}
	}
	rank := func(f field) int {
		n := len(values[f.name])
		if n == 1 && lacking[f.name]+records > 0 {
			n++ // that it is absent is one more
		}
		return n
	}
	out := make([][]text.Range, len(lines))
	for i, list := range fields {
		list = slices.DeleteFunc(list, func(f field) bool { return rank(f) < 2 })
		slices.SortStableFunc(list, func(a, b field) int { return cmp.Compare(rank(b), rank(a)) })
		for _, f := range list {
			f.at.Weight = rank(f)
			out[i] = append(out[i], f.at)
		}
	}
	return out
}

// fieldsOf returns the fields of a line, as far as the line is held.
func fieldsOf(kind content.Kind, l text.Line) []field {
	switch kind {
	case content.JSON, content.NDJSON:
		return jsonFields(l.Left)
	case content.Log, content.Text:
		var out []field
		line := string(l.Left)
		for p := range logs.Pairs(line) {
			if len(out) == maxFields || !l.Whole() && p.To == len(line) {
				break
			}
			out = append(out, field{line[p.From : p.Value-1], line[p.Value:p.To], text.Range{From: p.From, To: p.To}})
		}
		return out
	}
	return nil
}

// jsonFields returns the members of the object at the beginning of a line that are no objects, at any depth below
// objects, until the object's end or the first error.
func jsonFields(line []byte) (out []field) {
	blank := len(line) - len(bytes.TrimLeft(line, " \t"))
	line = line[blank:]
	if !bytes.HasPrefix(line, []byte("{")) {
		return nil
	}
	d := jsontext.NewDecoder(bytes.NewReader(line), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for from := 0; len(out) < maxFields; {
		before := int(d.InputOffset())
		_, n := d.StackIndex(d.StackDepth())
		isName := d.StackDepth() > 0 && n%2 == 0
		var err error
		if next := d.PeekKind(); next == '{' || next == '}' || isName {
			_, err = d.ReadToken()
		} else {
			err = d.SkipValue()
		}
		if err != nil || d.StackDepth() == 0 {
			return out
		}
		end := int(d.InputOffset())
		start := end - len(bytes.TrimLeft(line[before:end], " \t\r\n,:"))
		switch {
		case isName:
			from = start
		case line[start] != '{' && line[start] != '}':
			out = append(out, field{
				name: string(d.StackPointer()), value: string(line[start:end]), at: text.Range{From: blank + from, To: blank + end},
			})
		}
	}
	return out
}
