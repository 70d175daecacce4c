package tree

import (
	"bytes"
	"context"
	"io/fs"
	"slices"
	"sync/atomic"
)

// listing holds the names of one directory, sorted: all of them, or as many as the budget permits, which are the first
// after those of the listing before. A million names of 20 bytes take 36 MB.
type listing struct {
	names   []byte
	items   []item
	ignores bool // a .gitignore is in the directory
	store   bool // [StoreMarker] is in it

	budget   *int   // bytes left of ownRoom
	own      int    // bytes taken from the walk's budget
	pool     int64  // bytes taken from the pool of all walks
	doneUpTo []byte // names before this one were listed earlier; nil: none were
	leftFrom []byte // names from this one on are left for later; nil: none are
}

type item struct {
	at   uint32
	size uint16
	kind kind
}

// kind is the type of an entry as the directory reports it.
type kind uint8

const (
	isUnknown kind = iota // the directory does not report it
	isFile
	isDir
	isLink
	isOther
)

// typeOf returns the exported type.
func (k kind) typeOf() Type { return [...]Type{Other, File, Dir, Link, Other}[k] }

// Memory for the names of directories. Names beyond it are read again from the directory after those before them were
// visited: a directory of a million long names takes time, but no memory.
const (
	// bytes reserved at a time; a directory may reserve this much once even if no memory is left
	stepRoom   = 128 << 10
	ownRoom    = 2 << 20  // of one walk
	sharedRoom = 16 << 20 // of all walks, beyond ownRoom
)

// pooledBytes is how many bytes of sharedRoom all walks have taken.
var pooledBytes atomic.Int64

// grow reserves another stepRoom bytes; false if none are left.
func (l *listing) grow() bool {
	switch {
	case *l.budget >= stepRoom:
		*l.budget -= stepRoom
		l.own += stepRoom
		return true
	case pooledBytes.Add(stepRoom) <= sharedRoom:
		l.pool += stepRoom
		return true
	}
	pooledBytes.Add(-stepRoom)
	return false
}

// free returns the reserved bytes.
func (l *listing) free() {
	*l.budget += l.own
	pooledBytes.Add(-l.pool)
	l.own, l.pool = 0, 0
}

// isFull reports whether another name does not fit.
func (l *listing) isFull(name []byte) bool {
	const itemSize = 8
	need := len(l.names) + len(name) + itemSize*(len(l.items)+1)
	for need > stepRoom+l.own+int(l.pool) {
		if !l.grow() {
			return true
		}
	}
	return false
}

// keepFirstHalf removes the second half of the names, to be read later.
func (l *listing) keepFirstHalf(ctx context.Context) {
	l.sort(ctx)
	half := len(l.items) / 2
	l.leftFrom = bytes.Clone(l.name(half))
	old := *l
	l.names, l.items = make([]byte, 0, cap(l.names)), l.items[:0]
	for i := range half {
		l.add(old.name(i), old.items[i].kind)
	}
}

// reset empties the listing for the names left for later.
func (l *listing) reset() {
	l.doneUpTo, l.leftFrom = l.leftFrom, nil
	l.names, l.items = l.names[:0], l.items[:0]
}

func (l *listing) add(name []byte, k kind) {
	l.items = append(l.items, item{uint32(len(l.names)), uint16(len(name)), k})
	l.names = append(l.names, name...)
}

func (l *listing) name(i int) []byte {
	it := l.items[i]
	return l.names[it.at : it.at+uint32(it.size)]
}

// sort sorts the names by bytes. If ctx is cancelled it stops, in any order.
func (l *listing) sort(ctx context.Context) {
	looked, stop := 0, false
	slices.SortFunc(l.items, func(a, b item) int {
		if looked++; looked&0xffff == 0 && ctx.Err() != nil {
			stop = true
		}
		if stop {
			return 0
		}
		return bytes.Compare(l.names[a.at:a.at+uint32(a.size)], l.names[b.at:b.at+uint32(b.size)])
	})
}

// insert adds a name, unless it is "." or "..", was listed before, or is left for later.
func (l *listing) insert(ctx context.Context, name []byte, k kind) {
	if len(name) == 0 || name[0] == '.' && (len(name) == 1 || len(name) == 2 && name[1] == '.') {
		return
	}
	l.store = l.store || string(name) == StoreMarker
	l.ignores = l.ignores || string(name) == ".gitignore"
	if l.doneUpTo != nil && bytes.Compare(name, l.doneUpTo) < 0 {
		return
	}
	for l.leftFrom == nil || bytes.Compare(name, l.leftFrom) < 0 {
		if !l.isFull(name) || len(l.items) < 2 {
			l.add(name, k)
			return
		}
		l.keepFirstHalf(ctx)
	}
}

func kindOf(m fs.FileMode) kind {
	switch {
	case m.IsRegular():
		return isFile
	case m.IsDir():
		return isDir
	case m&fs.ModeSymlink != 0:
		return isLink
	}
	return isOther
}

// TypeOf returns the type of an entry with a mode.
func TypeOf(m fs.FileMode) Type { return kindOf(m).typeOf() }

// Type is the type of an entry.
type Type string

// Types of entries.
const (
	File  Type = "file"
	Dir   Type = "dir"
	Link  Type = "link"
	Other Type = "other"
)
