package tree

import "syscall"

// openFlags keep the opening of a FIFO or a terminal from waiting or taking hold. A 32-bit process opens what is
// 2 GiB and more with O_LARGEFILE alone, which os.Root does not set by itself.
const openFlags = syscall.O_NONBLOCK | syscall.O_NOCTTY | syscall.O_LARGEFILE
