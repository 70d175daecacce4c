// Package tree opens and walks roots: directories the operator granted. It is the only place where a path below a root
// is opened, and has globs, ignore rules and types for walks.
//
// A walk reads the content of ignore files only, and changes nothing. Files are changed by one name in an open
// directory: see [Root.Parent].
package tree

import (
	"io/fs"
	"time"
)

// Entry is a file or directory that a walk found.
type Entry struct {
	Path     string // slash path below the root, without "./"
	Type     Type
	Size     int64
	Modified time.Time
	Mark     Mark  // of a file, if Stat is set
	In       *Held // of a file, if Hold is set: release it; if nil, open the file by [Root.OpenFile]
}

// Options of a walk.
type Options struct {
	Start string // directory below the root; "" or "." is the root
	Glob  *Glob  // matched against the path below Start; nil matches all
	All   bool   // include hidden and ignored entries (.git is listed, never entered)
	Depth int    // 0: unlimited; 1: the entries of Start only
	Stat  bool   // fill in Size, Modified and Mark …
	Type  Type   // … of entries of this type; "": of all
	Hold  bool   // files will be opened: see [Entry].In
	Ahead bool   // visits take long: walk concurrently with them, as with Stat

	// Progress, if not nil, is called now and then with the report so far.
	Progress func(Report)

	// Skipped, if not nil, is called for each hidden or ignored entry, in the goroutine of the walk: not that of visit. A
	// directory is one entry. ".git" counts as hidden here.
	Skipped func(path, why string)
}

// Report counts what a walk found and what it skipped.
type Report struct {
	Dirs       int64 // directories below Start, whether or not the glob matched
	Files      int64 // other entries, whether or not the glob matched
	Ignored    int64 // hidden or ignored entries; a directory counts as one
	Unreadable int64 // directories that could not be read
	CutRules   int64 // ignore files that were applied in part only: see [MaxRules]

	Stores     int64  // directories that were skipped because they have the [StoreMarker]
	FirstStore string // the path of the first of them
}

// SkipAll ends a walk without an error if visit returns it.
var SkipAll = fs.SkipAll
