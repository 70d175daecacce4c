package fs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/tools/toolstest"
	"pgregory.net/rapid"
)

// jsonValue is a value with keys that need care in a JSON Pointer, compact or with spaces, as JSON text.
func jsonValue(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		kinds := 3
		if depth > 0 {
			kinds = 5
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0:
			return rapid.IntRange(-1000, 1000).Draw(t, "number")
		case 1:
			return rapid.StringN(0, 40, -1).Draw(t, "string")
		case 2:
			return nil
		case 3:
			return rapid.SliceOfN(jsonValue(depth-1), 0, 12).Draw(t, "array")
		}
		return rapid.MapOfN(
			rapid.SampledFrom([]string{"a", "a/b", "~", "", "é", `"q"`, "0", "x y"}), jsonValue(depth-1), 0, 8,
		).Draw(t, "object")
	})
}

// putTogether reads a value by slice at: it follows the next calls, and where a row is cut, the call that shows it
// whole.
func putTogether(t failing, sources func(args string) *sheet, args string) json.RawMessage {
	var rows []string
	for calls := 0; ; calls++ {
		if calls > 1000 {
			t.Fatalf("%s never ends", args)
		}
		s := sources(args)
		if s.next == nil && !s.clipped && !s.spanned {
			sep := "\n"
			if len(rows) > 0 { // the end of what was shown by bytes
				sep = ""
			}
			return json.RawMessage(strings.Join(append(rows, s.rows...), sep))
		}
		if s.reach != "" { // a string or number over a page, by bytes: it has no way down
			rows = append(rows, s.rows...)
			if s.next == nil {
				return json.RawMessage(strings.Join(rows, ""))
			}
			args = marshalled(t, s.next.Args)
			continue
		}
		return putElements(t, sources, args, s)
	}
}

func putElements(t failing, sources func(args string) *sheet, args string, s *sheet) json.RawMessage {
	var parts []string
	object := false
	total := s.total
	for calls := 0; ; calls++ {
		if int64(len(parts)) != s.first || s.total != total || calls > 1000 {
			t.Fatalf("%s: from %d of %d after %d of %d", args, s.first, s.total, len(parts), total)
		}
		for i, row := range s.rows {
			if s.clipped {
				value := string(putTogether(t, sources, marshalled(t, s.more[i].Args)))
				if key := keyOf(row); key != "" {
					object = true
					value = key + ":" + value
				}
				row = value
			} else if keyOf(row) != "" {
				object = true
			}
			parts = append(parts, row)
		}
		if s.next == nil {
			break
		}
		args = marshalled(t, s.next.Args)
		s = sources(args)
	}
	if int64(len(parts)) != total {
		t.Fatalf("%s: %d of %d", args, len(parts), total)
	}
	if object {
		return json.RawMessage("{" + strings.Join(parts, ",") + "}")
	}
	return json.RawMessage("[" + strings.Join(parts, ",") + "]")
}

// keyOf is the key that begins a member, quoted; "" for an element.
func keyOf(row string) string {
	d := json.NewDecoder(strings.NewReader(row))
	if t, err := d.Token(); err == nil {
		if _, ok := t.(string); ok && strings.HasPrefix(strings.TrimLeft(row[d.InputOffset():], " \n"), ":") {
			return row[:d.InputOffset()]
		}
	}
	return ""
}

func marshalled(t failing, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return string(b)
}

// A value over a page is shown element by element, at every depth, and nothing of it is lost.
func TestSliceAtPagesByElements(t *testing.T) {
	dir := t.TempDir()
	src := toolstest.Roots(t, dir)
	rapid.Check(t, func(t *rapid.T) {
		value := map[string]any{"items": rapid.SliceOfN(jsonValue(3), 0, 30).Draw(t, "items"), "n": 1}
		text, err := json.Marshal(value)
		if rapid.Bool().Draw(t, "indented") {
			text, err = json.MarshalIndent(value, "", " ")
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "v.json"), text, 0o600); err != nil {
			t.Fatal(err)
		}
		room := rapid.IntRange(60, 600).Draw(t, "room")
		ask := func(args string) *sheet {
			s := &sheet{room: room}
			if err := s.run(src, args); err != nil {
				t.Fatalf("slice %s of %s: %v", args, text, err)
			}
			return s
		}
		got := putTogether(t, ask, `{"source":"v.json","at":""}`)
		var want, have bytes.Buffer
		if err := json.Compact(&want, text); err != nil {
			t.Fatal(err)
		}
		if err := json.Compact(&have, got); err != nil || !bytes.Equal(have.Bytes(), want.Bytes()) {
			t.Fatalf("on pages of %d, %v:\n%s\nput together:\n%s", room, err, text, got)
		}
	})
}

func TestSliceAtWithRecords(t *testing.T) {
	var items []string
	for i := range 3000 {
		items = append(items, fmt.Sprintf(`{"i":%d}`, i))
	}
	src, _ := shelf(t, map[string]string{
		"a.json":   `{"items":[` + strings.Join(items, ",") + `],"by":{"x":1,"y":[2]},"s":"text","none":[]}`,
		"a.ndjson": "{\"i\":0}\n{\"i\":[5,6]}\n",
	})
	for args, want := range map[string]string{
		`{"source":"a.json","at":"/items","records":"7-8"}`: `{"i":7}` + "\n" + `{"i":8}`,
		`{"source":"a.json","at":"/items","records":"-1"}`:  `{"i":2999}`,
		`{"source":"a.json","at":"/by","records":"1-"}`:     `"y":[2]`,
		`{"source":"a.ndjson","at":"/1/i","records":"1"}`:   `6`,
		`{"source":"a.ndjson","at":"","records":"1"}`:       `{"i":[5,6]}`,
	} {
		if s := cut(t, src, args); s.text() != want {
			t.Errorf("%s: %q", args, s.text())
		}
	}
	s := &sheet{room: 100}
	if err := s.run(src, `{"source":"a.json","at":"/items"}`); err != nil || s.total != 3000 || s.next == nil {
		t.Fatalf("%v: of %d, next %v", err, s.total, s.next)
	}
	if next := marshalled(t, s.next.Args); next != fmt.Sprintf(
		`{"source":"a.json","records":"%d-","at":"/items"}`, len(s.rows),
	) {
		t.Errorf("next: %s", next)
	}
	for args, want := range map[string]string{
		`{"source":"a.json","at":"/s","records":"0"}`:              "at /s in a.json is not an array or object with elements, so it has no records",
		`{"source":"a.json","at":"/none","records":"0"}`:           "at /none in a.json is not an array or object with elements, so it has no records",
		`{"source":"a.json","at":"/by","records":"2-"}`:            "records 2-: past the end: a.json at /by has 2 records (0-1)",
		`{"source":"a.json","at":"/by","records":"x"}`:             `records "x": not a range; valid ranges are 4, 4-8, 4- and -9 (the last 9)`,
		`{"source":"a.json","at":"/by","records":"0","lines":"1"}`: "lines and records and at were given: give exactly one of lines, chars, bytes, records, at",
	} {
		if err := (&sheet{room: wide}).run(src, args); err == nil || err.Error() != want {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// A page of bytes or chars says which of how many it shows.
func TestSliceTellsTheRangeItShows(t *testing.T) {
	text := strings.Repeat("é", 30_000)
	src, ids := shelf(t, map[string]string{"t.txt": text, "s.json": `["` + text + `"]`, "b.bin": strings.Repeat("\x00\xff", 5000),
		"w.txt": "\xff\xfe" + strings.Repeat("a\x00", 30_000)})
	for _, tt := range []struct{ args, want string }{
		{`{"source":"t.txt","bytes":"10-"}`, "bytes 10-1009 of 60000"},
		{`{"source":"t.txt","chars":"10-"}`, "chars 10-509 of 30000"},
		{`{"source":"` + ids["t.txt"] + `","chars":"10-"}`, "chars 10-509 of 30000"},
		{`{"source":"s.json","at":"/0"}`, "bytes 1-999 of 60004"},
		{`{"source":"b.bin","bytes":"16-"}`, "bytes 16-239 of 10000"},
		{`{"source":"w.txt","bytes":"0-"}`, "bytes 0-999 of 30000"},
		{`{"source":"w.txt","chars":"5-"}`, "chars 5-1004 of 30000"},
	} {
		s := &sheet{room: 1000}
		if err := s.run(src, tt.args); err != nil || s.reach != tt.want || s.next == nil {
			t.Errorf("%s: %q, %v", tt.args, s.reach, err)
		}
	}
}
