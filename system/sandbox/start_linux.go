//go:build amd64 || arm64

package sandbox

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcp-funnel/mcp-funnel/system/child"
)

// Kinds of child processes: the second argument of __sandbox.
const (
	asInit  = "init"  // runs one command
	asOwner = "owner" // holds a user namespace open
)

// commandUID is the kernel's user and group of commands that a server of root runs: kernel user 0 could write to files
// of /proc and /sys even in its own namespaces. It lies above the ranges that distributions give to users and
// containers.
const commandUID = 0x7ffe0000

// Start runs a command whose standard output and error are stdout and stderr. Start closes neither them nor Stdin. The
// error is an [*Unavailable] if containment fails, and wraps [ErrNotFound] if the program does.
//
// The command and all processes that it starts end with [Process.Kill], and with this process.
func Start(s Spec, stdout, stderr *os.File) (*Process, error) {
	if !ready {
		return nil, ErrNotReady
	}
	p, err := start(s, stdout, stderr, s.Mode != Off)
	if lacks := (*Unavailable)(nil); s.Mode == BestEffort && errors.As(err, &lacks) && lacks.Layer == layerNamespaces {
		return start(s, stdout, stderr, false)
	}
	return p, err
}

func start(s Spec, stdout, stderr *os.File, namespaces bool) (*Process, error) {
	k := kind{namespaces, s.Net}
	fill := func() { spares.Fill(k, func() (*Process, error) { return startInit(k) }) }
	if p, ok := spares.Claim(k); ok {
		fill() // at once: the next command may come as soon as this one ends
		err := p.run(s, stdout, stderr, namespaces)
		if err == nil {
			return p, nil
		}
		p.Kill()
		// It may have ended long ago, or not see a file system that was mounted meanwhile. No command may run twice: a new
		// process is tried only if init reported, before it started one, that it cannot.
		if lacks := (*Unavailable)(nil); !errors.As(err, &lacks) || errors.Is(err, errEnded) {
			return nil, err
		}
	}
	p, err := startInit(k)
	if err != nil {
		return nil, err
	}
	defer fill()
	if err := p.run(s, stdout, stderr, namespaces); err != nil {
		p.Kill()
		return nil, err
	}
	return p, nil
}

// startInit starts an init that waits for its command.
func startInit(k kind) (*Process, error) {
	ours, theirs, err := child.SocketPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close() //nolint:errcheck // the child has its own
	p := &Process{control: ours, replies: bufio.NewReader(ours), done: make(chan struct{})}
	p.cmd = exec.Command(initBinary, argument, asInit) //nolint:noctx // Kill ends the whole tree
	p.cmd.Args[0] = "mcp-funnel"
	p.cmd.Dir = "/"
	p.cmd.Env = []string{"GOTRACEBACK=none", "GOMAXPROCS=1", "GOGC=25"} // it collects from 1 MiB on
	p.cmd.ExtraFiles = []*os.File{theirs}
	p.cmd.SysProcAttr = attributes(k.namespaces, k.net)
	if err := p.launch(); err != nil {
		_ = ours.Close()
		if k.namespaces {
			return nil, &Unavailable{layerNamespaces, err}
		}
		return nil, err
	}
	return p, nil
}

// run has init start the command.
func (p *Process) run(s Spec, stdout, stderr *os.File, namespaces bool) error {
	h := header{Spec: s, Namespaces: namespaces, Input: s.Stdin != nil}
	files := []*os.File{stdout, stderr}
	if h.Input {
		files = append(files, s.Stdin)
	}
	if h.Connects = s.Connect != nil && s.Mode != Off; h.Connects {
		theirs, ours, err := child.SocketPair()
		if err != nil {
			return err
		}
		defer theirs.Close() //nolint:errcheck // init has its own
		go accept(ours, s.Connect)
		files = append(files, theirs)
	}
	mounts := &mountSources{}
	defer mounts.close()
	if namespaces {
		if err := mounts.open(s.Mounts); err != nil {
			return err
		}
		files, h.Sources = append(files, mounts.files...), mounts.ids
	}
	if err := p.begin(h, files); err != nil {
		return err
	}
	go p.await()
	return nil
}

// attributes returns the attributes of init.
func attributes(namespaces, net bool) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setsid: true}
	if !namespaces {
		return a // init ends the tree when the control socket ends: killing init would leave the tree
	}
	a.Pdeathsig = syscall.SIGKILL
	a.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWNS |
		syscall.CLONE_NEWUTS
	if !net {
		a.Cloneflags |= syscall.CLONE_NEWNET
	}
	mapUser(a)
	return a
}

// mapUser maps the one user that the command has: root to [commandUID], others to themselves.
func mapUser(a *syscall.SysProcAttr) {
	uid, gid := os.Geteuid(), os.Getegid()
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
	if uid == 0 {
		a.UidMappings[0] = syscall.SysProcIDMap{ContainerID: 0, HostID: commandUID, Size: 1}
		a.GidMappings[0] = syscall.SysProcIDMap{ContainerID: 0, HostID: commandUID, Size: 1}
		a.GidMappingsEnableSetgroups = true
		a.Credential = &syscall.Credential{} // user and group 0 of the namespace, no further groups
		return
	}
	// A program that another user executes would lose the rights in its namespaces that init needs until it drops them.
	a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP}
}

// launch starts init on a thread that lives as long as init: the kernel sends the parent-death signal when the thread
// ends.
func (p *Process) launch() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		_ = p.cmd.Wait()
		_ = p.control.SetReadDeadline(time.Now().Add(time.Second)) // a reply that came before stays readable
	}()
	return <-started
}

// errEnded means that init ended, and nobody knows whether the command began.
var errEnded = errors.New("init ended before it reported that the command runs")

// maxFiles is the largest number of files that one message of a socket passes (SCM_MAX_FD).
const maxFiles = 253

// begin sends the files and the header, and waits until the command runs.
func (p *Process) begin(h header, files []*os.File) error {
	_ = p.control.SetDeadline(time.Now().Add(startTimeout))
	if err := p.send(files); err != nil {
		return err
	}
	if err := json.NewEncoder(p.control).Encode(h); err != nil {
		return &Unavailable{layerNamespaces, fmt.Errorf("init ended: %w", err)}
	}
	r, err := p.reply()
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("the sandbox was not ready after %s", startTimeout)
	case err != nil:
		return &Unavailable{layerNamespaces, errEnded}
	case r.Missing:
		return fmt.Errorf("%s %w: %s", h.Args[0], ErrNotFound, r.Error)
	case r.Layer != "":
		return &Unavailable{r.Layer, errors.New(r.Error)}
	case r.Error != "":
		return errors.New(r.Error)
	}
	return p.control.SetDeadline(time.Time{})
}

// send passes files to init.
func (p *Process) send(files []*os.File) error {
	if len(files) > maxFiles {
		return fmt.Errorf("%d mounts are more than can be passed to a sandbox (%d)", len(files)-2, maxFiles-2)
	}
	if err := child.Send(p.control, []byte{0}, files); err != nil {
		return &Unavailable{layerNamespaces, fmt.Errorf("init ended: %w", err)}
	}
	return nil
}

func (p *Process) reply() (r reply, err error) {
	line, err := p.replies.ReadBytes('\n')
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(line, &r)
}

// signalName names a signal as kill -l does, and says in words what it is.
func signalName(s unix.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name + " (" + s.String() + ")"
	}
	return s.String() // "signal 40"
}

// ExitSignal names the signal for which a shell gives an exit code; "" if no shell does, or programs give the code for
// reasons of their own, as git does 128 and 129.
func ExitSignal(code int) string {
	if code <= 129 || code > 128+int(unix.SIGSYS) {
		return ""
	}
	return signalName(unix.Signal(code - 128))
}

// await reads how the command ended.
func (p *Process) await() {
	defer close(p.done)
	r, err := p.reply()
	_ = p.control.Close()
	if err != nil || r.End == nil {
		p.end.status = Status{Exit: 128 + int(unix.SIGKILL), Signal: signalName(unix.SIGKILL)}
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrClosed) &&
			!errors.Is(err, os.ErrDeadlineExceeded) &&
			!errors.Is(err, unix.ECONNRESET) {
			p.end.err = err
		}
		return
	}
	p.end.status = *r.End
}

// Done is closed when the command has ended and [Process.Wait] returns at once.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for the end of the command and of all processes that it started.
func (p *Process) Wait() (Status, error) {
	<-p.done
	return p.end.status, p.end.err
}

// Kill ends the command and all processes that it started. It does not wait.
func (p *Process) Kill() {
	_ = p.control.Close() // without namespaces, init now kills its descendants
	if p.cmd.SysProcAttr.Cloneflags != 0 {
		_ = p.cmd.Process.Kill() // os.Process checks whether the process has ended
	}
}
