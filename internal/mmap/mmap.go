// Package mmap maps parts of large files into memory, without a copy.
//
// It is no substitute for reading: another process may change or truncate the file meanwhile. Use it to find out where
// nothing is; read what is found, by [os.File.ReadAt], before you use it.
package mmap

import (
	"io"
	"runtime/debug"
	"syscall"
	"unsafe"
)

// Of returns nil unless r is a file: an [os.File], another [syscall.Conn], or a type with its own Control. It also
// returns nil on a system or file system where a page fault may take long, because a fault blocks a processor and a
// read does not.
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

// Limits on the bytes of one View and on concurrent Views in this process; together they bound the memory.
const (
	MaxView  = 4 << 20
	maxViews = 4
)

var viewSlots = make(chan struct{}, maxViews)

// View calls look with the n bytes at from, at most once. It returns false if the bytes could not be shown completely:
// the file is shorter or was truncated meanwhile, it cannot be mapped, or 4 other Views run. The results of look are
// invalid then.
//
// look must neither write to b nor keep it. b may change at any time.
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

// guard runs look, and returns false if a page of b was missing: the file was truncated, or could not be read.
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
