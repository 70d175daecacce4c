package database

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	maxPayload = 7900                  // bytes of a notification
	maxWaiting = 1000                  // notifications that one listener has not yet handled
	minBackOff = 50 * time.Millisecond // between attempts to connect
	maxBackOff = time.Second
	idle       = 5 * time.Second // after which a silent connection is checked
)

// ErrBusy is the error of [DB.Lock] if another one holds the lock.
var ErrBusy = errors.New("another process holds the lock")

var errLost = errors.New("the connection to the database that held the lock has ended")

// key is the number of an advisory lock, which all programs that use the database share.
func (db *DB) key(name string) int64 {
	sum := sha256.Sum256([]byte("mcp-funnel\x00" + db.schema + "\x00" + name))
	return int64(binary.BigEndian.Uint64(sum[:])) //nolint:gosec // any number will do
}

// Lock takes the lock of a name, which one caller of all processes has at a time; the returned function unlocks it. It
// tries again until wait is over; then the error is [ErrBusy], as it is if there are too many locks. The context ends with ctx, and if the connection that
// holds the lock is lost: another process may have it from then on. Each lock has a connection, at most 16 a process.
func (db *DB) Lock(ctx context.Context, name string, wait time.Duration) (context.Context, func(), error) {
	try, cancel := context.WithTimeout(ctx, wait+connectTimeout)
	defer cancel()
	conn, err := db.lock(try, name, time.Now().Add(wait))
	if err != nil {
		return nil, nil, db.explain(err)
	}
	held, end := context.WithCancelCause(ctx)
	watch, stop := context.WithCancel(db.ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = conn.WaitForNotification(watch) // none comes: until it is unlocked, or the connection or database is closed
		end(errLost)
		db.unlock(conn)
	}()
	return held, func() {
		end(nil)
		stop()
		<-ended
	}, nil
}

func (db *DB) lock(ctx context.Context, name string, until time.Time) (*pgx.Conn, error) {
	select {
	case db.locks <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: this one has %d others", ErrBusy, maxLocks)
	}
	conn, err := pgx.ConnectConfig(ctx, db.config)
	if err != nil {
		<-db.locks
		return nil, err
	}
	for pause, got := 5*time.Millisecond, false; !got; pause = min(2*pause, 100*time.Millisecond) {
		err := conn.QueryRow(ctx, "select pg_try_advisory_lock($1)", db.key(name)).Scan(&got)
		if left := time.Until(until); err == nil && !got && left <= 0 {
			err = ErrBusy
		} else if err == nil && !got {
			err = sleep(ctx, min(pause, left))
		}
		if err != nil {
			db.unlock(conn)
			return nil, err
		}
	}
	return conn, nil
}

// unlock returns when others can have the lock; closing the connection alone leaves it for a moment.
func (db *DB) unlock(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	_, _ = conn.Exec(ctx, "select pg_advisory_unlock_all()")
	_ = conn.Close(ctx)
	<-db.locks
}

// Leader runs do if no other caller of any process runs something of this name now. Its context ends if the connection
// that says so is lost.
func (db *DB) Leader(ctx context.Context, name string, do func(context.Context) error) (ran bool, err error) {
	held, unlock, err := db.Lock(ctx, "leader "+name, 0)
	if errors.Is(err, ErrBusy) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer unlock()
	return true, do(held)
}

// Notify sends a payload, of at most 7,900 bytes, to the listeners of a channel in all processes, this one included.
// The name of a channel has at most 50 bytes and no space.
func (db *DB) Notify(ctx context.Context, channel, payload string) error {
	if len(payload) > maxPayload {
		return fmt.Errorf("a notification has %d bytes, and may have %d", len(payload), maxPayload)
	}
	return db.Exec(ctx, "select pg_notify($1, $2)", db.channel(), channel+" "+payload)
}

// channel is the one that Postgres knows: all schemas of a database share the names.
func (db *DB) channel() string {
	return fmt.Sprintf("funnel_%x", uint64(db.key("notify"))) //nolint:gosec // any number will do
}

type listener struct {
	channel string
	waiting chan string
	missed  atomic.Bool // something did not fit into waiting
}

// Listen calls heard with each payload that is sent to a channel; and with "" when listening begins, after each
// reconnection, and if over 1,000 payloads wait: some may be missing. A slow one keeps no others waiting. A call of
// heard may still run when stop returns; Close waits for it.
func (db *DB) Listen(channel string, heard func(payload string)) (stop func()) {
	l := &listener{channel: channel, waiting: make(chan string, maxWaiting)}
	ctx, stop := context.WithCancel(db.ctx)
	db.running.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case payload := <-l.waiting:
				if l.missed.Swap(false) {
					heard("")
				}
				heard(payload)
			}
		}
	})
	db.listening.Do(func() { db.running.Go(db.listen) })
	db.mu.Lock()
	defer db.mu.Unlock()
	db.listeners[l] = struct{}{}
	if db.connected {
		l.waiting <- ""
	}
	context.AfterFunc(ctx, func() {
		db.mu.Lock()
		defer db.mu.Unlock()
		delete(db.listeners, l)
	})
	return stop
}

// listen keeps a connection for notifications until the database is closed.
func (db *DB) listen() {
	var failed error
	for pause := minBackOff; db.ctx.Err() == nil; pause = min(2*pause, maxBackOff) {
		ctx, cancel := context.WithTimeout(db.ctx, 2*connectTimeout)
		conn, err := pgx.ConnectConfig(ctx, db.config)
		if err == nil {
			_, err = conn.Exec(ctx, "listen "+db.channel())
		}
		cancel()
		if conn != nil {
			if err == nil {
				pause, failed = minBackOff, nil
				db.hear(true, "", "")
				err = db.receive(conn)
				db.hear(false, "", "")
			}
			_ = conn.Close(db.ctx)
		}
		if failed == nil && db.ctx.Err() == nil {
			db.log.Warn("the connection for notifications failed; it is tried again", "error", db.explain(err))
		}
		failed = err
		_ = sleep(db.ctx, pause)
	}
}

func (db *DB) receive(conn *pgx.Conn) error {
	for {
		ctx, cancel := context.WithTimeout(db.ctx, idle)
		n, err := conn.WaitForNotification(ctx)
		cancel()
		if err == nil {
			channel, payload, _ := strings.Cut(n.Payload, " ")
			db.hear(true, channel, payload)
			continue
		}
		if conn.IsClosed() || db.ctx.Err() != nil {
			return err
		}
		ctx, cancel = context.WithTimeout(db.ctx, connectTimeout)
		err = conn.Ping(ctx)
		if cancel(); err != nil {
			return err
		}
	}
}

// hear passes a payload to the listeners of a channel, and "" to those of all channels if it is "".
func (db *DB) hear(connected bool, channel, payload string) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.connected = connected
	for l := range db.listeners {
		if connected && (channel == "" || l.channel == channel) {
			select {
			case l.waiting <- payload:
			default:
				l.missed.Store(true)
			}
		}
	}
}
