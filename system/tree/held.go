package tree

import (
	"slices"
	"sync/atomic"
	"time"
)

// deniedTTL is how long a walk caches the identities of denied files.
const deniedTTL = 5 * time.Millisecond

// Held is a directory that a walk found a file in. It stays open so that the file can be opened by its base name,
// however deep it is, after the walk has moved on. Its holder must call Release once, from any goroutine.
type Held struct {
	walk  *shared
	dir   folder
	holds atomic.Int32
}

// shared is the state that the directories of one walk share.
type shared struct {
	root   *Root
	held   atomic.Int32
	denied atomic.Pointer[deniedFiles]
}

// deniedFiles are the identities of the denied files at a time.
type deniedFiles struct {
	all []ident
	at  time.Time
}

// Release ends one hold; the last one closes the directory. On nil it does nothing.
func (h *Held) Release() {
	if h != nil && h.holds.Add(-1) == 0 {
		h.dir.close()
		h.walk.held.Add(-1)
	}
}

// Open opens the file with this path, whose directory h is. Anything but a plain, non-empty, permitted file is left to
// [Root.OpenFile], which returns the errors.
func (h *Held) Open(path string) (Opened, error) {
	o, id, regular, err := h.dir.openPlain(path)
	switch {
	case err == nil && regular && o.size > 0 && !h.walk.isDenied(id):
		return o, nil
	case err == nil:
		_ = o.Close()
	}
	return h.walk.root.Opened(path)
}

// Opened is [Root.OpenFile] for one who only reads.
func (r *Root) Opened(path string) (Opened, error) {
	f, fi, err := r.OpenFile(path)
	if err != nil {
		return Opened{}, err
	}
	return openedFile(f, fi.Size()), nil
}

// isDenied reports whether a file is denied, by identities at most [deniedTTL] old.
func (s *shared) isDenied(id ident) bool {
	if len(s.root.denied.list) == 0 {
		return false
	}
	cached := s.denied.Load()
	if cached == nil || time.Since(cached.at) > deniedTTL {
		cached = &deniedFiles{at: time.Now(), all: s.root.denied.identities()}
		s.denied.Store(cached)
	}
	return slices.ContainsFunc(cached.all, id.same)
}

// Mark returns the mark of the file with this path, whose directory h is, without opening it.
func (h *Held) Mark(path string) (Mark, error) {
	at, err := h.dir.lstat(nameOf(path))
	if err != nil {
		return Mark{}, err
	}
	return at.mark(), nil
}
