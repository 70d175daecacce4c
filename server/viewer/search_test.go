package viewer

import (
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
)

// A search finds calls by words in any order and case, by expressions, tools, files and days; and nothing else.
func TestSearch(t *testing.T) {
	f := newFixture(t)
	at := time.Now().UTC().Truncate(day)
	call := func(ago int, tool, source, args, text string, opened ...string) {
		c := trace.Call{At: at.Add(-day * time.Duration(ago)), Owner: observations.Local, Session: "s", Tool: tool, Source: source}
		for _, o := range opened {
			c.Opened = append(c.Opened, trace.Opened{File: o})
		}
		f.traced(c, args, text)
	}
	call(0, "read", "src/main.go", `{"id":"A1"}`, "package main\nfunc Run() error\n", "/src/main.go")
	call(2, "grep", "obs:x", `{"id":"B2","pattern":"Run"}`, "no match", "/src/util.go")
	call(9, "read", "", `{"id":"C3"}`, "a.b Ünïcode\nerror: disk full")
	for address, want := range map[string]string{
		"q=run": "A1 B2", "q=ERROR+func": "A1", "q=func+error": "A1", "q=error": "A1 C3", "q=a.b": "C3", "q=/a.b/": "C3", "q=/^func/": "A1",
		"q=/^error.*full$/": "C3", "q=/FUNC/": "", "q=/(%3Fi)FUNC/": "A1", "q=ünï": "C3", "q=ÜNÏCODE": "C3", "q=nowhere": "",
		"tool=read": "A1 C3", "tool=rea": "", "file=main.go": "A1", "file=util": "B2", "days=1": "A1", "days=7": "A1 B2", "days=30": "A1 B2 C3",
		"day=" + at.Add(-9*day).Format(time.DateOnly): "C3", "tool=read&q=error&days=7": "A1", "": "A1 B2 C3", "q=%20": "A1 B2 C3", "q=//": "",
	} {
		got := []string{}
		for _, call := range f.linked("search?"+address, "call=") {
			got = append(got, regexp.MustCompile(`"id":"(..)"`).FindStringSubmatch(f.page(call))[1])
		}
		expect.Equal(t, strings.Join(got, " "), want, address)
	}
	for _, wrong := range []string{"q=/(/", "q=" + strings.Repeat("w+", 21)} {
		_, status := f.get("search?" + wrong)
		expect.Equal(t, status, http.StatusBadRequest, wrong)
	}
}

// A search with more results than a page continues where it ended; later calls change nothing of that.
func TestSearchPages(t *testing.T) {
	f := newFixture(t)
	begin := time.Now().Add(-time.Hour)
	for i := range 120 {
		f.traced(trace.Call{At: begin.Add(time.Duration(i) * time.Second), Owner: observations.Local, Session: "s", Tool: "t"},
			fmt.Sprintf(`{"n":"call%d."}`, i), "found")
	}
	next, pages := 119, 0
	for at := "search?q=found"; at != ""; pages++ {
		body, _ := f.get(at)
		for strings.Contains(body, fmt.Sprintf("call%d.", next)) {
			next--
		}
		f.traced(trace.Call{Owner: observations.Local, Session: "s", Tool: "t"}, `{}`, "found later")
		at = ""
		if m := regexp.MustCompile(`rel="next" href="/view/([^"]*)"`).FindStringSubmatch(body); m != nil {
			at = html.UnescapeString(m[1])
		}
	}
	expect.Equal(t, next, -1)
	expect.Equal(t, pages, 3)
}

// Observations are found by name, tool and call.
func TestSearchObservations(t *testing.T) {
	f := newFixture(t)
	one := string(f.keep(observations.Local, "build", "text of one", map[string]string{"target": "Linux"}))
	two := string(f.keep(observations.Local, "lint", "text of two", nil))
	for address, want := range map[string][2]bool{
		"": {true, true}, "&q=linux": {true, false}, "&tool=lint": {false, true}, "&q=text": {false, false}, "&days=1": {true, true},
		"&q=/Lin.x/": {true, false}, "&file=Linux": {true, false},
	} {
		p := f.page("search?in=observations" + address)
		expect.Equal(t, [2]bool{strings.Contains(p, one), strings.Contains(p, two)}, want, address)
	}
}
