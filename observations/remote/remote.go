// Package remote keeps observations where many machines can read them: the rows in Postgres, the bytes of large ones in
// an S3 bucket. Any replica redeems any ID.
//
// An observation exists once its row is committed, the last step: its bytes are then in the row or, if they are more
// than 64 KiB, in an object whose size and checksum the server has confirmed. While it is written it has a reservation
// instead, which is replaced by the row in one transaction. A sweep that finds a reservation of a dead process deletes
// the reservation first, so that nothing can be committed any more, then the object.
//
// A directory of this machine serves as spool and cache: what is written goes through it, what is read as a whole is
// copied to it. All of it can be lost.
//
// It differs from a directory in what one machine cannot know of others. What is open may expire; its bytes stay for 10
// minutes. Times of use are by the clock of the database, unless [backend.Options.Now] is set, and uses within 5 s
// count as one. [Store.ModTime] follows changes of other machines a moment later. Up to 64 KiB are kept whole or not at
// all. The quota of an owner is exact; that of the store may be passed by what replicas store at the same moment.
// Tombstones are trimmed each hour and by [Store.Prune], not when room is made.
package remote

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/singleflight"

	"github.com/mcp-funnel/mcp-funnel/observations/backend"
	"github.com/mcp-funnel/mcp-funnel/observations/files"
	"github.com/mcp-funnel/mcp-funnel/system/database"
)

const (
	// maxRow is how many bytes of an observation are kept in its row, so that a small one needs no object.
	maxRow = 64 << 10
	// removeAfter is how long an evicted object stays for those who are reading it.
	removeAfter = 10 * time.Minute

	channel = "observations" // of notifications: an ID, after "-" one that was removed

	local = "local" // the owner where a provenance names none
)

// Options say where observations are and bound them.
type Options struct {
	DB     *database.DB
	Bucket *Bucket
	Cache  *files.Store    // spool and cache, opened with [backend.Options.Cache]
	Limits backend.Options // Quota, OwnerQuota, MaxAge and Now; its directory is not used
	Log    *slog.Logger
}

// Store implements [backend.Backend].
type Store struct {
	db     *database.DB
	bucket *Bucket
	cache  *files.Store
	limits backend.Options
	clock  bool // Now was set: times are by it, else by the clock of the database
	log    *slog.Logger

	ctx     context.Context // ends with Close
	end     context.CancelFunc
	running sync.WaitGroup
	parts   chan struct{}      // one for each part of which a copy is in memory
	copying singleflight.Group // to the cache, by ID
	heads   heads
	changed atomic.Int64 // unix nanoseconds of the last change that was heard of
	stop    func()       // ends listening
	full    sync.Map     // the last [refusal] by owner, "" for the store
	writing sync.Map     // IDs for which a writer of this process may have a reservation
}

var _ backend.Backend = (*Store)(nil)

// Open joins the bucket and the database, starts sweeps and listens to changes.
func Open(ctx context.Context, o Options) (*Store, error) {
	s := &Store{
		db: o.DB, bucket: o.Bucket, cache: o.Cache, limits: o.Limits.Limits(), clock: o.Limits.Now != nil, log: o.Log,
		parts: make(chan struct{}, 8), heads: heads{byID: map[backend.ID][]byte{}},
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.ctx, s.end = context.WithCancel(context.Background())
	if err := s.join(ctx); err != nil {
		s.end()
		return nil, err
	}
	s.changed.Store(time.Now().UnixNano())
	s.stop = s.db.Listen(channel, s.heard)
	s.running.Go(s.sweepUntilClosed)
	return s, nil
}

// join compares the name in the database with that in the bucket: replicas with another bucket, prefix or endpoint would
// find the rows of others, and not their objects. The first replica writes both.
func (s *Store) join(ctx context.Context) error {
	type place struct {
		Name       string
		HasObjects bool
	}
	const look = "select name, exists (select from observations where body is null and expired is null) from place"
	all, err := query(s, database.AllOwners, pgx.RowToStructByPos[place], look)
	if err == nil && len(all) == 0 {
		_, err = query(s, database.AllOwners, pgx.RowTo[int],
			"insert into place (owner, name) values ('*', $1) on conflict do nothing returning 1", rand.Text())
		if err == nil {
			all, err = query(s, database.AllOwners, pgx.RowToStructByPos[place], look)
		}
	}
	if err != nil || len(all) != 1 {
		return err
	}
	name, hasObjects := all[0].Name, all[0].HasObjects
	key, found := s.bucket.prefix+"place", &bytes.Buffer{}
	err = s.bucket.read(ctx, key, found, 0, int64(len(name)))
	switch {
	case errors.Is(err, errMissing) && !hasObjects:
		return s.bucket.putBytes(ctx, key, []byte(name))
	case errors.Is(err, errMissing):
		return fmt.Errorf("%s has none of the observations of this database; compare --store, --s3-endpoint and --database "+
			"with those of the other replicas", s.bucket)
	case err != nil:
		return fmt.Errorf("%w; check --store, --s3-endpoint, --s3-region and that the keys may read, write and delete", err)
	case found.String() != name:
		return fmt.Errorf("%s belongs to another database; compare --store, --s3-endpoint and --database with those of the "+
			"other replicas", s.bucket)
	}
	return nil
}

// Close ends sweeps and closes the cache. The database stays open.
func (s *Store) Close() error {
	s.stop()
	s.end()
	s.running.Wait()
	return s.cache.Close()
}

// Unwritable implements [backend.Backend]. What cannot be reached now may be reached at the next call.
func (s *Store) Unwritable() error { return nil }

// now returns the time for a statement: nil lets the database take its own, which all replicas share.
func (s *Store) now() any {
	if s.clock {
		return s.limits.Now()
	}
	return nil
}

// heard notes a change by any replica. After a lost connection the text is empty.
func (s *Store) heard(text string) {
	s.changed.Store(time.Now().UnixNano())
	if len(text) > 1 && text[0] == '-' {
		s.cache.Drop(backend.ID(text[1:]))
	}
}

// tell queues a notification that all replicas hear once the transaction is committed.
func (s *Store) tell(b *pgx.Batch, id backend.ID, gone bool) {
	text := string(id)
	if gone {
		text = "-" + text
	}
	s.db.QueueNotify(b, channel, text)
}

// batch runs a batch of statements of an owner.
func (s *Store) batch(owner string, b *pgx.Batch, read func(pgx.BatchResults) error) error {
	return s.db.Batch(s.ctx, owner, b, read)
}

// query runs one statement of an owner and reads its rows.
func query[T any](s *Store, owner string, row pgx.RowToFunc[T], sql string, args ...any) (all []T, err error) {
	b := &pgx.Batch{}
	b.Queue(sql, args...)
	err = s.batch(owner, b, func(r pgx.BatchResults) (err error) {
		rows, _ := r.Query() // CollectRows returns its error
		all, err = pgx.CollectRows(rows, row)
		return err
	})
	return all, err
}

// stored is a row of an observation.
type stored struct {
	backend.Observation
	counted int64 // bytes that count for the quota
	object  bool  // the bytes are in one
	body    []byte
	damaged error // the sidecar cannot be read: only ID and owner are known
}

// columns are what scan takes, and the body or null.
const columns = "id, owner, sidecar, receipt, used, pinned, counted, body is null, "

func scan(row pgx.CollectableRow) (o stored, err error) {
	var id, owner, receipt string
	var sidecar []byte
	var used time.Time
	var pinned bool
	if err := row.Scan(&id, &owner, &sidecar, &receipt, &used, &pinned, &o.counted, &o.object, &o.body); err != nil {
		return o, err
	}
	if o.Observation, err = backend.Decode(sidecar, backend.ID(id)); err != nil {
		o.damaged = fmt.Errorf("%w: obs:%s: %w", backend.ErrDamaged, id, err)
		o.Observation = backend.Observation{ID: backend.ID(id), Owner: owner}
	}
	o.Stats.Receipt, o.Used, o.Pinned = receipt, used, pinned
	return o, nil
}

// find returns the row of an observation, which may be a tombstone.
func (s *Store) find(owner string, id backend.ID, body string) (stored, error) {
	if !id.Valid() {
		return stored{}, backend.Malformed(string(id))
	}
	all, err := query(s, owner, scan,
		"select "+columns+body+" from observations where id = $1 and owner = $2", string(id), owner)
	switch {
	case err != nil:
		return stored{}, fmt.Errorf("open obs:%s: %w", id, err)
	case len(all) == 0:
		return stored{}, backend.NotFound(id)
	case all[0].damaged != nil:
		return stored{}, all[0].damaged
	case all[0].Expired != nil:
		return all[0], &backend.ExpiredError{Observation: all[0].Observation}
	}
	return all[0], nil
}

// Stat implements [backend.Backend].
func (s *Store) Stat(owner string, id backend.ID) (backend.Observation, error) {
	o, err := s.find(owner, id, "null")
	if err != nil {
		return backend.Observation{}, err
	}
	return o.Observation, nil
}

// Owner implements [backend.Backend].
func (s *Store) Owner(id backend.ID) (string, error) {
	all, err := query(s, database.AllOwners, pgx.RowTo[string], "select owner from observations where id = $1", string(id))
	if err != nil {
		return "", fmt.Errorf("open obs:%s: %w", id, err)
	}
	if len(all) == 0 {
		return "", backend.NotFound(id)
	}
	return all[0], nil
}

// Open implements [backend.Backend].
func (s *Store) Open(owner string, id backend.ID) (backend.Observation, backend.Blob, error) {
	o, err := s.find(owner, id, "body")
	if err != nil {
		return backend.Observation{}, nil, err
	}
	if !o.Pinned && s.limits.Now().Sub(o.Used) > s.limits.MaxAge { // no sweep has removed it yet
		if err := s.expireOld(id); err != nil {
			return backend.Observation{}, nil, fmt.Errorf("open obs:%s: %w", id, err)
		}
		if o, err = s.find(owner, id, "body"); err != nil {
			return backend.Observation{}, nil, err
		}
	}
	b, err := s.open(o)
	return o.Observation, b, err
}

// Use implements [backend.Backend]. Uses within 5 s of one another count as one.
func (s *Store) Use(id backend.ID, at time.Time) error {
	b := &pgx.Batch{}
	b.Queue("update observations set used = coalesce($2::timestamptz, now()) "+
		"where id = $1 and used < coalesce($2::timestamptz, now()) - interval '5 s'", string(id), s.now())
	_ = at // times are by one clock for all replicas
	return s.batch(database.AllOwners, b, nil)
}

// OpenAny opens an observation of any age, and no copy of it.
func (s *Store) OpenAny(owner string, id backend.ID) (backend.Observation, backend.Blob, error) {
	o, err := s.find(owner, id, "body")
	if err != nil || !o.object {
		if err == nil {
			var b backend.Blob
			b, err = s.open(o)
			return o.Observation, b, err
		}
		return backend.Observation{}, nil, err
	}
	return o.Observation, &blob{s: s, o: o, no: true}, nil
}

// Listing implements [backend.Backend]. Rows whose sidecar cannot be read are damaged, nothing else is known to be.
func (s *Store) Listing(owner string, tombstones, _ bool) (list []*backend.Observation, damaged []backend.ID, err error) {
	as := owner
	if owner == "" {
		as = database.AllOwners
	}
	all, err := query(s, as, scan, "select id, owner, sidecar, '', used, pinned, counted, false, null from observations "+
		"where ($1 = '' or owner = $1) and ($2 or expired is null) order by id", owner, tombstones)
	if err != nil {
		return nil, nil, fmt.Errorf("list observations: %w", err)
	}
	list = make([]*backend.Observation, 0, len(all))
	for i := range all {
		if all[i].damaged != nil {
			damaged = append(damaged, all[i].ID)
		} else {
			list = append(list, &all[i].Observation)
		}
	}
	return list, damaged, nil
}

// IDs implements [backend.Backend].
func (s *Store) IDs() (map[backend.ID]bool, error) {
	all, err := query(s, database.AllOwners, pgx.RowTo[string], "select id from observations where expired is null")
	if err != nil {
		return nil, fmt.Errorf("list observations: %w", err)
	}
	ids := make(map[backend.ID]bool, len(all))
	for _, id := range all {
		ids[backend.ID(id)] = true
	}
	return ids, nil
}

// ModTime implements [backend.Backend]: it asks nobody, since replicas tell each other of changes.
func (s *Store) ModTime() (time.Time, error) { return time.Unix(0, s.changed.Load()), nil }

// Usage implements [backend.Backend]. Free is that of the disk with the cache.
func (s *Store) Usage() (backend.Usage, error) {
	cache, err := s.cache.Usage()
	if err != nil {
		return backend.Usage{}, err
	}
	u := backend.Usage{Quota: s.limits.Quota, Ahead: s.limits.Ahead(), Free: cache.Free}
	b := &pgx.Batch{}
	b.Queue("select count(*) from observations where expired is null")
	b.Queue("select coalesce(sum(bytes), 0)::bigint from usage")
	err = s.batch(database.AllOwners, b, func(r pgx.BatchResults) error {
		return errors.Join(r.QueryRow().Scan(&u.Observations), r.QueryRow().Scan(&u.Bytes))
	})
	if err != nil {
		return backend.Usage{}, fmt.Errorf("measure store: %w", err)
	}
	return u, nil
}

// Pin implements [backend.Backend].
func (s *Store) Pin(owner string, id backend.ID, pinned bool) error {
	if _, err := s.Stat(owner, id); err != nil {
		return err
	}
	b := &pgx.Batch{}
	b.Queue("update observations set pinned = $3 where id = $1 and owner = $2 and expired is null",
		string(id), owner, pinned)
	s.tell(b, id, false)
	err := s.batch(owner, b, nil)
	s.changed.Store(time.Now().UnixNano())
	if err != nil {
		return fmt.Errorf("pin obs:%s: %w", id, err)
	}
	return nil
}

// Rename implements [backend.Backend]. The bytes by which the sidecar grows are not counted.
func (s *Store) Rename(owner string, id backend.ID, name string) error {
	o, err := s.find(owner, id, "null")
	if err != nil {
		return err
	}
	o.Stats.Receipt = "" // it has a column of its own
	sidecar, err := o.Renamed(name)
	if err != nil {
		return err
	}
	b := &pgx.Batch{}
	b.Queue("update observations set sidecar = $3 where id = $1 and owner = $2 and expired is null", string(id), owner, sidecar)
	s.tell(b, id, false)
	err = s.batch(owner, b, nil)
	s.changed.Store(time.Now().UnixNano())
	if err != nil {
		return fmt.Errorf("rename obs:%s: %w", id, err)
	}
	return nil
}

// Damaged implements [backend.Backend]. Bytes are compared when they are read.
func (s *Store) Damaged() ([]backend.ID, error) {
	_, damaged, err := s.Listing("", true, true)
	return damaged, err
}

// RemoveDamaged implements [backend.Backend].
func (s *Store) RemoveDamaged(id backend.ID) error {
	damaged, err := s.Damaged()
	if err != nil {
		return err
	}
	if !slices.Contains(damaged, id) {
		return backend.NotFound(id)
	}
	_, _, err = s.expireBatch(backend.WhyRemoved, 1<<62,
		"select "+columns+"null from observations where id = $1 for update", string(id))
	return err
}
