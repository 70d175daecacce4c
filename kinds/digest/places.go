package digest

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

const (
	fileNames = 12_000  // maximum number of names counted exactly
	fileBytes = 1 << 20 // maximum total bytes of these names
	fileMarks = 1 << 17 // maximum number of further names, counted by hash
	topFiles  = 10
)

// places lists the JSON keys whose value names a file, preferred key first.
var places = [...]string{
	"file", "path", "filename", "filePath", "file_path", "fileName", RipgrepPath, "uri", "url",
}

const (
	// RipgrepPath is the path of the key in which a record of "rg --json" names its file.
	RipgrepPath = "data.path.text"

	typePlace = 255 // place of the key "type", which says whether a record of "rg --json" is a match
)

// PlaceOf returns the 1-based index of key in places, a place of its own for the key "type", or 0 for other keys.
func PlaceOf(key []byte) uint8 {
	if string(key) == "type" {
		return typePlace
	}
	return uint8(slices.Index(places[:], string(key)) + 1)
}

// ColumnPlace returns the place of the column of a table, or 0 if the column names no file: the case of its name and
// its spaces, dashes and underscores do not matter.
func ColumnPlace(name string) uint8 {
	plain := strings.NewReplacer(" ", "", "-", "", "_", "").Replace(name)
	names := places[:slices.Index(places[:], RipgrepPath)]
	return uint8(slices.IndexFunc(names, func(p string) bool { return strings.EqualFold(plain, p) }) + 1)
}

// FileCounts counts elements by the file that they name. Any number of names in sorted order, as search tools print
// them, is counted exactly. Unsorted names are counted exactly up to fileNames names or fileBytes bytes, and by
// hash for fileMarks more.
type FileCounts struct {
	Best     uint8 // index from PlaceOf of the best key in the current element; 0 if none
	name     []byte
	keys     [len(places) + 1]int64
	Elements int64            // number of elements that name a file
	Others   int64            // number of records of "rg --json" that name a file but are no match
	other    bool             // the current element is such a record
	at       map[string]int32 // index into all, by name
	all      []fileRun
	bytes    int
	many     bool // true if some names did not fit in all

	seed  maphash.Seed
	marks map[uint64]struct{}
	lost  bool // true if some names did not fit in marks either

	last   []byte
	run    int64
	runs   int64
	jumped bool      // true if the names are not in sorted order
	top    []fileRun // the longest runs
}

type fileRun struct {
	name string
	n    int64
}

// AddName stores the file name of the current element. raw is the JSON string as written, possibly truncated; size is
// its full length in bytes, or −1 if raw has no escapes to decode. A key with a lower place replaces an earlier name.
func (f *FileCounts) AddName(place uint8, raw []byte, size int64) {
	if place == typePlace {
		f.other = string(raw) == "begin" || string(raw) == "end" || string(raw) == "context"
		return
	}
	if f.Best != 0 && f.Best <= place {
		return
	}
	f.Best = place
	f.name = append(f.name[:0], raw...)
	if size == int64(len(raw)) && bytes.IndexByte(raw, '\\') >= 0 {
		f.name = content.AppendUnquoted(f.name[:0], raw)
	}
}

// Begin starts an element and forgets one that did not end.
func (f *FileCounts) Begin() { f.Best, f.other = 0, false }

// End counts the current element.
func (f *FileCounts) End() { f.EndTimes(1) }

// EndTimes counts the current element n times.
func (f *FileCounts) EndTimes(n int64) {
	if f.Best == 0 {
		return
	}
	if f.other && places[f.Best-1] == RipgrepPath {
		f.Others++
		f.Best = 0
		return
	}
	f.keys[f.Best] += n
	f.Best = 0
	f.Elements += n
	if f.runs > 0 && string(f.name) == string(f.last) {
		f.run += n
	} else {
		f.endRun()
		f.jumped = f.jumped || f.runs > 0 && string(f.name) < string(f.last)
		f.last = append(f.last[:0], f.name...)
		f.run, f.runs = n, f.runs+1
	}
	if i, ok := f.at[string(f.name)]; ok {
		f.all[i].n += n
		return
	}
	if len(f.all) < fileNames && f.bytes+len(f.name) <= fileBytes {
		if f.at == nil {
			f.at = map[string]int32{}
		}
		name := string(f.name)
		f.at[name] = int32(len(f.all))
		f.all = append(f.all, fileRun{name, n})
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

func (f *FileCounts) endRun() {
	if f.run > 0 && (len(f.top) < topFiles || f.run > f.top[topFiles-1].n) {
		f.top = addTop(f.top, fileRun{string(f.last), f.run})
	}
}

// Distinct returns the number of distinct files, or −1 if it could not be counted.
func (f *FileCounts) Distinct() int64 {
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

// Key returns the key that named the files, or "" if several keys did.
func (f *FileCounts) Key() string {
	for i, p := range places {
		if f.keys[i+1] == f.Elements {
			return p
		}
	}
	return ""
}

// MostOf reports whether at least half of n elements name a file.
func (f *FileCounts) MostOf(n int64) bool { return f.Elements > 0 && (f.Elements+f.Others)*2 >= n }

// Total returns a part of a total line: "1204 matches in 32 files", or "32 files" with list=true if the elements are a
// list of files, in which each file occurs once.
func (f *FileCounts) Total() (total string, list bool) {
	files, key := f.Distinct(), f.Key()
	matches := content.Plural(f.Elements, "match", "matches")
	switch {
	case files < 0:
		return matches, false
	case key == "file" || key == "filename" || key == RipgrepPath || files < f.Elements:
		return matches + " in " + content.Plural(files, "file", "files"), false
	case strings.HasPrefix(key, "file"):
		key = "file"
	}
	return content.Plural(files, key, key+"s"), true
}

// TopLine returns a line such as "top: src/a.go 120, src/b.go 88" with the files that have most elements; "" if
// there are fewer than two files or no file has more than one element.
func (f *FileCounts) TopLine() string {
	var all []fileRun
	switch {
	case !f.many:
		for _, r := range f.all {
			all = addTop(all, r)
		}
	case !f.jumped:
		f.endRun()
		f.run = 0
		all = f.top
	default:
		return ""
	}
	if len(all) < 2 || all[0].n < 2 {
		return ""
	}
	var parts []string
	for _, r := range all {
		if r.n > 1 {
			parts = append(parts, content.Clip(r.name, NameRunes)+" "+Number(r.n))
		}
	}
	return "top: " + strings.Join(parts, ", ")
}

// addTop adds a file to the topFiles files with most elements, which are sorted by count, then by name.
func addTop(top []fileRun, r fileRun) []fileRun {
	i, _ := slices.BinarySearchFunc(top, r, func(a, b fileRun) int {
		return cmp.Or(cmp.Compare(b.n, a.n), strings.Compare(a.name, b.name))
	})
	if i == topFiles {
		return top
	}
	top = slices.Insert(top, i, r)
	return top[:min(len(top), topFiles)]
}
