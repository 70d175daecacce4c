//go:build unix

package main

import "syscall"

// nonblock keeps the opening of a file from waiting.
const nonblock = syscall.O_NONBLOCK
