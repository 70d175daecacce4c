package remote_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/observations/backend"
	"github.com/mcp-funnel/mcp-funnel/observations/remote/remotetest"
	"github.com/mcp-funnel/mcp-funnel/system/database"
	"github.com/mcp-funnel/mcp-funnel/system/database/databasetest"
)

// TestS16RowsOfOthersAreHidden has statements that forget the owner. Row-level security, the second line, shows and
// changes none of another owner's rows. The control takes the policies away.
func TestS16RowsOfOthersAreHidden(t *testing.T) {
	p := remotetest.New(t)
	s, _ := p.Open(t, backend.Options{})
	small, large := expect.Value(keep(s, bytesOf(1000)))(t), expect.Value(keep(s, bytesOf(300<<10)))(t)
	gone := expect.Value(keep(s, bytesOf(200<<10)))(t)
	begin(t, s, bytesOf(100<<10)) // a reservation
	databasetest.Exec(t, p.Database,
		fmt.Sprintf("insert into removals values ('%s', '%s', now() + interval '1 h')", gone.ID, owner))
	db := expect.Value(database.Open(t.Context(), database.Options{URL: p.Database}))(t)
	t.Cleanup(db.Close)
	tables := []string{"observations", "blocks", "usage", "reservations", "removals"}
	// try returns how many rows of alice statements of bob see or change. What they change is undone.
	try := func() (cases, leaks int) {
		for _, table := range tables {
			for _, sql := range []string{
				"select count(*) from " + table,
				"with gone as (delete from " + table + " returning 1) select count(*) from gone",
				"with taken as (update " + table + " set owner = 'bob' returning 1) select count(*) from taken",
			} {
				n, undo := -1, errors.New("undone")
				expect.ErrorIs(t, db.Tx(t.Context(), "bob", func(tx pgx.Tx) error {
					if err := tx.QueryRow(t.Context(), sql).Scan(&n); err != nil {
						return err
					}
					return undo
				}), undo)
				cases++
				leaks += n
			}
		}
		for _, id := range []backend.ID{small.ID, large.ID} {
			b := &pgx.Batch{}
			b.Queue("select count(*) from observations left join blocks using (id) where id = $1", string(id))
			n := -1
			expect.Must(t, db.Batch(t.Context(), "bob", b, func(r pgx.BatchResults) error { return r.QueryRow().Scan(&n) }))
			cases++
			leaks += n
		}
		return cases, leaks
	}
	cases, leaks := try()
	for _, table := range tables { // as alice, each has rows
		b := &pgx.Batch{}
		b.Queue("select count(*) from " + table)
		n := 0
		expect.Must(t, db.Batch(t.Context(), owner, b, func(r pgx.BatchResults) error { return r.QueryRow().Scan(&n) }))
		if n == 0 {
			t.Errorf("%s has no rows", table)
		}
	}
	for _, table := range tables {
		databasetest.Exec(t, p.Database, "alter policy owner on "+table+" using (true)")
	}
	_, control := try()
	promise.Keptf(t, promise.Proof{Promise: "S16", Cases: cases, Failures: leaks, Control: control},
		"statements that forget the owner, on %d tables of Postgres; control: without row-level security", len(tables))
	expect.Must(t, read(s, large.ID, bytesOf(300<<10), 0, -1))
	_, _, err := s.Open("bob", large.ID)
	expect.ErrorIs(t, err, backend.ErrNotFound, "the first line")
}
