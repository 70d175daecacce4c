//go:build linux && (amd64 || arm64)

package upstream_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestCommandsCallServers has a command of run call the tools of a wrapped server by funnel: those that only read and the
// one that the operator allows, whole, and no other.
func TestCommandsCallServers(t *testing.T) {
	inParallel(t)
	state := filepath.Join(t.TempDir(), "none")
	flags := []string{
		"--store", t.TempDir(), "--min-free", "0", "--toolsets", "core,shell", "--root", t.TempDir(), "--run-tools", "rows",
	}
	c := start(t, append(append([]string{binary}, flags...), append([]string{"wrap", "--"}, sick("none", state)...)...)...)
	got := c.call("run", `{"command":"funnel echo text='a b'; funnel rows | tr '}' '\\n' | grep -c row; `+
		`funnel import csv=x; echo code $?; funnel | grep -c '^raw\\|^rows\\|^import'"}`)
	if strings.Contains(got, "cannot be contained") {
		t.Skip(got)
	}
	for _, want := range []string{ // the streams of a command come in any order
		`{\"text\":\"a b\"}\n439\n`, `code 1\n`, `2\n`,
		`stderr| funnel: import may change something, and commands may not call it: the operator can allow it (--run-tools import)\n`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s; want %s", got, want)
		}
	}
	c.end()
}
