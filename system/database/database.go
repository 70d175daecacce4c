// Package database is the Postgres that replicas share: transactions of an owner, locks, notifications and heartbeats.
// It works again by itself after the server was away.
package database

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"net"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	connectTimeout = 2 * time.Second // for a connection, new or of the pool
	attempts       = 5               // of a transaction that others stood in the way of
	poolSize       = 8               // connections, unless pool_max_conns of the URL says otherwise
	maxLocks       = 16              // that are held or waited for, each with a connection
	readOnly       = "25006"
)

// The limits of a statement, and of all of a batch or transaction. Tests wait for less.
var statementTimeout, callTimeout = 10 * time.Second, 20 * time.Second

// AllOwners is the operator, who sees the rows of all owners: sweeps, and lists of all.
const AllOwners = "*"

// Options say which database to use.
type Options struct {
	// URL is postgres://USER@HOST:PORT/NAME. It must not hold a password, which others could see among the arguments of
	// the process: that comes from PGPASSFILE or a service file. Tables are in the first schema of its search_path.
	URL     string
	Replica string       // name of a server that counts as one of [DB.Replicas]; "": a command, which does not
	Log     *slog.Logger // nil: nothing is logged
}

// DB is a database. It is safe for concurrent use.
type DB struct {
	pool    *pgxpool.Pool
	config  *pgx.ConnConfig
	where   string // host, port and name, for errors
	schema  string
	found   int // version of the tables before Open
	replica string
	process string
	log     *slog.Logger
	locks   chan struct{} // has an element for each lock that is held or waited for

	ctx       context.Context // ends with Close
	end       context.CancelFunc
	running   sync.WaitGroup
	beating   sync.Once
	listening sync.Once

	mu        sync.Mutex
	listeners map[*listener]struct{}
	connected bool // notifications arrive
}

// Open connects to a database and migrates its tables. Heartbeats, and connections for locks and notifications, begin
// when they are first needed.
func Open(ctx context.Context, o Options) (*DB, error) {
	config, err := parse(o.URL)
	if err != nil {
		return nil, err
	}
	c := config.ConnConfig
	db := &DB{
		config: c, where: fmt.Sprintf("%s:%d/%s", c.Host, c.Port, c.Database), replica: o.Replica, log: o.Log,
		process: fmt.Sprintf("%d-%s", os.Getpid(), rand.Text()), listeners: map[*listener]struct{}{},
		locks: make(chan struct{}, maxLocks),
	}
	if db.log == nil {
		db.log = slog.New(slog.DiscardHandler)
	}
	if err := db.migrate(ctx); err != nil {
		return nil, err
	}
	db.ctx, db.end = context.WithCancel(context.Background())
	db.pool, err = pgxpool.NewWithConfig(db.ctx, config)
	return db, err
}

// parse reads a URL. Its errors quote none that may hold a password.
func parse(address string) (*pgxpool.Config, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return nil, errors.New("the database must be postgres://USER@HOST:PORT/NAME; special characters are %-encoded")
	}
	if _, secret := u.User.Password(); secret || u.Query().Has("password") || u.Query().Has("sslpassword") {
		return nil, errors.New("the database's URL holds a password, which other users of this machine can see: " +
			"remove it, and write it to the file that PGPASSFILE names")
	}
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, fmt.Errorf("the database %s cannot be used: check the parameters of its URL and the files that "+
			"PGSERVICEFILE, PGPASSFILE and PGSSLROOTCERT name: %w", u.Host, err)
	}
	if !u.Query().Has("pool_max_conns") {
		config.MaxConns = poolSize
	}
	config.PingTimeout = connectTimeout / 2 // there is time for another connection
	config.ConnConfig.ConnectTimeout = connectTimeout
	params := config.ConnConfig.RuntimeParams
	params["application_name"] = cmp.Or(params["application_name"], "mcp-funnel")
	params["statement_timeout"] = fmt.Sprint(statementTimeout.Milliseconds())
	params["idle_in_transaction_session_timeout"] = "30s"
	params["tcp_keepalives_idle"] = "15" // so a dead machine keeps no lock
	return config, nil
}

// Close ends heartbeats, listeners, locks and connections. It waits for statements that run.
func (db *DB) Close() {
	db.end()
	db.running.Wait()
	beats := true
	db.beating.Do(func() { beats = false })
	if beats {
		_ = db.Exec(context.Background(), "delete from replicas where process = $1", db.process)
	}
	db.pool.Close()
}

// Batch sends statements as one implicit transaction of an owner; in one round trip, once a connection knows them.
// After a serialization failure, a deadlock or a connection that the server has ended it sends them, and calls read,
// again. An error of read does not undo what the statements did. If the connection breaks they may have been committed.
func (db *DB) Batch(ctx context.Context, owner string, b *pgx.Batch, read func(pgx.BatchResults) error) error {
	return db.run(ctx, owner, func(conn *pgxpool.Conn) error {
		all := &pgx.Batch{}
		all.Queue("select set_config('funnel.owner', $1, true)", owner)
		for _, q := range b.QueuedQueries {
			all.Queue(q.SQL, q.Arguments...).Fn = q.Fn
		}
		results := conn.SendBatch(ctx, all)
		_, err := results.Exec()
		if err == nil && read != nil {
			err = read(results)
		}
		if closed := results.Close(); closed != nil && !errors.Is(err, closed) {
			err = errors.Join(err, closed)
		}
		return err
	})
}

// Query runs one statement as [DB.Batch] does, and returns its rows.
func Query[T any](
	ctx context.Context, db *DB, owner string, row pgx.RowToFunc[T], sql string, arguments ...any,
) (all []T, err error) {
	b := &pgx.Batch{}
	b.Queue(sql, arguments...)
	err = db.Batch(ctx, owner, b, func(r pgx.BatchResults) (err error) {
		rows, _ := r.Query() // CollectRows returns its error
		all, err = pgx.CollectRows(rows, row)
		return err
	})
	return all, err
}

// Exec runs one statement of [AllOwners] as [DB.Batch] does.
func (db *DB) Exec(ctx context.Context, sql string, arguments ...any) error {
	b := &pgx.Batch{}
	b.Queue(sql, arguments...)
	return db.Batch(ctx, AllOwners, b, nil)
}

// Tx runs do in a transaction of an owner (read committed), again as Batch does, at most 5 times. If the connection
// breaks it may have been committed.
func (db *DB) Tx(ctx context.Context, owner string, do func(pgx.Tx) error) error {
	begin := fmt.Sprintf("begin; select set_config('funnel.owner', convert_from('\\x%s'::bytea, 'UTF8'), true)",
		hex.EncodeToString([]byte(owner)))
	return db.run(ctx, owner, func(conn *pgxpool.Conn) error {
		return pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{BeginQuery: begin}, do)
	})
}

var errNoOwner = errors.New("a statement for the database has no owner")

// run calls do with a connection, again where it had no effect and may succeed.
func (db *DB) run(ctx context.Context, owner string, do func(*pgxpool.Conn) error) error {
	if owner == "" {
		return errNoOwner
	}
	for attempt := 1; ; attempt++ {
		err := db.once(ctx, do)
		again := pgconn.SafeToRetry(err)
		var e *pgconn.PgError
		if errors.As(err, &e) {
			switch e.Code {
			case "40001", "40P01", "57P01": // serialization failure, deadlock, connection ended
				again = true
			case readOnly: // an old primary that is a standby now; another connection may find the new one
				db.pool.Reset()
				again = attempt == 1
			}
		}
		if err == nil || !again || attempt == attempts || ctx.Err() != nil {
			return db.explain(err)
		}
		_ = sleep(ctx, time.Duration(mathrand.Int64N(int64(10*time.Millisecond)<<attempt)))
	}
}

func (db *DB) once(ctx context.Context, do func(*pgxpool.Conn) error) error {
	short, cancel := context.WithTimeout(ctx, connectTimeout)
	conn, err := db.pool.Acquire(short)
	cancel()
	if err != nil {
		return err
	}
	defer conn.Release()
	raw := conn.Conn().PgConn().Conn() // the timer may run after the release
	timer := time.AfterFunc(callTimeout, func() { _ = raw.Close() })
	defer timer.Stop()
	return do(conn)
}

// explain names the database in an error of the connection.
func (db *DB) explain(err error) error {
	if !Unavailable(err) {
		return err
	}
	return &unavailableError{db.where, err}
}

type unavailableError struct {
	where string
	err   error
}

func (e *unavailableError) Error() string {
	return fmt.Sprintf("the database %s is not available; check that it runs and accepts connections and writes: %v",
		e.where, e.err)
}

func (e *unavailableError) Unwrap() error { return e.err }

// Short says what clients may know.
func (e *unavailableError) Short() string { return "the database is not available" }

// sleep returns early, with an error, if the context ends.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// Unavailable reports whether an error says that the database cannot be reached or written now: no connection, too many
// of them, shutdown, read-only, no memory or disk space, deadline. The same statement may succeed later.
func Unavailable(err error) bool {
	var e *pgconn.PgError
	var connect *pgconn.ConnectError
	var network net.Error
	if errors.As(err, &e) && !errors.As(err, &connect) {
		return e.Code == readOnly || slices.Contains([]string{"08", "53", "57", "58"}, e.Code[:min(2, len(e.Code))])
	}
	is := func(target error) bool { return errors.Is(err, target) }
	return connect != nil || errors.As(err, &network) || slices.ContainsFunc([]error{
		io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, pgconn.ErrConnClosed, errLost,
	}, is) || pgconn.SafeToRetry(err)
}
