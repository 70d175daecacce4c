// Package mapped looks at large files in the kernel's own pages, without a copy.
//
// It is no way to read: another process may change what is looked at under the eye, or take it away. It is there to find out where
// nothing is; what is found has to be read, by [os.File.ReadAt], before anything is made of it.
package mapped

import (
	"io"
	"runtime/debug"
	"syscall"
	"unsafe"
)

// A File can be looked at. The one who opened it closes it, after the last look.
type File struct{ open opened }

// opened runs f with the descriptor of a file that stays open meanwhile, as [syscall.RawConn] does.
type opened interface {
	Control(f func(fd uintptr)) error
}

// Of returns nil where r is no file (neither an [os.File], or what else is a [syscall.Conn], nor one with a Control of its own), or one on
// a system or a file system where a look may wait for long: it holds a processor, as a read does not.
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

// Most bytes of one look, and how many looks there are at once in this process: together what it takes of memory.
const (
	MaxLook  = 4 << 20
	maxLooks = 4
)

var looks = make(chan struct{}, maxLooks)

// Look shows look the n bytes at from; it may do so once, or not at all. It is false where the bytes could not be shown to the end: the
// file is shorter, or has become so meanwhile, it cannot be mapped, or others look. What look has found is worth nothing then.
//
// b is not to be written to, nor kept. It may change from one moment to the next.
func (f *File) Look(from int64, n int, look func(b []byte)) bool {
	if from < 0 || n <= 0 || n > MaxLook {
		return false
	}
	select {
	case looks <- struct{}{}:
		defer func() { <-looks }()
	default:
		return false
	}
	all, view := f.view(from, n)
	if view == nil {
		return false
	}
	defer unmap(all)
	return guard(all, func() { look(view) })
}

// guard runs look, and returns false where b was no longer there: the file ends before it now, or could not be read.
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
