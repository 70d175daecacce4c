package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// A variable that is set to nothing is as good as none: it must not make the current directory a store or a root.
func TestEmptySettingsAreDefaults(t *testing.T) {
	here, home := t.TempDir(), homeIn(t, t.TempDir())
	t.Chdir(here)
	for _, name := range []string{"MCP_FUNNEL_STORE", "MCP_FUNNEL_ROOT", "MCP_FUNNEL_CONFIG"} {
		t.Setenv(name, "")
	}
	code, out, said := runs(t, "observations", "list")
	if want := "nothing is kept in " + filepath.Join(home, "state", "mcp-funnel") + "\n"; code != done || out != want {
		t.Errorf("code %d: %q, want %q: %s", code, out, want, said)
	}
	if made, err := os.ReadDir(here); err != nil || len(made) > 0 {
		t.Errorf("in the current directory: %v, %v", made, err)
	}
	s := parsed([]string{"--root=", "--root=sub", "--store=kept"})
	if s == nil || len(s.Root) != 1 || s.Root[0] != filepath.Join(here, "sub") || s.Store != filepath.Join(here, "kept") {
		t.Errorf("%v", s)
	}
}

// Settings that cannot work are refused under their names, in JSON if log lines are.
func TestSettingsThatCannotWork(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ flag, value, want string }{
		{"--run-processes", "1", "--run-processes must be 4 or more, not 1"},
		{"--run-memory", "1KiB", "--run-memory must be 16.0 MiB or more"},
		{"--max-message", "1", "--max-message must be 1.0 KiB or more"},
		{"--token-file", dir, "--token-file " + dir + " is a directory: name the file in it"},
		{"--keep-env", "FOO=1", "--keep-env takes the name of a variable: write --keep-env FOO"},
		{"--store", "", "--store is empty: name a directory"},
	} {
		code, _, said := try(t, "observations", "list", c.flag, c.value)
		if code != usage || !strings.HasPrefix(said, "mcp-funnel: "+c.want) {
			t.Errorf("%s %s: %d %s", c.flag, c.value, code, said)
		}
		_, _, said = try(t, "--log-format", "json", "observations", "list", c.flag, c.value)
		for line := range strings.Lines(said) {
			if !strings.HasPrefix(line, `{"time":"`) || !strings.Contains(line, `"level":"ERROR"`) {
				t.Errorf("%s %s, in JSON: %s", c.flag, c.value, line)
			}
		}
	}
}

// Names below the roots complete path= and source=, as tools take them.
func TestCompletionOfNames(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "one/sub/a.txt"), "")
	write(t, filepath.Join(dir, "two/b.txt"), "")
	one, two := " --root "+filepath.Join(dir, "one"), " --root "+filepath.Join(dir, "two")
	for line, want := range map[string]string{
		one + " call read path=":               "path=sub/\n",
		one + " call jq source=sub/":           "source=sub/a.txt\n",
		one + two + " call read path=":         "path=one/\npath=two/\n",
		one + two + " call grep source=two/b":  "source=two/b.txt\n",
		one + two + " call grep source=none/x": "",
	} {
		if _, out, said := runs(t, "__complete", "--", "mcp-funnel"+line); out != want {
			t.Errorf("%s: %q %s, want %q", line, out, said, want)
		}
	}
}

// A file with a byte order mark is read, and its relative root counts from its directory.
func TestConfigRootBesideTheFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "funnel.yaml")
	write(t, file, "\ufeffroot: sub\n")
	write(t, filepath.Join(dir, "sub/here.txt"), "x\n")
	code, out, said := runs(t, "--config", file, "--store", t.TempDir(), "call", "find")
	if code != done || !strings.Contains(out, `"path":"here.txt"`) {
		t.Errorf("%d: %s%s", code, out, said)
	}
}

// What is wrong in the file is told with its place, and with what was likely meant.
func TestConfigErrorsNameTheirPlace(t *testing.T) {
	c, file := newCommandLine(t), filepath.Join(t.TempDir(), "funnel.yaml")
	for text, want := range map[string]string{
		"large-lines: 9\nmax-age: soon\n":     file + ":2:10: max-age: ",
		"receipt-tokens: many\n":              file + ":1:17: receipt-tokens: ",
		"quota: big\n":                        file + ":1:8: quota: ",
		"enabled: perhaps\n":                  file + ":1:10: enabled: ",
		"log-level: loud\n":                   file + ":1:12: log-level: \"loud\" is none of debug, info, warn, error",
		"large-line: 9\n":                     file + ":1:1: unknown key \"large-line\"; did you mean large-lines?",
		"LARGE_LINES: 9\n":                    "did you mean large-lines?",
		"something-else: 9\n":                 "valid keys: allow-cache, allow-host, ",
		"root: []\n":                          file + ":1:7: root: an empty list",
		"nothing-such: 9\n":                   ", upstreams, mcpServers",
		"upstream: {}\n":                      file + ":1:1: unknown key \"upstream\"; did you mean upstreams?",
		"{\"mcpserver\": {}}\n":               "did you mean mcpServers?",
		"// x\n{\n \"servers\": {}}\n":        file + ":3:2: unknown key \"servers\"; write mcpServers in its place",
		"context_servers: {}\n":               "write mcpServers in its place",
		"large-lines: 9\n---\nquota: 1GiB\n":  file + ":3:",
		"root: [" + t.TempDir() + "]\nx: 1\n": file + ":2:1: unknown key",
	} {
		write(t, file, text)
		c.expect(usage, "", want, "--config", file, "observations", "list")
	}
	write(t, file, "large-lines: 9\nmax-age: 2d\nenabled: false\nlog-level: debug\nquota: 5MiB\nallow-host: [a, b]\n")
	c.expect(done, "", "", "--config", file, "observations", "list")
}

// A variable of the shell that is not set must not grant the current directory.
func TestAnEmptyRootIsRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, variable := range []string{"-", t.TempDir(), ""} {
		if variable != "-" {
			t.Setenv("MCP_FUNNEL_ROOT", variable)
		}
		code, out, said := runs(t, "--store", t.TempDir(), "--root=", "call", "find")
		refused := code == usage && strings.Contains(said, "--root is empty: name a directory")
		expect.Equal(t, refused, variable != "", "beside the variable %q: code %d: %s%s", variable, code, out, said)
	}
}

// An empty variable for a file is none, and not the current directory.
func TestAnEmptyTokenFileIsNone(t *testing.T) {
	t.Setenv("MCP_FUNNEL_TOKEN_FILE", "")
	if code, _, complaints := try(t, "call", "find"); code != done {
		t.Errorf("code %d: %s", code, complaints)
	}
}

// An empty variable counts as unset, whatever its setting takes.
func TestEmptyVariablesAreUnset(t *testing.T) {
	for _, name := range []string{"PROMPT_BUDGET", "ALLOW_WRITE", "SLICE", "QUOTA", "LOG_LEVEL", "TOOLSETS", "HTTP"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("MCP_FUNNEL_"+name, "")
			code, _, complaints := try(t, "call", "find")
			expect.Equal(t, code, done, complaints)
		})
	}
	for _, name := range []string{"PROMPT_BUDGET", "ALLOW_WRITE"} {
		t.Setenv("MCP_FUNNEL_"+name, "${user_config.x}")
	}
	code, _, complaints := try(t, "call", "find")
	expect.Equal(t, code, done, complaints)
	t.Setenv("MCP_FUNNEL_PROMPT_BUDGET", "null")
	code, _, _ = try(t, "call", "find")
	expect.Equal(t, code, usage, "a text that is no number")
}

// A variable named as ours are, which none is, would leave a setting as it was without a word.
func TestUnknownVariablesAreRefused(t *testing.T) {
	for name, want := range map[string]string{
		"MCP_FUNNEL_LARGE_LINE":  "unknown variable MCP_FUNNEL_LARGE_LINE; did you mean MCP_FUNNEL_LARGE_LINES?",
		"MCP_FUNNEL_NONSENSE":    "unknown variable MCP_FUNNEL_NONSENSE: no setting",
		"MCP_FUNNEL_PAGE_TOKENS": "",
		"MCP_FUNNEL_TOKEN":       "",
		"MCP_FUNNELS":            "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, "500")
			for _, command := range []string{"version", "completion bash", "__complete mcp-funnel"} {
				if code, _, complaints := try(t, strings.SplitN(command, " ", 2)...); code != done ||
					complaints != "" {
					t.Errorf("%s: code %d: %s", command, code, complaints)
				}
			}
			code, _, complaints := try(t, "tokens")
			if want == "" && strings.Contains(complaints, "variable") || want != "" &&
				(code != usage || !strings.Contains(complaints, want)) {
				t.Errorf("code %d: %s", code, complaints)
			}
		})
	}
}

// The variable holds several directories as PATH does; the same one twice is one.
func TestRootsOfTheVariable(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	write(t, filepath.Join(one, "first.txt"), "a line\n")
	write(t, filepath.Join(two, "second.txt"), "a line\n")
	t.Setenv("MCP_FUNNEL_STORE", filepath.Join(t.TempDir(), "store"))
	dirs := []string{one, two, one + string(filepath.Separator)}
	t.Setenv("MCP_FUNNEL_ROOT", strings.Join(dirs, string(filepath.ListSeparator)))
	for _, k := range []struct {
		args          []string
		first, second int
	}{
		{nil, 1, 1},
		{[]string{"--root", two, "--root", two}, 0, 1},
	} {
		code, out, said := runs(t, append(k.args, "call", "find")...)
		if code != done || strings.Count(out, "first.txt") != k.first || strings.Count(out, "second.txt") != k.second {
			t.Errorf("%v: code %d: %s%s", k.args, code, out, said)
		}
	}
}

// The variable holds several limits, as the flag does.
func TestToolLimitsOfTheVariable(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "large.txt"), strings.Repeat("a line of some words\n", 3000))
	lines := func(limits string, code int, args ...string) (int, string) {
		t.Helper()
		t.Setenv("MCP_FUNNEL_TOOL_LIMIT", limits)
		got, out, complaints := runs(t, append([]string{"--root", root, "--store", filepath.Join(t.TempDir(), "store"),
			"call", "grep", "source=large.txt", "pattern=line"}, args...)...)
		expect.MustEqual(t, got, code, "%q: code: %s", limits, complaints)
		return strings.Count(out, "some words"), complaints
	}
	whole, _ := lines("", done)
	for _, limits := range []string{
		"run.receipt-tokens=1200,grep.page-tokens=400", "jq.page-tokens=900, grep.page-tokens=400",
	} {
		if n, _ := lines(limits, done); n == 0 || n > whole/5 {
			t.Errorf("%q: %d lines, without limits %d", limits, n, whole)
		}
	}
	n, _ := lines("", done, "--tool-limit", "run.page-tokens=900", "--tool-limit", "grep.page-tokens=400")
	if n > whole/5 {
		t.Errorf("the repeated flag: %d lines, without limits %d", n, whole)
	}
	if _, said := lines("grep.page-tokens=400,rnu.page-tokens=9000", usage); !strings.Contains(said, `no tool "rnu"`) {
		t.Error(said)
	}
}

// A wrong word is told once, with those there are.
func TestWrongWords(t *testing.T) {
	for want, args := range map[string][]string{
		`no tool "nosuch"; there are search, find, read, grep, jq, slice`: {"call", "nosuch"},
		`mcp-funnel: not an observation ID: "zzz": it takes`:              {"observations", "cat", "zzz"},
		`--uncut: there is no tool "raed"; there are search, find, read`:  {"--uncut", "read,raed", "doctor"},
		`--tool-limit: there is no tool "rnu"; there are search, find`:    {"--tool-limit", "rnu.page-tokens=9000", "doctor"},
	} {
		code, _, complaints := try(t, args...)
		if code != usage || !strings.Contains(complaints, want) || strings.Count(complaints, "zzz") > 1 {
			t.Errorf("%v: code %d: %s", args, code, complaints)
		}
	}
}
