package summary

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
)

const (
	fileNames = 12_000  // names that are counted one by one …
	fileBytes = 1 << 20 // … of so many bytes in all
	fileMarks = 1 << 17 // further names are told apart by their hashes
	topFiles  = 10
)

// places are the keys that name the file an element speaks of, best first.
var places = [...]string{"file", "path", "filename", "uri", "url"}

// placeOf is 1 for the best key of places, 0 for other keys.
func placeOf(key []byte) uint8 {
	for i, p := range places {
		if string(key) == p {
			return uint8(i + 1)
		}
	}
	return 0
}

// files counts elements by the file they name. Names that follow each other in order (as search
// writes them) need no memory; others are counted exactly while there is room.
type files struct {
	best  uint8 // of the element being read; 0: none yet
	name  []byte
	keys  [len(places) + 1]int64
	n     int64            // elements that name a file
	at    map[string]int32 // of each name its place in all
	all   []fileRun
	bytes int
	many  bool // not all names are in all

	seed  maphash.Seed
	marks map[uint64]struct{}
	lost  bool // not all are in marks either

	last   []byte
	run    int64
	runs   int64
	jumped bool      // the names do not come in order
	top    []fileRun // the longest runs
}

type fileRun struct {
	name string
	n    int64
}

func newFiles() *files { return &files{} }

// see notes a name in the element being read.
func (f *files) see(place uint8, raw []byte, size int64) {
	if f.best != 0 && f.best <= place {
		return
	}
	f.best = place
	f.name = append(f.name[:0], raw...)
	if size == int64(len(raw)) && bytes.IndexByte(raw, '\\') >= 0 {
		f.name = unescaped(f.name[:0], raw)
	}
}

// end counts the element that ended.
func (f *files) end() {
	if f.best == 0 {
		return
	}
	f.keys[f.best]++
	f.best = 0
	f.n++
	if f.runs > 0 && string(f.name) == string(f.last) {
		f.run++
	} else {
		f.endRun()
		f.jumped = f.jumped || f.runs > 0 && string(f.name) < string(f.last)
		f.last = append(f.last[:0], f.name...)
		f.run, f.runs = 1, f.runs+1
	}
	if i, ok := f.at[string(f.name)]; ok {
		f.all[i].n++
		return
	}
	if len(f.all) < fileNames && f.bytes+len(f.name) <= fileBytes {
		if f.at == nil {
			f.at = map[string]int32{}
		}
		name := string(f.name)
		f.at[name] = int32(len(f.all))
		f.all = append(f.all, fileRun{name, 1})
		f.bytes += len(name)
		return
	}
	f.many = true
	if f.lost {
		return
	}
	if f.marks == nil {
		f.marks, f.seed = map[uint64]struct{}{}, maphash.MakeSeed()
	}
	f.marks[maphash.Bytes(f.seed, f.name)] = struct{}{}
	if len(f.marks) > fileMarks {
		f.lost, f.marks = true, nil
	}
}

func (f *files) endRun() {
	if f.run == 0 {
		return
	}
	if len(f.top) == topFiles && f.run <= f.top[topFiles-1].n {
		return
	}
	i, _ := slices.BinarySearchFunc(f.top, f.run, func(r fileRun, n int64) int {
		if r.n >= n {
			return -1
		}
		return 1
	})
	f.top = slices.Insert(f.top, i, fileRun{string(f.last), f.run})
	f.top = f.top[:min(len(f.top), topFiles)]
}

// distinct is how many files there are, −1 where that could not be counted.
func (f *files) distinct() int64 {
	switch {
	case !f.many:
		return int64(len(f.all))
	case !f.jumped:
		return f.runs
	case !f.lost:
		return int64(len(f.all) + len(f.marks))
	default:
		return -1
	}
}

// key is the key that named the files, or "" where there were several.
func (f *files) key() string {
	for i, p := range places {
		if f.keys[i+1] == f.n {
			return p
		}
	}
	return ""
}

// topLine is "top: src/a.go 120, src/b.go 88": the files with most elements; "" where none has more than one.
func (f *files) topLine() string {
	var all []fileRun
	switch {
	case !f.many:
		all = longest(f.all)
	case !f.jumped:
		f.endRun()
		f.run = 0
		all = longest(f.top)
	default:
		return ""
	}
	if len(all) < 2 || all[0].n < 2 {
		return ""
	}
	var parts []string
	for _, r := range all {
		if r.n > 1 {
			parts = append(parts, content.Clip(r.name, nameRunes)+" "+number(r.n))
		}
	}
	return "top: " + strings.Join(parts, ", ")
}

// longest are the topFiles of all with most elements, by name where they have as many.
func longest(all []fileRun) []fileRun {
	order := func(a, b fileRun) int { return cmp.Or(cmp.Compare(b.n, a.n), strings.Compare(a.name, b.name)) }
	var top []fileRun
	for _, r := range all {
		if len(top) == topFiles {
			if order(r, top[topFiles-1]) >= 0 {
				continue
			}
			top = top[:topFiles-1]
		}
		i, _ := slices.BinarySearchFunc(top, r, order)
		top = slices.Insert(top, i, r)
	}
	return top
}
