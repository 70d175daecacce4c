package viewer

import (
	"bytes"
	"fmt"
	pictures "image"
	"image/png"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/observations"
)

// stored returns the address of an observation with a text.
func (f *fixture) stored(text string) string {
	f.t.Helper()
	return "obs/" + string(f.keep(observations.Local, "t", text, nil))
}

// bigTable has n rows, in which amount falls.
func bigTable(n int) string {
	var b strings.Builder
	b.WriteString("id,city,amount\n")
	for i := range n {
		fmt.Fprintf(&b, "%d,\"City, %d\",%d.5\n", i, i%7, n-i)
	}
	return b.String()
}

// A grid has the rows of any place of a table, in pages that follow each other, in an order, or chosen by a filter,
// which also runs as it is shown.
func TestGrid(t *testing.T) {
	f := newFixture(t)
	at := f.stored(bigTable(200_000))
	for address, want := range map[string]string{
		"":               "row id city amount 0 0 City, 0 200000.5 1 1 City, 1 199999.5",
		"?top=100000":    "amount 100,000 100000 City, 5 100000.5 100,001 100001",
		"?top=199999":    "amount 199,999 199999 City, 2 1.5 rows 199,999–199,999 of 200,000",
		"?top=200000":    "There is no such row. no rows of 200,000",
		"?record=100000": "id 100000 city City, 5 amount 100000.5",
		"?filter=true":   "Only the first 65,536 rows of this filter are shown.",
	} {
		expect.Has(t, f.page(at+address), want, address)
	}
	_, status := f.get(at + "?record=200000")
	expect.Equal(t, status, http.StatusNotFound)
	at = f.stored(bigTable(20_000))
	for address, want := range map[string]string{
		"?sort=amount":                    "amount ▲ 19,999 19999 City, 0 1.5 19,998 19998",
		"?sort=-id&top=50":                "amount 19,949 19949 City, 6 51.5",
		"?sort=id&top=9990":               "Only the first 10,000 rows of this filter are shown.",
		"?filter=.amount+<+3":             "amount 19,998 19998 City, 6 2.5 19,999 19999 City, 0 1.5 rows 0–1 of 2",
		"?filter=.amount+<+3&sort=amount": "amount ▲ 19,999 19999 City, 0 1.5 19,998 19998 City, 6 2.5 rows 0–1 of 2",
		"?filter=.id+>=+100&top=50":       "amount 150 150 City, 3 19850.5",
		"?filter=.city+|+test(1)":         "the filter failed on 20000 rows, first on row 0",
		"?filter=.id+|+(":                 "jq: filter does not parse",
		"?filter=true)+|+(1":              "jq: filter does not parse",
		"?filter=false":                   "There is no such row. no rows of 0",
		"?sort=id&filter=false":           "There is no such row. no rows of 0",
	} {
		expect.Has(t, f.page(at+address), want, address)
	}
	for address, shown := range map[string]string{
		"?filter=.amount+<+3":             "select(.amount < 3)",
		"?filter=.amount+<+3&sort=amount": "[.[] | select(.amount < 3)] | sort_by(.amount) | .[:10000] | .[]",
		"?sort=-amount":                   "sort_by(.amount) | .[-10000:] | reverse | .[]",
	} {
		expect.Has(t, f.page(at+address), "Filter "+shown, address)
		expect.Has(t, f.page(f.linked(at+address, "jq=")[0]), `{"amount":`, address)
	}
	_, status = f.get(at + "?sort=nothing")
	expect.Equal(t, status, http.StatusBadRequest)
	for order, next := range map[string]string{"": "id", "id": "-id", "-id": ""} { // heads lead to the orders in turn
		body, _ := f.get(at + "?sort=" + order)
		head := regexp.MustCompile(`<a href="([^"]*)"[^>]*>id`).FindStringSubmatch(body)[1]
		expect.Equal(t, expect.Value(url.Parse(head))(t).Query().Get("sort"), next)
	}
	body, _ := f.get(at)
	expect.Has(t, body, `<th scope="col" class="num"><a href="`+Base+"/"+at+`?sort=amount"`)
	expect.Has(t, body, `<th scope="col"><a href="`+Base+"/"+at+`?sort=city"`)
}

// An order that jq computes only from all rows at once is right too.
func TestGridOfLargeNumbers(t *testing.T) {
	f := newFixture(t)
	text := "id,n\n"
	for i := range 60 {
		text += fmt.Sprintf("%d,%d\n", i, 9007199254740993+int64(i*7%60))
	}
	expect.Has(t, f.page(f.stored(text)+"?sort=-n"), "▼ 17 17 9007199254741052 34 34 9007199254741051")
}

// Each row of a table of any form is in the grid; what is wrong with the table is said.
func TestGridOfDamage(t *testing.T) {
	f := newFixture(t)
	many := strings.Repeat("a,", 99) + "a\n" + strings.Repeat("1,", 99) + "last\n"
	for text, want := range map[string][]string{
		"id,b\n": {},
		"id,id,,x\n" + strings.Repeat("1,2,3,4\n", 300) + "1,2,3\n4,5,6,7,8\n": {
			"row id id_2 column_3 x 0 1 2 3 4", "2 rows have not 4 cells: first record 300 (line 302) with 3"},
		"id,t\n1,\"open\n2,x\n":     {"quote is not closed"},
		"sep=;\nid;t\n1;a,b\n2;c\n": {"row id t 0 1 a,b 1 2 c"},
		"id\tt\r1\ta\r2\tb\r":       {"row id t 0 1 a 1 2 b"},
		many + many:                 {"70 further columns are not shown"},
	} {
		id := f.keep(observations.Local, "t", text, nil)
		page := f.page("obs/" + string(id) + "?as=grid")
		for _, w := range want {
			expect.Has(t, page, w)
		}
	}
	odd := f.stored("id,id,,x\n" + strings.Repeat("1,2,3,4\n", 300) + "1,2,3\n4,5,6,7,8\n")
	expect.Has(t, f.page(odd+"?top=300"), "row id id_2 column_3 x column_5 300 1 2 3 missing missing 301 4 5 6 7 8")
	at := f.stored(many + strings.Repeat(many[200:], 60))
	expect.Has(t, f.page(at+"?record=1"), "a_100 last")
}

// A secret is masked in a cell, also where it is cut, and where only the name of the column says that it is one.
func TestGridMasks(t *testing.T) {
	f := newFixture(t)
	at := f.stored("id,note,password\n1," + strings.Repeat("x", cellBytes-20) + " " + aKey + ",\"S3cr3tPassw0rdXyz9\"\n2,<b>\u202ebold,a\n3,\x1b[31mred,b\n")
	for _, address := range []string{at, at + "?record=0", at + "?filter=.id==1"} {
		expect.Lacks(t, f.page(address), aKey[:12], "S3cr3t")
	}
	expect.Has(t, f.page(at), `<b>\u{202e}bold`)
	expect.Has(t, f.page(at), `\x1b[31mred`)
	body, _ := f.get(at)
	expect.Lacks(t, body, "<b>")
}

// logOf has a line a second; each 1000th is an error.
func logOf(n int) string {
	var b strings.Builder
	for i := range n {
		level := "INFO"
		if i%1000 == 999 {
			level = "ERROR"
		} else if i%100 == 50 {
			level = "warning:"
		}
		fmt.Fprintf(&b, "2026-11-20T%02d:%02d:%02dZ %s line %d of <b>\n", i/3600%24, i/60%60, i%60, level, i+1)
	}
	return b.String()
}

// A log has its lines by level, how many there are over time, and the next and previous error.
func TestLog(t *testing.T) {
	f := newFixture(t)
	at := f.stored(logOf(50_000))
	expect.Has(t, f.page(at), "50,000 lines, 50 errors, from 2026-11-20T00:00:00Z to 2026-11-20T13:4")
	body, _ := f.get(at)
	expect.Has(t, body, `<td class="warn">2026-11-20T00:00:50Z`)
	bars := f.linked(at, "as=log&line=")
	expect.Equal(t, len(bars) > maxBars/2 && len(bars) <= maxBars+10, true, len(bars))
	body, _ = f.get(at + "?as=log&line=1000")
	expect.Has(t, body, `<tr class="found" id="found"><td class="n"><a href="`)
	expect.Has(t, body, `<td class="bad">2026-11-20T00:16:39Z`)
	for line, want := range map[string]string{
		"0": "next error 1000", "1": "next error 1000", "1000": "next error 2000", "2000": "previous error 1000 next error 3000",
		"49999": "previous error 49000 next error 50000", "50000": "previous error 49000",
	} {
		var got []string
		body, _ := f.get(at + "?as=log&line=" + line)
		for _, m := range regexp.MustCompile(`line=(\d+)">((?:next|previous) error)<`).FindAllStringSubmatch(body, -1) {
			got = append(got, m[2]+" "+m[1])
		}
		expect.Equal(t, strings.Join(got, " "), want, line)
	}
	// each bar leads to its first line, which is in that time
	for _, to := range bars[:5] {
		body, _ := f.get(to)
		expect.Has(t, body, `id="found"`, to)
	}
}

// A log whose times or levels are not known says so, and one without lines is empty.
func TestLogOfOtherForms(t *testing.T) {
	f := newFixture(t)
	for text, want := range map[string]string{
		strings.Repeat("INFO start\nERROR no time\n", 40):                                          "80 of 80 records have no time",
		strings.Repeat("2026-11-20T14:30:22Z nothing said\n", 80):                                  "80 of 80 records have no level",
		strings.Repeat("1.2.3.4 - - [20/Nov/2026:14:30:22 +0000] \"GET / HTTP/1.1\" 500 12\n", 80): "20/Nov/2026:14:30:22 +0000: 80 lines, 80 errors, 0 warnings",
	} {
		expect.Has(t, f.page(f.stored(text)), want)
	}
}

// A diff has its files with their figures, and each file its old text beside the new one.
func TestDiff(t *testing.T) {
	f := newFixture(t)
	const one = "diff --git a/x.go b/x.go\nindex 1..2 100644\n--- a/x.go\n+++ b/x.go\n@@ -10,4 +10,4 @@ func a()\n same <b>\n-old " + aKey + "\n-gone\n+new\n+more\n end\n"
	at := f.stored(one + strings.ReplaceAll(one, "x.go", "y.go") + "diff --git a/old b/new\nsimilarity index 100%\nrename from old\nrename to new\n")
	page := f.page(at)
	expect.Has(t, page, "File Status Added Deleted 0 x.go modified 2 2 1 y.go modified 2 2 2 old → new renamed 0 0")
	page = f.page(at + "?record=1")
	expect.Has(t, page, "10 same <b> 10 same <b> 11 -old [masked")
	expect.Has(t, page, "11 +new 12 -gone 12 +more 13 end 13 end")
	expect.Lacks(t, page, "x.go")
	_, status := f.get(at + "?record=3")
	expect.Equal(t, status, http.StatusNotFound)

	cut := f.page(f.stored(strings.Repeat(one, 10) + one[:len(one)-8]))
	expect.Has(t, cut, "breaks off inside hunk 0 of x.go")
	expect.Has(t, cut, "≥ 2")
	long := one[:strings.Index(one, "@@")] + "@@ -1,0 +1,1000 @@\n" + strings.Repeat("+line of the file\n", 1000)
	at = f.stored(long)
	pages, next := 0, regexp.MustCompile(`rel="next" href="`+Base+`/([^"]*top=[^"]*)"`)
	for to := at + "?record=0"; to != "" && pages < 20; pages++ {
		body, _ := f.get(to)
		if m := next.FindStringSubmatch(body); m != nil {
			to = strings.ReplaceAll(m[1], "&amp;", "&")
			continue
		}
		expect.Has(t, plainText(body), "1000 +line")
		to = ""
	}
	expect.Equal(t, pages, 11)
	expect.Has(t, f.page(f.stored(string(corpus.WarAndPeaceDiff()))), "File Status Added Deleted 0")
}

// A git log has its commits as rows, and each whole.
func TestGitLog(t *testing.T) {
	f := newFixture(t)
	text := ""
	for i := range 120 {
		text += fmt.Sprintf("commit %040x\nAuthor: Ann <a@b.c>\nDate:   Fri Nov 20 14:30:22 2026 +0100\n\n    subject %d\n\n    body %d\n\n"+
			" a.go | 3 +++\n 1 file changed, 3 insertions(+)\n\n", i+1, i, i)
	}
	at := f.stored(text)
	expect.Has(t, f.page(at+"?top=50"), "50 000000000000 Ann 2026-11-20T14:30:22+01:00 subject 50 1 3 0")
	page := f.page(at + "?record=119")
	expect.Has(t, page, "body 119")
	expect.Lacks(t, page, "body 118")
}

// What search found is shown by file, with links to its lines.
func TestFound(t *testing.T) {
	f := newFixture(t)
	text := ""
	for i := range 120 {
		text += fmt.Sprintf("{\"file\":\"src/f%d.go\",\"line\":%d,\"text\":\"x <b> %s\"}\n", i/30, i+1, aKey)
	}
	at := f.stored(text)
	page := f.page(at)
	expect.Has(t, page, "src/f0.go 1 x <b> [masked")
	expect.Has(t, page, "src/f1.go 31 x")
	expect.Lacks(t, page, aKey)
	expect.Equal(t, f.linked(at, "file?")[1], "file?line=1&name=src%2Ff0.go")
	expect.Has(t, f.page(at+"?top=100"), "src/f3.go 101 x")
}

// Markdown is rendered by parts; nothing in it runs, loads or hides.
func TestMarkdown(t *testing.T) {
	f := newFixture(t)
	text := "# Title <script>alert(1)</script>\n\n<div onclick=\"x()\">\nblock\n</div>\n\n[a](javascript:alert(1)) [b](https://example.com/?q=%22) [c](docs/x.md) " +
		"![img](https://evil.example/x.png) [![i](https://a.b/c.png)](https://d.e) <https://auto.link> &#8238;bidi &lt;b&gt;\n\n" +
		"| a | b |\n|--:|:-:|\n| 1 | <img src=x onerror=alert(1)> |\n\n- item **bold**\n- [d](data:text/html,x)\n\nkey: ghp\\_16C7e42F292c6912E7710c838347Ae178B4a\n\n"
	at := f.stored(text + strings.Repeat("Line of a *paragraph* with words.\n\n## Heading\n\n", 4000))
	body, _ := f.get(at)
	_, body, _ = strings.Cut(body, `class="wide rendered"`)
	body, _, _ = strings.Cut(body, "</div>")
	for _, bad := range []string{"<script", "<div", "<img", "onclick=\"", "href=\"javascript", "href=\"data", "style=", "\u202e", aKey[4:], "<h1", "<h2"} {
		expect.Lacks(t, body, bad)
	}
	for _, good := range []string{
		"<h3>Title &lt;script&gt;alert(1)&lt;/script&gt;</h3>", "a (javascript:alert(1))", "c (docs/x.md)", "<strong>bold</strong>", `\u{202e}bidi`,
		`<a rel="noreferrer" title="leads outside" href="https://example.com/?q=%22">b ↗</a>`, "<td>&lt;img src=x onerror=alert(1)&gt;</td>",
		`href="https://evil.example/x.png">image: img ↗</a>`, `href="https://d.e">image: i (https://a.b/c.png) ↗</a>`, `">https://auto.link ↗</a>`, "[masked",
	} {
		expect.Has(t, body, good)
	}
	next, shown := regexp.MustCompile(`rel="next" href="`+Base+`/([^"]*)"`), 0
	for to, n := at, 0; to != "" && n < 20; n++ {
		page, _ := f.get(to)
		expect.Equal(t, len(page) < 100<<10, true, len(page))
		shown += strings.Count(page, "Line of a <em>paragraph</em>")
		if to = ""; next.MatchString(page) {
			to = strings.ReplaceAll(next.FindStringSubmatch(page)[1], "&amp;", "&")
		}
	}
	expect.Equal(t, shown, 4000)
	for _, hostile := range []string{strings.Repeat("[", 1<<18), strings.Repeat(">", 1<<18), strings.Repeat("<", 1<<18), strings.Repeat("*a_ ", 1<<16), strings.Repeat("![](", 1<<16)} {
		page, status := f.get(f.stored("# a\n\n- b\n- c\n\n"+hostile) + "?as=rendered")
		expect.Equal(t, status, http.StatusOK)
		expect.Equal(t, len(page) < 100<<10, true, len(page))
	}
}

// Images are sent as what their bytes are, and only for a page; all else is a download. Other bytes are shown in rows.
func TestImagesAndBytes(t *testing.T) {
	f := newFixture(t)
	var b bytes.Buffer
	expect.Must(t, png.Encode(&b, pictures.NewGray(pictures.Rect(0, 0, 9, 9))))
	for text, kind := range map[string]string{
		b.String(): "image/png", "GIF89a\x01\x00\x01\x00\x00\x00\x00\x00": "image/gif", "\xff\xd8\xff\xe0\x00\x10JFIF\x00\x00": "image/jpeg",
		"RIFF\x10\x00\x00\x00WEBPVP8 \x00\x00\x00": "image/webp", "BM\x00\x00\x00\x00\x00\x00": "", "<svg onload=\"alert(1)\">": "", "%PDF-1.7\n\x00\x00\x01": "",
	} {
		at := f.stored(text)
		for address, want := range map[string]string{"/raw?show=1": kind, "/raw": ""} {
			head := f.send(http.MethodGet, at+address, nil).Header()
			if want == "" {
				want = "application/octet-stream"
				expect.Has(t, head.Get("Content-Disposition"), "attachment")
			} else {
				expect.Has(t, head.Get("Content-Disposition"), "inline")
			}
			expect.Equal(t, head.Get("Content-Type"), want, fmt.Sprintf("%q", text))
		}
		body, _ := f.get(at)
		expect.Equal(t, strings.Contains(body, "raw?show=1"), kind != "", text)
	}
	data := append([]byte("\x00\x01\xff<b>"+aKey+"\n"), bytes.Repeat([]byte{0}, 10_000)...)
	at := f.stored(string(data))
	page := f.page(at + "?as=hex")
	expect.Has(t, page, "00000000 00 01 ff 3c 62 3e 2a 2a")
	expect.Lacks(t, page, fmt.Sprintf("% x", aKey[4:8]))
	expect.Has(t, f.page(at+"?from=10001"), "00002710 00")
	expect.Has(t, f.page(at+"?from=99999999"), "of 10,0")
	body, _ := f.get(f.linked(at, "from=2048")[0])
	expect.Has(t, body, "00000800")
}

// Values in another form than JSON are a tree of what jq reads of them, with what was noticed and where it is damaged.
func TestValuesAsTree(t *testing.T) {
	f := newFixture(t)
	many := ""
	for i := range 300 {
		many += fmt.Sprintf("---\nid: %d\nof: {name: n%d}\n", i, i)
	}
	for name, text := range map[string]string{
		"a.yaml": "# of the value\nitems:\n  - {a: 1, key: " + aKey + "}\n", "t.toml": "[s]\nn = 1\n", "i.ini": "[main]\nkey=value\n",
		"x.xml": "<r a='1'><i>x</i></r>\n", "tag.yaml": "a: !secret x\nb: 1\n", "one.yaml": "# a comment that is longer\n\"just\"\n",
		"bad.yaml": "a: 1\n---\na: 2\n---\nb: [1,2\n", "many.yaml": many,
	} {
		f.file(name, text)
	}
	const head = "It is shown as JSON, as jq reads it. "
	for address, want := range map[string]string{
		"a.yaml": head + "items [1] copy 0 {2} copy a 1 copy key \"[masked", "a.yaml&as=text": "2 items: 3 - {a: 1,",
		"t.toml": head + "s {1} copy n 1", "i.ini": head + "main {1} copy key \"value\"", "x.xml": "@a \"1\"",
		"tag.yaml": "tag.yaml: JSON has no tags: !secret at line 1 is dropped", "one.yaml": "\"just\" value at , bytes 0–7 of 7",
		"bad.yaml":             "not valid YAML: document 3: line 6: did not find expected ',' or ']' 0 {1} copy a 1 copy 1 {1} copy a 2 copy children 0–1 of 2",
		"many.yaml&top=299":    "299 {2} copy id 299 copy of {1} copy name \"n299\" copy children 299–299 of 300",
		"many.yaml&at=/250/of": "top 250 of " + head + "name \"n250\"",
	} {
		page := f.page("file?name=" + address)
		expect.Has(t, page, want, address)
		expect.Lacks(t, page, aKey)
	}
}
