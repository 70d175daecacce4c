package secrets

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

var update = flag.Bool("update", false, "rewrite docs/SECRETS.md")

// TestList holds the table of docs/SECRETS.md, and the figures in its text, to the table of formats.
func TestList(t *testing.T) {
	const path, head = "../../docs/SECRETS.md", "|---|---|---|---|---|---|\n"
	doc, err := os.ReadFile(path)
	expect.Must(t, err)
	before, rest, ok := strings.Cut(string(doc), head)
	_, after, whole := strings.Cut(rest, "\n\n")
	if !ok || !whole {
		t.Fatalf("%s has no table", path)
	}
	list := Formats()
	for _, figure := range []string{
		fmt.Sprintf("The %d formats below", len(list)), fmt.Sprintf("at least %d characters precede", minClipped), Unsearched,
	} {
		if !strings.Contains(before, figure) {
			t.Errorf("%s does not say %q", path, figure)
		}
	}
	var b strings.Builder
	cell := func(s string, code bool) string {
		if s == "" {
			return ""
		}
		s = strings.ReplaceAll(s, "|", `\|`)
		if code {
			return "`" + s + "`"
		}
		return s
	}
	for _, f := range list {
		keywords := cell(f.Keywords, true)
		if f.fold {
			keywords += ", any case"
		}
		then := f.Shape
		if f.shape != nil && f != &jwt && f != &urlPassword {
			then = cell(then, true)
			if f.Before != "" {
				then = "`" + f.Before + "` before it, " + then
			}
		} else {
			then = cell(then, false)
		}
		check := f.Check
		if f.bits > 0 {
			check = fmt.Sprintf("entropy of %g bits; no stand-in", f.bits)
		}
		fmt.Fprintf(
			&b, "| %s | %s | %s | %s | %s | %s |\n", f.Name, cell(f.Of, false), keywords, then, cell(check, false),
			cell(f.Source, false),
		)
	}
	want := before + head + b.String() + "\n" + after
	if string(doc) == want {
		return
	}
	if !*update {
		t.Fatal("docs/SECRETS.md needs updating, run: make update")
	}
	expect.Must(t, os.WriteFile(path, []byte(want), 0o644))
}
