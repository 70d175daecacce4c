package observations

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/mcp-funnel/mcp-funnel/observations/backend"
)

// Copy copies an observation of another store with its ID, owner, times and pin, whatever MaxObservation is, and reads
// it back. The error is [ErrDamaged] if its bytes are not those that were stored, and fs.ErrExist if the ID is taken.
func (s *Store) Copy(from *Store, owner string, id ID) error {
	r, err := from.Peek(owner, id)
	if err != nil {
		return err
	}
	defer from.Drop(id) // else caches would soon be full of what nobody asked for
	defer func() { _ = r.Close() }()
	o := r.Observation
	w, err := s.CreateAs(id, Provenance{Owner: owner, Tool: o.Tool}, o.Created)
	if err != nil {
		return err
	}
	limits := s.options
	limits.MaxObservation = backend.Unlimited
	c := &Recording{w: w, limits: &limits, hash: sha256.New()}
	defer func() { _ = c.Discard() }()
	_, err = io.CopyBuffer(c, io.NewSectionReader(r, 0, o.Bytes), make([]byte, backend.BlockSize))
	if err = errors.Join(err, c.Err()); err == nil {
		err = c.flushAll()
	}
	if sum := hex.EncodeToString(c.hash.Sum(nil)); err == nil && sum != o.SHA256 {
		return fmt.Errorf("%w: obs:%s: its sha256 was %s and is %s", ErrDamaged, id, o.SHA256, sum)
	}
	if err == nil {
		_, err = w.Commit(o, c.index.Finish())
	}
	if err != nil {
		return fmt.Errorf("copy obs:%s: %w", id, err)
	}
	c.state = committed
	if o.Pinned {
		err = s.Pin(owner, id, true)
	}
	s.Drop(id) // so that Verify reads what arrived
	defer s.Drop(id)
	return errors.Join(err, s.Verify(owner, id))
}
