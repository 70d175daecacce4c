package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// commandShapes are commands that try to outlive their call. MARK is a number of seconds that no other process waits.
var commandShapes = map[string]string{
	"waits":               "sleep MARK",
	"has its own session": "setsid sleep MARK & wait",
	"ignores hang-ups":    "nohup sleep MARK & wait",
	"ignores signals":     "trap '' TERM INT HUP QUIT; sleep MARK & while :; do wait; sleep 1; done",
	"is a daemon":         "(setsid sh -c 'sleep MARK & sleep MARK' </dev/null >/dev/null 2>&1 &); sleep 1000",
	"is stopped":          "sleep MARK & sleep 0.3; kill -STOP $!; wait",
	"reads a pipe":        "mkfifo /tmp/p$$; sleep MARK & cat /tmp/p$$",
	"writes for ever":     "sleep MARK & yes > /dev/null",
	"has many children":   "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do setsid sleep MARK & done; wait",
}

// marked returns the processes of this machine whose arguments hold a word.
func marked(word string) (pids []int) {
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range names {
		line, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		for arg := range bytes.SplitSeq(line, []byte{0}) {
			if string(arg) == word {
				pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
				pids = append(pids, pid)
				break
			}
		}
	}
	return pids
}

// commandEndings are the ways in which a command's call ends. Each starts a server and the command, waits until run is
// seen at work, and ends the call.
var commandEndings = map[string]func(t testing.TB, root, command, mark string) error{
	"time-out": func(t testing.TB, root, command, mark string) error {
		s := serveCommands(t, root)
		answer := s.beginCall("run", map[string]any{"command": command, "timeout_s": 2})
		if err := atWorkUntil(mark, answer.answered); err != nil {
			return err
		}
		_, err := answer.wait()
		return err
	},
	"cancel": func(t testing.TB, root, command, mark string) error {
		s := serveCommands(t, root)
		answer := s.beginCall("run", map[string]any{"command": command})
		if err := atWorkUntil(mark, answer.answered); err != nil {
			return err
		}
		answer.cancel()
		return nil
	},
	"client killed": func(t testing.TB, root, command, mark string) error {
		exe, err := os.Executable()
		if err != nil {
			return err
		}
		cmd := exec.CommandContext(
			t.Context(), exe, binary(t), "--root", root, "--min-free", "0", "--toolsets", "core,shell",
		)
		cmd.Env = append(environment(t), roleKey+"=client")
		s := connect(t, cmd, launch{})
		answer := s.beginCall("run", map[string]any{"command": command})
		if err := atWorkUntil(mark, answer.answered); err != nil {
			return err
		}
		pid := strconv.Itoa(cmd.Process.Pid)
		servers, err := os.ReadFile("/proc/" + pid + "/task/" + pid + "/children")
		if err != nil {
			return err
		}
		t.Cleanup(func() { // the server writes its trace until it ends: the test's directory is removed after that
			waitFor(patience, func() bool {
				return !slices.ContainsFunc(strings.Fields(string(servers)), func(pid string) bool {
					_, err := os.Stat("/proc/" + pid)
					return err == nil
				})
			})
		})
		return cmd.Process.Kill()
	},
	"server killed": func(t testing.TB, root, command, mark string) error {
		s := serveCommands(t, root)
		answer := s.beginCall("run", map[string]any{"command": command})
		if err := atWorkUntil(mark, answer.answered); err != nil {
			return err
		}
		return s.cmd.Process.Kill()
	},
}

func serveCommands(t testing.TB, root string) *stdioClient {
	return serveStdio(t, root, "--toolsets", "core,shell", "--min-free", "0")
}

// atWorkUntil waits until processes with the mark run.
func atWorkUntil(mark string, answered func() bool) error {
	if !waitFor(starts, func() bool { return len(marked(mark)) > 0 || answered() }) {
		return errors.New("the command did not start")
	}
	if answered() {
		return errors.New("the command ended before it was seen")
	}
	return nil
}

func TestS9NoCommandOutlivesItsCall(t *testing.T) {
	drivesOnly(t)
	t.Parallel()
	needsContainment(t)
	root := t.TempDir()
	times := promise.Size(1, 25)
	var mu sync.Mutex
	cases, failures, late, number := 0, 0, 0, os.Getpid()*1000
	t.Run("all", func(t *testing.T) {
		for way, name := range slices.Sorted(maps.Keys(commandEndings)) {
			for at, shape := range slices.Sorted(maps.Keys(commandShapes)) {
				if !promise.Full() && (way+at)%2 != 0 { // each shape ends in two ways
					continue
				}
				end, command := commandEndings[name], commandShapes[shape]
				t.Run(name+"/"+shape, func(t *testing.T) {
					t.Parallel()
					for range times {
						mu.Lock()
						number++
						mark := "9" + strconv.Itoa(number)
						mu.Unlock()
						if err := end(t, root, strings.ReplaceAll(command, "MARK", mark), mark); err != nil {
							t.Fatal(err)
						}
						begun := time.Now()
						gone := waitFor(patience, func() bool { return len(marked(mark)) == 0 })
						mu.Lock()
						cases++
						if !gone {
							failures++
							t.Errorf("%d processes are left after %s", len(marked(mark)), patience)
						}
						if time.Since(begun) > time.Second {
							late++
						}
						mu.Unlock()
					}
				})
			}
		}
	})
	promise.Kept(t, promise.Proof{
		Promise: "S9", Cases: cases, Failures: failures, Control: plainOrphans(t, strconv.Itoa(number+1)),
		Figures: fmt.Sprintf("commands: %d shapes, %d ways to end; after 1 s %d had processes left",
			len(commandShapes), len(commandEndings), late),
	})
}

// plainOrphans is the control: the same shapes in a plain shell, of which the group is killed, leave processes.
func plainOrphans(t *testing.T, mark string) (n int) {
	mark = "8" + mark
	for _, shape := range []string{"has its own session", "is a daemon"} {
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", strings.ReplaceAll(commandShapes[shape], "MARK", mark))
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if !waitFor(starts, func() bool { return len(marked(mark)) > 0 }) {
			t.Fatal("the control did not start")
		}
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		time.Sleep(time.Second)
		for _, pid := range marked(mark) {
			n++
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	return n
}

// needsContainment skips a test where this machine cannot contain commands, and says why.
func needsContainment(t testing.TB) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary(t), "doctor", "--toolsets", "shell", "--root", t.TempDir())
	cmd.Env = environment(t)
	out, _ := cmd.Output()
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "BAD  commands") {
			t.Skip(strings.TrimSpace(line))
		}
	}
}
