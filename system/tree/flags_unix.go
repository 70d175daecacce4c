//go:build unix && !linux

package tree

import "syscall"

// openFlags keep open from blocking on a FIFO and from acquiring a terminal.
const openFlags = syscall.O_NONBLOCK | syscall.O_NOCTTY
