// Package documents compares the text of documents with what their makers put in, and with what LibreOffice shows. Its
// tests need programs that few machines have, and run by make documents and each night.
package documents

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/text/extract"
)

// made is a document of makers.py.
type made struct {
	File   string
	Lines  []string // in order of reading
	Beside []string // lines that may stand anywhere
}

// python returns a Python that has the libraries of makers.py: PYTHON, or python3.
func python(t *testing.T) string {
	t.Helper()
	path := os.Getenv("PYTHON")
	if path == "" {
		path = "python3"
	}
	if exec.CommandContext(t.Context(), path, "-c", "import docx, openpyxl, pptx, reportlab").Run() != nil {
		t.Skip("python-docx, openpyxl, python-pptx and reportlab are not all there: their documents are skipped")
	}
	return path
}

// needOffice skips the test without LibreOffice, and in ordinary runs: it takes a minute.
func needOffice(t *testing.T) {
	t.Helper()
	if !promise.Full() {
		t.Skip("it compares with other programs, which make documents does")
	}
	if _, err := exec.LookPath("soffice"); err != nil {
		t.Skip("LibreOffice is missing: comparison with it skipped")
	}
}

// TestMakers reads documents of six makers: all words, in order, with all digits.
func TestMakers(t *testing.T) {
	needOffice(t)
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), python(t), "makers.py", dir)
	cmd.Stderr = os.Stderr
	out := expect.Value(cmd.Output())(t)
	n, words := 0, 0
	for line := range bytes.Lines(out) {
		var m made
		expect.Must(t, json.Unmarshal(line, &m))
		n++
		t.Run(m.File, func(t *testing.T) { words += compare(t, dir, m) })
	}
	expect.Equal(t, n, 60, "documents")
	t.Logf("%d documents, %d words", n, words)
}

// compare compares the words of a document with those of its maker, and returns their number.
func compare(t *testing.T, dir string, m made) int {
	t.Helper()
	document := expect.Value(os.ReadFile(filepath.Join(dir, filepath.FromSlash(m.File))))(t)
	x := textOf(t, extract.Format(m.File), document)
	lines := strings.Split(strings.TrimSuffix(string(x.Body), "\n"), "\n")
	for _, b := range m.Beside {
		before := len(lines)
		lines = slices.DeleteFunc(lines, func(line string) bool { return strings.HasSuffix(line, b) })
		if len(lines) == before {
			t.Errorf("no line %q", b)
		}
	}
	got, want := words(lines), words(m.Lines)
	if strings.HasSuffix(m.File, ".pdf") { // a hyphen at the end of a line may be one that divides a word
		got, want = joined(got), joined(want)
	}
	expect.Same(t, got, want)
	return len(got)
}

// words returns the words of lines, without the signs between cells.
func words(lines []string) []string {
	return slices.DeleteFunc(strings.Fields(strings.Join(lines, " ")), func(w string) bool { return w == "|" })
}

// joined returns words without hyphens.
func joined(words []string) (all []string) {
	for _, w := range words {
		all = append(all, strings.ReplaceAll(w, "-", ""))
	}
	return all
}
