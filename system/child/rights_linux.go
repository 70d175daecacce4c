package child

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// AllThreads makes a system call on every thread. It is not available to programs linked with cgo.
func AllThreads(call, a, b uintptr) error {
	if _, _, e := syscall.AllThreadsSyscall(call, a, b, 0); e != 0 {
		return e
	}
	return nil
}

// DropCapabilities drops the capabilities of root, or of the first process in a user namespace.
func DropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return AllThreads(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none[0])))
}
