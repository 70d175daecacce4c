package continuation

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

func add(t *testing.T, d *Document, part string) Result {
	t.Helper()
	return d.Add([]byte(part))
}

// TestJoins has one case for each way to join, and one for each that is refused.
func TestJoins(t *testing.T) {
	for _, tt := range expect.Table[struct{ Name, Kept, Part, Join, Want, Reason string }](t, "testdata/joins.tsv") {
		t.Run(tt.Name, func(t *testing.T) {
			d := New(Options{})
			add(t, d, tt.Kept)
			before := string(d.Text())
			r := add(t, d, tt.Part)
			if tt.Join == "" {
				if r.Join != "" || string(d.Text()) != before || !strings.Contains(r.Reason, tt.Reason) {
					t.Errorf("%+v, text %q", r, d.Text())
				}
				return
			}
			if got := unitsOf(d.Text()); r.Join != tt.Join &&
				!(tt.Join == "restart of an element" && r.Join == "restart text") ||
				!slices.Equal(got, unitsOf([]byte(tt.Want))) {
				t.Errorf("%+v, text %s", r, d.Text())
			}
		})
	}
}

// section returns a document with one section of each kind, as its writer would begin it.
const before = `{"sections": [
 {"id": "l", "content_type": "bullet_list", "elements": [{"items": ["one", "two"]}]},
 {"id": "t", "content_type": "table", "elements": [{"headers": ["a", "b"], "rows": [[1, 2], [3, 4]]}]},
 {"id": "c", "content_type": "code_block", "elements": [{"language": "go", "code": "a()\nb()\nc()\n"}]},
 {"id": "p", "content_type": "paragraph", "elements": [{"text": "whole"}, {"text": "cut o`

// TestStopRules has every reason to stop, and what is none.
func TestStopRules(t *testing.T) {
	ruler := `{"text": "` + strings.Repeat("=", 300)
	for _, tt := range []struct {
		name    string
		parts   []string
		verdict Verdict
		reason  string
	}{
		{"nothing", []string{""}, Refused, "empty"},
		{"no section yet", []string{`{"sections": []}`}, Continue, "no section yet"},
		{"cut", []string{`{"sections": [{"id"`}, Continue, ""},
		{"whole", []string{`{"sections": [{"id":"a","elements":[{"text":"x"}]}]}`}, Done, ""},
		{"a closing bracket at the end is nothing", []string{`{"a": "]}`}, Continue, ""},
		{"broken", []string{"{\"a\": 1,\n \"b\": 2 3}"}, Stop, "line 2"},
		{"text behind it", []string{`{"a": 1} Thanks!`}, Stop, "text follows"},
		{"an equal part", []string{`{"items": ["one element", "tw`, `o", "three`, `o", "three`}, Stop, "same as part 2"},
		{"a loop in a string", []string{`{"text": "` + strings.Repeat("I will now continue the text. And again: ", 4)}, Stop, "repeats itself"},
		{"a ruler", []string{ruler}, Continue, ""},
		{"equal records", []string{`[` + strings.Repeat(`{"name": "the same record again and again"},`, 9)},
			Continue, ""},
		{"refused twice", []string{`{"n": [1, 2`, `7]`, `8]`}, Stop, "no new text"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := New(Options{})
			var r Result
			for _, p := range tt.parts {
				r = add(t, d, p)
			}
			if r.Verdict != tt.verdict || !strings.Contains(r.Reason, tt.reason) {
				t.Errorf("%+v", r)
			}
		})
	}
	d := New(Options{MaxParts: 3})
	for i, part := range []string{`["element one",`, `"element two",`, `"element three",`, `"element four",`} {
		r := add(t, d, part)
		expect.Equal(t, r.Verdict == Stop, i == 3, "part %d of at most 3: %+v", i+1, r)
	}
}

// TestOpenedAgain opens a document with its state, which knows the parts that arrived, and with a damaged one.
func TestOpenedAgain(t *testing.T) {
	d := New(Options{})
	add(t, d, `{"items": ["one element", "tw`)
	add(t, d, `o", "three`)
	for state, want := range map[string]Verdict{string(d.Stored()): Stop, "": Refused, `{"history":{"parts":[1`: Refused} {
		again := Open(d.Text(), []byte(state), Options{})
		if r := add(t, again, `o", "three`); r.Verdict != want || again.Restart() != d.Restart() {
			t.Errorf("state %s: %+v", state, r)
		}
	}
}

func FuzzAdd(f *testing.F) {
	f.Add([]byte(before), []byte(`ff"}]}]}`))
	f.Add([]byte("{\"a\":1}\n"), []byte("```json\n[\n```"))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		d := New(Options{})
		for _, part := range [][]byte{first, second} {
			was := slices.Clone(d.Text())
			r := d.Add(part)
			if r.Join == "" && !bytes.Equal(was, d.Text()) {
				t.Errorf("%q was refused, and the text changed to %q", part, d.Text())
			}
			if r.State == Whole && r.Join != "" && !valid(d.Text()) {
				t.Errorf("%q is no JSON", d.Text())
			}
			_ = d.Answer(r, Names{Kept: "obs:0"})
			d = Open(slices.Clone(d.Text()), d.Stored(), Options{})
		}
	})
}

// valid reports whether a text is JSON values in a row.
func valid(text []byte) bool {
	d := json.NewDecoder(bytes.NewReader(text))
	for {
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return err == io.EOF
		}
	}
}
