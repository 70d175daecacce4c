package kinds

import (
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// TestLanguage has names and beginnings of texts: suffixes that several languages share, programs after "#!", and
// names of which only a part is known.
func TestLanguage(t *testing.T) {
	objc := "// a file\n#import <Foundation/Foundation.h>\n@interface A : NSObject\n@end\n"
	for _, c := range []struct{ name, text, want string }{
		{"script", "#!/usr/bin/env python3\nprint(1)\n", "Python"},
		{"script", "#! /usr/local/bin/python3.11 -u\r\n", "Python"},
		{"script", "#!/usr/bin/env -S node --harmony\n", "JavaScript"},
		{"script", "#!/usr/bin/env -S FOO=1 BAR=2 ruby -w\n", "Ruby"},
		{"script", "#!/usr/bin/env --split-string=perl -w\n", "Perl"},
		{"script", "#!/usr/bin/env -iSperl\n", "Perl"},
		{"script", "#!/usr/bin/env -i -u HOME lua5.4\n", "Lua"},
		{"script", "#!/usr/bin/env -S uv run --script\n", "Python"},
		{"script", "#!/usr/bin/env -S deno run -A\n", "TypeScript"},
		{"script", "#!/bin/sh\n# the next line restarts \\\nexec tclsh \"$0\" \"$@\"\n", "Tcl"},
		{"script", "#!/bin/sh\nexec java -jar \"$0\"\n", "Shell"},
		{"script", "#!/bin/bash", "Shell"},
		{"script", "#!\nprint\n", "Text"},
		{"script", "#!/opt/some/thing\n", "Text"},
		{"script", " #!/bin/sh\n", "Text"},
		{"tool.in", "#!/bin/sh\n", "Shell"},
		{"tool.ts", "#!/usr/bin/env node\nlet a: number\n", "TypeScript"},
		{"note.md", "#!/bin/sh\n", "Markdown"},

		{"tr.ts", "<?xml version=\"1.0\"?>\n<TS version=\"2.1\"/>\n", "XML"},
		{"tr.ts", "\ufeff\n<?xml version=\"1.0\"?>\n", "XML"},
		{"tr.ts", "<!DOCTYPE TS><TS version=\"1.1\">\n", "XML"},
		{"a.ts", "const x = `\n<?xml version=\"1.0\"?>\n`\n", "TypeScript"},
		{"tiles.tsx", "<?xml version=\"1.0\"?>\n<tileset/>\n", "XML"},
		{"app.csproj", "<?xml version=\"1.0\"?>\n<Project/>\n", "XML"},
		{"page.html", "<?xml version=\"1.0\"?>\n<html/>\n", "HTML"},
		{"logo.svg", "<?xml version=\"1.0\"?>\n<svg/>\n", "SVG"},

		{"mat.m", "function y = f(x)\n% doc\ny = x + 1;\nend\n", "MATLAB"},
		{"mat.m", "x = 1;\nplot(x)\n", "MATLAB"},
		{"a.m", objc, "Objective-C"},
		{"main.m", "int main(void) { return 0; }\n", "Objective-C"},
		{"m.m", "%---\n:- module hello.\n", "Mercury"},
		{"w.m", "(* a package *)\nBeginPackage[\"A`\"]\n", "Mathematica"},
		{"a.m", "", "Objective-C"},

		{"c.h", "#ifndef A\n#define A\n#ifdef __cplusplus\nextern \"C\" {\n#endif\nint f(void); // a::b\n#endif\n", "C"},
		{"c.h", "/*\nclass of things\nusing them\n*/\n#include <stdio.h>\nint f(void);\n", "C"},
		{"c.h", "#define A 1 /* of the\n\t\tclass of things */\nint f(void);\n", "C"},
		{"cpp.h", "#include <iostream>\nint f();\n", "C++"},
		{"cpp.h", "#pragma once\nclass A { public: int x; };\n", "C++"},
		{"cpp.h", "#pragma once\nstruct A { virtual int f(); };\n", "C++"},
		{"cpp.h", "#include<vector>\n", "C++"},
		{"cpp.h", "enum class E { a };\n", "C++"},
		{"c.h", "int page; /* a virtual address of std::x */\nextern int virtual_base;\n", "C"},
		{"cpp.h", "#pragma once\nstd::string name();\n", "C++"},
		{"cpp.h", "/* one */\n/* a */ /* b\n*/\ntemplate<typename T> T id(T x);\n", "C++"},
		{"objc.h", objc, "Objective-C"},

		{"p.pl", "use strict;\nmy $x = 1;\n", "Perl"},
		{"p.pl", "#!/usr/bin/perl\n", "Perl"},
		{"p.pl", "%h = (a => 1);\nprint $h{a};\n", "Perl"},
		{"a.t", "plan tests => 1;\n", "Perl"},
		{"q.pl", "% facts\nlikes(mary, wine).\n", "Prolog"},
		{"q.pl", ":- use_module(library(lists)).\n", "Prolog"},
		{"q.pl", "/* rules */\nuncle(X, Y) :-\n\tbrother(X, Z), parent(Z, Y).\n", "Prolog"},
		{"dep.d", "x.o: x.c x.h \\\n y.h\n", "Makefile"},
		{"mod.d", "module a;\nimport std.stdio;\n", "D"},
		{"proof.v", "Require Import Arith.\n", "Coq"},
		{"chip.v", "module chip(input a);\nendmodule\n", "Verilog"},

		{"Dockerfile", "FROM alpine\n", "Dockerfile"},
		{"Dockerfile.dev", "FROM alpine\n", "Dockerfile"},
		{"dir/dockerfile.py", "FROM python\n", "Dockerfile"},
		{"Containerfile", "FROM alpine\n", "Dockerfile"},
		{"web.dockerfile", "FROM alpine\n", "Dockerfile"},
		{"Dockerfile.md", "# How\n", "Markdown"},
		{"Dockerfile.go", "# syntax=docker/dockerfile:1\n\nARG V=1\nFROM golang\n", "Dockerfile"},
		{"dockerfile.go", "package dockerfile\n\nconst text = `\nFROM alpine\n`\n", "Go"},
		{"dockerfile.py", "# build\nfrom a import b\n", "Python"},
		{"Makefile.am", "all:\n", "Makefile"},
		{"GNUmakefile", "all:\n", "Makefile"},
		{"tsconfig.jsonc", "{} // x\n", "JSON"},
		{"x.mts", "let a = 1\n", "TypeScript"},
		{"odd.xyz", "words\n", "Text"},
	} {
		expect.Equal(t, Language(c.name, []byte(c.text), content.Text), c.want, "%s %.40q", c.name, c.text)
	}
	expect.Equal(t, Language("names", []byte(strings.Repeat("a,b\n", 5)), content.Table), "CSV")
}

func FuzzLanguage(f *testing.F) {
	for _, seed := range []string{
		"", "#!", "#!/usr/bin/env", "#!env -S", "#!env -u", "\ufeff#!/bin/sh\nexec x $0", "/*\n*/\n", "\xff::",
	} {
		f.Add("a.h", []byte(seed))
	}
	f.Fuzz(func(t *testing.T, name string, text []byte) {
		if Language(name, text, content.Text) == "" {
			t.Error("no language has no name")
		}
	})
}
