package decode

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/itchyny/gojq"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// oracle reads values as gojq's own command does.
func oracle(text []byte) (all []any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	for {
		var v any
		if err := d.Decode(&v); err == io.EOF {
			return all, nil
		} else if err != nil {
			return all, err
		}
		all = append(all, v)
	}
}

func decoded(text []byte) (all []any, err error) {
	d := NewDecoder(bytes.NewReader(text))
	for {
		v, err := d.Next(nil)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, v)
	}
}

// written is values as they are shown: a number's type does not matter, its digits do.
func written(t testing.TB, vs []any) string {
	t.Helper()
	var b strings.Builder
	for _, v := range vs {
		s, err := gojq.Marshal(v)
		expect.Must(t, err)
		b.Write(s)
		b.WriteByte('\n')
	}
	return b.String()
}

func TestDecodeRealInputs(t *testing.T) {
	for name, text := range map[string][]byte{"pretty": corpus.JSON1MB(), "minified": corpus.JSON1MBMinified()} {
		t.Run(name, func(t *testing.T) {
			want, err := oracle(text)
			expect.Must(t, err)
			got, err := decoded(text)
			expect.Must(t, err)
			expect.Same(t, written(t, got), written(t, want))
		})
	}
}

func TestNumbers(t *testing.T) {
	for _, s := range []string{"0", "-0", "7", "-7", "999999999999999999", "-999999999999999999", "1000000000000000000", "123456789012345678901", "1.0", "1e5", "-0.0", "0e0"} {
		v := number([]byte(s))
		b, err := gojq.Marshal(v)
		if err != nil || string(b) != s {
			t.Errorf("%s became %s", s, b)
		}
		_, isInt := v.(int)
		n, whole := new(big.Int).SetString(s, 10)
		if want := whole && n.String() == s && len(strings.TrimPrefix(s, "-")) <= intDigits; isInt != want {
			t.Errorf("%s is an int: %v", s, isInt)
		}
	}
}

// What one of two decoders takes, the other takes, and makes the same of it.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.50,-0,1e400,"x\u00e9\ud83d\ude00"],"a":null}`, `1 2`, `[1,2`, `"\ud800"`, "\"\xff\"", `{"":{"":[]}}`, "[1,]", `{"a" 1}`, "nul", "[[[[1]]]]", `"` + "\x7f" + `"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		want, wantErr := oracle(text)
		got, err := decoded(text)
		if err != nil {
			if errors.Is(err, io.EOF) {
				t.Fatal("an end inside a value passes for a regular one")
			}
			if wantErr == nil {
				t.Fatalf("refused: %v", err)
			}
			return
		}
		if wantErr != nil {
			return // encoding/json wants a space between some values
		}
		if !utf8.Valid(text) {
			return // how many U+FFFD stand for bad bytes is a matter of taste
		}
		if g, w := written(t, got), written(t, want); g != w {
			t.Fatalf("got %s, want %s", g, w)
		}
	})
}
