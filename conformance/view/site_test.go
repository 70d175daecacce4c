package view

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/built"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// byKeys are ways through the documentation that need no pointer, from docs/RUN.html. They end where a wait is over.
var byKeys = map[string]struct {
	width int
	keys  string
	focus string
}{
	"a heading":              {0, "/ | text:what a receipt says | wait:#found a | Tab | Enter | url:docs/RECEIPTS.html#what-a-receipt-says", ""},
	"a word's beginning":     {0, "/ | text:versityg | wait:#found a | Tab", "Safety"},
	"the best of two words":  {0, "/ | text:landlock contain | wait:#found a | Enter | url:docs/RUN.html#containment", ""},
	"the text":               {0, "Tab | Enter | url:docs/RUN.html#content", ""},
	"a page, on a phone":     {360, "Tab | Tab | Tab | Enter | wait:#pages | Tab | Tab | Enter | url:docs/ASK.html", ""},
	"a heading, on a phone":  {360, "Tab | Tab | Tab | Tab | Enter | wait:#contents | Tab | Tab | Enter | url:#scripts-that-use-the-tools", ""},
	"a search, on a phone":   {360, "/ | text:versityg | wait:#found a | Tab", "Safety"},
	"no word that is there":  {0, "/ | text:zyzzyva | wait:text=0 sections", ""},
	"the search is given up": {0, "/ | text:receipt | wait:#found a | Escape | Tab", "mcp-funnel"},
}

// TestSite reads the documentation as files: light and dark, in a wide and a narrow window, and by keys.
func TestSite(t *testing.T) {
	if testing.Short() && !promise.Full() {
		t.Skip("a browser is started by the run without -short")
	}
	t.Parallel()
	d := newDesk(t)
	out := filepath.Join(d.dir, "site")
	said, err := exec.CommandContext(t.Context(), built.Program(t, "scripts/site"), "../..", out).CombinedOutput()
	expect.Must(t, err, "%s", said)
	d.base = "file://" + filepath.ToSlash(out) + "/"

	pages := []pageOf{{"first", "index.html"}, {"tables", "docs/SAFETY.html"}}
	if promise.Full() {
		for _, file := range expect.Value(filepath.Glob(out + "/docs/*.html"))(t) {
			pages = append(pages, pageOf{filepath.Base(file), "docs/" + filepath.Base(file)})
		}
	}
	check(t, d.browse(pages, []variant{
		{Name: "light"}, {Name: "dark", Dark: true}, {Name: "narrow", Width: 360}, {Name: "wide", Width: 1600},
	}, "", true))

	var ways []variant
	for name, way := range byKeys {
		ways = append(ways, variant{Name: name, Width: way.width, Keys: strings.Split(way.keys, " | ")})
	}
	all := d.browse([]pageOf{{"by keys", "docs/RUN.html"}}, ways, "", false)
	check(t, all)
	for _, s := range all {
		if want := byKeys[s.Variant].focus; want != "" {
			expect.Equal(t, s.Focus, want, s.Variant)
		}
	}
}
