//go:build unix && !linux

package child

import (
	"os"
	"syscall"
)

const neutral = "/"

func attributes(isolated bool) *syscall.SysProcAttr {
	if isolated {
		return nil
	}
	return &syscall.SysProcAttr{Setpgid: true}
}

// killGroup kills a worker and all that it may have started.
func killGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }

// awaitEnd says false: here an end is only seen by waiting for it.
func awaitEnd(*os.Process) bool { return false }
