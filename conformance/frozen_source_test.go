package conformance

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// frozenLiteral matches the literals that others rely on: keys of _meta, variables, routes and resources.
var frozenLiteral = regexp.MustCompile(
	`^((funnel|io\.modelcontextprotocol)/[\w./-]+|MCP_FUNNEL_\w*|XDG_\w+|_meta|progressToken|observation://.*` +
		`|Mcp-[\w-]+|/(mcp|sse|message|metrics|healthz|readyz|livez)|20\d\d-\d\d-\d\d)$`)

// sourceFacts are facts of the source that no answer shows at once: the keys of the structs that are JSON objects, and
// words of the protocol. They have no names of Go.
type sourceFacts struct{ objects, literals map[string]bool }

func newSourceFacts() sourceFacts { return sourceFacts{map[string]bool{}, map[string]bool{}} }

// frozenSource returns the facts of the Go files below a directory that are part of the product.
func frozenSource(t *testing.T, root string) []string {
	facts := newSourceFacts()
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			other := slices.Contains([]string{"conformance", "docs", "scripts", "testdata"}, entry.Name()) ||
				strings.HasSuffix(entry.Name(), "test") // servertest and others: imported by tests only
			if other || name != root && strings.HasPrefix(entry.Name(), ".") && entry.Name() != ".." {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return facts.add(text)
	})
	expect.Must(t, err)
	return facts.lines()
}

func (s sourceFacts) lines() []string {
	out := append([]string{"# JSON objects: ? is left out where empty"}, slices.Sorted(maps.Keys(s.objects))...)
	out = append(out, "", "# literals: keys of _meta, variables, routes and resources")
	return append(out, slices.Sorted(maps.Keys(s.literals))...)
}

// add takes in one file. Arguments of tools are left out: testdata/wire holds their schemas.
func (s sourceFacts) add(text []byte) error {
	parsed, err := parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.StructType:
			tagged, arguments := false, false
			for _, f := range n.Fields.List {
				_, is := tagOf(f).Lookup("json")
				_, helps := tagOf(f).Lookup("help")
				tagged, arguments = tagged || is, arguments || helps
			}
			if tagged && !arguments {
				s.objects[objectOf(n)] = true
			}
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && frozenLiteral.MatchString(text) {
				s.literals[text] = true
			}
		}
		return true
	})
	return nil
}

func tagOf(f *ast.Field) reflect.StructTag {
	if f.Tag == nil {
		return ""
	}
	text, _ := strconv.Unquote(f.Tag.Value)
	return reflect.StructTag(text)
}

// objectOf is a struct as JSON has it: its own keys in order, with "?" where empty ones are left out.
func objectOf(of *ast.StructType) string {
	var members []string
	for _, f := range of.Fields.List {
		tag, _ := tagOf(f).Lookup("json")
		name, options, _ := strings.Cut(tag, ",")
		if name == "" && len(f.Names) > 0 && f.Names[0].IsExported() {
			name = f.Names[0].Name
		}
		if name == "" || name == "-" {
			continue
		}
		if strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero") {
			name += "?"
		}
		members = append(members, name+": "+jsonOf(f.Type))
	}
	slices.Sort(members)
	return "{" + strings.Join(members, ", ") + "}"
}

var numeric = regexp.MustCompile(`^(u?int|float)\d*$|^Duration$`)

// jsonOf is what JSON holds for a value of a type; a type with a name of its own is "…", and listed by itself.
func jsonOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StructType:
		return objectOf(e)
	case *ast.StarExpr:
		return jsonOf(e.X)
	case *ast.ArrayType:
		if of, is := e.Elt.(*ast.Ident); is && of.Name == "byte" {
			return "base64"
		}
		return "[" + jsonOf(e.Elt) + "]"
	case *ast.MapType:
		return "{*: " + jsonOf(e.Value) + "}"
	case *ast.SelectorExpr:
		return jsonOf(e.Sel)
	case *ast.Ident:
		switch {
		case numeric.MatchString(e.Name):
			return "number"
		case slices.Contains([]string{"string", "bool", "any"}, e.Name):
			return e.Name
		case e.Name == "RawMessage":
			return "any"
		case e.Name == "Time":
			return "time"
		}
		return "…"
	}
	return "any"
}
