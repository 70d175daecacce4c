package kinds

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/itchyny/gojq"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// repeated joins the records 0 to n-1.
func repeated(n int, sep string, record func(i int) string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = record(i)
	}
	return strings.Join(parts, sep)
}

// TestFilter: the filter that a summary names gives the records of the longest array of objects.
func TestFilter(t *testing.T) {
	list := "[" + repeated(30, ",", func(i int) string { return fmt.Sprintf(`{"id":%d,"message":"m%d"}`, i, i) }) + "]"
	small := `[{"id":1},{"id":2}]`
	nine := repeated(9, ",", func(i int) string { return fmt.Sprintf(`"k%d":[{"id":%d}]`, i, i) })
	for _, c := range []struct{ text, filter string }{
		{list, ".[]"},
		{`{"results":` + list + `}`, ".results[]"},
		{`{"n":1,"data":{"items":` + list + `},"errors":` + small + `}`, ".data.items[]"},
		{`{"a":{"b":{"c":{"d":{"e":` + list + `}}}}}`, ".a.b.c.d.e[]"},
		{`{"odd key":{"1\"\\(.x)é":` + list + `}}`, `."odd key"."1\"\\(.x)é"[]`},
		{`{"ids":[` + strings.Repeat("1,", 500) + `1],"items":` + small + `}`, ".items[]"},
		{`{` + nine + `,"matches":` + list + `,` + strings.ReplaceAll(nine, "k", "l") + `}`, ".matches[]"},
		{`{"ids":[` + strings.Repeat("1,", 500) + `1],"name":"x"}`, ""},
		{`{"name":"x","of":{"id":17},"none":[]}`, ""},
		{`{"results":` + list[:len(list)-9], ""}, // jq refuses it
	} {
		s := summarize("x.json", []byte(c.text))
		if s.Kind != content.JSON || s.Filter != c.filter {
			t.Errorf("%.60s: %s, filter %q, want %q", c.text, s.Kind, s.Filter, c.filter)
		}
		if c.filter == "" {
			continue
		}
		q, err := gojq.Parse("[" + s.Filter + "] | length")
		if err != nil {
			t.Errorf("%s: %v", s.Filter, err)
			continue
		}
		var v any
		expect.Must(t, json.Unmarshal([]byte(c.text), &v))
		got, _ := q.Run(v).Next()
		if n, ok := got.(int); !ok || n != 30 && !strings.Contains(c.text, `"items":`+small) {
			t.Errorf("%s gives %v records", s.Filter, got)
		}
	}
}

// TestFilesOfRecords: matches and files are counted under the keys that tools use, and in arrays at most two keys deep.
func TestFilesOfRecords(t *testing.T) {
	named := func(key string) func(i int) string {
		return func(i int) string { return fmt.Sprintf(`{"line":%d,%q:"src/f%d.go"}`, i, key, i%7) }
	}
	row := func(format string) string {
		return repeated(40, "\n", func(i int) string { return fmt.Sprintf(format, i, i%7) })
	}
	ripgrep := repeated(5, "\n", func(i int) string {
		path := fmt.Sprintf(`"data":{"path":{"text":"src/f%d.go"}`, i)
		match := `{"type":"match",` + path + `,"lines":{"text":"TODO\n"},"line_number":4}}`
		other := func(kind string) string { return `{"type":"` + kind + `",` + path + `}}` }
		return strings.Join([]string{other("begin"), match, other("context"), match, other("end")}, "\n")
	}) + "\n" + `{"data":{"elapsed_total":{"secs":0}},"type":"summary"}` + "\n"
	for _, c := range []struct {
		name, text     string
		matches, files int64
		total          string
	}{
		{"x.ndjson", repeated(40, "\n", named("filePath")), 40, 7, "40 matches in 7 files"},
		{"x.ndjson", repeated(40, "\n", named("file_path")), 40, 7, "40 matches in 7 files"},
		{"x.ndjson", repeated(40, "\n", named("fileName")), 40, 7, "40 matches in 7 files"},
		{"x.json", "[" + repeated(5, ",", named("filePath")) + "]", 5, 5, "5 elements, 5 files"},
		{"x.json", `{"results":[` + repeated(40, ",", named("path")) + `]}`, 40, 7,
			"1 key, 40 elements at /results; 40 matches in 7 files"},
		{"x.json", `{"n":1,"d":{"matches":[` + repeated(40, ",", named("file")) + `]}}`, 40, 7,
			"2 keys, 40 elements at /d/matches; 40 matches in 7 files"},
		{"x.json", `{"a":{"b":{"c":[` + repeated(40, ",", named("file")) + `]}}}`, -1, -1, "1 key, 40 elements at /a/b/c"},
		{"x.json", `{"results":[` + repeated(40, ",", named("name")) + `]}`, -1, -1, "1 key, 40 elements at /results"},
		{"rg.ndjson", ripgrep, 10, 5, "26 records, 10 matches in 5 files"},
		{"x.csv", "Line,File Path\n" + row(`%d,"src/f%d.go"`), 40, 7, "40 rows, 2 columns; 40 matches in 7 files"},
		{"x.csv", "line,filename\n" + repeated(40, "\n", func(i int) string {
			return strings.TrimSuffix(fmt.Sprintf(`%d,f%d.go`, i, i%7), "f0.go")
		}), 34, 6, "40 rows, 2 columns; 34 matches in 6 files"},
		{"x.csv", "line,name\n" + row(`%d,f%d.go`), -1, -1, "40 rows, 2 columns"},
	} {
		s := summarize(c.name, []byte(c.text))
		if total := strings.Join(s.Total, "; "); s.Matches != c.matches || s.Files != c.files || total != c.total {
			t.Errorf("%.70s: %d matches, %d files, total %q; want %d, %d, %q",
				c.text, s.Matches, s.Files, total, c.matches, c.files, c.total)
		}
	}
}

// TestRareValue: the first finding is the value of the rarest key, with its place and the fields that identify it.
func TestRareValue(t *testing.T) {
	filler := `"notes":["` + strings.Repeat(`words of a note","`, 10) + `"]`
	pod := func(i int, state string) string {
		return fmt.Sprintf(`{"metadata":{"labels":{"a/b%d":"x"},"name":"pod-%d"},%s,`+
			`"status":{"containers":[{"id":1},{"ok":true%s}]}}`, i, i, filler, state)
	}
	pods := repeated(200, ", ", func(i int) string {
		if i == 137 {
			return pod(i, `, "lastState": {"exitCode": 137, "reason": "OOM \" killed"}`)
		}
		return pod(i, "")
	})
	flat := func(rare string, at ...int) string {
		return repeated(200, "\n", func(i int) string {
			if slices.Contains(at, i) {
				return fmt.Sprintf(`{"id":%d,"name":"n%d",%s,%s}`, i, i, filler, rare)
			}
			return fmt.Sprintf(`{"id":%d,"name":"n%d",%s}`, i, i, filler)
		})
	}
	state := `.status.containers[].lastState: {"exitCode":137,"reason":"OOM \" killed"}; ` +
		`in the element with metadata.name "pod-137"`
	long := strings.Repeat("x", 20_000)
	inArray := repeated(30, ",", func(i int) string {
		if i == 9 { // what is kept of it ends in the string
			return `{"a":["` + long + `",{"b":1}]}`
		}
		return `{"a":["x",{"c":1}]}`
	})
	for _, c := range []struct{ text, want string }{
		{`{"items":[` + pods + `]}`, "at /items/137, the only one with " + state},
		{"[" + pods + "]", "record 137, the only one with " + state},
		{flat(`"legacy": [1, 2]`, 9), `record 9, the only one with .legacy: [1,2]; in the element with name "n9", id 9`},
		{flat(`"legacy":null`, 9, 12), `record 9, first of 2 with .legacy: null; in the element with name "n9", id 9`},
		{flat(`"a":{"b":{"c":1}}`, 0), `record 0, the only one with .a: {"b":{"c":1}}; in the element with name "n0", id 0`},
		{flat(`"legacy":"`+long+`"`, 9),
			`record 9, the only one with .legacy: "` + strings.Repeat("x", 47) + "…; in the element with "},
		{strings.ReplaceAll(flat(`"legacy":1`, 9), filler, `"ok":1`),
			`record 9, the only one with .legacy: {"id":9,"name":"n9","ok":1,"legacy":1}`},
		{"[" + inArray + "]", `record 9, the only one with .a[].b: {"a":["xxx`},
		{flat(`"legacy":1`), ""},
		{flat(`"legacy":1`, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11), ""},
	} {
		for _, size := range []int{1 << 20, 997, 13} {
			s := inPieces([]byte(c.text), size)
			got := strings.Join(s.Says, "\n")
			if c.want == "" && got != "" || !strings.HasPrefix(got, c.want) {
				t.Errorf("%.40s… in pieces of %d: %q, want %q", c.text, size, got, c.want)
			}
		}
	}
}

// inPieces summarises a text written in pieces of a size.
func inPieces(text []byte, size int) digest.Summary {
	d := New("")
	for p := range slices.Chunk(text, size) {
		_, _ = d.Write(p)
	}
	return d.Close()
}

// TestFirstRecordHasItsPlace: the offset of the first record is that of its first byte.
func TestFirstRecordHasItsPlace(t *testing.T) {
	for _, text := range []string{
		`[{"a":1},{"a":2}]`, "\xef\xbb\xbf" + ` [ {"a":1},{"a":2}]`,
		`{"n":` + strings.Repeat("1", 20_000) + `,"items":[ {"a":1}]}`,
	} {
		for _, size := range []int{1 << 20, 7} {
			s := inPieces([]byte(text), size)
			want := int64(strings.Index(text, `{"a":1}`))
			if s.First.Offset != want || !strings.HasSuffix(s.First.Line, `: {"a":1}`) {
				t.Errorf("%.30s… in pieces of %d: %+v, want %d", text, size, s.First, want)
			}
		}
	}
	for _, text := range []string{`[1,2,3]`, `{"a":{"b":1}}`, `{"a":1}` + "\n" + `{"a":2}`} {
		expect.Equal(t, inPieces([]byte(text), 7).First, (digest.First{}), text)
	}
}

// TestValueCounts: values are counted up to 12 distinct ones, and fewer are listed where the shape has less room.
func TestValueCounts(t *testing.T) {
	for _, c := range []struct {
		distinct int
		listed   bool
	}{{1, true}, {6, true}, {12, true}, {13, false}} {
		text := repeated(260, "\n", func(i int) string {
			return fmt.Sprintf(`{"state":"state-%d","code":%d}`, i%c.distinct, 200+i%c.distinct)
		})
		csv := "state,code\n" + repeated(260, "\n", func(i int) string {
			return fmt.Sprintf(`state-%d,%d`, i%c.distinct, 200+i%c.distinct)
		})
		for name, text := range map[string]string{"x.ndjson": text, "x.csv": csv} {
			shape := summarize(name, []byte(text)).Shapes[0]
			for _, v := range []string{`"state-0"`, `200`} {
				if c.distinct > 1 {
					v += fmt.Sprintf(" ×%d", (260+c.distinct-1)/c.distinct)
				}
				expect.Equal(t, strings.Contains(shape, v), c.listed, "%d values in %s: %s", c.distinct, name, shape)
			}
		}
	}
	wide := repeated(400, "\n", func(i int) string {
		return "{" + repeated(9, ",", func(k int) string {
			return fmt.Sprintf(`"few%d":"value-%d","many%d":"a rather long value %d"`, k, i%3, k, i%11)
		}) + "}"
	})
	full := false
	for _, shape := range summarize("x.ndjson", []byte(wide)).Shapes {
		full = full || strings.Contains(shape, "value-2") && !strings.Contains(shape, "a rather long")
	}
	if !full {
		t.Error("no shape lists only the few values")
	}
}
