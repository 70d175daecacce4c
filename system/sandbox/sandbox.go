// Package sandbox runs a command in a process tree that sees only what was granted, and ends with its caller.
//
//	server                                  init: this binary (__sandbox), PID 1 of its own namespaces
//	Start ── namespaces, user mapping ────► Main
//	  │                                       mounts: a root of granted directories only
//	  ├─ Spec, mounts ── control socket ────► limits, no capabilities, Landlock, system call filter
//	  ├─ stdout, stderr ◄──── the command ◄── fork, exec
//	  ├─ Status ◄────── control socket ─────  reap, count, limit
//	  └─ SIGKILL, or the socket's end ──────► the whole tree ends with it
//
// Authority is what is mounted: there is no list of forbidden commands. For functions of this binary see package
// worker.
package sandbox

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// Mode says what must hold before a command is run.
type Mode string

// The modes.
const (
	Required   Mode = "required"    // every layer, or the command is refused
	BestEffort Mode = "best-effort" // the layers that this machine has
	Off        Mode = "off"         // none; the tree still ends with its caller
)

// Spec describes one command and what it may touch.
type Spec struct {
	Args []string // the program, as an absolute path, and its arguments
	Dir  string   // the working directory, as the command sees it

	// Stdin is the standard input; nil: it is empty. Such a command serves this program: its priority is that of others.
	Stdin *os.File `json:"-"`

	Env  []string
	Mode Mode

	// Mounts is what the command sees besides the system's directories, in order: later ones cover earlier ones.
	Mounts []Mount
	Net    bool // the network of this machine; otherwise a loopback interface of its own

	ScratchMax int64 // bytes of all bounded mounts; 0: unlimited
	ScratchNow int64 // their size when it was last measured; if it is over the limit, the command must not add to it
	MinFree    int64 // bytes that must stay free on the file systems that the command may write to

	// Connect serves a connection that a process of the command has opened by [Dial]. It is called in a goroutine of its
	// own, for at most [MaxConnections] at once: further ones wait. The connection ends with the process, or is closed when
	// Connect returns. nil: there are none, as in mode off. No other process can open one: the kernel asks for each on
	// behalf of a process below this command's filter of system calls.
	Connect func(conn *os.File) `json:"-"`

	Memory    int64 // bytes: for each process, and for the resident memory of the tree; 0: unlimited
	Processes int   // processes and threads of the tree; 0: unlimited
}

// SystemDirs are the directories that every command may read, if they exist. /etc is read by nearly every program; of a
// server of root, files that only root may read stay unreadable.
var SystemDirs = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu",
}

// Mount makes a file or directory of this machine visible to a command.
type Mount struct {
	Source string // absolute, without links; "": an empty directory or file that hides what is at Target
	Target string // where the command sees it; the same as Source but for scratch directories
	Write  bool
	// Bounded counts what is below it for Spec.ScratchMax; with Write.
	Bounded bool
	File    bool // Target is a file (of an empty Source)
	Maybe   bool // skip it if Source is missing
	Plain   bool // no part of Source may be a link: commands may write to the directories above it
}

// MaxConnections is how many connections the processes of one command have at once.
const MaxConnections = 64

// Status is how a command ended.
type Status struct {
	Exit    int    `json:"exit"`              // exit code; 128 + the signal if a signal ended it, as a shell reports it
	Signal  string `json:"signal,omitempty"`  // "SIGKILL (killed)", "SIGSEGV (segmentation fault)"; "": it exited
	Left    int    `json:"left,omitempty"`    // processes that it left running, and that were killed
	Scratch int64  `json:"scratch,omitempty"` // size of the scratch directory when it was last measured; 0: it was not
	Limit   string `json:"limit,omitempty"`   // the limit that ended it: "4 GiB of memory"

	// Unrouted is how much of a failed command's traffic was refused because it has no network; nil: not counted.
	Unrouted *int64 `json:"unrouted,omitempty"`
}

// Errors of [Start].
var (
	// ErrNotReady is for programs that did not call [Main].
	ErrNotReady = errors.New("sandbox.Main was not called first thing in main")

	// ErrNotFound is returned if the program of the command does not exist or cannot be executed.
	ErrNotFound = errors.New("cannot be run")
)

// Unavailable reports that this machine cannot contain a command as required.
type Unavailable struct {
	Layer string // the layer that is missing
	Cause error
}

func (e *Unavailable) Error() string { return fmt.Sprintf("%s: %v", e.Layer, e.Cause) }

func (e *Unavailable) Unwrap() error { return e.Cause }

// Layer is one layer of containment, and whether it holds on this machine.
type Layer struct {
	Name   string
	Holds  bool
	Detail string // what it prevents, or why it is missing
	Needs  string // what would make it hold; "" if it does
}

// Strongest returns the mode that layers allow: the first of required, best-effort and off, "" if no command can be
// run. Without the layer of rights, which is the build's, not even best-effort runs a command.
func Strongest(layers []Layer) Mode {
	mode := Required
	for _, l := range layers {
		switch {
		case l.Holds:
		case l.Name == "sandbox":
			return ""
		case l.Name == "rights":
			return Off
		default:
			mode = BestEffort
		}
	}
	return mode
}

// Remedy returns what makes a missing layer of containment available.
func Remedy(layer string) string { return remedies[layer] }

var remedies = map[string]string{
	"namespaces": "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, " +
		"kernel.apparmor_restrict_unprivileged_userns=0, user.max_*_namespaces above 0; in a container, a seccomp profile " +
		"that permits unshare)",
	"files":        "run the server outside a container that hides parts of its /proc",
	"landlock":     "a kernel of 5.13 or later with landlock in its lsm= list",
	"owners":       "a file system that maps owners (ext4, xfs, btrfs, tmpfs), and the right to mount",
	"rights":       "a build with CGO_ENABLED=0",
	"system calls": "a kernel with CONFIG_SECCOMP_FILTER",
	"sandbox":      "Linux on amd64 or arm64",
}

// argument is the hidden argument that makes a process the init of a sandbox.
const argument = "__sandbox"

// startTimeout bounds the time until a command runs: mounts of a hanging file system never return.
const startTimeout = 20 * time.Second

var ready bool

// initBinary is the program that becomes init.
var initBinary = "/proc/self/exe"

// Use makes init start from another build of this program. Tests with the race detector call it: the detector needs
// cgo, and a program linked with cgo cannot drop its rights on all threads.
func Use(path string) { initBinary = path }

// Main runs the init of a sandbox if the arguments ask for one. Then ran is true, and the process must exit with code
// at once. Call Main first in main, and in TestMain of tests whose code runs commands.
func Main(args []string) (ran bool, code int) {
	if len(args) < 2 || args[1] != argument {
		ready = true
		return false, 0
	}
	if len(args) != 3 {
		fmt.Fprintln(os.Stderr, "this is how mcp-funnel contains commands; there is nothing to call here")
		return true, 1
	}
	return true, runChild(args[2])
}
