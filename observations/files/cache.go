package files

import "github.com/mcp-funnel/mcp-funnel/observations/backend"

// Drop removes a copy from the cache of another backend, unless it is open. It does nothing in any other directory.
func (d Directory) Drop(id backend.ID) {
	if !d.quota.cache {
		return
	}
	_ = d.quota.locked(func(l *ledger) error { // a copy that stays goes when it is the least recently used
		if o, err := d.files.readSidecar(id); err == nil {
			l.expire(d.files.entryOf(o), backend.WhyRemoved)
		}
		return nil
	})
}
