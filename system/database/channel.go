package database

import "github.com/jackc/pgx/v5"

// QueueNotify adds a notification to a batch: it is sent when the batch is committed.
func (db *DB) QueueNotify(b *pgx.Batch, channel, payload string) {
	b.Queue("select pg_notify($1, $2)", db.channel(), channel+" "+payload)
}
