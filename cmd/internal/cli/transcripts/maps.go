package transcripts

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/session/compaction"
	"github.com/mcp-funnel/mcp-funnel/session/transcript"
	"github.com/mcp-funnel/mcp-funnel/system/osfile"
)

// Limits of maps. A map that was not used for maxMapAge is forgotten.
const (
	maxMap    = 64 << 20 // bytes
	maxMapAge = 30 * 24 * time.Hour
)

// mapDir is the store's directory maps/. It has the map of each session that was compacted, in a file of its own.
type mapDir struct {
	*os.Root
	store *observations.Store
}

// openMaps opens the directory of maps, and makes it if it is missing. The caller closes it.
func openMaps(store *observations.Store) (*mapDir, error) {
	dir := filepath.Join(store.Dir(), "maps")
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, cli.ExplainWrite(store, err)
	}
	root, err := osfile.OpenDir(dir)
	return &mapDir{root, store}, err
}

// lock lets one process at a time compact.
func (d *mapDir) lock() (unlock func(), err error) {
	f, err := osfile.LockIn(d.Root, "lock", 0)
	if errors.Is(err, osfile.ErrBusy) {
		err = errors.New("another process is compacting with this store: try again when it has ended")
	}
	if err != nil {
		return nil, err
	}
	return func() { osfile.Unlock(f); _ = f.Close() }, nil
}

func mapName(t *transcript.Transcript) string { return compaction.Key(t) + ".json" }

// load returns the map of a transcript; an empty one if there is none.
func (d *mapDir) load(t *transcript.Transcript) (*compaction.Map, error) {
	now := time.Now()
	_ = d.Chtimes(mapName(t), now, now) // maps age from their last use
	m, err := d.read(mapName(t))
	if errors.Is(err, fs.ErrNotExist) {
		return &compaction.Map{V: 1, Format: string(t.Format), Session: t.Session}, nil
	}
	if err != nil {
		return nil, fmt.Errorf(
			"the map %s is damaged, or of another version (%w): without it nothing that was replaced"+
				" is restored, and its outputs stay pinned; to compact anew, move it away and unpin them (observations unpin)",
			filepath.Join(d.store.Dir(), "maps", mapName(t)), err)
	}
	return m, nil
}

// read reads a map, and checks it.
func (d *mapDir) read(name string) (*compaction.Map, error) {
	text, err := osfile.ReadIn(d.Root, name, maxMap)
	if err != nil {
		return nil, err
	}
	var m compaction.Map
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, err
	}
	if m.V != 1 {
		return nil, fmt.Errorf("it is of version %d", m.V)
	}
	return &m, m.Check()
}

// save writes the map of a transcript, by rename.
func (d *mapDir) save(t *transcript.Transcript, m *compaction.Map) error {
	if len(m.Swaps) == 0 {
		return nil
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if err := osfile.ReplaceIn(d.Root, mapName(t), mapName(t)+".tmp", text); err != nil {
		return fmt.Errorf("the map could not be written, and without it nothing can be restored: %w",
			cli.ExplainWrite(d.store, err))
	}
	return nil
}

// referred returns the observations that other maps than one refer to: a fork's map has those of its original. A map
// that cannot be read is an error, because nobody knows what it refers to.
func (d *mapDir) referred(except string) (map[string]bool, error) {
	all := map[string]bool{}
	names, _ := fs.Glob(d.FS(), "*.json")
	for _, name := range names {
		if name == except {
			continue
		}
		m, err := d.read(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("nothing is unpinned, because the map %s cannot be read (%w): repair it, or move it away",
				filepath.Join(d.Name(), name), err)
		}
		for _, s := range m.Swaps {
			all[s.Observation] = true
		}
	}
	return all, nil
}

// forgetOld unpins the outputs of maps that were not used for a long time, and removes these maps, but not the one that
// is used now. Nothing is unpinned while a map cannot be read.
func (d *mapDir) forgetOld(used string) {
	now := time.Now()
	names, _ := fs.Glob(d.FS(), "*.json")
	for _, name := range names {
		info, err := d.Lstat(name)
		if err != nil || name == used || !info.Mode().IsRegular() || now.Sub(info.ModTime()) < maxMapAge {
			continue
		}
		old, err := d.read(name)
		if err != nil {
			continue
		}
		others, err := d.referred(name)
		if err != nil {
			return // the maps stay, and nothing else depends on them
		}
		for _, s := range old.Swaps {
			if others[s.Observation] {
				continue
			}
			if id, err := observations.ParseID(strings.TrimSpace(s.Observation)); err == nil {
				_ = d.store.Pin(observations.Local, id, false)
			}
		}
		_ = d.Remove(name)
	}
}
