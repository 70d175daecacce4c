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
	const long = `{"title": "A long title", "items": ["first item here", "second item here", "third it`
	for _, tt := range []struct {
		name, kept, part string
		join             string // "" refused
		want             string // the joined text, compared without white space outside of strings
		reason           string // part of it
	}{
		{"at the restart text", long, `"second item here", "third item here"]}`, "restart of an element",
			`{"title": "A long title", "items": ["first item here", "second item here", "third item here"]}`, ""},
		{"from the cut-off element", long, `"third item here"]}`, "restart of an element",
			`{"title": "A long title", "items": ["first item here", "second item here", "third item here"]}`, ""},
		{"other white space in a string", `{"items": ["caf\u00e9 au lait", "x`, "\"café   au lait\",\r\n\"xy\"]}",
			"", "", "broken"},
		{"escapes do not matter", `{"items": ["caf\u00e9 au lait bien chaud", "x`, "\"café au lait bien chaud\",\r\n\"xy\"]}",
			"restart text", `{"items": ["café au lait bien chaud", "xy"]}`, ""},
		{"all over again", long, `{"title":"A long title","items":["first item here","second item here","third item here"]}`,
			"restart of the document",
			`{"title": "A long title", "items": ["first item here", "second item here", "third item here"]}`, ""},
		{"a plain continuation in a string", long, `em here"]}`, "plain continuation",
			`{"title": "A long title", "items": ["first item here", "second item here", "third item here"]}`, ""},
		{"some words again", `{"text": "the quick brown fox jumps ov`, `fox jumps over the lazy dog"}`, "overlap",
			`{"text": "the quick brown fox jumps over the lazy dog"}`, ""},
		{"too few words again", `{"text": "the quick brown fo`, `fox jumps"}`, "", "", "may or may not repeat"},
		{"inside a number", `{"n": 12`, `34}`, "", "", "inside of a number"},
		{"between bare values", `[10, 20,`, `30]`, "", "", "between bare values"},
		{"a literal", `[true, fal`, `se]`, "", "", "inside of a literal"},
		{"nearly but not word for word", long, `"third object here"]}`, "", "", "broken"},
		{"an explanation in a string", long, `Here is the rest: item"]}`, "", "", "explanation"},
		{"an ellipsis", long, `…em here"]}`, "", "", "explanation"},
		{"a sentence in a word", long, `Item here"]}`, "", "", "sentence"},
		{"a sentence", `{"text": "some words `, `I cannot go on with this.`, "", "", ""},
		{"another document with the same beginning", before, `{"sections": [{"id": "l", "elements": [{"items": ["other"]}]}]}`, "", "", ""},
		{"a doubled name", `{"alpha": 1, "beta": [1, 2], `, `"alpha": 2}`, "", "", "repeat a name"},
		{"prose", long, `I cannot continue this document.`, "", "", ""},
		{"a fenced part", long, "Sure, here it is:\n```json\n\"third item here\"]}\n```\nDone.", "restart of an element",
			`{"title": "A long title", "items": ["first item here", "second item here", "third item here"]}`, ""},
		{"two fenced parts", long, "```json\n1\n```\nand\n```json\n2\n```\n", "", "", "two fenced blocks"},
		{"new lines of NDJSON", "{\"a\":1}\n{\"a\":2}\n", "{\"a\":3}\n", "plain continuation", `{"a":1}{"a":2}{"a":3}`, ""},
		{"a cut line of NDJSON", "{\"a\":1}\n{\"a\":\"some words th", "{\"a\":\"some words that\"}\n", "restart text",
			`{"a":1}{"a":"some words that"}`, ""},
		{"whole already", `{"a":1}`, `{"b":2}`, "", "", "whole already"},
		{"no section yet", `{"sections": []}`, `{"sections": [{"id": "a", "elements": [{"text": "x"}]}]}`,
			"restart of the document", `{"sections": [{"id": "a", "elements": [{"text": "x"}]}]}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := New(Options{})
			add(t, d, tt.kept)
			before := string(d.Text())
			r := add(t, d, tt.part)
			if tt.join == "" {
				if r.Join != "" || string(d.Text()) != before || !strings.Contains(r.Reason, tt.reason) {
					t.Errorf("%+v, text %q", r, d.Text())
				}
				return
			}
			if got := unitsOf(d.Text()); r.Join != tt.join &&
				!(tt.join == "restart of an element" && r.Join == "restart text") ||
				!slices.Equal(got, unitsOf([]byte(tt.want))) {
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
