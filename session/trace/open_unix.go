//go:build unix

package trace

import "syscall"

// nonblock keeps an open from blocking if the file was replaced by a pipe.
const nonblock = syscall.O_NONBLOCK
