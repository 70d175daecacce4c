package ask_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/tools/search"
)

// TestSearchDocuments searches a directory of texts and documents: matches of documents carry their place in it, in the
// order of paths, and each document without text is counted with its reason.
func TestSearchDocuments(t *testing.T) {
	dir := t.TempDir()
	const n = 60
	exts := []string{"txt", "docx", "eml", "html"}
	for i := range n {
		ext := exts[i%len(exts)]
		lines := []string{"A report", fmt.Sprintf("Total is %d euros", i)}
		write(t, dir, fmt.Sprintf("d/f%02d.%s", i, ext), document(ext, lines))
	}
	for i := range 3 {
		write(t, dir, fmt.Sprintf("broken%d.docx", i), []byte("PK\x03\x04\x00broken"))
	}
	write(t, dir, "plain.docx", []byte("Total is 5 euros, in a text with the name of a document\n"))
	b := newBench(t, dir)
	for range 2 { // the second time with kept texts
		text := b.call(t.Context(), search.Search(), map[string]any{"pattern": `Total is \d+ euros`, "show": "counts"})
		for i := range n {
			if name := fmt.Sprintf("d/f%02d.%s", i, exts[i%len(exts)]); !strings.Contains(text, name) {
				t.Errorf("%s is missing", name)
			}
		}
		for _, want := range []string{
			"3 documents not searched: 3 broken (such as broken0.docx)", "plain.docx",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is missing in\n%s", want, text)
			}
		}
	}
	text := b.call(t.Context(), search.Search(), map[string]any{"pattern": "is 13 euros"})
	expect.Contains(t, text, "d/f13.docx")
	expect.Contains(t, text, "paragraph 2")
	text = b.call(t.Context(), search.Grep(), map[string]any{"source": "d/f13.docx", "pattern": "is 13"})
	expect.Contains(t, text, "2 (paragraph 2): Total is 13 euros")
}
