package server

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/server/servertest"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

type listedResource struct {
	URI, Name, Title, Description, MIMEType string
	Size                                    int64
}

func listAll(t *testing.T, c *client, between func(page int)) (all []listedResource) {
	t.Helper()
	cursor := ""
	for page := 0; ; page++ {
		var got struct {
			Result struct {
				Resources  []listedResource
				NextCursor string
			}
		}
		expect.Must(t, json.Unmarshal(
			[]byte(c.request("resources/list", `{`+cursor+`}`)), &got,
		))
		all = append(all, got.Result.Resources...)
		if got.Result.NextCursor == "" {
			return all
		}
		cursor = `"cursor":"` + got.Result.NextCursor + `"`
		between(page)
	}
}

// A page ends in the middle of observations of one time, and its last one is removed: the others follow all the same.
func TestCursorOfOneTime(t *testing.T) {
	at := time.Unix(1_700_000_000, 5)
	var list []*observations.Observation
	for _, id := range []observations.ID{"a", "b", "c", "d"} {
		list = append(list, &observations.Observation{Created: at, ID: id})
	}
	list = append(list, &observations.Observation{Created: at.Add(-1), ID: "a"})
	for name, given := range map[string][]*observations.Observation{
		"still there": list, "removed": slices.Delete(slices.Clone(list), 1, 2),
	} {
		if got, err := afterCursor(given, cursorOf(list[1])); err != nil || !slices.Equal(got, list[2:]) {
			t.Errorf("%s: %d follow, %v", name, len(got), err)
		}
	}
	if got, err := afterCursor(list, cursorOf(list[4])); err != nil || len(got) > 0 {
		t.Errorf("behind the last one: %d, %v", len(got), err)
	}
}

func TestResourcesList(t *testing.T) {
	store := servertest.NewTestStore(t)
	const n = 2*resourcesPage + 7
	ids := make([]observations.ID, n)
	for i := range ids {
		ids[i] = servertest.Keep(t, store, observations.Local, fmt.Sprint("text ", i), observations.Stats{Lines: 1, Chars: 6})
	}
	servertest.Keep(t, store, "somebody", "theirs", observations.Stats{})
	c := newClient(t, newTestServer(t, func(o *Options) { o.Store = store }))
	all := listAll(t, c, func(page int) {
		if page == 0 { // the list changes under the reader: something new, and the end of the first page goes
			servertest.Keep(t, store, observations.Local, "newer", observations.Stats{})
			expect.Must(t, store.Remove(observations.Local, ids[n-resourcesPage]))
		}
	})
	expect.MustEqual(t, len(all), n, "listed")
	names := map[string]bool{}
	for i, r := range all {
		expect.MustEqual(t, r.URI, observations.URIPrefix+string(ids[n-1-i]), "entry %d", i)
		if names[r.Name] || r.Name == "" || r.MIMEType != "text/plain" || r.Size == 0 ||
			!strings.Contains(r.Description, `search {"pattern":"x"}`) {
			t.Errorf("entry %d: %+v", i, r)
		}
		names[r.Name] = true
	}
}

func TestResourceTotals(t *testing.T) {
	store := servertest.NewTestStore(t)
	servertest.Keep(t, store, observations.Local, "x", observations.Stats{Lines: 1, Chars: 1})
	two := servertest.Keep(t, store, observations.Local, "x\n\n", observations.Stats{Lines: 2, Chars: 3})
	c := newClient(t, newTestServer(t, func(o *Options) { o.Store = store }))
	c.says("resources/list", `{}`, `"description":"1 line, 1 char, text; `, `"description":"2 lines, 3 chars, text; `)
	c.says("resources/read", `{"uri":"`+observations.URIPrefix+string(two)+`/receipt"}`,
		"was shown whole: 2 lines, 3 chars, text")
}

func TestResourcesRead(t *testing.T) {
	store := servertest.NewTestStore(t)
	big := strings.Repeat("0123456789abcde\n", 40_000)
	id := func(text string, seen observations.Stats) string {
		return string(servertest.Keep(t, store, observations.Local, text, seen))
	}
	small := id("a <b> & c\n\x1b[31m", observations.Stats{})
	records := id("{\"a\":\"\u202e\"}\n", observations.Stats{Kind: string(content.NDJSON), Ext: "ndjson"})
	binary := id("\x89PNG\r\n\x1a\n\x00\x00", observations.Stats{Kind: string(content.Binary), Ext: "bin"})
	large := id(big, observations.Stats{Lines: 40000, Receipt: "LARGE OUTPUT DETECTED: kept whole as obs:x"})
	latin := id("caf\xe9 du monde\n", observations.Stats{})
	page := id(strings.Repeat("a line\n", 1000), observations.Stats{Tokens: 3000, Chars: 7000})
	over := id(strings.Repeat("a line\n", 3000), observations.Stats{Tokens: 9000, Chars: 21000, Receipt: "its receipt"})
	gone := id("gone", observations.Stats{})
	expect.Must(t, store.Remove(observations.Local, observations.ID(gone)))
	theirs := string(servertest.Keep(t, store, "somebody", "theirs", observations.Stats{}))

	c := newClient(t, newTestServer(t, func(o *Options) {
		o.Store, o.Tools = store, Catalog(Parts{})
		o.Sources = func(funnel.Session) source.Set {
			return source.Set{Places: []source.NamedPlace{source.Observations(store, observations.Local)}}
		}
	}))
	ask := func(uri string) string {
		return c.request("resources/read", `{"uri":"`+uri+`"}`)
	}
	uri := func(id string) string { return observations.URIPrefix + id }
	expect.Contains(
		t, ask(uri(small)), `"uri":"`+uri(small)+`"`, `"mimeType":"text/plain"`, `"text":"a <b> & c\n\\x1b[31m"`,
	)
	expect.Contains(t, ask(uri(strings.ToUpper(small))), `a <b> & c`)
	expect.Contains(t, ask(uri(records)), `"mimeType":"application/x-ndjson"`, `\\u202e`)
	expect.Contains(
		t, ask(uri(binary)), `"mimeType":"image/png"`,
		`"blob":"`+base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n\x00\x00"))+`"`,
	)
	expect.Contains(t, ask(uri(latin)), "café du monde")
	got := ask(uri(large))
	expect.Contains(t, got, "LARGE OUTPUT DETECTED", "parts: "+uri(large)+"/lines/1-50, ", uri(large)+"/whole")
	if len(got) > 2000 {
		t.Errorf("a read over a page is %d bytes", len(got))
	}
	if got := ask(uri(page)); strings.Count(got, "a line") != 1000 {
		t.Errorf("a read of a page is %d bytes", len(got))
	}
	expect.Contains(t, ask(uri(over)), "its receipt\\nparts: ")
	if got := ask(uri(over) + "/whole"); strings.Count(got, "a line") != 3000 {
		t.Errorf("the whole is %d bytes", len(got))
	}
	expect.Contains(t, ask(uri(over)+"/lines/2999-"), "showing 2999-3000 of 3000", "a line")
	expect.Contains(t, ask(uri(records)+"/records/0"), `{\"a\":`)
	expect.Contains(t, ask(uri(over)+"/lines/x-y"), "-32602", "lines")
	expect.Contains(t, ask(uri(large)+"/receipt"), `"text":"LARGE OUTPUT DETECTED: kept whole as obs:x"`)
	expect.Contains(t, ask(uri(small)+"/receipt"), "was shown whole")

	expect.Contains(t, ask(uri(gone)), "-32002", "has expired", `search {\"pattern\":\"x\"}`, "repeat that call")
	expect.Contains(t, ask(uri("0123456789ab")), "-32002", "no observation obs:0123456789ab")
	unknown, foreign := ask(uri("0123456789ab")), ask(uri(theirs))
	if strings.ReplaceAll(unknown, "0123456789ab", "ID") != strings.ReplaceAll(foreign, theirs, "ID") {
		t.Errorf("another owner's observation is told apart from an unknown one:\n%s\n%s", unknown, foreign)
	}
	for _, bad := range []string{uri("short"), uri("k3v9q2m7x4ab5"), uri(small) +
		"/lines", uri("uuuuuuuuuuuu"), "observation://", "OBS:" + small} {
		expect.Contains(t, ask(bad), "-32002")
	}
	modern := c.request("resources/read", `{"uri":"`+uri(gone)+`",`+servertest.ModernMeta+`}`)
	expect.Contains(t, modern, "-32602", "has expired")
}

func TestCompletion(t *testing.T) {
	store := servertest.NewTestStore(t)
	ids := map[string]bool{}
	var last observations.ID
	for range maxCompletions + 5 {
		last = servertest.Keep(t, store, observations.Local, "x", observations.Stats{})
		ids[string(last)] = true
	}
	c := newClient(t, newTestServer(t, func(o *Options) { o.Store = store }))
	ask := func(ref, name, value string) (values []string, total int, more bool) {
		var got struct {
			Result struct {
				Completion struct {
					Values  []string
					Total   int
					HasMore bool
				}
			}
		}
		message := c.request("completion/complete", `{"ref":`+ref+`,"argument":{"name":"`+name+`","value":"`+value+`"}}`)
		expect.Must(t, json.Unmarshal([]byte(message), &got))
		return got.Result.Completion.Values, got.Result.Completion.Total, got.Result.Completion.HasMore
	}
	const template = `{"type":"ref/resource","uri":"observation://{id}"}`
	values, total, more := ask(template, "id", "")
	if len(values) != maxCompletions || total != maxCompletions+5 || !more || values[0] != string(last) {
		t.Errorf("%d values of %d, more %v, first %s", len(values), total, more, values[0])
	}
	list, err := store.List(observations.Local, false)
	if err != nil || len(list) < len(values) {
		t.Fatalf("%d, %v", len(list), err)
	}
	for i, v := range values {
		if v != string(list[i].ID) || i > 0 && list[i].Created.After(list[i-1].Created) {
			t.Errorf("value %d is %s, not %s: newest first", i, v, list[i].ID)
		}
	}
	values, total, more = ask(template, "id", strings.ToUpper(string(last[:6])))
	if len(values) == 0 || total != len(values) || more {
		t.Errorf("by a prefix: %v, %d, %v", values, total, more)
	}
	for _, v := range values {
		if !ids[v] || !strings.HasPrefix(v, string(last[:6])) {
			t.Errorf("proposed: %q", v)
		}
	}
	values, _, _ = ask(`{"type":"ref/prompt","name":"investigate-output"}`, "source", "obs:"+string(last[:8]))
	if len(values) != 1 || values[0] != "obs:"+string(last) {
		t.Errorf("for a prompt: %v", values)
	}
	if values, total, more := ask(template, "id", "no such"); len(values) != 0 || total != 0 || more {
		t.Errorf("by a prefix that none has: %v", values)
	}
}
