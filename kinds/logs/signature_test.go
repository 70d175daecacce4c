package logs

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
)

// Lines have the same signature where they are the same once every word with a digit is written alike, and only there.
func TestSignature(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	parts := []string{
		"a", "error", "longword_of_letters", "é", "数据", "1", "4e3a9", "x9", " ", "  ", "=", "/", "\t", ": ", "\x00", "\x80",
		"@", "[", "`", "{", "_",
	}
	line := func(few bool) []byte {
		var b []byte
		n := 40
		if few {
			n = 4
		}
		for range r.IntN(n) {
			b = append(b, parts[r.IntN(len(parts))]...)
		}
		if r.IntN(30) == 0 {
			b = append(b, bytes.Repeat([]byte("w7"[r.IntN(2):]), 200)...)
		}
		return b[:min(len(b), digest.HeadBytes)]
	}
	seen := map[string]uint64{}
	forms := map[uint64]string{}
	for i := range 200_000 {
		b := line(i%2 == 0)
		form, h := normal(b), signature(b)
		if was, ok := seen[form]; ok && was != h {
			t.Fatalf("%q has two signatures", form)
		}
		if was, ok := forms[h]; ok && was != form {
			t.Fatalf("%q and %q have one signature", was, form)
		}
		seen[form], forms[h] = h, form
	}
	if len(forms) < 50_000 {
		t.Errorf("only %d lines of different forms", len(forms))
	}
}

// normal writes a line with # for each word with a digit.
func normal(line []byte) string {
	var out []byte
	for i := 0; i < len(line); {
		from := i
		for i < len(line) && digest.IsWord[line[i]] {
			i++
		}
		if bytes.ContainsAny(line[from:i], "0123456789") {
			out = append(out, '#')
		} else {
			out = append(out, line[from:i]...)
		}
		if i < len(line) {
			out = append(out, line[i], '|') // so that no # of the text is taken for one of these
			i++
		}
	}
	return string(out)
}

// TestIsProse checks which first sentences say more than the lines that a receipt shows.
func TestIsProse(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "1 2 3 4 5 6 7 8 9 10": false, "Call me Ishmael. Some years ago": true, "x 1 2 3 4 5 6": false,
		"日本語のテキスト": true, "+---+---+ | a | b |": false,
	} {
		if got := isProse(text); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}
