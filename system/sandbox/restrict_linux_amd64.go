package sandbox

import "golang.org/x/sys/unix"

// rulesHere are calls that only this architecture has.
var rulesHere = []uintptr{unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_USELIB, unix.SYS__SYSCTL}
