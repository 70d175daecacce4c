//go:build unix && !linux

package worker

import (
	"os"
	"syscall"
)

const workDir = "/"

func attributes(isolated bool) *syscall.SysProcAttr {
	if isolated {
		return nil
	}
	return &syscall.SysProcAttr{Setpgid: true}
}

// killGroup kills a worker and all processes that the worker started.
func killGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }

// awaitEnd returns false: on this system, waiting for the end also reaps the process.
func awaitEnd(*os.Process) bool { return false }
