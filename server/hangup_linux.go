package server

import "golang.org/x/sys/unix"

// halfClosed is what poll says of a socket whose other end will write no more but may read on: some
// clients' pipes are sockets.
const halfClosed = unix.POLLRDHUP
