package search

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/tools/toolstest"
)

func BenchmarkSearch(b *testing.B) {
	dir := goroot(b)
	var size int64
	if err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if i, err := d.Info(); err == nil {
				size += i.Size()
			}
		}
		return err
	}); err != nil {
		b.Fatal(err)
	}
	s := toolstest.Roots(b, dir)
	for _, a := range []args{
		{"pattern": "no such thing"}, {"pattern": "context.Context"}, {"pattern": "[a-z]+Error"}, {"pattern": "e", "context": 2},
		{"pattern": "readfrom", "ignore_case": true}, {"pattern": `\{\n\n`, "multiline": true}, {"pattern": "func", "show": "counts"},
	} {
		b.Run(strings.ReplaceAll(fmt.Sprint(a["pattern"], " ", a["show"]), "<nil>", ""), func(b *testing.B) {
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				must(b, Search(), s, a)
			}
		})
	}
}

func BenchmarkGrep(b *testing.B) {
	s := toolstest.Roots(
		b, folder(b, "panic.log", string(corpus.PanicLog()), "one.json", string(corpus.JSON1MBMinified())),
	)
	for _, a := range []args{
		{"source": "panic.log", "pattern": "panic:"}, {"source": "panic.log", "pattern": "[0-9]+ms$"},
		{"source": "panic.log", "pattern": "e", "limit": 10}, {"source": "one.json", "pattern": "[aeiou]{3}", "limit": 10},
	} {
		b.Run(fmt.Sprint(a["source"], " ", a["pattern"]), func(b *testing.B) {
			size := len(corpus.PanicLog())
			if a["source"] == "one.json" {
				size = len(corpus.JSON1MBMinified())
			}
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				must(b, Grep(), s, a)
			}
		})
	}
}
