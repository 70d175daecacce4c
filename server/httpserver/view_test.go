package httpserver

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/server/servertest/started"
	"github.com/mcp-funnel/mcp-funnel/server/viewer"
)

// TestPagesInABrowser checks what a browser may do with the pages: a person opens them in a tab, and they load what is
// theirs. No frame, no form and no script of another site reaches them.
func TestPagesInABrowser(t *testing.T) {
	store := expect.Value(observations.OpenStore(observations.Options{Dir: t.TempDir(), MinFree: -1}))(t)
	t.Cleanup(func() { _ = store.Close() })
	view := viewer.New(viewer.Options{Store: store})
	t.Cleanup(view.Close)
	h := expect.Value(Handler(started.Server(t), Options{View: view, ViewOnly: true}))(t)
	fetch := func(site, mode, dest string) with {
		return func(r *http.Request) {
			for name, value := range map[string]string{"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": dest} {
				if value != "" {
					r.Header.Set(name, value)
				}
			}
		}
	}
	form := func(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") }
	const let, refused = http.StatusUnauthorized, http.StatusForbidden // the viewer asks who it is, or the guard has refused
	for name, one := range map[string]struct {
		method, path string
		with         with
		want         int
	}{
		"typed":                        {"GET", "/view/", fetch("none", "navigate", "document"), let},
		"without a slash":              {"GET", "/view", fetch("none", "navigate", "document"), http.StatusSeeOther},
		"a link of another site":       {"GET", "/view/obs/1", fetch("cross-site", "navigate", "document"), let},
		"a frame of another site":      {"GET", "/view/", fetch("cross-site", "navigate", "iframe"), refused},
		"a frame of its own":           {"GET", "/view/", fetch("same-origin", "navigate", "iframe"), refused},
		"an image of a page":           {"GET", "/view/obs/1/raw", fetch("same-origin", "no-cors", "image"), let},
		"an image of another site":     {"GET", "/view/obs/1/raw", fetch("cross-site", "no-cors", "image"), refused},
		"a script of another port":     {"GET", "/view/", fetch("same-site", "no-cors", "script"), refused},
		"fetch of a page":              {"GET", "/view/obs", fetch("same-origin", "cors", "empty"), let},
		"fetch of another site":        {"GET", "/view/obs", fetch("cross-site", "cors", "empty"), refused},
		"events of a page":             {"GET", "/view/live", fetch("same-origin", "cors", "empty"), let},
		"a form":                       {"POST", "/view/act", all(form, fetch("same-origin", "navigate", "document"), header("Origin", "http://127.0.0.1:8080")), let},
		"a form of another site":       {"POST", "/view/act", all(form, fetch("cross-site", "navigate", "document"), header("Origin", "https://evil.example")), refused},
		"a form that hides its origin": {"POST", "/view/act", all(form, fetch("cross-site", "navigate", "document")), refused},
		"a form without an origin":     {"POST", "/view/act", all(form, header("Origin", "null")), refused},
		"another host":                 {"GET", "/view/", host("evil.example"), refused},
		"another method":               {"DELETE", "/view/obs/1", fetch("", "", ""), http.StatusMethodNotAllowed},
		"MCP is not served":            {"POST", "/mcp", header("Content-Type", "application/json"), http.StatusUnauthorized},
		"nor its health":               {"GET", "/healthz", fetch("", "", ""), http.StatusUnauthorized},
	} {
		r := httptest.NewRequest(one.method, "http://127.0.0.1:8080"+one.path, strings.NewReader(""))
		one.with(r)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		expect.Equal(t, w.Code, one.want, "%s: %.200s", name, w.Body)
	}
}
