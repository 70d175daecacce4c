package conformance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// TestInstall installs the program for each client in a home of its own, as a user does, and takes it out again.
func TestInstall(t *testing.T) {
	drivesOnly(t)
	t.Parallel()
	home, project := plainDir(t), plainDir(t)
	env := append(environment(t), "HOME="+home, "XDG_CONFIG_HOME="+home+"/.config", "XDG_STATE_HOME="+home+"/state")
	run := func(code int, words ...string) string {
		t.Helper()
		out, errs, got := launch{dir: project, env: env, flags: words}.output(t)
		expect.Equal(t, got, code, "%q: code\n%s%s", words, out, errs)
		return out + errs
	}
	says := func(text string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("no %q in\n%s", part, text)
			}
		}
	}
	read := func(path string) string {
		b, err := os.ReadFile(path)
		if err != nil {
			return err.Error()
		}
		return string(b)
	}
	const other = `{"command": "npx", "args": ["-y", "x"]}`
	for client, k := range map[string]struct{ file, text, want string }{
		"claude-desktop": {".config/Claude/claude_desktop_config.json", `{"mcpServers": {"o": ` + other + `}}`, `"--root"`},
		"claude-code":    {".claude.json", `{"mcpServers": {"o": ` + other + "}}\n", `"type":"stdio"`},
		"cursor":         {".cursor/mcp.json", "{\n\t\"mcpServers\": {\n\t\t\"o\": " + other + "\n\t}\n}\n", `"--root"`},
		"vscode":         {".config/Code/User/mcp.json", "// mine\n{\"servers\": {\"o\": " + other + ",}}", `"--root"`},
		"windsurf":       {".codeium/windsurf/mcp_config.json", `{"mcpServers": {"o": ` + other + `}}`, `"--root"`},
		"zed": {".config/zed/settings.json",
			"{\n  // mine\n  \"context_servers\": {\"o\": " + other + "},\n}\n", `"custom"`},
		"codex": {".codex/config.toml",
			"a = 1\n[mcp_servers.o]\ncommand = 'npx'\nargs = ['-y', 'x']\n", "[mcp_servers.funnel]"},
		"gemini":   {".gemini/settings.json", `{"mcpServers": {"o": ` + other + `}}`, `"funnel"`},
		"opencode": {".config/opencode/opencode.jsonc", `{"mcp": {"o": {"type": "local", "command": ["npx", "-y", "x"]}}}`, `"local"`},
	} {
		file := filepath.Join(home, k.file)
		says(run(1, "install", client, "--yes"), "not to be installed", filepath.Base(k.file), "--file")
		expect.Must(t, os.MkdirAll(filepath.Dir(file), 0o700))
		if client == "opencode" || client == "claude-code" {
			write(t, file, k.text)
		}
		says(run(0, "install", client), "+ ", "nothing is written; the same command with --yes")
		write(t, file, k.text)
		says(run(0, "install", client, "--yes"), "written: "+file, "has 6 tools", file+".before-mcp-funnel")
		says(read(file), k.want, binary(t))
		says(run(0, "install", client, "--yes"), "nothing to do")
		says(run(0, "install", client, "--wrap", "all", "--yes"), "written: "+file)
		says(strings.ReplaceAll(read(file), "'", `"`), `"wrap", "--", "npx", "-y", "x"`)
		says(run(0, "install", client, "--remove", "--yes"), "o is still wrapped")
		run(0, "install", client, "--remove", "--wrap", "o", "--yes")
		expect.Equal(t, read(file), k.text, client)
		if left, err := os.ReadDir(filepath.Dir(file)); err != nil || client != "claude-code" && len(left) != 1 {
			t.Errorf("%s: left: %v", client, left)
		}
	}

	says(run(0, "--root", ".", "--large-lines=9", "install", "cursor", "--print"),
		`"`+project+`"`, `"--large-lines"`, `"9"`)
	says(run(0, "install", "cursor", "--scope", "project", "--yes"), "has 6 tools")
	says(read(project+"/.cursor/mcp.json"), `"${workspaceFolder}"`)
	says(run(0, "--store=own", "install", "claude-code", "--hook", "--yes"), "written: "+home+"/.claude/settings.json")
	says(read(home+"/.claude/settings.json"), "PostToolUse", binary(t)+" --store "+project+"/own hook --configured")
	says(run(0, "install", "claude-code", "--remove", "--yes"),
		"removed, because there was none before: "+home+"/.claude/settings.json")
	write(t, home+"/.cursor/mcp.json", "{\n  oops\n}")
	says(run(1, "install", "cursor", "--yes"), "mcp.json: line 2, column 3")
	says(read(home+"/.cursor/mcp.json"), "{\n  oops\n}")
	says(run(2, "install", "windsurf", "--scope", "project"), "no configuration of a project")
	says(run(2, "install", "cursor", "--hook"), "--hook is for claude-code")
	says(run(0, "install", "zed", "--yes", "--file", "own/settings.json"), "written: "+project+"/own/settings.json")
}
