package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// commandLine runs the program on a root and a store of its own.
type commandLine struct {
	t           *testing.T
	root, store string
	in          string // standard input
}

func newCommandLine(t *testing.T) *commandLine {
	t.Helper()
	return &commandLine{t: t, root: t.TempDir(), store: filepath.Join(t.TempDir(), "store")}
}

// run returns the exit code, and what standard output and error got.
func (c *commandLine) run(words ...string) (code int, out, said string) {
	c.t.Helper()
	return runIn(c.t, c.in, append([]string{"--root", c.root, "--store", c.store}, words...)...)
}

// expect compares the exit code, and looks for texts in standard output and error. "" for the latter means nothing.
func (c *commandLine) expect(code int, out, said string, words ...string) {
	c.t.Helper()
	gotCode, gotOut, gotSaid := c.run(words...)
	if gotCode != code || !strings.Contains(gotOut, out) || !strings.Contains(gotSaid, said) ||
		(gotSaid == "") != (said == "") {
		c.t.Errorf("%.200q: code %d, %q, %q; want %d, %q, %q", words, gotCode, gotOut, gotSaid, code, out, said)
	}
}

// try runs the program once on a root and a store of its own.
func try(t *testing.T, words ...string) (code int, out, said string) {
	t.Helper()
	return newCommandLine(t).run(words...)
}

// runs runs the program on what the words name.
func runs(t *testing.T, words ...string) (code int, out, said string) {
	t.Helper()
	return runIn(t, "", words...)
}

func runIn(t *testing.T, in string, words ...string) (code int, out, said string) {
	t.Helper()
	var o, e strings.Builder
	code = run(t.Context(), append([]string{"--min-free", "0"}, words...), strings.NewReader(in), &o, &e)
	return code, o.String(), e.String()
}

// opening is what a client sends first.
const opening = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
	`"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}` + "\n" +
	`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"

func write(t *testing.T, name, text string) {
	t.Helper()
	expect.Must(t, os.MkdirAll(filepath.Dir(name), 0o700))
	expect.Must(t, os.WriteFile(name, []byte(text), 0o600))
}
