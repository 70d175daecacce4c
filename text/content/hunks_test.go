package content

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/peers/peer"
)

// TestHunksAgreeWithGit counts the lines of hunks that git writes, also of a merge.
func TestHunksAgreeWithGit(t *testing.T) {
	git := peer.Find(t, "git")
	dir := t.TempDir()
	run := func(args ...string) string {
		c := exec.CommandContext(
			t.Context(), git,
			append([]string{"-C", dir, "-c", "user.name=n", "-c", "user.email=e", "-c", "core.hooksPath=/dev/null"}, args...)...,
		)
		c.Env = []string{"HOME=" + dir, "PATH=" + "/usr/bin:/bin", "GIT_CONFIG_NOSYSTEM=1"}
		out, err := c.CombinedOutput()
		if err != nil && args[0] != "merge" {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	write := func(change func(i int) string) {
		var b strings.Builder
		for i := range 300 {
			b.WriteString(change(i))
		}
		expect.Must(t, os.WriteFile(dir+"/f", []byte(b.String()), 0o600))
	}
	plain := func(i int) string { return fmt.Sprintf("line %d\n", i) }
	run("init", "-q", "-b", "main")
	write(plain)
	run("add", "f")
	run("commit", "-qm", "one")
	run("checkout", "-qb", "side")
	write(func(i int) string {
		if i%40 == 5 {
			return "-- side\n"
		}
		return plain(i)
	})
	run("commit", "-qam", "side")
	run("checkout", "-q", "main")
	write(func(i int) string {
		if i%40 == 5 || i%70 == 9 {
			return "++ main\n@@ -1 +1 @@\n"
		}
		return plain(i)
	})
	run("commit", "-qam", "main")
	run("merge", "-q", "side")
	for _, args := range []string{"diff", "diff main~1 main", "diff side main", "log -p"} {
		diff := run(strings.Fields(args)...)
		// In what git writes only headers begin with "@@": lines of files have a column before them.
		var h HunkLines
		open, hunks := false, 0
		for line := range strings.Lines(diff) {
			text := []byte(strings.TrimSuffix(line, "\n"))
			if open {
				open, _, _ = h.Take(text)
			}
			if header := strings.HasPrefix(line, "@@"); open && header || !open && h.Header(text) != header {
				t.Fatalf("in a hunk: %v, but git wrote %q", open, line)
			} else if header {
				open = true
				hunks++
			}
		}
		if hunks == 0 {
			t.Errorf("no hunk in %q", diff)
		}
	}
}
