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

// Maps of compacted transcripts lie in the store's directory maps/, one file for each session. A map that was not used
// for maxMapAge is forgotten.
const (
	maxMap    = 64 << 20 // bytes
	maxMapAge = 30 * 24 * time.Hour
)

// mapsDir opens the directory of maps, and makes it if it is missing.
func mapsDir(store *observations.Store) (*os.Root, error) {
	dir := filepath.Join(store.Dir(), "maps")
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, cli.ExplainWrite(store, err)
	}
	return osfile.OpenDir(dir)
}

// lockMaps lets one process at a time compact.
func lockMaps(store *observations.Store) (unlock func(), err error) {
	root, err := mapsDir(store)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // the file stays open
	f, err := root.OpenFile("lock", os.O_RDWR|os.O_CREATE|osfile.Nonblock, 0o600)
	if err != nil {
		return nil, err
	}
	locked, err := osfile.TryLock(f, true)
	if err == nil && !locked {
		err = errors.New("another process is compacting with this store: try again when it has ended")
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return func() { osfile.Unlock(f); _ = f.Close() }, nil
}

func mapName(t *transcript.Transcript) string { return compaction.Key(t) + ".json" }

// loadMap returns the map of a transcript; an empty one if there is none.
func loadMap(store *observations.Store, t *transcript.Transcript) (*compaction.Map, error) {
	root, err := mapsDir(store)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // nothing was written to it
	now := time.Now()
	_ = root.Chtimes(mapName(t), now, now) // maps age from their last use
	m, err := readMap(root, mapName(t))
	if errors.Is(err, fs.ErrNotExist) {
		return &compaction.Map{V: 1, Format: string(t.Format), Session: t.Session}, nil
	}
	if err != nil {
		return nil, fmt.Errorf(
			"the map %s is damaged, or of another version (%w): without it nothing that was replaced"+
				" is restored, and its outputs stay pinned; to compact anew, move it away and unpin them (observations unpin)",
			filepath.Join(store.Dir(), "maps", mapName(t)),
			err,
		)
	}
	return m, nil
}

// readMap reads a map, and checks it.
func readMap(root *os.Root, name string) (*compaction.Map, error) {
	text, err := osfile.ReadIn(root, name, maxMap)
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

// saveMap writes the map of a transcript, by rename.
func saveMap(store *observations.Store, t *transcript.Transcript, m *compaction.Map) error {
	if len(m.Swaps) == 0 {
		return nil
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	root, err := mapsDir(store)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // the file is closed
	if err := osfile.ReplaceIn(root, mapName(t), mapName(t)+".tmp", text); err != nil {
		return fmt.Errorf("the map could not be written, and without it nothing can be restored: %w",
			cli.ExplainWrite(store, err))
	}
	return nil
}

func removeMap(store *observations.Store, t *transcript.Transcript) error {
	root, err := mapsDir(store)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // nothing was written to it
	if err := root.Remove(mapName(t)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// referred returns the observations that other maps than one refer to: a fork's map has those of its original. A map
// that cannot be read is an error, because nobody knows what it refers to.
func referred(root *os.Root, except string) (map[string]bool, error) {
	all := map[string]bool{}
	names, _ := fs.Glob(root.FS(), "*.json")
	for _, name := range names {
		if name == except {
			continue
		}
		m, err := readMap(root, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("nothing is unpinned, because the map %s cannot be read (%w): repair it, or move it away",
				filepath.Join(root.Name(), name), err)
		}
		for _, s := range m.Swaps {
			all[s.Observation] = true
		}
	}
	return all, nil
}

// forgetOld unpins the outputs of maps that were not used for a long time, and removes these maps, but not the one that
// is used now. Nothing is unpinned while a map cannot be read.
func forgetOld(store *observations.Store, used string) error {
	root, err := mapsDir(store)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // maps are removed by name
	now := time.Now()
	names, _ := fs.Glob(root.FS(), "*.json")
	for _, name := range names {
		info, err := root.Lstat(name)
		if err != nil || name == used || !info.Mode().IsRegular() || now.Sub(info.ModTime()) < maxMapAge {
			continue
		}
		old, err := readMap(root, name)
		if err != nil {
			continue
		}
		others, err := referred(root, name)
		if err != nil {
			return nil //nolint:nilerr // the maps stay, and nothing else depends on them
		}
		for _, s := range old.Swaps {
			if others[s.Observation] {
				continue
			}
			if id, err := observations.ParseID(strings.TrimSpace(s.Observation)); err == nil {
				_ = store.Pin(observations.Local, id, false)
			}
		}
		_ = root.Remove(name)
	}
	return nil
}
