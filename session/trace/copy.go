package trace

import (
	"crypto/sha256"
	"errors"
	"io/fs"
	"time"
)

// Copy adds the calls of a store, and what they showed, to another one, which is open for writing, except those that
// are there: it can be repeated. Calls older than [Retention] are left out. It needs about 100 bytes of memory for each
// call that is there.
func Copy(from, to Store) (copied, there int, err error) {
	since, known := time.Now().Add(-Retention), map[[sha256.Size]byte]int{}
	sum := func(c Call) [sha256.Size]byte {
		line, _ := c.bounded().line() // it was one before
		return sha256.Sum256(line)
	}
	for c, err := range to.Read(since, nil) {
		if err != nil {
			return 0, 0, err
		}
		known[sum(c)]++
	}
	for c, err := range from.Read(since, nil) {
		if err == nil && known[sum(c)] > 0 {
			known[sum(c)]--
			there++
			continue
		}
		_, text, missing := from.Shown(c.Ref)
		s := &text
		if errors.Is(missing, ErrNotKept) || errors.Is(missing, fs.ErrNotExist) {
			s, missing = nil, nil
		}
		if err = errors.Join(err, missing); err == nil {
			err = to.(interface {
				append(c Call, s *Shown, at time.Time) error
			}).append(c, s, c.At) // in the day on which it would be otherwise, so that it is removed with that
		}
		if copied++; copied%flushAt == 0 && err == nil {
			err = flush(to)
		}
		if err != nil {
			return copied, there, err
		}
	}
	return copied, there, flush(to)
}

// flush returns once what was appended is written.
func flush(to Store) error {
	if r, waits := to.(*Rows); waits {
		return r.flush()
	}
	return nil
}
