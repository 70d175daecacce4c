package remote

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/mcp-funnel/mcp-funnel/observations/backend"
	"github.com/mcp-funnel/mcp-funnel/system/database"
)

const (
	// fullFor keeps an owner over its quota from having every call look for room.
	fullFor = time.Second
	// batchSize is how many observations one transaction removes at most.
	batchSize = 100
	// removeSize is how many objects one transaction removes, one after the other within its 20 s.
	removeSize = 20
)

// fresh are observations used within the last minute, which stay; $1 is the time.
const fresh = "used > coalesce($1::timestamptz, now()) - interval '1 minute' "

// evictable are observations that may make room: $2 is the owner, "" for all.
const evictable = " from observations where expired is null and not pinned and ($2 = '' or owner = $2) and not " + fresh

// takeRoom adds $3 bytes to what owner $2 holds if that stays within $4, in a statement that has a row of held.
const takeRoom = "room as (insert into usage as u select $2, $3::bigint from held where $3 <= $4::bigint " +
	"on conflict (owner) do update set bytes = u.bytes + $3 where u.bytes + $3 <= $4 returning 1)"

// reserve takes at least need bytes from the quota of an owner for an observation that is being written, and up to want
// if there is room. If it gets less than need, err says why; less than least is nothing.
func (s *Store) reserve(owner string, id backend.ID, first bool, least, need, want int64) (int64, error) {
	for range 10 {
		left, why := s.makeRoom(owner, need)
		if why == nil && left < need { // others have just taken it
			continue
		}
		if why != nil && !errors.Is(why, backend.ErrNoRoom) || left < max(least, 1) {
			return 0, why
		}
		switch took, err := s.take(owner, id, first, min(left, want)); {
		case err != nil:
			return 0, err
		case took:
			return min(left, want), why
		}
	}
	return 0, backend.ErrNoRoom
}

// take reserves n bytes if the owner has room for them. A reservation that a sweep has deleted does not begin anew.
func (s *Store) take(owner string, id backend.ID, first bool, n int64) (took bool, err error) {
	sql := "with held as (select), " + takeRoom +
		", hold as (insert into reservations (id, owner, bytes, process) select $1, $2, $3, $5 from room) "
	if !first {
		sql = "with held as (select from reservations where id = $1 and process = $5 for update), " + takeRoom +
			", hold as (update reservations set bytes = bytes + $3, at = now() from room where id = $1) "
	}
	type result struct{ Held, Took bool }
	all, err := query(s, owner, pgx.RowToStructByPos[result],
		sql+"select exists (select from held), exists (select from room)",
		string(id), owner, n, s.limits.OwnerQuota, s.db.Process())
	if err == nil && !all[0].Held {
		err = errTakenForDead
	}
	return err == nil && all[0].Took, err
}

// room is how many bytes may still be stored: that of the owner is exact, that of the store as of this moment.
type room struct{ owner, store int64 }

func (s *Store) roomLeft(owner string) (r room, err error) {
	b := &pgx.Batch{}
	b.Queue("select coalesce(sum(bytes), 0)::bigint, coalesce(sum(bytes) filter (where owner = $1), 0)::bigint "+
		"from usage", owner)
	var all, own int64
	err = s.batch(database.AllOwners, b, func(r pgx.BatchResults) error { return r.QueryRow().Scan(&all, &own) })
	return room{s.limits.OwnerQuota - own, s.limits.Quota - all}, err
}

// refusal is why there was no room a moment ago.
type refusal struct {
	until time.Time
	need  int64
	why   error
}

// makeRoom returns how many bytes an owner may store. If they are fewer than need it evicts the least recently used:
// those of the owner if its quota is used up, of all owners if the store's is; none if that would not suffice. If they
// still are, the error is ErrNoRoom.
func (s *Store) makeRoom(owner string, need int64) (left int64, err error) {
	r, err := s.roomLeft(owner)
	for _, of := range []string{owner, ""} {
		lacks, why := need-r.owner, backend.ErrOwnerQuota
		if of == "" {
			lacks, why = need-r.store, fmt.Errorf("%w: its quota of %s is used up (--quota)", backend.ErrNoRoom,
				backend.FormatBytes(s.limits.Quota))
		}
		if err != nil || lacks <= 0 {
			continue
		}
		if no, found := s.full.Load(of); found && need >= no.(refusal).need && s.limits.Now().Before(no.(refusal).until) {
			return min(r.owner, r.store), no.(refusal).why
		}
		young, failed := s.evict(of, lacks)
		if r, err = s.roomLeft(owner); failed != nil || err != nil {
			return 0, errors.Join(failed, err)
		}
		if of != "" && r.owner >= need || of == "" && r.store >= need {
			continue
		}
		if of == "" && r.store+young >= need {
			why = fmt.Errorf("%w; observations used within the last minute are not evicted", why)
		}
		s.full.Store(of, refusal{s.limits.Now().Add(fullFor), need, why})
		return min(r.owner, r.store), why
	}
	return min(r.owner, r.store), err
}

// evict removes the least recently used observations of an owner, "" for all, that have so many bytes; more, if there
// are, so that not every call has to. young is how many bytes stay since they were used within the last minute.
func (s *Store) evict(owner string, bytes int64) (young int64, err error) {
	b := &pgx.Batch{}
	b.Queue("select coalesce(sum(counted) filter (where not "+fresh+"), 0)::bigint, "+
		"coalesce(sum(counted) filter (where "+fresh+"), 0)::bigint "+
		"from observations where expired is null and not pinned and ($2 = '' or owner = $2)", s.now(), owner)
	var can int64
	err = s.batch(database.AllOwners, b, func(r pgx.BatchResults) error { return r.QueryRow().Scan(&can, &young) })
	if err != nil || can < bytes {
		return young, err
	}
	for bytes = max(bytes, min(can, s.limits.Ahead())); bytes > 0; {
		freed, n, err := s.expireBatch(backend.WhyQuota, bytes,
			"select "+columns+"null"+evictable+"order by used limit 100 for update skip locked", s.now(), owner)
		if err != nil || n == 0 {
			return young, err
		}
		bytes -= freed
	}
	return young, nil
}

// expireBatch replaces the observations of a query by tombstones, in one transaction, until they had so many bytes.
func (s *Store) expireBatch(why string, bytes int64, sql string, args ...any) (freed int64, n int, err error) {
	err = s.db.Tx(s.ctx, database.AllOwners, func(tx pgx.Tx) error {
		freed, n = 0, 0
		rows, _ := tx.Query(s.ctx, sql, args...) // CollectRows returns its error
		all, err := pgx.CollectRows(rows, scan)
		if err != nil {
			return err
		}
		b := &pgx.Batch{}
		for _, o := range all {
			if freed >= bytes {
				break
			}
			less, err := s.bury(b, o, why, removeAfter)
			if err != nil {
				return err
			}
			freed += less
			n++
		}
		return tx.SendBatch(s.ctx, b).Close()
	})
	s.changed.Store(time.Now().UnixNano())
	return freed, n, err
}

// bury queues the statements that replace an observation by a tombstone, and returns how many bytes that frees. Its
// object is removed later.
func (s *Store) bury(b *pgx.Batch, o stored, why string, after time.Duration) (freed int64, err error) {
	if o.damaged != nil { // what made it is not known: no tombstone is left
		b.Queue("delete from observations where id = $1", string(o.ID))
		s.unuse(b, o, o.counted, after)
		return o.counted, nil //nolint:nilerr // the row is removed for it
	}
	sidecar, err := o.Tombstone(why, s.limits.Now()).Encode(backend.MaxTombstone)
	if err != nil {
		return 0, err
	}
	counted := int64(len(sidecar))
	b.Queue("update observations set sidecar = $2, receipt = '', counted = $3, body = null, pinned = false, "+
		"expired = coalesce($4::timestamptz, now()), used = coalesce($4::timestamptz, now()) where id = $1",
		string(o.ID), sidecar, counted, s.now())
	s.unuse(b, o, o.counted-counted, after)
	return o.counted - counted, nil
}

// unuse queues what follows when the bytes of an observation go.
func (s *Store) unuse(b *pgx.Batch, o stored, freed int64, after time.Duration) {
	b.Queue("update usage set bytes = bytes - $2 where owner = $1", o.Owner, freed)
	if o.object {
		b.Queue("insert into removals (id, owner, due) values ($1, $2, now() + $3::interval) on conflict do nothing",
			string(o.ID), o.Owner, after)
	}
	s.tell(b, o.ID, true)
}

// expireOld expires one observation if it is older than the maximum age.
func (s *Store) expireOld(id backend.ID) error {
	_, _, err := s.expireBatch(backend.WhyAge, 1, "select "+columns+"null"+tooOld+"and id = $3 for update skip locked",
		s.now(), s.limits.MaxAge, string(id))
	return err
}

// tooOld are observations beyond the maximum age: $1 is the time, $2 the age.
const tooOld = " from observations where expired is null and not pinned " +
	"and used < coalesce($1::timestamptz, now()) - $2::interval and not " + fresh

// Remove implements [backend.Backend]. The object goes at once: who is reading it gets an error.
func (s *Store) Remove(owner string, id backend.ID, why string, by backend.ID) error {
	object := false
	err := s.db.Tx(s.ctx, owner, func(tx pgx.Tx) error {
		rows, _ := tx.Query(s.ctx, "select "+columns+"null from observations where id = $1 and owner = $2 for update",
			string(id), owner)
		o, err := pgx.CollectExactlyOneRow(rows, scan)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return backend.NotFound(id)
		case err != nil:
			return err
		case o.Expired != nil:
			return &backend.ExpiredError{Observation: o.Observation}
		}
		object, o.By = o.object, by
		b := &pgx.Batch{}
		if _, err := s.bury(b, o, why, 0); err != nil {
			return err
		}
		return tx.SendBatch(s.ctx, b).Close()
	})
	s.changed.Store(time.Now().UnixNano())
	if errors.Is(err, backend.ErrNotFound) || errors.Is(err, backend.ErrExpired) {
		return err
	}
	if err != nil {
		return fmt.Errorf("remove obs:%s: %w", id, err)
	}
	if object {
		_ = s.removeObjects(s.ctx) // else a sweep does
	}
	return nil
}

// Prune implements [backend.Backend].
func (s *Store) Prune(dry bool) (p backend.Pruned, err error) {
	if !dry {
		if err := errors.Join(s.giveUpDead(s.ctx), s.removeObjects(s.ctx)); err != nil {
			return p, fmt.Errorf("prune: %w", err)
		}
	}
	now := s.now()
	b := &pgx.Batch{}
	b.Queue("select count(*), coalesce(sum(size), 0)::bigint from observations where expired is null")
	var old, oldBytes int64
	b.Queue("select count(*), coalesce(sum(size), 0)::bigint"+tooOld, now, s.limits.MaxAge)
	err = s.batch(database.AllOwners, b, func(r pgx.BatchResults) error {
		return errors.Join(r.QueryRow().Scan(&p.Kept, &p.KeptBytes), r.QueryRow().Scan(&old, &oldBytes))
	})
	if err != nil {
		return p, fmt.Errorf("prune: %w", err)
	}
	// First what is too old, then the least recently used: both are the first by their last use.
	sizes, err := query(s, database.AllOwners, pgx.RowTo[int64], "select size"+evictable+"order by used", now, "")
	if err != nil {
		return p, fmt.Errorf("prune: %w", err)
	}
	for i, size := range sizes {
		if int64(i) >= old && p.KeptBytes <= s.limits.Quota {
			break
		}
		p.Removed++
		p.Bytes += size
		p.Kept--
		p.KeptBytes -= size
	}
	for left := p.Removed; !dry && left > 0; {
		why, limit := backend.WhyQuota, min(left, batchSize)
		if done := int64(p.Removed - left); done < old {
			why, limit = backend.WhyAge, min(limit, int(old-done))
		}
		_, n, err := s.expireBatch(why, 1<<62,
			"select "+columns+"null"+evictable+"order by used limit $3 for update skip locked", now, "", limit)
		if err != nil || n == 0 {
			p.Busy += left
			return p, err
		}
		left -= n
	}
	b = &pgx.Batch{}
	over := p.KeptBytes > s.limits.Quota
	b.Queue("select count(*) filter (where pinned and $3), count(*) filter (where not pinned and "+fresh+
		"and ($3 or used < coalesce($1::timestamptz, now()) - $2::interval)) from observations where expired is null",
		now, s.limits.MaxAge, over)
	err = s.batch(database.AllOwners, b, func(r pgx.BatchResults) error { return r.QueryRow().Scan(&p.Pinned, &p.Fresh) })
	if err == nil && !dry {
		err = s.trimTombstones()
	}
	return p, err
}

const (
	sweepEvery = time.Minute
	tidyEvery  = time.Hour      // between two checks for old observations and tombstones
	scanEvery  = 24 * time.Hour // between two looks for objects and uploads that nothing knows
	uploadAge  = 24 * time.Hour // of an upload that is given up
	objectAge  = time.Hour      // of an object without a row that is removed

	straysTimeout = 10 * time.Minute // of one look for objects and uploads
	tombstoneIn   = 90 * 24 * time.Hour
	tombstones    = 10_000 // of one owner
)

// sweepUntilClosed has one replica at a time sweep.
func (s *Store) sweepUntilClosed() {
	var tidied, scanned time.Time
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-time.After(sweepEvery):
		}
		_, err := s.db.Leader(s.ctx, "sweep observations", func(ctx context.Context) error {
			if err := s.removeObjects(ctx); err != nil {
				return err
			}
			if time.Since(tidied) > tidyEvery {
				if err := s.tidy(); err != nil {
					return err
				}
				tidied = time.Now()
			}
			if time.Since(scanned) > scanEvery {
				if err := s.removeStrays(ctx); err != nil {
					return err
				}
				scanned = time.Now()
			}
			return nil
		})
		if err = errors.Join(err, s.giveUpDead(s.ctx)); err != nil && s.ctx.Err() == nil {
			s.log.Warn("the store could not be swept; the next minute tries again", "error", err)
		}
	}
}

// giveUpDead gives up the reservations of dead processes, and those of this one that nobody writes: when the network
// failed, one may have come to be, or not have gone, unnoticed.
func (s *Store) giveUpDead(ctx context.Context) error {
	type held struct{ ID, Process string }
	all, err := query(s, database.AllOwners, pgx.RowToStructByPos[held],
		"select id, process from reservations where process = $1 or at < now() - interval '1 minute'", s.db.Process())
	for _, h := range all {
		_, writing := s.writing.Load(backend.ID(h.ID))
		if err == nil && !writing && (h.Process == s.db.Process() || !s.db.Alive(h.Process)) {
			err = s.giveUp(ctx, backend.ID(h.ID))
		}
	}
	return err
}

// giveUp deletes a reservation, so that nothing was or will be committed, and only then its object. If that fails, a
// later sweep removes the object. Without a reservation it does nothing.
func (s *Store) giveUp(ctx context.Context, id backend.ID) error {
	b := &pgx.Batch{}
	b.Queue("insert into removals (id, owner, due) select id, owner, now() from reservations where id = $1 "+
		"on conflict do nothing", string(id))
	b.Queue("with held as (delete from reservations where id = $1 returning owner, bytes) "+
		"update usage set bytes = usage.bytes - held.bytes from held where usage.owner = held.owner", string(id))
	deleted := false
	err := s.batch(database.AllOwners, b, func(r pgx.BatchResults) error {
		_, err := r.Exec()
		if err == nil {
			var tag pgconn.CommandTag
			tag, err = r.Exec()
			deleted = tag.RowsAffected() == 1
		}
		return err
	})
	if err != nil || !deleted {
		return err
	}
	return s.bucket.abandon(ctx, s.bucket.key(string(id)))
}

// removeObjects removes the objects that are due. Several replicas may do so at once.
func (s *Store) removeObjects(ctx context.Context) error {
	for {
		n := 0
		err := s.db.Tx(ctx, database.AllOwners, func(tx pgx.Tx) error {
			rows, _ := tx.Query(ctx, "with due as (delete from removals where id in "+
				"(select id from removals where due <= now() limit $1 for update skip locked) returning id), "+
				"unused as (delete from blocks using due where blocks.id = due.id) select id from due", removeSize)
			ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
			n = len(ids)
			for _, id := range ids {
				if err == nil {
					err = s.bucket.remove(ctx, s.bucket.key(id))
				}
			}
			return err
		})
		if err != nil || n < removeSize {
			return err
		}
	}
}

// tidy expires what is too old and removes old tombstones.
func (s *Store) tidy() error {
	for n := batchSize; n == batchSize; {
		var err error
		_, n, err = s.expireBatch(backend.WhyAge, 1<<62,
			"select "+columns+"null"+tooOld+"order by used limit 100 for update skip locked", s.now(), s.limits.MaxAge)
		if err != nil {
			return err
		}
	}
	return s.trimTombstones()
}

// trimTombstones removes the old ones, and what takes more than a sixteenth of a quota.
func (s *Store) trimTombstones() error {
	b := &pgx.Batch{}
	b.Queue(`with gone as (delete from observations where id in (select id from (
		select id, expired, row_number() over own as n, sum(counted) over own as bytes,
			sum(counted) over (order by expired desc, id) as all_bytes
		from observations where expired is not null window own as (partition by owner order by expired desc, id)) t
		where n > $1 or bytes > $4 or all_bytes > $5 or expired < coalesce($2::timestamptz, now()) - $3::interval)
		returning owner, counted),
		sums as (select owner, sum(counted)::bigint as bytes from gone group by owner)
		update usage set bytes = usage.bytes - sums.bytes from sums where usage.owner = sums.owner`,
		tombstones, s.now(), tombstoneIn, s.limits.OwnerQuota/16, s.limits.Quota/16)
	b.Queue("delete from usage where bytes <= 0 and not exists (select from reservations r where r.owner = usage.owner)")
	return s.batch(database.AllOwners, b, nil)
}

// removeStrays removes uploads and objects that nothing in the database knows, after a database was restored or a
// process died between two steps.
func (s *Store) removeStrays(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, straysTimeout) // no other sweep runs meanwhile
	defer cancel()
	for u := range s.bucket.uploads(ctx) {
		if err := unlessGone(u.Err); err != nil {
			return err
		}
		if u.Err == nil && time.Since(u.Initiated) > uploadAge {
			id := strings.TrimPrefix(u.Key, s.bucket.key(""))
			held, err := query(s, database.AllOwners, pgx.RowTo[int], "select 1 from reservations where id = $1", id)
			if err != nil {
				return err
			}
			if len(held) > 0 { // it is still being written
				continue
			}
			if err := unlessGone(s.bucket.core().AbortMultipartUpload(ctx, s.bucket.name, u.Key, u.UploadID)); err != nil {
				return err
			}
		}
	}
	for ids, err := range s.bucket.old(ctx, objectAge) {
		if err != nil {
			return err
		}
		known, err := query(s, database.AllOwners, pgx.RowTo[string],
			"select id from observations where id = any($1) and expired is null "+
				"union select id from reservations where id = any($1) union select id from removals where id = any($1)", ids)
		if err != nil {
			return err
		}
		keep := map[string]bool{}
		for _, id := range known {
			keep[id] = true
		}
		for _, id := range ids {
			if !keep[id] {
				if err := s.bucket.remove(ctx, s.bucket.key(id)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
