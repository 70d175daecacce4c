package main

import (
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"
)

// What is counted is what a model reads of a file: decoded, and the same from standard input.
func TestTokensAreOfTheTextDecoded(t *testing.T) {
	const text = "fünf Wörter, größer\nals zwei Zeilen\n"
	wide := []byte("\xff\xfe")
	for _, u := range utf16.Encode([]rune(text)) {
		wide = append(wide, byte(u), byte(u>>8))
	}
	for _, k := range []struct {
		stored, want string // tokens, bytes, lines
		note         string
	}{
		{text, "12 40 2", ""},
		{"\xef\xbb\xbf" + text, "12 43 2", ""},
		{string(wide), "12 74 2", " (decoded from utf-16le)"},
		{string(wide) + "a", "13 75 3", " (decoded from utf-16le)"},
		{"f\xfcnf W\xf6rter\n", "5 12 1", " (decoded from latin-1)"},
		{"", "0 0 0", ""},
		{"no end", "2 6 1", ""},
	} {
		path := filepath.Join(t.TempDir(), "file")
		write(t, path, k.stored)
		for _, words := range [][]string{{"-"}, {path}, nil} {
			code, out, said := runIn(t, k.stored, append([]string{"tokens"}, words...)...)
			want := k.want + " " + append(words, "-")[0] + k.note
			_, row, _ := strings.Cut(out, "\n")
			if got := strings.Join(strings.Fields(row), " "); code != done || said != "" || got != want {
				t.Errorf("tokens %v of %q: code %d, %q, %s; want %s", words, k.stored, code, got, said, want)
			}
		}
	}
}
