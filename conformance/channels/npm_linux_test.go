package channels

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// installFiles installs packages with npm, from files and without a network, and returns what runs the program with and
// without the script of the package.
func installFiles(t *testing.T, args ...string) (dir string, script, direct func(words ...string) *exec.Cmd) {
	t.Helper()
	r := newRegistry(t)
	r.Close() // nobody answers
	dir, command := nodeHome(t, r)
	install := []string{"npm", "install", "--offline"}
	for _, p := range r.packages {
		if name := p.about["name"]; name == "mcp-funnel" || name == "mcp-funnel-linux-x64" || name == "mcp-funnel-linux-arm64" {
			install = append(install, p.file)
		}
	}
	out, err := command(append(install, args...)...).CombinedOutput()
	expect.Must(t, err, string(out))
	programs := expect.Value(filepath.Glob(filepath.Join(dir, "node_modules/mcp-funnel-linux-*/mcp-funnel")))(t)
	return dir, func(words ...string) *exec.Cmd {
			cmd := command("node", append([]string{filepath.Join(dir, "node_modules/.bin/mcp-funnel")}, words...)...)
			return cmd
		}, func(words ...string) *exec.Cmd {
			cmd := command("node", words...)
			cmd.Path, cmd.Args = programs[0], append([]string{"mcp-funnel"}, words...)
			return cmd
		}
}

// end is how a command ended, as a shell tells it.
func end(cmd *exec.Cmd) int {
	_ = cmd.Wait()
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
		return 128 + int(status.Signal())
	}
	return cmd.ProcessState.ExitCode()
}
