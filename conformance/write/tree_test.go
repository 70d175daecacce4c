package write_test

import (
	"os"
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
