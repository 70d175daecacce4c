package database

import (
	"context"
	"crypto/tls"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Status describes a database to its operator.
type Status struct {
	Where  string `json:"where"`  // host, port and name
	Server string `json:"server"` // version of Postgres
	Schema int    `json:"schema"` // version of the tables
	Known  int    `json:"known"`  // version of the tables that this program makes
	Found  int    `json:"found"`  // version of the tables before this process opened the database
	TLS    bool   `json:"tls"`
	// Skew is what the database's clock is ahead of ours; the round trip makes it inexact.
	Skew time.Duration `json:"skew_ns"`
	// Bypasses is whether the role may see all rows in spite of row-level security, which is then no second line.
	Bypasses bool    `json:"bypasses_row_security"`
	Tables   []Table `json:"tables"` // by name
}

// Table is a table, with all its partitions.
type Table struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"` // with indexes
	Rows  int64  `json:"rows"`  // as estimated by Postgres, which counts now and then
}

// Status asks the database how it is.
func (db *DB) Status(ctx context.Context) (Status, error) {
	all, err := migrations.ReadDir("migrations")
	if err != nil {
		return Status{}, err
	}
	s := Status{Where: db.where, Known: len(all), Found: db.found}
	err = db.run(ctx, AllOwners, func(conn *pgxpool.Conn) error {
		_, s.TLS = conn.Conn().PgConn().Conn().(*tls.Conn)
		if s.Schema, err = version(ctx, conn.Conn()); err != nil {
			return err
		}
		began := time.Now()
		var now time.Time
		if err := conn.QueryRow(ctx, `select clock_timestamp(), current_setting('server_version'), rolsuper or rolbypassrls
			from pg_roles where rolname = current_user`).Scan(&now, &s.Server, &s.Bypasses); err != nil {
			return err
		}
		s.Skew = now.Sub(began.Add(time.Since(began) / 2))
		rows, _ := conn.Query(ctx, `select relname, sum(bytes)::bigint, sum(rows)::bigint from (
				select coalesce(pg_partition_root(oid), oid) as root, pg_total_relation_size(oid) as bytes,
					greatest(reltuples, 0) as rows
				from pg_class where relkind = 'r' and relrowsecurity and relnamespace = current_schema()::regnamespace
			) as parts join pg_class on pg_class.oid = root group by relname order by relname`)
		s.Tables, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Table])
		return err
	})
	return s, err
}
