package viewer

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tools/fs"
)

// A long pointer makes no long page, whether something is there or not.
func TestLongPointers(t *testing.T) {
	f := newFixture(t)
	deep := f.stored(strings.Repeat("[", 1500) + "1" + strings.Repeat("]", 1500))
	for _, pointer := range []string{strings.Repeat("/a", 4000), strings.Repeat("/", 15_000), strings.Repeat("/0", 1000), strings.Repeat("/0", 2040)} {
		body, status := f.get(deep + "?at=" + url.QueryEscape(pointer))
		if len(body) > 100<<10 {
			t.Errorf("%d bytes of a page for a pointer of %d", len(body), len(pointer))
		}
		expect.Equal(t, status == http.StatusOK, strings.HasPrefix(pointer, "/0") && len(pointer) < 4<<10 && len(pointer) < 3000, "%.10s", pointer)
	}
}

// A scalar is a JSON text too.
func TestScalarAtTheTop(t *testing.T) {
	f := newFixture(t)
	for text, want := range map[string]string{`"hello <b>"`: `"hello <b>"`, "42.50": "42.50", " null ": "null"} {
		expect.Has(t, f.page(f.stored(text)+"?as=tree"), want)
	}
}

// The filter that is copied finds the value, also where a key looks like an index.
func TestFiltersOfDigits(t *testing.T) {
	f := newFixture(t)
	at := f.stored(`{"0":{"a":1},"1":{"b":[7,{"2":"two"}]},"list":[{"7":{"x":5}}],"01":3,"odd key":4}`)
	for _, page := range []string{"", "?at=/1", "?at=/list/0", "?at=/1/b"} {
		body, _ := f.get(at + page)
		found := 0
		for _, part := range strings.Split(body, `data-copy="`)[1:] {
			filter, _, _ := strings.Cut(part, `"`)
			filter = strings.NewReplacer("&#34;", `"`, "&#43;", "+").Replace(filter)
			answer := f.page(at + "?jq=" + url.QueryEscape(filter))
			_, answer, _ = strings.Cut(answer, "Answer of jq ")
			if strings.HasPrefix(answer, "error") || strings.HasPrefix(answer, "null") {
				t.Errorf("%s: %s gives %.60s", page, filter, answer)
			}
			found++
		}
		if found == 0 {
			t.Errorf("%s has no filters", page)
		}
	}
}

// What a form cannot ask for is one clear error.
func TestFormsThatAskForNothing(t *testing.T) {
	f := newFixture(t)
	id := string(f.keep(observations.Local, "t", "text\n", map[string]int{"n": 1}))
	for name, form := range map[string]url.Values{
		"null": {"act": {"save"}, "tool": {"jq"}, "args": {"null"}}, "a list": {"act": {"save"}, "tool": {"jq"}, "args": {"[1]"}},
		"another tool": {"act": {"save"}, "tool": {"search"}, "args": {"{}"}}, "nothing": {"act": {"nothing"}, "id": {id}},
		"a long name": {"act": {"rename"}, "id": {id}, "name": {strings.Repeat("x", 201)}},
	} {
		expect.Equal(t, f.send(http.MethodPost, "act", form).Code, http.StatusBadRequest, name)
	}
}

// git show begins with the commit; a merge has several old texts, whose lines have no one number.
func TestCommitBeforeADiff(t *testing.T) {
	f := newFixture(t)
	show := "commit 1234567890123456789012345678901234567890\nAuthor: A <a@example.org>\n\n    The subject\n\ndiff --cc a.txt\n" +
		"index 1111111,2222222..3333333\n--- a/a.txt\n+++ b/a.txt\n@@@ -1,2 -1,2 +1,3 @@@\n  one\n++two\n  three\n"
	at := f.stored(show)
	expect.Has(t, f.page(at), "The subject", "a.txt")
	rows := f.page(at + "?record=0")
	expect.Has(t, rows, "one 1 one", "2 ++two", "three 3 three")
	expect.Lacks(t, rows, "2 three")
}

// Two objects are one record that changed; records behind a broken line are compared too, and the text is named.
func TestComparedRecords(t *testing.T) {
	f := newFixture(t)
	compare := func(a, b string) string {
		return f.page("compare?a=" + strings.TrimPrefix(f.stored(a), "obs/") + "&b=" + strings.TrimPrefix(f.stored(b), "obs/"))
	}
	expect.Has(t, compare(`{"a":{"b":[1,2,3]},"k":"v"}`, `{"k":"w","a":{"b":[1,3]},"n":null}`), "0 of 1 records added, 0 of 1 removed, 1 changed")
	lines := func(broken string, last int) (text string) {
		for i := range 200 {
			text += fmt.Sprintf("{\"i\":%d,\"v\":\"value %d\"}\n", i, i)
			if i == 50 {
				text += broken
			}
		}
		return text + fmt.Sprintf("{\"i\":200,\"v\":\"value %d\"}\n", last)
	}
	csv := func(drop, change int) (text string) {
		text = "id,name,amount\n"
		for i := range 40 {
			if i != drop {
				text += fmt.Sprintf("%d,customer %d,%d\n", 100+i, i, i*7+map[bool]int{true: 1}[i == change])
			}
		}
		return text
	}
	rows := compare(csv(7, -1), csv(-1, 8))
	expect.Has(t, rows, "1 of 40 records added, 0 of 39 removed, 1 changed", "108 108")
	a, b := strings.TrimPrefix(f.stored(csv(-1, -1)), "obs/"), strings.TrimPrefix(f.stored(csv(-1, 3)), "obs/")
	expect.Has(t, f.page("compare?a="+a+"&b="+b+"&key=nosuch"), "nosuch does not tell the records of both apart")
	page := compare(lines("{broken\n", 1), lines("", 2))
	expect.Has(t, page, "0 of 201 records added, 0 of 201 removed, 1 changed", "What is damaged is not compared: obs:")
}

// A receipt of a file says that the file was not kept, and a session is found without its day.
func TestCallOfAFile(t *testing.T) {
	f := newFixture(t)
	f.file("app.log", strings.Repeat("2026-11-29T08:00:00Z INFO a line of the log\n", 5000))
	f.call(observations.Local, "local", fs.Read(), map[string]string{"path": "app.log"})
	list, _ := f.get("sessions/local")
	ref := regexp.MustCompile(`call=([\w.~-]+)`).FindStringSubmatch(list)
	if ref == nil {
		t.Fatalf("the session has no call: %s", plainText(list))
	}
	page := f.page("sessions/local?call=" + ref[1])
	expect.Has(t, page, "LARGE OUTPUT DETECTED: read from", "Nothing was kept: the first line of what was shown says why.")
	expect.Lacks(t, page, "shown whole")
}
