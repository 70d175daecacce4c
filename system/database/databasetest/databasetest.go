// Package databasetest runs a Postgres for tests. All tests of a binary share one server, and each has a database.
package databasetest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// supervise runs a server and ends it, with its files, when its own input ends: that is, with the test binary, however
// that ends. Its arguments are the directory of the programs, that of the data and the port.
const supervise = `
bin=$1 dir=$2 port=$3 pid=
cd "$dir" || exit
start() {
	"$bin/postgres" -D "$dir/data" -p "$port" -h 127.0.0.1 -k '' -c fsync=off -c full_page_writes=off \
		-c shared_buffers=16MB -c max_connections=200 >>log 2>&1 </dev/null &
	pid=$!
}
"$bin/initdb" -D "$dir/data" -U postgres -A trust -E UTF8 --no-locale -N >log 2>&1 </dev/null && start
echo
while read -r line; do
	case $line in
	stop) kill -QUIT "$pid"; wait "$pid" ;;
	start) start ;;
	esac
	echo
done
kill -QUIT "$pid"; wait "$pid"
rm -rf "$dir"
`

type server struct {
	port    int
	dir     string
	in      io.Writer
	out     *bufio.Reader
	err     error  // why it cannot run
	missing string // what is not installed
}

var (
	launch  = sync.OnceValue(launched)
	counter atomic.Int64
)

func launched() *server {
	s := &server{}
	bin := programs()
	if bin == "" {
		s.missing = "postgres"
		return s
	}
	if s.dir, s.err = os.MkdirTemp("", "postgres-"); s.err != nil {
		return s
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if s.err = err; err != nil {
		return s
	}
	s.port = listener.Addr().(*net.TCPAddr).Port
	_ = listener.Close()
	command := []string{"sh", "-c", supervise, "sh", bin, s.dir, fmt.Sprint(s.port)}
	if os.Getuid() == 0 { // Postgres refuses to run as root
		const nobody = 65534
		if s.err = os.Chown(s.dir, nobody, nobody); s.err != nil {
			return s
		}
		command = append([]string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}, command...)
	}
	cmd := exec.Command(command[0], command[1:]...) //nolint:noctx // it lives as long as the test binary
	s.in, s.err = cmd.StdinPipe()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if s.err = err; err == nil {
		s.out = bufio.NewReader(out)
		_, s.err = s.out.ReadString('\n')
	}
	return s
}

// programs returns the directory of initdb and postgres, "" if they are not installed.
func programs() string {
	all, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // which Debian keeps out of PATH
	slices.Sort(all)
	if path, err := exec.LookPath("initdb"); err == nil {
		all = append(all, path)
	}
	for _, initdb := range slices.Backward(all) {
		if _, err := os.Stat(filepath.Join(filepath.Dir(initdb), "postgres")); err == nil {
			return filepath.Dir(initdb)
		}
	}
	return ""
}

// running returns the server. Without Postgres it skips the test, or fails it under CI, where it is installed.
func running(t testing.TB) *server {
	t.Helper()
	s := launch()
	if s.missing != "" && os.Getenv("CI") == "" {
		t.Skipf("%s is not installed: tests with a database skipped", s.missing)
	} else if s.missing != "" {
		t.Fatalf("%s is not installed", s.missing)
	}
	if s.err != nil {
		log, _ := os.ReadFile(filepath.Join(s.dir, "log")) //nolint:gosec // our own directory
		t.Fatalf("Postgres does not run: %v\n%s", s.err, log)
	}
	return s
}

// URL returns the address of a new database of the server. Its role is no superuser, so that row-level security holds.
func URL(t testing.TB) string {
	t.Helper()
	s := running(t)
	s.await(t)
	name := fmt.Sprint("test_", counter.Add(1))
	s.exec(t, "postgres", `do $$ begin create role funnel login; exception when duplicate_object or unique_violation then end $$`)
	s.exec(t, "postgres", "create database "+name+" owner funnel")
	return fmt.Sprintf("postgres://funnel@127.0.0.1:%d/%s?sslmode=disable", s.port, name)
}

// Exec runs statements as superuser in the database of a URL.
func Exec(t testing.TB, address string, statements ...string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range statements {
		running(t).exec(t, strings.TrimPrefix(u.Path, "/"), sql)
	}
}

// Kill ends all connections to the database of a URL.
func Kill(t testing.TB, address string) {
	t.Helper()
	Exec(t, address, `select pg_terminate_backend(pid) from pg_stat_activity
		where datname = current_database() and pid <> pg_backend_pid()`)
}

// SetReadOnly makes the database of a URL refuse writes on connections that are opened from now on; it ends all others.
func SetReadOnly(t testing.TB, address string, on bool) {
	t.Helper()
	Exec(t, address, fmt.Sprintf(`do $$ begin
		execute format('alter database %%I set default_transaction_read_only = %t', current_database()); end $$`, on))
	Kill(t, address)
}

// Stop ends the server as a crash does. It starts again at the end of the test, or by [Start]. Other tests of the
// binary must not run meanwhile.
func Stop(t testing.TB) {
	t.Helper()
	running(t).tell(t, "stop")
	t.Cleanup(func() { Start(t) })
}

// Start starts the server after [Stop], unless it runs.
func Start(t testing.TB) {
	t.Helper()
	s := running(t)
	if s.connect() == nil {
		return
	}
	s.tell(t, "start")
	s.await(t)
}

func (s *server) tell(t testing.TB, line string) {
	t.Helper()
	_, err := io.WriteString(s.in, line+"\n")
	if err == nil {
		_, err = s.out.ReadString('\n')
	}
	if err != nil {
		t.Fatalf("%s of Postgres: %v", line, err)
	}
}

func (s *server) connect() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.address("postgres"))
	if err == nil {
		err = conn.Close(ctx)
	}
	return err
}

// await waits until the server takes connections.
func (s *server) await(t testing.TB) {
	t.Helper()
	var err error
	for range 600 {
		if err = s.connect(); err == nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	log, _ := os.ReadFile(filepath.Join(s.dir, "log")) //nolint:gosec // our own directory
	t.Fatalf("Postgres does not answer: %v\n%s", err, log)
}

func (s *server) address(name string) string {
	const options = "sslmode=disable&default_transaction_read_only=off"
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?%s", s.port, name, options)
}

func (s *server) exec(t testing.TB, name, sql string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.address(name))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}
