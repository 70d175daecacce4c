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
	for _, tt := range expect.Table[struct{ Name, Kind, Text, Pointer, Want, Err string }](t, "testdata/point.tsv") {
		t.Run(tt.Name, func(t *testing.T) {
			got, err := pointed(t, Kind(tt.Kind), tt.Text, tt.Pointer)
			if got != tt.Want || err == nil && tt.Err != "" || err != nil && err.Error() != tt.Err {
				t.Errorf("%q, %v\nwant %q, %s", got, err, tt.Want, tt.Err)
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
