package mmap

// A File can be mapped. Its opener must close it after the last View.
type File struct{ open opened }

// opened calls f with the descriptor of a file, which stays open during the call, like [syscall.RawConn].
type opened interface {
	Control(f func(fd uintptr)) error
}
