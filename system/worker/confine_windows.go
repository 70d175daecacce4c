package worker

import (
	"os"
	"syscall"
)

const workDir = ""

func attributes(isolated bool) *syscall.SysProcAttr {
	if isolated {
		return nil
	}
	return &syscall.SysProcAttr{HideWindow: true}
}

func killGroup(*os.Process) {}

func awaitEnd(*os.Process) bool { return false }
