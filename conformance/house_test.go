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
	"slices"
	"strings"
	"testing"
)

const module = "github.com/mcp-funnel/mcp-funnel"

// floors are the layers of packages, bottom-up. A package may import only packages of a lower layer: a reader of one
// layer needs to know only those below it, and families of tools cannot grow into each other.
var floors = [][]string{
	1: {
		"internal/linesearch/literal", "internal/lru", "internal/mmap", "internal/osfile", "internal/panics",
		"internal/runes", "internal/seccomp", "internal/secrets", "internal/stack",
	},
	2: {"internal/content", "internal/linesearch", "internal/sandbox", "internal/tree"},
	3: {
		"chat", "internal/continuation", "internal/intent", "internal/jsontrunc", "internal/usage", "internal/worker",
		"observations", "server/callstate", "server/jsonrpc", "tokens", "transcript",
	},
	4: {
		"compaction", "internal/account", "internal/generation", "internal/kind/digest", "internal/kind/record", "prompts",
		"trace",
	},
	5: {
		"internal/kind/diff", "internal/kind/gitlog", "internal/kind/logs", "internal/kind/markdown",
		"internal/kind/shape", "internal/stats",
	},
	6:  {"internal/kind"},
	7:  {"internal/source", "tools/jq/decode"},
	8:  {"tools/jq/plan"},
	9:  {"tools", "tools/jq/engine"},
	10: {"funnel", "tools/documents", "tools/fs", "tools/jq", "tools/search", "tools/shell"},
	11: {"server"},
	12: {"server/httpserver", "server/stdio"}, // transports: the server does not know which of them brings a message
	13: {"internal/cli", "examples/embed"},    // what commands share
	14: {"internal/cli/transcripts"},
	15: {"cmd/mcp-funnel"},
}

// inner are the layers within one layer, bottom-up, of a package that is divided into several. No other package of the
// layer may import them.
var inner = map[string][][]string{
	"funnel": {
		{"funnel/text"},                   // how text is shown is one question for pages, receipts and errors
		{"funnel/policy"},                 // verdicts depend on sizes only, never on text
		{"funnel/capture", "funnel/page"}, // what was written, and the rows of a page, know nothing of each other
		{"funnel/receipt"},                // words come from facts: nothing is decided or stored while wording
		{"funnel"},                        // decides, stores and answers
	},
}

// innerLayer returns the package whose inner layers hold pkg, and which of them does.
func innerLayer(pkg string) (owner string, layer int) {
	for owner, layers := range inner {
		for n, names := range layers {
			if slices.Contains(names, pkg) {
				return owner, n + 1
			}
		}
	}
	return "", 0
}

// within are parts of one package that stand in a directory of their own.
var within = map[string]string{
	"funnel/text/texttest":         "funnel/text",      // what tests draw and show
	"tokens/tables":                "tokens",           // data beside the code that reads it
	"observations/storefs":         "observations",     // file operations of a store: where tests make a disk fail
	"internal/worker/workertest":   "internal/worker",  // what tests need to run workers
	"internal/content/contenttest": "internal/content", // what tests draw
	"tools/toolstest":              "tools",            // what tests call tools with
	"transcript/transcripttest":    "transcript",       // transcripts for tests
	"chat/chattest":                "chat",             // an endpoint for tests
	"server/servertest":            "server",           // what tests of the server and its transports share
	"tools/jq/plan/plantest":       "tools/jq/plan",    // filters and JSON texts for tests
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
			"server", "server/jsonrpc", "server/httpserver", "server/stdio", "cmd/mcp-funnel", "conformance/fixture",
		},
		"the protocol library stays at the edge: a new version or another library touches one package, not every tool",
	},
	"github.com/alecthomas/kong": {
		[]string{"cmd/mcp-funnel", "internal/cli", "internal/cli/transcripts"},
		"flags belong to the command line; packages take plain options",
	},
	"github.com/itchyny/gojq": {
		[]string{"tools/jq", "tools/jq/plan", "tools/jq/engine"},
		"jq programs run under this tool's bounds or not at all",
	},
}

type listed struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	Imports    []string
}

func packages(t *testing.T) []listed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Dir,GoFiles,Imports", "./...")
	cmd.Dir = ".."
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
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

func floorOf(pkg string) int {
	if owner, _ := innerLayer(pkg); owner != "" {
		pkg = owner
	}
	for n, names := range floors {
		if slices.Contains(names, pkg) {
			return n
		}
	}
	return 0
}

// familyOf is the package of the tools of which pkg is a part, as tools/jq of tools/jq/decode; "" if there is none.
func familyOf(pkg string) string {
	rest, ok := strings.CutPrefix(pkg, "tools/")
	name, _, _ := strings.Cut(rest, "/")
	if !ok || within[pkg] == "tools" {
		return ""
	}
	return "tools/" + name
}

// violations are the imports of a package that the house does not allow.
func violations(pkg string, imports []string) []string {
	var found []string
	floor := floorOf(pkg)
	if owner, ok := within[pkg]; ok {
		floor = floorOf(owner)
	}
	if floor == 0 && !strings.HasPrefix(pkg, "conformance") {
		return []string{pkg + " has no floor: give it one in floors"}
	}
	for _, imp := range imports {
		if why := unwanted[imp]; why != "" {
			found = append(found, pkg+" imports "+imp+": "+why)
		}
		for lib, rule := range only {
			if (imp == lib || strings.HasPrefix(imp, lib+"/")) && !slices.Contains(rule.packages, pkg) {
				found = append(found, pkg+" imports "+imp+": "+rule.reason)
			}
		}
		below, ours := strings.CutPrefix(imp, module+"/")
		if !ours || strings.HasPrefix(pkg, "conformance") {
			continue
		}
		if strings.HasPrefix(below, "conformance") {
			found = append(found, pkg+" imports "+below+": tests and fixtures only")
			continue
		}
		if family := familyOf(below); family != "" && family != familyOf(pkg) && below != family {
			found = append(found, pkg+" imports "+below+": the parts of a tool belong to its family")
			continue
		}
		if within[below] == pkg || within[pkg] == below {
			continue
		}
		owner, layer := innerLayer(pkg)
		if o, n := innerLayer(below); owner != "" && o == owner && n < layer {
			continue
		}
		if n := floorOf(below); n == 0 || n >= floor {
			found = append(found, pkg+" imports "+below+": imports point down, to a lower floor")
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
		if why := unwanted[pkg]; why != "" {
			t.Errorf("%s is in the binary: %s", pkg, why)
		}
	}
}

func TestImportsPointDown(t *testing.T) {
	all := packages(t)
	if len(all) < 10 {
		t.Fatalf("go list names %d packages", len(all))
	}
	for _, p := range all {
		for _, v := range violations(p.ImportPath, p.Imports) {
			t.Error(v)
		}
	}
}

// The control: the rules find what they are there to find.
func TestImportRulesBite(t *testing.T) {
	for pkg, imp := range map[string]string{
		"tools/fs":                   module + "/funnel",
		"tools/jq":                   module + "/funnel/text",
		"funnel/text":                module + "/funnel/policy",
		"funnel/page":                module + "/funnel/capture",
		"funnel/receipt":             module + "/funnel",
		"tools/search":               module + "/tools/fs",
		"funnel":                     "github.com/mark3labs/mcp-go/mcp",
		"observations":               module + "/tokens",
		"tools":                      module + "/server",
		"server":                     module + "/conformance/corpus",
		"internal/fresh":             "fmt",
		"trace":                      "github.com/mark3labs/mcp-go/server",
		"tools/jq/plan":              module + "/tools/jq/engine",
		"cmd/mcp-funnel":             module + "/tools/jq/engine",
		"internal/worker/workertest": module + "/tools/jq/decode",
	} {
		if len(violations(pkg, []string{imp})) == 0 {
			t.Errorf("%s may import %s", pkg, imp)
		}
	}
}

// Every package says in its comment what it is, and what it is not.
func TestPackageComments(t *testing.T) {
	for _, p := range packages(t) {
		doc := ""
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(
				token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.PackageClauseOnly|parser.ParseComments,
			)
			if err != nil {
				t.Fatal(err)
			}
			if f.Doc != nil {
				if doc != "" {
					t.Errorf("%s has two package comments", p.ImportPath)
				}
				doc = f.Doc.Text()
			}
		}
		if len(p.GoFiles) == 0 {
			continue
		}
		first := "Package " + filepath.Base(p.ImportPath) + " "
		if strings.HasPrefix(p.ImportPath, "cmd/") || strings.HasPrefix(p.ImportPath, "examples/") {
			first = "Command " + filepath.Base(p.ImportPath) + " "
		}
		if !strings.HasPrefix(doc, first) {
			t.Errorf("%s: the package comment must begin with %q", p.ImportPath, first)
		}
		if _, rest, _ := strings.Cut(doc, "\n\n"); rest == "" {
			t.Errorf("%s: the package comment must also say what the package is not", p.ImportPath)
		}
	}
}

// init runs where no reader looks for it; the house has lists instead.
func TestNoInit(t *testing.T) {
	for _, p := range packages(t) {
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
					t.Errorf("%s/%s has an init function", p.ImportPath, name)
				}
			}
		}
	}
}
