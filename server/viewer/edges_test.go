package viewer

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// pages returns the pages from an address on, each as the next one of the one before it.
func (f *fixture) pages(address string) (all []string) {
	next := regexp.MustCompile(`rel="next" href="` + Base + `/([^"]*)"`)
	for to := address; to != "" && len(all) < 100; {
		body, _ := f.get(to)
		all = append(all, plainText(body))
		expect.Equal(f.t, len(body) < 100<<10, true, len(body))
		if to = ""; next.MatchString(body) {
			to = strings.ReplaceAll(next.FindStringSubmatch(body)[1], "&amp;", "&")
		}
	}
	return all
}

// A tree has as many children a page as there is room for, and each one on one of the pages.
func TestTreePages(t *testing.T) {
	f := newFixture(t)
	short := "[" + strings.Repeat("1,", 200) + "2]\n"
	wide := "[" + strings.Repeat(`{"some":1,"keys":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]},`, 200) + "2]\n"
	for text, most := range map[string]int{short: 5, wide: 20} {
		at := f.stored(text)
		all := f.pages(at)
		expect.Equal(t, len(all) <= most, true, len(all))
		var seen []string
		for _, p := range all {
			for _, m := range regexp.MustCompile(`children (\d+)–(\d+) of 201`).FindAllStringSubmatch(p, -1) {
				seen = append(seen, m[1:]...)
			}
		}
		for i := 1; i+1 < len(seen); i += 2 {
			var last, next int
			_, _ = fmt.Sscan(seen[i]+" "+seen[i+1], &last, &next)
			expect.Equal(t, next, last+1)
		}
		expect.Equal(t, seen[len(seen)-1], "200")
	}
}

// A tree says of keys that they are repeated, of numbers that they are cut, and of lines that they are no JSON. Keys
// are keys wherever they begin, and say of a value that it is a secret.
func TestTreeOfDoubt(t *testing.T) {
	f := newFixture(t)
	at := f.stored("{" + strings.Repeat(" ", 100) + `"password":"S3cr3tPassw0rdXyz9","a":1,` +
		`"a":{"api_key":"S3cr3tPassw0rdXyz9","b":1,"b":2},"n":` + strings.Repeat("7", 6000) + "}\n")
	page := f.page(at)
	expect.Lacks(t, page, "S3cr3t", strings.Repeat("7", nodeText+1))
	expect.Contains(t, page, `password "[masked`,
		"a 1 copy a {3} this key is repeated: jq has the last value copy api_key",
		"b 2 this key is repeated", strings.Repeat("7", nodeText)+" …", "children 0–3 of 4")
	expect.Has(t, f.page(at+"?at=/n"), "7 value at /n, bytes 0–6,000 of 6,000")
	expect.Has(t, f.page(at+"?at=/a"), "children 0–2 of 3")
	_, status := f.get(at + "?at=/none")
	expect.Equal(t, status, http.StatusNotFound)
	at = f.stored(strings.Repeat("{\"a\":1}\n", 50) + "{bad\n" + strings.Repeat("{\"a\":2}\n", 50))
	expect.Has(t, f.page(at), "1 line is no JSON and not shown, the first: invalid character 'b'")
	expect.Has(t, f.page(at+"?top=50"), "50 {1} copy a 2")
}

// No edge of a part that is shown leaves half of a secret.
func TestSecretsAtEdges(t *testing.T) {
	f := newFixture(t)
	for text, address := range map[string]string{
		strings.Repeat("x", 2030) + " " + aKey + " end\n":                       "?line=1&from=",
		"# a\n\n- b\n- c\n\n" + strings.Repeat("x", 2014) + " " + aKey + " end": "?as=rendered&from=",
		"\x00\xff\x01" + strings.Repeat("\x00", 2027) + " " + aKey + " end\x00": "?as=hex&from=",
	} {
		at := f.stored(text)
		for from := 2000; from < 2080; from += 12 {
			page := strings.ReplaceAll(f.page(fmt.Sprintf("%s%s%d", at, address, from)), " ", "")
			for i := 0; i+6 < len(aKey); i++ {
				expect.Lacks(t, page, aKey[i:i+6], strings.ReplaceAll(fmt.Sprintf("% x", aKey[i:i+6]), " ", ""))
			}
		}
	}
}

// Lines of a text without an index are found as well, and their number is known once all were read.
func TestLinesOfFiles(t *testing.T) {
	f := newFixture(t)
	var b strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&b, "line %d of this file\r\n", i+1)
	}
	f.file("long.txt", b.String()+"the last")
	at := "file?" + url.Values{"name": {"long.txt"}}.Encode()
	expect.Has(t, f.page(at+"&line=150000"), "150000 line 150000 of this file")
	expect.Has(t, f.page(at+"&line=150000"), "of 200,001")
	expect.Has(t, f.page(at+"&top=200001"), "200001 the last lines 200,001–200,001 of 200,001")
	expect.Has(t, f.page(at+"&top=200002"), "the text has fewer. no lines from 200,002 of 200,001")
	expect.Has(t, f.page(at+"&line=150000&from=5"), "150000 of this file line 150,000, bytes 5–24 of 24")
	expect.Has(t, f.page(at+"&line=200001&from=0"), "the last line 200,001, bytes 0–8 of 8")
	_, status := f.get(at + "&line=200002&from=0")
	expect.Equal(t, status, http.StatusNotFound)
	expect.Has(t, f.page(f.stored("one\ntwo\n")+"?line=1&from=0"), "one line 1, bytes 0–3 of 3")
	f.file("long.txt", b.String()+"another") // the list is of the text as it is now
	expect.Has(t, f.page(at+"&top=200001"), "200001 another")
}

// A text in UTF-16 has the same pages as in UTF-8.
func TestPagesOfUTF16(t *testing.T) {
	f := newFixture(t)
	for text, at := range map[string]string{
		`{"a":[` + strings.Repeat(`{"k":"é"},`, 300) + `1]}` + "\n": "?at=/a&top=290", bigTable(300): "?record=299",
		strings.Repeat("{\"é\":1}\n", 300): "?at=/299",
	} {
		raw := "\xff\xfe"
		for _, c := range utf16.Encode([]rune(text)) {
			raw += string([]byte{byte(c), byte(c >> 8)})
		}
		for _, more := range []string{"", "?top=250", at, "?as=text&line=1&from=0"} {
			plain, wide := f.page(f.stored(text)+more), f.page(f.stored(raw)+more)
			_, plain, _ = strings.Cut(plain, "Content ")
			_, wide, _ = strings.Cut(wide, "Content ")
			expect.Equal(t, wide, plain, more)
		}
	}
}

// A list of a text that has changed since is no longer read.
func TestListOfAnotherVersion(t *testing.T) {
	f := newFixture(t)
	blocks := func() (walk, func(), error) {
		return func(ctx context.Context, _ func(int64, int64) bool) error {
			<-ctx.Done()
			return ctx.Err()
		}, func() {}, nil
	}
	old := f.list("name", "0", nil, blocks)
	expect.Equal(t, f.list("name", "0", nil, blocks), old)
	for i := range 10 {
		f.list("name", fmt.Sprint(i), nil, blocks)
	}
	l := f.list("name", "the last", nil, func() (walk, func(), error) {
		return func(context.Context, func(int64, int64) bool) error { return nil }, func() {}, nil
	})
	done := false
	for i := 0; i < 100 && !done; i++ {
		_, done, _ = l.wait(t.Context(), 1)
	}
	expect.Equal(t, done, true)
}

// The last record of a text ends where the text does, also if that is longer or shorter as it is stored.
func TestLastRecordOfOtherEncodings(t *testing.T) {
	f := newFixture(t)
	text := "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,0 +1,90 @@\n" + strings.Repeat("+é è à ü\n", 89) + "+the end\n"
	latin := ""
	for _, c := range text {
		latin += string([]byte{byte(c)})
	}
	utf := "\xff\xfe"
	for _, c := range utf16.Encode([]rune(text)) {
		utf += string([]byte{byte(c), byte(c >> 8)})
	}
	for _, raw := range []string{text, latin, utf} {
		at := f.stored(raw)
		expect.Has(t, f.page(at), "x modified 90 0", raw[:8])
		expect.Has(t, f.page(at+"?record=0"), "90 +the end", raw[:8])
	}
}

// A page of lines reads no more than the beginning of a very long one, and says so.
func TestLinesBesideALongOne(t *testing.T) {
	f := newFixture(t)
	at := f.stored("first\n" + strings.Repeat("long ", 4<<20) + "\nthird\n")
	all := f.pages(at + "?as=text")
	expect.Equal(t, len(all), 2)
	expect.Has(t, all[0], " … over 8,387,602 more bytes: open the line by its number lines 1–2 of 3")
	expect.Has(t, all[1], "3 third lines 3–3 of 3")
	expect.Has(t, f.page(at+"?line=2&from=20971510"), "line 2, bytes 20,971,510–20,971,520 of 20,971,520")
	expect.Equal(t, len(f.pages(f.stored(strings.Repeat("long ", 4<<20))+"?as=text")), 1)
}
