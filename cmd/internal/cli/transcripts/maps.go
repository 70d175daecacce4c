package transcripts

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/records"
	"github.com/mcp-funnel/mcp-funnel/session/compaction"
	"github.com/mcp-funnel/mcp-funnel/session/transcript"
)

// maxMapAge is how long a map is remembered after its last use.
const maxMapAge = 30 * 24 * time.Hour

// sessionMaps has the map of each session that was compacted.
type sessionMaps struct {
	records records.Store
	store   *observations.Store
}

func mapOf(name string) records.Key {
	return records.Key{Kind: records.Map, Owner: observations.Local, Name: name}
}

// lock lets one process at a time compact.
func (d sessionMaps) lock() (unlock func(), err error) {
	unlock, err = d.records.Lock(mapOf(""))
	if errors.Is(err, records.ErrBusy) {
		return nil, errors.New("another process is compacting with this store: try again when it has ended")
	}
	if err != nil {
		return nil, cli.ExplainWrite(d.store, err)
	}
	return unlock, nil
}

// load returns the map of a transcript; an empty one if there is none.
func (d sessionMaps) load(t *transcript.Transcript) (*compaction.Map, error) {
	k := mapOf(compaction.Key(t))
	_ = d.records.Touch(k) // maps age from their last use
	r, err := d.records.Get(k)
	if errors.Is(err, fs.ErrNotExist) {
		return &compaction.Map{V: 1, Format: string(t.Format), Session: t.Session}, nil
	}
	m := (*compaction.Map)(nil)
	if err == nil {
		m, err = parseMap(r.Body)
	}
	if err != nil {
		return nil, fmt.Errorf(
			"the map %s is damaged, or of another version (%w): without it nothing that was replaced"+
				" is restored, and its outputs stay pinned; to compact anew, move it away and unpin them (observations unpin)",
			d.records.Where(k), err)
	}
	return m, nil
}

// parseMap reads a map, and checks it.
func parseMap(text []byte) (*compaction.Map, error) {
	var m compaction.Map
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, err
	}
	if m.V != 1 {
		return nil, fmt.Errorf("it is of version %d", m.V)
	}
	return &m, m.Check()
}

// save writes the map of a transcript.
func (d sessionMaps) save(t *transcript.Transcript, m *compaction.Map) error {
	if len(m.Swaps) == 0 {
		return nil
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if err := d.records.Put(mapOf(compaction.Key(t)), text); err != nil {
		return fmt.Errorf("the map could not be written, and without it nothing can be restored: %w",
			cli.ExplainWrite(d.store, err))
	}
	return nil
}

// referred returns the observations that other maps than one refer to: a fork's map has those of its original. A map
// that cannot be read is an error, because nobody knows what it refers to.
func (d sessionMaps) referred(except string) (map[string]bool, error) {
	all := map[string]bool{}
	list, err := d.records.List(mapOf(""), "*", false)
	if err != nil {
		return nil, err
	}
	for _, one := range list {
		if one.Name == except {
			continue
		}
		r, err := d.records.Get(mapOf(one.Name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		m := (*compaction.Map)(nil)
		if err == nil {
			m, err = parseMap(r.Body)
		}
		if err != nil {
			return nil, fmt.Errorf("nothing is unpinned, because the map %s cannot be read (%w): repair it, or move it away",
				d.records.Where(mapOf(one.Name)), err)
		}
		for _, s := range m.Swaps {
			all[s.Observation] = true
		}
	}
	return all, nil
}

// forgetOld unpins the outputs of maps that were not used for a long time, and removes these maps, but not the one that
// is used now. Nothing is unpinned while a map cannot be read.
func (d sessionMaps) forgetOld(used string) {
	list, _ := d.records.List(mapOf(""), "*", true) // a map that cannot be read stays
	for _, one := range list {
		if one.Name == used || time.Since(one.Used) < maxMapAge {
			continue
		}
		old, err := parseMap(one.Body)
		if err != nil {
			continue
		}
		others, err := d.referred(one.Name)
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
		_ = d.records.Delete(mapOf(one.Name))
	}
}
