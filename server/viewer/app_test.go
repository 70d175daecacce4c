package viewer

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/observations"
)

// A client that renders MCP Apps gets one document with all that pages need, and pages as people without further rights
// see them.
func TestPagesForClients(t *testing.T) {
	f := newFixture(t)
	id := string(f.keep(observations.Local, "run", "key "+aKey+"\n</main><script>x</script>\n", nil))
	document := f.Document()
	expect.Contains(t, document, "<!doctype html>", "ui/initialize", "querySelectorAll('tbody tr", "<style>:root")
	expect.Lacks(t, document, id, "http://", "https://", " src=")
	if n := strings.Count(document, "</script>"); n != 2 || len(document) > 100_000 {
		t.Errorf("%d bytes, %d scripts", len(document), n)
	}
	for _, target := range []string{"obs/" + id, Base + "/obs/" + id + "?as=text", "obs/" + id + "?unmasked=1"} {
		html, status := f.Render(t.Context(), observations.Local, nil, target)
		expect.Equal(t, status, http.StatusOK, target)
		expect.Contains(t, html, `<main id="main"`, "&lt;/main&gt;&lt;script&gt;x")
		expect.Lacks(t, html, aKey, "<html", "<script>")
	}
	picture := "\x89PNG\r\n\x1a\n" + strings.Repeat("\x00", 1000)
	for text, want := range map[string]string{
		picture:                                `<img src="data:image/png;base64,iVBORw0KGgo`,
		picture + strings.Repeat("x", 512<<10): "An image (image/png of 513 KiB) is shown here up to 512 KiB",
	} {
		html, _ := f.Render(t.Context(), observations.Local, nil, "obs/"+string(f.keep(observations.Local, "run", text, nil)))
		expect.Contains(t, html, want)
		expect.Lacks(t, html, `src="/`)
	}
	for target, want := range map[string]int{
		"obs/" + id + "?line=x": http.StatusOK, "nowhere": http.StatusNotFound, "obs/0123456789ab": http.StatusNotFound,
		"act": http.StatusNotFound, "live": http.StatusNotFound, "%": http.StatusNotFound,
	} {
		_, status := f.Render(t.Context(), observations.Local, nil, target)
		expect.Equal(t, status, want, target)
	}
}
