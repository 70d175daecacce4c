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

// floors is the house, bottom-up. A package may import only what stands on a
// lower floor: a reader of one floor then needs to know only those below it, and
// families of tools on one floor cannot grow into each other.
var floors = [][]string{
	1: {"observations", "tokens", "prompts", "internal/tree", "internal/lines", "internal/content", "internal/cutoff", "internal/child", "internal/secrets", "internal/panics", "internal/recent", "internal/runes", "internal/mapped", "internal/stack"},
	2: {"trace", "tools", "internal/summary"},
	3: {"funnel", "tools/fs", "tools/search", "tools/jq", "tools/shell", "upstream"},
	4: {"investigation"},
	5: {"server"},
	6: {"cmd/mcp-funnel"},
}

// within are parts of one package that stand in a directory of their own.
var within = map[string]string{
	"tokens/tables":                "tokens",           // data beside the code that reads it
	"internal/child/childtest":     "internal/child",   // what tests need to run workers
	"internal/content/contenttest": "internal/content", // what tests draw
	"tools/toolstest":              "tools",            // what tests call tools with
}

// sideways are imports on one floor that are wanted, each with its reason.
var sideways = map[string]string{
	"internal/cutoff -> internal/content": "one JSON scanner serves both: two would disagree on what is whole",
	"internal/lines -> internal/panics":   "a panic beside a call is raised in the call, whose end it is",
	"internal/tree -> internal/panics":    "as in internal/lines",
	"internal/lines -> internal/recent":   "a compiled pattern is kept beside what compiles it",
	"internal/lines -> internal/mapped":   "what is searched decides what is read",
	"tokens -> internal/panics":           "as in internal/lines",
	"observations -> internal/runes":      "the receipt and the index count alike",
	"observations -> internal/secrets":    "a tombstone's arguments are masked by the same table as what is shown",
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
		[]string{"server", "upstream", "cmd/mcp-funnel", "conformance/fixture"},
		"the protocol library stays at the edge: a new version or another library touches one package, not every tool",
	},
	"github.com/alecthomas/kong": {
		[]string{"cmd/mcp-funnel"},
		"flags belong to the command line; packages take plain options",
	},
	"github.com/itchyny/gojq": {
		[]string{"tools/jq"},
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
	for n, names := range floors {
		if slices.Contains(names, pkg) {
			return n
		}
	}
	return 0
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
		if within[below] == pkg || within[pkg] == below || sideways[pkg+" -> "+below] != "" {
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
		"tools/fs":       module + "/funnel",
		"tools/search":   module + "/tools/fs",
		"funnel":         "github.com/mark3labs/mcp-go/mcp",
		"observations":   module + "/tokens",
		"tools":          module + "/server",
		"server":         module + "/conformance/corpus",
		"internal/fresh": "fmt",
		"upstream":       "github.com/mark3labs/mcp-go/server",
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
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.PackageClauseOnly|parser.ParseComments)
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
		if strings.HasPrefix(p.ImportPath, "cmd/") {
			first = "Command mcp-funnel "
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
