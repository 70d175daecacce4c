package remote_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
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

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/observations/backend"
	"github.com/mcp-funnel/mcp-funnel/observations/remote"
	"github.com/mcp-funnel/mcp-funnel/observations/remote/remotetest"
	"github.com/mcp-funnel/mcp-funnel/system/database/databasetest"
)

// objects is an S3 server with the faults of a network before it.
type objects struct {
	server http.Handler
	lax    atomic.Bool // the server compares no checksums, as real ones do
	fault  atomic.Pointer[objectFault]
}

// objectFault answers a request in another way; it returns false for those that it lets pass.
type objectFault func(w http.ResponseWriter, r *http.Request, pass http.Handler) bool

func (o *objects) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f := o.fault.Load(); f != nil && (*f)(w, r, o.server) {
		return
	}
	o.server.ServeHTTP(w, r)
}

// compared refuses a body whose hash or checksum is not the one in its head, unless it is lax, and a request of another
// time.
func compared(server http.Handler, lax *atomic.Bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
		if err != nil || time.Since(at).Abs() > 15*time.Minute {
			refuse(w, http.StatusForbidden, "RequestTimeTooSkewed")
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		sum, crc := sha256.Sum256(body), crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli))
		inHead := r.Header.Get("X-Amz-Checksum-Crc32c")
		if r.Method == http.MethodPut && !lax.Load() && (hex.EncodeToString(sum[:]) != r.Header.Get("X-Amz-Content-Sha256") ||
			inHead != "" && base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, crc)) != inHead) {
			refuse(w, http.StatusBadRequest, "BadDigest")
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		server.ServeHTTP(w, r)
	}
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>a fault</Message></Error>", code)
}

func reset(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = conn.(*net.TCPConn).SetLinger(0)
		_ = conn.Close()
	}
}

// altered passes an answer on, changed.
func altered(w http.ResponseWriter, r *http.Request, pass http.Handler, change func([]byte) []byte) {
	rec := httptest.NewRecorder()
	pass.ServeHTTP(rec, r)
	for k, v := range rec.Header() {
		w.Header()[k] = v
	}
	body := change(rec.Body.Bytes())
	w.WriteHeader(rec.Code)
	_, _ = w.Write(body)
}

// wire is a TCP proxy before Postgres.
type wire struct {
	l      net.Listener
	to     string
	lose   atomic.Int64 // answers to lose from now on, with their connections
	delay  atomic.Int64 // of each answer
	refuse atomic.Bool

	mu    sync.Mutex
	conns []net.Conn
}

func newWire(t testing.TB, to string) *wire {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{l: l, to: to}
	t.Cleanup(func() { _ = l.Close(); w.cut() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go w.carry(c)
		}
	}()
	return w
}

// cut ends all connections.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		_ = c.Close()
	}
	w.conns = nil
}

func (w *wire) carry(c net.Conn) {
	defer c.Close() //nolint:errcheck // a fault
	if w.refuse.Load() {
		return
	}
	s, err := net.Dial("tcp", w.to)
	if err != nil {
		return
	}
	defer s.Close() //nolint:errcheck // a fault
	w.mu.Lock()
	w.conns = append(w.conns, c, s)
	w.mu.Unlock()
	var asked atomic.Bool
	go func() {
		b := make([]byte, 64<<10)
		for {
			n, err := c.Read(b)
			if err != nil {
				_ = s.Close()
				return
			}
			if bytes.Contains(b[:n], []byte("observations")) || bytes.Contains(b[:n], []byte("B\x00\x00")) {
				asked.Store(true)
			}
			if _, err := s.Write(b[:n]); err != nil {
				return
			}
		}
	}()
	b := make([]byte, 64<<10)
	for {
		n, err := s.Read(b)
		if err != nil {
			return
		}
		time.Sleep(time.Duration(w.delay.Load()))
		if asked.Load() && w.lose.Add(-1) >= 0 { // the server has done it, and nobody hears of that
			time.Sleep(20 * time.Millisecond)
			return
		}
		if _, err := c.Write(b[:n]); err != nil {
			return
		}
	}
}

// setting is a bucket and a database with two replicas. The faults are before both of the bucket, and before a of the
// database.
type setting struct {
	objects *objects
	wire    *wire
	direct  remotetest.Place // with the bucket's faults
	a, b    *remote.Store
}

// newSetting has an S3 server of its own in this process, or a real one below dir.
func newSetting(t testing.TB, program string) *setting {
	t.Helper()
	x := &setting{objects: &objects{}}
	if program == "" {
		memory := s3mem.New()
		expect.Must(t, memory.CreateBucket("observations"))
		x.objects.server = compared(gofakes3.New(memory).Server(), &x.objects.lax)
	} else {
		x.objects.server = versity(t, program)
	}
	server := httptest.NewServer(x.objects)
	t.Cleanup(server.Close)
	x.direct = remotetest.Place{Database: databasetest.URL(t), S3: server.URL}
	u := expect.Value(url.Parse(x.direct.Database))(t)
	x.wire = newWire(t, u.Host)
	u.Host = x.wire.l.Addr().String()
	x.a, _ = remotetest.Place{Database: u.String(), S3: server.URL}.Open(t, backend.Options{})
	x.b, _ = x.direct.Open(t, backend.Options{})
	x.a.SetPatience(3 * time.Second)
	return x
}

// versity runs a real server, with a directory as its bucket, and returns a proxy to it.
func versity(t testing.TB, program string) http.Handler {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"root/observations", "sidecar"} {
		expect.Must(t, os.MkdirAll(filepath.Join(dir, name), 0o700))
	}
	l := expect.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	to := &url.URL{Scheme: "http", Host: l.Addr().String()}
	expect.Must(t, l.Close())
	run := exec.Command(program, "--quiet", "-p", to.Host, "posix", "--sidecar", dir+"/sidecar", dir+"/root")
	run.Env = append(os.Environ(), "ROOT_ACCESS_KEY_ID="+remotetest.Key, "ROOT_SECRET_ACCESS_KEY="+remotetest.Secret)
	expect.Must(t, run.Start())
	t.Cleanup(func() { _ = run.Process.Kill(); _ = run.Wait() })
	for range 600 {
		if c, err := net.Dial("tcp", to.Host); err == nil {
			_ = c.Close()
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host // the client has signed it
		},
		Transport: &http.Transport{DisableCompression: true},
		ErrorLog:  log.New(io.Discard, "", 0),
	}
}

// buildVersity builds the real server.
func buildVersity(t testing.TB) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "versitygw")
	build := exec.Command("go", "-C", "../../conformance/s3", "build", "-o", program,
		"github.com/versity/versitygw/cmd/versitygw")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the S3 server: %v\n%s", err, out)
	}
	return program
}

// bytesOf are bytes that no two sizes share.
func bytesOf(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(n), byte(n >> 8), byte(n >> 16)})
	_, _ = r.Read(b)
	return b
}

const owner = "alice"

// keep stores bytes as a recording does: in blocks, with room for each.
func keep(s backend.Backend, data []byte) (backend.Observation, error) { return keepAs(s, owner, data) }

func keepAs(s backend.Backend, as string, data []byte) (o backend.Observation, err error) {
	p := backend.Provenance{Owner: as, Tool: "search"}
	w, err := s.Create(p, time.Now())
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, w.Discard()) }()
	for at := 0; at < len(data); at += backend.BlockSize {
		part := data[at:min(len(data), at+backend.BlockSize)]
		if n, err := w.Room(int64(len(part)), 1<<20); n < int64(len(part)) {
			return o, fmt.Errorf("%d of %d bytes: %w", n, len(part), err)
		}
		if _, err := w.Write(part); err != nil {
			return o, err
		}
	}
	return commit(w, p, data)
}

func commit(w backend.Writer, p backend.Provenance, data []byte) (backend.Observation, error) {
	var index backend.Indexer
	_, _ = index.Write(data)
	o := backend.NewObservation(w.ID(), p, time.Now())
	sum := sha256.Sum256(data)
	o.SHA256, o.Bytes = hex.EncodeToString(sum[:]), int64(len(data))
	o.File = backend.DataName("search", time.Now(), w.ID(), "txt")
	return w.Commit(o, index.Finish())
}

var errWrong = errors.New("WRONG BYTES")

// read reads a part, or all with n < 0, and compares it.
func read(s backend.Backend, id backend.ID, data []byte, from, n int) error {
	o, blob, err := s.Open(owner, id)
	if err != nil {
		return err
	}
	defer blob.Close() //nolint:errcheck // it was only read
	if o.Bytes != int64(len(data)) {
		return errWrong
	}
	if n < 0 {
		from, n = 0, len(data)
	}
	got := make([]byte, n)
	if k, err := blob.ReadAt(got, int64(from)); k < n {
		return err
	}
	if !bytes.Equal(got, data[from:from+n]) {
		return errWrong
	}
	return nil
}

// faults of both stores. The function sets one and returns what lifts it.
var faults = map[string]func(t *testing.T, x *setting) (lift func()){
	"S3 does not answer": s3Fault(always, func(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-r.Context().Done():
		case <-time.After(3 * time.Second):
		}
	}),
	"S3 resets a connection":    s3Fault(each(3), reset),
	"S3 resets all connections": s3Fault(always, reset),
	"half of a body": s3Fault(gets, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		altered(w, r, pass, func(b []byte) []byte { return b[:len(b)/2] })
	}),
	"another byte in what is read": s3Fault(gets, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		altered(w, r, pass, flip)
	}),
	"another byte in what is sent": s3Fault(puts, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		b, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(flip(b)))
		pass.ServeHTTP(w, r)
	}),
	"503 now and then": s3Fault(each(2), func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		refuse(w, http.StatusServiceUnavailable, "SlowDown")
	}),
	"503 always": s3Fault(always, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		refuse(w, http.StatusServiceUnavailable, "SlowDown")
	}),
	"403 in the middle": s3Fault(after(2), func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		refuse(w, http.StatusForbidden, "AccessDenied")
	}),
	"404 after success": s3Fault(gets, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		refuse(w, http.StatusNotFound, "NoSuchKey")
	}),
	"a slow drip": s3Fault(gets, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		altered(w, r, pass, func(b []byte) []byte {
			w.Header().Set("Content-Length", fmt.Sprint(len(b)))
			for end := time.Now().Add(3 * time.Second); time.Now().Before(end) && r.Context().Err() == nil; {
				n, _ := w.Write(b[:1])
				_ = http.NewResponseController(w).Flush()
				b = b[n:]
				time.Sleep(50 * time.Millisecond)
			}
			panic(http.ErrAbortHandler)
		})
	}),
	"another time": s3Fault(always, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		r.Header.Set("X-Amz-Date", "20200101T000000Z")
		pass.ServeHTTP(w, r)
	}),
	"a completion is sent twice": s3Fault(completions, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		b, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(b))
		pass.ServeHTTP(httptest.NewRecorder(), r)
		r.Body = io.NopCloser(bytes.NewReader(b))
		pass.ServeHTTP(w, r)
	}),
	"a completion is not heard": s3Fault(completions, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		pass.ServeHTTP(httptest.NewRecorder(), r)
		reset(w, r, pass)
	}),
	"a completion that fails with 200": s3Fault(completions, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		refuse(w, http.StatusOK, "InternalError")
	}),
	"a part that is not stored": s3Fault(puts, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("ETag", `"00000000000000000000000000000000"`)
		w.WriteHeader(http.StatusOK)
	}),
	"Postgres ends connections": func(t *testing.T, x *setting) func() {
		databasetest.Kill(t, x.direct.Database)
		return func() {}
	},
	"Postgres loses an answer": func(_ *testing.T, x *setting) func() {
		x.wire.lose.Store(1)
		return func() { x.wire.lose.Store(0) }
	},
	"Postgres loses many answers": func(_ *testing.T, x *setting) func() {
		x.wire.lose.Store(1000)
		return func() { x.wire.lose.Store(0) }
	},
	"Postgres cannot be reached": func(_ *testing.T, x *setting) func() {
		x.wire.refuse.Store(true)
		x.wire.cut()
		return func() { x.wire.refuse.Store(false) }
	},
	"Postgres is read-only": func(t *testing.T, x *setting) func() {
		databasetest.SetReadOnly(t, x.direct.Database, true)
		return func() { databasetest.SetReadOnly(t, x.direct.Database, false) }
	},
	"Postgres has no room":           raise("53100", "true"),
	"transactions fail to serialize": raise("40001", "random() < 0.5"),
	"Postgres is slow": func(_ *testing.T, x *setting) func() {
		x.wire.delay.Store(int64(50 * time.Millisecond))
		return func() { x.wire.delay.Store(0) }
	},
}

// raise has inserts and updates of observations fail.
func raise(code, when string) func(t *testing.T, x *setting) func() {
	return func(t *testing.T, x *setting) func() {
		databasetest.Exec(t, x.direct.Database, fmt.Sprintf(`create function failing() returns trigger language plpgsql as
			$$ begin if %s then raise sqlstate '%s'; end if; return new; end $$`, when, code),
			"create trigger failing before insert or update on observations for each row execute function failing()")
		return func() { databasetest.Exec(t, x.direct.Database, "drop function failing cascade") }
	}
}

func flip(b []byte) []byte {
	b = bytes.Clone(b)
	if len(b) > 0 {
		b[len(b)*2/3] ^= 1
	}
	return b
}

type matches func(n int64, r *http.Request) bool

func always(int64, *http.Request) bool   { return true }
func gets(_ int64, r *http.Request) bool { return r.Method == http.MethodGet }
func puts(_ int64, r *http.Request) bool { return r.Method == http.MethodPut }
func each(k int64) matches               { return func(n int64, _ *http.Request) bool { return n%k == 0 } }
func after(k int64) matches              { return func(n int64, _ *http.Request) bool { return n > k } }
func completions(_ int64, r *http.Request) bool {
	return r.Method == http.MethodPost && r.URL.Query().Has("uploadId")
}

func s3Fault(
	when matches, do func(http.ResponseWriter, *http.Request, http.Handler),
) func(*testing.T, *setting) (lift func()) {
	return func(_ *testing.T, x *setting) func() {
		var n atomic.Int64
		fault := objectFault(func(w http.ResponseWriter, r *http.Request, pass http.Handler) bool {
			if !when(n.Add(1), r) {
				return false
			}
			do(w, r, pass)
			return true
		})
		x.objects.fault.Store(&fault)
		return func() { x.objects.fault.Store(nil) }
	}
}

// slow are the faults that take seconds for each use.
var slow = []string{"S3 does not answer", "S3 resets all connections", "503 always", "a slow drip", "Postgres is slow"}

// trial is a store and what it was asked to do while there were faults.
type trial struct {
	*setting
	under backend.Backend // the store that meets the faults
	kept  []kept
	cases int
	wrong []string
	errs  map[string]int
}

type kept struct {
	id   backend.ID
	data []byte
}

func (k *trial) fail(format string, args ...any) {
	k.wrong = append(k.wrong, fmt.Sprintf(format, args...))
}

// note counts a use, and its error.
func (k *trial) note(verb string, err error) bool {
	if k.cases++; err != nil {
		k.errs[verb]++
	}
	if errors.Is(err, errWrong) {
		k.fail("%s returned wrong bytes", verb)
	}
	return err == nil
}

func (k *trial) keep(s backend.Backend, n int) {
	data := bytesOf(n)
	if o, err := keep(s, data); k.note("keep", err) {
		k.kept = append(k.kept, kept{o.ID, data})
	}
}

func (k *trial) read(o kept) {
	k.note("range", read(k.under, o.id, o.data, len(o.data)/2, min(100, len(o.data)/2)))
	k.note("whole", read(k.under, o.id, o.data, 0, -1))
}

// check reads all that was acknowledged, and all that is listed, once no fault is left: on both replicas. Nothing needs
// a restart.
func (k *trial) check(t *testing.T) {
	t.Helper()
	k.a.SetPatience(time.Minute) // a busy machine is no fault
	err := soon(func() error {
		data := bytesOf(300 << 10)
		o, err := keep(k.under, data)
		if err == nil {
			k.kept = append(k.kept, kept{o.ID, data})
		}
		return err
	})
	if err != nil {
		k.fail("nothing can be kept afterwards: %v", err)
	}
	for _, s := range []backend.Backend{k.under, k.b} {
		for _, o := range k.kept {
			k.cases++
			if err := soon(func() error { return read(s, o.id, o.data, 0, -1) }); err != nil {
				k.fail("%d bytes that were acknowledged: %v", len(o.data), err)
			}
		}
	}
	if err := soon(func() error { _, err := k.a.Prune(false); return err }); err != nil {
		k.fail("prune: %v", err)
	}
	k.direct.Consistent(t, 0) // no reservation is left
	list, _, err := k.b.Listing(owner, false, false)
	if err != nil {
		k.fail("list: %v", err)
	}
	for _, o := range list {
		if k.cases++; !isWhole(k.b, o) {
			k.fail("obs:%s is listed, but its %d bytes are not there", o.ID, o.Bytes)
		}
	}
}

// soon tries until there is no error: connections that are broken go one by one, and a busy machine is slow.
func soon(do func() error) (err error) {
	for range 50 {
		if err = do(); err == nil || errors.Is(err, errWrong) || errors.Is(err, backend.ErrDamaged) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}

func isWhole(s backend.Backend, o *backend.Observation) bool {
	_, blob, err := s.Open(owner, o.ID)
	if err != nil {
		return false
	}
	defer blob.Close() //nolint:errcheck // it was only read
	h := sha256.New()
	_, err = io.Copy(h, io.NewSectionReader(blob, 0, o.Bytes))
	return err == nil && hex.EncodeToString(h.Sum(nil)) == o.SHA256
}

// meet has one fault meet each use of a store: on observations of one row, of one object, of several parts, and on such
// as are read in ranges.
func (k *trial) meet(t *testing.T, set func(*testing.T, *setting) func()) {
	t.Helper()
	all := []int{1000, 300 << 10, 2 << 20, 9 << 20}
	for _, n := range promise.Size(all[:3], all) { // before the fault
		k.keep(k.b, n)
	}
	removed := expect.Value(keep(k.b, bytesOf(100<<10)))(t)
	lift := set(t, k.setting)
	for _, n := range promise.Size([]int{1000, 300 << 10, 9 << 20}, all) {
		k.keep(k.under, n+1)
	}
	for _, o := range k.kept {
		k.read(o)
		_, err := k.under.Stat(owner, o.id)
		k.note("stat", err)
		k.note("use", k.under.Use(o.id, time.Now()))
		k.note("pin", k.under.Pin(owner, o.id, true))
	}
	_, _, err := k.under.Listing(owner, true, false)
	k.note("list", err)
	isRemoved := k.note("remove", k.under.Remove(owner, removed.ID, backend.WhyRemoved, ""))
	_, err = k.under.Prune(false)
	k.note("prune", err)
	lift()
	if _, err := k.b.Stat(owner, removed.ID); isRemoved && !errors.Is(err, backend.ErrExpired) {
		k.fail("what was removed is still there: %v", err)
	}
	k.check(t)
}

// wander has random uses meet random faults, of both stores at once.
func (k *trial) wander(t *testing.T, random *rand.Rand, steps int) {
	t.Helper()
	var s3, postgres []string
	for name := range faults {
		if strings.Contains(name, "Postgres") || strings.Contains(name, "transactions") {
			postgres = append(postgres, name)
		} else {
			s3 = append(s3, name)
		}
	}
	lift := [2]func(){func() {}, func() {}}
	for range steps {
		for i, names := range [][]string{s3, postgres} {
			if random.IntN(3) == 0 {
				lift[i]()
				if lift[i] = func() {}; random.IntN(3) > 0 {
					slices.Sort(names)
					lift[i] = faults[names[random.IntN(len(names))]](t, k.setting)
				}
			}
		}
		var o kept
		if len(k.kept) > 0 {
			o = k.kept[random.IntN(len(k.kept))]
		}
		switch verb := random.IntN(6); {
		case verb < 2 || o.id == "":
			k.keep(k.under, []int{1000, 300 << 10, 9 << 20}[random.IntN(3)]+random.IntN(1000))
		case verb < 4:
			k.read(o)
		case verb == 4:
			k.note("pin", k.under.Pin(owner, o.id, true))
		default:
			_, err := k.under.Prune(false)
			k.note("prune", err)
		}
	}
	lift[0]()
	lift[1]()
	k.check(t)
}

// TestS17FaultsOfStores has each fault meet each use of a store, and random ones in a row. What was acknowledged must
// be there and right once the faults have passed, and so must what is listed; what is read meanwhile is right or an
// error. No reservation is left, and usage is exact.
func TestS17FaultsOfStores(t *testing.T) {
	databasetest.URL(t) // skips it where there is no Postgres
	program := ""
	if promise.Full() {
		program = buildVersity(t)
	}
	var mu sync.Mutex
	tried, controls := map[string]*trial{}, map[string]*trial{}
	var group sync.WaitGroup
	places := make(chan struct{}, 6) // more than there are processors: most of the time they wait
	run := func(name, program string, into map[string]*trial, do func(*testing.T, *trial)) {
		group.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			t.Run(name, func(t *testing.T) {
				k := &trial{setting: newSetting(t, program), errs: map[string]int{}}
				k.under = k.a
				do(t, k)
				t.Logf("%d uses and checks; errors %v; wrong: %q", k.cases, k.errs, k.wrong)
				mu.Lock()
				defer mu.Unlock()
				into[name] = k
			})
		})
	}
	seed := uint64(time.Now().UnixNano())
	rounds := promise.Size(2, 24)
	for name, set := range faults {
		if promise.Full() || !slices.Contains(slow, name) {
			run(name, program, tried, func(t *testing.T, k *trial) { k.meet(t, set) })
		}
	}
	for i := range rounds {
		run(fmt.Sprintf("in a row, %d", i), program, tried, func(t *testing.T, k *trial) {
			k.wander(t, rand.New(rand.NewPCG(seed, uint64(i))), promise.Size(12, 40)) //nolint:gosec // no secret
		})
	}
	for _, name := range []string{"another byte in what is read", "another byte in what is sent"} {
		run("control, "+name, "", controls, func(t *testing.T, k *trial) {
			k.under = remote.Unchecked{Store: k.a}
			k.objects.lax.Store(true)
			k.meet(t, faults[name])
		})
	}
	for _, name := range []string{"a part that is not stored", "a completion that fails with 200"} {
		run("control, row first, "+name, "", controls, func(t *testing.T, k *trial) {
			k.under = remote.Hasty{Store: k.a}
			k.meet(t, faults[name])
		})
	}
	group.Wait()
	p := promise.Proof{Promise: "S17"}
	for name, k := range tried {
		p.Cases += k.cases
		p.Failures += len(k.wrong)
		for _, wrong := range k.wrong {
			t.Errorf("%s: %s", name, wrong)
		}
	}
	for name, k := range controls {
		if p.Control += len(k.wrong); len(k.wrong) == 0 {
			t.Errorf("the control did not fail: %s", name)
		}
	}
	promise.Keptf(t, p, "%d faults of Postgres and S3 (%s), each with 9 uses; %d rows of random faults, seed %d; "+
		"control: hashes compared by neither side, the row committed before the object", len(tried)-rounds,
		promise.Size("in this process", "versitygw"), rounds, seed)
}
