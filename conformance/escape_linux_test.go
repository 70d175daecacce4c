package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// outside is what the attempts of a command try to reach.
type outside struct {
	root, dir, socket, probe string
	tcp, abstract            string
	server                   int
}

// program returns the path of a copy of the server that any user may run.
func (o outside) program() string { return filepath.Join(o.dir, "mcp-funnel") }

// attempts returns shell commands that succeed if the command reached what was not granted: testdata/attempts.txt.
func (o outside) attempts(t testing.TB) map[string]string {
	t.Helper()
	text := expect.Value(os.ReadFile(filepath.Join("testdata", "attempts.txt")))(t)
	fill := strings.NewReplacer("ESCAPE", roleKey+"=escape "+o.probe, "ROOT", o.root, "OUTSIDE", o.dir, "SOCKET", o.socket,
		"TCP", o.tcp, "ABSTRACT", o.abstract, "SERVER", strconv.Itoa(o.server))
	list := map[string]string{}
	for _, line := range lines(string(text)) {
		name, command, _ := strings.Cut(line, ": ")
		if name == "call" {
			name, command, _ = strings.Cut(command, ": ")
			name = "call: " + name
		}
		list[name] = fill.Replace(command)
	}
	return list
}

// prepareOutside makes files and servers that a command must not reach.
func prepareOutside(t *testing.T) outside {
	t.Helper()
	top := expect.Value(filepath.EvalSymlinks(t.TempDir()))(t)
	o := outside{
		root:  filepath.Join(top, "root"),
		dir:   filepath.Join(top, "outside"),
		probe: filepath.Join(top, "root", "probe"),
	}
	for _, dir := range []string{o.root, o.dir} {
		expect.Must(t, os.Mkdir(dir, 0o700))
	}
	// Another user, as whom a server is run, must reach these.
	for _, dir := range []string{filepath.Dir(top), top, o.root, o.dir} {
		if err := os.Chmod(dir, 0o777); err != nil { //nolint:gosec // a test's directory
			t.Fatal(err)
		}
	}
	for path, text := range map[string]string{
		filepath.Join(o.root, "file"): "text", filepath.Join(o.root, "empty"): "", filepath.Join(o.dir, "secret"): "secret",
	} {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil { //nolint:gosec // any user may try
			t.Fatal(err)
		}
	}
	expect.Must(t, os.Symlink(filepath.Join(o.dir, "secret"), filepath.Join(o.root, "link")))
	exe := expect.Value(os.Executable())(t)
	for from, to := range map[string]string{exe: o.probe, binary(t): o.program()} {
		// Another process writes it: a file that this one has open while a test forks cannot be run.
		if out, err := exec.CommandContext(t.Context(), "cp", from, to).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	listen := func(network, address string) string {
		l, err := net.Listen(network, address) //nolint:noctx // closed with the test
		expect.Must(t, err)
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_ = c.Close()
			}
		}()
		return l.Addr().String()
	}
	o.tcp, o.socket = listen("tcp", "127.0.0.1:0"), listen("unix", filepath.Join(o.root, "socket"))
	o.abstract = listen("unix", fmt.Sprintf("@mcp-funnel-test-%d", os.Getpid()))
	return o
}

// try makes all attempts against one server, and returns the names of those that succeeded.
func (o outside) try(t *testing.T, wrap []string, flags ...string) (succeeded []string) {
	t.Helper()
	env := append(environment(t), "PLANTED=secret of the server", "HOME="+o.dir)
	s := launch{program: o.program(), wrap: wrap, env: env, flags: append([]string{
		"--root", o.root, "--store", filepath.Join(o.dir, fmt.Sprint("store", len(wrap))), "--min-free", "0",
		"--toolsets", "core,shell",
	}, flags...)}.stdio(t)
	o.server = s.pid()
	if a, err := s.call("run", map[string]any{"command": "true"}); err != nil || a.failed {
		t.Fatalf("no command runs at all, so no attempt proves anything: %v %s", err, a.text())
	}
	attempts := o.attempts(t)
	for _, name := range slices.Sorted(maps.Keys(attempts)) {
		a := expect.Value(s.call("run", map[string]any{"command": attempts[name], "timeout_s": 20}))(t)
		var result struct {
			Meta map[string]struct {
				Metadata map[string]float64 `json:"metadata"`
			} `json:"_meta"`
		}
		expect.Must(t, json.Unmarshal(a.result, &result))
		code, ran := result.Meta["funnel/receipt"].Metadata["exit_code"]
		switch {
		case !ran:
			t.Errorf("%s: the command did not end by itself: %s", name, a.text())
		case ran && code == 0 && !a.failed:
			succeeded = append(succeeded, name)
		case testing.Verbose():
			t.Logf("%s: %s", name, strings.ReplaceAll(a.text(), "\n", " | "))
		}
	}
	return succeeded
}

func TestS27CommandsStayInside(t *testing.T) {
	drivesOnly(t)
	t.Parallel()
	needsContainment(t)
	o := prepareOutside(t)
	limits := []string{"--scratch-size", "64MiB", "--run-processes", "100", "--run-memory", "512MiB"}
	users := map[string][]string{"this user": nil}
	if setpriv, err := exec.LookPath("setpriv"); err == nil && os.Geteuid() == 0 {
		users["nobody"] = []string{setpriv, "--reuid", "65534", "--regid", "65534", "--clear-groups"}
	}
	cases, failures := 0, 0
	for user, wrap := range users {
		got := o.try(t, wrap, limits...)
		cases += len(o.attempts(t))
		failures += len(got)
		for _, name := range got {
			t.Errorf("%s: %s: the command got through", user, name)
		}
	}
	controls := o.try(t, nil, "--sandbox", "off")
	all := o.attempts(t)
	var uncontrolled []string
	for name := range all {
		if !slices.Contains(controls, name) {
			uncontrolled = append(uncontrolled, name)
		}
	}
	slices.Sort(uncontrolled)
	t.Logf("refused by this machine even without a sandbox: %s", strings.Join(uncontrolled, ", "))
	promise.Keptf(t, promise.Proof{Promise: "S27", Cases: cases, Failures: failures, Control: len(controls)},
		"%d attempts as %d users; without a sandbox %d of them succeed", len(all), len(users), len(controls))
}
