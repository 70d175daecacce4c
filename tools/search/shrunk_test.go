package search

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/toolstest"
)

// A file that changes under a search says so: what was counted is of no one time. One that only grows does not.
func TestFilesThatChangeMeanwhile(t *testing.T) {
	text := strings.Repeat("a needle in the way\n", 200_000) + strings.Repeat("nothing at all to be seen\n", 800_000)
	wide := strings.Join(strings.Split(text, ""), "\x00") + "\x00"
	shorter := func(path string) error { return os.Truncate(path, 100_000) }
	longer := func(path string) error { return os.Truncate(path, int64(len(wide))+100_000) }
	for _, c := range []struct {
		name   string
		tool   tools.Tool
		file   string
		change func(path string) error
		want   string // "": no note
	}{
		{"grep, shorter", Grep(), "a.txt", shorter, "a.txt became shorter during this call, from 24800000 to 100000 bytes"},
		{"grep, written", Grep(), "a.txt", rewritten, "a.txt was written to during this call"},
		{"grep, longer", Grep(), "a.txt", longer, ""},
		{"search, shorter", Search(), "a.txt", shorter, "1 file became shorter during this call"},
		{"search, longer", Search(), "a.txt", longer, ""},
		{"search, shorter", Search(), "marked.txt", shorter, "1 file became shorter during this call"},
		{"search, longer", Search(), "marked.txt", longer, ""},
		{"search, shorter", Search(), "wide.txt", shorter, "1 file became shorter during this call"},
		{"search, longer", Search(), "wide.txt", longer, ""},
	} {
		dir := folder(t, c.file,
			map[string]string{"a.txt": text, "marked.txt": "\xef\xbb\xbf" + text, "wide.txt": "\xff\xfe" + wide}[c.file])
		file := map[string]string{"grep": "source", "search": "path"}[c.tool.Name]
		b, err := json.Marshal(args{file: c.file, "pattern": "needle"})
		expect.Must(t, err)
		said := &answer{rowsMost: 3}
		said.counts = map[string]float64{}
		out := &toolstest.During{Output: said}
		out.First = func() {
			expect.OK(t, c.change(filepath.Join(dir, c.file)))
		}
		if err := c.tool.Run(t.Context(), tools.Input{Args: b, Sources: toolstest.Roots(t, dir)}, out); err != nil {
			t.Errorf("%s, %s: %v", c.name, c.file, err)
		}
		if note := said.note(); out.First != nil || !strings.Contains(note, c.want) || c.want == "" &&
			strings.Contains(note, "during this call") {
			t.Errorf("%s, %s: %q, want %q", c.name, c.file, note, c.want)
		}
	}
}

// rewritten has the file hold what it held, written a moment later.
func rewritten(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	fi, err := os.Stat(path)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if _, err = f.Write(b[:100]); err == nil {
		err = f.Close()
	}
	if err != nil {
		return err
	}
	return os.Chtimes(path, fi.ModTime(), fi.ModTime().Add(1)) // where the clock of the file system is coarse
}
