//go:build amd64 || arm64

package sandbox

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcp-funnel/mcp-funnel/system/child"
)

// controlFD is the descriptor of the control socket in init.
const controlFD = 3

// runChild is the main function of a child process.
func runChild(kind string) int {
	if kind == asOwner {
		_, _ = io.Copy(io.Discard, os.Stdin)
		return 0
	}
	runtime.LockOSThread() // the command inherits what [scopeThread] does to this thread
	// A command may signal init, which must not end. Handlers, unlike ignored signals, are not inherited by commands.
	// It takes milliseconds, and is done before a command waits for it.
	signal.Notify(make(chan os.Signal, 1))
	files, err := receive()
	if errors.Is(err, io.EOF) {
		return 0
	}
	control := os.NewFile(controlFD, "control")
	in := bufio.NewReader(control)
	var h header
	var line []byte
	if err == nil {
		line, err = in.ReadBytes('\n')
	}
	if err == nil {
		err = json.Unmarshal(line, &h)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "this is how mcp-funnel contains commands; there is nothing to call here")
		return 1
	}
	i := &initProcess{header: h, control: control, in: in, mounts: files[2:]}
	if h.Input {
		i.stdin, i.mounts = i.mounts[0], i.mounts[1:]
	}
	if h.Connects {
		i.connect, i.mounts = i.mounts[0], i.mounts[1:]
	}
	if err := i.run(); err != nil {
		r := reply{Error: err.Error()}
		if lacks := (*Unavailable)(nil); errors.As(err, &lacks) {
			r.Layer, r.Error = lacks.Layer, lacks.Cause.Error()
		}
		r.Missing = errors.Is(err, ErrNotFound)
		i.report(r)
		return 1
	}
	return 0
}

// receive waits for the files of a command. The first two become standard output and standard error. The error is
// io.EOF if the server ended, or does not need this process any more.
func receive() (fds []int, err error) {
	fds, err = child.Receive(controlFD, make([]byte, 1), maxFiles)
	if err != nil {
		return nil, err
	}
	if len(fds) < 2 {
		return nil, errors.New("no files came with the command")
	}
	for to, fd := range fds[:2] {
		if err := unix.Dup3(fd, to+1, 0); err != nil {
			return nil, err
		}
		_ = unix.Close(fd)
	}
	return fds, nil
}

func (i *initProcess) run() error {
	if err := i.prepare(); err != nil {
		return err
	}
	if err := i.notifyEnded(); err != nil {
		return err
	}
	if err := i.startCommand(); err != nil {
		return err
	}
	i.report(reply{Started: true})
	go i.watchServer()
	status := i.reap()
	status.Left = i.killRest()
	if status.Exit != 0 {
		status.Unrouted = i.unrouted()
	}
	if i.ScratchMax > 0 && i.ScratchNow > i.ScratchMax { // the command may have deleted what was too much
		status.Scratch = directorySize(i.scratchDirs(), i.otherMounts()) + 1 // 0 would mean that it was not measured
	}
	i.report(reply{End: &status})
	return nil
}

// prepare drops all that the command must not have, in an order in which each step is still permitted.
func (i *initProcess) prepare() error {
	// The command gets none of these, nor what the server itself has inherited from its client.
	if err := unix.CloseRange(controlFD, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		for fd := controlFD; fd < maxOpen; fd++ {
			unix.CloseOnExec(fd)
		}
	}
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0) // the kernel kills commands before the server
	if i.Namespaces {
		if !i.Net {
			if err := loopbackUp(); err != nil {
				return &Unavailable{layerNetwork, err}
			}
		}
		if err := i.buildView(); err != nil {
			return &Unavailable{layerFiles, err}
		}
		// Memory that is shared by key is nobody's resident memory unless a process has it mapped.
		pages := strconv.Itoa(sharedSize / os.Getpagesize())
		i.sharedByKey = os.WriteFile("/proc/sys/kernel/shmall", []byte(pages), 0) == nil
	} else if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("subreaper: %w", err)
	}
	if err := i.setLimits(); err != nil {
		return err
	}
	if i.Mode == Off {
		return nil
	}
	return i.restrict()
}

// startCommand starts the command in a session of its own, without a terminal.
func (i *initProcess) startCommand() error {
	if err := os.Chdir(i.Dir); err != nil {
		return fmt.Errorf("cwd: %w", err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	stdin := null.Fd()
	if i.Input {
		stdin = uintptr(i.stdin)
	}
	// Package os would first start a process only to learn what the kernel can do.
	i.pid, err = syscall.ForkExec(i.Args[0], i.Args, &syscall.ProcAttr{
		Env: i.Env, Files: []uintptr{stdin, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: unix.SIGKILL},
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	// The pipes end when the last process of the command closes them, not when init does.
	_ = unix.Dup2(int(null.Fd()), 1)
	_ = unix.Dup2(int(null.Fd()), 2)
	if i.Input {
		_ = unix.Close(i.stdin)
	}
	return nil
}

// watchServer ends the tree when the server closes the control socket or ends.
func (i *initProcess) watchServer() {
	_, _ = io.Copy(io.Discard, i.in)
	i.killTree()
	os.Exit(0)
}

// reap waits for the end of the command, reaps what ends meanwhile, and ends the tree if it exceeds a limit.
// All of it is done in the thread that started the command: Landlock lets only that one see its processes' files.
func (i *initProcess) reap() (status Status) {
	w := newWatch(i)
	poll := []unix.PollFd{{Fd: int32(i.childEnded), Events: unix.POLLIN}}
	for {
		_, _ = unix.Poll(poll, w.timeout())
		_, _ = unix.Read(i.childEnded, make([]byte, 8)) // before children are reaped: one that ends now wakes the next Poll
		ended, ok := i.reapEnded()
		if ok {
			ended.Limit, ended.Scratch = status.Limit, w.scratchSize
			return ended
		}
		if !w.due() {
			continue
		}
		if hit := w.exceeded(); hit != "" {
			status.Limit = cmp.Or(status.Limit, hit)
			i.signalTree()
		}
	}
}

// notifyEnded makes i.childEnded readable whenever a child of this process ends.
func (i *initProcess) notifyEnded() (err error) {
	if i.childEnded, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return err
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGCHLD)
	go func() {
		one := binary.NativeEndian.AppendUint64(nil, 1)
		for range ended {
			_, _ = unix.Write(i.childEnded, one)
		}
	}()
	return nil
}

// reapEnded reaps processes that have ended; ok reports that the command is among them.
func (i *initProcess) reapEnded() (status Status, ok bool) {
	none := reap(func(pid int, ws unix.WaitStatus) {
		switch {
		case pid != i.pid:
			return
		case ws.Signaled():
			status = Status{Exit: 128 + int(ws.Signal()), Signal: signalName(ws.Signal())}
		default:
			status = Status{Exit: ws.ExitStatus()}
		}
		ok = true
	})
	if none && !ok {
		return Status{Exit: 1}, true // it cannot be: the command is a child of init
	}
	return status, ok
}

// leftGrace is how long processes may outlive the command: the rest of a pipeline ends by itself within it.
const leftGrace = 100 * time.Millisecond

// killRest kills the processes that the command left running, after a grace, and returns how many there were.
func (i *initProcess) killRest() (left int) {
	for deadline := time.Now().Add(leftGrace); ; {
		if reap(ignored) {
			return 0
		}
		if time.Now().After(deadline) {
			left = len(i.tree())
			i.killTree()
			return left
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// reap reaps the children that have ended, and reports whether none is left.
func reap(ended func(pid int, ws unix.WaitStatus)) (none bool) {
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.ECHILD):
			return true
		case pid > 0:
			ended(pid, ws)
		case !errors.Is(err, unix.EINTR):
			return false
		}
	}
}

// ignored is an end that nobody waits for.
func ignored(int, unix.WaitStatus) {}

// signalTree kills all processes but init, without reaping them.
func (i *initProcess) signalTree() {
	if i.Namespaces {
		_ = unix.Kill(-1, unix.SIGKILL)
		return
	}
	for _, pid := range i.tree() {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// killTree kills all processes but init, and reaps those that are init's children.
func (i *initProcess) killTree() {
	for range 1000 { // a process may fork while others are killed
		i.signalTree()
		if reap(ignored) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
