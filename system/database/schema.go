package database

import (
	"context"
	"embed"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrationTimeout is for all migrations together, of which an index of a large table may be one.
const migrationTimeout = 10 * time.Minute

// migrate brings the tables to the version of this program, if no other replica does.
func (db *DB) migrate(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, migrationTimeout)
	defer cancel()
	config := db.config.Copy()
	config.RuntimeParams["statement_timeout"] = "0"
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return db.explain(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // which unlocks
	var bypasses bool
	if err := conn.QueryRow(ctx, "select coalesce(current_schema(), ''), rolsuper or rolbypassrls from pg_roles "+
		"where rolname = current_user").Scan(&db.schema, &bypasses); err != nil {
		return db.explain(err)
	}
	if bypasses {
		db.log.Warn("the role of the database bypasses row-level security, which is then no second line; use another one",
			"role", db.config.User)
	}
	if db.schema == "" {
		return fmt.Errorf("the database %s has no schema of its search_path: create one", db.where)
	}
	if _, err := conn.Exec(ctx, "select pg_advisory_lock($1)", db.key("migrate")); err != nil {
		return db.explain(err)
	}
	have, err := version(ctx, conn)
	if err != nil {
		return db.explain(err)
	}
	db.found = have
	all, err := migrations.ReadDir("migrations") // by name, that is, by version
	if err != nil {
		return err
	}
	if have > len(all) {
		return fmt.Errorf("the database %s has version %d of the tables, this program knows up to %d: use a newer mcp-funnel",
			db.where, have, len(all))
	}
	for i := have; i < len(all); i++ {
		sql, err := migrations.ReadFile("migrations/" + all[i].Name())
		if err == nil { // several statements at once are one transaction
			_, err = conn.Exec(ctx, fmt.Sprintf("%s;\ninsert into funnel_schema (version) values (%d)", sql, i+1))
		}
		if err != nil {
			return fmt.Errorf("migration %s of the database %s, which needs the right to create tables in the schema %s: %w",
				all[i].Name(), db.where, db.schema, err)
		}
	}
	return nil
}

// version returns the version of the tables; 0 if there are none.
func version(ctx context.Context, conn *pgx.Conn) (have int, err error) {
	var exists bool
	// Not to_regclass, which answers from a cache.
	err = conn.QueryRow(ctx, `select exists (select from pg_class
		where relname = 'funnel_schema' and relnamespace = current_schema()::regnamespace)`).Scan(&exists)
	if err == nil && exists {
		err = conn.QueryRow(ctx, "select coalesce(max(version), 0) from funnel_schema").Scan(&have)
	}
	return have, err
}
