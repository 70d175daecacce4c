package content

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/text/content/contenttest"
)

func pointed(t testing.TB, k Kind, text, pointer string) (string, error) {
	t.Helper()
	at, err := Point(context.Background(), strings.NewReader(text), k, pointer)
	at2, err2 := Point(context.Background(), iotest.OneByteReader(strings.NewReader(text)), k, pointer)
	if at != at2 || fmt.Sprint(err) != fmt.Sprint(err2) {
		t.Errorf("%q at %q: %v %v, in pieces of one byte %v %v", text, pointer, at, err, at2, err2)
	}
	if err != nil {
		return "", err
	}
	return text[at.Start:at.End], nil
}

// The document and the pointers of RFC 6901, section 5.
func TestPointRFC6901(t *testing.T) {
	const doc = `{"foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "e^f": 3, "g|h": 4, "i\\j": 5, "k\"l": 6, " ": 7, "m~n": 8}`
	for pointer, want := range map[string]string{
		"": doc, "/foo": `["bar", "baz"]`, "/foo/0": `"bar"`, "/": "0", "/a~1b": "1", "/c%d": "2", "/e^f": "3",
		"/g|h": "4", `/i\j": `: "", `/i\j`: "5", `/k"l`: "6", "/ ": "7", "/m~0n": "8",
	} {
		got, err := pointed(t, JSON, doc, pointer)
		if got != want || want == "" && !errors.Is(err, ErrNoValue) {
			t.Errorf("%q: %q %v, want %q", pointer, got, err, want)
		}
	}
}

func TestPoint(t *testing.T) {
	for _, tt := range []struct{ name, kind, text, pointer, want, err string }{
		{"escaped key", "json", `{"\u0061\u00e9": 1}`, "/aé", "1", ""},
		{"big integer", "json", `[0, 9007199254740993]`, "/1", "9007199254740993", ""},
		{"the last of equal keys", "json", `{"a":1,"b":2,"a":{"c":3}}`, "/a", `{"c":3}`, ""},
		{"the last of equal keys, on the way", "json", `{"a":{"c":1},"a":{"d":2}}`, "/a/c", "", `no value: /a is an object without "c"; its keys: d`},
		{"equal keys in an element", "json", `[{"a":1,"a":2},{"a":3}]`, "/0/a", "2", ""},
		{"a key that begins alike", "json", `{"ab":1,"a":2,"abc":3}`, "/a", "2", ""},
		{"record", "ndjson", "{\"a\":[1,2]}\n{\"a\":[3,4]}\n", "/1/a/0", "3", ""},
		{"record, whole", "ndjson", "{\"a\":1}\n{\"a\":2}", "/1", `{"a":2}`, ""},
		{"number at the end", "ndjson", "1\n2", "/1", "", "the value at /1 begins at byte 2 and is not complete: the text ends inside a number at byte 3"},
		{"behind a broken line", "ndjson", "{\"a\":1}\n{\"a\":[5,6,oops]}\n{\"a\":[7]}\n", "/1/a/0", "7", ""},
		{"behind a line that is cut off", "ndjson", "[0]\n[1]\n{\"a\":[5],\n{\"a\":[7]}\n", "/2/a/0", "7", ""},
		{"no record, and a broken line", "ndjson", "{\"a\":1}\n{\"a\":[5,6,oops]}\n", "/1/a/0", "", "no value: no record 1; there are 1 (0-0), and the first token of the pointer is the record"},
		{"in a record that is cut off", "ndjson", "{\"a\":1}\n{\"a\":[5,6,", "/1/a/0", "5", ""},
		{"all records", "ndjson", "1\n2\n", "", "1\n2\n", ""},
		{"before the cut", "json", `{"a":[1,{"b":2},{"c`, "/a/1/b", "2", ""},
		{"the last before the cut", "json", `{"a":1,"b":`, "/a", "1", ""},
		{"itself cut", "json", `{"a":[1,2`, "/a", "", "the value at /a begins at byte 5 and is not complete: the text ends inside a number at byte 9"},
		{"behind the cut", "json", `{"a":[1,2`, "/b", "", "the text ends inside a number at byte 9"},
		{"no index", "json", `{"a":[1,2]}`, "/a/x", "", "no value: /a is an array of 2: give 0-1, not x"},
		{"leading zero", "json", `[1,2]`, "/01", "", "no value: the top level is an array of 2: give 0-1, not 01"},
		{"past the end", "json", `[1,2]`, "/2", "", "no value: the top level is an array of 2: give 0-1, not 2"},
		{"empty array", "json", `{"a":[]}`, "/a/0", "", "no value: /a is an empty array"},
		{"empty object", "json", `{}`, "/a", "", "no value: the top level is an empty object"},
		{"no key", "json", `{"a":{"b":{"x":1,"y":2}}}`, "/a/b/c/d", "", `no value: /a/b is an object without "c"; its keys: x, y`},
		{"newlines", "json", `{"a\nb":{"x\ny":1}}`, "/a\nb/c\nd", "", `no value: /a\x0ab is an object without "c\nd"; its keys: x\x0ay`},
		{"newline in an array", "json", `{"a\nb":[1]}`, "/a\nb/c\nd", "", `no value: /a\x0ab is an array of 1: give 0-0, not c\x0ad`},
		{"newline and bad escape", "json", `{}`, "/a\nb~", "", `not a JSON Pointer: in a\x0ab~ a ~ must be written ~0 (and a / in a key ~1)`},
		{"below a string", "json", `{"a":"b"}`, "/a/0", "", "no value: /a is a string: nothing stands below it"},
		{"below a number", "json", `5`, "/a", "", "no value: the top level is a number: nothing stands below it"},
		{"no record", "ndjson", "1\n2\n", "/5/a", "", "no value: no record 5; there are 2 (0-1), and the first token of the pointer is the record"},
		{"in a record", "ndjson", "{\"a\":1}\n", "/0/b", "", `no value: /0 is an object without "b"; its keys: a`},
		{"nothing", "json", " ", "/a", "", "no value: the text is empty"},
		{"no pointer", "json", `{}`, "a/b", "", `not a JSON Pointer: a/b; it begins with "/", as in /items/0/name`},
		{"bad escape", "json", `{}`, "/a~2", "", "not a JSON Pointer: in a~2 a ~ must be written ~0 (and a / in a key ~1)"},
		{"broken", "json", `{"a":x}`, "/b", "", "invalid character 'x' where a value must stand in an object at byte 5"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := pointed(t, Kind(tt.kind), tt.text, tt.pointer)
			if got != tt.want || err == nil && tt.err != "" || err != nil && err.Error() != tt.err {
				t.Errorf("%q, %v\nwant %q, %s", got, err, tt.want, tt.err)
			}
		})
	}
}

func TestPointStopsAtAnElementsEnd(t *testing.T) {
	r := &counting{r: zeros{}}
	_, err := Point(context.Background(), &prefixed{"[7,8,", r}, JSON, "/1")
	if err != nil || r.n > 1<<20 {
		t.Errorf("%v after %d bytes", err, r.n)
	}
}

type prefixed struct {
	prefix string
	r      *counting
}

func (p *prefixed) Read(b []byte) (int, error) {
	if p.prefix != "" {
		n := copy(b, p.prefix)
		p.prefix = p.prefix[n:]
		return n, nil
	}
	return p.r.Read(b)
}

// leavesOf walks a text slowly, with encoding/json's tokens.
func leavesOf(t *rapid.T, text []byte) (leaves []Leaf, parts map[string]string) {
	parts = map[string]string{}
	var walk func(pointer string, raw json.RawMessage, member bool)
	walk = func(pointer string, raw json.RawMessage, member bool) {
		parts[pointer] = string(raw)
		d := json.NewDecoder(bytes.NewReader(raw))
		tok, err := d.Token()
		expect.Must(t, err)
		switch v := tok.(type) {
		case json.Delim:
			for i := 0; d.More(); i++ {
				token := fmt.Sprint(i)
				if v == '{' {
					key, _ := d.Token()
					token = strings.ReplaceAll(strings.ReplaceAll(key.(string), "~", "~0"), "/", "~1")
				}
				var child json.RawMessage
				expect.Must(t, d.Decode(&child))
				walk(pointer+"/"+token, child, v == '{')
			}
		case string:
			leaves = append(leaves, Leaf{pointer, v, true, member})
		default:
			leaves = append(leaves, Leaf{pointer, string(raw), false, member})
		}
	}
	walk("", text, false)
	return leaves, parts
}

// What Point and Leaves find is what a walk with encoding/json finds, at every place of a random value.
func TestPointAndLeavesAgreeWithEncodingJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, err := json.MarshalIndent(
			contenttest.DrawJSON(t, keys, 4), "", rapid.SampledFrom([]string{"", " "}).Draw(t, "indent"),
		)
		expect.Must(t, err)
		want, parts := leavesOf(t, text)
		var got []Leaf
		err = Leaves(context.Background(), bytes.NewReader(text), JSON, 1000, func(l Leaf) bool {
			got = append(got, l)
			return true
		})
		if err != nil || !cmp.Equal(want, got) {
			t.Fatalf("%s: %v\n%s", text, err, cmp.Diff(want, got))
		}
		for pointer, part := range parts {
			at, err := Point(context.Background(), bytes.NewReader(text), JSON, pointer)
			if err != nil || string(text[at.Start:at.End]) != part {
				t.Fatalf("%s at %q: %v %v, want %s", text, pointer, at, err, part)
			}
			lines := "null\n" + string(text) + "\n0\n"
			if at, err = Point(context.Background(), strings.NewReader(lines), NDJSON, "/1"+pointer); err != nil ||
				lines[at.Start:at.End] != part {
				t.Fatalf("%s at record 1, %q: %v %v, want %s", text, pointer, at, err, part)
			}
		}
		for _, wrong := range []string{"/nothing here", "/0/nothing here", "/999"} {
			if _, err := Point(context.Background(), bytes.NewReader(text), JSON, wrong); !errors.Is(err, ErrNoValue) {
				t.Fatalf("%s at %s: %v", text, wrong, err)
			}
		}
	})
}

func TestLeavesClips(t *testing.T) {
	long := strings.Repeat("世", 100)
	deep := strings.Repeat(`{"`+strings.Repeat("k", 300)+`":`, 40) + "1" + strings.Repeat("}", 40)
	text := `["` + long + `", "\u4e16\u4e16", 123456789012, "` + strings.Repeat("k", 10) + `", ` + deep + `]`
	var got []Leaf
	expect.Must(t, Leaves(context.Background(), strings.NewReader(text), JSON, 10, func(l Leaf) bool {
		got = append(got, l)
		return true
	}))
	want := []Leaf{
		{"/0", "世世世…", true, false}, {"/1", "世…", true, false}, {"/2", "1234567890…", false, false},
		{"/3", "kkkkkkkkkk", true, false},
	}
	expect.Same(t, got[:4], want)
	if p := got[4].Pointer; len(p) > maxPointer+len("…") || !strings.HasSuffix(p, "k…") {
		t.Errorf("a pointer of %d bytes ends with %q", len(p), p[len(p)-10:])
	}
}

func TestLeavesOfRecords(t *testing.T) {
	var got []Leaf
	err := Leaves(context.Background(), strings.NewReader("{\"a\":{\"b\":[1,\"x\"]}}\n7\n[true]\n8"), NDJSON, 100, func(l Leaf) bool {
		got = append(got, l)
		return l.Pointer != "/2/0" || l.Value == "true"
	})
	want := []Leaf{
		{"/0/a/b/0", "1", false, false}, {"/0/a/b/1", "x", true, false}, {"/1", "7", false, false},
		{"/2/0", "true", false, false}, {"/3", "8", false, false},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
	n := 0
	if err := Leaves(
		context.Background(), strings.NewReader("[1,2,3]x"), JSON, 9, func(Leaf) bool { n++; return n < 2 },
	); err != nil || n != 2 {
		t.Error(n, err)
	}
}

func FuzzPointer(f *testing.F) {
	f.Add(`{"a":[1,{"b":null}],"~/":"x"}`, "/a/1/b", false)
	f.Add("{\"a\":1}\n{\"a\":2}\n", "/1/a", true)
	f.Add(`{"a":1,"a":{"a":[]}`, "/a/a", false)
	f.Fuzz(func(t *testing.T, text, pointer string, lines bool) {
		if len(text) > 4096 || len(pointer) > 200 {
			return
		}
		k := JSON
		if lines {
			k = NDJSON
		}
		got, err := pointed(t, k, text, pointer)
		if err != nil && len(err.Error()) > 600 {
			t.Errorf("an error of %d bytes: %v", len(err.Error()), err)
		}
		if err == nil && pointer != "" && !json.Valid([]byte(got)) {
			t.Errorf("%q at %q is %q", text, pointer, got)
		}
		// The last of equal keys, as encoding/json has it.
		var doc any
		if lines || json.Unmarshal([]byte(text), &doc) != nil || strings.Contains(text, `\ud`) {
			return
		}
		tokens, bad := splitPointer(pointer)
		if bad != nil {
			return
		}
		there := true
		for _, token := range tokens {
			var object map[string]any
			var list []any
			if object, there = doc.(map[string]any); there {
				doc, there = object[token]
			} else if list, there = doc.([]any); there {
				there = false
				for i := range list {
					if fmt.Sprint(i) == token {
						doc, there = list[i], true
						break
					}
				}
			}
			if !there {
				break
			}
		}
		if there != (err == nil) && isASCII(text) {
			t.Errorf("%q at %q: %v, encoding/json finds it: %v", text, pointer, err, there)
		}
	})
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
