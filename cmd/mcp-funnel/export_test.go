package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// TestExport writes a page under the name that an observation was given; what exists is replaced only on request.
func TestExport(t *testing.T) {
	c := newCommandLine(t)
	c.in = strings.Repeat("a line\n", 1000)
	c.run("keep", "--name", "first")
	_, out, _ := c.run("observations", "list")
	id := out[strings.Index(out, "obs:"):][:len("obs:k3v9q2m7x4ab")]
	c.expect(done, "", "", "observations", "rename", id, "second")
	_, out, _ = c.run("observations", "list")
	expect.Has(t, out, "second")
	expect.Lacks(t, out, "first")
	c.expect(failed, "", "at most 200", "observations", "rename", id, strings.Repeat("x", 201))

	file := filepath.Join(t.TempDir(), "page.html")
	c.expect(done, "", "", "export", id, "--html", file)
	page := string(expect.Value(os.ReadFile(file))(t))
	expect.Contains(t, page, "second (keep)", "a line", "</html>")
	expect.Must(t, os.WriteFile(file, []byte("mine"), 0o600))
	c.expect(failed, "", "add --force", "export", id, "--html", file)
	c.expect(failed, "", "no session", "export", "none", "--html", file, "--force")
	expect.Equal(t, string(expect.Value(os.ReadFile(file))(t)), "mine", "after a failure")
	c.expect(done, "", "", "export", id, "--html", file, "--force")
	expect.Equal(t, string(expect.Value(os.ReadFile(file))(t)), page)
}
