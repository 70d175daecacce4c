package tokens_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// kinds returns a quarter of a megabyte of every kind of text that tools return.
func kinds(t testing.TB) []kind {
	const size = 256 << 10
	all := []kind{
		{"json", corpus.JSON1MB()}, {"json-minified", corpus.JSON1MBMinified()}, {"english", corpus.WarAndPeace()[1<<20:]},
		{"code", code(t)}, {"log", corpus.PanicLog()}, {"csv", corpus.CSV20k()}, {"diff", corpus.WarAndPeaceDiff()}, {"cjk", corpus.CJK()}, {"emoji", mixed(size)},
		{"base64", base64Lines(size)}, {"hex", []byte(
			hex.Dump(corpus.Random(size / 4)),
		)}, {"indented", indented(size)}, {"blanks", spaces(size)},
	}
	for i, k := range all {
		all[i].text = bytes.ToValidUTF8(bytes.Repeat(k.text, 1+size/len(k.text))[:size], nil)
	}
	return all
}

type kind struct {
	name string
	text []byte
}

// code returns the source of this module.
func code(t testing.TB) []byte {
	names, err := filepath.Glob("../../*/*.go")
	if err != nil || len(names) == 0 {
		t.Fatalf("no source: %v", err)
	}
	var b []byte
	for _, name := range names {
		text, err := os.ReadFile(name)
		expect.Must(t, err)
		b = append(b, text...)
	}
	return b
}

// mixed returns words of several scripts, punctuation and emoji, between ASCII.
func mixed(size int) []byte {
	words := []string{
		"Привет", "κόσμε", "שלום", "مرحبا", "नमस्ते", "สวัสดี", "안녕하세요", "こんにちは", "世界", "naïve", "Straße", "été", "İstanbul",
		"👍🏽", "👩‍👩‍👧‍👦", "🎉🎉", "✅", "→", "≥", "…", "🇩🇪", "½", "“ok”", "done", "error", "x2",
	}
	r := rand.New(rand.NewPCG(11, 12))
	var b bytes.Buffer
	for b.Len() < size {
		b.WriteString(words[r.IntN(len(words))])
		b.WriteString([]string{" ", " ", " ", ", ", "\n", ""}[r.IntN(6)])
	}
	return b.Bytes()
}

// base64Lines returns lines of 76 characters, as in mail and PEM files, and one line that fills a quarter.
func base64Lines(size int) []byte {
	var b bytes.Buffer
	random := corpus.Random(size)
	b.WriteString(base64.StdEncoding.EncodeToString(random[:size/6]) + "\n")
	for line := range slices.Chunk(random[size/6:], 57) {
		b.WriteString(base64.StdEncoding.EncodeToString(line) + "\n")
	}
	return b.Bytes()
}

// indented returns short words far apart: after indentation, in columns, between empty lines.
func indented(size int) []byte {
	r := rand.New(rand.NewPCG(15, 16))
	var b bytes.Buffer
	for b.Len() < size {
		b.WriteString([]string{"", "", "\n", "\n\n\n", "\r\n", "  \n"}[r.IntN(6)])
		b.WriteString(strings.Repeat([]string{"    ", "\t", " "}[r.IntN(3)], r.IntN(12)))
		for range r.IntN(4) {
			b.WriteString([]string{"x", "{", "return", "0", "//"}[r.IntN(5)] + strings.Repeat(" ", 1+r.IntN(40)))
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// spaces returns runs of white space of any length between words.
func spaces(size int) []byte {
	r := rand.New(rand.NewPCG(13, 14))
	var b bytes.Buffer
	for b.Len() < size {
		b.WriteString(strings.Repeat([]string{" ", " ", "\t", "\n", "\r\n", " \n"}[r.IntN(6)], 1+r.IntN(1<<r.IntN(8))))
		if r.IntN(3) == 0 {
			b.WriteString([]string{"x", "{", "return", "0", "//"}[r.IntN(5)])
		}
	}
	return b.Bytes()
}
