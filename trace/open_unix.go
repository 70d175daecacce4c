//go:build unix

package trace

import "syscall"

// nonblock: what is a pipe by the time it is opened must not hang us.
const nonblock = syscall.O_NONBLOCK
