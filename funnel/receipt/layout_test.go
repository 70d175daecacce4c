package receipt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
)

func lay(ndjson string) ([]string, bool) {
	rows, _, ok := layout(bytes.Split(bytes.TrimSuffix([]byte(ndjson), []byte("\n")), []byte("\n")))
	return rows, ok
}

func TestLayout(t *testing.T) {
	cases := []struct{ name, in, want string }{
		{"hits by file",
			`{"file":"src/a.go","line":12,"text":"func a() {"}
{"file":"src/a.go","line":40,"text":"\treturn a()"}
{"file":"b.go","line":1,"text":"package b"}`,
			"src/a.go\n  12: func a() {\n  40: \treturn a()\nb.go\n  1: package b"},
		{"context",
			`{"file":"a","line":12,"text":"hit","before":["x","y"],"after":["z"]}`,
			"a\n  10- x\n  11- y\n  12: hit\n  13+ z"},
		{"multiline",
			`{"file":"a","line":12,"end":14,"text":"one\ntwo\n\nfour"}`,
			"a\n  12-14: one\n  | two\n  | \n  | four"},
		{"a window of a long line",
			`{"file":"a","line":1,"text":"…","column":4097,"cut":true}`,
			"a\n  1@4097~true: …"},
		{"files",
			`{"file":"a","matches":3}
{"file":"b c","matches":1}`,
			"file\tmatches\na\t3\nb c\t1"},
		{"find",
			`{"path":"a.go","type":"file","size":120,"modified":"2026-11-20T11:00:00Z"}
{"path":"sub","type":"dir","modified":"2026-11-20T11:00:00Z"}`,
			"path\ttype\tsize\tmodified\na.go\tfile\t120\t2026-11-20T11:00:00Z\nsub\tdir\t\t2026-11-20T11:00:00Z"},
		{"strings that look like values",
			`{"a":"1","b":""}
{"a":"true","b":"x\ty"}
{"a":null,"b":1e400}`,
			"a\tb\n\"1\"\t\"\"\n\"true\"\t\"x\\ty\"\nnull\t1e400"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, ok := lay(c.in)
			if !ok {
				t.Fatal("no layout")
			}
			expect.Same(t, strings.Join(got, "\n"), c.want)
		})
	}
}

func TestLayoutLeavesAloneWhatItCouldNotGiveBack(t *testing.T) {
	for name, in := range map[string]string{
		"not JSON":               "plain text\nmore",
		"one table record":       `{"a":1}`,
		"nested":                 `{"a":{"b":1}}` + "\n" + `{"a":{"b":2}}`,
		"array":                  "[1]\n[2]",
		"a name twice":           `{"a":1,"a":2}` + "\n" + `{"a":1}`,
		"lone surrogate":         `{"a":"\ud800"}` + "\n" + `{"a":"x"}`,
		"invalid UTF-8":          "{\"a\":\"\xff\"}\n{\"a\":\"x\"}",
		"blank line":             "{\"a\":1}\n\n{\"a\":2}",
		"two values on a line":   `{"a":1}{"a":2}` + "\n" + `{"a":3}`,
		"records with no common": `{"a":1}` + "\n" + `{"b":1}` + "\n" + `{"c":1}` + "\n" + `{"d":1}`,
		"empty objects":          "{}\n{}",
	} {
		if got, ok := lay(in); ok {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// Records can be had back from their layout. What is read back here is all a reader has: the lines.
func TestLayoutIsLossless(t *testing.T) {
	word := rapid.OneOf(
		rapid.StringN(0, 12, -1),
		rapid.SampledFrom(
			[]string{
				"", "12", "-1e3", "true", "null", "\t", "a\nb", "  x", "12: y", "| z", "\"q\"", "{}", "\\n", "\u2028", " 1", "1 ",
			},
		),
	)
	scalarValue := rapid.OneOf(
		rapid.Map(word, func(s string) any { return s }),
		rapid.Map(rapid.Int64(), func(n int64) any { return json.Number(strconv.FormatInt(n, 10)) }),
		rapid.SampledFrom(
			[]any{true, false, nil, json.Number("1.50"), json.Number("-0"), json.Number("12345678901234567890123")},
		),
	)
	flat := rapid.Custom(func(t *rapid.T) any {
		m := map[string]any{}
		for _, k := range rapid.SliceOfN(
			rapid.SampledFrom([]string{"a", "b", "c", "1", "x y", "\t", ""}), 1, 5,
		).Draw(t, "keys") {
			m[k] = scalarValue.Draw(t, "value")
		}
		return m
	})
	found := rapid.Custom(func(t *rapid.T) any {
		m := map[string]any{
			"file": rapid.SampledFrom([]string{"a", "b/c d", "12: x", "é"}).Draw(t, "file"),
			"line": json.Number(strconv.Itoa(rapid.IntRange(3, 999).Draw(t, "line"))),
			"text": word.Draw(t, "text"),
		}
		if rapid.Bool().Draw(t, "context") {
			m["before"] = []any{"one", "two"}[:rapid.IntRange(1, 2).Draw(t, "before")]
			m["after"] = []any{"three", "  | four"}[:rapid.IntRange(1, 2).Draw(t, "after")]
		}
		if rapid.Bool().Draw(t, "multiline") {
			m["end"] = json.Number("1200")
		}
		if rapid.Bool().Draw(t, "window") {
			m["column"], m["cut"] = json.Number("7"), true
		}
		return m
	})
	rapid.Check(t, func(t *rapid.T) {
		records := rapid.SliceOfN(
			rapid.SampledFrom([]*rapid.Generator[any]{flat, found}).Draw(t, "what"), 1, 8,
		).Draw(t, "records")
		var in strings.Builder
		for _, r := range records {
			b, err := json.Marshal(r)
			expect.Must(t, err)
			in.Write(append(b, '\n'))
		}
		rows, ok := lay(in.String())
		if !ok {
			return
		}
		shown := strings.Join(rows, "\n")
		expect.MustSame(t, unlay(t, shown), records, "%s as %s", in.String(), shown)
	})
}

// What a search and a listing write is laid out, and costs less so.
func TestLayoutOfOrdinaryRecordsIsCheaper(t *testing.T) {
	counter := tokens.New(tokens.O200k)
	for name, in := range map[string]string{
		"hits": `{"file":"a/b.go","line":3,"text":"func main() {"}` + "\n" + `{"file":"a/b.go","line":9,"text":"}"}`,
		"hits with context": `{"file":"a/b.go","line":3,"text":"func main() {","before":["one","two"],"after":["three"]}` +
			"\n" +
			`{"file":"a/c.go","line":12,"text":"}","before":["four"]}`,
		"table": `{"path":"a.go","type":"file","size":10}` + "\n" + `{"path":"b.go","type":"file","size":2000}`,
	} {
		rows, ok := lay(in)
		if shown := strings.Join(rows, "\n"); !ok || counter.Count(shown) >= counter.Count(in) {
			t.Errorf("%s: laid out: %v\n%s", name, ok, shown)
		}
	}
}

var hitLine = regexp.MustCompile(`^  (\d+)(?:-(\d+))?(?:@(\d+))?(?:~(true|false))?: (.*)$`)

// unlay reads a layout back.
func unlay(t *rapid.T, shown string) []any {
	rows := strings.Split(shown, "\n")
	if len(rows) > 1 && strings.HasPrefix(rows[1], "  ") && regexp.MustCompile(`^  \d+[-:+@~]`).MatchString(rows[1]) &&
		!strings.Contains(rows[0], "\t") {
		return unlayHits(t, rows)
	}
	var names []string
	for _, c := range strings.Split(rows[0], "\t") {
		names = append(names, fmt.Sprint(uncell(c)))
	}
	var out []any
	for _, row := range rows[1:] {
		m := map[string]any{}
		for i, c := range strings.Split(row, "\t") {
			if c != "" {
				m[names[i]] = uncell(c)
			}
		}
		out = append(out, m)
	}
	return out
}

func uncell(c string) any {
	d := json.NewDecoder(strings.NewReader(c))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err == nil && !d.More() && strings.TrimSpace(c) == c && c[0] != '{' && c[0] != '[' {
		return v
	}
	return c
}

func unlayHits(t *rapid.T, rows []string) []any {
	var out []any
	var before []any
	var last map[string]any
	file := ""
	for _, row := range rows {
		switch {
		case strings.HasPrefix(row, "  | "):
			last["text"] = last["text"].(string) + "\n" + row[4:]
		case regexp.MustCompile(`^  \d+- `).MatchString(row):
			before = append(before, row[strings.Index(row, "- ")+2:])
		case regexp.MustCompile(`^  \d+\+ `).MatchString(row):
			after, _ := last["after"].([]any)
			last["after"] = append(after, row[strings.Index(row, "+ ")+2:])
		case hitLine.MatchString(row):
			m := hitLine.FindStringSubmatch(row)
			last = map[string]any{"file": file, "line": json.Number(m[1]), "text": m[5]}
			if m[2] != "" {
				last["end"] = json.Number(m[2])
			}
			if m[3] != "" {
				last["column"] = json.Number(m[3])
			}
			if m[4] != "" {
				last["cut"] = m[4] == "true"
			}
			if before != nil {
				last["before"] = before
				before = nil
			}
			out = append(out, last)
		default:
			file = row
		}
	}
	return out
}
