package channels

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// installFiles installs the packages from files, with a registry that does not answer. It returns where they are, and
// commands that start the program with the package's script and without.
func installFiles(t *testing.T) (modules string, script, direct func(words ...string) *exec.Cmd) {
	t.Helper()
	r := newRegistry(t)
	r.Close()
	dir, command := nodeHome(t, r)
	words := []string{"npm", "install", "--offline"}
	for name, p := range r.packages {
		if name == "mcp-funnel" || strings.HasPrefix(name, "mcp-funnel-linux-"+nodeCPU()) {
			words = append(words, p.file)
		}
	}
	out, err := command(words...).CombinedOutput()
	expect.Must(t, err, string(out))
	modules = filepath.Join(dir, "node_modules")
	program := filepath.Join(modules, "mcp-funnel-linux-"+nodeCPU(), "mcp-funnel")
	return modules, func(words ...string) *exec.Cmd {
			return command(append([]string{filepath.Join(modules, ".bin/mcp-funnel")}, words...)...)
		}, func(words ...string) *exec.Cmd {
			return command(append([]string{program}, words...)...)
		}
}

// ended is how a command ended, as a shell says it.
func ended(cmd *exec.Cmd) int {
	_ = cmd.Wait()
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// TestScriptOfPackage compares the program behind the npm package's script with the program alone.
func TestScriptOfPackage(t *testing.T) {
	modules, script, direct := installFiles(t)
	root := t.TempDir()
	writeLines(t, root)
	t.Run("first receipt", func(t *testing.T) { firstReceipt(t, script("serve", root), root) })

	for _, words := range [][]string{
		{"version"}, {"nonsense"}, {"call", "read", "path=/none"}, {"call", "read", "path=" + root + "/lines.txt"}, {"man"},
		{"check", "a file with ö, \" and $HOME"},
	} {
		t.Run(strings.Join(words, " "), func(t *testing.T) {
			var got, want [3]string
			for _, run := range []func(...string) *exec.Cmd{script, direct} {
				var out, err bytes.Buffer
				cmd := run(words...)
				cmd.Stdout, cmd.Stderr = &out, &err
				expect.Must(t, cmd.Start())
				code := ended(cmd)
				got, want = want, [3]string{strconv.Itoa(code), out.String(), err.String()}
			}
			expect.Equal(t, got, want, "code, stdout, stderr with and without the script")
		})
	}

	// started returns the streams of a server that has answered, and the program's process: the script's only child.
	started := func(t *testing.T, cmd *exec.Cmd) (in io.WriteCloser, out *bufio.Reader, program int) {
		t.Helper()
		in, read := expect.Value(cmd.StdinPipe())(t), expect.Value(cmd.StdoutPipe())(t)
		expect.Must(t, cmd.Start())
		kill := time.AfterFunc(answerLimit, func() { _ = cmd.Process.Kill() })
		t.Cleanup(func() {
			kill.Stop()
			_ = cmd.Process.Kill()
		})
		out = bufio.NewReader(read)
		fmt.Fprintln(in, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
		expect.Value(out.ReadString('\n'))(t)
		program = cmd.Process.Pid
		if exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", program)); filepath.Base(exe) != "mcp-funnel" {
			// Threads start processes: /proc lists them by thread.
			var children []string
			for _, list := range expect.Value(filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", program)))(t) {
				children = append(children, strings.Fields(string(expect.Value(os.ReadFile(list))(t)))...)
			}
			expect.MustEqual(t, len(children), 1, "processes of the script")
			program = expect.Value(strconv.Atoi(children[0]))(t)
		}
		return in, out, program
	}

	for _, s := range []syscall.Signal{
		syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGKILL,
	} {
		for _, to := range []string{"script", "group", "program"} {
			if s == syscall.SIGKILL && to != "program" {
				continue // no script can pass it on
			}
			t.Run(fmt.Sprint(s, " to the ", to), func(t *testing.T) {
				var codes []int
				for _, run := range []func(...string) *exec.Cmd{script, direct} {
					cmd := run("serve", root)
					cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
					var log bytes.Buffer
					cmd.Stderr = &log
					in, out, program := started(t, cmd)
					target := map[string]int{"script": cmd.Process.Pid, "group": -cmd.Process.Pid, "program": program}[to]
					expect.Must(t, syscall.Kill(target, s))
					if s == syscall.SIGUSR1 || s == syscall.SIGUSR2 { // which the program ignores
						fmt.Fprintln(in, `{"jsonrpc":"2.0","id":2,"method":"ping"}`)
						expect.Has(t, expect.Value(out.ReadString('\n'))(t), `"id":2`)
						expect.Must(t, in.Close())
					}
					_, _ = io.Copy(io.Discard, out)
					codes = append(codes, ended(cmd))
					expect.Lacks(t, log.String(), "Debugger")
				}
				expect.Equal(t, codes[0], codes[1], "code with and without the script")
			})
		}
	}

	t.Run("a killed script", func(t *testing.T) {
		cmd := script("serve", root)
		_, out, program := started(t, cmd)
		expect.Equal(t, program != cmd.Process.Pid, true, "two processes")
		expect.Must(t, cmd.Process.Kill())
		_, err := io.Copy(io.Discard, out) // to its end: nobody holds the pipe any more
		expect.OK(t, err)
	})

	t.Run("nobody reads", func(t *testing.T) {
		var codes []int
		for _, run := range []func(...string) *exec.Cmd{script, direct} {
			r, w, err := os.Pipe()
			expect.Must(t, err)
			expect.Must(t, r.Close())
			cmd := run("man")
			cmd.Stdout = w
			expect.Must(t, cmd.Start())
			expect.Must(t, w.Close())
			codes = append(codes, ended(cmd))
		}
		expect.Equal(t, codes[0], codes[1])
	})

	refuses := func(t *testing.T, cmd *exec.Cmd, want ...string) {
		t.Helper()
		var out, err bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &err
		expect.Fails(t, cmd.Run(), "exit status 1")
		expect.Equal(t, out.String(), "")
		expect.Contains(t, err.String(), want...)
	}
	t.Run("unknown processor", func(t *testing.T) {
		preload := filepath.Join(t.TempDir(), "preload.cjs")
		expect.Must(t, os.WriteFile(preload, []byte(`Object.defineProperty(process, "arch", {value: "mips"})`), 0o600))
		cmd := script("version")
		cmd.Env = append(slices.Clip(cmd.Env), "NODE_OPTIONS=--require="+preload)
		refuses(t, cmd, "no program for linux-mips", "mcp-funnel-linux-"+nodeCPU(), "go install")
	})
	platform := filepath.Join(modules, "mcp-funnel-linux-"+nodeCPU())
	t.Run("no right to execute", func(t *testing.T) {
		expect.Must(t, os.Chmod(filepath.Join(platform, "mcp-funnel"), 0o644))
		refuses(t, script("version"), platform, "cannot be started", "EACCES", "chmod 755")
	})
	missing := []string{filepath.Base(platform) + " is missing: install mcp-funnel again", "without --omit=optional"}
	t.Run("platform package elsewhere", func(t *testing.T) {
		cmd, other := script("version"), t.TempDir()
		expect.Must(t, os.Mkdir(filepath.Join(other, ".node_modules"), 0o755))
		for _, dir := range []string{other, filepath.Join(other, ".node_modules")} {
			expect.Must(t, os.CopyFS(filepath.Join(dir, filepath.Base(platform)), os.DirFS(platform)))
		}
		expect.Must(t, os.RemoveAll(platform))
		cmd.Env = append(slices.Clip(cmd.Env), "NODE_PATH="+other, "HOME="+other)
		refuses(t, cmd, missing...)
		expect.Must(t, os.CopyFS(platform, os.DirFS(filepath.Join(other, filepath.Base(platform)))))
	})
	t.Run("platform package of another version", func(t *testing.T) {
		about := filepath.Join(platform, "package.json")
		var p struct{ Version string }
		text := expect.Value(os.ReadFile(about))(t)
		expect.Must(t, json.Unmarshal(text, &p))
		changed := bytes.Replace(text, []byte(p.Version), []byte("9.8.7"), 1)
		expect.Must(t, os.WriteFile(about, changed, 0o600))
		refuses(t, script("version"), "has version 9.8.7, not "+p.Version+": install mcp-funnel again")
	})
	t.Run("platform package missing", func(t *testing.T) {
		expect.Must(t, os.RemoveAll(platform))
		refuses(t, script("version"), missing...)
	})
}

// TestOmitOptional installs the package without its platform package, as some users have npm set up.
func TestOmitOptional(t *testing.T) {
	r := newRegistry(t)
	_, command := nodeHome(t, r)
	cmd := command("npx", "-y", "mcp-funnel", "version")
	cmd.Env = append(cmd.Env, "npm_config_omit=optional")
	out, err := cmd.CombinedOutput()
	expect.Fails(t, err, "exit status 1")
	expect.Has(t, string(out), "without --omit=optional")
}
