package outline

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
)

// golang outlines a Go file. If it has errors, the declarations that could be parsed are used.
func (o *Outline) golang(text []byte) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", text, parser.ParseComments|parser.SkipObjectResolution)
	o.Broken = o.Broken || err != nil
	o.Doc = summary(file.Doc.Text())
	for _, group := range file.Comments {
		if group.Pos() < file.Package {
			o.Doc = cmp.Or(o.Doc, summary(group.Text()))
		}
	}
	add := func(kind, receiver string, name *ast.Ident) {
		if name.IsExported() || kind == "func" && name.Name == "main" && file.Name.Name == "main" {
			o.add(kind, receiver+name.Name, files.PositionFor(name.Pos(), false).Line)
		}
	}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv == nil {
				add("func", "", decl.Name)
			} else if receiver := firstIdent(decl.Recv); ast.IsExported(receiver) {
				add("method", receiver+".", decl.Name)
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				if typ, ok := spec.(*ast.TypeSpec); ok {
					add("type", "", typ.Name)
				} else if value, ok := spec.(*ast.ValueSpec); ok {
					for _, name := range value.Names {
						add(decl.Tok.String(), "", name)
					}
				}
			}
		}
	}
}

// firstIdent returns the first identifier in the type of a receiver: T of (x *T[K]).
func firstIdent(receiver *ast.FieldList) (name string) {
	for _, field := range receiver.List {
		ast.Inspect(field.Type, func(n ast.Node) bool {
			if ident, ok := n.(*ast.Ident); ok && name == "" {
				name = ident.Name
			}
			return name == ""
		})
	}
	return name
}
