package tree

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// maxHeld is how many directories with files in them one walk keeps open, its own way down and those that others hold:
// each is a descriptor.
const maxHeld = 2 * maxOpen

// stale is how old what a walk knows of denied files may be when one is opened.
const stale = 5 * time.Millisecond

// Held is the directory a walk found a file in, kept open so that the file is opened by its one name, however deep it
// stands, after the walk has gone on. Whoever was given one calls Release once, from any goroutine.
type Held struct {
	walk  *shared
	dir   folder
	holds atomic.Int32
}

// nameOf is the last name of a path.
func nameOf(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// shared is what the directories of one walk have in common.
type shared struct {
	root   *Root
	held   atomic.Int32
	denied atomic.Pointer[known]
}

// known is which files were denied at a time.
type known struct {
	all []ident
	at  time.Time
}

// hold hands out the directory of a level once more; nil where it cannot be opened again, or too many are held.
func (w *walker) hold(at int) *Held {
	l := &w.stack[at]
	if l.held == nil {
		if w.shared.held.Load() >= maxHeld {
			return nil
		}
		dir, err := w.folder(at)
		if err != nil {
			return nil
		}
		w.shared.held.Add(1)
		l.held = &Held{walk: w.shared, dir: dir}
		l.held.holds.Add(1) // the level's own
	}
	l.held.holds.Add(1)
	return l.held
}

// close closes the directory of a level, once nobody holds it any more.
func (l *level) close() {
	if l.held != nil {
		l.held.Release()
		l.held = nil
	} else if l.open {
		l.dir.close()
	}
	l.open = false
}

// Release ends one hold.
func (h *Held) Release() {
	if h.holds.Add(-1) == 0 {
		h.dir.close()
		h.walk.held.Add(-1)
	}
}

// Open opens the file that the walk called path, whose directory h is. What is found there is looked at as by
// [Root.OpenFile], which is asked where there is anything special about it, and whose errors these are.
func (h *Held) Open(path string) (Opened, error) {
	o, id, regular, err := h.dir.openPlain(path)
	switch {
	case err == nil && regular && o.size > 0 && !h.walk.denies(id):
		return o, nil
	case err == nil:
		_ = o.Close()
	}
	f, fi, err := h.walk.root.OpenFile(path)
	if err != nil {
		return Opened{}, err
	}
	return OpenedFile(f, fi.Size()), nil
}

// denies says that a file is denied, by what was so at most [stale] ago.
func (s *shared) denies(id ident) bool {
	if len(s.root.denied.list) == 0 {
		return false
	}
	now := s.denied.Load()
	if now == nil || time.Since(now.at) > stale {
		at := time.Now()
		now = &known{s.root.denied.identities(), at}
		s.denied.Store(now)
	}
	return slices.ContainsFunc(now.all, id.same)
}
