package files

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"

	"github.com/mcp-funnel/mcp-funnel/observations/backend"
	"github.com/mcp-funnel/mcp-funnel/observations/storefs"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
)

// cacheName is a file that only a cache has.
const cacheName = storefs.StateDir + "/cache"

// checkUse refuses a directory of observations as a cache, which would remove them, and a cache as one of observations.
func (s *Store) checkUse() error {
	_, err := s.files.disk.Stat(cacheName)
	switch is := err == nil; {
	case is == s.quota.cache:
		return nil
	case is:
		return errors.New("it is the cache of a shared store: choose another with --store")
	}
	if ids, err := s.IDs(); err != nil || len(ids) > 0 {
		return errors.Join(err, errors.New(
			"it is a store of observations, which a cache would remove: choose another with --cache"))
	}
	f, err := s.files.disk.Create(cacheName)
	if errors.Is(err, fs.ErrExist) { // another process was first
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// OpenCopy opens a copy in a cache whose bytes have a SHA-256. This process hashes them once, and again if the file
// changes. A copy that is not whole is removed; the error is then [fs.ErrNotExist].
func (s *Store) OpenCopy(owner string, id backend.ID, sum string) (backend.Blob, error) {
	o, b, err := s.OpenAny(owner, id)
	if err == nil {
		if s.isCopy(b.(*blob), o, sum) {
			return b, nil
		}
		_ = b.Close()
	}
	s.Drop(id)
	return nil, fs.ErrNotExist
}

func (s *Store) isCopy(b *blob, o backend.Observation, sum string) bool {
	info, err := b.Stat()
	if err != nil || o.SHA256 != sum {
		return false
	}
	mark := tree.MarkOf(info)
	if known, ok := s.quota.copies.Load(o.ID); ok && known == mark {
		return true
	}
	h := sha256.New()
	if _, err := io.CopyBuffer(h, io.NewSectionReader(b, 0, o.Bytes), make([]byte, 4*backend.BlockSize)); err != nil {
		return false
	}
	if hex.EncodeToString(h.Sum(nil)) != sum {
		return false
	}
	s.quota.copies.Store(o.ID, mark)
	return true
}

// Drop removes a copy, or what is left of one, from the cache of another backend, unless it is open. It does nothing in
// any other directory.
func (d Directory) Drop(id backend.ID) {
	if !d.quota.cache {
		return
	}
	d.quota.copies.Delete(id)
	_ = d.quota.locked(func(l *ledger) error { // a copy that stays goes when it is the least recently used
		all, err := d.files.scan(false)
		if e := all[id]; err == nil && e != nil && !l.writers()[id] {
			if d.files.statEntry(e); e.isWhole() {
				l.expire(e, backend.WhyRemoved)
			} else {
				_ = l.remove(e)
			}
		}
		return nil
	})
}
