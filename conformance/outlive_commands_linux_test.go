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
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
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

// endCommand runs a command on a server of its own, waits until processes with the mark run, and ends the call.
func endCommand(t testing.TB, way, root, command, mark string) error {
	d, err := startDoomed(t, way, root, "--toolsets", "core,shell")
	if err != nil {
		return err
	}
	args := map[string]any{"command": command}
	if way == byTimeout {
		args["timeout_s"] = 2
	}
	answer := d.beginCall("run", args)
	if !waitFor(starts, func() bool { return len(marked(mark)) > 0 || answer.answered() }) {
		return errors.New("the command did not start")
	}
	if answer.answered() {
		return errors.New("the command ended before it was seen")
	}
	return d.end(answer)
}

func TestS9NoCommandOutlivesItsCall(t *testing.T) {
	drivesOnly(t)
	t.Parallel()
	needsContainment(t)
	root := t.TempDir()
	var number atomic.Int64
	next := func() string { return strconv.FormatInt(int64(os.Getpid())*1000+number.Add(1), 10) }
	shapes := slices.Sorted(maps.Keys(commandShapes))
	took, failures, late := outlived(t, shapes, 2, func(t *testing.T, way, shape string) (time.Duration, int, error) {
		mark := "9" + next()
		if err := endCommand(t, way, root, strings.ReplaceAll(commandShapes[shape], "MARK", mark), mark); err != nil {
			return 0, 0, err
		}
		begun := time.Now()
		waitFor(patience, func() bool { return len(marked(mark)) == 0 })
		return time.Since(begun), len(marked(mark)), nil
	})
	promise.Kept(t, promise.Proof{
		Promise: "S9", Cases: len(took), Failures: failures, Control: plainOrphans(t, "8"+next()),
		Figures: fmt.Sprintf("commands: %d shapes, %d ways to end; after 1 s %d had processes left",
			len(shapes), len(endings), late),
	})
}

// plainOrphans is the control: the same shapes in a plain shell, of which the group is killed, leave processes.
func plainOrphans(t *testing.T, mark string) (n int) {
	for _, shape := range []string{"has its own session", "is a daemon"} {
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", strings.ReplaceAll(commandShapes[shape], "MARK", mark))
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		expect.Must(t, cmd.Start())
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
	out, _, _ := launch{flags: []string{"doctor", "--toolsets", "shell", "--root", t.TempDir()}}.output(t)
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "BAD  commands") {
			t.Skip(strings.TrimSpace(line))
		}
	}
}
