package stdio

import "golang.org/x/sys/unix"

// dupFD makes descriptor to a duplicate of from. (Some architectures of Linux have no dup2.)
func dupFD(from, to int) error { return unix.Dup3(from, to, 0) }
