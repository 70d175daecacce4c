//go:build amd64 || arm64

package sandbox_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/system/sandbox"
	"github.com/mcp-funnel/mcp-funnel/system/worker/workertest"
)

// withoutNamespaces is [sandbox.BestEffort] on a machine that refuses namespaces.
const withoutNamespaces sandbox.Mode = "without namespaces"

// ground is what the attempts try to reach, and what is granted to them.
type ground struct {
	outside, readable, writable, program string
	path, abstract, tcp, udp             string
	victim                               int // a process outside, of the same user
}

// attempt is a shell command that succeeds if it reached what was not granted.
type attempt struct {
	name, command  string
	namespacesOnly bool // only namespaces prevent it: Landlock ignores metadata
}

func (g ground) attempts() []attempt {
	probe := func(name, arg string) string { return fmt.Sprintf("%s='%s' %s '%s'", probeKey, name, g.program, arg) }
	process := fmt.Sprint(g.victim)
	list := []attempt{
		{"write outside", "echo x > " + g.outside + "/new", false},
		{"read outside", "cat " + g.outside + "/secret", false},
		{"list outside", "ls " + g.outside, false},
		{"read through dots", "cat " + g.readable + "/../outside/secret", false},
		{"read through a link", "cat " + g.readable + "/link", false},
		{
			"read through a new link",
			"ln -sfn " + g.outside + " " + g.writable + "/l && cat " + g.writable + "/l/secret",
			false,
		},
		{"hard link to outside", "ln " + g.outside + "/secret " + g.writable + "/hard", false},
		{"write", "echo x > " + g.readable + "/new", false},
		{"append", "echo x >> " + g.readable + "/file", false},
		{"truncate", ": > " + g.readable + "/empty", false},
		{"delete", "rm " + g.readable + "/victim", false},
		{"symbolic link", "ln -s x " + g.readable + "/soft", false},
		{"hard link", "ln " + g.readable + "/file " + g.readable + "/hard", false},
		{"hard link to a writable directory", "ln " + g.readable + "/file " + g.writable + "/hard2", false},
		{
			"rename",
			"mv " + g.readable + "/file " + g.readable + "/moved && mv " + g.readable + "/moved " + g.readable + "/file",
			false,
		},
		{"make a directory", "mkdir " + g.readable + "/made", false},
		{"make a pipe", "mkfifo " + g.readable + "/pipe", false},
		{"chmod", "chmod 0770 " + g.readable + "/file", true},
		{"utime", "touch -d 2001-01-01 " + g.readable + "/file", true},
		{"stat outside", "test -e " + g.outside + "/secret", true},
		{"root of init", "cat /proc/1/root" + g.outside + "/secret", false},
		{"root of a process outside", "cat /proc/" + process + "/root" + g.outside + "/secret", false},
		{"directory of a process outside", "cat /proc/" + process + "/cwd/secret", false},
		{"environment of a process outside", "grep -q PLANTED /proc/" + process + "/environ", false},
		{"memory of init", "head -c 1 /proc/$PPID/mem > /dev/null || readlink /proc/$PPID/fd/3", false},
		{"vm.swappiness", "n=$(cat /proc/sys/vm/swappiness) && echo $n > /proc/sys/vm/swappiness", false},
		{
			"core_pattern",
			"n=$(cat /proc/sys/kernel/core_pattern) && echo \"$n\" > /proc/sys/kernel/core_pattern",
			false,
		},
		{"sysrq", "echo h > /proc/sysrq-trigger", false},
		{"out of memory score", "echo -500 > /proc/self/oom_score_adj", false},
		{
			"mount",
			"mkdir -p " + g.writable + "/m && mount -t tmpfs none " + g.writable + "/m && umount " + g.writable + "/m",
			false,
		},
		{"remount", "mount -o remount,rw " + g.readable, false},
		{"unmount", "umount -l " + g.readable, false},
		{"unshare by a program", "unshare -U true", false},
		{"setns", "nsenter -t " + process + " -U true || nsenter -t 1 -m true", false},
		{"chroot", "chroot / true", false},
		{"descriptors", "for f in 3 4 5 6 7 8 9; do if test -e /proc/$$/fd/$f; then exit 0; fi; done; exit 1", false},
		{"home", "ls ~root", false},
		{"devices", "test -r /dev/mem || test -r /dev/kmsg || test -r /dev/vda", true},
	}
	for name, arg := range map[string]string{
		"signal": process, "nice": process, "io priority": process, "limit": process, "affinity": process, "ptrace": process,
		"stream": g.path, "datagram pair": g.path + ".datagrams", "tcp": g.tcp, "udp": g.udp, "handle": g.readable + "/file",
		"packet": "", "raw": "", "vsock": "", "alg": "", "audit": "", "keyring": "", "userfaultfd": "",
		"io_uring": "", "bpf": "",
		"perf": "", "types into a terminal": "", "unshare": "", "private memory": "", "shared memory": "", "memory file": "",
		"memory by key": "",
	} {
		list = append(list, attempt{"probe: " + name, probe(name, arg), false})
	}
	return append(list, attempt{"probe: abstract stream", probe("stream", g.abstract), false})
}

func makeGround(t *testing.T) ground {
	t.Helper()
	top := expect.Value(filepath.EvalSymlinks(t.TempDir()))(t)
	g := ground{
		outside: filepath.Join(
			top,
			"outside",
		), readable: filepath.Join(top, "readable"), writable: filepath.Join(top, "writable"),
	}
	g.program, g.path = filepath.Join(g.readable, "probe"), filepath.Join(g.writable, "socket")
	exe := expect.Value(os.ReadFile("/proc/self/exe"))(t)
	for path, content := range map[string][]byte{
		g.outside + "/secret": []byte("secret"), g.readable + "/file": nil, g.readable + "/empty": nil,
		g.readable + "/victim": nil, g.writable + "/file": nil, g.program: exe,
	} {
		expect.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		if err := os.WriteFile(path, content, 0o700); err != nil { //nolint:gosec // one of them is a program
			t.Fatal(err)
		}
	}
	expect.Must(t, os.Symlink(g.outside+"/secret", g.readable+"/link"))
	g.tcp, g.abstract = echo(t, "tcp", "127.0.0.1:0"), echo(t, "unix", "@"+top)
	echo(t, "unix", g.path)
	d, err := net.ListenPacket("unixgram", g.path+".datagrams") //nolint:noctx // closed with the test
	expect.Must(t, err)
	t.Cleanup(func() { _ = d.Close() })
	u, err := net.ListenPacket("udp", "127.0.0.1:0") //nolint:noctx // closed with the test
	expect.Must(t, err)
	t.Cleanup(func() { _ = u.Close() })
	go func() {
		b := make([]byte, 1)
		for {
			_, from, err := u.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = u.WriteTo(b, from)
		}
	}()
	g.udp = u.LocalAddr().String()
	victim := exec.CommandContext(t.Context(), "/bin/sleep", "1000")
	victim.Dir, victim.Env = g.outside, []string{"PLANTED=secret"}
	expect.Must(t, victim.Start())
	t.Cleanup(func() { _ = victim.Process.Kill(); _ = victim.Wait() })
	g.victim = victim.Process.Pid
	return g
}

// echo serves one byte per connection.
func echo(t *testing.T, network, address string) string {
	t.Helper()
	l, err := net.Listen(network, address) //nolint:noctx // closed with the test
	expect.Must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 1))
			_, _ = c.Write([]byte("x"))
			_ = c.Close()
		}
	}()
	return l.Addr().String()
}

// try makes all attempts, and returns the names of those that succeeded.
func (g ground) try(t *testing.T, mode sandbox.Mode) map[string]bool {
	t.Helper()
	succeeded := map[string]bool{}
	for _, a := range g.attempts() {
		s := sandbox.Spec{Mode: mode, Dir: g.writable, Mounts: []sandbox.Mount{
			{Source: g.readable, Target: g.readable}, {Source: g.writable, Target: g.writable, Write: true},
		}}
		if mode != sandbox.Off {
			s.Memory, s.Processes = 200<<20, 100
		}
		status, out := runCommand(t, s, a.command)
		switch {
		case status.Exit == 0:
			if mode != withoutNamespaces || !a.namespacesOnly {
				succeeded[a.name] = true
			}
		case strings.Contains(out, "there is no probe") || strings.Contains(out, "probe: not found"):
			t.Errorf("%s: %s", a.name, out)
		}
		if testing.Verbose() {
			t.Logf("%s: %s: %+v %.100q", mode, a.name, status, out)
		}
	}
	return succeeded
}

// mostUncontrolled is how many attempts a machine may refuse even without a sandbox: of users, most of what is root's.
const mostUncontrolled = 25

func TestNothingEscapes(t *testing.T) {
	withoutRace(t)
	t.Cleanup(sandbox.KeepSpare()) // all but the first command of a kind run in a process that waited for it
	for _, mode := range []sandbox.Mode{sandbox.Required, withoutNamespaces} {
		t.Run(string(mode), func(t *testing.T) {
			for name := range makeGround(t).try(t, mode) {
				t.Errorf("%s: the command got through", name)
			}
		})
	}
	g := makeGround(t)
	var uncontrolled []string
	reached := g.try(t, sandbox.Off)
	for _, a := range g.attempts() {
		if !reached[a.name] {
			uncontrolled = append(uncontrolled, a.name)
		}
	}
	t.Logf("refused by this machine even without a sandbox: %s", strings.Join(uncontrolled, ", "))
	if len(uncontrolled) > mostUncontrolled {
		t.Errorf("too few controls succeed")
	}
}

func TestNothingEscapesFromOtherUsers(t *testing.T) {
	withoutRace(t)
	if os.Geteuid() != 0 {
		t.Skip("these tests already run as a user other than root")
	}
	dir, err := os.MkdirTemp("", "sandbox") //nolint:usetesting // t.TempDir lies in a directory that others cannot enter
	expect.Must(t, err)
	defer os.RemoveAll(dir) //nolint:errcheck // a test's directory
	program := filepath.Join(dir, "test")
	exe, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(program, exe, 0o755) //nolint:gosec // another user runs it
	}
	if err == nil {
		err = os.Chmod(dir, 0o777) //nolint:gosec // another user makes its files in it
	}
	expect.Must(t, err)
	cmd := exec.CommandContext(t.Context(), program, "-test.run=^TestNothingEscapes$", "-test.v")
	cmd.Dir, cmd.Env = dir, []string{"TMPDIR=" + dir, "PATH=/usr/bin:/bin:/usr/sbin:/sbin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestNothingEscapes") {
		t.Fatalf("%v\n%s", err, out)
	}
}

// withoutRace skips a test whose probes are this test binary: the race detector's does not run within the limits.
func withoutRace(t *testing.T) {
	t.Helper()
	if workertest.Race {
		t.Skip("its probes are this binary: tried by the run without the race detector")
	}
}
