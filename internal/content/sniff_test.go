package content

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/peer"
)

func TestSniff(t *testing.T) {
	for _, tt := range []struct {
		name string // of the file
		text string
		want Kind
	}{
		{"", "", Text},
		{"", " \n", Text},
		{"", `{"a":1}`, JSON},
		{"", `[]`, JSON},
		{"", "{}", JSON},
		{"", "[\n  1,\n  2\n]\n", JSON},
		{"", `[{"a":1},{"b"`, JSON},
		{"", `["a long string that is cut`, JSON},
		{"", `"a string"`, JSON},
		{"", `[`, Text},
		{"", `{`, Text},
		{"", `{ "name": "x", "compilerOptions": { "a": 1, "b": 2, "c": [1,2,3], "d": {"e": 1} }, // comment` + "\n}", JSON},
		{"tsconfig.json", `{ "a": 1, "b": 2, }`, JSON},
		{"", "{\"a\":1}\n{\"a\":2}\n", NDJSON},
		{"", "{\"a\":1}\n{\"a\":", NDJSON},
		{"", "{\n\"a\":1\n}\n{\n\"a\":2\n}\n", NDJSON},
		{"", "[1,2]\n[3,4]\n", NDJSON},
		{"", "\"one\"\n\"two\"\n", NDJSON},
		{"", strings.Repeat("{\"level\":\"info\",\"msg\":\"x\"}\n", 20) + "panic: oops\n" + "{\"a\":1}\n", NDJSON},
		{"", "1\n2\n3\n", Text},
		{"", "true\n", Text},
		{"", "\"Well,\" she said, \"it is late.\"\nAnd it was.\n", Text},
		{"", "{\"a\":1}\nDone in 3s.\nSee the log for more.\n", Text},
		{"", "[2026-11-20 10:00:00] INFO start\n[2026-11-20 10:00:01] ERROR stop\n", Log},
		{"", "[2026-11-20T10:00:00Z] start\n[2026-11-20T10:00:01Z] stop\n", Log},
		{"", "[INFO] start\n[ERROR] stop\n", Log},
		{"", "[12:00:01] start\n[12:00:02] stop\n", Log},
		{"", "2026-11-20T10:00:00.123Z INFO start server\n", Log},
		{"", "2026-11-20 10:00:00,123 INFO root: started\n2026-11-20 10:00:01,456 ERROR root: failed\nTraceback (most recent call last):\n  File \"x.py\", line 3, in <module>\n    f()\nValueError: no\n", Log},
		{"", "Nov 20 10:00:00 host sshd[123]: Accepted\nNov 20 10:00:01 host sshd[123]: Closed\n", Log},
		{"", "2026/11/20 10:00:00 listening\n2026/11/20 10:00:01 closed\n", Log},
		{"", "I1120 10:00:00.000000       1 main.go:12] start\nE1120 10:00:00.000000       1 main.go:13] stop\n", Log},
		{"", "[    0.000000] Linux version 6.18\n[    0.000123] Command line: x\n", Log},
		{"", "127.0.0.1 - - [20/Nov/2026:10:00:00 +0000] \"GET / HTTP/1.1\" 200 12\n127.0.0.1 - - [20/Nov/2026:10:00:01 +0000] \"GET /x HTTP/1.1\" 404 1\n", Log},
		{"", "time=2026-11-20T10:00:00Z level=INFO msg=start\ntime=2026-11-20T10:00:00Z level=WARN msg=stop\n", Log},
		{"", "INFO:root:one\nWARNING:root:two\n", Log},
		{"", "2026-11-20T10:00:00Z\tINFO\tmain.go:1\tstart\n2026-11-20T10:00:01Z\tWARN\tmain.go:2\tstop\n", Log},
		{"", "web_1  | 2026-11-20 10:00:00 start\ndb_1   | 2026-11-20 10:00:00 start\n", Log},
		{"", "\x1b[31m", Text},
		{"", "\x1b[32mINFO\x1b[0m one\n\x1b[31mERROR\x1b[0m two\n", Log},
		{"", "main.go:12: error: no such thing\nmain.go:13: warning: unused\n", Text},
		{"", "src/a.go:1:package a\nsrc/a.go:3:import (\nsrc/b.go:1:package b\n", Text},
		{"", "a.txt:1:2026-11-20 10:00:00 ERROR x\na.txt:2:2026-11-20 10:00:01 INFO y\n", Text},
		{"", "a,b\n1,2\n3,4\n", Table},
		{"", "id,name,comment\n1,ann,\"a, b\"\n2,bob,\"c\nd\"\n", Table},
		{"", "id;name\n1;ann\n2;bob\n", Table},
		{"", "id\tname\n1\tann\n", Table},
		{"", "time,value\n2026-11-20 10:00:00,5\n2026-11-20 10:00:01,6\n", Table},
		{"", "time\tvalue\n2026-11-20 10:00:00\t5\n2026-11-20 10:00:01\t6\n", Table},
		{"x.csv", "a,b\n", Table},
		{"x.csv", "\"a\"\n\"b\"\n", Table},
		{"", "Dear John,\nyours sincerely,\n", Text},
		{"", "It was late, and cold.\nShe ran, and fell.\nThey went home, too.\n", Text},
		{"", "one, two, three\n", Text},
		{"", "f(a, b),\ng(c, d),\nh(e, f),\n", Text},
		{"", "x := f(a,b)\ny := f(c,d)\nz := f(e,f)\n", Text},
		{"", "# Title\n\nText with `code` and a [link](http://x).\n\n- one\n- two\n", Markdown},
		{"", "Title\n=====\n\nSome **bold** text.\n", Markdown},
		{"", "# Steps\n\n```sh\nmake\n```\n", Markdown},
		{"notes.md", "just a line\n", Markdown},
		{"", "# a comment\nname: x\nlist:\n- one\n- two\n", Text},
		{"x.py", "# Title\n\nprint('`x` [a](b)')\n", Text},
		{"", "#!/bin/sh\n# do it\n\nmake all\n", Text},
		{"", "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", Diff},
		{"", "--- a.txt\t2026-11-20\n+++ b.txt\t2026-11-20\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n", Diff},
		{"", "commit 0123456789abcdef\nAuthor: A <a@b>\nDate:   now\n\n    msg\n\ndiff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", Diff},
		{"", merge, Diff},
		{"", "diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n", Diff},
		{"", "Here is a diff:\n\n```diff\n--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b\n```\n", Text},
		{"", "--- \ntitle: x\n+++\n", Text},
		{"x.py", "import logging\n2026\nerror: x\nwarn: y\n", Text},
		{"messages.yaml", "error: something broke\nwarning: be careful\ninfo: all is well\n", Text},
		{"Makefile", "debug: build\n\t./x -v\ninfo: build\n\t./x\n", Text},
		{"levels.toml", "[info]\n[warn]\n[error]\n", Text},
		{"a.css", ".a,.b\n.c,.d\n.e,.f\n", Text},
		{"seed.sql", "insert into t values\n(1,2,3),\n(4,5,6),\n(7,8,9),\n", Text},
		{"page.html", "<p>2026-11-20 10:00:00 ERROR x</p>\n2026-11-20 10:00:01 ERROR y\n2026-11-20 10:00:02 ERROR y\n", Text},
		{"times_test.go", "2026-11-20 10:00:00 ERROR x\n2026-11-20 10:00:01 ERROR y\n", Text},
		{"T.java", "\tat a.B.c(B.java:1)\n2026-11-20 10:00:01 ERROR y\n2026-11-20 10:00:01 ERROR y\n", Text},
		{"app.log", "2026-11-20 10:00:00 ERROR x\n2026-11-20 10:00:01 ERROR y\n", Log},
		{"data.js", `[{"a":1}]`, JSON},
		{"", "==> a.go <==\n2026-11-20 10:00:00 ERROR x\n2026-11-20 10:00:01 ERROR y\n", Text},
		{"", "==> a.log <==\n2026-11-20 10:00:00 ERROR x\n2026-11-20 10:00:01 ERROR y\n", Log},
		{"", "# one\n\nimport os\n\n# two\n\ndef f():\n    return `x`\n\n# three\n\nclass A(B):\n    pass\n", Text},
		{"", "a\x00b", Binary},
		{"", "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03", Binary},
		{"", "hello\nworld\n", Text},
		{"", string(utf16Bytes("[\"a\", {\"b\": 1}]", false)), JSON},
		{"", "\xef\xbb\xbf{\"a\":1}", JSON},
	} {
		if got := Sniff([]byte(tt.text), true, tt.name); got != tt.want {
			t.Errorf("%s %q is %s, want %s", tt.name, clipped(tt.text), got, tt.want)
		}
	}
}

func TestIsSource(t *testing.T) {
	for _, name := range []string{"a.go", "A.PY", "x/y/Makefile", "Dockerfile", "go.mod", ".gitignore", ".env", "a.b.yml", "a.test.tsx"} {
		if !IsSource(name) {
			t.Errorf("%s is no source", name)
		}
	}
	for _, name := range []string{"", "a", "a.log", "go", "a.txt", "nohup.out", "a.md", "a.json", "a.csv", "syslog.1", "x.go/y", "a.go.orig"} {
		if IsSource(name) {
			t.Errorf("%s is source", name)
		}
	}
}

func TestFileHeader(t *testing.T) {
	for line, want := range map[string]string{
		"==> a.go <==": "a.go", "==> a b/c.py <==": "a b/c.py", "==> x.png <== not text: image/png, 3 bytes; read it alone": "x.png",
		"==>  <==": "", "==> a.go <=": "", "==> a.go": "", " ==> a.go <==": "", "==> a.go <==>": "", "== a.go ==": "", "": "",
	} {
		if got, ok := FileHeader([]byte(line)); got != want || ok != (want != "") {
			t.Errorf("%q names %q, want %q", line, got, want)
		}
	}
}

func TestSniffCorpus(t *testing.T) {
	for _, tt := range []struct {
		name string
		text []byte
		want Kind
	}{
		{"war and peace", corpus.WarAndPeace(), Text},
		{"1 MB", corpus.JSON1MB(), JSON},
		{"5 MB", corpus.JSON5MB(), JSON},
		{"1 MB on a line", corpus.JSON1MBMinified(), JSON},
		{"log", corpus.PanicLog(), Log},
		{"csv", corpus.CSV20k(), Table},
		{"rare key", corpus.RareKey9k(), JSON},
		{"cjk", corpus.CJK(), Text},
		{"random", corpus.Random(100_000), Binary},
		{"diff", corpus.WarAndPeaceDiff(), Diff},
	} {
		got := Sniff(tt.text, len(tt.text) <= SniffSize, "")
		if tt.name == "rare key" && got == NDJSON {
			continue
		}
		if got != tt.want {
			t.Errorf("%s is %s, want %s", tt.name, got, tt.want)
		}
	}
}

// Go's own source is code: neither log nor table nor diff nor JSON, whatever its lines look like. Without its name three files
// of a thousand may be taken for something else (documentation in comments is Markdown, nearly); with it, none.
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
			whole := len(text) <= SniffSize
			if !whole {
				text = text[:SniffSize]
			}
			if k := Sniff(text, whole, ""); k != Text && k != Binary {
				nameless++
				t.Logf("%s without its name is %s", f, k)
			}
			if k := Sniff(text, whole, filepath.Base(f)); k != Text && k != Binary {
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
		if got := Media([]byte(tt.text), ""); got != tt.want {
			t.Errorf("%q is %s, want %s", tt.text, got, tt.want)
		}
	}
}

func TestExt(t *testing.T) {
	got := ""
	for _, k := range []Kind{JSON, NDJSON, Diff, Log, Table, Markdown, Text, Binary, "other"} {
		got += k.Ext() + " "
	}
	if got != "json ndjson diff log csv md txt bin txt " {
		t.Error(got)
	}
}

func BenchmarkSniff(b *testing.B) {
	for name, text := range map[string][]byte{"json": corpus.JSON1MB(), "text": corpus.WarAndPeace(), "log": corpus.PanicLog(), "csv": corpus.CSV20k()} {
		b.Run(fmt.Sprint(name), func(b *testing.B) {
			p := text[:SniffSize]
			b.SetBytes(int64(len(p)))
			b.ReportAllocs()
			for b.Loop() {
				Sniff(p, false, "")
			}
		})
	}
}
