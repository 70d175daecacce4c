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
	type row struct{ Name, Text, Want string }
	for _, c := range append(expect.Table[row](t, "testdata/language.tsv"),
		row{"a.m", objc, "Objective-C"},
		row{"objc.h", objc, "Objective-C"},
	) {
		expect.Equal(t, Language(c.Name, []byte(c.Text), content.Text), c.Want, "%s %.40q", c.Name, c.Text)
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
