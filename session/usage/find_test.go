package usage

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// put writes a file below a directory and sets the hour of its last change.
func put(t testing.TB, hour int, content string, path ...string) string {
	t.Helper()
	name := filepath.Join(path...)
	expect.Must(t, os.MkdirAll(filepath.Dir(name), 0o700))
	expect.Must(t, os.WriteFile(name, []byte(content), 0o600))
	at := time.Date(2026, 3, 14, hour, 0, 0, 0, time.UTC)
	expect.Must(t, os.Chtimes(name, at, at))
	return name
}

// emptyHome makes an empty home directory, in which no variable names the directory of a client.
func emptyHome(t *testing.T) string {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("CLAUDE_CONFIG_DIR", "")
	t.Setenv("CODEX_HOME", "")
	return home
}

func TestFindClaude(t *testing.T) {
	home := emptyHome(t)
	projects := filepath.Join(home, ".claude", "projects")
	old := put(t, 1, "", projects, "-srv-my-shop-v1", "aaaa.jsonl")
	want := put(t, 2, "", projects, "-srv-my-shop-v1", "bbbb.jsonl")
	put(t, 3, "", projects, "-srv-my-shop-v1", "agent-12.jsonl")
	put(t, 4, "", projects, "-srv-my-shop-v1", "notes.txt")
	put(t, 5, "", projects, "-srv-other", "cccc.jsonl")
	expect.Must(t, os.MkdirAll(filepath.Join(projects, "-srv-my-shop-v1", "dddd.jsonl"), 0o700))
	for session, want := range map[string]string{"": want, "aaaa": old} {
		if got, err := Clients["claude"].Find("/srv/my shop.v1", session); got != want || err != nil {
			t.Errorf("%q: %s, %v", session, got, err)
		}
	}
	for _, c := range [][2]string{
		{"/srv/none", ""}, {"/srv/my shop.v1", "zzzz"}, {"/srv/my shop.v1", "../-srv-other/cccc"},
		{"/srv/my shop.v1", "dddd"},
	} {
		if got, err := Clients["claude"].Find(c[0], c[1]); !errors.Is(err, ErrNoSession) {
			t.Errorf("%q: %s, %v", c, got, err)
		}
	}
	other := t.TempDir()
	t.Setenv("CLAUDE_CONFIG_DIR", other)
	want = put(t, 1, "", other, "projects", "-srv", "eeee.jsonl")
	if got, err := Clients["claude"].Find("/srv", ""); got != want || err != nil {
		t.Errorf("CLAUDE_CONFIG_DIR: %s, %v", got, err)
	}
	t.Setenv("CLAUDE_CONFIG_DIR", "")
	t.Setenv("HOME", "")
	expect.Fails(t, expect.Err(Clients["claude"].Find("/srv", "")), "", "without a home directory")
}

func TestFindClaudeOfALongPath(t *testing.T) {
	home := emptyHome(t)
	long := "/srv/" + strings.Repeat("deep/", 50)
	name := claudeName(long)[:200]
	want := put(t, 1, "", home, ".claude", "projects", name+"-1x9k2", "aaaa.jsonl")
	put(t, 2, "", home, ".claude", "projects", name[:190]+"-1x9k2", "bbbb.jsonl")
	if got, err := Clients["claude"].Find(long, ""); got != want || err != nil {
		t.Errorf("%s, %v", got, err)
	}
}

func TestClaudeName(t *testing.T) {
	for dir, want := range map[string]string{
		"/home/ann/my_shop.v1": "-home-ann-my-shop-v1", `C:\Users\ann`: "C--Users-ann", "/é/日本": "-----", "/🙂": "---",
	} {
		expect.Equal(t, claudeName(dir), want, dir)
	}
}

func TestFindCodex(t *testing.T) {
	home, cwd := emptyHome(t), t.TempDir()
	begin := func(dir, source string) string {
		return `{"type":"session_meta","payload":{"id":"x","cwd":"` + filepath.ToSlash(
			dir,
		) + `","source":` + source + "}}\n"
	}
	file := func(hour int, day, id, content string) string {
		return put(
			t,
			hour,
			content,
			home,
			".codex",
			"sessions",
			filepath.FromSlash(day),
			"rollout-2026-03-14T09-26-00-"+id+".jsonl",
		)
	}
	id := func(n string) string { return thread[:35] + n }
	file(1, "2025/12/31", id("0"), begin(cwd, `"cli"`))
	old := file(2, "2026/03/13", id("1"), begin(cwd, `"cli"`))
	want := file(5, "2026/03/01", id("2"), begin(cwd, `"vscode"`)) // resumed: begun earlier, changed last
	file(6, "2026/03/14", id("3"), begin("/srv/other", `"cli"`))
	file(7, "2026/03/14", id("4"), begin(cwd, `{"subagent":{"thread_spawn":{"depth":1}}}`))
	file(8, "2026/03/14", id("5"), "")
	file(9, "2026/03/14", id("6"), `{"type":"session_meta"`)
	put(t, 10, begin(cwd, `"cli"`), home, ".codex", "sessions", "2026", "03", "14", "notes.jsonl")
	if got, err := Clients["codex"].Find(cwd, ""); got != want || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	if got, err := Clients["codex"].Find(cwd, id("1")); got != old || err != nil {
		t.Errorf("by its id: %s, %v", got, err)
	}
	for _, c := range [][2]string{{"/srv/none", ""}, {cwd, id("9")}, {cwd, "../../x"}} {
		if got, err := Clients["codex"].Find(c[0], c[1]); !errors.Is(err, ErrNoSession) {
			t.Errorf("%q: %s, %v", c, got, err)
		}
	}
}

func TestCodexSession(t *testing.T) {
	for name, want := range map[string]string{
		codexName: thread, "rollout-" + thread + ".jsonl": "", "notes.jsonl": "", "rollout-x.jsonl": "",
		"/a/b/" + codexName: thread,
	} {
		expect.Equal(t, codexSession(name), want, name)
	}
}
