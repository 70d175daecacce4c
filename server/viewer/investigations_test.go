package viewer

import (
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tools/upstream"
)

// investigated answers all orders of an investigation of the root: each directory cites, and has a flag. It returns the ID.
func (f *fixture) investigated(owner, summary string) string {
	f.t.Helper()
	type object = map[string]any
	id, args := "", object{"goal": "find the <b>pool"}
	for range 20 {
		var o struct {
			Investigation, Order, Step string
			Dirs                       []struct{ Path string }
		}
		a := f.call(owner, "s1", f.o.Investigator.Tool(), args)
		expect.Must(f.t, json.Unmarshal(expect.Value(json.Marshal(a.Extra))(f.t), &o), a.Blocks)
		if o.Order == "" {
			return id
		}
		id = strings.TrimPrefix(o.Investigation, "inv:")
		dirs, flags := []object{}, []object{}
		for _, d := range o.Dirs {
			dirs = append(dirs, object{"path": d.Path, "summary": summary, "dominant_category": "source"})
			flags = append(flags, object{"path": d.Path, "severity": "concern", "finding": "a concern"})
		}
		note := object{"dirs": dirs, "flags": append(flags, object{"path": "general", "severity": "critical", "finding": "the worst"}), "confidence": 0.9}
		switch o.Step {
		case "plan":
			note = object{"survey": object{"description": "a tree", "confidence": 0.8}, "plan": object{"investigation_order": "leaf-first"}}
		case "report":
			note = object{"report": object{"brief": "It is a tree.", "detailed": "It pools."}}
		}
		args = object{"order": o.Order, "note": note}
	}
	f.t.Fatal("the orders do not end")
	return ""
}

// follow returns the page to which the first link leads whose address contains a text.
func (f *fixture) follow(body, part string) string {
	f.t.Helper()
	for _, m := range regexp.MustCompile(`href="`+Base+`/([^"]*)"`).FindAllStringSubmatch(body, -1) {
		if strings.Contains(m[1], part) {
			page, status := f.get(html.UnescapeString(m[1]))
			expect.Equal(f.t, status, http.StatusOK, m[1])
			return page
		}
	}
	f.t.Fatalf("no link with %q in:\n%s", part, body)
	return ""
}

// An investigation leads from its flags and directories to the lines that they cite, and says which no longer hold.
func TestInvestigation(t *testing.T) {
	f := newFixture(t)
	f.file("src/pool.go", "package src\nvar Pool int\n")
	f.file("<i>x/a.go", "package a\n")
	id := f.investigated("ann", `It has src/pool.go:2 "var Pool", and `+aKey+`.`)
	f.who = Who{Owner: "ann"}
	expect.Contains(t, f.page("inv"), id, "find the <b>pool")
	body, _ := f.get("inv/" + id)
	page := plainText(body)
	expect.Contains(t, page, "critical general the worst concern . a concern", "<i>x agent 0.90", "src agent", "files were opened")
	expect.Lacks(t, body, "<i>x", aKey, "<b>pool")
	entry := f.follow(body, "path=src")
	expect.Contains(t, plainText(entry), "Flag: concern", "Directory", `src/pool.go:2 var Pool holds`)
	line := f.follow(entry, "line=2")
	expect.Has(t, line, `id="found"`)
	expect.Has(t, plainText(line), "2 var Pool int")
	expect.Has(t, f.page("inv/"+id+"?report=1"), "No report was shown yet")
	f.call("ann", "s1", f.o.Investigator.Tool(), map[string]any{"path": "inv:" + id, "show": "report"})
	expect.Contains(t, f.page("inv/"+id+"?report=1"), "It is a tree.", "CRITICAL: general: the worst")

	f.file("src/pool.go", "package src\n")
	expect.Has(t, f.page("inv/"+id+"?path=src"), "absent: the quote is not in the file; it held when this was written")
	for _, at := range []string{"inv/" + id + "?path=none", "inv/0123456789ab", "inv/../x"} {
		_, status := f.get(at)
		expect.Equal(t, status, http.StatusNotFound, at)
	}
	f.who = Who{Owner: "eve"}
	_, status := f.get("inv/" + id)
	expect.Equal(t, status, http.StatusNotFound, "of another owner")
	expect.Lacks(t, f.page("inv"), id)
	f.o.AnyOwner, f.who.Operator = true, true
	expect.Has(t, f.page("inv"), id)
	expect.Has(t, f.page("inv/"+id), "the worst")
}

// An answer has its facts, each of which opens its line, its steps, and what it rests on.
func TestAnswer(t *testing.T) {
	f := newFixture(t)
	f.file("docs/lease.md", "# Lease\n\nThe lease of the hall ends on 31 May 2027. <img src=x>\n")
	f.call("ann", "s1", f.o.Asker.Tool(), map[string]any{"question": "When does the lease of the hall end?"})
	f.who = Who{Owner: "ann"}
	list, _ := f.get("ans")
	expect.Has(t, plainText(list), "When does the lease of the hall end?")
	answer := f.follow(list, "ans/")
	expect.Contains(t, plainText(answer), "31 May 2027", "lease.md", "1 of 1 files", "Steps")
	expect.Lacks(t, answer, "<img")
	expect.Has(t, plainText(f.follow(answer, "line=3")), "3 The lease of the hall ends")
	id := regexp.MustCompile(`ans/([0-9a-z]{12})`).FindStringSubmatch(list)[1]
	f.who = Who{Owner: "eve"}
	_, status := f.get("ans/" + id)
	expect.Equal(t, status, http.StatusNotFound)
	expect.Lacks(t, f.page("ans"), id)
	f.o.AnyOwner, f.who.Operator = true, true
	expect.Has(t, f.page("ans/"+id), "31 May 2027")
}

// A server is shown with what changed in its tools, and how to approve that; only to people of this machine.
func TestServers(t *testing.T) {
	f := newFixture(t)
	expect.Has(t, f.page("servers"), "No server was wrapped yet")
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	one := upstream.Record{
		V: 1, Command: []string{"npx", "--key", aKey, "<b>"}, Modern: true, Server: "files", Approved: []json.RawMessage{raw(`{"name":"list","description":"Lists."}`)},
		Listed: []json.RawMessage{raw(`{"description":"Lists. <script>","name":"list"}`), raw(`{"name":"new","x":"` + strings.Repeat("y", 200<<10) + `"}`), raw(`{"name":"third"}`)},
		Held:   []upstream.Held{{Name: "list", Why: "changed"}, {Name: "new", Why: "new"}, {Name: "third", Why: "new"}},
	}
	key := upstream.Key(one.Command)
	expect.Must(t, upstream.RecordsIn(f.o.Records).Change(key, func(*upstream.Record) (*upstream.Record, error) { return &one, nil }))
	body, _ := f.get("servers")
	expect.Contains(t, plainText(body), key+" files npx --key [masked", "<b> stateless, 2026-07-28 1 3", "mcp-funnel upstream approve "+key,
		`- "description": "Lists.",`, `+ "description": "Lists. \u003cscript\u003e",`,
		"list (changed)", "new (new)", "Nothing was approved: the tool is new.")
	expect.Lacks(t, body, aKey, "<b>", `Lists. <script>`)
	expect.Equal(t, len(body) < 100<<10, true, len(body))
	for owner, status := range map[string]int{"eve": http.StatusForbidden, observations.Local: http.StatusOK} {
		f.who = Who{Owner: owner}
		_, got := f.get("servers")
		expect.Equal(t, got, status, owner)
	}
}

// A file is shown like an observation: masked, by its kind, with its boxes; none outside the roots is.
func TestFile(t *testing.T) {
	f := newFixture(t)
	f.file("a/<b> \u202e.txt", "one\nkey "+aKey+"\nthree <script>\n")
	name := "a/<b> \u202e.txt"
	body, status := f.get("file?" + url.Values{"name": {name}, "line": {"3"}}.Encode())
	expect.Equal(t, status, http.StatusOK)
	expect.Contains(t, plainText(body), "a/<b>", "three <script>", "[masked")
	expect.Lacks(t, body, aKey, "<b>", "<script>\n", "\u202e")
	expect.Has(t, f.page("file?"+url.Values{"name": {name}, "grep": {"three"}}.Encode()), "3: three <script>")
	for _, name := range []string{"", ".", "../x", "/etc/passwd", f.store + "/records", "missing", "obs:0123456789ab"} {
		_, status := f.get("file?" + url.Values{"name": {name}}.Encode())
		expect.Equal(t, status >= 400 && status < 500, true, name)
	}
	id := f.keep("bob", "t", "of bob\n", nil)
	_, status = f.get("file?name=obs:" + string(id))
	expect.Equal(t, status, http.StatusNotFound, "of another owner")
}

// A name can be given and taken; deleting asks on a page of its own, without a script.
func TestRenameAndDelete(t *testing.T) {
	f := newFixture(t)
	id := string(f.keep(observations.Local, "build", "text\n", nil))
	post := func(what string, fields url.Values) int {
		fields.Set("act", what)
		fields.Set("id", id)
		return f.send(http.MethodPost, "act", fields).Code
	}
	expect.Equal(t, post("rename", url.Values{"name": {"<b>new"}}), http.StatusSeeOther)
	expect.Has(t, f.page("obs/"+id), "<b>new (build)")
	expect.Equal(t, post("rename", url.Values{"name": {strings.Repeat("x", 201)}}) >= 400, true)
	expect.Has(t, f.page("obs/"+id), "<b>new (build)")
	f.who.Owner = "eve"
	expect.Equal(t, post("rename", url.Values{"name": {"x"}}), http.StatusNotFound)
	f.who.Owner = observations.Local

	body, _ := f.get("obs/" + id)
	expect.Lacks(t, body, `value="delete"`) // a click on this page deletes nothing
	asks := f.follow(body, "ask=delete")
	expect.Contains(t, asks, `value="delete"`, "Its bytes are gone for good.")
	expect.Has(t, f.page("obs/"+id), "<b>new (build)")
	expect.Equal(t, post("delete", url.Values{}), http.StatusSeeOther)
	_, status := f.get("obs/" + id)
	expect.Equal(t, status, http.StatusNotFound)
}
