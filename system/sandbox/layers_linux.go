//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"os/exec"
	"syscall"
	"unsafe"

	lsys "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/mcp-funnel/mcp-funnel/system/child"
)

// namespaceKinds are the namespaces of a command, and what each prevents.
var namespaceKinds = []struct {
	name    string
	flag    uintptr
	prevent string
}{
	{"user namespace", 0, "a command has no rights of this machine"},
	{"mount namespace", syscall.CLONE_NEWNS, "a command sees only what is granted"},
	{"process namespace", syscall.CLONE_NEWPID, "a command sees no other process, and ends with all that it starts"},
	{
		"network namespace",
		syscall.CLONE_NEWNET,
		"a command has a loopback interface of its own, unless the network is granted",
	},
	{"IPC namespace", syscall.CLONE_NEWIPC, "a command shares no memory and no queues with others"},
}

// Layers tests each layer of containment on this machine. Whether mounts work inside, only [Start] can tell.
func Layers() (layers []Layer) {
	add := func(name, part, detail string, err error) {
		l := Layer{Name: name, Holds: err == nil, Detail: detail}
		if err != nil {
			l.Detail, l.Needs = err.Error(), Remedy(part)
		}
		layers = append(layers, l)
	}
	for _, k := range namespaceKinds {
		add(k.name, layerNamespaces, k.prevent, tryNamespace(k.flag))
	}
	version, err := lsys.LandlockGetABIVersion()
	add(
		"Landlock",
		layerLandlock,
		fmt.Sprintf("ABI %d: the kernel checks each path that a command opens", version),
		err,
	)
	add("system call filter", layerCalls, "a command cannot mount, trace or load anything", tryFilter())
	add("rights", layerRights, "a command gains no rights by programs that it runs",
		child.AllThreads(unix.SYS_PRCTL, unix.PR_GET_NO_NEW_PRIVS, 0))
	return layers
}

// tryNamespace starts a process in a user namespace, and in another one of the given kind.
func tryNamespace(flag uintptr) error {
	cmd := exec.Command(initBinary, argument, asOwner) //nolint:noctx // it ends at once: its standard input is empty
	cmd.Dir, cmd.Env = "/", []string{}
	cmd.SysProcAttr = attributes(true, false)
	cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER | flag
	cmd.SysProcAttr.Pdeathsig = 0
	return cmd.Run()
}

// tryFilter asks the kernel whether a filter may refuse a system call.
func tryFilter() error {
	const getActionAvail, retErrno = 2, uint32(0x00050000)
	action := retErrno
	_, _, e := unix.Syscall(unix.SYS_SECCOMP, getActionAvail, 0, uintptr(unsafe.Pointer(&action)))
	if e != 0 {
		return e
	}
	return nil
}

// Names of the layers.
const (
	layerNamespaces = "namespaces"
	layerFiles      = "files"
	layerNetwork    = "network"
	layerRights     = "rights"
	layerLandlock   = "landlock"
	layerCalls      = "system calls"
)
