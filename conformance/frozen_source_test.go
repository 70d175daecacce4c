package conformance

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// sourceTypes are the type declarations of the packages below a directory, by "package directory.Name".
type sourceTypes struct {
	types   map[string]sourceType
	structs []sourceStruct
	strings map[string]bool // the string literals
}

type sourceType struct {
	expr ast.Expr
	file sourceFile
}

type sourceStruct struct {
	fields *ast.StructType
	file   sourceFile
}

// sourceFile is where a type is declared: names in it mean what these say.
type sourceFile struct {
	dir     string            // of the package, below the root
	imports map[string]string // name: directory below the root, for packages of this module
}

// readSource parses the Go files below a directory that are part of the product.
func readSource(t *testing.T, root string) *sourceTypes {
	t.Helper()
	s := &sourceTypes{types: map[string]sourceType{}, strings: map[string]bool{}}
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
		dir, err := filepath.Rel(root, filepath.Dir(name))
		if err != nil {
			return err
		}
		return s.add(filepath.ToSlash(dir), text)
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// add takes in one file of the package in dir.
func (s *sourceTypes) add(dir string, text []byte) error {
	parsed, err := parser.ParseFile(token.NewFileSet(), dir, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	file := sourceFile{dir: dir, imports: map[string]string{}}
	for _, spec := range parsed.Imports {
		full, _ := strconv.Unquote(spec.Path.Value)
		below, ours := strings.CutPrefix(full, module+"/")
		if !ours {
			continue
		}
		name := path.Base(below)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		file.imports[name] = below
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.TypeSpec:
			if _, known := s.types[dir+"."+n.Name.Name]; !known {
				s.types[dir+"."+n.Name.Name] = sourceType{n.Type, file}
			}
		case *ast.StructType:
			s.structs = append(s.structs, sourceStruct{n, file})
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
				s.strings[text] = true
			}
		}
		return true
	})
	for _, d := range parsed.Decls { // a type inside a function may have the same name
		if declared, ok := d.(*ast.GenDecl); ok && declared.Tok == token.TYPE {
			for _, spec := range declared.Specs {
				if named, ok := spec.(*ast.TypeSpec); ok {
					s.types[dir+"."+named.Name.Name] = sourceType{named.Type, file}
				}
			}
		}
	}
	return nil
}

// objects are the JSON objects that structs with tags stand for, each once and in order, without names of Go.
// What tools take as arguments is left out: it has help tags, and testdata/wire holds the schemas.
func (s *sourceTypes) objects() []string {
	found := map[string]bool{}
	for _, one := range s.structs {
		tagged, arguments := false, false
		for _, f := range one.fields.Fields.List {
			_, is := tagOf(f).Lookup("json")
			_, helps := tagOf(f).Lookup("help")
			tagged, arguments = tagged || is, arguments || helps
		}
		if tagged && !arguments {
			found[s.object(one, 0)] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func tagOf(f *ast.Field) reflect.StructTag {
	if f.Tag == nil {
		return ""
	}
	text, _ := strconv.Unquote(f.Tag.Value)
	return reflect.StructTag(text)
}

// object is a struct as JSON has it: its keys in order, with "?" where empty ones are left out.
func (s *sourceTypes) object(one sourceStruct, depth int) string {
	members := s.members(one, depth)
	slices.Sort(members)
	return "{" + strings.Join(members, ", ") + "}"
}

func (s *sourceTypes) members(one sourceStruct, depth int) (out []string) {
	for _, f := range one.fields.Fields.List {
		tag, tagged := tagOf(f).Lookup("json")
		name, options, _ := strings.Cut(tag, ",")
		if tag == "-" {
			continue
		}
		if !tagged && len(f.Names) == 0 { // its members are those of this object
			if inner, is := s.structOf(f.Type, one.file); is {
				out = append(out, s.members(inner, depth)...)
			}
			continue
		}
		if name == "" && len(f.Names) > 0 && f.Names[0].IsExported() {
			name = f.Names[0].Name
		}
		if name == "" {
			continue
		}
		mark := ""
		if strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero") {
			mark = "?"
		}
		out = append(out, name+mark+": "+s.shape(f.Type, one.file, depth+1))
	}
	return out
}

// structOf finds the struct that a type is, by its name too.
func (s *sourceTypes) structOf(e ast.Expr, file sourceFile) (sourceStruct, bool) {
	switch e := e.(type) {
	case *ast.StructType:
		return sourceStruct{e, file}, true
	case *ast.StarExpr:
		return s.structOf(e.X, file)
	case *ast.Ident, *ast.SelectorExpr:
		if named, ok := s.named(e, file); ok {
			return s.structOf(named.expr, named.file)
		}
	}
	return sourceStruct{}, false
}

func (s *sourceTypes) named(e ast.Expr, file sourceFile) (sourceType, bool) {
	switch e := e.(type) {
	case *ast.Ident:
		named, ok := s.types[file.dir+"."+e.Name]
		return named, ok
	case *ast.SelectorExpr:
		if from, ok := e.X.(*ast.Ident); ok && file.imports[from.Name] != "" {
			named, ok := s.types[file.imports[from.Name]+"."+e.Sel.Name]
			return named, ok
		}
	}
	return sourceType{}, false
}

// shape is what JSON holds for a value of a type.
func (s *sourceTypes) shape(e ast.Expr, file sourceFile, depth int) string {
	if inner, is := s.structOf(e, file); is {
		if depth > 5 {
			return "object"
		}
		return s.object(inner, depth)
	}
	switch e := e.(type) {
	case *ast.StarExpr:
		return s.shape(e.X, file, depth)
	case *ast.ArrayType:
		if of, is := e.Elt.(*ast.Ident); is && of.Name == "byte" {
			return "base64"
		}
		return "[" + s.shape(e.Elt, file, depth) + "]"
	case *ast.MapType:
		return "{*: " + s.shape(e.Value, file, depth) + "}"
	case *ast.Ident:
		if named, ok := s.named(e, file); ok {
			return s.shape(named.expr, named.file, depth)
		}
		if regexp.MustCompile(`^(u?int|float)\d*$`).MatchString(e.Name) {
			return "number"
		}
		return e.Name // string, bool, any
	case *ast.SelectorExpr:
		if named, ok := s.named(e, file); ok {
			return s.shape(named.expr, named.file, depth)
		}
		return map[string]string{"RawMessage": "any", "Duration": "number", "Time": "time"}[e.Sel.Name]
	}
	return "any"
}

// frozenLiteral matches the literals that others rely on: keys of _meta, variables, routes and resources.
var frozenLiteral = regexp.MustCompile(
	`^((funnel|io\.modelcontextprotocol)/[\w./-]+|MCP_FUNNEL_\w*|XDG_\w+|_meta|progressToken|observation://.*` +
		`|Mcp-[\w-]+|/(mcp|sse|message|metrics|healthz|readyz|livez)|20\d\d-\d\d-\d\d)$`)

// frozenSource are facts of the source that no answer shows at once: all JSON objects, and words of the protocol.
func frozenSource(t *testing.T, root string) []string {
	return readSource(t, root).frozen()
}

func (s *sourceTypes) frozen() []string {
	out := append([]string{"# JSON objects: ? is left out where empty"}, s.objects()...)
	out = append(out, "", "# literals: keys of _meta, variables, routes and resources")
	for _, text := range slices.Sorted(maps.Keys(s.strings)) {
		if frozenLiteral.MatchString(text) {
			out = append(out, text)
		}
	}
	return out
}
