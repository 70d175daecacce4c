package stdio

import "golang.org/x/sys/unix"

// pollRDHup is the poll event of a socket whose peer has closed its writing side but may still read. Some clients use
// sockets as pipes.
const pollRDHup = unix.POLLRDHUP
