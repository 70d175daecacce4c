package worker

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// probeLayers tries, inside a worker, what it must not be able to do, and reports each layer.
func probeLayers() []Layer {
	return []Layer{
		tryLandlock(), tryCalls(), tryCapabilities(), tryPrivileges(),
		tryMemory(), tryTime(), tryRest(), tryEnvironment(),
	}
}

func layer(name string, holds bool, detail, otherwise string) Layer {
	if !holds {
		detail = otherwise
	}
	return Layer{name, holds, detail}
}

// tryLandlock relies on the kernel's answer: the system call filter already denies what Landlock would deny.
func tryLandlock() Layer {
	version := landlockABI()
	otherwise := "refused by the kernel"
	switch {
	case version == 0:
		otherwise = "not in this kernel, or switched off"
	case landlockFailed != nil:
		otherwise = "refused by the kernel: " + landlockFailed.Error()
	}
	return layer(
		"landlock", version > 0 && landlockFailed == nil, fmt.Sprintf("version %d of it: no file can be opened", version),
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

func tryPrivileges() Layer {
	v, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	return layer("no new privileges", err == nil && v == 1, "nothing gains it rights", "not set")
}

func limited(resource int) (uint64, bool) {
	var r unix.Rlimit
	err := unix.Getrlimit(resource, &r)
	return r.Cur, err == nil && r.Cur != unix.RLIM_INFINITY
}

func tryMemory() Layer {
	_, ok := limited(unix.RLIMIT_DATA)
	return layer("memory", ok, "a hard limit, by the kernel", "not limited")
}

func tryTime() Layer {
	_, ok := limited(unix.RLIMIT_CPU)
	return layer(
		"processor time", ok, "a hard limit, by the kernel; the deadline, by the parent", "the deadline only, by the parent",
	)
}

func tryRest() Layer {
	var missing []string
	for _, l := range []struct {
		name     string
		resource int
		most     uint64
	}{{"core dumps", unix.RLIMIT_CORE, 0}, {"file writes", unix.RLIMIT_FSIZE, 0}, {"open files", unix.RLIMIT_NOFILE, maxOpen}} {
		if v, ok := limited(l.resource); !ok || v > l.most {
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
