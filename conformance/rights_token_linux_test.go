package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// toolCaller makes tools' calls, whatever the transport.
type toolCaller interface {
	call(tool string, args any) (answer, error)
}

// tokenHouse is a root in which all stands that a token can be read from: a token file, the store with the token that
// is made there, and links to both and to the environment of the process.
type tokenHouse struct {
	root, store, file string
	inFile, inEnv     string // the tokens
}

func newTokenHouse(t testing.TB) tokenHouse {
	t.Helper()
	parent := expect.Value(filepath.EvalSymlinks(t.TempDir()))(t)
	h := tokenHouse{
		root:   parent + "/root",
		inFile: strings.Repeat("file-token-", 4),
		inEnv:  strings.Repeat("variable-token-", 3),
	}
	h.store, h.file = h.root+"/state", h.root+"/conf/tokens"
	write(t, h.root+"/ok.txt", "an inside word\n")
	h.writeTokens(t)
	for name, target := range map[string]string{
		"to-file":    "conf/tokens",
		"to-conf":    "conf",
		"to-made":    "state/state/http-token",
		"to-state":   "state/state",
		"chain":      "to-file",
		"to-environ": "/proc/self/environ",
		"to-proc":    "/proc/self",
	} {
		symlink(t, target, h.root+"/"+name)
	}
	return h
}

// writeTokens puts the token file in its place, as an editor does: a new file under the old name.
func (h tokenHouse) writeTokens(t testing.TB) {
	t.Helper()
	write(t, h.file+".new", "# a comment that ends in word\nanna: "+h.inFile+"\n")
	expect.Must(t, os.Chmod(h.file+".new", 0o600))
	expect.Must(t, os.Rename(h.file+".new", h.file))
}

// makeToken has the binary make the token of the store, and gives it.
func (h tokenHouse) makeToken(t testing.TB) string {
	t.Helper()
	s := launch{flags: h.flags()}.http(t)
	path, _ := strings.CutPrefix(s.told, "the token is in ")
	made := expect.Value(os.ReadFile(path))(t)
	expect.MustEqual(t, path, h.store+"/state/http-token", "the token is in")
	s.end(syscall.SIGTERM)
	return strings.TrimSpace(string(made))
}

func (h tokenHouse) flags(more ...string) []string {
	return append([]string{"--root", h.root, "--store", h.store, "--min-free", "0"}, more...)
}

// names are those of what holds a token.
func (h tokenHouse) names() []string {
	return []string{
		"conf/tokens", "./conf//tokens", "conf/../conf/tokens", h.file, "to-file", "to-conf/tokens", "chain", "file-hard",
		"conf/*", "to-conf/*", "**/tokens", "**",
		"state/state/http-token", h.store + "/state/http-token", "to-made", "to-state/http-token", "state/state/*",
		"to-state/*", "**/http-token", "state/**", "made-hard", "made.txt", "*.txt", "made-*",
		"to-environ", "to-proc/environ", "/proc/self/environ", "to-proc/*",
	}
}

// tokenFilters are jq programs that look for an environment or for files.
var tokenFilters = []string{
	"env", "$ENV", "env.MCP_FUNNEL_TOKEN", "$ENV.MCP_FUNNEL_TOKEN", `[env[]]|join(" ")`, `try error(env) catch .`,
	`"conf/tokens"|input`, `import "conf/tokens" as $m {search: "."}; $m`, `reduce range(1000) as $i (0;.+1)|env`,
	`reduce range(1000) as $i (0;.+1)|$ENV`,
}

// try makes every call on every name, and tells of each that shows one of the tokens.
func (h tokenHouse) try(
	t testing.TB, way string, c toolCaller, tokens []string, share int, fail func(string),
) (cases int) {
	t.Helper()
	one := func(tool string, args map[string]any) {
		cases++
		a := expect.Value(c.call(tool, args))(t, "%s: %s %v", way, tool, args)
		for _, token := range tokens {
			if said := string(a.result) + a.text(); strings.Contains(said, token[:30]) {
				fail(fmt.Sprintf("%s: %s %v shows a token: %.200q", way, tool, args, a.text()))
			}
		}
	}
	for i, name := range h.names() {
		for at, p := range places {
			if (i+at)%share == 0 {
				one(p.tool, p.args(name))
			}
		}
	}
	for _, filter := range tokenFilters {
		one("jq", map[string]any{"source": "ok.txt", "filter": filter, "text": true})
	}
	one("find", map[string]any{"all": true, "show": "stat"})
	one("search", map[string]any{"pattern": "token|word", "all": true, "context": 5})
	return cases
}

// No tool reads a token that lets a client in: not of the token file, not the one that is made and kept in the store,
// not of the environment, over stdio and over HTTP.
func TestS26NoToolReadsTheToken(t *testing.T) {
	drivesOnly(t)
	t.Parallel()
	var faults []string
	fail := func(what string) { faults = append(faults, what) }
	share := promise.Size(2, 1)
	h := newTokenHouse(t)
	made := h.makeToken(t)
	for name, target := range map[string]string{
		"file-hard": h.file,
		"made-hard": h.store + "/state/http-token",
		"made.txt":  h.store + "/state/http-token",
	} {
		expect.Must(t, os.Link(target, h.root+"/"+name))
	}
	tokens := []string{h.inFile, h.inEnv, made}
	inEnv := append(environment(t), "MCP_FUNNEL_TOKEN="+h.inEnv)
	cases := 0
	both := launch{env: inEnv, flags: h.flags("--token-file", h.file)}.stdio(t) // where nobody asks for a token
	cases += h.try(t, "stdio", both, tokens, share, fail)
	for way, l := range map[string]struct {
		launch
		token string
	}{
		"HTTP, token file": {launch{flags: h.flags("--token-file", h.file)}, h.inFile},
		"HTTP, variable":   {launch{env: inEnv, flags: h.flags()}, h.inEnv},
		"HTTP, made":       {launch{flags: h.flags()}, made},
	} {
		s := l.http(t)
		hidden := tokens
		if way != "HTTP, token file" { // the file is nothing to a server that was not told of it
			hidden = tokens[1:]
		}
		cases += h.try(t, way, s.open(l.token), hidden, share, fail)
		if log := s.end(syscall.SIGTERM); strings.Contains(log, l.token) {
			fail(way + ": the log holds the token")
		}
	}

	h.writeTokens(t) // another file, of the same name; the old one has its other name still
	cases += h.try(t, "stdio, token file replaced", both, tokens, share, fail)

	report(t, faults)
	// The control: what is denied is known by its name alone, and links lead to it.
	control := 0
	weakened := launch{program: weak.binary(t), env: inEnv, flags: h.flags("--token-file", h.file)}.stdio(t)
	h.try(t, "weak", weakened, tokens, 2, func(string) { control++ })
	promise.Keptf(t, promise.Proof{Promise: "S26", Cases: cases, Failures: len(faults), Control: control},
		"a token file, the token made in the store and one of the environment, over stdio and HTTP")
}
