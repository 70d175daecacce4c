package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// knownSettings returns the settings that a configuration file may have.
func knownSettings(t testing.TB) map[string]*kong.Flag {
	t.Helper()
	var c struct{ Settings }
	parser := expect.Value(kong.New(&c, kong.DefaultEnvars("MCP_FUNNEL"), kong.ExplicitGroups(Groups)))(t)
	return settingNames(parser.Model)
}

// configOf writes a configuration file and reads it as the program does.
func configOf(t *testing.T, text string) (*FileResolver, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "c")
	expect.Must(t, os.WriteFile(file, []byte(text), 0o600))
	r := &FileResolver{}
	return r, r.read(file, knownSettings(t))
}

// A comment of JSON in YAML would be part of a key or of a value: it is refused with its place.
func TestCommentsOfJSON(t *testing.T) {
	const want = ": a comment is written with # here"
	for text, place := range map[string]string{
		"mcpServers: {\n  // \"old\": {\"command\": \"x\"},\n  \"new\": {\"command\": \"y\"}\n}\n":   "2:3",
		"upstreams: {\n  /* two\n words */ \"new\": {\"command\": \"y\"}\n}\n":                       "2:3",
		"mcpServers: {\n  \"a\": {\"command\": \"y\", // note\n \"args\": []}\n}\n":                  "2:25",
		"mcpServers: {\n  \"a\": {\"command\": \"y\",\n // \"env\": {},\n \"args\": []}\n}\n":        "3:2",
		"mcpServers: {\n  \"a\": {\"command\": \"y\" // note\n }\n}\n":                               "2:24",
		"mcpServers: {\n  \"a\": {\"command\": \"y\" /* note */, \"args\": [] }\n}\n":                "2:24",
		"mcpServers: {\"a\": {\"command\": \"y\", \"args\": [\"a\",\n // b\n \"c\"]}}\n":             "2:2",
		"mcpServers: {\"a\": {\"command\": \"y\", \"args\": [\"a\", \"b\", // note\n]}}\n":           "1:55",
		"mcpServers: {\n  \"a\": {\"command\": \"y\"}, // note\n}\n":                                 "2:26",
		"mcpServers: { // note\n  \"a\": {\"command\": \"y\"}\n}\n":                                  "1:15",
		"mcpServers: // note\n  a: {command: y}\n":                                                   "1:13",
		"mcpServers:\n  // note\n  a: {command: y}\n":                                                "2:3",
		"mcpServers:\n  // old: {command: x}\n  a: {command: y}\n":                                   "2:3",
		"mcpServers:\n  a:\n    // command: x\n    command: y\n":                                     "3:5",
		"mcpServers:\n  a:\n    command: y\n    args:\n    - a\n    // - b\n    - c\n":               "6:5",
		"mcpServers:\n  a: {command: y, env: {A: /* b */ \"c\"}}\n":                                  "2:28",
		"mcpServers: {? //a : {command: y}}\n":                                                       "1:16",
		"// note\nmcpServers:\n  a: {command: y}\n":                                                  "1:1",
		"quota: 1GiB\n// large-lines: 9\n":                                                           "2:1",
		"mcpServers: {a: {command: y}} // note\n":                                                    "1:31",
		"{\n // mine\n \"quota\": \"1GiB\",\n \"mcpServers\": {\"a\" {\"command\": \"y\"}}}\n":       "",
		"{\n // mine\n \"quota\": \"1GiB\",\n \"mcpServers\": {\"a\": {command: \"y\"}}}\n":          "",
		"// mine\n/* two */ {\n // x\n \"mcpServers\": {\"a\": {\"command\": \"y\", 'args': []}}}\n": "",
	} {
		_, err := configOf(t, text)
		switch {
		case err == nil:
			t.Errorf("%s\nis taken", text)
		case place != "" && !strings.Contains(err.Error(), "c:"+place+want):
			t.Errorf("%s\n%s, not at %s", text, err, place)
		case place == "" && (strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "c:4:")):
			t.Errorf("%s\n%s", text, err)
		}
	}
	for _, text := range []string{
		"mcpServers: {a: {command: y, args: [\"// x\", '/* x', https://x//y, a // b]}} # note\n",
		"mcpServers:\n  a:\n    command: y\n    args:\n    - |\n      // x\n    - >-\n      /* y\n", "root: //x/y\n",
		"// mine\n{ /* two */ \"mcpServers\": {\"a\": {\"command\": \"y\",},}, // x\n}\n// end\n",
	} {
		expect.OK(t, expect.Err(configOf(t, text)), text)
	}
}
