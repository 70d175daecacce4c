package conformance

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

const module = "github.com/mcp-funnel/mcp-funnel"

// folders is the first rule: a package of a folder imports only packages of folders that stand before it. A reader of
// one folder needs to know only those.
var folders = strings.Fields("base text kinds system observations records session continuation prompts tools funnel agents server cmd")

// inside is the second rule: the order of packages within a folder. A package imports only those of earlier rows.
var inside = map[string][][]string{
	"base": {{"base/lru", "base/mmap", "base/panics", "base/runes", "base/spare", "base/stack"}},
	"text": {
		{"text/embed", "text/linesearch/literal", "text/packed", "text/schema", "text/secrets", "text/words"},
		{"text/content", "text/linesearch", "text/tokens"},
		{"text/extract", "text/jsontrunc", "text/sqlite", "text/table"},
	},
	"kinds": {
		{"kinds/digest", "kinds/outline", "kinds/record"},
		{"kinds/values"},
		{"kinds/diff", "kinds/gitlog", "kinds/logs", "kinds/markdown", "kinds/shape"},
		{"kinds"},
	},
	"system": {
		{"system/child", "system/osfile", "system/seccomp"},
		{"system/database", "system/jsonrpc", "system/sandbox", "system/tree", "system/worker"},
		{"system/mcpclient"},
	},
	// types, a directory, S3 and Postgres with one as cache, the store
	"observations": {{"observations/backend"}, {"observations/files"}, {"observations/remote"}, {"observations"}},
	"records":      {{"records"}},
	"session": {
		{"session/jsontree", "session/trace"},
		{"session/usage", "session/stats"},
		{"session/transcript", "session/hook"},
		{"session/compaction"},
	},
	"continuation": {{"continuation", "continuation/intent"}},
	"prompts":      {{"prompts"}},
	"tools": {
		{"tools/source"},
		{"tools"},
		{"tools/delta", "tools/reference", "tools/words"},
		{"tools/jq/decode"}, {"tools/jq/plan"}, {"tools/jq/engine"}, // bytes to values, how to run a filter, running it
		{
			"tools/ask/facts", "tools/ask/index", "tools/ask/router", "tools/investigate/evidence", "tools/investigate/plan",
			"tools/investigate/scan",
		},
		{"tools/investigate/entries"},
		{ // families do not import each other
			"tools/ask", "tools/deliver", "tools/fs", "tools/investigate", "tools/jq", "tools/search", "tools/shell",
			"tools/upstream", "tools/write",
		},
	},
	"funnel": {
		{"funnel/text"},                   // how text is shown is one question for pages, receipts and errors
		{"funnel/policy"},                 // verdicts depend on sizes only, never on text
		{"funnel/capture", "funnel/page"}, // what was written, and the rows of a page, know nothing of each other
		{"funnel/receipt"},                // words come from facts: nothing is decided or stored while wording
		{"funnel"},                        // decides, stores and answers
	},
	"agents": {{"agents/chat"}, {"agents/generation", "agents/loop"}, {"agents/answerer", "agents/investigator"}},
	"server": {
		{"server/callstate", "server/links", "server/oauth", "server/viewer"},
		{"server"},
		{"server/httpserver", "server/stdio"}, // transports: the server does not know which of them brings a message
	},
	"cmd": {{"cmd/internal/cli", "cmd/internal/clientconfig"}, {"cmd/internal/cli/transcripts"}, {"cmd/mcp-funnel"}},
}

// within are parts of one package that stand in a directory of their own.
var within = map[string]string{
	"funnel/text/texttest":              "funnel/text",         // what tests draw and show
	"text/tokens/tables":                "text/tokens",         // data beside the code that reads it
	"observations/remote/remotetest":    "observations/remote", // a bucket for tests
	"observations/storefs":              "observations/files",  // file operations of a store: where tests make a disk fail
	"system/worker/workertest":          "system/worker",       // what tests need to run workers
	"system/database/databasetest":      "system/database",     // a Postgres for tests
	"text/content/contenttest":          "text/content",        // what tests draw
	"tools/toolstest":                   "tools",               // what tests call tools with
	"session/transcript/transcripttest": "session/transcript",  // transcripts for tests
	"agents/chat/chattest":              "agents/chat",         // an endpoint for tests
	"server/servertest":                 "server",              // what tests of the server and its transports share
	"tools/jq/plan/plantest":            "tools/jq/plan",       // filters and JSON texts for tests
	"server/servertest/started":         "server/httpserver",   // the servers that tests of the transports serve
}

// unwanted is what no package imports, and why. (The servers to compare with are modules of their own.)
var unwanted = map[string]string{
	"github.com/mark3labs/mcp-go/server": "it compiles every JSON Schema there is before main: 5 ms of each start; its types are enough",
}

// only names the packages that may import a module, and why no other may.
var only = map[string]struct {
	packages []string
	reason   string
}{
	"github.com/mark3labs/mcp-go": {
		[]string{
			"server", "system/jsonrpc", "system/mcpclient", "server/httpserver", "server/stdio", "cmd/mcp-funnel",
			"conformance/fixture",
		},
		"the protocol library stays at the edge: a new version or another library touches one package, not every tool",
	},
	"github.com/alecthomas/kong": {
		[]string{"cmd/mcp-funnel", "cmd/internal/cli", "cmd/internal/cli/transcripts"},
		"flags belong to the command line; packages take plain options",
	},
	"github.com/itchyny/gojq": {
		[]string{"tools/jq", "tools/jq/plan", "tools/jq/engine"},
		"jq programs run under this tool's bounds or not at all",
	},
}

type listed struct {
	ImportPath   string
	Dir          string
	GoFiles      []string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func packages(t testing.TB) []listed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Dir,GoFiles,Imports,TestImports,XTestImports", "./...")
	cmd.Dir = ".."
	cmd.Stderr = os.Stderr
	out := expect.Value(cmd.Output())(t, "go list")
	var all []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		p.ImportPath = strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		all = append(all, p)
	}
}

// folderOf returns the folder of a package and its place in the order; -1 if it is none of them.
func folderOf(pkg string) (string, int) {
	folder, _, _ := strings.Cut(pkg, "/")
	return folder, slices.Index(folders, folder)
}

// rowOf returns the row of a package in the order within its folder; -1 if it has none.
func rowOf(pkg string) int {
	if owner, ok := within[pkg]; ok {
		pkg = owner
	}
	folder, _ := folderOf(pkg)
	return slices.IndexFunc(inside[folder], func(row []string) bool { return slices.Contains(row, pkg) })
}

// familyOf is the package of the tools of which pkg is a part, as tools/jq of tools/jq/decode; "" if there is none.
func familyOf(pkg string) string {
	rest, ok := strings.CutPrefix(pkg, "tools/")
	name, _, _ := strings.Cut(rest, "/")
	if !ok || name == "source" || within[pkg] == "tools" {
		return ""
	}
	return "tools/" + name
}

// violations are the imports of a package that the house does not allow. Tests may use all of their folder, and
// conformance.
func violations(pkg string, imports []string, test bool) []string {
	var found []string
	folder, place := folderOf(pkg)
	if folder == "conformance" || folder == "docs" || folder == "scripts" {
		place = len(folders)
	}
	if place < 0 || place < len(folders) && rowOf(pkg) < 0 {
		return []string{pkg + " has no place: give it one in inside"}
	}
	for _, imp := range imports {
		if why := unwanted[imp]; why != "" {
			found = append(found, pkg+" imports "+imp+": "+why)
		}
		for lib, rule := range only {
			if !test && (imp == lib || strings.HasPrefix(imp, lib+"/")) && !slices.Contains(rule.packages, pkg) {
				found = append(found, pkg+" imports "+imp+": "+rule.reason)
			}
		}
		below, ours := strings.CutPrefix(imp, module+"/")
		if !ours || folder == "conformance" {
			continue
		}
		other, lower := folderOf(below)
		family := familyOf(below)
		switch {
		case other == "conformance":
			if !test {
				found = append(found, pkg+" imports "+below+": tests and fixtures only")
			}
		case lower < 0 || lower > place:
			found = append(found, pkg+" imports "+below+": it stands in a later folder")
		case family != "" && family != familyOf(pkg) && below != family && !(test && strings.HasSuffix(below, "test")):
			found = append(found, pkg+" imports "+below+": the parts of a tool belong to its family")
		case lower < place || test || within[below] == pkg || within[pkg] == below:
		case rowOf(below) < 0 || rowOf(below) >= rowOf(pkg):
			found = append(found, pkg+" imports "+below+": it stands in the same or a later row of "+folder)
		}
	}
	return found
}

// What others import for us counts as ours: it is in the binary all the same.
func TestUnwantedIsNotLinked(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "./cmd/mcp-funnel")
	cmd.Dir = ".."
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	linked := strings.Fields(string(out))
	if err != nil || len(linked) < 100 {
		t.Fatalf("go list names %d packages: %v", len(linked), err)
	}
	for _, pkg := range linked {
		expect.Equal(t, unwanted[pkg], "", "%s is in the binary", pkg)
	}
}

func TestImportsPointDown(t *testing.T) {
	all := packages(t)
	if len(all) < 10 {
		t.Fatalf("go list names %d packages", len(all))
	}
	for _, p := range all {
		for _, v := range violations(p.ImportPath, p.Imports, false) {
			t.Error(v)
		}
		for _, v := range violations(p.ImportPath, append(p.TestImports, p.XTestImports...), true) {
			t.Errorf("a test of %s", v)
		}
	}
}

// The control: the rules find what they are there to find.
func TestImportRulesBite(t *testing.T) {
	for _, c := range []struct {
		pkg, imp string
		test     bool
	}{
		{"tools/fs", module + "/funnel", false},
		{"tools/jq", module + "/funnel/text", false},
		{"funnel/text", module + "/funnel/policy", false},
		{"funnel/page", module + "/funnel/capture", false},
		{"funnel/receipt", module + "/funnel", false},
		{"tools/search", module + "/tools/fs", false},
		{"funnel", "github.com/mark3labs/mcp-go/mcp", false},
		{"observations", module + "/session/trace", false},
		{"observations/backend", module + "/observations/files", false},
		{"tools", module + "/server", false},
		{"server", module + "/conformance/corpus", false},
		{"base/fresh", "fmt", false},
		{"fresh", "fmt", false},
		{"session/trace", "github.com/mark3labs/mcp-go/server", false},
		{"tools/jq/plan", module + "/tools/jq/engine", false},
		{"cmd/mcp-funnel", module + "/tools/jq/engine", false},
		{"system/worker/workertest", module + "/tools/jq/decode", false},
		{"kinds", module + "/system/tree", false},
		{"funnel", module + "/server", true},
		{"observations", module + "/tools", true},
		{"server", module + "/tools/jq/engine", true},
	} {
		if len(violations(c.pkg, []string{c.imp}, c.test)) == 0 {
			t.Errorf("%s may import %s", c.pkg, c.imp)
		}
	}
}

// TestPackages checks that every package says in its comment what it is, and that none has an init function, which runs
// where no reader looks for it.
func TestPackages(t *testing.T) {
	for _, p := range packages(t) {
		doc := ""
		for _, name := range p.GoFiles {
			f := expect.Value(parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.ParseComments))(t)
			if f.Doc != nil && doc != "" {
				t.Errorf("%s has two package comments", p.ImportPath)
			}
			doc += f.Doc.Text()
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
					t.Errorf("%s/%s has an init function", p.ImportPath, name)
				}
			}
		}
		first := "Package " + filepath.Base(p.ImportPath) + " "
		if p.ImportPath == "cmd/mcp-funnel" || strings.HasPrefix(p.ImportPath, "docs/examples/") {
			first = "Command " + filepath.Base(p.ImportPath) + " "
		}
		if len(p.GoFiles) > 0 && !strings.HasPrefix(doc, first) {
			t.Errorf("%s: the package comment must begin with %q", p.ImportPath, first)
		}
	}
}

// TestArchitectureNamesFiles checks that every file and directory that ARCHITECTURE.md names exists.
func TestArchitectureNamesFiles(t *testing.T) {
	text := expect.Value(os.ReadFile("../ARCHITECTURE.md"))(t)
	names := map[string]bool{}
	for _, file := range goFiles(t) {
		names[filepath.Base(file)] = true
	}
	found := 0
	for _, m := range regexp.MustCompile("`([a-z_/]+(?:\\.go)?)`").FindAllStringSubmatch(string(text), -1) {
		name := m[1]
		switch {
		case strings.Contains(name, "/"):
			found++
			if _, err := os.Stat(filepath.Join("..", name)); err != nil && !isInnerDir(name) {
				t.Errorf("ARCHITECTURE.md names %s: %v", name, err)
			}
		case strings.HasSuffix(name, ".go"):
			found++
			if !names[name] {
				t.Errorf("ARCHITECTURE.md names %s, which is no file", name)
			}
		}
	}
	if found < 60 {
		t.Errorf("only %d names were found", found)
	}
}

// isInnerDir reports whether a name is a directory of conformance, which the text about it names without the parent.
func isInnerDir(name string) bool {
	_, err := os.Stat(filepath.FromSlash(name))
	return err == nil
}

// goFiles returns the Go files of the project, relative to its root.
func goFiles(t *testing.T) []string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed: the files of the project cannot be listed")
	}
	cmd := exec.CommandContext(t.Context(), "git", "ls-files", "*.go")
	cmd.Dir = ".."
	out, err := cmd.Output()
	files := strings.Fields(string(out))
	if err != nil || len(files) < 100 {
		t.Fatalf("git ls-files names %d files: %v", len(files), err)
	}
	return files
}
