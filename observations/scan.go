package observations

import (
	"errors"
	"io/fs"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations/storefs"
)

// entry describes the files of one ID.
type entry struct {
	id                            ID
	data                          string // name of the data file; "" in a tombstone
	side, index, pin              bool
	used                          time.Time // mtime of the sidecar, else of another file
	dataSize, sideSize, indexSize int64

	whole   bool     // the data are a regular file
	sidecar *sidecar // the decoded sidecar; only set in a listing

	// err is set if the disk could not report these files: then none of them is removed.
	err error
}

func (e *entry) size() int64 { return e.dataSize + e.sideSize + e.indexSize }

// name returns the name of a file beside the data.
func (e *entry) name(ext string) string { return e.id.file(ext) }

// file returns the path in the store of an observation's sidecar or index, by extension.
func (id ID) file(ext string) string { return storefs.ObservationsDir + "/" + string(id) + ext }

// scan lists a store by file names, with their sizes if asked for. Files with other names are ignored.
func (s *Store) scan(sizes bool) (map[ID]*entry, error) {
	all := map[ID]*entry{}
	of := func(id ID) *entry {
		e := all[id]
		if e == nil {
			e = &entry{id: id}
			all[id] = e
		}
		return e
	}
	err := s.disk.VisitNames(storefs.ObservationsDir, func(name string, regular bool) {
		stem, ext, _ := strings.Cut(name, ".")
		id := ID(stem)
		if !id.valid() {
			if id, ok := parseDataName(name); ok {
				e := of(id)
				e.data, e.whole = name, regular
			}
			return
		}
		switch "." + ext {
		case sideExt:
			of(id).side = true
		case indexExt:
			of(id).index = true
		case pinExt:
			of(id).pin = true
		}
	})
	if err != nil {
		return nil, err
	}
	if sizes {
		for _, e := range all {
			s.statEntry(e)
		}
	}
	return all, nil
}

// statEntry fills in sizes and the last use, and clears the files that vanished meanwhile.
func (s *Store) statEntry(e *entry) {
	stat := func(exists bool, name string, size *int64) bool {
		if !exists {
			return false
		}
		info, err := s.disk.Stat(storefs.ObservationsDir + "/" + name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			e.err = err
		}
		if err != nil || !info.Mode().IsRegular() {
			return false
		}
		*size = info.Size()
		if e.used.IsZero() {
			e.used = info.ModTime()
		}
		return true
	}
	// The sidecar is the first, because its mtime is the last use.
	e.side = stat(e.side, string(e.id)+sideExt, &e.sideSize)
	if !stat(e.data != "", e.data, &e.dataSize) {
		e.data = ""
	}
	e.index = stat(e.index, string(e.id)+indexExt, &e.indexSize)
}
