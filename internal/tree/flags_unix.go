//go:build unix && !linux

package tree

import "syscall"

// openFlags keep the opening of a FIFO or a terminal from waiting or taking hold.
const openFlags = syscall.O_NONBLOCK | syscall.O_NOCTTY
