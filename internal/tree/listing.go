package tree

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"slices"
)

// listing holds the names of one directory: a million names of 20 bytes take 36 MB.
type listing struct {
	names []byte
	items []item
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

// maxListing is how many bytes of names of one directory are held: over ten million names.
const maxListing = 256 << 20

func (l *listing) add(name []byte, k kind) bool {
	if len(l.names)+len(name) > maxListing || len(name) > 1<<16-1 {
		return false
	}
	l.items = append(l.items, item{uint32(len(l.names)), uint16(len(name)), k})
	l.names = append(l.names, name...)
	return true
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

func (l *listing) has(name string) bool {
	_, ok := slices.BinarySearchFunc(l.items, name, func(it item, want string) int {
		return compare(l.names[it.at:it.at+uint32(it.size)], want)
	})
	return ok
}

func compare(a []byte, b string) int {
	switch s := string(a); { // not allocated: compared only
	case s < b:
		return -1
	case s > b:
		return 1
	}
	return 0
}

var errTooMany = errors.New("more names in one directory than can be held")

// take adds a name to the list, but not "." and ".."; false: the list is full.
func (l *listing) take(name []byte, k kind) bool {
	if len(name) == 0 || name[0] == '.' && (len(name) == 1 || len(name) == 2 && name[1] == '.') {
		return true
	}
	return l.add(name, k)
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
