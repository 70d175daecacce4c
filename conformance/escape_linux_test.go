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

// attempts returns shell commands that succeed if the command reached what was not granted.
func (o outside) attempts() map[string]string {
	list := map[string]string{
		"write outside":               "echo x > " + o.dir + "/new",
		"read outside":                "cat " + o.dir + "/secret",
		"read outside through /proc":  "cat /proc/1/root" + o.dir + "/secret",
		"read outside through dots":   "cat " + o.root + "/../$(basename " + o.dir + ")/secret",
		"read outside through a link": "cat " + o.root + "/link",
		"write in a root":             "echo x > " + o.root + "/new",
		"append in a root":            "echo x >> " + o.root + "/file",
		"truncate in a root":          "truncate -s 0 " + o.root + "/empty",
		"mode in a root":              "chmod 0700 " + o.root + "/file",
		"times in a root":             "touch -d 2001-01-01 " + o.root + "/file",
		"hard link in a root":         "ln " + o.root + "/file " + o.root + "/hard && rm " + o.root + "/hard",
		"hard link to scratch":        "ln " + o.root + "/file $HOME/hard && rm $HOME/hard",
		"symbolic link in a root":     "ln -s x " + o.root + "/soft && rm " + o.root + "/soft",
		"rename in a root": "mv " + o.root + "/file " + o.root + "/moved && mv " + o.root + "/moved " +
			o.root + "/file",
		"delete in a root": "cp -p " + o.root + "/file $HOME/copy && rm -f " + o.root +
			"/file && cp $HOME/copy " + o.root + "/file",
		"directory in a root":        "mkdir " + o.root + "/made && rmdir " + o.root + "/made",
		"pipe in a root":             "mkfifo " + o.root + "/pipe && rm " + o.root + "/pipe",
		"environment of the server":  "tr '\\0' '\\n' < /proc/" + fmt.Sprint(o.server) + "/environ | grep -q HOME",
		"environment of processes":   "cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -q PLANTED",
		"memory of init":             "head -c 1 /proc/1/mem || readlink /proc/1/fd/3",
		"settings of the kernel":     "n=$(cat /proc/sys/kernel/core_uses_pid) && echo $n > /proc/sys/kernel/core_uses_pid",
		"mount":                      "mkdir -p $HOME/m && mount -t tmpfs none $HOME/m && umount $HOME/m",
		"user namespace":             "unshare -U true",
		"namespaces of init":         "nsenter -t 1 -m true",
		"change of root":             "chroot / true",
		"fill the scratch directory": "head -c 200000000 /dev/zero > $HOME/big && sleep 3 && rm $HOME/big",
		"many processes":             "for i in $(seq 400); do sleep 2 & done; wait",
		"host's devices":             "test -e /dev/mem || test -e /dev/kmsg || test -e /dev/vda || test -e /dev/tty",
		"home":                       "ls ~root/.. 2>/dev/null | grep -qx root && ls ~root",
		"store":                      "ls " + o.dir + "/store0/observations || ls " + o.dir + "/store7/observations",
	}
	server := strconv.Itoa(o.server)
	for name, arg := range map[string]string{
		"signal": server, "priority": server, "ptrace": server, "pidfd": server, "memory of another process": server,
		"tcp": o.tcp, "unix socket": o.socket, "unix socket of a pair": o.socket, "handle": o.root + "/file",
		"packets": "", "vsock": "", "netlink": "", "algorithms": "", "unix": "", "keyring": "", "perf": "", "memory": "",
		"userfaultfd": "", "io_uring": "", "bpf": "", "types into a terminal": "", "namespace": "", "descriptors": "",
	} {
		list["call: "+name] = fmt.Sprintf("%s=escape %s '%s' '%s'", roleKey, o.probe, name, arg)
	}
	list["call: abstract socket"] = fmt.Sprintf("%s=escape %s 'unix socket' '%s'", roleKey, o.probe, o.abstract)
	return list
}

// prepareOutside makes files and servers that a command must not reach.
func prepareOutside(t *testing.T) outside {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	o := outside{
		root:  filepath.Join(top, "root"),
		dir:   filepath.Join(top, "outside"),
		probe: filepath.Join(top, "root", "probe"),
	}
	for _, dir := range []string{o.root, o.dir} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
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
	if err := os.Symlink(filepath.Join(o.dir, "secret"), filepath.Join(o.root, "link")); err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{exe: o.probe, binary(t): o.program()} {
		program, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, program, 0o755) //nolint:gosec // it is run
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	listen := func(network, address string) string {
		l, err := net.Listen(network, address) //nolint:noctx // closed with the test
		if err != nil {
			t.Fatal(err)
		}
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
	attempts := o.attempts()
	for _, name := range slices.Sorted(maps.Keys(attempts)) {
		a, err := s.call("run", map[string]any{"command": attempts[name], "timeout_s": 20})
		if err != nil {
			t.Fatal(err)
		}
		var result struct {
			Meta map[string]struct {
				Metadata map[string]float64 `json:"metadata"`
			} `json:"_meta"`
		}
		if err := json.Unmarshal(a.result, &result); err != nil {
			t.Fatal(err)
		}
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
		cases += len(o.attempts())
		failures += len(got)
		for _, name := range got {
			t.Errorf("%s: %s: the command got through", user, name)
		}
	}
	controls := o.try(t, nil, "--sandbox", "off")
	all := o.attempts()
	var uncontrolled []string
	for name := range all {
		if !slices.Contains(controls, name) {
			uncontrolled = append(uncontrolled, name)
		}
	}
	slices.Sort(uncontrolled)
	t.Logf("refused by this machine even without a sandbox: %s", strings.Join(uncontrolled, ", "))
	promise.Kept(t, promise.Proof{
		Promise: "S27", Cases: cases, Failures: failures, Control: len(controls),
		Figures: fmt.Sprintf(
			"%d attempts as %d users; without a sandbox %d of them succeed",
			len(all),
			len(users),
			len(controls),
		),
	})
}
