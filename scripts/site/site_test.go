package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"unicode"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// checkout is a small one, whose docs/A.md ends with a text.
func checkout(text string) fstest.MapFS {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	return fstest.MapFS{
		"README.md":                      file("# The first\n\n<!-- mark -->\nSee [A](docs/A.md#two-words).\n<!-- end -->\n"),
		"CONTRIBUTING.md":                file("# Contributing\n"),
		"NOTICES.md":                     file("[x](nowhere)\n"),
		"deploy/compose.yaml":            file(""),
		"docs/A.md":                      file("# A: about it\n\n*For users.*\n\n## Two words\n\n## Two words\n\n" + text),
		"server/viewer/assets/style.css": file(""),
	}
}

// rendered builds a checkout and returns the files written, by name.
func rendered(t *testing.T, source fs.FS) map[string]string {
	t.Helper()
	out := t.TempDir()
	expect.Must(t, build(source, out))
	written := map[string]string{}
	expect.Must(t, fs.WalkDir(os.DirFS(out), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			written[name] = string(expect.Value(os.ReadFile(filepath.Join(out, filepath.FromSlash(name))))(t))
		}
		return err
	}))
	return written
}

func TestDeadLinks(t *testing.T) {
	for text, want := range map[string]string{
		"[x](B.md)":        "docs/A.md:9: dead link to B.md: ",
		"a\nb [x](#three)": "docs/A.md:10: dead link to #three: docs/A.md has no heading #three",
		"- a\n\n  | a |\n  |-|\n  | [x](../README.md#a) |":     "docs/A.md:13: dead link to ../README.md#a: README.md has no heading #a",
		"[x](../../README.md)":                                 "dead link to ../../README.md: ",
		"[x](/README.md)":                                      "dead link to /README.md: ",
		"[x](../NOTICE.md)":                                    "dead link to ../NOTICE.md: ",
		"[x][y]\n\n[y]: nowhere":                               "docs/A.md:9: dead link to nowhere: ",
		"[a](B.md)\n\n[b](C.md)":                               "docs/A.md:11: dead link to C.md: ",
		"![x](a.png)":                                          "docs/A.md:9: images are not copied",
		"<p>\n<script>alert(1)</script>":                       "docs/A.md:9: HTML other than comments and <br>: <p>\n<script>",
		"<script>\n\nalert(1)\n</script>":                      "docs/A.md:9: HTML other than comments and <br>: <script>\n\nalert(1)\n</script>",
		"a\nb <img src=x onerror=alert(1)>":                    "docs/A.md:10: HTML other than comments and <br>: <img src=x",
		"| a |\n|-|\n| <iframe src=\"javascript:alert(1)\"> |": "docs/A.md:11: HTML other than comments and <br>: <iframe",
		"<br onclick=alert(1)>":                                "docs/A.md:9: HTML other than comments and <br>: <br onclick",
		"<!-- a\n--> <script>alert(1)</script>":                "docs/A.md:9: HTML other than comments and <br>: <script>",
		"<!-- a":                                               "docs/A.md:9: HTML other than comments and <br>: <!-- a",
		"a\n<javascript:alert(1)>":                             "docs/A.md:10: link with another scheme than http, https or mailto: javascript:alert(1)",
		"<data:text/html,x>":                                   "docs/A.md:9: link with another scheme than http, https or mailto: data:text/html,x",
		"<https://w.example/> <a@w.example> <mailto:a@w.example> a <!-- b --><br> `<b>`\n\n<br>\n\n<!--\n<i>\n-->": "",
		"a":                            "",
		"`[x](B.md)`\n\n    [x](B.md)": "",
		"[x](#two-words-1) [y](https://w.example/#z) [z](mailto:a@w.example) [n](../NOTICES.md) [d](../deploy)": "",
	} {
		out := filepath.Join(t.TempDir(), "site")
		if err := build(checkout(text), out); want == "" {
			expect.OK(t, err, text)
		} else {
			expect.Fails(t, err, want, text)
			if _, err := os.Stat(out); err == nil {
				t.Errorf("%q: pages are written beside the error", text)
			}
		}
	}
	lost := checkout("")
	lost["docs/A.md"].Data = []byte("# A\n")
	expect.Fails(t, build(lost, t.TempDir()), "docs/A.md:1: needs a heading, and below docs/ a line such as *For users.*")
}

func TestRendered(t *testing.T) {
	all := rendered(t, checkout("```sh\na  <b> | \"c\"\n\td\n```\n\n| | a |\n|---|---|\n| b | `c`<br>d [x](../deploy/compose.yaml) |\n\n[r](../README.md)\n"))
	expect.Contains(t, all["docs/A.html"],
		"<code class=\"language-sh\">a  &lt;b&gt; | &quot;c&quot;\n\td\n</code>", "<td></td>\n<th>a</th>", "<code>c</code><br>d x (deploy/compose.yaml)",
		`<a href="../index.html">r</a>`, `<h2 id="two-words"><a href="#two-words">Two words</a></h2>`, `id="two-words-1"`,
		`<a href="../docs/A.html" aria-current="page">A</a>`, "<title>A: about it · mcp-funnel</title>",
	)
	expect.Contains(t, all["index.html"], `See <a href="docs/A.html#two-words">A</a>.`, "<title>mcp-funnel</title>", `src="site.js"`)
	expect.Lacks(t, all["index.html"], "<!-- ", "-->", "NOTICES")
	expect.Has(t, all["index.js"], `"compose":[2]`, "a word of the third section")
}

// TestCheckout renders the pages there are: the same twice, each named by the navigation of all, with GitHub's anchors.
func TestCheckout(t *testing.T) {
	source := os.DirFS("../..")
	first, second := rendered(t, source), rendered(t, source)
	expect.Same(t, second, first)
	names := expect.Value(fs.Glob(source, "docs/*.md"))(t)
	if len(names) < 20 || len(first["site.js"])+len(first["site.css"]) > 30<<10 {
		t.Errorf("%d pages, %d bytes of script and style", len(names), len(first["site.js"])+len(first["site.css"]))
	}
	for page, body := range first {
		if !strings.HasSuffix(page, ".html") {
			continue
		}
		root := strings.Repeat("../", strings.Count(page, "/"))
		for _, name := range names {
			expect.Has(t, body, `<li><a href="`+root+strings.TrimSuffix(name, ".md")+`.html"`, page)
		}
		for _, m := range regexp.MustCompile(`(?:src|srcset|action|<link[^>]* href)="([^"]*)`).FindAllStringSubmatch(body, -1) {
			expect.Lacks(t, m[1], "//")
		}
	}
	for _, name := range names {
		p := expect.Value(read(source, name))(t)
		used := map[string]int{}
		for _, h := range p.Headings {
			id := strings.Map(func(r rune) rune {
				switch r = unicode.ToLower(r); {
				case r == ' ':
					return '-'
				case r == '-' || r == '_' || unicode.In(r, unicode.L, unicode.N, unicode.M):
					return r
				}
				return -1
			}, h.Text)
			if used[id]++; used[id] == 1 {
				expect.Equal(t, h.ID, id, "GitHub's anchor in %s", name)
			}
		}
	}
}
