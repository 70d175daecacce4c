// Package clientconfig puts this server into the configuration files of MCP clients, and takes it out again.
package clientconfig

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ServerName is the name of this server in every configuration.
const ServerName = "funnel"

// WorkspaceFolder is the variable that some clients replace by the project's directory.
const WorkspaceFolder = "${workspaceFolder}"

// Client is a program that starts MCP servers, and where it keeps them.
type Client struct {
	Name          string
	keys          []string // of the table that holds the servers
	toml, strict  bool     // strict JSON has no comments and no trailing commas
	kind, source  string   // values of an entry's keys "type" and "source"
	joined        bool     // command and arguments are one array
	InProject     bool     // it starts servers in the project's directory
	Variable      bool     // it replaces [WorkspaceFolder] in a project's configuration
	user, project []string // places of its configuration, as [Environment.expand] reads them
	mark          string   // exists if it is installed; else the directory of the configuration
	settings      [2]string
}

// clients are all of them, in the order of the help.
var clients = []Client{
	{Name: "claude-desktop", keys: []string{"mcpServers"}, strict: true, user: []string{
		"{config}/Claude/claude_desktop_config.json", "{local}/Claude-Data/claude*/claude_desktop_config.json",
		"{local}/Packages/Claude_*/LocalCache/Roaming/Claude/claude_desktop_config.json",
	}},
	{
		Name: claudeCode, keys: []string{"mcpServers"}, strict: true, kind: "stdio", InProject: true,
		user: []string{"{claude.json}/.claude.json"}, mark: "{claude}/", project: []string{".mcp.json"},
		settings: [2]string{"{claude}/settings.json", ".claude/settings.json"},
	},
	{
		Name: "cursor", keys: []string{"mcpServers"}, Variable: true,
		user: []string{"{home}/.cursor/mcp.json"}, project: []string{".cursor/mcp.json"},
	},
	{
		Name: "vscode", keys: []string{"servers"}, kind: "stdio", Variable: true, project: []string{".vscode/mcp.json"},
		user: []string{
			"{config}/Code/User/mcp.json", "{config}/Code - Insiders/User/mcp.json", "{config}/VSCodium/User/mcp.json",
		},
	},
	{Name: "windsurf", keys: []string{"mcpServers"}, user: []string{"{home}/.codeium/windsurf/mcp_config.json"}},
	{
		Name: "zed", keys: []string{"context_servers"}, source: "custom", project: []string{".zed/settings.json"},
		user: []string{"{zed}/settings.json", "{home}/.var/app/dev.zed.Zed/config/zed/settings.json"},
	},
	{
		Name: "codex", keys: []string{"mcp_servers"}, toml: true, InProject: true,
		user: []string{"{codex}/config.toml"}, project: []string{".codex/config.toml"},
	},
	{
		Name: "gemini", keys: []string{"mcpServers"}, InProject: true,
		user: []string{"{home}/.gemini/settings.json"}, project: []string{".gemini/settings.json"},
	},
	{
		Name: "opencode", keys: []string{"mcp"}, kind: "local", joined: true, InProject: true,
		user: []string{
			"{opencode}", "{xdg}/opencode/opencode.json", "{xdg}/opencode/opencode.jsonc", "{xdg}/opencode/config.json",
		},
		project: []string{
			"opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc",
		},
	},
}

// ByName returns the client of a name, or nil.
func ByName(name string) *Client {
	if i := slices.IndexFunc(clients, func(c Client) bool { return c.Name == name }); i >= 0 {
		return &clients[i]
	}
	return nil
}

// Local returns the client with the servers that it keeps for one directory in the configuration of the user; nil if it
// keeps none.
func (c *Client) Local(dir string) *Client {
	if c.Name != claudeCode {
		return nil
	}
	local := *c
	local.keys = append([]string{localKey, dir}, c.keys...)
	return &local
}

const (
	claudeCode = "claude-code"
	localKey   = "projects" // of claude-code: directories, with servers of their own
)

// Environment is what the places of configuration files depend on.
type Environment struct {
	OS, Home string
	Project  string // its directory; "" for the configuration of a user
	Getenv   func(string) string
}

// expand returns a path without its variable, or "" if that has no value here.
func (e Environment) expand(path string) string {
	or := func(variable, dir string) string {
		if set := e.Getenv(variable); set != "" {
			return set
		}
		return filepath.Join(e.Home, dir)
	}
	dirs := map[string]string{
		"home": e.Home, "xdg": or("XDG_CONFIG_HOME", ".config"), "codex": or("CODEX_HOME", ".codex"),
		"claude": or("CLAUDE_CONFIG_DIR", ".claude"), "claude.json": or("CLAUDE_CONFIG_DIR", ""),
		"opencode": e.Getenv("OPENCODE_CONFIG"),
	}
	dirs["config"], dirs["zed"] = dirs["xdg"], filepath.Join(dirs["xdg"], "zed")
	switch e.OS {
	case "darwin":
		dirs["config"] = filepath.Join(e.Home, "Library/Application Support")
		dirs["zed"] = filepath.Join(e.Home, ".config/zed")
	case "windows":
		dirs["config"], dirs["local"] = or("APPDATA", "AppData/Roaming"), or("LOCALAPPDATA", "AppData/Local")
		dirs["zed"] = filepath.Join(dirs["config"], "Zed")
	}
	if path == "" {
		return ""
	}
	name, rest, variable := strings.Cut(strings.TrimPrefix(path, "{"), "}")
	if !variable {
		return filepath.Join(e.Project, path)
	}
	if dirs[name] == "" {
		return ""
	}
	return filepath.Join(dirs[name], rest)
}

// Find returns the configuration files of a client, that of its servers and that of its hooks if it has any: the first
// that exists, else the first whose directory does, else an error that names the places. Others that exist are returned
// too. In a project, the directory of the file may be missing.
func (c *Client) Find(e Environment) (files, others []string, err error) {
	places, settings, mark := c.user, c.settings[0], c.mark
	if e.Project != "" {
		places, settings, mark = c.project, c.settings[1], "."
	}
	var looked []string
	possible := ""
	for _, place := range places {
		path := e.expand(place)
		if path == "" {
			continue
		}
		looked = append(looked, path)
		dirs := []string{filepath.Dir(path)}
		if strings.Contains(place, "*") {
			dirs, _ = filepath.Glob(dirs[0]) //nolint:errcheck // the patterns are right
		}
		for _, dir := range dirs {
			file := filepath.Join(dir, filepath.Base(path))
			if _, err := os.Lstat(file); err == nil {
				others = append(others, file)
			} else if info, err := os.Stat(cmp.Or(e.expand(mark), dir)); err == nil && info.IsDir() {
				possible = cmp.Or(possible, file)
			}
		}
	}
	switch {
	case len(others) > 0:
		files, others = others[:1], others[1:]
	case possible != "":
		files = []string{possible}
	default:
		return nil, nil, fmt.Errorf("%s seems not to be installed: none of these exists, nor a directory for it: %s; "+
			"--file FILE names another place", c.Name, strings.Join(looked, ", "))
	}
	if settings != "" {
		files = append(files, e.expand(settings))
	}
	return files, others, nil
}

// HasProjects reports whether a project can have a configuration of its own.
func (c *Client) HasProjects() bool { return len(c.project) > 0 }
