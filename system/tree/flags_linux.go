package tree

import "syscall"

// openFlags keep open from blocking on a FIFO and from acquiring a terminal. A 32-bit process opens files of 2 GiB and
// more only with O_LARGEFILE, which os.Root does not set.
const openFlags = syscall.O_NONBLOCK | syscall.O_NOCTTY | syscall.O_LARGEFILE
