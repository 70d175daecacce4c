package trace

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-funnel/mcp-funnel/system/database"
)

const (
	flushEvery = time.Second
	flushAt    = 100  // calls that are written without waiting for that time
	maxPending = 1000 // calls that wait for a database that is away
	pageSize   = 500  // lines that Read has in memory
)

// Rows is a [Store] in a database, with a partition for each day. Calls are written after at most a second. If the
// database is away, up to 1,000 calls wait; more are lost, which the log says.
type Rows struct {
	room

	db  *database.DB
	log *slog.Logger
	now func() time.Time

	writing sync.Mutex // held while calls are written
	failed  bool

	mu      sync.Mutex
	pending []pending
	lost    int
	day     string // on which the last call was added
	kept    int64  // bytes of its texts
	full    chan struct{}
	end     chan struct{} // nil after Close
	ended   chan struct{}
}

type pending struct {
	owner, day, line string
	shown            *string
	at               time.Time
}

// InDatabase returns the trace in a database. Days beyond [Retention] are removed at the first call of a day.
func InDatabase(db *database.DB, log *slog.Logger) *Rows {
	r := &Rows{
		db: db, log: log, now: time.Now,
		full: make(chan struct{}, 1), end: make(chan struct{}), ended: make(chan struct{}),
	}
	r.KeepShown(defaultShown)
	go r.run(r.end)
	return r
}

// Append implements [Store].
func (r *Rows) Append(c Call, s *Shown) error { return r.append(c, s, r.now()) }

// append adds a call to the day of a time. Nothing counts the texts of other processes, so each has the same part of
// their room for a day.
func (r *Rows) append(c Call, s *Shown, at time.Time) error {
	record := string(s.record(&c))
	line, err := c.bounded().line()
	if err != nil {
		return fmt.Errorf("write trace: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.end == nil:
		return errors.New("write trace: the log is closed")
	case len(r.pending) >= maxPending:
		r.lost++
		return nil
	}
	one := pending{cmp.Or(c.Owner, database.AllOwners), at.UTC().Format(time.DateOnly), string(line), nil, c.At}
	if one.day != r.day {
		r.day, r.kept = one.day, 0
	}
	if n := int64(len(record)); n > 0 && r.kept+n <= r.max.Load()/8 && len(r.pending) < maxPending/2 { // 10 MB
		r.kept += n
		one.shown = &record
	}
	r.pending = append(r.pending, one)
	if len(r.pending) == flushAt {
		select {
		case r.full <- struct{}{}:
		default:
		}
	}
	return nil
}

func (r *Rows) run(end <-chan struct{}) {
	defer close(r.ended)
	for tick := time.Tick(flushEvery); ; {
		select {
		case <-end:
			_ = r.flush() // it has logged it
			return
		case <-r.full:
		case <-tick:
		}
		_ = r.flush()
	}
}

// flush writes what waits. It logs the first failure, and how many calls were lost.
func (r *Rows) flush() error {
	r.writing.Lock()
	defer r.writing.Unlock()
	r.mu.Lock()
	batch := r.pending
	r.mu.Unlock()
	if len(batch) == 0 {
		return nil
	}
	err := r.write(batch)
	r.mu.Lock()
	lost := 0
	if !database.Unavailable(err) { // written, or never to be
		r.pending = slices.Clone(r.pending[len(batch):])
		lost, r.lost = r.lost, 0
	}
	if err != nil && !database.Unavailable(err) {
		lost += len(batch)
	}
	waiting := len(r.pending)
	r.mu.Unlock()
	if lost > 0 || err != nil && !r.failed {
		r.log.Warn("trace: calls wait for the database, or are lost", "waiting", waiting, "lost", lost, "error", err)
	}
	r.failed = err != nil
	return err
}

func (r *Rows) write(batch []pending) error {
	b, day, begun := &pgx.Batch{}, "", false
	for _, p := range batch {
		if p.day != day {
			day = p.day
			b.Queue("select funnel_trace_day($1::text::date)", day).QueryRow(func(row pgx.Row) error {
				var made bool
				err := row.Scan(&made)
				begun = begun || made
				return err
			})
		}
		b.Queue("insert into trace (owner, at, day, line, shown) values ($1, $2, $3::text::date, $4, $5)",
			p.owner, p.at, p.day, p.line, p.shown)
	}
	err := r.db.Batch(context.Background(), database.AllOwners, b, nil)
	if err == nil && begun {
		r.expire()
	}
	return err
}

// expire removes old days, unless another process does.
func (r *Rows) expire() {
	_, err := r.db.Leader(context.Background(), "trace", func(ctx context.Context) error {
		return r.db.Exec(ctx, "select funnel_trace_expire($1::text::date)", r.now().UTC().Add(-Retention).Format(time.DateOnly))
	})
	if err != nil {
		r.log.Warn("trace: old days were not removed", "error", err)
	}
}

// Read implements [Store]. It writes first what waits, and returns the calls of all processes.
func (r *Rows) Read(since time.Time, skipped *int) iter.Seq2[Call, error] {
	if skipped == nil {
		skipped = new(int)
	}
	return func(yield func(Call, error) bool) {
		_ = r.flush()
		day, seq := since.UTC(), int64(0)
		for {
			type row struct {
				Seq  int64
				Day  time.Time
				Line string
			}
			page, err := database.Query(context.Background(), r.db, database.AllOwners, pgx.RowToStructByPos[row],
				`select seq, day, line from trace where day >= $1::date and (day, seq) > ($1::date, $2)
				order by day, seq limit $3`, day, seq, pageSize)
			if err != nil {
				yield(Call{}, fmt.Errorf("read trace: %w", err))
				return
			}
			for _, one := range page {
				var c Call
				if json.Unmarshal([]byte(one.Line), &c) != nil || c.V != Version {
					*skipped++
				} else if c.Ref = rowRef(one.Day, one.Seq); !c.At.Before(since) && !yield(c, nil) {
					return
				}
				day, seq = one.Day, one.Seq
			}
			if len(page) < pageSize {
				return
			}
		}
	}
}

// Changed implements [Store].
func (r *Rows) Changed() (string, error) {
	last, err := database.Query(context.Background(), r.db, database.AllOwners, pgx.RowTo[string],
		"select coalesce(max(seq), 0)::text from trace where day = $1::text::date", r.now().UTC().Format(time.DateOnly))
	if err != nil {
		return "", fmt.Errorf("read trace: %w", err)
	}
	return strings.Join(last, ""), nil
}

// rowRef returns the Ref of a row.
func rowRef(at time.Time, seq int64) string { return at.Format(day) + "." + strconv.FormatInt(seq, 10) }

// Shown implements [Store].
func (r *Rows) Shown(ref string) (c Call, s Shown, err error) {
	date, number, _ := strings.Cut(ref, ".")
	at, wrong := time.Parse(day, date)
	seq, err := strconv.ParseInt(number, 10, 64)
	if wrong != nil || err != nil || rowRef(at, seq) != ref {
		return c, s, notFound(ref)
	}
	_ = r.flush()
	type row struct{ Line, Shown string }
	found, err := database.Query(context.Background(), r.db, database.AllOwners, pgx.RowToStructByPos[row],
		"select line, coalesce(shown, '') from trace where day = $1::date and seq = $2", at, seq)
	switch {
	case err != nil:
		return c, s, fmt.Errorf("read trace: %w", err)
	case len(found) == 0 || json.Unmarshal([]byte(found[0].Line), &c) != nil || c.V != Version:
		return Call{}, s, notFound(ref)
	case json.Unmarshal([]byte(found[0].Shown), &s) != nil: // "": none
		err = ErrNotKept
	}
	c.Ref = ref
	return c, s, err
}

// Close implements [Store]: what waits is written, unless the database is away. The database is closed after it, by the
// caller.
func (r *Rows) Close() error {
	r.mu.Lock()
	end := r.end
	r.end = nil
	r.mu.Unlock()
	if end != nil {
		close(end)
	}
	<-r.ended
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.pending) + r.lost; n > 0 {
		return fmt.Errorf("write trace: %d calls are lost", n)
	}
	return nil
}
