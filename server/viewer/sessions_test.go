package viewer

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
)

// traced adds a call to the trace as another process would, with its arguments and what it showed; "" is not kept.
func (f *fixture) traced(c trace.Call, args, text string) {
	f.t.Helper()
	log := expect.Value(trace.Open(trace.Dir(f.store)))(f.t)
	if c.At.IsZero() {
		c.At = time.Now()
	}
	if c.Status == "" {
		c.Status = "success"
	}
	var s *trace.Shown
	if text != "" {
		s = &trace.Shown{Args: json.RawMessage(args), Text: text}
	}
	expect.Must(f.t, log.Append(c, s))
	expect.Must(f.t, log.Close())
}

var hrefs = regexp.MustCompile(`href="/view/([^"]*)"`)

// linked returns the addresses on a page that have a part in them, each once.
func (f *fixture) linked(address, part string) (all []string) {
	f.t.Helper()
	body, _ := f.get(address)
	known := map[string]bool{}
	for _, m := range hrefs.FindAllStringSubmatch(body, -1) {
		if at := html.UnescapeString(m[1]); strings.Contains(at, part) && !known[at] {
			known[at] = true
			all = append(all, at)
		}
	}
	return all
}

// A call shows what its model was shown, whole, beside the beginning of what was kept.
func TestCall(t *testing.T) {
	f := newFixture(t)
	id := f.keep(observations.Local, "build", "first line\n"+strings.Repeat("line\n", 3000)+"last line\n", map[string]int{"jobs": 7})
	f.call(observations.Local, "s1", f.o.Tools[1], map[string]string{"path": "/nowhere"})
	f.traced(trace.Call{Owner: observations.Local, Session: "s1", Tool: "small"}, `{}`, "all of it")
	expect.Has(t, f.page("sessions"), "s1")
	timeline := f.page("sessions/s1")
	for _, want := range []string{"Calls 3", "Failed 1", `{"jobs":7}`, string(id), "small"} {
		expect.Has(t, timeline, want)
	}
	found := map[string]string{}
	for _, at := range f.linked("sessions/s1", "call=") {
		p := f.page(at)
		found[regexp.MustCompile(`Tool (\w+)`).FindStringSubmatch(p)[1]] = p
	}
	expect.Contains(t, found["build"], "What the model was shown SAVED as obs:"+string(id), "What was kept obs:"+string(id)+" 1 first line", "of 3,002")
	expect.Contains(t, found["find"], "/nowhere", "Nothing was kept.")
	expect.Contains(t, found["small"], "What the model was shown all of it", "Nothing was kept: the output was shown whole.")
	expect.Must(t, f.o.Store.Remove(observations.Local, id))
	expect.Has(t, f.page(f.linked("sessions/s1", "call=")[2]), "obs:"+string(id)+" expired")
}

// Where no text is kept, a call says so and shows the rest.
func TestCallWithoutText(t *testing.T) {
	f := newFixture(t)
	f.o.Trace.KeepShown(0)
	f.keep(observations.Local, "build", "kept\n", nil)
	p := f.page(f.linked("sessions/s1", "call=")[0])
	expect.Contains(t, p, "Tool build", "what this call was asked and showed is not kept", "1 kept")
	expect.Has(t, f.page("search?q=build"), "Of 1 of these calls no text is kept")
}

// The name of a session comes from its client. Each one leads to its page, and runs nothing there.
func TestHostileNames(t *testing.T) {
	f := newFixture(t)
	keys := []string{
		"s/agent", "../../obs", "a//b", "/a/", "a/raw", "a/./b", "?days=1#x", "%2e%2e/%2f", "<script>alert(1)</script>",
		`" onclick="alert(1)`, "a\u202eb", "\x1b[31mred", strings.Repeat("long", 50), "ключ", "local", "", "raw", "key", "\xff",
	}
	for i, key := range keys {
		f.traced(trace.Call{Owner: observations.Local, Session: key, Tool: fmt.Sprintf("tool%d<b>\u202e", i)}, `{"a":"<img src=x>"}`, "<i>text")
	}
	all := f.linked("sessions", "sessions")
	all = all[1:] // the menu
	expect.Equal(t, len(all), len(keys))
	for i, at := range all {
		body, status := f.get(at)
		expect.Equal(t, status, http.StatusOK, at)
		expect.Has(t, plainText(body), fmt.Sprintf("tool%d<b>", len(keys)-1-i), at)
		for _, call := range f.linked(at, "call=") {
			body, status := f.get(call)
			expect.Equal(t, status, http.StatusOK, call)
			expect.Has(t, plainText(body), "<i>text", call)
			expect.Lacks(t, body, "<i>", "<img src=x", "<script>alert", "\u202e", "\x1b", `" onclick`)
		}
		expect.Lacks(t, body, "<b>", "<img src=x", "<script>alert", "\u202e", "\x1b", `" onclick`)
	}
}

// A person has the sessions of one owner, by whatever address; an operator who asked for all has those of all.
func TestSessionsOfOwners(t *testing.T) {
	for _, any := range []bool{false, true} {
		f := newFixture(t, func(o *Options) { o.AnyOwner = any })
		for _, owner := range []string{"ann", "bob"} {
			f.keep(owner, "tool_of_"+owner, "text of "+owner+"\n", map[string]string{"by": owner})
			f.traced(trace.Call{Owner: owner, Session: "only " + owner, Tool: "t"}, `{}`, "shown to "+owner)
		}
		f.who = Who{Owner: "bob", Operator: true}
		ofBob := f.linked("sessions/only%20bob", "call=")[0]
		inSession := f.linked("sessions/s1", "call=")[0]
		f.who.Owner = "ann"
		for _, at := range []string{"", "sessions", "search?q=shown", "search?tool=tool_of_bob", "search?in=observations"} {
			p := f.page(at)
			expect.Equal(t, strings.Contains(p, "bob"), any, "%s: %s", at, p)
			expect.Equal(t, strings.Contains(p, "Owner"), any && !strings.Contains(at, "in="), at)
		}
		ref := expect.Value(url.Parse(inSession))(t).Query().Get("call")
		for _, at := range []string{"sessions/only%20bob", ofBob, "sessions/only%20bob?owner=bob", "sessions/s1?owner=bob&call=" + ref} {
			_, status := f.get(at)
			if want := http.StatusNotFound; (status != want) != any {
				t.Errorf("%s is %d with any=%v", at, status, any)
			}
		}
		for _, wrong := range []string{ref, "x", "../../etc/passwd", "20260101_1-00000000.0"} {
			_, status := f.get("sessions/only%20ann?call=" + url.QueryEscape(wrong))
			expect.Equal(t, status, http.StatusNotFound, wrong)
		}
	}
}

// A secret that a trace holds unmasked is on no page, neither whole nor in parts.
func TestTraceIsMasked(t *testing.T) {
	f := newFixture(t)
	text := strings.Repeat("x", 120) + " needle " + aKey + " end"
	f.traced(trace.Call{Owner: observations.Local, Session: aKey, Tool: "t"}, `{"key":"`+aKey+`"}`, text)
	pages := append(f.linked("sessions", "call="), "sessions", "", "search?q=needle", "search?q=ghp", "search?q="+aKey[:8], "search?tool=t")
	for _, at := range f.linked("sessions", "sessions/") {
		pages = append(pages, at)
		pages = append(pages, f.linked(at, "call=")...)
	}
	for _, at := range pages {
		expect.Lacks(t, f.page(at), aKey, aKey[10:20], aKey[30:])
	}
	expect.Has(t, f.page("search?q=needle"), "needle")
}

// A name that is cut leaves no part of a secret, wherever the cut is.
func TestNamesAreMaskedBeforeTheyAreCut(t *testing.T) {
	f := newFixture(t)
	for after := range 5 { // the end of the key is among the last characters, which stay
		name := strings.Repeat("n", 70) + " " + aKey + strings.Repeat(" m", after)
		f.traced(trace.Call{Owner: observations.Local, Session: name, Client: name, Tool: name}, `{}`, "text")
	}
	pages := append(f.linked("sessions", "sessions"), "", "search?q=text")
	pages = append(pages, f.linked("search?q=text", "call=")...)
	for _, at := range pages {
		expect.Lacks(t, f.page(at), aKey[:12], aKey[8:16], aKey[16:24], aKey[len(aKey)-8:])
	}
}

// Calls that could not be read are not forgotten: pages say that they lack some, until all is read again.
func TestUnreadableTrace(t *testing.T) {
	f := newFixture(t)
	f.traced(trace.Call{At: time.Now().Add(-3 * day), Owner: observations.Local, Session: "s", Tool: "t"}, `{}`, "text")
	dir := trace.Dir(f.store)
	expect.Must(t, os.Rename(dir, dir+".away"))
	expect.Must(t, os.WriteFile(dir, nil, 0o600))
	expect.Contains(t, f.page(""), "A part of the trace cannot be read", "Calls 0")
	expect.Must(t, os.Remove(dir))
	expect.Must(t, os.Rename(dir+".away", dir))
	expect.Contains(t, f.page(""), "A part of the trace cannot be read", "Calls 0")
	d, _ := f.digests.Get(observations.Local)
	d.read = d.read.Add(-2 * time.Minute)
	p := f.page("")
	expect.Has(t, p, "Calls 1")
	expect.Lacks(t, p, "cannot be read")
}

// A trace that cannot be read is a fault, not a call that is missing.
func TestUnreadableCall(t *testing.T) {
	f := newFixture(t)
	f.traced(trace.Call{Owner: observations.Local, Session: "s", Tool: "t"}, `{}`, "text")
	call := f.linked("sessions/s", "call=")[0]
	dir := trace.Dir(f.store)
	expect.Must(t, os.Rename(dir, dir+".away"))
	expect.Must(t, os.WriteFile(dir, nil, 0o600))
	body, status := f.get(call)
	expect.Equal(t, status, http.StatusInternalServerError)
	expect.Has(t, plainText(body), "read trace")
	expect.Must(t, os.Remove(dir))
	expect.Must(t, os.Rename(dir+".away", dir))
}

// All calls of a session are on its pages, the newest first, each once; and what its context was is drawn.
func TestSessionPages(t *testing.T) {
	f := newFixture(t)
	begin := time.Now().Add(-time.Hour)
	for i := range 250 {
		f.traced(trace.Call{
			At: begin.Add(time.Duration(i) * time.Second), Owner: observations.Local, Session: "s", Tool: "t", Name: fmt.Sprintf("call%d.", i),
			Limited: true, Spent: 100 * i, Left: 25_000 - 100*i,
		}, "", "")
	}
	at, next := "sessions/s", 249
	body, _ := f.get(at)
	expect.Contains(t, plainText(body), "24,900 were used, and 100 left", "250 calls")
	expect.Has(t, body, `d="M0,100V100 H4V100 H8`)
	for at != "" {
		p := f.page(at)
		for strings.Contains(p, fmt.Sprintf("call%d.", next)) {
			next--
		}
		body, _ := f.get(at)
		at = ""
		if m := regexp.MustCompile(`rel="next" href="/view/([^"]*)"`).FindStringSubmatch(body); m != nil {
			at = html.UnescapeString(m[1])
		}
	}
	expect.Equal(t, next, -1)
}
