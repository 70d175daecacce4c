package continuation

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// TestMergeNeverLoses cuts a document at many places, and delivers a whole document with the sections from the cut-off
// one on: the whole section again, only its last element, or the last items or rows of that.
func TestMergeNeverLoses(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	type tally struct{ right, refused int }
	var count [3]tally
	for n := range 4 {
		doc, err := json.Marshal(sectionDocument(r, 8))
		doc = idFirst(doc, n)
		expect.Must(t, err)
		var want map[string]any
		expect.Must(t, json.Unmarshal(doc, &want))
		list := want["sections"].([]any)
		for cut := len(doc) / 4; cut < len(doc)-2; cut += 13 {
			d := New(Options{})
			d.Add(doc[:cut])
			if len(d.parser.containers) < 3 { // the cut is not in a section
				continue
			}
			at := int(d.parser.containers[2].Count)
			if at == len(list) {
				continue
			}
			for habit := range count {
				part, ok := freshSections(list[at:], habit, d.arrived(elements), d.arrived(items, rows), r)
				if !ok {
					continue
				}
				e := Open(doc[:cut:cut], d.Stored(), Options{})
				res := e.Add(part)
				if res.Join == "" {
					count[habit].refused++
					continue
				}
				var got map[string]any
				if err := json.Unmarshal(e.Text(), &got); err != nil ||
					!reflect.DeepEqual(got["sections"], want["sections"]) {
					t.Fatalf("habit %d, cut %q, part %q: %+v\n%s", habit, tail(doc[:cut]), head(part), res, e.Text())
				}
				count[habit].right++
			}
		}
	}
	for habit, c := range count {
		t.Logf("habit %d: %+v", habit, c)
		if c.right == 0 {
			t.Errorf("habit %d is never joined", habit)
		}
	}
}

// idFirst moves the names of a document so that the id of each section comes first, in every other document.
func idFirst(doc []byte, n int) []byte {
	if n%2 == 0 {
		return doc
	}
	all, _ := members(doc)
	list, _ := elementsOf(rawMember(all, "sections"))
	for i, raw := range list {
		section, _ := members(raw)
		slices.Reverse(section)
		list[i] = joinObject(section)
	}
	setMember(&all, "sections", joinArray(list))
	return joinObject(all)
}

// arrived returns how many children the innermost open container of one of some roles has.
func (d *Document) arrived(of ...role) int {
	for _, f := range slices.Backward(d.parser.containers) {
		if slices.Contains(of, f.Role) {
			return int(f.Count)
		}
	}
	return -1
}

// freshSections returns a document of sections. Of the first one it has all, only the last element, or the last of its
// items and rows, if those before it have arrived: whole is the number of its elements that have, parts that of items.
func freshSections(list []any, habit, whole, parts int, r *rand.Rand) ([]byte, bool) {
	first := maps.Clone(list[0].(map[string]any))
	all, isList := first["elements"].([]any)
	switch {
	case habit > 0 && (!isList || len(all) == 0 || whole < len(all)-1),
		habit == 2 && (whole >= len(all) || parts < 0):
		return nil, false
	case habit == 1:
		first["elements"] = all[len(all)-1:]
	case habit == 2:
		last := maps.Clone(all[len(all)-1].(map[string]any))
		for k, v := range last {
			if some, ok := v.([]any); ok && k != "headers" {
				last[k] = some[r.IntN(min(parts, len(some)-1)+1):]
			}
		}
		first["elements"] = []any{last}
	}
	part, err := json.Marshal(map[string]any{"sections": append([]any{first}, list[1:]...)})
	return part, err == nil
}
