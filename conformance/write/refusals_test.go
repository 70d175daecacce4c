//go:build linux

package write_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// TestMissingContent writes without content, as clients do that drop an argument which was cut off: no file becomes
// empty. Content that is given and empty is written.
func TestMissingContent(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	c.file("f", "text\n")
	for _, of := range []args{
		{"path": "new"},
		{"path": "new", "content": nil},
		{"path": "f", "append": true},
		{"path": "f", "mode": "replace", "expect": c.hash("f")},
	} {
		answer, failed := c.call("write", of)
		expect.Equal(t, failed, true, answer)
		expect.Contains(t, answer, "content is missing")
	}
	expect.Equal(t, c.text("new"), "(none)")
	expect.Equal(t, c.text("f"), "text\n")
	_, failed := c.call("write", args{"path": "f", "mode": "replace", "expect": c.hash("f"), "content": ""})
	expect.Equal(t, failed, false)
	expect.Equal(t, c.text("f"), "")
}

// TestErrorsSayWhatToDo makes calls that are refused, and finds in the error what helps, and nothing that would not.
func TestErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	w := serve(t, false, `{}`)
	w.file("f", "one\n")
	w.file("dir/g", "two\n")
	expect.Must(t, os.Symlink("f", filepath.Join(w.root, "link")))
	created := obsID.FindString(w.does("write", `{"path":"made/new","content":"x","parents":true}`))
	w.does("write", `{"undo":"`+created[len("obs:"):]+`"}`, "made/new: removed")
	for _, c := range []struct{ tool, args, want string }{
		{"write", `{"undo":"` + created + `"}`, "made/new: the directory of the file is missing"},
		{"edit", `{"path":"no/such/f","edits":[{"old":"a","new":"b"}]}`, "no/such/f: the directory of the file is missing"},
		{"write", `{"path":"new/","content":""}`, "new/: it ends in /"},
		{"move", `{"from":"f","to":"new/"}`, "new/: it ends in /"},
		{"remove", `{"path":"link"}`, "it is a link, which is not removed"},
		{"write", `{"path":"n","from":"f"}`, `obs:ID lines A-B: not "f"`},
		{"edit", `{"path":"f","expect":"abc","edits":[{"old":"one","new":"1"}]}`, "8 characters"},
		{"edit", `{"path":"f","expect":"hash 01234567","edits":[{"old":"one","new":"1"}]}`, "no hash"},
	} {
		text, failed := w.call(c.tool, c.args)
		expect.Equal(t, failed, true, text)
		expect.Lacks(t, text, "has changed")
		expect.Lacks(t, text, "name the file that it leads to")
		expect.Has(t, text, c.want)
	}
	expect.Lacks(t, w.refuses("remove", `{"path":"dir"}`, "tree=true removes it"), "0 MiB")
	moved := obsID.FindString(w.does("move", `{"from":"f","to":"h"}`))
	w.file("h", "changed\n")
	expect.Lacks(t, w.refuses("write", `{"undo":"`+moved+`"}`, "undo what came after first"), "what undoing would change")
	w.has("h", "changed\n")
	w.has("f", "-")
	w.has("new", "-")
}

// TestBoundsOfChanges makes changes over a limit: each is refused, and leaves all as it was.
func TestBoundsOfChanges(t *testing.T) {
	t.Parallel()
	w := serve(t, false, `{}`)
	const mixed, wide = "a\r\na\n", "b\n"
	w.file("mixed", strings.Repeat(mixed, 1000))
	w.file("wide", strings.Repeat(wide, 300_000))
	w.refuses("edit", `{"path":"mixed","edits":[{"old":"a","new":"b\nc","all":true}]}`, "at most 1000 places")
	w.has("mixed", strings.Repeat(mixed, 1000))
	w.refuses("edit", `{"path":"wide","edits":[{"old":"b","new":"`+strings.Repeat("x", 1000)+`","all":true}]}`,
		"the file would grow by 299700000 bytes, over 256 MiB")
	w.has("wide", strings.Repeat(wide, 300_000))
	w.refuses("write", `{"path":"d/`+strings.Repeat("d/", 100)+`f","content":"x","parents":true}`, "over 100 directories deep")
	w.has("d", "-")
	expect.Must(t, syscall.Mkfifo(filepath.Join(w.root, "pipe"), 0o600))
	w.refuses("move", `{"from":"pipe","to":"moved"}`, "not a regular file")
	w.has("moved", "-")
}

// TestReplacedLineEnds replaces a file with line ends \r\n by a text with \n: the diff does not show them.
func TestReplacedLineEnds(t *testing.T) {
	t.Parallel()
	w := serve(t, false, `{}`)
	w.file("f", "a\r\nb\r\n")
	text := w.does("read", `{"path":"f"}`)
	w.does("write", `{"path":"f","mode":"replace","expect":"`+hashIn(t, text)+`","content":"a\nc\n"}`,
		`lines of the file ended in \r\n; they end in \n now`)
	w.has("f", "a\nc\n")
}

// TestConfirmShowsNewContent asks for a new file with what it gets.
func TestConfirmShowsNewContent(t *testing.T) {
	t.Parallel()
	w := serve(t, false, canBeAsked, "--confirm")
	w.replies["elicitation/create"] = always(`{"action":"decline"}`)
	w.refuses("write", `{"path":"run.sh","content":"echo new\n"}`)
	expect.Equal(t, len(w.asked), 1)
	expect.Contains(t, w.asked[0], "write run.sh", "echo new\n")
}
