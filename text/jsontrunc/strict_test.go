package jsontrunc

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		state      State
		inside     string
		offset     int64
		line       int64
		values     int64
		duplicates int64
	}{
		{"nothing", "", Empty, "", 0, 1, 0, 0},
		{"blank", " \n", Empty, "", 2, 2, 0, 0},
		{"literal", "true", Whole, "", 4, 1, 1, 0},
		{"half a literal", "tru", Cut, "literal", 3, 1, 0, 0},
		{"number", "12", Ambiguous, "number", 2, 1, 1, 0},
		{"number and a newline", "12\n", Whole, "", 3, 2, 1, 0},
		{"half a number", "-", Cut, "number", 1, 1, 0, 0},
		{"number in an array", "[12", Cut, "number", 3, 1, 0, 0},
		{"lines", "{\"a\":1}\n{\"a\":2}\n", Whole, "", 16, 3, 2, 0},
		{"values on one line", "{\"a\":1} {\"a\":2}", Trailing, "between values", 7, 1, 1, 0},
		{"a number after a value", "{\"a\":1} 2", Trailing, "between values", 7, 1, 1, 0},
		{"prose after it", "{\"a\":1}\nDone.", Trailing, "between values", 8, 2, 1, 0},
		{"prose like a literal after it", "{\"a\":1}\nnote that", Trailing, "between values", 9, 2, 1, 0},
		{"a list after it", "{\"a\":1}\n- item", Trailing, "between values", 9, 2, 1, 0},
		{"a ruler after it", "{\"a\":1}\n---\n", Trailing, "between values", 9, 2, 1, 0},
		{"brackets after it", "{\"a\":1}\n[Note: x]", Trailing, "between values", 9, 2, 1, 0},
		{"a template after it", "{\"a\":1}\n{% x %}", Trailing, "between values", 9, 2, 1, 0},
		{"a broken line", "{\"a\":1}\n{\"a\" 2}", Broken, "object", 13, 2, 1, 0},
		{"half a literal and the file's newline", "[true, fals\n", Cut, "literal", 11, 1, 0, 0},
		{"half a number and the file's newline", "[1.\r\n", Cut, "number", 3, 1, 0, 0},
		{"half a number and more", "[1.\n2]", Broken, "number", 3, 1, 0, 0},
		{"prose", "Done.", Broken, "between values", 0, 1, 0, 0},
		{"broken on line 3", "[1,\n2,\n3 4]", Broken, "array", 9, 3, 0, 0},
		{"after a comma", "[1, ", Cut, "after a comma in an array", 4, 1, 0, 0},
		{"after a colon", "{\"a\":\n", Cut, "after a colon in an object", 6, 2, 0, 0},
		{"in a key", "{\"a", Cut, "key", 3, 1, 0, 0},
		{"after a key", "{\"a\"", Cut, "object", 4, 1, 0, 0},
		{"a string and the file's newline", "[\"a\r\n", Cut, "string", 3, 1, 0, 0},
		{"a newline in a string", "[\"a\nb", Broken, "string", 3, 1, 0, 0},
		{"a name twice", `{"a":1,"b":2,"a":3,"\u0061":4}`, Whole, "", 30, 1, 1, 2},
		{"names of others", `[{"a":1},{"a":1},{"a":{"a":1}}]`, Whole, "", 31, 1, 1, 0},
		{"many names", "{" + strings.Repeat(`"k":1,`, 30) + `"k":1}`, Whole, "", 187, 1, 1, 30},
		{"byte order mark", "\xef\xbb\xbf{}", Whole, "", 5, 1, 1, 0},
		{"too deep", strings.Repeat("[", 20_000), TooDeep, "array", 10_000, 1, 0, 0},
		{"brackets in strings", `["]}"`, Cut, "array", 5, 1, 0, 0},
		{"huge number", "[1e309]", Whole, "", 7, 1, 1, 0},
		{"lone surrogate", `["\ud800"]`, Whole, "", 10, 1, 1, 0},
		{"NUL", "[1]\x00", Trailing, "between values", 3, 1, 1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, wrap := range []func(io.Reader) io.Reader{
				func(r io.Reader) io.Reader { return r }, iotest.OneByteReader, iotest.HalfReader,
			} {
				r, err := Check(wrap(strings.NewReader(tt.text)))
				expect.Must(t, err)
				if r.State != tt.state || r.Inside != tt.inside || r.Offset != tt.offset || r.Line != tt.line ||
					r.Values != tt.values || r.Duplicates != tt.duplicates {
					t.Errorf("%+v", r)
				}
			}
		})
	}
}

// TestCheckAgreesWithEncodingJSON compares with an independent parser, for every prefix of texts.
func TestCheckAgreesWithEncodingJSON(t *testing.T) {
	for _, text := range append([]string{
		"[1,2.5e+3,-0]", `{"a":{"b":[true,false,null]},"":"\u00e9\n"}`, "[[[]]]", `"x"`, "truex", "[01]", "[1.]", `["\x"]`,
		"{\"a\":1,}", "[1,]", "{1:2}", "nul", "[+1]", "[.5]", "[\"\t\"]", "[1e]", "[1e5", "{}{}", "[] []", "-", "\x00",
	}, samples...) {
		for n := range len(text) + 1 {
			agrees(t, []byte(text[:n]))
		}
	}
}

// agrees compares the check of a text that is one value, or none, with encoding/json.
func agrees(t *testing.T, text []byte) {
	t.Helper()
	r, err := Check(bytes.NewReader(text))
	expect.Must(t, err)
	valid := json.Valid(text)
	d := json.NewDecoder(bytes.NewReader(text))
	var v json.RawMessage
	first := d.Decode(&v)
	switch {
	case valid && r.State != Whole && r.State != Ambiguous, !valid && r.State == Ambiguous && r.Values < 2:
		t.Errorf("%q is %s, encoding/json says valid: %v", text, r.State, valid)
	case valid:
	case r.State == Whole && r.Values < 2:
		t.Errorf("%q is whole, encoding/json says: %v", text, first)
	case errors.Is(first, io.EOF) && r.State != Empty,
		errors.Is(first, io.ErrUnexpectedEOF) && r.State != Cut && r.State != Broken:
		t.Errorf("%q is %s, encoding/json says: %v", text, r.State, first)
	}
	if r.State == Cut && r.Offset == int64(len(text)) { // some text must be able to mend it
		if !validValues(mended(text, r)) {
			t.Errorf("%q is cut inside of %s, and cannot be mended: %q", text, r.Inside, mended(text, r))
		}
	}
}

// mended completes a text that is cut off, with the help of the scanner's own stack.
func mended(text []byte, r Report) []byte {
	for _, first := range []string{
		"", "0", `"`, `":0`, `:0`, `0"`, "00", "000", "0000", "ull", "ll", "l", "rue", "ue", "e", "alse", "lse", "se",
		"n\"", `n":0`, `"":0`, `00":0`, `000":0`, `0000":0`, `0":0`, `0"`, `00"`, `000"`, `0000"`,
	} {
		out := append(append(append([]byte{}, text...), first...), closers(text)...)
		if validValues(out) {
			return out
		}
	}
	return text
}

// validValues reports whether a text is JSON values in a row.
func validValues(text []byte) bool {
	d := json.NewDecoder(bytes.NewReader(text))
	for {
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return err == io.EOF
		}
	}
}

// closers returns the brackets that close what is open.
func closers(text []byte) (end []byte) {
	within := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case within && c == '\\':
			i++
		case c == '"':
			within = !within
		case within:
		case c == '{':
			end = append([]byte{'}'}, end...)
		case c == '[':
			end = append([]byte{']'}, end...)
		case c == '}' || c == ']':
			end = end[1:]
		}
	}
	return end
}

// TestCheckOfPrefixes checks prefixes of 64 KiB of a real text: each is cut, encoding/json says so too, and
// the last complete element is one.
func TestCheckOfPrefixes(t *testing.T) {
	text, step := corpus.JSON1MB()[:64<<10], 31 // all of them take a minute
	if testing.Short() {
		step = 311
	}
	for n := 1; n <= len(text); n += step {
		r, err := Check(bytes.NewReader(text[:n]))
		expect.Must(t, err)
		var v json.RawMessage
		err = json.NewDecoder(bytes.NewReader(text[:n])).Decode(&v)
		if r.State != Cut || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("the first %d bytes: %+v, encoding/json says %v", n, r, err)
		}
		if r.LastEnd > 0 && r.LastEnd-r.LastStart < 4000 && !json.Valid([]byte(r.Last)) || r.Offset != int64(n) {
			t.Fatalf("the first %d bytes: last is %q, offset %d", n, r.Last, r.Offset)
		}
	}
}

func FuzzCheck(f *testing.F) {
	for _, s := range samples {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := Check(bytes.NewReader(text))
		if err != nil || r.Offset > int64(len(text)) || r.Line < 1 {
			t.Errorf("%q: %+v %v", text, r, err)
		}
		if json.Valid(text) && r.State != Whole && r.State != Ambiguous && r.State != TooDeep {
			t.Errorf("%q is %+v, and valid", text, r)
		}
		if r.State == Whole && r.Values == 1 && r.Duplicates == 0 &&
			!json.Valid(bytes.TrimPrefix(text, []byte(bom))) {
			t.Errorf("%q is whole, and not valid", text)
		}
	})
}
