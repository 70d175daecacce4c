package shape

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/corpus/digesttest"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// TestTableAgainstCSV: rows and columns as encoding/csv reads them.
func TestTableAgainstCSV(t *testing.T) {
	all := digesttest.Cases(t)
	for _, name := range []string{"corpus-20k.csv", "quoted.csv"} {
		rows, err := csv.NewReader(bytes.NewReader(all[name])).ReadAll()
		expect.Must(t, err)
		table := NewTable(all[name]).(*tableSummary)
		table.Add(all[name])
		var s digest.Summary
		table.Finish(&s)
		if s.Records != int64(len(rows)-1) || table.wide != len(rows[0]) {
			t.Errorf("%s: %d rows of %d, encoding/csv has %d of %d", name, s.Records, table.wide, len(rows)-1, len(rows[0]))
		}
		for i, c := range table.columns {
			distinct := map[string]bool{}
			empty, numbers := int64(0), int64(0)
			lo, hi, sum := 0.0, 0.0, 0.0
			for _, row := range rows[1:] {
				v, err := strconv.ParseFloat(row[i], 64)
				switch {
				case row[i] == "":
					empty++
				case err == nil:
					if numbers == 0 || v < lo {
						lo = v
					}
					if numbers == 0 || v > hi {
						hi = v
					}
					numbers++
					sum += v
				case row[i] != "true" && row[i] != "false":
					distinct[row[i]] = true
				}
			}
			if c.name != rows[0][i] || c.nulls != empty {
				t.Errorf("%s, column %d: %q with %d empty, want %q with %d", name, i, c.name, c.nulls, rows[0][i], empty)
			}
			if numbers > 0 && (c.number.n != numbers || c.number.lo != lo || c.number.hi != hi || c.number.sum != sum) {
				t.Errorf(
					"%s, column %q: %d numbers %v to %v, sum %v; want %d, %v to %v, sum %v", name, c.name, c.number.n, c.number.lo,
					c.number.hi, c.number.sum, numbers, lo, hi, sum,
				)
			}
			if len(distinct) > 0 && !c.many && len(c.distinct) != len(distinct) {
				t.Errorf("%s, column %q: %d distinct, want %d", name, c.name, len(c.distinct), len(distinct))
			}
		}
	}
}

// TestShapeAgainstJQ counts keys with jq.
func TestShapeAgainstJQ(t *testing.T) {
	text := corpus.RareKey9k()
	d := NewDocument(content.NDJSON)
	d.Add(text)
	root := d.scan.shape.root.object
	var want map[string]int64
	expect.Must(t, json.Unmarshal(
		[]byte(digesttest.Output(t, text, "jq", "-cs", "[.[]|keys[]]|group_by(.)|map({(.[0]):length})|add")), &want,
	))
	expect.Equal(t, len(want), len(root.fields), "keys, jq")
	for _, f := range root.fields {
		expect.Equal(t, f.n, want[f.name], "%s, jq", f.name)
	}
	whole, elements := NewDocument(content.JSON), digest.Summary{}
	whole.Add(corpus.JSON5MB())
	whole.Finish(&elements)
	if got := digesttest.Output(
		t, corpus.JSON5MB(), "jq", "length",
	); strings.TrimSpace(got) != digest.Number(elements.Records) {
		t.Errorf("jq: %s elements", got)
	}
}

// naive is the shape by way of encoding/json: path → what stands there.
func naive(at string, v any, seen map[string]int) {
	switch v := v.(type) {
	case nil:
		seen[at+" null"]++
	case bool:
		seen[at+" "+strconv.FormatBool(v)]++
	case float64:
		seen[at+" number"]++
	case string:
		seen[at+" string"]++
	case []any:
		seen[at+" array"]++
		seen[at+" elements"] += len(v)
		for _, e := range v {
			naive(at+"[]", e, seen)
		}
	case map[string]any:
		seen[at+" object"]++
		for k, e := range v {
			seen[at+"."+k+" present"]++
			naive(at+"."+k, e, seen)
		}
	}
}

func flatten(at string, n *node, seen map[string]int) {
	put := func(what string, n int64) {
		if n > 0 {
			seen[at+" "+what] = int(n)
		}
	}
	put("null", n.nulls)
	put("true", n.yes)
	put("false", n.no)
	if n.text != nil {
		put("string", n.text.n)
	}
	if n.number != nil {
		put("number", n.number.n)
	}
	if a := n.array; a != nil {
		put("array", a.complete)
		put("elements", a.total)
		if a.total == 0 {
			seen[at+" elements"] = 0
		}
		flatten(at+"[]", &a.elem, seen)
	}
	if o := n.object; o != nil {
		put("object", o.n)
		for _, f := range o.fields {
			seen[at+"."+f.name+" present"] = int(f.n)
			flatten(at+"."+f.name, &f.node, seen)
		}
	}
}

func anyValue() *rapid.Generator[any] {
	leaf := rapid.OneOf(rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.IntRange(-5, 5).AsAny(), rapid.Float64().AsAny(),
		rapid.SampledFrom([]string{"", "a", "b", "é\n\"", "2026-11-20", "long long long long long long long long long long long"}).AsAny())
	key := rapid.SampledFrom([]string{"a", "b", "file", "é", `q"`, "x y", "n/~"})
	v := leaf
	for range 3 {
		inner := v
		v = rapid.OneOf(leaf, rapid.SliceOfN(inner, 0, 4).AsAny(), rapid.MapOfN(key, inner, 0, 4).AsAny())
	}
	return v
}

// TestShapeAgainstNaive: every count of a shape, on any JSON.
func TestShapeAgainstNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOfN(anyValue(), 0, 12).Draw(t, "value")
		text, err := json.Marshal(v)
		if err != nil {
			t.Skip(err)
		}
		if rapid.Bool().Draw(t, "indented") {
			var b bytes.Buffer
			_ = json.Indent(&b, text, "", "  ")
			text = b.Bytes()
		}
		var plain any
		_ = json.Unmarshal(text, &plain)
		want := map[string]int{}
		naive("", plain, want)
		d := NewDocument(content.JSON)
		d.Add(text)
		got := map[string]int{}
		flatten("", &d.scan.shape.root, got)
		if fmt.Sprint(want) != fmt.Sprint(got) { // fmt sorts maps
			t.Fatalf("%s\nwant %v\ngot  %v", text, want, got)
		}
	})
}
