package conformance

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// estate is a root with what an agent would need to widen its own rights: the store and the configuration in use,
// configurations of clients, hooks, and files that look like configurations of this server.
type estate struct{ root, store, config string }

const estateSecret = "FUNNEL_CANARY=environment-" + canaryText

func settle(t testing.TB) estate {
	t.Helper()
	parent := expect.Value(filepath.EvalSymlinks(t.TempDir()))(t)
	e := estate{root: parent + "/root"}
	e.store, e.config = e.root+"/state", e.root+"/conf/funnel.yaml"
	expect.Must(t, os.MkdirAll(e.store, 0o700))
	write(t, e.store+"/"+canaryName, canaryText+"\n")
	write(t, e.config, "# "+canaryText+"\nlarge-lines: 50\n")
	write(t, e.root+"/ok.txt", "an inside word\n")
	// None of these is ever taken as a configuration.
	for _, name := range []string{
		"mcp-funnel.yaml", ".mcp-funnel.yaml", "config.yaml", ".mcp-funnel/config.yaml", ".config/mcp-funnel/config.yaml",
		"mcp-funnel.yml", ".env", ".envrc", ".jq", "m.jq", "m.json",
	} {
		write(
			t, e.root+"/"+
				name, "large-lines: 1\nlarge-chars: 1\nroot: [/]\nMCP_FUNNEL_LARGE_LINES=1\nexport MCP_FUNNEL_ROOT=/\n",
		)
	}
	for _, name := range []string{
		".mcp.json", ".vscode/mcp.json", ".cursor/mcp.json", ".claude/settings.json", ".git/hooks/pre-commit", ".git/config",
		".envrc",
	} {
		write(t, e.root+"/"+name, "{}\n")
	}
	for name, target := range map[string]string{
		"to-store":      "state",
		"to-store-abs":  e.store,
		"to-config":     "conf/funnel.yaml",
		"to-config-abs": e.config,
		"via/up":        "../state",
		"to-conf":       "conf",
		"chain":         "to-store",
		"file-in-store": "state/" + canaryName,
	} {
		expect.Must(t, os.MkdirAll(filepath.Dir(e.root+"/"+name), 0o755))
		symlink(t, target, e.root+"/"+name)
	}
	expect.Must(t, os.Link(e.config, e.root+"/config-hard"))
	return e
}

func (e estate) flags() []string {
	return []string{"--root", e.root, "--store", e.store, "--config", e.config, "--min-free", "0"}
}

// denied are names of the store and of the configuration.
func (e estate) denied() []string {
	return []string{
		"state", "state/" + canaryName, "./state//" + canaryName, "state/../state/" + canaryName, e.store,
		e.store + "/" + canaryName, "to-store", "to-store/", "to-store/" + canaryName, "to-store-abs/" + canaryName,
		"via/up/" + canaryName, "chain/" + canaryName, "chain/",
		"file-in-store", "state/quota", "state/trace", "state/observations", "to-store/trace", "conf/funnel.yaml",
		"to-config", "to-config-abs", "config-hard", "to-conf/funnel.yaml", e.config, e.root + "/config-hard", "state/*",
		"state/**", "**/" + canaryName, "conf/*", "to-store/*", "{state,conf}/*", "**",
		"moved/" + canaryName, "moved", "moved-config", "moved-link/" + canaryName,
	}
}

// try makes one of so many calls on what is denied, and counts what is shown of it. Half way the store and the
// configuration are moved.
func (e estate) try(t testing.TB, program string, wrap []string, every int, fail func(string)) (cases int) {
	c := launch{program: program, wrap: wrap, env: append(environment(t), estateSecret), flags: e.flags()}.stdio(t)
	for _, moved := range []bool{false, true} {
		if moved && wrap == nil {
			for from, to := range map[string]string{e.store: "moved", e.config: "moved-config"} {
				expect.Must(t, os.Rename(from, e.root+"/"+to))
			}
			symlink(t, "moved", e.root+"/moved-link")
		}
		for place, p := range places {
			for i, name := range e.denied() {
				if (place+i)%every != 0 {
					continue
				}
				if wrap != nil {
					name = "mount/" + name
				}
				cases++
				a := expect.Value(c.call(p.tool, p.args(name)))(t, "%s %s", p.tool, name)
				if leak := leaks(name, a); leak != "" {
					fail(fmt.Sprintf("%s %q (moved: %t) shows %s: %.300q", p.tool, name, moved, leak, a.text()))
				}
			}
		}
	}
	return cases
}

// fingerprint is every file below a directory: its name, mode and content.
func fingerprint(t testing.TB, dir string, without ...string) string {
	t.Helper()
	h := sha256.New()
	expect.Must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if slices.Contains(without, path) {
			return filepath.SkipDir
		}
		var at unix.Stat_t
		if err := unix.Lstat(path, &at); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(h, "%s %o %d\n", path, at.Mode, at.Nlink)
		if d.Type().IsRegular() {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			_, _ = h.Write(b)
			_, _ = fmt.Fprintln(h, at.Mtim)
		}
		return nil
	}))
	return fmt.Sprintf("%x", h.Sum(nil))
}

// The agent cannot widen its own rights: it reaches neither the store nor the configuration by any name, no tool
// writes, and nothing that stands in a root or in a call is taken as a setting.
func TestS26TheAgentCannotWidenItsRights(t *testing.T) {
	drivesOnly(t)
	t.Parallel()
	var faults []string
	fail := func(what string) { faults = append(faults, what) }
	e := settle(t)
	before := fingerprint(t, e.root, e.store)
	cases := e.tryEnvironment(t, fail) + e.tryConfigurations(t, fail) + tryCatalog(t, fail)
	if after := fingerprint(t, e.root, e.store); after != before { // before anything is moved
		fail("a call has changed a file of the root")
	}
	cases += 1 + e.try(t, binary(t), nil, promise.Size(2, 1), fail)
	mounts, told := tryMounts(t, fail)
	cases += mounts

	report(t, faults)
	control := 0
	settle(t).try(t, weak.binary(t), nil, 7, func(string) { control++ })
	promise.Kept(t, promise.Proof{Promise: "S26", Cases: cases, Failures: len(faults), Control: control, Figures: told})
}

// tryMounts mounts store and configuration into a root: another name that no link shows.
func tryMounts(t testing.TB, fail func(string)) (cases int, told string) {
	const inside = `mount --bind "$1" "$2" && shift 2 && exec "$@"`
	probe := exec.CommandContext(
		t.Context(), "unshare", "-Urm", "sh", "-c", inside, "sh", t.TempDir(), t.TempDir(), "true",
	)
	if out, err := probe.CombinedOutput(); err != nil {
		return 0, fmt.Sprintf("bind mounts not tried, as none can be made here (%.80q)", out)
	}
	e := settle(t)
	// The root granted is another directory, into which all of the estate is mounted.
	other := filepath.Dir(e.root) + "/other"
	write(t, other+"/ok.txt", "an inside word\n")
	expect.Must(t, os.Mkdir(other+"/mount", 0o755))
	mounted := estate{root: other, store: e.store, config: e.config}
	return mounted.try(
		t, binary(t), []string{"unshare", "-Urm", "sh", "-c", inside, "sh", e.root, other + "/mount"}, promise.Size(2, 1),
		fail,
	), "bind mounts tried"
}

// tryEnvironment asks jq and the others for the environment, for modules and for files.
func (e estate) tryEnvironment(t testing.TB, fail func(string)) (cases int) {
	c := launch{env: append(environment(t), estateSecret, "HOME="+e.root), flags: e.flags()}.stdio(t)
	for n, filter := range []string{
		"env", "$ENV", "env.FUNNEL_CANARY", "$ENV.FUNNEL_CANARY", "env|tojson", "[env[]]", `env["HOME"]`, "input", "[inputs]",
		"input_filename", "$__prog_args", "$ARGS", "$__loc__", `import "m" as m; m::x`, `include "m"; .`,
		`import "m" as $m; $m`, `import "./m" as m {search: "./"}; .`,
		`import "m" as $m {search: "/etc"}; $m`, `"m"|modulemeta`, "get_search_list", "$HOME", `"\(env)"`, `@sh "cat \(env)"`,
		"debug", "stderr", "halt", "halt_error", "input_line_number", `getpath(["env"])`, `try error(env) catch .`,
		"limit(1;env)", "now|localtime", `"~/.jq"|input`,
	} {
		// the second goes to the worker
		for i, program := range []string{filter, "reduce range(1000) as $i (0;.+1)|" + filter} {
			if i > 0 && n%promise.Size(3, 1) != 0 {
				continue
			}
			cases++
			a, err := c.call("jq", map[string]any{"source": "ok.txt", "filter": program, "text": true})
			expect.Must(t, err, "jq %s", program)
			if strings.Contains(a.text(), canaryText) || strings.Contains(a.text(), e.store) ||
				strings.Contains(a.text(), "large-lines") {
				fail(fmt.Sprintf("jq %q shows %.300q", program, a.text()))
			}
		}
	}
	for _, p := range places {
		for _, name := range []string{"$FUNNEL_CANARY", "${HOME}/conf/funnel.yaml", "%FUNNEL_CANARY%", "~/conf/funnel.yaml"} {
			cases++
			if a, err := c.call(p.tool, p.args(name)); err != nil || strings.Contains(a.text(), canaryText) {
				fail(fmt.Sprintf("%s %s: %.200q %v", p.tool, name, a.text(), err))
			}
		}
	}
	return cases
}

// tryConfigurations holds that no file of a root is taken as a configuration, wherever the server is started, and
// that one is where it is named.
func (e estate) tryConfigurations(t testing.TB, fail func(string)) (cases int) {
	large := filepath.Dir(e.root) + "/large.yaml"
	write(t, large, "large-chars: 1\nlarge-lines: 1\nreceipt-tokens: 160\nmin-saving: 1\n")
	write(t, filepath.Dir(e.root)+"/lines.txt", strings.Repeat("one of some lines \n", 24))
	for _, named := range []bool{false, true} {
		args := []string{
			"--store", e.store, "--root", filepath.Dir(e.root), "--min-free", "0", "call", "search", "pattern=some",
			"path=lines.txt",
		}
		if named {
			args = append([]string{"--config", large}, args...)
		}
		env := append(environment(t), "HOME="+e.root, "XDG_CONFIG_HOME="+e.root+"/.config", "PWD="+e.root)
		out, errs, code := launch{dir: e.root, env: env, flags: args}.output(t)
		if cases++; code != 0 || strings.Contains(out, "LARGE OUTPUT") != named {
			fail(fmt.Sprintf("a configuration is named: %t: exit code %d: %.300q %.300q", named, code, out, errs))
		}
	}
	return cases
}

// tryCatalog holds that no tool of the default set writes, or says that it does.
func tryCatalog(_ testing.TB, fail func(string)) (cases int) {
	for _, tool := range server.Catalog(server.Parts{}) {
		cases++
		if tool.Effect != tools.ReadOnly || tool.OpenWorld {
			fail(tool.Name + " may change the world, and is in the default set")
		}
	}
	return cases
}
