package files

import "github.com/mcp-funnel/mcp-funnel/observations/backend"

// Drop removes a copy from a store that is the cache of another one, unless it is open.
func (s *Store) Drop(id backend.ID) {
	_ = s.quota.locked(func(l *ledger) error { // a copy that stays goes when it is the least recently used
		if o, err := s.files.readSidecar(id); err == nil {
			l.expire(s.files.entryOf(o), backend.WhyRemoved)
		}
		return nil
	})
}
