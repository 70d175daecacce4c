package kinds

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/peers/peer"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

func TestSniff(t *testing.T) {
	type row struct {
		Name, Text string
		Want       content.Kind
	}
	for _, tt := range append(expect.Table[row](t, "testdata/sniff.tsv"),
		row{"", `"` + strings.Repeat("longer than the sample ", 4000) + `"`, content.JSON},
		row{"", strings.Repeat("{\"a\":1}\n", 11) + "plain\n", content.NDJSON},
		row{"", strings.Repeat("{\"a\":1} 2\n", 11) + "plain\n", content.Text},
		row{"", strings.Repeat("{\"level\":\"info\",\"msg\":\"x\"}\n", 20) + "panic: oops\n" + "{\"a\":1}\n", content.NDJSON},
		row{"", string(utf16Bytes("[\"a\", {\"b\": 1}]", false)), content.JSON},
	) {
		expect.Equal(t, Sniff([]byte(tt.Text), true, tt.Name), tt.Want, "%s %q", tt.Name, clipped(tt.Text))
	}
}

func TestIsSource(t *testing.T) {
	for _, name := range []string{"a.go", "A.PY", "x/y/Makefile", "Dockerfile", "go.mod", ".gitignore", ".env", "a.b.yml", "a.test.tsx"} {
		if !content.IsSource(name) {
			t.Errorf("%s is no source", name)
		}
	}
	for _, name := range []string{"", "a", "a.log", "go", "a.txt", "nohup.out", "a.md", "a.json", "a.csv", "syslog.1", "x.go/y", "a.go.orig"} {
		if content.IsSource(name) {
			t.Errorf("%s is source", name)
		}
	}
}

func TestFileHeader(t *testing.T) {
	for line, want := range map[string]string{
		"==> a.go <==": "a.go", "==> a b/c.py <==": "a b/c.py", "==> x.png <== not text: image/png, 3 bytes; read it alone": "x.png",
		"==>  <==": "", "==> a.go <=": "", "==> a.go": "", " ==> a.go <==": "", "==> a.go <==>": "", "== a.go ==": "", "": "",
	} {
		if got, ok := content.FileHeader([]byte(line)); got != want || ok != (want != "") {
			t.Errorf("%q names %q, want %q", line, got, want)
		}
	}
}

func TestSniffCorpus(t *testing.T) {
	for _, tt := range []struct {
		name string
		text []byte
		want content.Kind
	}{
		{"war and peace", corpus.WarAndPeace(), content.Text},
		{"1 MB", corpus.JSON1MB(), content.JSON},
		{"5 MB", corpus.JSON5MB(), content.JSON},
		{"1 MB on a line", corpus.JSON1MBMinified(), content.JSON},
		{"log", corpus.PanicLog(), content.Log},
		{"csv", corpus.CSV20k(), content.Table},
		{"rare key", corpus.RareKey9k(), content.JSON},
		{"cjk", corpus.CJK(), content.Text},
		{"random", corpus.Random(100_000), content.Binary},
		{"diff", corpus.WarAndPeaceDiff(), content.Diff},
	} {
		got := Sniff(tt.text, len(tt.text) <= content.SniffSize, "")
		if tt.name == "rare key" && got == content.NDJSON {
			continue
		}
		expect.Equal(t, got, tt.want, tt.name)
	}
}

// Go's own source is code: neither log nor table nor diff nor content.JSON, whatever its lines look like. Without its
// name three files of a thousand may be taken for something else (documentation in comments is content.Markdown,
// nearly); with it, none.
func TestSniffGoSource(t *testing.T) {
	root := peer.GoSource(t)
	nameless, seen := 0, 0
	for _, dir := range []string{"fmt", "net/http", "go/parser", "runtime", "cmd/go/internal/load", "strconv", "unicode", "encoding/json", "math/big"} {
		files, _ := filepath.Glob(filepath.Join(root, dir, "*"))
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil || filepath.Ext(f) == ".md" {
				continue
			}
			seen++
			whole := len(text) <= content.SniffSize
			if !whole {
				text = text[:content.SniffSize]
			}
			if k := Sniff(text, whole, ""); k != content.Text && k != content.Binary {
				nameless++
				t.Logf("%s without its name is %s", f, k)
			}
			if k := Sniff(text, whole, filepath.Base(f)); k != content.Text && k != content.Binary {
				t.Errorf("%s is %s", f, k)
			}
		}
	}
	if seen < 100 {
		t.Fatalf("%d files of Go's source: it is not whole", seen)
	}
	if nameless*1000 > seen*3 {
		t.Errorf("%d of %d files of Go source were taken for something else", nameless, seen)
	}
}

func TestMedia(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{`{"a":1}`, "application/json"},
		{"{\"a\":1}\n{\"a\":1}", "application/x-ndjson"},
		{"a,b\n1,2\n3,4\n", "text/csv"},
		{"a\tb\n1\t2\n3\t4\n", "text/tab-separated-values"},
		{merge, "text/x-diff"},
		{"hello\n", "text/plain"},
		{"<!DOCTYPE html><html></html>", "text/html"},
		{"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "image/png"},
		{"GIF89a\x01\x00\x01\x00", "image/gif"},
		{"a\x00b", "application/octet-stream"},
	} {
		expect.Equal(t, Media([]byte(tt.text), ""), tt.want, tt.text)
	}
}

// merge is a diff of a merge, as git writes it.
const merge = `diff --cc a.txt
index 1,2..3
--- a/a.txt
+++ b/a.txt
@@@ -1,3 -1,3 +1,4 @@@
  one
- two
 -zwei
++both
++more
  three
diff --git a/b.txt b/b.txt
--- a/b.txt
+++ b/b.txt
@@ -1 +1,2 @@ func x()
--- a removed line that looks like a header
+++ an added one
+@@ -9 +9 @@
\ No newline at end of file
@@ -10,2 +11 @@
 context
-gone
`

func utf16Bytes(s string, big bool) []byte {
	var b []byte
	for _, u := range utf16.Encode([]rune(s)) {
		if big {
			b = append(b, byte(u>>8), byte(u))
		} else {
			b = append(b, byte(u), byte(u>>8))
		}
	}
	return b
}

func clipped(s string) string { return s[:min(len(s), 200)] }
