package tree

import (
	"bytes"
	"context"
	"io/fs"
	"slices"
	"sync/atomic"
)

// listing holds names of one directory, in order: all of them, or as many as there is room for, which are the first
// ones behind those that were had before. A million names of 20 bytes take 36 MB.
type listing struct {
	names   []byte
	items   []item
	ignores bool // a .gitignore is in the directory

	room   *room
	own    int    // bytes taken of the room
	pool   int64  // and of that of all walks
	after  []byte // names up to this one were had before; nil: none was
	before []byte // from this one on they are left for the next time; nil: nothing is left
}

type item struct {
	at   uint32
	size uint16
	kind kind
}

// kind is a type as the directory tells it.
type kind uint8

const (
	isUnknown kind = iota // the directory does not say
	isFile
	isDir
	isLink
	isOther
)

// typeOf is the exported word.
func (k kind) typeOf() Type {
	switch k {
	case isFile:
		return File
	case isDir:
		return Dir
	case isLink:
		return Link
	}
	return Other
}

// What names of directories may take in memory. What does not fit is read again from the directory when the names
// before it were visited: whoever makes a directory of a million long names takes time of a walk, and no memory.
const (
	stepRoom   = 128 << 10 // is taken at once; each directory on the way down has as much, whatever the others hold
	ownRoom    = 2 << 20   // of one walk
	sharedRoom = 16 << 20  // of all walks, above that
)

// pooled is what all walks have taken of sharedRoom.
var pooled atomic.Int64

// room is what one walk may hold of names.
type room struct {
	left  int
	fixed bool // and nothing of the pool, in tests
}

// grow takes another step of room; false: there is none.
func (l *listing) grow() bool {
	switch {
	case l.room.left >= stepRoom:
		l.room.left -= stepRoom
		l.own += stepRoom
		return true
	case l.room.fixed:
		return false
	case pooled.Add(stepRoom) <= sharedRoom:
		l.pool += stepRoom
		return true
	}
	pooled.Add(-stepRoom)
	return false
}

// free gives back what was taken.
func (l *listing) free() {
	if l.room != nil {
		l.room.left += l.own
	}
	pooled.Add(-l.pool)
	l.own, l.pool = 0, 0
}

// full says that another name does not fit.
func (l *listing) full(name []byte) bool {
	const itemSize = 8
	need := len(l.names) + len(name) + itemSize*(len(l.items)+1)
	for need > stepRoom+l.own+int(l.pool) {
		if !l.grow() {
			return true
		}
	}
	return false
}

// trim keeps the first half of the names, and leaves the others for the next time.
func (l *listing) trim(ctx context.Context) {
	l.sort(ctx)
	half := len(l.items) / 2
	l.before = bytes.Clone(l.name(half))
	old := *l
	l.names, l.items = make([]byte, 0, cap(l.names)), l.items[:0]
	for i := range half {
		l.add(old.name(i), old.items[i].kind)
	}
}

// next empties the list for the names that were left.
func (l *listing) next() {
	l.after, l.before = l.before, nil
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

// sort puts the names in byte order. A cancelled sort ends early, in any order.
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

// take adds a name to the list, but not "." and "..", and none that was had before or is left for later.
func (l *listing) take(ctx context.Context, name []byte, k kind) {
	if len(name) == 0 || name[0] == '.' && (len(name) == 1 || len(name) == 2 && name[1] == '.') {
		return
	}
	l.ignores = l.ignores || string(name) == ".gitignore"
	if l.after != nil && bytes.Compare(name, l.after) < 0 {
		return
	}
	for l.before == nil || bytes.Compare(name, l.before) < 0 {
		if !l.full(name) || len(l.items) < 2 {
			l.add(name, k)
			return
		}
		l.trim(ctx)
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
