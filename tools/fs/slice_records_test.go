package fs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSliceRecords(t *testing.T) {
	var diff strings.Builder
	diff.WriteString("--- a/f\n+++ b/f\n")
	for i := range 5 {
		fmt.Fprintf(&diff, "@@ -%d +%d @@\n-old %d\n+new %d\n", i*10+1, i*10+1, i, i)
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
		{"a.diff", "1-1", []string{"@@ -11 +11 @@\n-old 1\n+new 1"}, 1, 5},
		{"a.diff", "4-", []string{"@@ -41 +41 @@\n-old 4\n+new 4"}, 4, 5},
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
	if want := []string{"i,name\n0,\"a,\nb\"", "i,name\n1,c", "i,name\n2,d", "i,name\n3,e"}; calls < 3 || !cmp.Equal(rows, want) {
		t.Errorf("%d calls: %q", calls, rows)
	}
}

func TestSliceRecordsOfBrokenText(t *testing.T) {
	src, _ := shelf(t, map[string]string{
		"cut.json":      `[{"i":0},{"i":1},{"i":`,
		"broken.ndjson": "{\"i\":0}\n{\"i\":1}\n{oops}\n{\"i\":3}\n" + strings.Repeat("{\"i\":4}\n", 30),
	})
	s := cut(t, src, `{"source":"cut.json","records":"0-"}`)
	want := `cut.json breaks off in record 2: the text ends inside an object at byte 22; to look there: slice {"source":"cut.json","bytes":"0-122"}`
	if len(s.rows) != 2 || len(s.notes) != 1 || s.notes[0] != want {
		t.Errorf("%q %q", s.rows, s.notes)
	}
	if s = cut(t, src, `{"source":"cut.json","records":"1"}`); s.text() != `{"i":1}` {
		t.Errorf("%q", s.rows)
	}
	for args, want := range map[string]string{
		`{"source":"cut.json","records":"2"}`:      "cut.json breaks off in record 2: the text ends inside an object at byte 22",
		`{"source":"broken.ndjson","records":"3"}`: "broken.ndjson breaks off in record 2: invalid character 'o' where a key must stand at byte 17",
	} {
		if err := (&sheet{room: wide}).run(src, args); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

func TestSliceAt(t *testing.T) {
	big := strings.Repeat("0123456789 ", 5000)
	src, ids := shelf(t, map[string]string{
		"a.json":   `{"a/b":[1,{"c":null}],"big":"` + big + "\",\n" + `"\u202e":7,"x\ny":{"\r\n":8}}`,
		"a.ndjson": "{\"i\":0}\n{\"i\":{\"j\":[5]}}\n",
		"t.txt":    "no json\n",
	})
	for _, tt := range []struct{ file, at, want string }{
		{"a.json", "/a~1b/1/c", "null"}, {"a.json", "/a~1b", `[1,{"c":null}]`}, {"a.ndjson", "/1/i/j/0", "5"}, {"a.ndjson", "/0", `{"i":0}`}, {"a.json", `/\u202e`, "7"}, {"a.json", "/x\ny/\r\n", "8"},
		{"a.json", `/x\x0ay/\r\x0a`, "8"}, // as errors and grep show it
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
