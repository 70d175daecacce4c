package extract

import (
	"errors"
	"strings"
	"testing"
)

func htmlSample(testing.TB) []byte {
	return []byte(`<!DOCTYPE html><html><head><meta charset="utf-8"><title>The title</title>
<style>p { color: red }</style><script>var a = "<p>no</p>";</script></head>
<body><!-- a comment --><h1>Head&amp;line</h1><p>First
  paragraph with <b>bo</b>ld&nbsp;text.<p>Second<br>line
<noscript>enable scripts</noscript><template><p>hidden</p></template>
<table><tr><th>Name<th>Amount</tr><tr><td><p>A</p><p>B</p></td><td></td><td>12 €</td></table>
<ul><li>one<li><p>two</p></ul><img src="a.png" alt="a chart">
<pre>if x {
    y()
}</pre><svg><text>drawn</text></svg>end</body></html>`)
}

func TestHTML(t *testing.T) {
	golden(t, "html", htmlSample(t),
		"The title",
		"Head&line",
		"First paragraph with bold text.",
		"Second",
		"line",
		"Name | Amount",
		"A B |  | 12 €",
		"- one",
		"- two",
		"a chart",
		"if x {",
		"    y()",
		"}",
		"end",
	)
}

func TestHTMLText(t *testing.T) {
	for name, c := range map[string]struct{ html, want string }{
		"windows-1252 declared": {"<meta charset=windows-1252><p>caf\xe9 \x80", "café €\n"},
		"windows-1252 fallback": {strings.Repeat("a", 2000) + " caf\xe9", strings.Repeat("a", 2000) + " café\n"},
		"UTF-8 after 1 KB":      {strings.Repeat("a", 2000) + " café", strings.Repeat("a", 2000) + " café\n"},
		"UTF-8 byte order mark": {"\xef\xbb\xbf<p>é", "é\n"},
		"UTF-16":                {"\xff\xfe<\x00p\x00>\x00\xe9\x00", "é\n"},
		"http-equiv":            {`<meta http-equiv=content-type content="text/html; charset=koi8-r">` + "\xc1", "а\n"},
		"wrong declaration":     {"<meta charset=utf-8>caf\xe9", "caf\ufffd\n"},
		"XHTML script":          {`<script src="a.js"/><p>text</p>`, "text\n"},
		"layout table":          {"<table><tr><td><p>a</p><p>b</p></td></tr></table>", "a\nb\n"},
		"nested table":          {"<table><tr><td>x<table><tr><td>1<td>2</table>y</table>", "x\n1 | 2\ny\n"},
		"unclosed":              {"<p>a <b>b <i>c", "a b c\n"},
		"no tags":               {"a < b and c", "a < b and c\n"},
		"nested template":       {"<template><template></template>a</template>b", "b\n"},
	} {
		t.Run(name, func(t *testing.T) {
			x, err := read(t, "html", []byte(c.html))
			if err != nil || string(x.Body) != c.want {
				t.Errorf("got %q, %v; want %q", x.Body, err, c.want)
			}
		})
	}
}

func TestHTMLBad(t *testing.T) {
	skipLarge(t)
	for name, c := range map[string]struct {
		html string
		want error
	}{
		"only a script": {"<script>a()</script>", ErrNoText},
		"blank":         {" \n ", ErrNoText},
		"a picture":     {"<img src=a.png>", ErrNoText},
		"large tag":     {"<a href='" + strings.Repeat("a", maxText) + "'>x</a>", ErrTooLarge},
		"large text":    {strings.Repeat(strings.Repeat("a", 1<<20)+"<p>", maxText>>20+1), ErrTooLarge},
		"deep":          {strings.Repeat("<div>", 1<<20), ErrNoText},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := read(t, "html", []byte(c.html)); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}
