package remote

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/minio/minio-go/v7"

	"github.com/mcp-funnel/mcp-funnel/observations/backend"
	"github.com/mcp-funnel/mcp-funnel/system/database"
)

// writer implements [backend.Writer]. Up to 64 KiB stay in memory and become part of the row. More goes to the spool,
// and from there in parts to the bucket while the rest is written.
type writer struct {
	s          *Store
	id         backend.ID
	provenance backend.Provenance
	created    time.Time

	small    []byte         // all bytes, until they are too many
	spool    backend.Writer // nil until then
	size     int64
	reserved int64
	asked    bool // for a reservation: there may be one
	sums     sums
	crc      uint32
	ended    bool // committed or discarded

	upload  *upload // nil until the first part is whole
	sent    int64   // bytes of which the upload has begun
	sending sync.WaitGroup
	mu      sync.Mutex // of the next two
	parts   []minio.CompletePart
	failed  error
}

// Create implements [backend.Backend].
func (s *Store) Create(p backend.Provenance, at time.Time) (backend.Writer, error) {
	return s.create(backend.RandomID(), p, at), nil
}

// CreateAs implements [backend.Backend]. An ID is also taken as long as a sweep has to remove what a dead process had
// stored under it.
func (s *Store) CreateAs(id backend.ID, p backend.Provenance, at time.Time) (backend.Writer, error) {
	taken, err := query(s, database.AllOwners, pgx.RowTo[int], "select 1 from observations where id = $1 "+
		"union select 1 from reservations where id = $1 union select 1 from removals where id = $1", string(id))
	if err == nil && len(taken) > 0 {
		err = fmt.Errorf("%w: what a dead process was writing is removed a minute later, repeat the command then", fs.ErrExist)
	}
	if err != nil {
		return nil, fmt.Errorf("create obs:%s: %w", id, err)
	}
	return s.create(id, p, at), nil
}

func (s *Store) create(id backend.ID, p backend.Provenance, at time.Time) *writer {
	if p.Owner == "" {
		p.Owner = local
	}
	return &writer{s: s, id: id, provenance: p, created: at}
}

// ID implements [backend.Writer].
func (w *writer) ID() backend.ID { return w.id }

// overhead is what an observation takes beside its data: at most its sidecar and receipt, its index and sums.
func overhead(size int64) int64 {
	return backend.MaxSidecar + backend.MaxIndex(size) + sumSize*(size/backend.BlockSize+1)
}

// Room implements [backend.Writer]. What fits into a row is not reserved: its quota is taken when it is committed.
func (w *writer) Room(n, ahead int64) (int64, error) {
	if w.size+n <= maxRow {
		return n, nil
	}
	got, why := n, error(nil)
	if need := w.size + n + overhead(w.size+n) - w.reserved; need > 0 {
		w.asked = true
		w.s.writing.Store(w.id, nil)
		more, err := w.s.reserve(w.provenance.Owner, w.id, w.reserved == 0, min(need, need-n+1), need, max(need, ahead))
		if w.reserved += more; more < need {
			if !errors.Is(err, backend.ErrNoRoom) {
				return 0, err
			}
			got, why = max(0, n-(need-more)), err
		}
	}
	if got == 0 && w.spool == nil { // what there is fits into a row
		return 0, why
	}
	if err := w.spoolAll(); err != nil {
		w.reserved = 0
		return 0, errors.Join(err, w.giveUp())
	}
	if fits, err := w.spool.Room(got, ahead); fits < got {
		if !errors.Is(err, backend.ErrNoRoom) {
			return 0, err
		}
		return fits, fmt.Errorf("%w (--cache-size)", err)
	}
	return got, why
}

// spoolAll moves what is in memory to the spool.
func (w *writer) spoolAll() error {
	if w.spool != nil {
		return nil
	}
	spool, err := w.s.cache.CreateAs(w.id, w.provenance, w.created)
	if err != nil {
		return err
	}
	n, err := spool.Room(int64(len(w.small)), 0)
	if err == nil && n < int64(len(w.small)) {
		err = backend.ErrNoRoom
	}
	if err == nil {
		_, err = spool.Write(w.small)
	}
	if err != nil {
		_ = spool.Discard()
		return fmt.Errorf("%w (--cache-size)", err)
	}
	w.spool, w.small = spool, nil
	return nil
}

// Write implements [backend.Writer].
func (w *writer) Write(b []byte) (int, error) {
	if w.spool == nil {
		w.small = append(w.small, b...)
	} else if n, err := w.spool.Write(b); err != nil {
		return n, err
	}
	w.size += int64(len(b))
	w.sums.write(b)
	w.crc = crc32.Update(w.crc, castagnoli, b)
	for w.size-w.sent >= partSize {
		if err := w.send(partSize); err != nil {
			return 0, err
		}
	}
	return len(b), w.uploadError()
}

func (w *writer) uploadError() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed
}

// send begins to upload the next n bytes. At most 8 parts of all writers are in memory: then it waits for one.
func (w *writer) send(n int64) (err error) {
	if w.upload == nil {
		if w.upload, err = w.s.bucket.begin(w.s.ctx, w.s.bucket.key(string(w.id))); err != nil {
			return err
		}
	}
	w.s.parts <- struct{}{}
	part := make([]byte, n)
	if k, err := w.spool.ReadAt(part, w.sent); int64(k) < n {
		<-w.s.parts
		return cmp.Or(err, io.ErrUnexpectedEOF)
	}
	number := int(w.sent/partSize) + 1
	w.sent += n
	w.sending.Go(func() {
		defer func() { <-w.s.parts }()
		if w.uploadError() != nil {
			return
		}
		p, err := w.upload.part(w.s.ctx, number, part)
		w.mu.Lock()
		defer w.mu.Unlock()
		if err != nil {
			w.failed = err
		} else {
			w.parts = append(w.parts, p)
		}
	})
	return nil
}

// ReadAt implements [backend.Writer].
func (w *writer) ReadAt(p []byte, off int64) (int, error) {
	if w.spool != nil {
		return w.spool.ReadAt(p, off)
	}
	return bytes.NewReader(w.small).ReadAt(p, off)
}

// Commit implements [backend.Writer].
func (w *writer) Commit(o backend.Observation, lines []byte) (backend.Observation, error) {
	if w.spool != nil {
		if err := w.store(o.SHA256); err != nil {
			return backend.Observation{}, err
		}
	}
	return w.commitRow(o, lines)
}

func (w *writer) commitRow(o backend.Observation, lines []byte) (backend.Observation, error) {
	sidecar, err := o.Encode(backend.MaxSidecar)
	if err != nil {
		return backend.Observation{}, err
	}
	stored, err := backend.Decode(sidecar, w.id) // long fields were cut
	if err != nil {
		return backend.Observation{}, err
	}
	// The receipt is most of a sidecar and has a column of its own. Postgres has no text with a NUL.
	stored.Stats.Receipt = strings.ReplaceAll(stored.Stats.Receipt, "\x00", "\uFFFD")
	rest := stored
	rest.Stats.Receipt = ""
	if sidecar, err = rest.Encode(backend.MaxSidecar); err == nil {
		err = w.insert(o, sidecar, stored.Stats.Receipt, lines)
	}
	if err != nil {
		return backend.Observation{}, err
	}
	w.ended = true
	w.s.writing.Delete(w.id)
	if stored.Used = o.Used; o.Used.IsZero() {
		stored.Used = w.s.limits.Now().Round(0)
	}
	if w.spool != nil { // the spool becomes the copy in the cache
		if _, err := w.spool.Commit(o, lines); err != nil {
			w.s.log.Debug("an observation is not in the cache", "id", w.id, "error", err)
		}
	}
	return stored, nil
}

// store makes the object whole; sha256 is that of all bytes.
func (w *writer) store(sha256 string) error {
	if w.upload == nil { // one request instead of three, from the spool: many may be stored at once
		all := io.NewSectionReader(w.spool, 0, w.size)
		return w.s.bucket.put(w.s.ctx, w.s.bucket.key(string(w.id)), all, sha256, w.crc)
	}
	if left := w.size - w.sent; left > 0 {
		if err := w.send(left); err != nil {
			return err
		}
	}
	w.sending.Wait()
	if err := w.uploadError(); err != nil {
		return err
	}
	slices.SortFunc(w.parts, func(a, b minio.CompletePart) int { return a.PartNumber - b.PartNumber })
	return w.upload.complete(w.s.ctx, w.parts, w.size, w.crc)
}

var errTakenForDead = errors.New("its reservation was deleted: this replica was taken for dead")

// insert commits the row. The reservation of an object becomes the row in the same transaction.
func (w *writer) insert(o backend.Observation, sidecar []byte, receipt string, lines []byte) error {
	owner, used := o.Owner, w.s.now()
	if !o.Used.IsZero() {
		used = o.Used
	}
	counted := w.size + int64(len(sidecar)+len(receipt))
	b := &pgx.Batch{}
	row := " insert into observations (id, owner, counted, created, used, size, sidecar, receipt, body) " +
		"select $1, $2, $3::bigint, $4::timestamptz, coalesce($5::timestamptz, now()), $6::bigint, $7::bytea, $8, $9::bytea "
	args := []any{string(w.id), owner, counted, w.created, used, w.size, sidecar, receipt, w.small}
	if w.spool == nil {
		if w.small == nil {
			args[8] = []byte{}
		}
		b.Queue("with held as (select), "+strings.ReplaceAll(takeRoom, "$4", "$10")+row+"from room",
			append(args, w.s.limits.OwnerQuota)...)
	} else {
		sums := w.sums.finish()
		counted += int64(len(lines) + len(sums))
		args[2], args[8] = counted, nil
		b.Queue("with held as (delete from reservations where id = $1 and owner = $2 returning bytes), "+
			"settled as (update usage set bytes = usage.bytes + $3 - held.bytes from held where owner = $2 returning 1)"+
			row+"from settled", args...)
		b.Queue("insert into blocks (id, owner, lines, sums) select $1, $2, $3, $4 "+
			"where exists (select from observations where id = $1)", string(w.id), owner, lines, sums)
	}
	w.s.tell(b, w.id, false)
	for {
		if w.spool == nil {
			if _, err := w.s.makeRoom(owner, counted); err != nil {
				return err
			}
		}
		inserted := false
		err := w.s.batch(owner, b, func(r pgx.BatchResults) error {
			tag, err := r.Exec()
			inserted = err == nil && tag.RowsAffected() == 1
			return err
		})
		switch {
		case err == nil && inserted, err != nil && w.committed():
			w.s.changed.Store(time.Now().UnixNano())
			return nil
		case err != nil:
			return err
		case w.spool != nil:
			return errTakenForDead
		}
	}
}

// committed reports whether the row is there after all: its transaction may have ended although its answer was lost.
func (w *writer) committed() bool {
	all, err := query(w.s, w.provenance.Owner, pgx.RowTo[int], "select 1 from observations where id = $1", string(w.id))
	return err == nil && len(all) == 1
}

// discardTimeout is how long giveUp waits for the object store, which may be the reason for it. A call waits, too.
const discardTimeout = 2 * time.Second

// Discard implements [backend.Writer].
func (w *writer) Discard() error {
	var err error
	if w.spool != nil {
		err = w.spool.Discard()
	}
	if w.ended || !w.asked {
		return err
	}
	w.ended = true
	w.sending.Wait()
	return errors.Join(err, w.giveUp())
}

// giveUp deletes the reservation. If that fails, a sweep of this process does.
func (w *writer) giveUp() error {
	w.s.writing.Delete(w.id)
	ctx, cancel := context.WithTimeout(w.s.ctx, discardTimeout)
	defer cancel()
	return w.s.giveUp(ctx, w.id)
}

// sumSize is how many bytes of the SHA-256 of a block are kept: enough that nobody finds another block with them.
const sumSize = 16

// sums hashes blocks of [backend.BlockSize] bytes.
type sums struct {
	block []byte
	out   []byte
}

func (x *sums) write(b []byte) {
	for len(b) > 0 {
		n := min(len(b), backend.BlockSize-len(x.block))
		x.block = append(x.block, b[:n]...)
		b = b[n:]
		if len(x.block) == backend.BlockSize {
			x.end()
		}
	}
}

func (x *sums) end() {
	sum := sha256.Sum256(x.block)
	x.out = append(x.out, sum[:sumSize]...)
	x.block = x.block[:0]
}

func (x *sums) finish() []byte {
	if len(x.block) > 0 {
		x.end()
	}
	return x.out
}
