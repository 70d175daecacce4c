package fs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSliceRecords(t *testing.T) {
	var diff strings.Builder
	for i := range 5 {
		fmt.Fprintf(&diff, "--- a/f%d\n+++ b/f%d\n@@ -%d +%d @@\n-old %d\n+new %d\n", i, i, i*10+1, i*10+1, i, i)
	}
	files := map[string]string{
		"a.json":   "[\n  {\"i\": 0},\n  {\n    \"i\": 1\n  },\n  2,\n  \"three\"\n]\n",
		"a.ndjson": "{\"i\":0}\n{\"i\":1}\n{\"i\":2}\n{\"i\":3}\n",
		"a.csv":    "i,name\n0,\"a,\nb\"\n1,c\n2,d\n3,e\n",
		"a.diff":   diff.String(),
		"o.json":   `{"a":[1,2]}`,
	}
	src, ids := shelf(t, files)
	for _, tt := range []struct {
		file, records string
		rows          []string
		first, total  int64
	}{
		{"a.json", "0-1", []string{`{"i": 0}`, "{\n    \"i\": 1\n  }"}, 0, 4},
		{"a.json", "2-", []string{"2", `"three"`}, 2, 4},
		{"a.json", "-1", []string{`"three"`}, 3, 4},
		{"a.json", "-9", []string{`{"i": 0}`, "{\n    \"i\": 1\n  }", "2", `"three"`}, 0, 4},
		{"a.ndjson", "1-2", []string{`{"i":1}`, `{"i":2}`}, 1, 4},
		{"a.csv", "0", []string{"i,name\n0,\"a,\nb\""}, 0, 4},
		{"a.csv", "1-2", []string{"i,name\n1,c", "2,d"}, 1, 4},
		{"a.csv", "-2", []string{"i,name\n2,d", "3,e"}, 2, 4},
		{"a.diff", "1-1", []string{"--- a/f1\n+++ b/f1\n@@ -11 +11 @@\n-old 1\n+new 1"}, 1, 5},
		{"a.diff", "4-", []string{"--- a/f4\n+++ b/f4\n@@ -41 +41 @@\n-old 4\n+new 4"}, 4, 5},
		{"o.json", "0", []string{`{"a":[1,2]}`}, 0, 1},
	} {
		for _, source := range []string{tt.file, ids[tt.file]} {
			s := cut(t, src, fmt.Sprintf(`{"source":%q,"records":%q}`, source, tt.records))
			if diff := cmp.Diff(tt.rows, s.rows); diff != "" || s.first != tt.first || s.total != tt.total || s.next != nil {
				t.Errorf("%s %s: %d of %d\n%s", source, tt.records, s.first, s.total, diff)
			}
		}
	}
	// In pages, the header stands on each.
	rows, calls := reading(t, src, `{"source":"a.csv","records":"0-"}`, 12)
	if want := []string{"i,name\n0,\"a,\nb\"", "i,name\n1,c", "i,name\n2,d", "i,name\n3,e"}; calls < 3 ||
		!cmp.Equal(rows, want) {
		t.Errorf("%d calls: %q", calls, rows)
	}
}

func TestSliceRecordsOfBrokenText(t *testing.T) {
	src, _ := shelf(t, map[string]string{
		"cut.json":      `[{"i":0},{"i":1},{"i":`,
		"broken.ndjson": "{\"i\":0}\n{\"i\":1}\n{oops}\n{\"i\":3}\n" + strings.Repeat("{\"i\":4}\n", 30),
		"line.ndjson":   numbered(0, 1000) + `{"i":1000,"s":` + "\n" + numbered(1001, 2000),
		"spread.ndjson": "{\"i\":0}\n{\"i\":\n" + numbered(2, 100),
		"number.ndjson": numbered(0, 300) + "5",
		"number.json":   "[1,2,3,45",
		"both.ndjson":   numbered(0, 3) + "oops\n" + numbered(3, 5) + "x\n[5,",
	})
	// Lines that are no JSON have no number; what stands behind them is reached, and they are told.
	for args, want := range map[string][]string{
		`{"source":"line.ndjson","records":"-1"}`:        {`{"i":1999}`, "1998 1999", "1 line of line.ndjson is not JSON and was skipped: a line begins inside an object at byte 9905;"},
		`{"source":"line.ndjson","records":"999-1000"}`:  {`{"i":999} {"i":1001}`, "999 1999", "1 line of line.ndjson is not JSON"},
		`{"source":"line.ndjson","at":"/1500/i"}`:        {"1501", "0 0", ""},
		`{"source":"broken.ndjson","records":"1-2"}`:     {`{"i":1} {"i":3}`, "1 33", "1 line of broken.ndjson is not JSON and was skipped: invalid character 'o' where a key must stand at byte 17;"},
		`{"source":"broken.ndjson","at":"/2/i"}`:         {"3", "0 0", ""},
		`{"source":"spread.ndjson","records":"0-3"}`:     {`{"i":0}`, "0 -1 7-", "spread.ndjson cannot be parsed in record 1: invalid character '{'"},
		`{"source":"spread.ndjson","records":"-1"}`:      {`{"i":0}`, "0 -1 7-", "spread.ndjson cannot be parsed in record 1: invalid character '{'"},
		`{"source":"number.ndjson","records":"299-301"}`: {`{"i":299}`, "299 300 2889-", "number.ndjson cannot be parsed in record 300: the text ends inside a number at byte 2891"},
		`{"source":"number.json","records":"0-9"}`:       {"1 2 3", "0 3 6-", "number.json cannot be parsed in record 3: the text ends inside a number at byte 9"},
		// all records are not all of the text
		`{"source":"number.json","records":"0-2"}`: {"1 2 3", "0 3 6-", "number.json cannot be parsed in record 3"},
		`{"source":"number.json","records":"0-1"}`: {"1 2", "0 3", "number.json cannot be parsed in record 3"},
	} {
		s := cut(t, src, args)
		place := fmt.Sprint(s.first, s.total)
		if s.next != nil {
			place += " " + s.next.Args.(sliceArgs).Bytes
		}
		if len(s.notes) != min(len(want[2]), 1) {
			t.Errorf("%s: %q", args, s.notes)
		}
		if got := strings.Join(s.rows, " "); got != want[0] || strings.Contains(args, "records") && place != want[1] ||
			!strings.HasPrefix(strings.Join(s.notes, "\n"), want[2]) {
			t.Errorf("%s: %s, %s, %q, want %q", args, got, place, s.notes, want)
		}
	}
	both := cut(t, src, `{"source":"both.ndjson","records":"3-"}`) // lines that are lost are told, whatever ends the text
	if len(both.rows) != 2 || both.total != 5 || len(both.notes) != 2 ||
		!strings.HasPrefix(
			both.notes[0],
			"2 lines of both.ndjson are not JSON and were skipped; the first: invalid character 'o' where a value must stand at byte 24;",
		) ||
		!strings.HasPrefix(
			both.notes[1], "both.ndjson cannot be parsed in record 5: the text ends inside an array at byte 50;",
		) {
		t.Errorf("%q of %d: %q", both.rows, both.total, both.notes)
	}
	s := cut(t, src, `{"source":"cut.json","records":"0-"}`)
	want := `cut.json cannot be parsed in record 2: the text ends inside an object at byte 22; to see it: slice {"source":"cut.json","bytes":"0-122"}`
	if len(s.rows) != 2 || len(s.notes) != 1 || s.notes[0] != want {
		t.Errorf("%q %q", s.rows, s.notes)
	}
	if s = cut(t, src, `{"source":"cut.json","records":"1"}`); s.text() != `{"i":1}` {
		t.Errorf("%q", s.rows)
	}
	for args, want := range map[string]string{
		`{"source":"cut.json","records":"2"}`:       "cut.json cannot be parsed in record 2: the text ends inside an object at byte 22",
		`{"source":"broken.ndjson","records":"33"}`: "records 33: past the end: broken.ndjson has 33 records (0-32)",
		`{"source":"spread.ndjson","records":"9"}`:  "spread.ndjson cannot be parsed in record 1: invalid character '{'",
	} {
		if err := (&sheet{room: wide}).run(src, args); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// numbered is NDJSON of objects with these numbers.
func numbered(from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, "{\"i\":%d}\n", i)
	}
	return b.String()
}

func TestSliceAt(t *testing.T) {
	big := strings.Repeat("0123456789 ", 5000)
	src, ids := shelf(t, map[string]string{
		"a.json":   `{"a/b":[1,{"c":null}],"big":"` + big + "\",\n" + `"\u202e":7,"x\ny":{"\r\n":8}}`,
		"cut.json": `{"x\ny":[5,6,7],"z`,
		"a.ndjson": "{\"i\":0}\n{\"i\":{\"j\":[5]}}\n",
		"t.txt":    "no json\n",
	})
	for _, tt := range []struct{ file, at, want string }{
		{"a.json", "/a~1b/1/c", "null"}, {"a.json", "/a~1b", `[1,{"c":null}]`}, {"a.ndjson", "/1/i/j/0", "5"}, {"a.ndjson", "/0", `{"i":0}`}, {"a.json", `/\u202e`, "7"}, {"a.json", "/x\ny/\r\n", "8"},
		{"a.json", `/x\x0ay/\r\x0a`, "8"}, // as errors, receipts and grep show it
		{"cut.json", `/x\x0ay/1`, "6"},
		{"a.ndjson", "", "{\"i\":0}\n{\"i\":{\"j\":[5]}}\n"},
	} {
		for _, source := range []string{tt.file, ids[tt.file]} {
			s := cut(t, src, arguments(t, "source", source, "at", tt.at))
			if s.text() != tt.want || s.next != nil {
				t.Errorf("%s at %s: %q", source, tt.at, s.text())
			}
		}
	}
	rows, calls := reading(t, src, `{"source":"a.json","at":"/big"}`, 20_000)
	if got := strings.Join(rows, ""); got != `"`+big+`"` || calls < 3 || calls > 20 {
		t.Errorf("%d calls for %d bytes", calls, len(got))
	}
	for args, want := range map[string]string{
		`{"source":"a.json","at":"/x"}`:      `at /x in a.json: no value: the top level is an object without "x"; its keys: a/b, big, \u{202e}, x\x0ay`,
		`{"source":"a.json","at":"/x\ny/z"}`: `at /x\x0ay/z in a.json: no value: /x\x0ay is an object without "z"; its keys: \r\x0a`,
		`{"source":"a.json","at":"/a~1b/2"}`: "at /a~1b/2 in a.json: no value: /a~1b is an array of 2: give 0-1, not 2",
		`{"source":"a.json","at":"x"}`:       `at x in a.json: not a JSON Pointer: x; it begins with "/", as in /items/0/name`,
		`{"source":"t.txt","at":"/x"}`:       "at: t.txt is text, not JSON: give lines, chars, bytes or records",
	} {
		if err := (&sheet{room: wide}).run(src, args); err == nil || err.Error() != want {
			t.Errorf("%s: %v", args, err)
		}
	}
}
