// Package tree walks a root: globs, ignore rules, types. It is also the one
// place where a path below a root is opened.
//
// It does not read what files hold, except ignore files, and it changes nothing.
package tree

import (
	"errors"
	"io/fs"
	"time"
)

// Errors a caller branches on; messages are for the model and echo at most 200 bytes of the name.
var (
	ErrOutside = errors.New("outside the root")
	ErrNotFile = errors.New("not a regular file")                                 // directory, FIFO, socket, device
	ErrDenied  = errors.New("not readable by tools")                              // the store, the config, the token file
	ErrGone    = errors.New("was removed, moved or replaced since it was opened") // a root itself; fs.ErrNotExist too
)

// Type of an entry.
type Type string

// The types.
const (
	File  Type = "file"
	Dir   Type = "dir"
	Link  Type = "link"
	Other Type = "other"
)

// Entry is one name found.
type Entry struct {
	Path     string // slash, below the root, no "./"
	Type     Type
	Size     int64
	Modified time.Time
	In       *Held // of a file, where Hold was asked for: release it; nil: open it by [Root.OpenFile]
}

// Options of a walk.
type Options struct {
	Start string // directory below the root; "" or "." is the root
	Glob  *Glob  // matched against the path below Start; nil: all
	All   bool   // hidden and ignored ones too (.git is listed, never entered)
	Depth int    // 0: no limit; 1: the entries of Start only
	Stat  bool   // Size and Modified are wanted
	Hold  bool   // files are to be opened: see [Entry].In
	Ahead bool   // visiting takes a while: the walk goes on beside it, as it does with Stat

	// Progress, where not nil, is told now and then what the walk has seen so far.
	Progress func(Report)

	room int // bytes for names, in tests; 0: [ownRoom], and what is left of sharedRoom
}

// namesRoom is what a walk begins with.
func (o Options) namesRoom() room {
	if o.room > 0 {
		return room{o.room, true}
	}
	return room{left: ownRoom}
}

// Report says what a walk saw and what it passed over.
type Report struct {
	Dirs       int64 // directories below Start, whether or not the glob took them
	Files      int64 // other entries seen, whether or not the glob took them
	Ignored    int64 // entries passed over as hidden or ignored; a directory counts as one
	Unreadable int64 // directories that could not be read
	CutRules   int64 // ignore files of which only a part was applied: see [MaxRules]
}

// SkipAll ends a walk without an error.
var SkipAll = fs.SkipAll
