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
	type row struct {
		Name, Text                       string
		State                            State
		Inside                           string
		Offset, Line, Values, Duplicates int64
	}
	for _, tt := range append(expect.Table[row](t, "testdata/strict.tsv"),
		row{"many names", "{" + strings.Repeat(`"k":1,`, 30) + `"k":1}`, Whole, "", 187, 1, 1, 30},
		row{"too deep", strings.Repeat("[", 20_000), TooDeep, "array", 10_000, 1, 0, 0},
	) {
		t.Run(tt.Name, func(t *testing.T) {
			for _, wrap := range []func(io.Reader) io.Reader{
				func(r io.Reader) io.Reader { return r }, iotest.OneByteReader, iotest.HalfReader,
			} {
				r, err := Check(wrap(strings.NewReader(tt.Text)))
				expect.Must(t, err)
				if r.State != tt.State || r.Inside != tt.Inside || r.Offset != tt.Offset || r.Line != tt.Line ||
					r.Values != tt.Values || r.Duplicates != tt.Duplicates {
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
