package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// A root that is missing does not end the program: every tool names it and what to do, and so does doctor.
func TestAMissingRootIsNamed(t *testing.T) {
	top, store := t.TempDir(), t.TempDir()
	work, gone, file := filepath.Join(top, "work"), filepath.Join(top, "gone"), filepath.Join(top, "file")
	write(t, filepath.Join(work, "a.txt"), "needle")
	write(t, file, "x")
	const advice = " or correct --root, then start it again"
	missing := "the root " + gone + " was missing when mcp-funnel started: create it" + advice
	unread := "the root " + file + " could not be opened (not a directory) when mcp-funnel started: " +
		"make it a readable directory" + advice
	for _, c := range []struct {
		call         []string
		alone, other int // exit codes with that root only, and with another one
		named        bool
	}{
		{[]string{"find"}, failed, done, true},
		{[]string{"search", "pattern=needle"}, failed, done, true},
		{[]string{"read", "path=*.none"}, failed, done, true},
		{[]string{"read", "path=b.txt"}, failed, failed, true},
		{[]string{"slice", "source=gone/b.txt", "lines=1"}, failed, failed, true},
		{[]string{"grep", "source=" + filepath.Join(gone, "b.txt"), "pattern=x"}, failed, failed, true},
		{[]string{"jq", "source=b.txt", "filter=."}, failed, failed, true},
		{[]string{"grep", "source=a.txt", "pattern=needle"}, failed, done, false}, // control: nothing is missing in it
	} {
		for dir, want := range map[string]string{gone: missing, file: unread} {
			base := []string{"--store", store, "--log-level", "error", "--root", dir}
			code, out, complaints := runs(t, append(append(base, "call"), c.call...)...)
			if code != c.alone || !strings.Contains(out, "error: no root: "+want) {
				t.Errorf("%q alone: code %d, %s%s", c.call, code, out, complaints)
			}
			code, out, complaints = runs(t, append(append(base, "--root", work, "call"), c.call...)...)
			if code != c.other || strings.Contains(out, want) != c.named ||
				code == done && c.call[0] != "read" && !strings.Contains(out, "a.txt") &&
					!strings.Contains(out, "needle") {
				t.Errorf("%q beside another: code %d, %s%s", c.call, code, out, complaints)
			}
		}
	}
	code, report, _ := runs(t, "--store", store, "--root", gone, "--root", file, "--root", work, "doctor")
	if code != failed || !strings.Contains(report, "BAD  root       "+missing) ||
		!strings.Contains(report, "BAD  root       "+unread) || !strings.Contains(report, "ok   root       ") {
		t.Errorf("doctor: code %d\n%s", code, report)
	}
	_, _, complaints := runs(t, "--store", store, "--root", gone, "call", "find")
	expect.Has(t, complaints, missing, "call warns of nothing")
}

// A server whose roots are all missing answers; a root that appears later is not opened, and the error still holds.
func TestAServerWithoutItsRootsAnswers(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone")
	const find = `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"find","arguments":{}}}` + "\n"
	in := opening + `{"jsonrpc":"2.0","id":2,"method":"tools/list"}` + "\n" + find
	var out, complaints strings.Builder
	args := []string{"--min-free", "0", "--store", filepath.Join(t.TempDir(), "store"), "--root", gone}
	code := run(t.Context(), args, &creating{strings.NewReader(in), gone}, &out, &complaints)
	if code != done || !strings.Contains(complaints.String(), gone+" was missing") {
		t.Errorf("code %d, %s", code, complaints.String())
	}
	for _, want := range []string{`"id":1,"result"`, `"name":"search"`, gone + " was missing when mcp-funnel started: create it"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is missing in:\n%s", want, out.String())
		}
	}
}

// creating makes a directory when it is first read: the server has started then.
type creating struct {
	*strings.Reader
	dir string
}

func (c *creating) Read(b []byte) (int, error) {
	_ = os.MkdirAll(c.dir, 0o700)
	return c.Reader.Read(b)
}
