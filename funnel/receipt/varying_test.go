package receipt

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/funnel/text"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// identified matches a line that shows its ID whole.
var identified = regexp.MustCompile(`\b1[0-2]\d\d\b`)

// TestCutLinesShowWhatVaries: each line of head and tail that is cut shows the field in which it differs from the
// others, wherever that is.
func TestCutLinesShowWhatVaries(t *testing.T) {
	same := func(key string) string { return `"` + key + `": "` + strings.Repeat("the same words ", 9) + `"` }
	words := strings.Repeat("words ", 20)
	for name, line := range map[string]string{
		"member":           `{` + same("a") + `, "id": %d, ` + same("b") + `}`,
		"member of object": `{` + same("a") + `, "of": {"x": [1, {"id": %d}]}, ` + same("b") + `}`,
		"element":          `{` + same("a") + `, "ids": [1, %d], ` + same("b") + `}`,
		"long record":      `{` + same("a") + `, "id": %d, "b": "` + strings.Repeat("b", 9000) + `"}`,
		"pair":             "2026-11-23T10:00:00Z INFO " + words + "id=%d note=" + strings.Repeat("b", 90),
		"pair of a text":   words + "(id=%d) note=" + strings.Repeat("b", 90),
	} {
		for _, array := range []bool{false, true} {
			if array && line[0] != '{' {
				continue
			}
			var b strings.Builder
			b.WriteString(map[bool]string{true: "[\n"}[array])
			for i := range 300 {
				if array && i > 0 {
					b.WriteString(",\n")
				}
				fmt.Fprintf(&b, line+map[bool]string{false: "\n"}[array], 1000+i)
			}
			b.WriteString(map[bool]string{true: "\n]\n"}[array])
			c := captureOf(b.String())
			for _, ceiling := range []int{200, 400, 600, 1500} {
				d := NewDraft(Facts{Captured: c, Count: counter.Count, Kept: Kept{Name: "obs:k3v9q2m7x4ab"}})
				receipt, tokens := d.Fit(ceiling)
				_, edges, _ := strings.Cut(receipt, "--- head: ")
				cut := 0
				for l := range strings.Lines(edges) {
					if strings.Contains(l, " chars …") {
						if cut++; !identified.MatchString(l) {
							t.Errorf("%s, array %v, at %d: no ID in %s", name, array, ceiling, l)
						}
					}
				}
				if cut == 0 && (ceiling == 400 || ceiling == 600) || tokens > ceiling {
					t.Errorf("%s, array %v: %d tokens at %d\n%s", name, array, tokens, ceiling, receipt)
				}
			}
		}
	}
}

func TestVaryingFields(t *testing.T) {
	for _, c := range []struct {
		name  string
		kind  content.Kind
		lines []string
		want  [][]string
	}{
		{"none", content.NDJSON, []string{`{"a":1}`, `{"a":1}`}, [][]string{nil, nil}},
		{"one line", content.NDJSON, []string{`{"a":1}`}, [][]string{nil}},
		{"most values first", content.NDJSON,
			[]string{`{"a":1,"b":[2,"x"]}`, `{"a":1,"b":[3,"y"]}`, ` {"b":[4,"x"], "a": 2}`},
			[][]string{{`"b":[2,"x"]`, `"a":1`}, {`"b":[3,"y"]`, `"a":1`}, {`"b":[4,"x"]`, `"a": 2`}}},
		{"absent", content.JSON, []string{`{"a":1,"b":null},`, `{"a":1}`, "]"}, [][]string{{`"b":null`}, nil, nil}},
		{"escapes", content.NDJSON, []string{`{"a\"}":"é\u0041{","b":1}`, `{"a\"}":"x","b":1}`},
			[][]string{{`"a\"}":"é\u0041{"`}, {`"a\"}":"x"`}}},
		{"broken", content.NDJSON, []string{`{"a":1,"b":2,x`, `{"a":1,"b":3`, `{`, `[1`, ``, "\xff"},
			[][]string{{`"b":2`}, {`"b":3`}, nil, nil, nil, nil}},
		{"pairs", content.Log, []string{`x a=1 b="c d", e=(5)`, `x a=1 b="c e", e=(6);`},
			[][]string{{`b="c d"`, `e=(5)`}, {`b="c e"`, `e=(6)`}}},
		{"others have none", content.Diff, []string{`+a=1`, `+a=2`}, [][]string{nil, nil}},
	} {
		var lines []text.Line
		for _, l := range c.lines {
			lines = append(lines, text.LineOf(l))
		}
		got := make([][]string, len(lines))
		for i, ranges := range varyingFields(c.kind, lines) {
			for _, r := range ranges {
				got[i] = append(got[i], c.lines[i][r.From:r.To])
			}
		}
		expect.Same(t, got, c.want, c.name)
	}
}
