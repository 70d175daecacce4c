package extract

import (
	"errors"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
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
	type row struct{ Name, HTML, Want string }
	for _, c := range append(expect.Table[row](t, "testdata/html.tsv"),
		row{"windows-1252 fallback", strings.Repeat("a", 2000) + " caf\xe9", strings.Repeat("a", 2000) + " café\n"},
		row{"UTF-8 after 1 KB", strings.Repeat("a", 2000) + " café", strings.Repeat("a", 2000) + " café\n"},
		row{"links", `<a href="https://a.example/b">here</a> <a href="/c">c</a> <a href="https://a.example">a.example</a>` +
			` <a href="mailto:x@y.example">x@y.example</a>` +
			`<p><a href="https://a.example/` + strings.Repeat("x", 400) + `">long</a>`,
			"here <https://a.example/b> c a.example x@y.example\nlong <https://a.example/" + strings.Repeat("x", 282) + "…>\n"},
	) {
		t.Run(c.Name, func(t *testing.T) {
			x, err := read(t, "html", []byte(c.HTML))
			if err != nil || string(x.Body) != c.Want {
				t.Errorf("got %q, %v; want %q", x.Body, err, c.Want)
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
