package write_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// TestRemovedTreeIsListed removes a tree, and finds all that was in it in the answer, or kept whole beside a receipt.
func TestRemovedTreeIsListed(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	c.file("tree/a/file", "x")
	expect.Must(t, os.Symlink("a", filepath.Join(c.dir, "tree/link")))
	answer, _ := c.call("remove", args{"path": "tree", "tree": true})
	expect.Contains(t, answer, "removed, 4 files and directories", "\ntree/\ntree/a/\ntree/a/file\ntree/link\n")
	for i := range 300 {
		c.file("tree/"+strconv.Itoa(i), "x")
	}
	answer, _ = c.call("remove", args{"path": "tree", "tree": true})
	expect.Contains(t, answer, "LARGE OUTPUT", "301 files and directories", "undo: obs:")
}

// TestNothingWrittenToARemovedTreeIsLost has another program replace a file deep in a tree, by renames, while the tree is
// removed: the tree stays, or undo puts back the last content that was written.
func TestNothingWrittenToARemovedTreeIsLost(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	undo := regexp.MustCompile(`undo: (obs:\w+)`)
	removed, refused := 0, 0
	for round := range 30 {
		c.file("tree/a/b/file", "0")
		for i := range 40 {
			c.file("tree/more/"+strconv.Itoa(i), strings.Repeat("x", 2000))
		}
		last := make(chan string)
		go func() {
			path, written := filepath.Join(c.dir, "tree/a/b/file"), "0"
			for n := 1; n < round%2*(20+10*round); n++ { // nothing in every second round
				text := strconv.Itoa(n)
				if os.WriteFile(path+".new", []byte(text), 0o600) != nil || os.Rename(path+".new", path) != nil {
					break // the tree is gone
				}
				written = text
			}
			last <- written
		}()
		text, failed := c.call("remove", args{"path": "tree", "tree": true})
		written := <-last
		if failed {
			refused++
			expect.Contains(t, c.text("tree/a/b/file"), written)
			continue
		}
		removed++
		answer, failed := c.call("write", args{"undo": undo.FindStringSubmatch(text)[1]})
		expect.Equal(t, failed, false, answer)
		if got := c.text("tree/a/b/file"); got != written {
			t.Errorf("round %d: %s was put back, and %s was written last", round, got, written)
		}
	}
	if removed < 15 {
		t.Errorf("%d trees were removed, %d removals refused", removed, refused)
	}
}

// TestRestOfATree removes a tree of which a part cannot be removed: the rest keeps its name, and once it is out of the
// way undo puts back all.
func TestRestOfATree(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	c.file("tree/a", "a\n")
	c.file("tree/z", "z\n")
	fixed := c.file("tree/sub/fixed", "x\n")
	fix := func(name string) *exec.Cmd { return exec.Command("chattr", "+i", name) }
	loose := func(name string) *exec.Cmd { return exec.Command("chattr", "-i", name) }
	if os.Geteuid() != 0 { // a directory that is read-only binds all others
		fix = func(name string) *exec.Cmd { return exec.Command("chmod", "a-w", filepath.Dir(name)) }
		loose = func(name string) *exec.Cmd { return exec.Command("chmod", "u+w", filepath.Dir(name)) }
	}
	if err := fix(fixed).Run(); err != nil {
		t.Skipf("no file can be made immutable here: %v", err)
	}
	loosen := func() {
		for _, top := range []string{"tree", "rest"} {
			_ = loose(filepath.Join(c.dir, top, "sub/fixed")).Run()
		}
	}
	t.Cleanup(loosen)
	answer, failed := c.call("remove", args{"path": "tree", "tree": true})
	expect.Equal(t, failed, true, answer)
	expect.Contains(t, answer, "removed in part", "the rest stays: move it away, and write with undo=obs:")
	expect.Equal(t, c.text("tree/sub/fixed"), "x\n")
	expect.Equal(t, len(expect.Value(os.ReadDir(c.dir))(t)), 1, "names below the root")
	answer2, failed := c.call("move", args{"from": "tree", "to": "rest"})
	expect.Equal(t, failed, false, answer2)
	answer2, failed = c.call("write", args{"undo": regexp.MustCompile(`obs:\w+`).FindString(answer)})
	expect.Equal(t, failed, false, answer2)
	expect.Equal(t, c.text("tree/a")+c.text("tree/z")+c.text("tree/sub/fixed"), "a\nz\nx\n")
}
