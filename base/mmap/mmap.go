// Package mmap maps parts of large files into memory, without a copy.
//
// It is no substitute for reading, because another process may change or truncate the file meanwhile. Use a mapping to
// find parts of a file, and read these parts by [os.File.ReadAt] before you use them.
package mmap

import (
	"io"
	"runtime/debug"
	"syscall"
	"unsafe"
)

// A File can be mapped. Its opener must close it after the last View.
type File struct{ open opened }

// opened calls f with the descriptor of a file, which stays open during the call, like [syscall.RawConn].
type opened interface {
	Control(f func(fd uintptr)) error
}

// Of returns nil unless r is a file: an [os.File], another [syscall.Conn], or a type with a method Control. It also
// returns nil on a system or file system on which a page fault may take long, because a fault blocks a processor of
// the Go scheduler and a read does not.
func Of(r io.ReaderAt) *File {
	o, ok := r.(opened)
	if c, is := r.(syscall.Conn); is {
		conn, err := c.SyscallConn()
		o, ok = conn, err == nil
	}
	if !ok || !local(o) {
		return nil
	}
	return &File{o}
}

// Together these limits bound the mapped memory of this process.
const (
	MaxView  = 4 << 20 // maximum bytes of one View
	maxViews = 4       // maximum number of concurrent Views
)

var viewSlots = make(chan struct{}, maxViews)

// View maps the n bytes from offset from, and calls look with them at most once. It returns false if the file is too
// short, was truncated during the call or cannot be mapped, if n is over MaxView, or if 4 other Views run. The caller
// must then ignore the results of look.
//
// look must not write to b, and not use b after it returns. b may change at any time.
func (f *File) View(from int64, n int, look func(b []byte)) bool {
	if from < 0 || n <= 0 || n > MaxView {
		return false
	}
	select {
	case viewSlots <- struct{}{}:
		defer func() { <-viewSlots }()
	default:
		return false
	}
	all, view := f.mapRange(from, n)
	if view == nil {
		return false
	}
	defer unmap(all)
	return guard(all, func() { look(view) })
}

// guard runs look. It returns false if look accessed a missing page of b: the file was truncated, or cannot be read.
func guard(b []byte, look func()) (ok bool) {
	before := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(before)
		if p := recover(); p != nil {
			start := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
			if at, is := p.(interface{ Addr() uintptr }); !is || at.Addr() < start || at.Addr() >= start+uintptr(len(b)) {
				panic(p)
			}
			ok = false
		}
	}()
	look()
	return true
}
