package records

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-funnel/mcp-funnel/system/database"
)

// maxRow is how many bytes a record in a database may have, whatever its kind: each of them is in memory as a whole.
const maxRow = 64 << 20

// rows is a [Store] in a database.
type rows struct {
	db  *database.DB
	now func() time.Time // the time of a use; tests set the clock
}

// InDatabase returns the records in a database, which the caller closes. Different from a directory, it knows owners:
// one does not see the records of another, and [Store.List] returns all for the owner "" alone.
func InDatabase(db *database.DB) Store { return &rows{db, time.Now} }

// owner is that of the rows of a key.
func (k Key) owner() string {
	if k.Owner == "" {
		return database.AllOwners
	}
	return k.Owner
}

// row is a record as it is stored. Its version is 0 if there is none; no other version of any record is the same.
type row struct {
	Record
	version int64
}

// query runs one statement. Its first arguments are the owner, kind and name of a key.
func (s *rows) query(k Key, sql string, arguments ...any) ([]row, error) {
	return database.Query(context.Background(), s.db, k.owner(), func(one pgx.CollectableRow) (r row, err error) {
		err = one.Scan(&r.Owner, &r.Name, &r.Body, &r.Size, &r.Used, &r.version)
		if r.Owner == database.AllOwners {
			r.Owner = ""
		}
		if r.Size > k.Kind.LimitOf(r.Name) {
			r.Record = Record{Name: r.Name, Owner: r.Owner, Damaged: true}
		}
		return r, err
	}, sql, append([]any{k.owner(), k.Kind.Name, k.Name}, arguments...)...)
}

const (
	columns = " owner, name, body, octet_length(body), used, version "
	this    = " owner = $1 and kind = $2 and name = $3 "
	changed = " returning owner, name, ''::bytea, 0, used, version"
)

func (s *rows) get(k Key) (row, error) {
	all, err := s.query(k, "select"+columns+"from records where"+this)
	if err != nil || len(all) == 0 {
		return row{}, err
	}
	return all[0], nil
}

func (s *rows) Get(k Key) (Record, error) {
	r, err := s.get(k)
	if err == nil && r.version == 0 {
		err = fmt.Errorf("%s: %w", s.Where(k), fs.ErrNotExist)
	}
	if err == nil && r.Damaged {
		r.Record, err = Record{}, fmt.Errorf("%s: %w", s.Where(k), ErrDamaged)
	}
	return r.Record, err
}

func (s *rows) List(k Key, pattern string, bodies bool) ([]Record, error) {
	regex := strings.NewReplacer(`\*`, "[^/]*", `\?`, "[^/]").Replace(regexp.QuoteMeta(pattern))
	found, err := s.query(k, `select owner, name, case when $5 then body end, octet_length(body), used, version
		from records where (owner = $1 or $1 = '*') and kind = $2 and $3 = '' and name ~ ('^' || $4 || '$')`, regex, bodies)
	all := make([]Record, len(found))
	for i, r := range found {
		all[i] = r.Record
	}
	return all, err
}

func (k Key) checkRow(body []byte) error {
	if len(body) > maxRow {
		return fmt.Errorf("%w: it has %d bytes, and a database keeps at most %d MiB", ErrFull, len(body), maxRow>>20)
	}
	return k.check(body)
}

func (s *rows) Put(k Key, body []byte) error {
	return s.put(k, body, `on conflict (owner, kind, name) do update
		set body = excluded.body, used = excluded.used, version = excluded.version`)
}

// put writes a record that is new, or that conflict says how to change. The error is [ErrBusy] if it has no effect.
func (s *rows) put(k Key, body []byte, conflict string, arguments ...any) error {
	if err := k.checkRow(body); err != nil {
		return err
	}
	if body == nil {
		body = []byte{} // not null
	}
	written, err := s.query(k, `insert into records (owner, kind, name, body, used, version)
		values ($1, $2, $3, $4, $5, nextval('records_version')) `+conflict+`
		returning owner, name, ''::bytea, 0, used, case when xmax = 0 then 1 else 0 end`,
		append([]any{body, s.now()}, arguments...)...)
	if err == nil && len(written) == 0 {
		return ErrBusy
	}
	if err == nil && written[0].version == 1 { // it is new
		s.prune(k)
	}
	return err
}

// Update begins again if another process writes meanwhile.
func (s *rows) Update(k Key, change func(Record) ([]byte, error)) error {
	for until := time.Now().Add(k.Kind.Wait); ; {
		old, err := s.get(k)
		if err != nil {
			return err
		}
		body, err := change(old.Record)
		if err != nil || body == nil {
			return err
		}
		if old.version == 0 {
			err = s.put(k, body, "on conflict do nothing")
		} else if err = k.checkRow(body); err == nil {
			var written []row
			written, err = s.query(k, "update records set body = $4, used = $5, version = nextval('records_version') where"+this+
				"and version = $6"+changed, body, s.now(), old.version)
			if err == nil && len(written) == 0 {
				err = ErrBusy
			}
		}
		if !errors.Is(err, ErrBusy) || time.Now().After(until) {
			return err
		}
		time.Sleep(rand.N(10 * time.Millisecond)) //nolint:gosec // so that those who collide do not again
	}
}

func (s *rows) Append(k Key, lines []byte) error {
	most := min(k.Kind.LimitOf(k.Name), maxRow)
	err := s.put(k, lines, `on conflict (owner, kind, name) do update
		set used = excluded.used, version = excluded.version, body = records.body ||
			case when octet_length(records.body) = 0 or substr(records.body, octet_length(records.body)) = '\x0a'::bytea
			then '' else '\x0a'::bytea end || excluded.body
		where octet_length(records.body) + octet_length(excluded.body) <= $6`, most)
	if errors.Is(err, ErrBusy) {
		err = fmt.Errorf("%s has over %d MiB, and no more is added to it: %w", s.Where(k), most>>20, ErrFull)
	}
	return err
}

func (s *rows) Touch(k Key) error {
	touched, err := s.query(k, "update records set used = $4 where"+this+changed, s.now())
	if err == nil && len(touched) == 0 {
		err = fmt.Errorf("%s: %w", s.Where(k), fs.ErrNotExist)
	}
	return err
}

func (s *rows) Delete(k Key) error {
	_, err := s.query(k, `delete from records
		where owner = $1 and kind = $2 and (name = $3 or starts_with(name, $3 || '/'))`)
	return err
}

// prune removes records after a new one was made: of all owners those that were not used for the age of their kind, and
// of its owner the least recently used quarter if there are too many.
func (s *rows) prune(k Key) {
	if k.Kind.Age == 0 && k.Kind.Most == 0 {
		return
	}
	_, _ = s.query(Key{Kind: k.Kind}, `delete from records where (owner, kind, name) in (
		select owner, kind, name from records where $1 = '*' and kind = $2 and $3 = '' and used < $4
		limit 1000 for update skip locked)`, s.now().Add(-k.Kind.Age))
	if k.Kind.Most > 0 {
		_, _ = s.query(k, `delete from records where owner = $1 and kind = $2 and name in (
			select name from records where owner = $1 and kind = $2 and name <> $3 order by used limit
				(select case when count(*) > $4 then $4 / 4 else 0 end from records where owner = $1 and kind = $2))`,
			k.Kind.Most)
	}
}

func (s *rows) Lock(k Key) (unlock func(), err error) {
	name := path.Join("records", k.owner(), k.Kind.Name, k.Kind.lock(k.Name))
	_, unlock, err = s.db.Lock(context.Background(), name, k.Kind.Wait)
	if errors.Is(err, database.ErrBusy) {
		err = ErrBusy
	}
	return unlock, err
}

func (s *rows) Where(k Key) string {
	return fmt.Sprintf("the record %s of kind %s and owner %s in the database", k.Name, k.Kind.Name, k.owner())
}

func (s *rows) Process() (string, error) { return s.db.Process(), nil }

func (s *rows) Alive(process string) bool { return s.db.Alive(process) }

func (s *rows) Close() {}
