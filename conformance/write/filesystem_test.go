package write_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/write"
)

// filesystemCase is a call beside what server-filesystem does with the same files.
type filesystemCase struct {
	name string
	have map[string]string // files before; a name with / at its end is a directory, a text "-> x" makes a link to x
	tool string
	args args
	want map[string]string // files afterwards, among others
	says string            // is in the answer
	// ours is what is done here in another way than there; "" if it is the same. "better" or "worse" is its first word.
	ours string
}

// one returns a list with one edit.
func one(old, by string) []args { return []args{{"old": old, "new": by}} }

func text(content string) map[string]string { return map[string]string{"f": content} }

func editCase(name, before string, edits []args, after, says, ours string) filesystemCase {
	return filesystemCase{name, text(before), "edit", args{"path": "f", "edits": edits}, text(after), says, ours}
}

const (
	threeLines = "line1\nline2\nline3\n"
	greet      = "function greet() {\n  console.log('hi');\n  return 1;\n}\n"
	block      = "    if (a) {\n        b();\n    }\n"
)

// ownCases has by value what the tests of server-filesystem try of edits, writes and moves.
func ownCases() []filesystemCase {
	return []filesystemCase{
		editCase("replaces a text", threeLines, one("line2", "modified line2"), "line1\nmodified line2\nline3\n",
			"+modified line2", ""),
		editCase("a diff of texts without a last line end", "line1\nline2\nline3", one("line2", "modified line2"),
			"line1\nmodified line2\nline3", "-line2\n+modified line2", ""),
		editCase("dollar signs", threeLines, one("line2", "price=$$; match=$&; before=$`; after=$'"),
			"line1\nprice=$$; match=$&; before=$`; after=$'\nline3\n", "", ""),
		editCase("dollar and digit", greet, one("return 1;", "return '$&$1$$';"),
			strings.Replace(greet, "return 1;", "return '$&$1$$';", 1), "", ""),
		{"dry run", text(threeLines), "edit", args{"path": "f", "edits": one("line2", "modified line2"), "dry_run": true},
			text(threeLines), "+modified line2", ""},
		editCase("two edits", threeLines, append(one("line1", "first line"), one("line3", "third line")...),
			"first line\nline2\nthird line\n", "2 places replaced", ""),
		editCase("the second edit sees the first", greet, append(one("return 1;", "return 2;"), one("return 2;",
			"return 3;")...),
			strings.Replace(greet, "return 1;", "return 3;", 1), "", ""),
		editCase("a part of an indented line", "  line1\n    line2\n  line3\n", one("line2", "modified line2"),
			"  line1\n    modified line2\n  line3\n", "", ""),
		editCase("no match", threeLines, one("nonexistent line", "replacement"), threeLines, "old is not in the file", ""),
		editCase("no match in a short line", greet, one("return 9;", "x"), greet, "nearest are lines 3-3", ""),
		editCase("no match at all", greet, one("import q", "x"), greet, "read or grep shows what is there", ""),
		editCase("indented lines", "function test() {\n  console.log(\"hello\");\n  return true;\n}",
			one("  console.log(\"hello\");\n  return true;",
				"  console.log(\"world\");\n  console.log(\"test\");\n  return false;"),
			"function test() {\n  console.log(\"world\");\n  console.log(\"test\");\n  return false;\n}", "", ""),
		editCase("one line by two", "    if (condition) {\n        doSomething();\n    }",
			one("doSomething();", "doSomethingElse();\n        doAnotherThing();"),
			"    if (condition) {\n        doSomethingElse();\n        doAnotherThing();\n    }", "", ""),
		editCase("CRLF", "line1\r\nline2\r\nline3\r\n", one("line2", "modified line2"),
			"line1\r\nmodified line2\r\nline3\r\n", "",
			"better: 2026.8.31 writes \\n in every line"),
		editCase("CRLF, with line ends of both kinds in the edits", "a\r\nb\r\n", append(one("a\r\n", "c\r\n"), one("b\n",
			"d\ne\n")...),
			"c\r\nd\r\ne\r\n", "", ""),
		editCase("LF, new has CRLF", "a\nb\n", one("a", "c\r\nd"), "c\nd\nb\n", "", ""),
		editCase("an empty file", "", one("old", "new"), "", "old is not in the file", ""),
		editCase("old and new are the same", threeLines, one("line2", "line2"), threeLines, "old and new are the same text",
			"better: an error, in place of a diff of nothing"),
		editCase("backticks", "a\n", one("a", "````"), "````\n", "+````", ""),
		editCase("several matches", "x\nx\n", one("x", "y"), "x\nx\n", "old is in the file 2 times, at lines 1, 2",
			"better: the first one is no guess"),
		editCase("other indentation", greet, one("console.log('hi');\nreturn 1;", "console.log('bye');\nreturn 0;"), greet,
			"differ in white space", "worse: a second call, but no indentation is guessed"),
		editCase("other depth of indentation", block, one("if (a) {\n  b();\n}", "if (a) {\n      c();\n  }"), block,
			"differ in white space", "worse: a second call"),
		editCase("other width of indentation", block, one("if (a) {\n  b();\n}", "if (a) {\n  c();\n}"), block,
			"differ in white space", "worse: a second call"),
		editCase("less indentation", "  x\n      y\n", one("x\n    y", "x\n z"), "  x\n      y\n", "differ in white space",
			"worse: a second call"),
		editCase("white space at an end of old", "  a\nb\n", one("a ", "a\n  added"), "  a\nb\n", "differ in white space",
			"worse: a second call"),
		editCase("a blank line is added", "  a\n  b\n", one("a\nb", "a\n\nb"), "  a\n  b\n", "differ in white space",
			"worse: a second call"),
		editCase("a line differs by more", greet, one("console.log('hi');\nreturn 2;", "x"), greet, "nearest are lines 2-3",
			""),
		{"creates a file", nil, "write", args{"path": "new.txt", "content": "hello"}, map[string]string{"new.txt": "hello"},
			"", ""},
		{"overwrites a file", text("old"), "write", args{"path": "f", "content": "new"}, text("old"),
			"mode=replace with expect=",
			"better: what it would replace must be named by its hash"},
		{"shorter content", text("a much longer original"), "write",
			args{"path": "f", "content": "short", "mode": "replace", "expect": "HASH f"}, text("short"), "", ""},
		{"writes through a link", map[string]string{"f": "before", "l": "-> f"}, "write",
			args{"path": "l", "content": "after", "mode": "replace", "expect": "0123abcd"}, map[string]string{"f": "before",
				"l": "-> f"},
			"it is a link", "worse: a second call, with the name of the file"},
		{"overwrites a directory", map[string]string{"d/": ""}, "write", args{"path": "d", "content": "x"}, nil,
			"directory", ""},
		{"writes where no directory is", nil, "write", args{"path": "no/such/f", "content": "x"},
			map[string]string{"no/": "(none)"},
			"parents=true makes it", ""},
		{"makes directories", nil, "write", args{"path": "a/b/c/f", "content": "x", "parents": true},
			map[string]string{"a/b/c/f": "x"}, "", "better: in the same call"},
		{"a directory that is a file", map[string]string{"file": ""}, "write", args{"path": "file/x", "content": "x",
			"parents": true},
			map[string]string{"file": ""}, "", ""},
		{"moves a file", text("hello world"), "move", args{"from": "f", "to": "moved.txt"},
			map[string]string{"f": "(none)", "moved.txt": "hello world"}, "moved from f", ""},
		{"moves over a file", map[string]string{"a": "source", "b": "destination"}, "move", args{"from": "a", "to": "b"},
			map[string]string{"a": "source", "b": "destination"}, "it exists", ""},
		{"moves over a directory", map[string]string{"f": "source", "d/": ""}, "move", args{"from": "f", "to": "d"},
			text("source"), "directory", ""},
		{"moves a directory", map[string]string{"d/nested/f": "nested"}, "move", args{"from": "d", "to": "e"},
			map[string]string{"d/": "(none)", "e/nested/f": "nested"}, "", ""},
		{"moves a directory over another one", map[string]string{"d/f": "source", "e/g": "existing"}, "move",
			args{"from": "d", "to": "e"},
			map[string]string{"d/f": "source", "e/g": "existing", "e/f": "(none)"}, "it exists", ""},
		{"moves what is not there", nil, "move", args{"from": "missing", "to": "b"}, map[string]string{"b": "(none)"},
			"no such file", ""},
		{"moves to the outside", text("a"), "move", args{"from": "f", "to": "/outside-of-all/f"}, text("a"),
			"outside the root", ""},
		{"a path outside", nil, "write", args{"path": "/etc/passwd-new", "content": "x"}, nil, "outside the root", ""},
		{"a link to the outside", map[string]string{"l": "-> /etc/hostname"}, "edit", args{"path": "l", "edits": one("a",
			"b")}, nil,
			"it is a link", ""},
		{"a directory that is a link to the outside", map[string]string{"l": "-> /tmp"}, "write",
			args{"path": "l/a/b", "content": "x", "parents": true}, nil, "outside the root", ""},
		{"a path of Windows", nil, "write", args{"path": `C:\Users\me\notes\file.md`, "content": "x"},
			map[string]string{`C:\Users\me\notes\file.md`: "(none)"}, "it is a path of Windows", ""},
		{"a name in decomposed Unicode", map[string]string{"de\u0301marche/re\u0301sume\u0301.txt": "content"}, "edit",
			args{"path": "d\u00e9marche/r\u00e9sum\u00e9.txt", "edits": one("content", "more")},
			map[string]string{"de\u0301marche/re\u0301sume\u0301.txt": "more"}, "", ""},
		{"a new file in such a directory", map[string]string{"de\u0301marche/": ""}, "write",
			args{"path": "d\u00e9marche/new.txt", "content": "x"}, map[string]string{"de\u0301marche/new.txt": "x"}, "", ""},
	}
}

// trackerCases has faults that users reported of server-filesystem, by the number of the issue or pull request.
func trackerCases() []filesystemCase {
	return []filesystemCase{
		editCase("4157: $ patterns in new", "price: PLACEHOLDER\n", one("PLACEHOLDER", "$$100 USD $& $1 $`"),
			"price: $$100 USD $& $1 $`\n",
			"", ""),
		editCase("4991: line ends of a CRLF file", "a\r\nb\r\nc\r\n", one("b\nc", "B\nC\nD"), "a\r\nB\r\nC\r\nD\r\n",
			"-b\n-c\n+B", ""),
		editCase("4990: a replacement's indentation", "\tif a {\n\t\tb()\n\t}\n", one("\tif a {\n\t\tb()",
			"\tif a && c {\n\t\tb()\n\t\td()"),
			"\tif a && c {\n\t\tb()\n\t\td()\n\t}\n", "", ""),
		editCase("4823: lines without indentation", "function foo() {\n    line1\n    line2\n}\n", one("line1\nline2",
			"lineA\nlineB"),
			"function foo() {\n    line1\n    line2\n}\n", "lines 2-3, which differ in white space", ""),
		editCase("2034: no match says what to do", "func a() {\n\treturn 1\n}\n", one("func a() {\n    return 1\n}", "x"),
			"func a() {\n\treturn 1\n}\n", "+\treturn 1", ""),
		editCase("511, 589: no fuzzy match", "the colour of it\n", one("the color of it", "x"), "the colour of it\n",
			"+the colour of it", ""),
		editCase("183: a small part of a large file", strings.Repeat("row\n", 9000)+"last\n", one("last", "end"),
			strings.Repeat("row\n", 9000)+"end\n", "@@ -8998,4 +8998,4 @@", ""),
		editCase("several edits, one without a match: none is made", threeLines, append(one("line1", "x"), one("nope nope",
			"y")...),
			threeLines, "edits[1]", ""),
		editCase("2098: umlauts", "Backer\n", one("Backer", "Bäcker für €"), "Bäcker für €\n", "+Bäcker für €", ""),
		editCase("2098: umlauts in a file of windows-1252", "Gr\xf6\xdfe \xfcber alles, sch\xf6ne Gr\xfc\xdfe\n",
			one("alles", "Öl €"),
			"Gr\xf6\xdfe \xfcber \xd6l \x80, sch\xf6ne Gr\xfc\xdfe\n", "", ""),
		{"4628: a move over a file", map[string]string{"a": "1", "b": "2"}, "move", args{"from": "a", "to": "b"},
			map[string]string{"a": "1", "b": "2"}, "it exists, with 1 bytes: replace=", ""},
		{"4531: a move over a link", map[string]string{"a": "1", "b": "-> nowhere"}, "move", args{"from": "a", "to": "b"},
			map[string]string{"a": "1", "b": "-> nowhere"}, "link", ""},
		{"4629: missing directories", nil, "write", args{"path": "_diag/nested/deep/f", "content": "x", "parents": true},
			map[string]string{"_diag/nested/deep/f": "x"}, "created", ""},
		{"711: nested directories of a move", text("x"), "move", args{"from": "f", "to": "a/b/f", "parents": true},
			map[string]string{"a/b/f": "x", "f": "(none)"}, "", ""},
		{"965: meant to append", text("old\n"), "write", args{"path": "f", "content": "new\n"}, text("old\n"),
			"append=true adds to it", ""},
		{"1208, 2807: append", text("old"), "write", args{"path": "f", "content": "new\n", "append": true},
			text("old\nnew\n"), "+new", ""},
		{"2093: append to no file", nil, "write", args{"path": "f", "content": "new\n", "append": true}, text("new\n"),
			"created", ""},
		{"1581: copy", text("x"), "move", args{"from": "f", "to": "g", "copy": true}, map[string]string{"f": "x", "g": "x"},
			"copied", ""},
		{"4138: the answer has the hash of what was written", nil, "write", args{"path": "f", "content": "hello"},
			text("hello"),
			"5 bytes; hash 2cf24dba", ""},
		{"remove: there was no tool for it", text("x"), "remove", args{"path": "f"}, text("(none)"), "removed, 1 bytes", ""},
		{"edits as a quoted list", text("a\n"), "edit", args{"path": "f", "edits": `[{"old": "a", "new": "b"}]`},
			text("b\n"), "+b", ""},
	}
}

// TestServerFilesystem makes each call that the tests of server-filesystem make, and those that users reported of it.
func TestServerFilesystem(t *testing.T) {
	t.Parallel()
	for _, one := range append(ownCases(), trackerCases()...) {
		t.Run(one.name, func(t *testing.T) {
			t.Parallel()
			c := newCaller(t)
			for name, content := range one.have {
				c.put(name, content)
			}
			if name, ok := strings.CutPrefix(one.expected(), "HASH "); ok {
				one.args["expect"] = c.hash(name)
			}
			answer, failed := c.call(one.tool, one.args)
			expect.Has(t, answer, one.says)
			for name, want := range one.want {
				expect.Equal(t, c.got(name), want, name)
			}
			changed := false
			for name, content := range one.have {
				changed = changed || !strings.HasSuffix(name, "/") && c.got(name) != content
			}
			if failed && changed {
				t.Errorf("the call failed, and files were changed: %s", answer)
			}
			if entries := expect.Value(filepath.Glob(filepath.Join(c.dir, ".mcp-funnel-*")))(t); len(entries) > 0 {
				t.Errorf("left: %q", entries)
			}
		})
	}
}

// expected returns the argument expect.
func (f filesystemCase) expected() string {
	hash, _ := f.args["expect"].(string)
	return hash
}

// put makes a file, a directory or a link.
func (c *caller) put(name, content string) {
	c.t.Helper()
	path := filepath.Join(c.dir, name)
	switch to, link := strings.CutPrefix(content, "-> "); {
	case strings.HasSuffix(name, "/"):
		expect.Must(c.t, os.MkdirAll(path, 0o755))
	case link:
		expect.Must(c.t, os.Symlink(to, path))
	default:
		c.file(name, content)
	}
}

// got returns what there is: the text of a file, "-> " and the end of a link, "" for a directory, "(none)" for nothing.
func (c *caller) got(name string) string {
	path := filepath.Join(c.dir, name)
	at, err := os.Lstat(path)
	switch {
	case err != nil:
		return "(none)"
	case at.IsDir():
		return ""
	case at.Mode()&fs.ModeSymlink != 0:
		to, _ := os.Readlink(path) // it is a link
		return "-> " + to
	}
	return c.text(name)
}

// hash returns the hash of a file, as the error of a call shows it that would create it.
func (c *caller) hash(name string) string {
	c.t.Helper()
	answer, _ := c.call("write", args{"path": name, "content": ""})
	m := namedHash.FindStringSubmatch(answer)
	if m == nil {
		c.t.Fatalf("no hash: %s", answer)
	}
	return m[1]
}

// TestIdentityOfFiles has what server-filesystem's issues 4115 and 4512 are about: what is kept of a file, and what is
// said of that which is not.
func TestIdentityOfFiles(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	path := c.file("script.sh", "echo 1\n")
	expect.Must(t, os.Chmod(path, 0o755))
	expect.Must(t, os.Link(path, filepath.Join(c.dir, "other.sh")))
	answer, _ := c.call("edit", args{"path": "script.sh", "edits": one("1", "2")})
	expect.Has(t, answer, "it had 2 names (hard links): the other 1 keep the old content")
	expect.Equal(t, expect.Value(os.Stat(path))(t).Mode().Perm(), 0o755)
	expect.Equal(t, c.text("other.sh"), "echo 1\n")
	_, failed := c.call("write", args{"path": "script.sh", "content": "x\n", "mode": "replace",
		"expect": c.hash("script.sh")})
	expect.Equal(t, failed, false)
	expect.Equal(t, expect.Value(os.Stat(path))(t).Mode().Perm(), 0o755)
}

// TestEditsAtOnce makes many edits of one file in calls at the same time: none is lost, as they are where each call
// reads the file before another one has written it.
func TestEditsAtOnce(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	var all strings.Builder
	names := strings.Split("abcdefghijklmnopqrst", "")
	for _, name := range names {
		all.WriteString(name + "=0\n")
	}
	c.file("f", all.String())
	var wait sync.WaitGroup
	for _, name := range names {
		wait.Go(func() {
			if answer, failed := c.call("edit", args{"path": "f", "edits": one(name+"=0", name+"=1")}); failed {
				t.Error(answer)
			}
		})
	}
	wait.Wait()
	expect.Equal(t, c.text("f"), strings.ReplaceAll(all.String(), "=0", "=1"))
}

// TestReplacedEncoding replaces a file in UTF-16 by a text, which is written in UTF-8: the diff alone would not say so.
func TestReplacedEncoding(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	c.file("f", "\xff\xfea\x00\n\x00")
	of := args{"path": "f", "content": "a\nb\n", "mode": "replace", "expect": c.hash("f")}
	answer, _ := c.call("write", of)
	expect.Contains(t, answer, "the file was in utf-16le", "\n+b")
	expect.Equal(t, c.text("f"), "a\nb\n")
	of["expect"] = c.hash("f")
	answer, _ = c.call("write", of)
	expect.Contains(t, answer, "nothing differs")
	expect.Lacks(t, answer, "the file was in")
}

// TestRefusedChangesAreNotListed makes a change that is refused when its old content is kept already: what was not changed
// cannot be undone, and the last change is the one that was made.
func TestRefusedChangesAreNotListed(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	path := c.file("f", "one\n")
	changes := func() (all []string) {
		for _, o := range expect.Value(c.store.List(observations.Local, false))(t) {
			if change, ok := write.ChangeOf(&o); ok {
				all = append(all, change.Action)
			}
		}
		return all
	}
	_, failed := c.call("edit", args{"path": "f", "edits": one("one", "1")})
	expect.Equal(t, failed, false)
	c.onPut = func() { _ = os.WriteFile(path, []byte("another's\n"), 0o600) }
	answer, _ := c.call("write", args{"path": "f", "append": true, "content": "more\n"})
	expect.Contains(t, answer, "it was changed by another program")
	c.onPut = nil
	expect.Equal(t, c.text("f"), "another's\n")
	expect.Equal(t, strings.Join(changes(), " "), "edit")
}

// TestLateEncoding edits a file that is ASCII in its first 64 KiB, and in windows-1252 behind them.
func TestLateEncoding(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	text := "first\n" + strings.Repeat("a line of text\n", 10_000) + "caf\xe9\nlast\n"
	c.file("f", text)
	const why = "bytes that are not UTF-8"
	answer, _ := c.call("edit", args{"path": "f", "edits": one("last", "\u00e9")})
	expect.Contains(t, answer, why)
	answer, _ = c.call("write", args{"path": "f", "content": "\u00e9\n", "append": true})
	expect.Contains(t, answer, why)
	expect.Equal(t, c.text("f"), text)
	_, failed := c.call("edit", args{"path": "f", "edits": one("last", "end")})
	expect.Equal(t, failed, false)
	expect.Equal(t, c.text("f"), strings.Replace(text, "last", "end", 1))
}

// TestNearestOfShortLines looks for lines of two words, which share one with what is wanted.
func TestNearestOfShortLines(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	c.file("f", "alpha\nport = 80\nomega\n")
	answer, _ := c.call("edit", args{"path": "f", "edits": one("port = 8080", "port = 81")})
	expect.Contains(t, answer, "nearest are lines 2-2", "-port = 8080\n+port = 80\n")
}

// TestNearestOfLikeBlocks looks for a block of which two have equal lines: the one that shares more words is nearest.
func TestNearestOfLikeBlocks(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	c.file("f", "if err != nil {\n\treturn err\n}\nalpha\nif err := save(a); err != nil {\n\treturn wrap(err)\n}\n")
	answer, _ := c.call("edit", args{"path": "f", "edits": one("if err := save(b); err != nil {\n\treturn err\n}", "x")})
	expect.Contains(t, answer, "nearest are lines 5-7")
	answer, _ = c.call("edit", args{"path": "f", "edits": one("func (c *client) close() error", "x")})
	expect.Contains(t, answer, "no lines are like it")
}

// TestMovesBetweenFileSystems moves a file to another file system, and back by undo (issue 4720).
func TestMovesBetweenFileSystems(t *testing.T) {
	t.Parallel()
	other, err := os.MkdirTemp("/dev/shm", "moved") //nolint:usetesting // it is on another file system
	if err != nil {
		t.Skipf("there is no other file system: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(other) })
	c := newCaller(t, other)
	if err := os.Rename(c.file("probe", ""), filepath.Join(other, "probe")); err == nil {
		t.Skip("/dev/shm is in the same file system")
	}
	expect.Must(t, os.Chmod(c.file("f", "x"), 0o750))
	to := filepath.Join(other, "f")
	answer, failed := c.call("move", args{"from": filepath.Join(c.dir, "f"), "to": to})
	expect.Equal(t, failed, false, answer)
	expect.Equal(t, c.text("f"), "(none)")
	expect.Equal(t, string(expect.Value(os.ReadFile(to))(t)), "x")
	expect.Equal(t, expect.Value(os.Stat(to))(t).Mode().Perm(), 0o750)
	answer, failed = c.call("write", args{"undo": namedChange.FindString(answer)})
	expect.Equal(t, failed, false, answer)
	expect.Equal(t, c.text("f"), "x")
}

// TestUndoneMoveLeavesNoDirectories moves a file into directories that are made for it, and back by undo.
func TestUndoneMoveLeavesNoDirectories(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	c.file("f", "x")
	answer, _ := c.call("move", args{"from": "f", "to": "a/b/f", "parents": true})
	answer, failed := c.call("write", args{"undo": namedChange.FindString(answer)})
	expect.Equal(t, failed, false, answer)
	expect.Equal(t, c.text("f"), "x")
	expect.Equal(t, c.got("a"), "(none)")
}

var namedChange = regexp.MustCompile(`obs:[0-9a-z]{12}`)

// TestHints compares the annotations of the tools with what they do (issues 3196 and 3402).
func TestHints(t *testing.T) {
	t.Parallel()
	for name, tool := range newCaller(t).tools {
		hints := string(expect.Value(json.Marshal(tool.Effect))(t))
		expect.Equal(t, hints, string(expect.Value(json.Marshal(tools.Destructive))(t)), name)
	}
}

// TestLateChanges has another program replace a file after its old content was kept: the edit is refused.
func TestLateChanges(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	path, puts := c.file("f", "one\n"), 0
	c.onPut = func() {
		if puts++; puts == 2 {
			expect.Must(t, os.WriteFile(path+".new", []byte("two\n"), 0o600))
			expect.Must(t, os.Rename(path+".new", path))
		}
	}
	answer, _ := c.call("edit", args{"path": "f", "edits": one("one", "1")})
	expect.Contains(t, answer, "it was changed by another program during this call")
	expect.Equal(t, c.text("f"), "two\n")
}

// TestParentsThatAreNotUsed makes directories on the way to names that cannot be: none stays.
func TestParentsThatAreNotUsed(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	answer, failed := c.call("write", args{"path": "a/b/" + strings.Repeat("x", 300) + "/f", "content": "x", "parents": true})
	expect.Equal(t, failed, true, answer)
	expect.Equal(t, len(expect.Value(os.ReadDir(c.dir))(t)), 0)
}

// TestUndoOfAMovedDirectory moves a directory, and a file to where it was moved: undo does not take that for it.
func TestUndoOfAMovedDirectory(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	c.file("a/f", "x")
	moved, _ := c.call("move", args{"from": "a", "to": "b"})
	expect.Must(t, os.RemoveAll(filepath.Join(c.dir, "b")))
	c.file("b", "other")
	undo := args{"undo": obsID.FindString(moved)}
	answer, _ := c.call("write", undo)
	expect.Contains(t, answer, "it is no longer what was moved")
	expect.Equal(t, c.text("b"), "other")
	expect.Must(t, os.Remove(filepath.Join(c.dir, "b")))
	c.file("b/f", "y")
	c.call("write", undo)
	expect.Equal(t, c.text("a/f"), "y")
}
