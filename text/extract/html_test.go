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
		"not declared": {
			"<p>\xd1\xee\xe1\xf0\xe0\xed\xe8\xe5 \xef\xf0\xee\xe9\xe4\xe5\xf2 \xe2 \xca\xe0\xe7\xe0\xed\xe8.",
			"Собрание пройдет в Казани.\n",
		},
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
		"scripts": {
			"10<sup>6</sup>5 H<sub>2</sub>O a<sup>b<sup>2</sup></sup> 1<sup>1</sup>&frasl;<sub>2</sub> 5<sup>th</sup>",
			"10^6 5 H_2O a^(b^2) 1 1⁄2 5th\n"},
		"raised span":   {`10<span style="font-size:9px; vertical-align: super">6</span> <span>a</span>`, "10^6 a\n"},
		"footnote mark": {"word<sup>[1]</sup> Acme<sup>®</sup> <sup>1</sup> end", "word[1] Acme® 1 end\n"},
		"both scripts":  {"SO<sub>4</sub><sup>2−</sup> x<sup>2</sup><sub>i</sub> 2<sup>a</sup>", "SO_4^2− x^2_i 2^a\n"},
		"control":       {"a\x01b\x03c&#1;", "abc\n"},
		"formulas": {
			"2<math><mfrac><mn>1</mn><mn>2</mn></mfrac></math>x<math><msup><mi>x</mi><mn>2</mn></msup><p>open",
			"2 1/2 x x^2\nopen\n"},
		"links": {`<a href="https://a.example/b">here</a> <a href="/c">c</a> <a href="https://a.example">a.example</a>` +
			` <a href="mailto:x@y.example">x@y.example</a>` +
			`<p><a href="https://a.example/` + strings.Repeat("x", 400) + `">long</a>`,
			"here <https://a.example/b> c a.example x@y.example\nlong <https://a.example/" + strings.Repeat("x", 282) + "…>\n"},
		"inputs": {`<input type=checkbox checked> yes <input type=radio> no <input value=Ada> <input type=hidden value=x>` +
			`<select><option>a<option selected>b</select>`, "☑ yes ☐ no Ada\na\n☑ b\n"},
		"spans": {"<table><tr><th rowspan=2>A<th colspan=2>B<tr><td>1<td>2<tr><td rowspan=3>c<td>3<td>4</tr>\n<tr><td>5</tr></table>" +
			"<table><tr><td>x<td>y</table>",
			"A | B\n | 1 | 2\nc | 3 | 4\n | 5\nx | y\n"},
		"wide layout":     {"<table><tr><td colspan=99><p>a<p>b<tr><td>c<td>d</table>", "a\nb\nc | d\n"},
		"nested template": {"<template><template></template>a</template>b", "b\n"},
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
		"wide": {
			"<table>" + strings.Repeat("<tr><td colspan=1000 rowspan=1000>x<td colspan=1000>y<td colspan=1000>y", 1<<15),
			ErrTooLarge,
		},
		"deep": {strings.Repeat("<div>", 1<<20), ErrNoText},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := read(t, "html", []byte(c.html)); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}
