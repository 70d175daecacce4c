package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// TestDirectoriesToChange checks what --allow-write may name: directories below the roots or above them, one that is
// missing with a warning, and none that has nothing to do with a root. An empty one is not the current directory.
func TestDirectoriesToChange(t *testing.T) {
	top := expect.Value(filepath.EvalSymlinks(t.TempDir()))(t)
	root := filepath.Join(top, "root")
	write(t, filepath.Join(root, "sub/a.txt"), "a\n")
	write(t, filepath.Join(root, "b.txt"), "b\n")
	t.Chdir(root)
	call := func(allowed []string, name string) (code int, out, said string) {
		t.Helper()
		words := []string{"--root", root, "--store", filepath.Join(top, "store"), "--toolsets", "write"}
		for _, dir := range allowed {
			words = append(words, "--allow-write", dir)
		}
		return runs(t, append(words, "call", "write", `{"path":"`+name+`","content":"x\n","append":true}`)...)
	}
	for _, c := range []struct {
		allowed         []string
		below, beside   int // exit codes
		says, complains string
	}{
		{[]string{"sub"}, done, failed, "what may be changed lies below sub", ""},
		{[]string{root}, done, done, "", ""},
		{[]string{top}, done, done, "", ""},
		{nil, failed, failed, "the operator can allow a directory with --allow-write", ""},
		{[]string{""}, failed, failed, "the operator can allow a directory with --allow-write", ""},
		{[]string{"none", "sub"}, done, failed, "lies below sub", "nothing can be changed there"},
		{[]string{"b.txt"}, failed, failed, "--allow-write", "not a directory"},
		{[]string{"sub", t.TempDir()}, usage, usage, "", "it lies in no root; grant it with --root too"},
	} {
		code, out, said := call(c.allowed, "sub/a.txt")
		expect.Equal(t, code, c.below, "%q, below: %s%s", c.allowed, out, said)
		expect.Has(t, said, c.complains)
		code, out, _ = call(c.allowed, "b.txt")
		expect.Equal(t, code, c.beside, "%q, beside: %s", c.allowed, out)
		expect.Has(t, out, c.says)
	}
	expect.Equal(t, string(expect.Value(os.ReadFile(filepath.Join(root, "b.txt")))(t)), "b\nx\nx\n")
}

// TestDirectoriesToChangeOfAFile names them in the configuration file, from whose directory relative ones count.
func TestDirectoriesToChangeOfAFile(t *testing.T) {
	dir, store := t.TempDir(), t.TempDir()
	write(t, filepath.Join(dir, "sub/deep/a.txt"), "a\n")
	file := filepath.Join(dir, "funnel.yaml")
	for _, allowed := range []string{"sub/deep", "[sub/deep, none]", "."} {
		write(t, file, "root: sub\ntoolsets: [core, write]\nallow-write: "+allowed+"\n")
		args := `{"path":"deep/a.txt","content":"x\n","append":true}`
		code, out, said := runs(t, "--config", file, "--store", store, "--log-level", "error", "call", "write", args)
		expect.Equal(t, code, done, "%s: %s%s", allowed, out, said)
	}
	expect.Equal(t, string(expect.Value(os.ReadFile(filepath.Join(dir, "sub/deep/a.txt")))(t)), "a\nx\nx\nx\n")
}
