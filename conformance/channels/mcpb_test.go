package channels

import (
	"archive/zip"
	"bytes"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/peers/peer"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// manifest is what the tests read of a bundle's manifest.json.
type manifest struct {
	Version string
	Icon    string
	Server  struct {
		EntryPoint string `json:"entry_point"`
		Config     struct {
			Command string
			Args    []string
			Env     map[string]string
		} `json:"mcp_config"`
	}
	Tools, Prompts []named
	Compatibility  struct{ Platforms []string }
	UserConfig     struct{ Budget struct{ Max int } } `json:"user_config"`
}

// named is a tool or a prompt.
type named struct{ Name, Description string }

// bundles returns the files of a release's bundles by system and processor, such as linux_amd64.
func bundles(t testing.TB) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, file := range expect.Value(filepath.Glob(filepath.Join(dist(t), "*.mcpb")))(t) {
		words := strings.Split(strings.TrimSuffix(filepath.Base(file), ".mcpb"), "_")
		found[strings.Join(words[len(words)-2:], "_")] = file
	}
	expect.MustEqual(t, len(found) > 0, true, "bundles in the release")
	return found
}

// ours returns the bundle for this system, or skips the test.
func ours(t testing.TB) string {
	t.Helper()
	all := bundles(t)
	for _, cpu := range []string{runtime.GOARCH, "universal"} {
		if file, ok := all[runtime.GOOS+"_"+cpu]; ok {
			return file
		}
	}
	t.Skipf("the release has no bundle for %s on %s", runtime.GOOS, runtime.GOARCH)
	return ""
}

// readZip returns the files of a zip archive by name.
func readZip(t testing.TB, file string) map[string]string {
	t.Helper()
	archive := expect.Value(zip.OpenReader(file))(t)
	defer archive.Close() //nolint:errcheck // it is only read
	files := map[string]string{}
	for _, f := range archive.File {
		r := expect.Value(f.Open())(t, f.Name)
		files[f.Name] = string(expect.Value(io.ReadAll(r))(t, f.Name))
	}
	return files
}

// mcpb runs the tool for bundles.
func mcpb(t testing.TB, args ...string) string {
	t.Helper()
	script := npmProgram(t, "@anthropic-ai/mcpb/dist/cli/cli.js")
	out, err := exec.Command(peer.Find(t, "node"), append([]string{script}, args...)...).CombinedOutput()
	expect.Must(t, err, "mcpb %s: %s", args, string(out))
	return string(out)
}

// TestBundleTool has the tool for bundles take apart and put together what the release makes.
func TestBundleTool(t *testing.T) {
	for system, file := range bundles(t) {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			dir, again := t.TempDir(), filepath.Join(t.TempDir(), "again.mcpb")
			mcpb(t, "unpack", file, dir)
			expect.Has(t, mcpb(t, "validate", filepath.Join(dir, "manifest.json")), "passes")
			files, unpacked := readZip(t, file), map[string]string{}
			for _, e := range expect.Value(os.ReadDir(dir))(t) {
				unpacked[e.Name()] = string(expect.Value(os.ReadFile(filepath.Join(dir, e.Name())))(t))
			}
			expect.Same(t, unpacked, files, "mcpb unpack")
			if promise.Full() { // which takes it 7 seconds
				mcpb(t, "pack", dir, again)
				expect.Same(t, readZip(t, again), files, "mcpb pack")
			}
		})
	}
	broken := filepath.Join(t.TempDir(), "manifest.json")
	expect.Must(t, os.WriteFile(broken, []byte(`{"manifest_version": "0.3", "name": "x"}`), 0o600))
	script := npmProgram(t, "@anthropic-ai/mcpb/dist/cli/cli.js")
	expect.Fails(t, exec.Command(peer.Find(t, "node"), script, "validate", broken).Run(), "exit status 1", "control")
}

// TestBundleFiles looks at the bundles of all systems.
func TestBundleFiles(t *testing.T) {
	for name, file := range bundles(t) {
		t.Run(name, func(t *testing.T) {
			system, _, _ := strings.Cut(name, "_")
			files := readZip(t, file)
			var m manifest
			expect.Must(t, json.Unmarshal([]byte(files["manifest.json"]), &m))
			want := []string{"LICENSE", "NOTICES.md", m.Icon, "launch.sh", "manifest.json", m.Server.EntryPoint}
			if system == "windows" {
				want = slices.DeleteFunc(want, func(name string) bool { return name == "launch.sh" })
				expect.Equal(t, m.Server.Config.Command, "${__dirname}/mcp-funnel.exe")
				expect.EqualList(t, m.Server.Config.Args, []string{"serve", "--", "${user_config.roots}"})
			} else {
				expect.Equal(t, m.Server.Config.Command, "/bin/sh")
				expect.EqualList(t, m.Server.Config.Args,
					[]string{"${__dirname}/launch.sh", "serve", "--", "${user_config.roots}"})
			}
			got := slices.Collect(maps.Keys(files))
			slices.Sort(got)
			slices.Sort(want)
			expect.EqualList(t, got, want)
			expect.EqualList(t, m.Compatibility.Platforms, []string{strings.Replace(system, "windows", "win32", 1)})
			program := bytes.NewReader([]byte(files[m.Server.EntryPoint]))
			var machine string
			switch system {
			case "darwin":
				for _, arch := range expect.Value(macho.NewFatFile(program))(t).Arches {
					machine += fmt.Sprint(arch.Cpu, " ")
				}
			case "windows":
				machine = fmt.Sprintf("%#x", expect.Value(pe.NewFile(program))(t).Machine)
			default:
				machine = fmt.Sprint(expect.Value(elf.NewFile(program))(t).Machine)
			}
			expect.Equal(t, machine, map[string]string{
				"darwin_universal": "CpuAmd64 CpuArm64 ", "windows_amd64": "0x8664", "windows_arm64": "0xaa64",
				"linux_amd64": "EM_X86_64", "linux_arm64": "EM_AARCH64",
			}[name])
		})
	}
}

// unpackBundle unpacks a bundle as Claude Desktop does, but with the given modes, and returns its directory.
func unpackBundle(t testing.TB, file string, mode fs.FileMode) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "Claude Extensions", "local.dxt.übung 用户's $HOME")
	expect.Must(t, os.MkdirAll(dir, 0o755))
	for name, text := range readZip(t, file) {
		expect.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), mode))
	}
	return dir
}

// startBundle returns the command with which a client starts an unpacked bundle.
func startBundle(t testing.TB, dir string, settings map[string]any) *exec.Cmd {
	t.Helper()
	npmProgram(t, "@anthropic-ai/mcpb")
	script := expect.Value(filepath.Abs("../npm/bundle.mjs"))(t)
	text := expect.Value(json.Marshal(settings))(t)
	out, err := exec.Command(peer.Find(t, "node"), script, dir, string(text)).Output()
	expect.Must(t, err)
	var config struct {
		Command string
		Args    []string
		Env     map[string]string
	}
	expect.Must(t, json.Unmarshal(out, &config), string(out))
	expect.Lacks(t, string(out), "${")
	cmd := exec.Command(config.Command, config.Args...)
	cmd.Dir, cmd.Env = t.TempDir(), []string{"HOME=" + t.TempDir(), "PATH=/usr/bin:/bin"}
	for name, value := range config.Env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	return cmd
}

// TestBundleStarts starts a bundle as a client does, whatever modes its files have got: 0600 is what Claude Desktop
// gives them on macOS, and a program that only its owner may start cannot start commands of another user.
func TestBundleStarts(t *testing.T) {
	file := ours(t)
	one, two := filepath.Join(t.TempDir(), "röots, 1"), filepath.Join(t.TempDir(), `-- 用户 $(2) "'`)
	for _, root := range []string{one, two} {
		expect.Must(t, os.Mkdir(root, 0o755))
		writeLines(t, root)
	}
	for _, c := range []struct {
		name  string
		mode  fs.FileMode
		roots []string
	}{
		{"one root", 0o600, []string{one}},
		{"two roots", 0o600, []string{one, two}},
		{"for its owner alone", 0o700, []string{one}},
		{"roots named as flags", 0o600, []string{"--root=none", "--allow-write", "--"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := unpackBundle(t, file, c.mode)
			for _, root := range c.roots {
				cmd := startBundle(t, dir, map[string]any{"roots": c.roots})
				if strings.HasPrefix(root, "--") {
					for _, name := range c.roots {
						expect.Must(t, os.Mkdir(filepath.Join(cmd.Dir, name), 0o755))
					}
					root = filepath.Join(cmd.Dir, root)
					writeLines(t, root)
				}
				firstReceipt(t, cmd, root)
			}
			if runtime.GOOS != "windows" {
				expect.Equal(t, expect.Value(os.Stat(filepath.Join(dir, "mcp-funnel")))(t).Mode(), 0o755)
			}
		})
	}
}

// TestBundleSays compares what a manifest lists with what the program of the bundle offers, and has settings reach it.
func TestBundleSays(t *testing.T) {
	dir := unpackBundle(t, ours(t), 0o600)
	var m manifest
	expect.Must(t, json.Unmarshal(expect.Value(os.ReadFile(filepath.Join(dir, "manifest.json")))(t), &m))
	for _, write := range []bool{false, true} {
		root := t.TempDir()
		settings := map[string]any{"roots": []string{root}, "budget": 1234}
		if write {
			settings["write"] = root
		}
		cmd := startBundle(t, dir, settings)
		cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":` +
			`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"channels","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
{"jsonrpc":"2.0","id":3,"method":"prompts/list"}
{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"run","arguments":{"command":"echo x >written"}}}
`)
		out := expect.Value(cmd.Output())(t)
		var offered struct {
			ServerInfo     struct{ Version string }
			Tools, Prompts []named
		}
		for line := range bytes.Lines(out) {
			var answer struct{ Result json.RawMessage }
			expect.Must(t, json.Unmarshal(line, &answer), string(line))
			expect.Must(t, json.Unmarshal(answer.Result, &offered), string(line))
		}
		if !write { // with it, the description of run says so
			run := &offered.Tools[len(offered.Tools)-1]
			parts := strings.Split(run.Description, "; ") // with the interpreters of this machine
			run.Description = parts[0] + "; " + parts[len(parts)-1]
			expect.Same(t, offered.Tools, m.Tools)
		}
		expect.Lacks(t, string(out), "no context window is known") // but a budget
		expect.Same(t, offered.Prompts, m.Prompts)
		expect.Equal(t, offered.ServerInfo.Version, "v"+m.Version)
		_, err := os.Stat(filepath.Join(root, "written"))
		expect.Equal(t, err == nil, write, "run has written, with write %v: %s", write, string(out))
	}
}

// TestBundleWithoutRoots starts a bundle for which no directory was chosen: also the one it is started in is no root.
func TestBundleWithoutRoots(t *testing.T) {
	dir := unpackBundle(t, ours(t), 0o600)
	for name, settings := range map[string]map[string]any{"not set": {}, "none": {"roots": []string{}}} {
		cmd := startBundle(t, dir, settings)
		writeLines(t, cmd.Dir)
		cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":` +
			`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"channels","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"search","arguments":{"pattern":"line"}}}
`)
		out := expect.Value(cmd.Output())(t, name)
		expect.Has(t, string(out), "no directory was granted to this server", name)
	}
}

// TestBundleBudget starts a bundle with the largest budget that a client lets its user enter, and with a larger one.
func TestBundleBudget(t *testing.T) {
	dir := unpackBundle(t, ours(t), 0o600)
	var m manifest
	expect.Must(t, json.Unmarshal(expect.Value(os.ReadFile(filepath.Join(dir, "manifest.json")))(t), &m))
	most := m.UserConfig.Budget.Max
	expect.OK(t, startBundle(t, dir, map[string]any{"budget": most}).Run())
	expect.Fails(t, startBundle(t, dir, map[string]any{"budget": most + 1}).Run(), "exit status 2", "a larger one")
}

// TestLauncher starts the launcher of a bundle by each shell there is, where PATH has no program: a program that nobody
// may execute yet, and some that cannot start, as after a scanner for viruses.
func TestLauncher(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no launcher")
	}
	const again = "is missing, empty or not a file: install the bundle again"
	for _, c := range []struct {
		name   string
		change func(program string) error
		want   string // of stderr
	}{
		{"mode 0600", func(string) error { return nil }, ""},
		{"missing", os.Remove, again},
		{"empty", func(program string) error { return os.Truncate(program, 0) }, again},
		{"directory", func(program string) error { return errors.Join(os.Remove(program), os.Mkdir(program, 0o755)) }, again},
		{"noexec", nil, "cannot be made executable: run chmod 755 on it, or mount its file system without noexec"},
	} {
		for _, shell := range []string{"sh", "dash", "bash", "zsh"} {
			t.Run(c.name+" "+shell, func(t *testing.T) {
				path, err := exec.LookPath(shell)
				if err != nil {
					t.Skip(err)
				}
				dir := filepath.Join(t.TempDir(), "local.dxt.übung 用户's $HOME")
				program, launcher := filepath.Join(dir, "mcp-funnel"), filepath.Join(dir, "launch.sh")
				expect.Must(t, os.Mkdir(dir, 0o755))
				text := expect.Value(os.ReadFile("../../packaging/mcpb/launch.sh"))(t)
				expect.Must(t, os.WriteFile(launcher, text, 0o600))
				expect.Must(t, os.WriteFile(program, []byte("#!/bin/sh\nprintf '%s|' \"$PATH\" \"$@\"\n"), 0o600))
				cmd := exec.Command(path, launcher, "serve", "--", "a  b")
				if c.change != nil {
					expect.Must(t, c.change(program))
				} else {
					cmd = mountNoexec(t, dir, cmd)
				}
				want := []string{program, c.want}
				if c.name == "noexec" && shell == "zsh" { // whose -x looks at the mode alone
					want = []string{"permission denied: "}
				}
				var out, log bytes.Buffer
				cmd.Env, cmd.Stdout, cmd.Stderr = []string{"PATH=/nosuch", "HOME=" + t.TempDir()}, &out, &log
				if c.want == "" {
					expect.Must(t, cmd.Run(), &log)
					expect.Equal(t, out.String(), "/nosuch|serve|--|a  b|")
					return
				}
				expect.Fails(t, cmd.Run(), "exit status 126")
				expect.Equal(t, out.String(), "")
				expect.Contains(t, log.String(), want...)
				expect.Equal(t, strings.Count(log.String(), "\n"), 1, "lines: %s", &log)
			})
		}
	}
}

// mountNoexec returns a command that runs in a namespace in which no program of a directory may be started.
func mountNoexec(t testing.TB, dir string, cmd *exec.Cmd) *exec.Cmd {
	t.Helper()
	const script = `PATH=$1 && mount --bind "$2" "$2" && mount -o remount,bind,noexec "$2" && shift 2 && exec "$@"`
	if out, err := exec.Command("unshare", "-rm", "true").CombinedOutput(); err != nil {
		t.Skipf("nothing can be mounted: unshare: %v, %s", err, out)
	}
	words := []string{"-rm", "/bin/sh", "-c", script, "sh", os.Getenv("PATH"), dir}
	return exec.Command("unshare", append(words, cmd.Args...)...)
}
