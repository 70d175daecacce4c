package stdio

import "golang.org/x/sys/unix"

// dupFD makes descriptor to a duplicate of from. (Some architectures of Linux have no dup2.)
func dupFD(from, to int) error { return unix.Dup3(from, to, 0) }

// pollRDHup is the poll event of a socket whose peer has closed its writing side but may still read. Some clients use
// sockets as pipes.
const pollRDHup = unix.POLLRDHUP

// processFD returns a descriptor that is readable once a process has ended.
func processFD(pid int) (int, error) { return unix.PidfdOpen(pid, 0) }
