package worker

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// probeLayers tries forbidden operations inside a worker, and reports each layer.
func probeLayers() []Layer {
	privileges, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	_, memory := limitOf(unix.RLIMIT_DATA)
	_, cpu := limitOf(unix.RLIMIT_CPU)
	return []Layer{
		tryLandlock(), tryCalls(), tryCapabilities(),
		layer("no new privileges", err == nil && privileges == 1, "nothing gains it rights", "not set"),
		layer("memory", memory, "a hard limit, by the kernel", "not limited"),
		layer("processor time", cpu, "a hard limit, by the kernel; the deadline, by the parent",
			"the deadline only, by the parent"),
		tryRest(), tryEnvironment(),
	}
}

// layer returns a layer whose detail is detail if it holds, else otherwise.
func layer(name string, holds bool, detail, otherwise string) Layer {
	if !holds {
		detail = otherwise
	}
	return Layer{name, holds, detail}
}

// tryLandlock reports the kernel's answer. It cannot try to open a file: the system call filter already denies that.
func tryLandlock() Layer {
	version, err := syscall.LandlockGetABIVersion()
	otherwise := "refused by the kernel"
	switch {
	case err != nil:
		otherwise = "not in this kernel, or switched off"
	case landlockFailed != nil:
		otherwise = "refused by the kernel: " + landlockFailed.Error()
	}
	return layer(
		"landlock", err == nil && landlockFailed == nil, fmt.Sprintf("version %d of it: no file can be opened", version),
		otherwise,
	)
}

func tryCalls() Layer {
	_, file := os.Open("/")
	_, socket := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	mode, err := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0)
	const filtered = 2
	holds := err == nil && mode == filtered && errors.Is(file, os.ErrPermission) && errors.Is(socket, unix.EPERM)
	otherwise := "no filter is set"
	if filterFailed != nil {
		otherwise = filterFailed.Error()
	}
	return layer("system calls", holds, "no file by name, no network, no other process, by a filter", otherwise)
}

func tryCapabilities() Layer {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var has [2]unix.CapUserData
	err := unix.Capget(&header, &has[0])
	none := err == nil && has == [2]unix.CapUserData{}
	return layer("capabilities", none, "none, also where it runs as root", "it has some of root's")
}

// limitOf returns the value of a resource limit; ok is false if the resource is not limited.
func limitOf(resource int) (value uint64, ok bool) {
	var r unix.Rlimit
	err := unix.Getrlimit(resource, &r)
	return r.Cur, err == nil && r.Cur != unix.RLIM_INFINITY
}

func tryRest() Layer {
	var missing []string
	for _, l := range []struct {
		name     string
		resource int
		most     uint64
	}{{"core dumps", unix.RLIMIT_CORE, 0}, {"file writes", unix.RLIMIT_FSIZE, 0}, {"open files", unix.RLIMIT_NOFILE, maxOpen}} {
		if v, ok := limitOf(l.resource); !ok || v > l.most {
			missing = append(missing, l.name)
		}
	}
	return layer(
		"other limits", missing == nil, "no core dumps, no file writes, few open files",
		"not on "+strings.Join(missing, ", "),
	)
}

func tryEnvironment() Layer {
	var names []string
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); name != "GOTRACEBACK" && name != "TZ" {
			names = append(names, name)
		}
	}
	return layer("environment", names == nil, "empty but for the time zone", "it holds "+strings.Join(names, ", "))
}
