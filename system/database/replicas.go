package database

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	beatEvery = 5 * time.Second
	aliveFor  = "interval '20 s'" // since the last heartbeat, by the clock of the database
)

// Replicas returns the names of the servers that were seen within the last 20 s, this one among them, in order.
func (db *DB) Replicas(ctx context.Context) ([]string, error) {
	db.Process()
	return Query(ctx, db, AllOwners, pgx.RowTo[string],
		"select distinct replica from replicas where replica <> '' and seen > now() - "+aliveFor+" order by 1")
}

// Process returns a name for this process, which is [DB.Alive] from now on until Close or 20 s after its death.
func (db *DB) Process() string {
	db.beating.Do(func() {
		failed := db.beat(nil)
		db.running.Go(func() {
			for sleep(db.ctx, beatEvery) == nil {
				failed = db.beat(failed)
			}
		})
	})
	return db.process
}

// beat says that this process is alive, and forgets those that have been dead for an hour. It logs the first failure.
func (db *DB) beat(failed error) error {
	b := &pgx.Batch{}
	b.Queue(`insert into replicas (owner, process, replica, seen) values ('*', $1, $2, now())
		on conflict (process) do update set seen = now()`, db.process, db.replica)
	b.Queue("delete from replicas where seen < now() - interval '1 h'")
	err := db.Batch(db.ctx, AllOwners, b, nil)
	if err != nil && failed == nil && db.ctx.Err() == nil {
		db.log.Warn("heartbeat failed; other replicas take this one for dead after 20 s", "error", err)
	}
	return err
}

// Alive reports whether the process of a name still runs. It reports true if the database cannot be asked, because
// others may take over the work of a dead process.
func (db *DB) Alive(process string) bool {
	if process == "" || process == db.process {
		return process != ""
	}
	alive, err := Query(db.ctx, db, AllOwners, pgx.RowTo[int],
		"select 1 from replicas where process = $1 and seen > now() - "+aliveFor, process)
	return len(alive) > 0 || err != nil
}
