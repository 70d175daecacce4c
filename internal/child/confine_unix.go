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

func kill(p *os.Process) {
	_ = syscall.Kill(-p.Pid, syscall.SIGKILL)
	_ = p.Kill()
}

func confine(memory, _ int64) error {
	watch(memory)
	return nil
}
