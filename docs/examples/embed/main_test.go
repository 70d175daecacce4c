package main

import (
	"go/parser"
	"go/token"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
)

// The program prints a receipt, and the lines that grep found in the stored output.
func TestRun(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = write
	err = run(t.Context(), t.TempDir())
	os.Stdout = stdout
	if e := write.Close(); err != nil || e != nil {
		t.Fatal(err, e)
	}
	printed, err := io.ReadAll(read)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"LARGE OUTPUT DETECTED: kept whole as obs:", "total: 500 lines", `100: {"n":100,"square":10000}`} {
		if !strings.Contains(string(printed), want) {
			t.Errorf("the output lacks %q:\n%s", want, printed)
		}
	}
}

// The example imports only what ARCHITECTURE.md says other modules may rely on.
func TestImportsAreForEveryone(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "main.go", nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range f.Imports {
		name, ours := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), "github.com/mcp-funnel/mcp-funnel/")
		if ours && !slices.Contains([]string{"funnel", "observations", "text/secrets", "text/tokens", "tools"}, name) &&
			!strings.HasPrefix(name, "tools/") {
			t.Errorf("main.go imports %s", name)
		}
	}
}
