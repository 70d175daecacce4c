package view

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// hostile are contents that would do something in a page that shows them as they are. Most set window.ran or ask for an
// address of foreign.example.
func hostile() []string {
	const run = "window.ran=1"
	return []string{
		"<script>" + run + "</script>", "<ScRiPt >" + run + "</sCrIpT>", "</script><script>" + run + "</script>",
		"</style><script>" + run + "</script>", "</title><script>" + run + "</script>", "</textarea><script>" + run + "</script>",
		"--><script>" + run + "</script>", "]]><script>" + run + "</script>", "<img src=x onerror=" + run + ">",
		"<img src=\"https://foreign.example/i\">", "\"><img src=x onerror=" + run + ">", "'><img src=x onerror=" + run + ">",
		"<svg onload=" + run + ">", "<svg><script>" + run + "</script></svg>", "<svg><animate onbegin=" + run + " attributeName=x dur=1s>",
		"<svg><use href=\"https://foreign.example/u#x\"/></svg>", "<math><mtext></form><img src=x onerror=" + run + ">",
		"<body onload=" + run + ">", "<details open ontoggle=" + run + ">", "<input autofocus onfocus=" + run + ">",
		"<video><source onerror=" + run + "></video>", "<audio src=x onerror=" + run + ">", "<iframe src=\"javascript:parent." + run + "\"></iframe>",
		"<iframe srcdoc=\"<script>parent." + run + "</script>\"></iframe>", "<object data=\"https://foreign.example/o\"></object>",
		"<embed src=\"https://foreign.example/e\">", "<link rel=stylesheet href=\"https://foreign.example/l\">",
		"<style>@import 'https://foreign.example/c';</style>", "<style>body{background:url(https://foreign.example/b)}</style>",
		"<div style=\"background:url(https://foreign.example/d)\">", "<div style=\"position:fixed;inset:0;z-index:9\">over all</div>",
		"<base href=\"https://foreign.example/\">", "<meta http-equiv=refresh content=\"0;url=https://foreign.example/m\">",
		"<form action=\"https://foreign.example/f\"><button autofocus>", "<a href=\"javascript:" + run + "\">open</a>",
		"javascript:" + run, "data:text/html,<script>parent." + run + "</script>", "[open](javascript:" + run + ")",
		"![](https://foreign.example/md)", "[x]: javascript:" + run + "\n[open][x]", "<https://foreign.example/auto>",
		"![x](data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9YWxlcnQoMSk+)", "`" + "<img src=x onerror=" + run + ">" + "`",
		"{{constructor.constructor('" + run + "')()}}", "${" + run + "}", "{{define \"page\"}}{{end}}", "&lt;script&gt;" + run + "&lt;/script&gt;",
		"\\u003cscript\\u003e" + run + "\\u003c/script\\u003e", "\u202egnp.exe\u202c", "\u2066<script>" + run + "</script>\u2069",
		"\x1b]8;;https://foreign.example/osc\x1b\\open\x1b]8;;\x1b\\", "\x1b[2J\x1b[1;31mred", "\u200b\u200d\ufeff\u2028\u2029",
		"\xff\xfe<script>" + run + "</script>", "+ADw-script+AD4-" + run + "+ADw-/script+AD4-", "<!--#include virtual=\"/etc/passwd\"-->",
		"<portal src=\"https://foreign.example/p\">", strings.Repeat("W", 5000), strings.Repeat("<b>", 500),
		strings.Repeat("\u0300", 300) + "a", "<template shadowrootmode=open><script>" + run + "</script></template>",
	}
}

// TestS18NothingOfAContentRuns shows hostile contents on each page: as text, keys, cells, names and arguments. The
// control is a page that has them as they are.
func TestS18NothingOfAContentRuns(t *testing.T) {
	if testing.Short() && !promise.Full() {
		t.Skip("a browser is started by the run without -short")
	}
	t.Parallel()
	contents := hostile()
	d := newDesk(t)
	pages := d.poison(contents)
	d.open()
	control := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprintf(w, "<!doctype html><body><main id=main>%s", contents[len(contents)-len(r.URL.Path)%len(contents)-1])
	}))
	t.Cleanup(control.Close)
	var all []pageOf
	step := 4 // of the contents that the control shows as they are
	if promise.Full() {
		step = 1
	}
	for i := 0; i < len(contents); i += step {
		all = append(all, pageOf{fmt.Sprint("bare ", i), control.URL + "/" + strings.Repeat("x", i)})
	}
	failures, ran := 0, 0
	bare := len(all)
	for i, s := range d.browse(append(all, pages...), []variant{{Name: "light"}}, "", false) {
		switch does := s.Ran || s.Dialogs > 0 || len(s.Foreign) > 0 || len(s.Failed) > 0; {
		case i < bare:
			if s.Ran || len(s.Foreign) > 1 { // the page itself is of another origin
				ran++
			}
		case does || s.Wide > 0 || s.Status != http.StatusOK && s.Status != http.StatusNotFound:
			failures++
			t.Errorf("%s: %+v", s.Page, s)
		}
	}
	promise.Kept(t, promise.Proof{
		Promise: "S18", Cases: len(contents) * len(pages), Failures: failures, Control: ran,
		Figures: fmt.Sprintf("%d contents on %d pages of the viewer in a real browser; of %d that are shown as they are, %d do something",
			len(contents), len(pages), bare, ran),
	})
}

// poison stores hostile contents in all places that pages show, and returns the pages.
func (d *desk) poison(contents []string) (pages []pageOf) {
	d.t.Helper()
	add := func(name, path string) { pages = append(pages, pageOf{name, "/view/" + path}) }
	var rows []map[string]string
	keyed, csv, log, diff, hits := map[string]string{}, "name,text\n", "", "", ""
	for i, s := range contents {
		s = strings.ToValidUTF8(s, "?")
		keyed[s] = s
		rows = append(rows, map[string]string{s: s})
		cell := `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
		csv += cell + "," + cell + "\n"
		flat := strings.NewReplacer("\n", " ", "\r", " ").Replace(s)
		log += fmt.Sprintf("2026-11-29T08:00:%02dZ ERROR %s: %s key=%s\n", i%60, flat, flat, flat)
		diff += "diff --git a/" + flat + " b/" + flat + "\n--- a/" + flat + "\n+++ b/" + flat + "\n@@ -1 +1 @@ " + flat + "\n-" + flat + "\n+" + flat + "\n"
		hit, err := json.Marshal(map[string]any{"file": flat, "line": i + 1, "text": s})
		expect.Must(d.t, err)
		hits += string(hit) + "\n"
	}
	object, err := json.Marshal(keyed)
	expect.Must(d.t, err)
	array, err := json.Marshal(rows)
	expect.Must(d.t, err)
	raw := strings.Join(contents, "\n\n")
	var ids []string
	for name, text := range map[string]string{
		"object": string(object), "array": string(array), "table": csv, "log": log, "diff": diff, "hits": hits, "text": raw + strings.Repeat("\nline", 60),
		"markdown": "# Title\n\n- one\n- two\n\n" + raw + "\n\n## More\n\n```\n" + raw + "\n```\n",
	} {
		id := d.keep(contents[len(name)], text)
		ids = append(ids, id)
		all := []string{"", "as=text", "record=1", "as=receipt", "as=text&line=3&from=0", "jq=.", "grep=" + url.QueryEscape(contents[0])}
		if !promise.Full() {
			all = all[:3]
		}
		for _, as := range all {
			add(name+" "+as, "obs/"+id+"?"+as)
		}
	}
	for _, s := range contents[:10] {
		add("address "+fmt.Sprint(len(pages)), "obs/"+url.PathEscape(strings.ReplaceAll(s, "/", "_"))+"?at="+url.QueryEscape(s))
	}
	for _, s := range contents[:6] {
		d.run("", "call", "search", "pattern="+s)
		add("search "+fmt.Sprint(len(pages)), "search?q="+url.QueryEscape(s)+"&tool="+url.QueryEscape(s))
	}
	add("session", "sessions/local%20"+time.Now().UTC().Format(time.DateOnly))
	add("compare", "compare?a="+ids[0]+"&b="+ids[1])
	add("compare by lines", "compare?by=lines&a="+ids[2]+"&b="+ids[3])
	add("observations", "obs")
	add("overview", "")
	return pages
}
