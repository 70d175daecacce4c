package database

import (
	"context"
	"errors"
	"fmt"
	"net"
	neturl "net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/system/database/databasetest"
)

func open(t *testing.T, url, replica string) *DB {
	t.Helper()
	db := expect.Value(Open(t.Context(), Options{URL: url, Replica: replica}))(t)
	t.Cleanup(db.Close)
	return db
}

// names returns the names of the records that an owner sees.
func names(t *testing.T, db *DB, owner string) (all []string) {
	t.Helper()
	b := &pgx.Batch{}
	b.Queue("select name from records order by name")
	expect.Must(t, db.Batch(t.Context(), owner, b, func(r pgx.BatchResults) (err error) {
		rows, _ := r.Query()
		all, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	}))
	return all
}

const insert = "insert into records (owner, kind, name, version, body, used) values ($1, 'k', $2, 1, '', now())"

func put(ctx context.Context, db *DB, as, owner, name string) error {
	b := &pgx.Batch{}
	b.Queue(insert, owner, name)
	return db.Batch(ctx, as, b, nil)
}

// eventually waits for what takes a moment.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for range 3000 {
		if done() {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("this does not happen: " + what)
}

// TestOwners has rows of two owners and the operator. The controls take the policy away.
func TestOwners(t *testing.T) {
	url := databasetest.URL(t)
	db := open(t, url, "")
	for _, owner := range []string{"a", "b", AllOwners} {
		expect.Must(t, put(t.Context(), db, owner, owner, "of "+owner))
	}
	sees := func(owner string, want ...string) {
		t.Helper()
		expect.EqualList(t, names(t, db, owner), want, "seen by "+owner)
	}
	sees("a", "of a")
	sees("b", "of b")
	sees("it's \\ nobody")
	sees(AllOwners, "of *", "of a", "of b")
	expect.Fails(t, put(t.Context(), db, "a", "b", "planted"), "row-level security", "a row of another owner")
	expect.Fails(t, put(t.Context(), db, AllOwners, "", "x"), "owner", "a row without owner")
	expect.ErrorIs(t, db.Batch(t.Context(), "", &pgx.Batch{}, nil), errNoOwner)
	expect.ErrorIs(t, db.Tx(t.Context(), "", func(pgx.Tx) error { return nil }), errNoOwner)
	for _, owner := range []string{"a", "it's \\ nobody"} {
		count := -1
		expect.Must(t, db.Tx(t.Context(), owner, func(tx pgx.Tx) error {
			return tx.QueryRow(t.Context(), `select count(*) from records
				where owner = current_setting('funnel.owner')`).Scan(&count)
		}))
		expect.Equal(t, count, len(names(t, db, owner)), "in a transaction of "+owner)
	}
	// Without the setting nothing is there, on new connections and on those that others have used.
	bare := func() (count int) {
		expect.Must(t, db.run(t.Context(), AllOwners, func(c *pgxpool.Conn) error {
			return c.QueryRow(t.Context(), "select count(*) from records").Scan(&count)
		}))
		return count
	}
	expect.Equal(t, bare(), 0, "without a setting")
	databasetest.Exec(t, url, "drop policy owner on records", "create policy owner on records using (true)")
	expect.Equal(t, bare(), 3, "the control, without the policy")
	if len(names(t, db, "a")) != 3 {
		t.Error("the control: another owner's rows stay hidden without the policy")
	}
}

func TestEachTableHasAnOwner(t *testing.T) {
	url := databasetest.URL(t)
	db := open(t, url, "")
	b := &pgx.Batch{}
	b.Queue("select funnel_trace_day('2026-03-14')")
	b.Queue(`select relname::text || ' ' || relrowsecurity || relforcerowsecurity ||
		exists (select from pg_attribute where attrelid = pg_class.oid and attname = 'owner' and attnotnull) ||
		exists (select from pg_policy where polrelid = pg_class.oid)
		from pg_class where relkind in ('r', 'p') and relnamespace = 'public'::regnamespace order by 1`)
	expect.Must(t, db.Batch(t.Context(), AllOwners, b, func(r pgx.BatchResults) error {
		if _, err := r.Exec(); err != nil {
			return err
		}
		rows, _ := r.Query()
		all, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if len(all) < 5 {
			t.Errorf("only %q", all)
		}
		for _, table := range all {
			if !strings.HasSuffix(table, " truetruetruetrue") && !strings.HasPrefix(table, "funnel_schema ") {
				t.Error(table)
			}
		}
		return err
	}))
}

// TestBatch checks that all statements are done or none.
func TestBatch(t *testing.T) {
	db := open(t, databasetest.URL(t), "")
	b := &pgx.Batch{}
	b.Queue(insert, "a", "1")
	b.Queue(insert, "a", "1")
	expect.Fails(t, db.Batch(t.Context(), "a", b, nil), "duplicate key")
	expect.Equal(t, len(names(t, db, "a")), 0)
	mine := errors.New("mine")
	expect.ErrorIs(t, db.Batch(t.Context(), "a", &pgx.Batch{}, func(pgx.BatchResults) error { return mine }), mine)
}

// TestConflicts has transactions that add to the same rows in opposite orders: Postgres ends some as deadlocks.
func TestConflicts(t *testing.T) {
	url := databasetest.URL(t)
	db, other := open(t, url, ""), open(t, url, "")
	for _, name := range []string{"x", "y"} {
		expect.Must(t, put(t.Context(), db, "a", "a", name))
	}
	var runs atomic.Int64
	var both sync.WaitGroup
	both.Add(2)
	var group sync.WaitGroup
	for i, d := range []*DB{db, other} {
		first := true
		order := []string{"x", "y"}
		if i == 1 {
			slices.Reverse(order)
		}
		group.Go(func() {
			expect.OK(t, d.Tx(t.Context(), "a", func(tx pgx.Tx) error {
				runs.Add(1)
				for j, name := range order {
					if _, err := tx.Exec(t.Context(), "update records set version = version + 1 where name = $1", name); err != nil {
						return err
					}
					if j == 0 && first {
						first = false
						both.Done()
						both.Wait()
					}
				}
				return nil
			}))
		})
	}
	group.Wait()
	if runs.Load() < 3 {
		t.Errorf("%d runs: there was no deadlock", runs.Load())
	}
	b := &pgx.Batch{}
	b.Queue("select sum(version)::int from records")
	expect.Must(t, db.Batch(t.Context(), "a", b, func(r pgx.BatchResults) error {
		sum := 0
		err := r.QueryRow().Scan(&sum)
		expect.Equal(t, sum, 2+2*2)
		return err
	}))
}

func TestMigrations(t *testing.T) {
	url := databasetest.URL(t)
	files := expect.Value(migrations.ReadDir("migrations"))(t)
	for i, f := range files {
		expect.Has(t, f.Name(), fmt.Sprintf("%04d_", i+1))
	}
	var group sync.WaitGroup
	for range 5 { // replicas that start together
		group.Go(func() {
			db, err := Open(t.Context(), Options{URL: url})
			if err != nil {
				t.Error(err)
				return
			}
			db.Close()
		})
	}
	group.Wait()
	s := expect.Value(open(t, url, "").Status(t.Context()))(t)
	if s.Schema != len(files) || s.Known != len(files) || s.TLS || s.Bypasses || s.Skew.Abs() > time.Minute ||
		s.Server == "" {
		t.Errorf("%+v", s)
	}
	i := slices.IndexFunc(s.Tables, func(t Table) bool { return t.Name == "records" })
	if i < 0 || s.Tables[i].Bytes == 0 {
		t.Errorf("%+v", s.Tables)
	}
	databasetest.Exec(t, url, "insert into funnel_schema (version) values (9000)")
	expect.Fails(t, expect.Err(Open(t.Context(), Options{URL: url})),
		fmt.Sprintf("has version 9000 of the tables, this program knows up to %d", len(files)))
}

// TestSchema has two sets of tables in one database, which share neither rows nor locks nor channels.
func TestSchema(t *testing.T) {
	url := databasetest.URL(t)
	databasetest.Exec(t, url, "create schema one authorization funnel", "create schema two authorization funnel")
	one, two := open(t, url+"&search_path=one", ""), open(t, url+"&search_path=two", "")
	expect.Must(t, put(t.Context(), one, "a", "a", "x"))
	expect.Equal(t, len(names(t, two, AllOwners)), 0)
	for _, db := range []*DB{one, two} {
		_, unlock, err := db.Lock(t.Context(), "x", 0)
		expect.Must(t, err)
		defer unlock()
	}
	expect.Fails(t, expect.Err(Open(t.Context(), Options{URL: url + "&search_path=none"})), "has no schema")
}

func TestRefusedURLs(t *testing.T) {
	const secret = "geheim"
	for address, want := range map[string]string{
		"postgres://u:geheim@127.0.0.1/x":             "PGPASSFILE",
		"postgres://u@127.0.0.1/x?password=geheim":    "PGPASSFILE",
		"postgres://u@127.0.0.1/x?sslpassword=geheim": "PGPASSFILE",
		"postgres://u:ge/geheim@127.0.0.1/x":          "postgres://USER@HOST",
		"postgres://u:%zzgeheim@127.0.0.1/x":          "postgres://USER@HOST",
		"mysql://u:geheim@127.0.0.1/x":                "postgres://USER@HOST",
		"":                                            "postgres://USER@HOST",
		"postgres://u@127.0.0.1/x?sslmode=x":          "check the parameters",
		"postgres://u@127.0.0.1:1/x?sslmode=disable":  "127.0.0.1:1/x is not available",
	} {
		err := expect.Err(Open(t.Context(), Options{URL: address}))
		expect.Fails(t, err, want, address)
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the error shows the password: %v", address, err)
		}
	}
}

func TestLocks(t *testing.T) {
	url := databasetest.URL(t)
	db, other := open(t, url, ""), open(t, url, "")
	held, unlock, err := db.Lock(t.Context(), "x", 0)
	expect.Must(t, err)
	for _, d := range []*DB{db, other} {
		_, _, err := d.Lock(t.Context(), "x", 10*time.Millisecond)
		expect.ErrorIs(t, err, ErrBusy)
	}
	time.AfterFunc(50*time.Millisecond, unlock)
	_, again, err := other.Lock(t.Context(), "x", time.Minute)
	expect.Must(t, err)
	expect.ErrorIs(t, held.Err(), context.Canceled)
	again()
	ran, err := db.Leader(t.Context(), "sweep", func(context.Context) error {
		ran, err := other.Leader(t.Context(), "sweep", func(context.Context) error { return nil })
		if ran || err != nil {
			t.Errorf("a second leader ran: %v, %v", ran, err)
		}
		return ErrBusy
	})
	if !ran || !errors.Is(err, ErrBusy) { // the error of what ran
		t.Errorf("%v, %v", ran, err)
	}
	// The connection is lost: the holder learns of it, and others can have the lock.
	held, unlock, err = db.Lock(t.Context(), "x", 0)
	expect.Must(t, err)
	databasetest.Kill(t, url)
	<-held.Done()
	expect.ErrorIs(t, context.Cause(held), errLost)
	_, third, err := other.Lock(t.Context(), "x", time.Minute)
	expect.Must(t, err)
	unlock() // has no effect on the lock of the other
	_, _, err = db.Lock(t.Context(), "x", 0)
	expect.ErrorIs(t, err, ErrBusy)
	third()
}

// TestLocksOfMany has one caller in the section at a time, in two processes with ten goroutines each.
func TestLocksOfMany(t *testing.T) {
	url := databasetest.URL(t)
	var inside, total atomic.Int64
	var group sync.WaitGroup
	for _, db := range []*DB{open(t, url, ""), open(t, url, "")} {
		for range 10 {
			group.Go(func() {
				for range 3 {
					_, unlock, err := db.Lock(t.Context(), "x", 5*time.Minute)
					if err != nil {
						t.Error(err)
						return
					}
					if inside.Add(1) != 1 {
						t.Error("two at once")
					}
					total.Add(1)
					inside.Add(-1)
					unlock()
				}
			})
		}
	}
	group.Wait()
	expect.Equal(t, total.Load(), 60)
}

func TestNotifications(t *testing.T) {
	url := databasetest.URL(t)
	db, other := open(t, url, ""), open(t, url, "")
	heard := make(chan string, 100)
	stop := db.Listen("cancel", func(payload string) { heard <- payload })
	expect.Equal(t, <-heard, "", "when listening begins")
	expect.Must(t, other.Notify(t.Context(), "other", "x"))
	for i := range 10 {
		expect.Must(t, other.Notify(t.Context(), "cancel", fmt.Sprint(i, "'\\")))
	}
	for i := range 10 {
		expect.Equal(t, <-heard, fmt.Sprint(i, "'\\"))
	}
	long := strings.Repeat("x", maxPayload)
	expect.Must(t, db.Notify(t.Context(), "cancel", long))
	expect.Equal(t, <-heard, long)
	expect.Fails(t, db.Notify(t.Context(), "cancel", long+"x"), "7901 bytes")
	databasetest.Kill(t, url)
	expect.Equal(t, <-heard, "", "after the connection was lost")
	expect.Must(t, other.Notify(t.Context(), "cancel", "again"))
	expect.Equal(t, <-heard, "again")
	stop()
	expect.Must(t, other.Notify(t.Context(), "cancel", "nobody"))
	second := db.Listen("cancel", func(payload string) { heard <- payload })
	defer second()
	expect.Equal(t, <-heard, "", "a new listener")
}

// TestSlowListener keeps one listener busy: it hears "" instead of what was too much, and another one hears all.
func TestSlowListener(t *testing.T) {
	db := open(t, databasetest.URL(t), "")
	block, missed := make(chan struct{}), make(chan string, 2*maxWaiting)
	heard := make(chan string)
	db.Listen("x", func(payload string) {
		<-block
		missed <- payload
	})
	db.Listen("x", func(payload string) { heard <- payload })
	expect.Equal(t, <-heard, "")
	for i := range maxWaiting + 5 {
		expect.Must(t, db.Notify(t.Context(), "x", fmt.Sprint(i)))
		expect.Equal(t, <-heard, fmt.Sprint(i))
	}
	close(block)
	for payload := "0"; payload != ""; payload = <-missed {
		continue
	}
	for <-missed != "" { // the second time, after some were lost
		continue
	}
}

func TestReplicas(t *testing.T) {
	url := databasetest.URL(t)
	a, b, command := open(t, url, "a"), open(t, url, "b"), open(t, url, "")
	expect.EqualList(t, expect.Value(a.Replicas(t.Context()))(t), []string{"a"})
	expect.EqualList(t, expect.Value(b.Replicas(t.Context()))(t), []string{"a", "b"})
	expect.EqualList(t, expect.Value(command.Replicas(t.Context()))(t), []string{"a", "b"})
	process := command.Process()
	for _, db := range []*DB{a, command} {
		if !db.Alive(process) || db.Alive("1-nobody") || db.Alive("") {
			t.Error("wrong about who is alive")
		}
	}
	command.Close()
	if a.Alive(process) {
		t.Error("it has ended")
	}
	databasetest.Exec(t, url, "update replicas set seen = now() - interval '21 s' where replica = 'b'")
	if a.Alive(b.Process()) {
		t.Error("its last heartbeat is too old")
	}
	expect.EqualList(t, expect.Value(a.Replicas(t.Context()))(t), []string{"a"})
	databasetest.Exec(t, url, "update replicas set seen = now() - interval '2 h'")
	eventually(t, "heartbeats", func() bool {
		return len(expect.Value(a.Replicas(t.Context()))(t)) == 2
	})
}

// TestOutages ends connections, makes the database read-only and stops the server: errors come in time and say what is
// wrong, and all works again afterwards.
func TestOutages(t *testing.T) {
	url := databasetest.URL(t)
	db := open(t, url, "a")
	heard := make(chan string, 100)
	defer db.Listen("c", func(payload string) { heard <- payload })()
	<-heard
	next := 0
	write := func() error {
		next++
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		return put(ctx, db, "a", "a", fmt.Sprint(next))
	}
	expect.Must(t, write())
	databasetest.Kill(t, url)
	expect.OK(t, write(), "after all connections were ended")
	<-heard

	databasetest.SetReadOnly(t, url, true)
	err := write()
	if expect.Fails(t, err, "is not available"); !Unavailable(err) {
		t.Errorf("read-only: %v", err)
	}
	expect.Must(t, expect.Err(db.Status(t.Context())), "reading goes on")
	databasetest.Exec(t, url, `do $$ begin
		execute format('alter database %I reset default_transaction_read_only', current_database()); end $$`)
	expect.OK(t, write(), "after it was read-only, on the same connections")

	inside := db.Tx(t.Context(), "a", func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), insert, "a", "lost"); err != nil {
			return err
		}
		databasetest.Stop(t)
		return nil
	})
	for _, err := range []error{inside, write(), db.Notify(t.Context(), "c", "x"), expect.Err(db.Replicas(t.Context()))} {
		if expect.Fails(t, err, "127.0.0.1"); !Unavailable(err) {
			t.Errorf("stopped: %v", err)
		}
	}
	if _, _, err := db.Lock(t.Context(), "x", time.Minute); !Unavailable(err) {
		t.Errorf("a lock: %v", err)
	}
	if !db.Alive("1-somebody") {
		t.Error("nobody knows that it is dead")
	}
	databasetest.Start(t)
	expect.OK(t, write(), "after the server was started again")
	eventually(t, "a notification", func() bool {
		expect.Must(t, db.Notify(t.Context(), "c", "again"))
		for len(heard) > 0 {
			if <-heard == "again" {
				return true
			}
		}
		return false
	})
	eventually(t, "a lock", func() bool {
		_, unlock, err := db.Lock(t.Context(), "x", 0)
		if err == nil {
			unlock()
		}
		return err == nil
	})
	if slices.Contains(names(t, db, "a"), "lost") {
		t.Error("a transaction that failed was committed")
	}
}

// stalling passes connections on to an address, and none of their bytes while it is held.
type stalling struct{ sync.RWMutex }

func (s *stalling) serve(t *testing.T, address string) string {
	t.Helper()
	l := expect.Value(net.Listen("tcp", "127.0.0.1:0"))(t) //nolint:noctx // a test's
	t.Cleanup(func() { _ = l.Close() })
	pass := func(to, from net.Conn) {
		defer to.Close()   //nolint:errcheck // the other end sees it
		defer from.Close() //nolint:errcheck // the other end sees it
		for b := make([]byte, 64<<10); ; {
			n, err := from.Read(b)
			s.RLock()
			_, failed := to.Write(b[:n])
			s.RUnlock()
			if err != nil || failed != nil {
				return
			}
		}
	}
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", address) //nolint:noctx // a test's
			if err != nil {
				_ = in.Close()
				continue
			}
			go pass(in, out)
			go pass(out, in)
		}
	}()
	return l.Addr().String()
}

// TestDeadline has a statement that waits for a lock of a table for too long, and a server that does not answer.
func TestDeadline(t *testing.T) {
	was := [2]time.Duration{statementTimeout, callTimeout}
	defer func() { statementTimeout, callTimeout = was[0], was[1] }()
	statementTimeout, callTimeout = 2*time.Second, 4*time.Second
	url := databasetest.URL(t)
	db := open(t, url, "")
	stop := make(chan struct{})
	locked := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		var network stalling
		address := expect.Value(neturl.Parse(url))(t)
		address.Host = network.serve(t, address.Host)
		far := open(t, address.String(), "")
		err := far.Tx(t.Context(), "a", func(tx pgx.Tx) error {
			network.Lock()
			if err := put(t.Context(), far, "a", "a", "new connection"); !Unavailable(err) {
				t.Errorf("a connection that does not answer: %v", err)
			}
			return expect.Err(tx.Exec(t.Context(), "select 1"))
		})
		if !Unavailable(err) {
			t.Errorf("a server that does not answer: %v", err)
		}
		network.Unlock()
		expect.OK(t, put(t.Context(), far, "a", "a", "answers again"))
	})
	group.Go(func() {
		expect.OK(t, db.Tx(t.Context(), "a", func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), "lock table records")
			close(locked)
			<-stop
			return err
		}))
	})
	<-locked
	err := db.Tx(t.Context(), "a", func(tx pgx.Tx) error {
		return expect.Err(tx.Exec(t.Context(), insert, "a", "x"))
	})
	if !Unavailable(err) {
		t.Errorf("a statement that waits: %v", err)
	}
	close(stop)
	group.Wait()
	expect.OK(t, put(t.Context(), db, "a", "a", "x"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := put(ctx, db, "a", "a", "y"); !errors.Is(err, context.Canceled) || Unavailable(err) {
		t.Errorf("a caller that has gone: %v", err)
	}
}
