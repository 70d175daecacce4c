package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/jq"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// inProcessCall makes a call as the server does, without a server.
type inProcessCall func(ctx context.Context, src source.Set, l funnel.Limits, tool string, args any) answer

func inProcess(t testing.TB, o funnel.Options) inProcessCall {
	t.Helper()
	f := expect.Value(funnel.New(o))(t)
	byName := map[string]tools.Tool{}
	for _, tool := range server.Catalog(server.Parts{JQ: jq.Options{InProcess: true}}) {
		byName[tool.Name] = tool
	}
	return func(ctx context.Context, src source.Set, l funnel.Limits, tool string, args any) answer {
		raw, err := json.Marshal(args)
		if err != nil {
			return answer{blocks: []string{err.Error()}, failed: true}
		}
		a, err := f.Call(ctx, funnel.Request{
			Tool: byName[tool], Args: raw, Sources: src, Limits: l,
			Who: funnel.Session{ID: "local", Owner: observations.Local},
		})
		if err != nil {
			return answer{blocks: []string{err.Error()}, failed: true}
		}
		texts := make([]string, len(a.Blocks))
		for i, b := range a.Blocks {
			texts[i] = b.Text
		}
		return answer{blocks: texts, failed: a.Failed}
	}
}

// desk calls tools as a model does, and reads what it is shown.
type desk struct {
	t    *rapid.T
	made inProcessCall
	src  source.Set
}

func (d *desk) call(tool string, kv ...any) (shown string, failed bool) {
	args := map[string]any{}
	for i := 0; i < len(kv); i += 2 {
		args[kv[i].(string)] = kv[i+1]
	}
	a := d.made(d.t.Context(), d.src, funnel.Limits{LargeLines: 10_000, LargeChars: 200_000}, tool, args)
	return a.text(), a.failed
}

// hostileName is a file's name with what makes names hard to show: hidden characters, line ends, bytes that are no
// UTF-8, what looks like an escape, a glob, an observation or a line of ours.
func hostileName() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{
			"a", "é", "x y", "\n", "\r", "\t", "\x1b[31m", "\u202e", "\u200b", "\x7f", "\xff", "\xc3", "\\", `\x1b`, `\u202e`, `\n`, `"`, "'",
			"[1]", "*", "?", "{a,b}", "obs:", "note: ", "next: ", ">", "error: ", ":", "#", "-", "~", "\U000e0041", "\u2028", "\u0085", "日本", "\ufffd",
		}), 1, 5).Draw(t, "parts")
		// A letter at both ends: blanks there, and marks behind a name, are lost to whoever copies it.
		return strings.Join(parts, "") + "z"
	})
}

// Every name a tool shows is taken by every tool, in each argument that takes a path, as it was shown.
func TestNamesAreAcceptedAsShown(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		t.Skipf("%s allows no such names", runtime.GOOS)
	}
	call := inProcess(t, funnel.Options{Counter: tokens.New(tokens.O200k)})
	top := t.TempDir()
	n, shown := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		d := &desk{t: t, made: call}
		var dirs []string
		for i := range rapid.IntRange(1, 2).Draw(t, "roots") {
			dirs = append(dirs, filepath.Join(top, fmt.Sprintf("r%d-%d", n, i)))
		}
		texts := map[string]bool{}
		for _, dir := range dirs {
			for i := range rapid.IntRange(1, 3).Draw(t, "files") {
				name := hostileName().Draw(t, "name")
				if rapid.Bool().Draw(t, "in a directory") {
					name = hostileName().Draw(t, "directory") + "/" + name
				}
				text := fmt.Sprintf("needle%d-%s", i, filepath.Base(dir))
				at := filepath.Join(dir, name)
				if os.MkdirAll(filepath.Dir(at), 0o755) != nil {
					continue // a file of that name is there
				}
				if _, err := os.Lstat(at); err == nil {
					continue
				}
				if os.WriteFile(at, []byte(text+"\n"), 0o600) == nil {
					texts[text] = true
				}
			}
			expect.Must(t, os.MkdirAll(dir, 0o755))
			r := expect.Value(tree.Open(dir))(t)
			defer func() { _ = r.Close() }()
			d.src.Roots = append(d.src.Roots, r)
		}
		for place, names := range d.namesShown() {
			redeemed := map[string]bool{}
			for name, want := range names {
				shown++
				for arg, got := range d.redeem(name) {
					if want == "" && texts[got] {
						redeemed[got] = true
					} else if got != want || want == "" {
						t.Fatalf("%s shows %q; given to %s it leads to %.300q, want %q", place, name, arg, got, want)
					}
				}
			}
			if place == "find" && len(redeemed) != len(texts) {
				t.Fatalf("find shows %q: %d of %d files", names, len(redeemed), len(texts))
			}
		}
	})
	if shown < 100 {
		t.Errorf("only %d names were shown", shown)
	}
}

// TestTreeMarksBehindIndentation has a directory whose name imitates our lines. The tree keeps its depth, and
// the name as shown is accepted.
func TestTreeMarksBehindIndentation(t *testing.T) {
	p := newFrozenProgram(t)
	root := t.TempDir()
	write(t, filepath.Join(root, "a", "next: x {b", "f.txt"), "needle\n")
	shown, _ := p.run("", nil, "--root", root, "call", "find", "show=tree", "path=a")
	if want := "a/\n  >next: x {b/\n    f.txt\n"; !strings.Contains(shown, want) {
		t.Errorf("%q, want %q", shown, want)
	}
	text, code := p.run("", nil, "--root", root, "call", "grep", "source=a/>next: x {b/f.txt", "pattern=needle")
	if code != 0 || !strings.Contains(text, "1: needle") {
		t.Errorf("exit code %d: %s", code, text)
	}
}

// namesShown are the names that each way of looking shows, with the text of the file where the answer tells it.
func (d *desk) namesShown() map[string]map[string]string {
	all := map[string]map[string]string{}
	add := func(place, name, text string) {
		if all[place] == nil {
			all[place] = map[string]string{}
		}
		all[place][name] = text
	}
	list, _ := d.call("find", "type", "file", "all", true)
	for i, line := range strings.Split(list, "\n") {
		cell, _, table := strings.Cut(line, "\tfile\t")
		var r struct{ Path string }
		switch {
		case table:
			add("find", unquoted(cell), "")
		case strings.HasPrefix(line, "{"):
			expect.Must(d.t, json.Unmarshal([]byte(line), &r), line)
			add("find", r.Path, "")
		case i > 0 && line != "":
			d.t.Fatalf("a line of find that tells no file: %q in\n%s", line, list)
		}
	}
	var above []string
	drawn, _ := d.call("find", "show", "tree", "type", "file", "all", true)
	for _, line := range strings.Split(strings.TrimSpace(drawn), "\n") {
		name := strings.TrimLeft(line, " ")
		depth := (len(line) - len(name)) / 2
		if strings.HasSuffix(name, " files") || strings.HasSuffix(name, " file") {
			continue
		}
		above = append(above[:min(depth, len(above))], strings.TrimSuffix(name, "/"))
		if !strings.HasSuffix(name, "/") {
			add("tree", strings.Join(above, "/"), "")
		}
	}
	hits, _ := d.call("search", "pattern", "^needle", "all", true)
	file := ""
	for _, line := range strings.Split(hits, "\n") {
		var r struct{ File, Text string }
		if strings.HasPrefix(line, `{"file"`) && json.Unmarshal([]byte(line), &r) == nil {
			add("search", r.File, r.Text)
		} else if text, ok := strings.CutPrefix(line, "  1: "); ok {
			add("search", file, text)
		} else {
			file = line
		}
	}
	under, _ := d.call("read", "path", "**")
	lines := strings.Split(under, "\n")
	for i, line := range lines[:len(lines)-1] {
		if name, ok := strings.CutPrefix(line, "==> "); ok {
			add("read", strings.TrimSuffix(name, " <=="), lines[i+1])
		}
	}
	return all
}

// unquoted is a cell of a table: as it is, or as JSON has it.
func unquoted(cell string) string {
	var s string
	if strings.HasPrefix(cell, `"`) && json.Unmarshal([]byte(cell), &s) == nil {
		return s
	}
	return cell
}

// redeem is what a name leads to, by each argument that takes one.
func (d *desk) redeem(name string) map[string]string {
	got := map[string]string{}
	one := func(arg string, tool string, kv ...any) string {
		text, _ := d.call(tool, kv...)
		got[arg] = strings.TrimSuffix(text, "\n")
		return got[arg]
	}
	if text, ok := strings.CutPrefix(one("grep source", "grep", "source", name, "pattern", "needle"), "1: "); ok {
		got["grep source"] = text
	}
	one("slice source", "slice", "source", name, "lines", "1")
	one("jq source", "jq", "source", name, "filter", ".", "text", true, "raw", true)
	one("read path", "read", "path", name)
	found := one("search path", "search", "path", name, "pattern", "needle", "all", true)
	if i := strings.LastIndex(found, "needle"); i >= 0 {
		got["search path"], _, _ = strings.Cut(found[i:], `"`)
	}
	if text, failed := d.call("find", "path", name, "all", true); failed || !strings.Contains(text, "file") {
		got["find path"] = text
	}
	return got
}
