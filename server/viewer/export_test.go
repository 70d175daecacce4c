package viewer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// leadsOut matches what a browser would load or follow, and what runs.
var leadsOut = regexp.MustCompile(`(?:src|href|action|url\()\s*=?\s*["']?(?:https?:|//|/)|<script|<form| on[a-z]+=`)

// export returns an export, which has nothing that needs a server.
func (f *fixture) export(handle string) string {
	f.t.Helper()
	var b bytes.Buffer
	expect.Must(f.t, f.Export(f.t.Context(), f.who, handle, &b), handle)
	if found := leadsOut.FindAllString(b.String(), 5); found != nil {
		f.t.Errorf("%s: the export leads out: %q", handle, found)
	}
	return b.String()
}

// An export has all pages of a text of each kind, masked, and what the model was shown. The control is the store, which
// has the secret.
func TestExport(t *testing.T) {
	f := newFixture(t)
	var table, values, text strings.Builder
	table.WriteString("id,name,note\n")
	for i := range 230 {
		fmt.Fprintf(&table, "%d,row%d,%s\n", i, i, aKey)
		fmt.Fprintf(&text, "line%d <script>alert(1)</script> <img src=\"http://evil.example/x\"> http://evil.example/%d\n", i, i)
	}
	rows := []string{}
	for i := range 230 {
		rows = append(rows, fmt.Sprintf(`{"id":%d,"key":"%s","link":"<a href=\"https://evil.example\">"}`, i, aKey))
	}
	values.WriteString("[" + strings.Join(rows, ",") + "]")
	text.WriteString("secret " + aKey + "\n")
	for name, c := range map[string]struct{ text, last string }{
		"table": {table.String(), "row229"}, "json": {values.String(), "229"}, "text": {text.String(), "line229"},
	} {
		id := f.keep(observations.Local, "t", c.text, nil)
		page := f.export("obs:" + string(id))
		expect.Contains(t, plainText(page), c.last, "obs:"+string(id), "What the model was shown", "SAVED as obs:"+string(id))
		expect.Lacks(t, page, aKey, "</form>")
		r := expect.Value(f.o.Store.Peek(observations.Local, id))(t)
		stored := make([]byte, r.Size())
		_, err := r.ReadAt(stored, 0)
		expect.Must(t, err)
		expect.Has(t, string(stored), aKey, name)
		expect.OK(t, r.Close())
		w := f.send(http.MethodGet, "obs/"+string(id)+"?export=1&unmasked=1", nil)
		expect.Equal(t, w.Body.String(), page, "sent by the page")
		expect.Has(t, w.Header().Get("Content-Disposition"), "attachment")
	}
}

// Of views without rows all pages are exported too; a picture is a part of the file.
func TestExportBytes(t *testing.T) {
	f := newFixture(t)
	var text strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&text, "## Part %d\n\nIt has *words* and [a link](https://example.com/%d).\n\n", i, i)
	}
	for what, want := range map[string][]string{
		text.String(): {"Part 0", "Part 1999", "Part 3999"}, "\x00" + strings.Repeat("\x01\x02", 4000): {"00000000", "00001f40"},
		"\x89PNG\r\n\x1a\n" + strings.Repeat("\x00", 1000): {`<img src="data:image/png;base64,iVBORw0KGgo`},
	} {
		page := f.export("obs:" + string(f.keep(observations.Local, "t", what, nil)))
		expect.Contains(t, page, want...)
		expect.Lacks(t, page, "<button", `rel="next"`)
	}
}

// What looks like an address in a text is no attribute: nothing of the page is taken for it.
func TestExportKeepsTexts(t *testing.T) {
	f := newFixture(t)
	id := f.keep(observations.Local, "t", `{"a href=": "onload=alert(1) ", "b": " src=\"x\" href=\"/y\""}`, nil)
	page := f.export("obs:" + string(id))
	expect.Contains(t, page, `title="/a href="`, `onload=alert(1)`)
	expect.Contains(t, plainText(page), `src=\"x\" href=\"/y\"`)
}

// A session is exported with its calls and their texts; links lead to them inside.
func TestExportSession(t *testing.T) {
	f := newFixture(t)
	for i := range 120 {
		f.keep(observations.Local, "t", fmt.Sprintf("output %d %s\n", i, aKey), map[string]int{"n": i})
	}
	page := f.export("s1")
	expect.Contains(t, plainText(page), "output 0 ", "output 119 ", `{"n":57}`)
	expect.Contains(t, page, `href="#call-120"`, `id="call-120"`)
	expect.Lacks(t, page, aKey)
	for _, handle := range []string{"s2", "", "inv:0123456789ab", "obs:0123456789ab", "obs:x"} {
		if err := f.Export(t.Context(), f.who, handle, &bytes.Buffer{}); err == nil {
			t.Errorf("%q is exported", handle)
		}
	}
	for _, at := range []string{"", "obs", "sessions", "servers", "obs/0123456789ab"} {
		expect.Equal(t, f.send(http.MethodGet, at+"?export=1", nil).Code, http.StatusNotFound, at)
	}
	f.who = Who{Owner: "eve"}
	expect.Fails(t, f.Export(t.Context(), f.who, "s1", &bytes.Buffer{}), "You have no session s1")
}

// An export ends at its limit, and says so.
func TestExportLimit(t *testing.T) {
	f := newFixture(t)
	line := strings.Repeat("<", 900) + "\n" // four bytes each in HTML
	says := tools.Tool{Name: "t", Schema: json.RawMessage(`{"type":"object"}`)}
	says.Run = func(_ context.Context, _ tools.Input, out tools.Output) error {
		for range 12_000 {
			if _, err := out.Write([]byte(line)); err != nil {
				return err
			}
		}
		return nil
	}
	a := f.call(observations.Local, "s1", says, struct{}{}, func(r *funnel.Request) { r.Keep = funnel.Always })
	page := f.export("obs:" + a.Receipts[0].ObservationID)
	expect.Equal(t, len(page) <= maxExport, true, len(page))
	expect.Equal(t, len(page) > maxExport*9/10, true, len(page))
	expect.Has(t, page[len(page)-200:], "what follows is left out.</p></main>")
}
