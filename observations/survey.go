package observations

import (
	"errors"
	"io/fs"
	"strings"
	"time"
)

// entry is what stands in a store under one ID.
type entry struct {
	id                            ID
	data                          string // name of the data file; "" in a tombstone
	side, index, pin              bool
	used                          time.Time // mtime of the sidecar, else of what there is
	dataSize, sideSize, indexSize int64

	// doubt is why the disk could not say what stands here: then nothing is taken.
	doubt error
}

func (e *entry) size() int64 { return e.dataSize + e.sideSize + e.indexSize }

// name is that of a file beside the data.
func (e *entry) name(ext string) string { return observationsDir + "/" + string(e.id) + ext }

// survey lists a store by the names in it; with sizes also what each takes.
// Names and kinds of files that are not ours are passed by.
func (s *Store) survey(sizes bool) (map[ID]*entry, error) {
	all := map[ID]*entry{}
	of := func(id ID) *entry {
		e := all[id]
		if e == nil {
			e = &entry{id: id}
			all[id] = e
		}
		return e
	}
	err := s.disk.names(observationsDir, func(name string) {
		if id, ok := parseDataName(name); ok {
			of(id).data = name
			return
		}
		stem, ext, _ := strings.Cut(name, ".")
		id := ID(stem)
		if !id.valid() {
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
			s.measure(e)
		}
	}
	return all, nil
}

// measure takes sizes and the last use; what vanished meanwhile is absent.
func (s *Store) measure(e *entry) {
	look := func(name string) (fs.FileInfo, bool) {
		info, err := s.disk.stat(observationsDir + "/" + name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			e.doubt = err
			return nil, false
		}
		if err != nil || !info.Mode().IsRegular() {
			return nil, false
		}
		return info, true
	}
	if e.data != "" {
		if info, ok := look(e.data); ok {
			e.dataSize, e.used = info.Size(), info.ModTime()
		} else {
			e.data = ""
		}
	}
	if e.index {
		if info, ok := look(string(e.id) + indexExt); ok {
			e.indexSize = info.Size()
			if e.used.IsZero() {
				e.used = info.ModTime()
			}
		} else {
			e.index = false
		}
	}
	if e.side {
		if info, ok := look(string(e.id) + sideExt); ok {
			e.sideSize, e.used = info.Size(), info.ModTime()
		} else {
			e.side = false
		}
	}
}
