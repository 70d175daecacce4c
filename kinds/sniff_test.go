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
	for _, tt := range []struct {
		name string // of the file
		text string
		want content.Kind
	}{
		{"", "", content.Text},
		{"", " \n", content.Text},
		{"", `{"a":1}`, content.JSON},
		{"", `[]`, content.JSON},
		{"", "{}", content.JSON},
		{"", "[\n  1,\n  2\n]\n", content.JSON},
		{"", `[{"a":1},{"b"`, content.JSON},
		{"", `["a long string that is cut`, content.JSON},
		{"", `"a string"`, content.JSON},
		{"", `"` + strings.Repeat("longer than the sample ", 4000) + `"`, content.JSON},
		{"", `[`, content.Text},
		{"", `{`, content.Text},
		{"", `{ "name": "x", "compilerOptions": { "a": 1, "b": 2, "c": [1,2,3], "d": {"e": 1} }, // comment` +
			"\n}", content.JSON},
		{"tsconfig.json", `{ "a": 1, "b": 2, }`, content.JSON},
		{"", "{\"a\":1}\n{\"a\":2}\n", content.NDJSON},
		{"", "{\"a\":1}\n{\"a\":", content.NDJSON},
		{"", strings.Repeat("{\"a\":1}\n", 11) + "plain\n", content.NDJSON},
		{"", strings.Repeat("{\"a\":1} 2\n", 11) + "plain\n", content.Text},
		{"", "{\n\"a\":1\n}\n{\n\"a\":2\n}\n", content.NDJSON},
		{"", "[1,2]\n[3,4]\n", content.NDJSON},
		{"", "\"one\"\n\"two\"\n", content.NDJSON},
		{"", strings.Repeat("{\"level\":\"info\",\"msg\":\"x\"}\n", 20) + "panic: oops\n" + "{\"a\":1}\n", content.NDJSON},
		{"", "1\n2\n3\n", content.Text},
		{"", "true\n", content.Text},
		{"", "\"Well,\" she said, \"it is late.\"\nAnd it was.\n", content.Text},
		{"", "{\"a\":1}\nDone in 3s.\nSee the log for more.\n", content.Text},
		{"", "[2026-11-20 10:00:00] INFO start\n[2026-11-20 10:00:01] ERROR stop\n", content.Log},
		{"", "[2026-11-20T10:00:00Z] start\n[2026-11-20T10:00:01Z] stop\n", content.Log},
		{"", "[INFO] start\n[ERROR] stop\n", content.Log},
		{"", "[12:00:01] start\n[12:00:02] stop\n", content.Log},
		{"", "2026-11-20T10:00:00.123Z INFO start server\n", content.Log},
		{"", "2026-11-20 10:00:00,123 INFO root: started\n2026-11-20 10:00:01,456 ERROR root: failed\nTraceback (most recent call last):\n  File \"x.py\", line 3, in <module>\n    f()\nValueError: no\n", content.Log},
		{"", "Nov 20 10:00:00 host sshd[123]: Accepted\nNov 20 10:00:01 host sshd[123]: Closed\n", content.Log},
		{"", "2026/11/20 10:00:00 listening\n2026/11/20 10:00:01 closed\n", content.Log},
		{"", "I1120 10:00:00.000000       1 main.go:12] start\nE1120 10:00:00.000000       1 main.go:13] stop\n", content.Log},
		{"", "[    0.000000] Linux version 6.18\n[    0.000123] Command line: x\n", content.Log},
		{"", "127.0.0.1 - - [20/Nov/2026:10:00:00 +0000] \"GET / HTTP/1.1\" 200 12\n127.0.0.1 - - [20/Nov/2026:10:00:01 +0000] \"GET /x HTTP/1.1\" 404 1\n", content.Log},
		{"", "time=2026-11-20T10:00:00Z level=INFO msg=start\ntime=2026-11-20T10:00:00Z level=WARN msg=stop\n", content.Log},
		{"", "INFO:root:one\nWARNING:root:two\n", content.Log},
		{"", "2026-11-20T10:00:00Z\tINFO\tmain.go:1\tstart\n2026-11-20T10:00:01Z\tWARN\tmain.go:2\tstop\n", content.Log},
		{"", "web_1  | 2026-11-20 10:00:00 start\ndb_1   | 2026-11-20 10:00:00 start\n", content.Log},
		{"", "\x1b[31m", content.Text},
		{"", "\x1b[32mINFO\x1b[0m one\n\x1b[31mERROR\x1b[0m two\n", content.Log},
		{"", "main.go:12: error: no such thing\nmain.go:13: warning: unused\n", content.Text},
		{"", "src/a.go:1:package a\nsrc/a.go:3:import (\nsrc/b.go:1:package b\n", content.Text},
		{"", "a.txt:1:2026-11-20 10:00:00 ERROR x\na.txt:2:2026-11-20 10:00:01 INFO y\n", content.Text},
		{"", "a,b\n1,2\n3,4\n", content.Table},
		{"", "id,name,comment\n1,ann,\"a, b\"\n2,bob,\"c\nd\"\n", content.Table},
		{"", "id;name\n1;ann\n2;bob\n", content.Table},
		{"", "id\tname\n1\tann\n", content.Table},
		{"", "time,value\n2026-11-20 10:00:00,5\n2026-11-20 10:00:01,6\n", content.Table},
		{"", "time\tvalue\n2026-11-20 10:00:00\t5\n2026-11-20 10:00:01\t6\n", content.Table},
		{"x.csv", "a,b\n", content.Table},
		{"x.csv", "a,b\n1,2,3\n1,2\n1\n", content.Table}, // ragged
		{"x.csv", "a,b\n1,2,\n3,4,\n", content.Table},    // every row has one more column than the header
		{"x.tsv", "a\tb\n1\t2\t3\n", content.Table},
		{"", "a,b\n1,2,3\n1,2\n1\n", content.Text},
		{"", "ok  \ta/b\t0.011s\nok  \ta/c\t0.012s\n?   \ta/d\t[no test files]\n", content.Text},
		{"", "\ta/b\t\tcoverage: 0.0% of statements\nok  \ta/c\t0.1s\tcoverage: 1% of statements\n" +
			"ok  \ta/d\t0.1s\tcoverage: 2% of statements\n", content.Text},
		{"", "FAIL\ta/b\t0.011s\nok  \ta/c\t(cached)\n", content.Text},
		{"", "PASS,test_a,0.1\nFAIL,test_b,0.1\nSKIP,test_c,0.0\n", content.Text},
		{"results.tsv", "ok\ta\nok\tb\n", content.Table},
		{"", "result\ttest\nok\ta\nfail\tb\n", content.Table},
		{"", "pass\tfail\n10\t2\n", content.Table},
		{"x.csv", "Dear Sir, dear Madam\nthis is a letter, not a table, and that\nfor a reason\n", content.Text},
		{"x.csv", "Report of sales\n1,2,3\n4,5,6\n", content.Text}, // the first line is no header
		{"x.csv", "\"a\"\n\"b\"\n", content.Table},
		{"", "Dear John,\nyours sincerely,\n", content.Text},
		{"", "It was late, and cold.\nShe ran, and fell.\nThey went home, too.\n", content.Text},
		{"", "one, two, three\n", content.Text},
		{"", "f(a, b),\ng(c, d),\nh(e, f),\n", content.Text},
		{"", "x := f(a,b)\ny := f(c,d)\nz := f(e,f)\n", content.Text},
		{"", "# Title\n\nText with `code` and a [link](http://x).\n\n- one\n- two\n", content.Markdown},
		{"", "Title\n=====\n\nSome **bold** text.\n", content.Markdown},
		{"", "# Steps\n\n```sh\nmake\n```\n", content.Markdown},
		{"notes.md", "just a line\n", content.Markdown},
		{"", "# a comment\nname: x\nlist:\n- one\n- two\n", content.Text},
		{"x.py", "# Title\n\nprint('`x` [a](b)')\n", content.Text},
		{"", "#!/bin/sh\n# do it\n\nmake all\n", content.Text},
		{"", "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", content.Diff},
		{"", "--- a.txt\t2026-11-20\n+++ b.txt\t2026-11-20\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n", content.Diff},
		{"", "commit 0123456789abcdef\nAuthor: A <a@b>\nDate:   now\n\n    msg\n\ndiff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", content.Diff},
		{"", merge, content.Diff},
		{"", "diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n", content.Diff},
		{"", "Here is a diff:\n\n```diff\n--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b\n```\n", content.Text},
		{"", "--- \ntitle: x\n+++\n", content.Text},
		{"x.py", "import logging\n2026\nerror: x\nwarn: y\n", content.Text},
		{"messages.yaml", "error: something broke\nwarning: be careful\ninfo: all is well\n", content.Text},
		{"Makefile", "debug: build\n\t./x -v\ninfo: build\n\t./x\n", content.Text},
		{"levels.toml", "[info]\n[warn]\n[error]\n", content.Text},
		{"a.css", ".a,.b\n.c,.d\n.e,.f\n", content.Text},
		{"seed.sql", "insert into t values\n(1,2,3),\n(4,5,6),\n(7,8,9),\n", content.Text},
		{"page.html", "<p>2026-11-20 10:00:00 ERROR x</p>\n2026-11-20 10:00:01 ERROR y\n2026-11-20 10:00:02 ERROR y\n", content.Text},
		{"times_test.go", "2026-11-20 10:00:00 ERROR x\n2026-11-20 10:00:01 ERROR y\n", content.Text},
		{"T.java", "\tat a.B.c(B.java:1)\n2026-11-20 10:00:01 ERROR y\n2026-11-20 10:00:01 ERROR y\n", content.Text},
		{"app.log", "2026-11-20 10:00:00 ERROR x\n2026-11-20 10:00:01 ERROR y\n", content.Log},
		{"data.js", `[{"a":1}]`, content.JSON},
		{"", "==> a.go <==\n2026-11-20 10:00:00 ERROR x\n2026-11-20 10:00:01 ERROR y\n", content.Text},
		{"", "==> a.log <==\n2026-11-20 10:00:00 ERROR x\n2026-11-20 10:00:01 ERROR y\n", content.Log},
		{"", "# one\n\nimport os\n\n# two\n\ndef f():\n    return `x`\n\n# three\n\nclass A(B):\n    pass\n", content.Text},
		{"", "a\x00b", content.Binary},
		{"", "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03", content.Binary},
		{"", "hello\nworld\n", content.Text},
		{"", string(utf16Bytes("[\"a\", {\"b\": 1}]", false)), content.JSON},
		{"", "\xef\xbb\xbf{\"a\":1}", content.JSON},
	} {
		expect.Equal(t, Sniff([]byte(tt.text), true, tt.name), tt.want, "%s %q", tt.name, clipped(tt.text))
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
