package replicas

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/mcp-funnel/mcp-funnel/conformance/built"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/system/database/databasetest"
)

const (
	bucket = "observations"
	access = "AKIAREPLICASOFTESTS"
	secret = "a-secret-key-of-these-tests"
)

// objects is an S3 server with one bucket, which can be away for a time.
type objects interface {
	url() string
	stop()
	start()
}

// fakeObjects is an S3 server in this process.
type fakeObjects struct {
	t       testing.TB
	handler http.Handler
	at      string
	server  *http.Server
	silent  atomic.Bool
}

func newFakeObjects(t testing.TB) *fakeObjects {
	memory := s3mem.New()
	expect.Must(t, memory.CreateBucket(bucket))
	f := &fakeObjects{t: t, handler: gofakes3.New(memory).Server(), at: "127.0.0.1:0"}
	f.start()
	t.Cleanup(f.stop)
	return f
}

// ServeHTTP implements [http.Handler]. While the server is silent, requests wait until their client gives up.
func (f *fakeObjects) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.silent.Load() {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
		return
	}
	f.handler.ServeHTTP(w, r)
}

func (f *fakeObjects) url() string { return "http://" + f.at }
func (f *fakeObjects) stop()       { _ = f.server.Close() }

func (f *fakeObjects) start() {
	l := listen(f.t, f.at)
	f.at, f.server = l.Addr().String(), &http.Server{Handler: f} //nolint:gosec // its clients are our own
	go func(s *http.Server) { _ = s.Serve(l) }(f.server)
}

// objectsFor returns an S3 server: at full size versitygw, else one that costs less.
func objectsFor(t testing.TB) objects {
	if promise.Full() {
		return newVersitygw(t)
	}
	return newFakeObjects(t)
}

// listen listens at an address that may have been left a moment ago.
func listen(t testing.TB, at string) (l net.Listener) {
	t.Helper()
	eventually(t, "listening at "+at, func() (err error) {
		l, err = net.Listen("tcp", at)
		return err
	})
	return l
}

// eventually waits until a condition has no error any more.
func eventually(t testing.TB, what string, try func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err = try(); err == nil {
			return
		}
	}
	t.Fatalf("%s: %v", what, err)
}

// versitygw is an S3 server on a directory, as a process of its own.
type versitygw struct {
	t             testing.TB
	program, data string
	at            string
	*process
}

func newVersitygw(t testing.TB) *versitygw {
	t.Helper()
	program, err := gateway()
	if err != nil && os.Getenv("CI") == "" {
		t.Skipf("versitygw is not installed: tests with it skipped: %v", err)
	}
	expect.Must(t, err, "versitygw is not installed")
	l := listen(t, "127.0.0.1:0")
	g := &versitygw{t: t, program: program, data: t.TempDir(), at: l.Addr().String()}
	expect.Must(t, l.Close())
	for _, dir := range []string{"objects/" + bucket, "sidecar"} { // not all file systems have extended attributes
		expect.Must(t, os.MkdirAll(filepath.Join(g.data, dir), 0o700))
	}
	g.start()
	t.Cleanup(g.stop)
	return g
}

func (g *versitygw) url() string { return "http://" + g.at }
func (g *versitygw) stop()       { g.kill() }

func (g *versitygw) start() {
	cmd := exec.Command(g.program, "--port", g.at, "--quiet", "posix", "--sidecar",
		filepath.Join(g.data, "sidecar"), filepath.Join(g.data, "objects"))
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+access, "ROOT_SECRET_KEY="+secret)
	g.process = run(g.t, cmd)
	eventually(g.t, "versitygw", func() error {
		conn, err := net.Dial("tcp", g.at)
		if err == nil {
			err = conn.Close()
		}
		return err
	})
}

// process is a program that a test has started.
type process struct {
	cmd   *exec.Cmd
	log   *logged       // its output
	ended chan struct{} // closed after its end
	err   error         // of its end
}

func run(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{cmd: cmd, log: &logged{}, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = p.log, p.log, 5*time.Second
	expect.Must(t, cmd.Start())
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s wrote:\n%.8000s", strings.Join(cmd.Args, " "), p.log)
		}
	})
	return p
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// logged is what a process writes, and can be read meanwhile.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// team is what replicas share, and a balancer before them.
type team struct {
	t        testing.TB
	dir      string // of root, key and tokens
	root     string
	database string
	objects  objects
	tokens   map[string]string // by identity
	balancer *balancer
	replicas []*replica
}

type replica struct {
	*process
	name, url string
}

// newTeam makes a team without replicas, on an S3 server.
func newTeam(t testing.TB, o objects, identities ...string) *team {
	t.Helper()
	dir := t.TempDir()
	m := &team{
		t: t, dir: dir, root: filepath.Join(dir, "root"), database: databasetest.URL(t), objects: o,
		tokens: map[string]string{}, balancer: newBalancer(t),
	}
	generate(t, m.root)
	lines := ""
	for _, name := range identities {
		m.tokens[name] = rand.Text() + rand.Text()
		lines += name + ": " + m.tokens[name] + "\n"
	}
	write(t, filepath.Join(dir, "tokens"), []byte(lines))
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	write(t, filepath.Join(dir, "key"), key)
	return m
}

// trio starts three replicas.
func trio(t testing.TB, o objects, identities []string, flags ...string) *team {
	t.Helper()
	return several(t, 3, o, identities, flags...)
}

// several starts up to three replicas.
func several(t testing.TB, n int, o objects, identities []string, flags ...string) *team {
	t.Helper()
	m := newTeam(t, o, identities...)
	for _, name := range []string{"a", "b", "c"}[:n] {
		m.start(name, flags...)
	}
	return m
}

func write(t testing.TB, path string, text []byte) {
	t.Helper()
	expect.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	expect.Must(t, os.WriteFile(path, text, 0o600))
}

// records is how many files the root has.
const records = 40

// generate writes a directory of files in which much is found.
func generate(t testing.TB, root string) {
	t.Helper()
	for i := range records {
		var lines, list strings.Builder
		for n := range 400 {
			fmt.Fprintf(&lines, "line %d of file %d: word%d is found, and so is every%dth\n", n, i, (n*i)%97, n%7)
			fmt.Fprintf(&list, "%s{\"id\": %d, \"file\": %d, \"name\": \"record %d\", \"ok\": %t}",
				sep(n, "[", ",\n"), n, i, n*i, n%3 == 0)
		}
		write(t, filepath.Join(root, fmt.Sprintf("text/%02d.txt", i)), []byte(lines.String()))
		write(t, filepath.Join(root, fmt.Sprintf("list/%02d.json", i)), []byte(list.String()+"]\n"))
	}
	write(t, filepath.Join(root, "small.txt"), []byte("a small file\nof two lines\n"))
}

func sep(n int, first, other string) string {
	if n == 0 {
		return first
	}
	return other
}

// environ hides the settings of the person who runs the tests, and has the keys of the S3 server.
func environ(t testing.TB) []string {
	return []string{
		"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "TZ=UTC", "LANG=C.UTF-8",
		"AWS_ACCESS_KEY_ID=" + access, "AWS_SECRET_ACCESS_KEY=" + secret,
	}
}

// store returns the flags of the store.
func (m *team) store(cache string) []string {
	return []string{
		"--store", "s3://" + bucket + "/of/tests", "--database", m.database, "--s3-endpoint", m.objects.url(),
		"--s3-region", "us-east-1", "--cache", cache, "--min-free", "0",
	}
}

// start starts a replica, and has the balancer send requests to it.
func (m *team) start(name string, flags ...string) *replica {
	m.t.Helper()
	r := serve(m.t, name, append(append([]string{
		"--root", m.root, "--token-file", filepath.Join(m.dir, "tokens"), "--session-key-file", filepath.Join(m.dir, "key"),
		"--replica", name, "--log-level", "info", "--toolsets", "core,shell", "--sandbox", "off",
		"--link-base", m.balancer.URL,
	}, m.store(m.t.TempDir())...), flags...)...)
	m.replicas = append(m.replicas, r)
	m.balancer.add(r)
	return r
}

// command returns the command of a server over HTTP.
func command(t testing.TB, flags ...string) *exec.Cmd {
	t.Helper()
	flags = append([]string{"serve", "--http", "127.0.0.1:0"}, flags...)
	cmd := exec.Command(built.Program(t, "cmd/mcp-funnel"), flags...)
	cmd.Env, cmd.Dir = environ(t), t.TempDir()
	return cmd
}

// serve starts a server over HTTP.
func serve(t testing.TB, name string, flags ...string) *replica {
	t.Helper()
	r := &replica{process: run(t, command(t, flags...)), name: name}
	eventually(t, "the start of replica "+name, func() error {
		_, rest, _ := strings.Cut(r.log.String(), "serving MCP at ")
		line, _, whole := strings.Cut(rest, "/mcp")
		if r.url = line; whole {
			return nil
		}
		select {
		case <-r.ended:
			t.Fatalf("replica %s: %v\n%s", name, r.err, r.log)
		default:
		}
		return errors.New("it does not say where it serves")
	})
	return r
}

// balancer sends requests to one replica after the other. It skips those that refuse a connection, are not ready, or
// answer that they drain, as docs/SCALE.md has balancers do.
type balancer struct {
	*httptest.Server
	http *http.Transport

	mu   sync.Mutex
	all  []*behind
	next int
}

type behind struct {
	*replica
	ready atomic.Bool
}

// servedBy is the header of an answer that names the replica.
const servedBy = "X-Served-By"

func newBalancer(t testing.TB) *balancer {
	b := &balancer{http: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}}
	b.Server = httptest.NewServer(&httputil.ReverseProxy{
		Transport: b, FlushInterval: -1, ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme = "http" },
	})
	t.Cleanup(b.Close)
	return b
}

func (b *balancer) add(r *replica) {
	at := &behind{replica: r}
	at.ready.Store(true)
	b.mu.Lock()
	b.all = append(b.all, at)
	b.mu.Unlock()
	go func() {
		for {
			select {
			case <-r.ended:
				return
			case <-time.After(200 * time.Millisecond):
			}
			response, err := b.http.RoundTrip(httptest.NewRequest(http.MethodGet, r.url+"/readyz", nil))
			if err == nil {
				_ = response.Body.Close()
			}
			at.ready.Store(err == nil && response.StatusCode == http.StatusOK)
		}
	}()
}

// order returns the replicas in the order in which they are tried: those that are ready first.
func (b *balancer) order() []*behind {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next++
	var ready, others []*behind
	for i := range b.all {
		if r := b.all[(b.next+i)%len(b.all)]; r.ready.Load() {
			ready = append(ready, r)
		} else {
			others = append(others, r)
		}
	}
	return append(ready, others...)
}

// RoundTrip implements [http.RoundTripper].
func (b *balancer) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	order := b.order()
	for i, to := range order {
		out := r.Clone(r.Context())
		out.URL.Host, out.Host = strings.TrimPrefix(to.url, "http://"), ""
		out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		out.Body, _ = out.GetBody()
		response, failed := b.http.RoundTrip(out)
		switch {
		case failed == nil && response.StatusCode == http.StatusServiceUnavailable && i+1 < len(order):
			_ = response.Body.Close()
		case failed == nil:
			response.Header.Set(servedBy, to.name)
			return response, nil
		case errors.Is(failed, syscall.ECONNREFUSED):
			err = failed
		default: // it may have begun the call
			return nil, failed
		}
	}
	return nil, cmp.Or(err, errors.New("there is no replica"))
}

// request makes a request and reads the answer.
func request(ctx context.Context, method, url string, body []byte, headers ...string) (got, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return got{}, err
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := clients.Do(r)
	if err != nil {
		return got{}, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return got{response.StatusCode, response.Header, text}, err
}

var clients = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}}

// got is an HTTP answer that was read to its end.
type got struct {
	status int
	header http.Header
	body   []byte
}
