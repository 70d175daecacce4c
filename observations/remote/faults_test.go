package remote

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/mcp-funnel/mcp-funnel/observations/backend"
	"github.com/mcp-funnel/mcp-funnel/observations/files"
	"github.com/mcp-funnel/mcp-funnel/system/database"
	"github.com/mcp-funnel/mcp-funnel/system/database/databasetest"
)

// objects is an S3 server that compares checksums, as real ones do, and has the faults of a network before it.
type objects struct {
	server http.Handler
	fault  atomic.Pointer[objectFault]
	asked  atomic.Int64 // requests so far
}

// objectFault answers a request in another way; it returns false for those that it lets pass.
type objectFault func(w http.ResponseWriter, r *http.Request, pass http.Handler) bool

func (o *objects) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.asked.Add(1)
	pass := http.HandlerFunc(o.compare)
	if f := o.fault.Load(); f != nil && (*f)(w, r, pass) {
		return
	}
	pass(w, r)
}

// compare refuses a body whose hash or checksum is not the one in its head, and a request of another time.
func (o *objects) compare(w http.ResponseWriter, r *http.Request) {
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil || time.Since(at).Abs() > 15*time.Minute {
		refuse(w, http.StatusForbidden, "RequestTimeTooSkewed")
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	sum := sha256.Sum256(body)
	want, crc := r.Header.Get("X-Amz-Content-Sha256"), r.Header.Get(checksumHeader)
	isPart := r.Method == http.MethodPut
	if isPart && (hex.EncodeToString(sum[:]) != want || crc != "" && checksum(crc32.Checksum(body, castagnoli)) != crc) {
		refuse(w, http.StatusBadRequest, "BadDigest")
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	o.server.ServeHTTP(w, r)
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>a fault</Message></Error>", code)
}

func reset(w http.ResponseWriter) {
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

// setting is a bucket and a database with two replicas.
type setting struct {
	objects *objects
	wire    *wire
	address string // of the database, without the wire
	a, b    *Store
}

func newSetting(t testing.TB) *setting {
	t.Helper()
	x := &setting{address: databasetest.URL(t)}
	memory := s3mem.New()
	if err := memory.CreateBucket("observations"); err != nil {
		t.Fatal(err)
	}
	x.objects = &objects{server: gofakes3.New(memory).Server()}
	server := httptest.NewServer(x.objects)
	t.Cleanup(server.Close)
	u, err := url.Parse(x.address)
	if err != nil {
		t.Fatal(err)
	}
	x.wire = newWire(t, u.Host)
	u.Host = x.wire.l.Addr().String()
	x.a, x.b = x.replica(t, u.String(), server.URL), x.replica(t, x.address, server.URL)
	return x
}

func (x *setting) replica(t testing.TB, address, s3 string) *Store {
	t.Helper()
	db, err := database.Open(context.Background(), database.Options{URL: address, Replica: t.Name()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	cache, err := files.Open(backend.Options{Dir: t.TempDir(), Cache: true, MinFree: -1})
	if err != nil {
		t.Fatal(err)
	}
	bucket, err := OpenBucket(BucketOptions{URL: "s3://observations/of/tests", Endpoint: s3, Region: "us-east-1"})
	if err != nil {
		t.Fatal(err)
	}
	bucket.patience = 500 * time.Millisecond
	s := Open(Options{DB: db, Bucket: bucket, Cache: cache})
	t.Cleanup(func() { _ = s.Close() })
	return s
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
func keep(s *Store, data []byte) (o backend.Observation, err error) {
	p := backend.Provenance{Owner: owner, Tool: "search"}
	w, err := s.Create(p, time.Now())
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, w.Discard()) }()
	var index backend.Indexer
	for at := 0; at < len(data); at += backend.BlockSize {
		part := data[at:min(len(data), at+backend.BlockSize)]
		if n, err := w.Room(int64(len(part)), 1<<20); n < int64(len(part)) {
			return o, fmt.Errorf("%d of %d bytes: %w", n, len(part), err)
		}
		if _, err := w.Write(part); err != nil {
			return o, err
		}
		_, _ = index.Write(part)
	}
	o = backend.NewObservation(w.ID(), p, time.Now())
	sum := sha256.Sum256(data)
	o.SHA256, o.Bytes = hex.EncodeToString(sum[:]), int64(len(data))
	o.File = backend.DataName("search", time.Now(), w.ID(), "txt")
	return w.Commit(o, index.Finish())
}

var errWrong = errors.New("WRONG BYTES")

// read reads a part, or all with n < 0, and compares it.
func read(s *Store, id backend.ID, data []byte, from, n int) error {
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

// TestMain gives the client of S3 a key, which parallel tests could not set.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test-secret"} {
		if err := os.Setenv(name, value); err != nil { //nolint:usetesting // there is no test yet
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// sizes are those of a row, of one object, of one in parts, and of one that is read in ranges.
var sizes = []int{1000, 300 << 10, 9 << 20, 3 << 20}

// faults of both stores. The function sets one and returns what lifts it.
var faults = map[string]func(t *testing.T, x *setting) (lift func()){
	"S3 does not answer": s3Fault(always, func(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-r.Context().Done():
		case <-time.After(3 * time.Second):
		}
	}),
	"S3 resets a connection":    s3Fault(each(3), func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { reset(w) }),
	"S3 resets all connections": s3Fault(always, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { reset(w) }),
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
	"a completion that is sent twice": s3Fault(completions, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		b, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(b))
		pass.ServeHTTP(httptest.NewRecorder(), r)
		r.Body = io.NopCloser(bytes.NewReader(b))
		pass.ServeHTTP(w, r)
	}),
	"a completion whose answer is lost": s3Fault(completions, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		pass.ServeHTTP(httptest.NewRecorder(), r)
		reset(w)
	}),
	"a completion that fails with 200": s3Fault(completions, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		refuse(w, http.StatusOK, "InternalError")
	}),
	"a part that is not stored": s3Fault(puts, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("ETag", `"00000000000000000000000000000000"`)
		w.WriteHeader(http.StatusOK)
	}),
	"Postgres ends connections": func(t *testing.T, x *setting) func() {
		databasetest.Kill(t, x.address)
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
		databasetest.SetReadOnly(t, x.address, true)
		return func() { databasetest.SetReadOnly(t, x.address, false) }
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
		databasetest.Exec(t, x.address, fmt.Sprintf(`create function failing() returns trigger language plpgsql as
			$$ begin if %s then raise sqlstate '%s'; end if; return new; end $$`, when, code),
			"create trigger failing before insert or update on observations for each row execute function failing()")
		return func() { databasetest.Exec(t, x.address, "drop function failing cascade") }
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

func s3Fault(when matches, do func(http.ResponseWriter, *http.Request, http.Handler)) func(*testing.T, *setting) func() {
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

// TestS17FaultsOfStores has each fault meet each use of a store. What was acknowledged must be there and right once the
// fault has passed; what is read meanwhile is right or an error; nothing needs a restart.
func TestS17FaultsOfStores(t *testing.T) {
	for name, set := range faults {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			x := newSetting(t)
			if wrong := x.meet(t, set); wrong != "" {
				t.Error(wrong)
			}
		})
	}
}

// meet returns what went wrong.
func (x *setting) meet(t *testing.T, set func(*testing.T, *setting) func()) (wrong string) {
	t.Helper()
	type kept struct {
		id   backend.ID
		data []byte
	}
	var all []kept
	for _, n := range sizes { // before the fault
		o, err := keep(x.b, bytesOf(n))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, kept{o.ID, bytesOf(n)})
	}
	removed, err := keep(x.b, bytesOf(100<<10))
	if err != nil {
		t.Fatal(err)
	}
	lift := set(t, x)
	errs := map[string]int{}
	note := func(verb string, err error) bool {
		if err != nil {
			errs[verb]++
		}
		if errors.Is(err, errWrong) {
			wrong += verb + " returned wrong bytes; "
		}
		return err == nil
	}
	for _, n := range sizes {
		data := bytesOf(n + 1)
		if o, err := keep(x.a, data); note("keep", err) {
			all = append(all, kept{o.ID, data})
		}
	}
	for _, k := range all {
		note("range", read(x.a, k.id, k.data, len(k.data)/2, min(100, len(k.data)/2)))
		note("whole", read(x.a, k.id, k.data, 0, -1))
		_, err := x.a.Stat(owner, k.id)
		note("stat", err)
		note("use", x.a.Use(k.id, time.Now()))
		note("pin", x.a.Pin(owner, k.id, true))
	}
	_, _, err = x.a.Listing(owner, true, false)
	note("list", err)
	isRemoved := note("remove", x.a.Remove(owner, removed.ID, backend.WhyRemoved, ""))
	_, err = x.a.Prune(false)
	note("prune", err)
	lift()
	t.Logf("errors by use: %v", errs)
	if _, err := x.a.Stat(owner, removed.ID); isRemoved && !errors.Is(err, backend.ErrExpired) {
		wrong += fmt.Sprintf("what was removed is still there: %v; ", err)
	}
	fresh := bytesOf(9 << 20)
	var o backend.Observation
	for range 50 { // connections that are broken go one by one
		if o, err = keep(x.a, fresh); err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		return wrong + fmt.Sprintf("nothing can be kept afterwards: %v", err)
	}
	for _, k := range append(all, kept{o.ID, fresh}) {
		for _, s := range []*Store{x.a, x.b} {
			if err := read(s, k.id, k.data, 0, -1); err != nil {
				wrong += fmt.Sprintf("%d bytes that were acknowledged: %v; ", len(k.data), err)
			}
		}
	}
	return wrong
}
