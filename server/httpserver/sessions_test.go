package httpserver

import (
	"bufio"
	"context"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"runtime"
	runtimemetrics "runtime/metrics"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/server/servertest"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// held is what the process holds in heap and stacks, in bytes, after a collection.
func heldMemory() int64 {
	runtime.GC()
	runtime.GC()
	samples := []runtimemetrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"},
	}
	runtimemetrics.Read(samples)
	return int64(samples[0].Value.Uint64() + samples[1].Value.Uint64())
}

func newConn(t testing.TB, s *server.Server) *server.Conn { return s.Connect(t.Context()) }

// TestSessionsGiveWay has more sessions opened than may be: those in use stay, those that were used go after
// those that never were, and an identity takes from itself.
func TestSessionsGiveWay(t *testing.T) {
	srv := newTestServer(t)
	now := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	s := newSessions(4, time.Hour)
	s.now = func() time.Time { return now }
	open := func(owner string, release bool) *httpSession {
		t.Helper()
		now = now.Add(time.Second)
		x, no := s.add(owner, newConn(t, srv))
		if no != nil {
			t.Fatal(no.text)
		}
		if release {
			s.release(x)
		}
		return x
	}
	there := func(x *httpSession) bool { return s.byID[x.id] == x }
	busy, used, other := open("a", false), open("a", true), open("b", true)
	s.release(s.use(used.id, "a"))
	for range 10 {
		open("a", true)
	}
	if len(s.byID) != 4 || !there(busy) || !there(used) || !there(other) {
		t.Fatalf("%d sessions; in use %v, used %v, another's %v", len(s.byID), there(busy), there(used), there(other))
	}
	fresh := open("a", false) // the one place that moves
	open("b", true)           // a has three of four, and one of them is idle
	if there(used) || !there(other) || !there(fresh) || used.conn.Context().Err() == nil {
		t.Error("the used one of the identity with the most was to give way")
	}
	for _, x := range s.byID {
		if x.uses == 0 {
			s.use(x.id, x.owner)
		}
	}
	if _, no := s.add("c", newConn(t, srv)); no == nil || no.status != http.StatusServiceUnavailable {
		t.Error("one in use gave way")
	}
	// What is in use does not expire, what is not does.
	s.release(busy)
	s.release(fresh)
	now = now.Add(2 * time.Hour)
	if s.use(busy.id, "a") != nil || s.use(fresh.id, "a") != nil || len(s.byID) != 2 {
		t.Errorf("%d sessions", len(s.byID))
	}
}

func TestSessionsAreEachIdentitysOwn(t *testing.T) {
	s := newSessions(4, time.Hour)
	x, _ := s.add("a", newConn(t, newTestServer(t)))
	if s.use(x.id, "b") != nil || s.use(x.id, "") != nil || s.use(x.id, "a") != x {
		t.Error("a session is its identity's")
	}
}

// guesses are IDs that were not issued, close to one that was.
func guesses(issued string) []string {
	list := []string{"", "x", "0", strings.ToLower(issued), issued + "A", issued[:len(issued)-1], "mcp-session-" + issued,
		"00000000-0000-4000-8000-000000000000", "*", "%00", strings.Repeat("A", 4000)}
	for i := range issued {
		b := []byte(issued)
		b[i] = 'A' + (b[i]-'A'+1)%26
		if string(b) != issued {
			list = append(list, string(b))
		}
	}
	return list
}

// TestS19SessionsCannotBeGuessed sends IDs that were not issued, and issued ones of another identity, with each method.
func TestS19SessionsCannotBeGuessed(t *testing.T) {
	run := func(open bool, change ...func(*server.Options)) (cases, failures int) {
		h, err := newHTTP(
			t.Context(), newTestServer(t, change...),
			Options{Identities: map[string]string{testToken: "local", otherToken: "other"}, SSE: true},
		)
		expect.Must(t, err)
		if open { // the control takes everybody for one
			h.authorize = func(
				http.ResponseWriter, *http.Request, route,
			) (caller, *refusal) {
				return caller{owner: "local"}, nil
			}
		}
		w := serveHandler(t, h)
		session := w.open()
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url, nil)
		session(r)
		issued := r.Header.Get("Mcp-Session-Id")
		stream := w.openSSE()
		defer stream.close()
		legacy := strings.TrimPrefix(stream.path, "/message?sessionId=")
		try := func(id string, who with) {
			for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
				ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
				res, err := w.request(
					ctx, method, "/mcp", servertest.Ping, func(r *http.Request) { r.Header["Mcp-Session-Id"] = []string{id} }, who,
				)
				if err == nil {
					if res.StatusCode < 400 {
						failures++
						if !open {
							t.Errorf("%s with %q: %s", method, id, res.Status)
						}
					}
					cases++
				}
				stop()
				if err == nil {
					_ = res.Body.Close()
				}
			}
			if got := w.do(http.MethodPost, "/message?sessionId="+url.QueryEscape(id), servertest.Ping, who); got.status < 400 {
				failures++
				if !open {
					t.Errorf("/message with %q: %d", id, got.status)
				}
			}
			cases++
		}
		for _, id := range guesses(issued) {
			try(id, as(testToken))
		}
		try(issued, as(otherToken))
		try(legacy, as(otherToken))
		return cases, failures
	}
	cases, failures := run(false)
	more, alsoFailed := run(false, asReplica("a"))
	cases, failures = cases+more, failures+alsoFailed
	_, control := run(true)
	promise.Kept(
		t,
		promise.Proof{
			Promise: "S19", Cases: cases, Failures: failures, Control: control,
			Figures: "IDs that were not issued, and those of others",
		},
	)
}

// patterns says what in IDs, in the order in which they were issued, helps to guess the next. What is due to
// chance in random ones is less likely than 1 in 10^9.
func patterns(ids []string) (found []string) {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567" // of base 32, five bits each
	n, length := len(ids), len(ids[0])
	seen := map[string]bool{}
	rising := 0
	changed := make([]int, length) // places that differ from the ID before
	set := make([][5]int, length)  // how often each bit is 1
	same := make([][5]int, length) // how often it is what it was in the ID before
	bits := func(id string, at int) int { return strings.IndexByte(letters, id[at]) }
	for i, id := range ids {
		if len(id) != length || length < 26 || strings.Trim(id, letters) != "" {
			return []string{fmt.Sprintf("%q is short, or no base 32", id)}
		}
		if seen[id] {
			found = append(found, fmt.Sprintf("%q was issued twice", id))
		}
		seen[id] = true
		if i > 0 && id > ids[i-1] {
			rising++
		}
		for at := range length {
			v := bits(id, at)
			for b := range 5 {
				set[at][b] += v >> b & 1
				if i > 0 && (v^bits(ids[i-1], at))>>b&1 == 0 {
					same[at][b]++
				}
			}
			if i > 0 && id[at] != ids[i-1][at] {
				changed[at]++
			}
		}
	}
	// Seven standard deviations of so many tosses of a coin; neighbours in an order are less apart than that.
	far := func(k, of int) bool { return math.Abs(float64(k)-float64(of)/2) > 7*math.Sqrt(float64(of))/2 }
	if far(rising, n-1) {
		found = append(found, fmt.Sprintf("%d of %d come after the one before in the alphabet", rising, n-1))
	}
	for at := range length {
		if changed[at] < n*3/4 { // 31 in 32 are due
			found = append(found, fmt.Sprintf("letter %d changes %d times in %d", at, changed[at], n))
		}
		for b := range 5 {
			if far(set[at][b], n) || far(same[at][b], n-1) {
				found = append(
					found, fmt.Sprintf("bit %d of letter %d is 1 in %d of %d, and stays %d times", b, at, set[at][b], n, same[at][b]),
				)
			}
		}
	}
	return found
}

// TestS19SessionIDsHaveNoPattern looks at the IDs of many sessions in a row.
func TestS19SessionIDsHaveNoPattern(t *testing.T) {
	n := promise.Size(2000, 50_000)
	s := newSessions(1, time.Hour)
	conn := newConn(t, newTestServer(t))
	issued, counted, suffixed := make([]string, n), make([]string, n), make([]string, n)
	for i := range n {
		x, no := s.add("a", conn)
		if no != nil {
			t.Fatal(no.text)
		}
		s.release(x)
		issued[i] = x.id
		// The controls: a counter, and one whose first half is random.
		var b [17]byte
		binary.BigEndian.PutUint64(b[8:], uint64(i))
		counted[i] = base32.StdEncoding.EncodeToString(b[:])[:26]
		suffixed[i] = x.id[:13] + counted[i][13:]
	}
	found := patterns(issued)
	for _, f := range found {
		t.Error(f)
	}
	first, second := patterns(counted), patterns(suffixed)
	if len(first) == 0 || len(second) == 0 {
		t.Errorf("in a counter %d patterns are found, in one with a random prefix %d", len(first), len(second))
	}
	promise.Kept(t, promise.Proof{Promise: "S19", Cases: n, Failures: len(found), Control: len(first) + len(second),
		Figures: fmt.Sprintf("%d IDs in a row: each of their %d bits, what stays from one to the next, and their order; control: a counter", n, 5*len(issued[0]))})
}

// httpFlood opens sessions without end and connections that never send a whole head, while one client goes on
// working. It says what the server held over what it held before, and how long the client waited.
func httpFlood(
	t *testing.T, initializes, halfOpen, sessions, connections int,
) (w *webServer, grown int64, kept int, waits []time.Duration, lost int) {
	s := newTestServer(t)
	l, err := Listen(t.Context(), "127.0.0.1:0", false)
	expect.Must(t, err)
	conns := &boundedListener{Listener: l, max: connections}
	h, err := newHTTP(t.Context(), s, Options{Identities: map[string]string{testToken: "local"}, Sessions: sessions})
	expect.Must(t, err)
	srv := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute, ConnContext: conns.context}
	served := make(chan struct{})
	go func() { defer close(served); _ = srv.Serve(conns) }()
	defer func() {
		h.end(server.ErrEnding)
		_ = srv.Close()
		<-served
	}()
	w = &webServer{
		t: t, url: "http://" + l.Addr().String(), addr: l.Addr().String(),
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}},
	}
	defer w.http.CloseIdleConnections()
	// The client has a connection of its own: a new one may give way before its first request, as those of the flood do.
	own := *w
	own.http = &http.Client{Transport: &http.Transport{}}
	defer own.http.CloseIdleConnections()
	good := own.open()
	call := servertest.ToolCall("1", "say", `{"text":"x"}`, "")
	own.post(call, good)
	before := heldMemory()

	stop := make(chan struct{})
	var client, floods sync.WaitGroup
	client.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			res, err := own.request(ctx, http.MethodPost, "/mcp", call, good)
			if err != nil {
				t.Log(err)
				lost++
			} else {
				text, _ := io.ReadAll(res.Body)
				_ = res.Body.Close()
				if !strings.Contains(string(text), `"text":"x"`) {
					lost++
				}
			}
			cancel()
			waits = append(waits, time.Since(began))
		}
	})
	var half []net.Conn
	floods.Go(func() {
		var d net.Dialer
		for i := range halfOpen {
			c, err := d.DialContext(t.Context(), "tcp", w.addr)
			if err != nil {
				continue
			}
			half = append(half, c)
			if i%2 == 0 {
				_, _ = io.WriteString(c, "POST /mcp HTTP/1.1\r\nHost: loc")
			}
		}
	})
	const writers = 4
	for range writers {
		floods.Go(func() {
			for range initializes / writers {
				if err := initOnce(w); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	floods.Wait()
	close(stop)
	client.Wait()
	grown = heldMemory() - before
	kept = h.sessions.count()
	for _, c := range half {
		_ = c.Close()
	}
	return w, grown, kept, waits, lost
}

func initOnce(w *webServer) error {
	for range 3 { // a connection that waited may have given way at the very moment it was used
		res, err := w.request(context.Background(), http.MethodPost, "/mcp", servertest.Initialize)
		if err != nil {
			continue
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		if res.StatusCode == http.StatusOK {
			return nil
		}
	}
	return fmt.Errorf("initialize failed three times")
}

func percentile(all []time.Duration, p int) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[min(len(all)-1, len(all)*p/100)]
}

func TestS19SessionsCannotBeExhausted(t *testing.T) {
	initializes, halfOpen := promise.Size(5000, 100_000), promise.Size(500, 5000)
	sessions, connections := 256, 128
	if testing.Short() {
		initializes, halfOpen, sessions, connections = 200, 100, 32, 48
	}
	const most = 50 << 20 // more memory than before, in bytes
	_, grown, kept, waits, lost := httpFlood(t, initializes, halfOpen, sessions, connections)
	failures := lost
	if kept > sessions {
		failures++
		t.Errorf("%d sessions are kept", kept)
	}
	if grown > most {
		failures++
		t.Errorf("%d MB are held", grown>>20)
	}
	if lost > 0 {
		t.Errorf("the good client lost %d of %d calls", lost, len(waits))
	}
	p99 := percentile(waits, 99)
	if promise.Full() && p99 > 200*time.Millisecond {
		failures++
		t.Errorf("the good client waited %s", p99)
	}
	// The control holds on to everything.
	_, _, control, _, _ := httpFlood(t, 4*sessions, 0, 1<<30, 1<<30)
	promise.Kept(t, promise.Proof{Promise: "S19", Cases: initializes + halfOpen, Failures: failures, Control: max(control-sessions, 0),
		Figures: fmt.Sprintf("%d initialize and %d half-open connections: %.1f MB more, good client p99 %s of %d calls", initializes, halfOpen, float64(grown)/(1<<20), p99.Round(100*time.Microsecond), len(waits))})
}

// TestConnectionsGiveWay fills every connection with half a request, and has a whole one served.
func TestConnectionsGiveWay(t *testing.T) {
	started, ended := make(chan struct{}, 2), make(chan struct{}, 2)
	s := newTestServer(t, runs(waiting(started, ended)))
	w := serveWeb(t, s, alone, func(o *Options) { o.Connections = 4 })
	session := w.open()
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url, nil)
	session(r)
	r2, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url, nil)
	w.open()(r2)
	// Two are in service and stay; the others come and go.
	for i := range 2 {
		c := w.raw(
			"/mcp", "POST", servertest.ToolCall(fmt.Sprint(i), "say", "{}", ""),
			"Mcp-Session-Id: "+r.Header.Get("Mcp-Session-Id"),
		)
		defer func() { _ = c.Close() }()
		take(t, "start", started)
	}
	var d net.Dialer
	for range 20 {
		c, err := d.DialContext(t.Context(), "tcp", w.addr)
		expect.Must(t, err)
		defer func() { _ = c.Close() }()
		_, _ = io.WriteString(c, "POST /mcp HT")
	}
	w.http.CloseIdleConnections()
	w.post(servertest.Ping, session).is(t, http.StatusOK)
	w.http.CloseIdleConnections()
	expect.Equal(t, s.RunningCalls(), 2, "a connection in service gave way")
	// With all in service there is no room, and the client is told.
	var err error
	// each session has one stream
	for _, id := range []string{r.Header.Get("Mcp-Session-Id"), r2.Header.Get("Mcp-Session-Id")} {
		line := ""
		// A connection counts as in service until the server has seen that its last answer is out.
		for try := 0; try < 100 && !strings.Contains(line, "200"); try++ {
			c := w.raw("/mcp", "GET", "", "Mcp-Session-Id: "+id)
			defer func() { _ = c.Close() }()
			if line, err = bufio.NewReader(c).ReadString('\n'); !strings.Contains(line, " 503 ") {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		if err != nil || !strings.Contains(line, "200") {
			t.Fatalf("%q %v", line, err)
		}
	}
	c, err := d.DialContext(t.Context(), "tcp", w.addr)
	expect.Must(t, err)
	defer func() { _ = c.Close() }()
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	text, err := io.ReadAll(c)
	if err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 503 ") || !strings.Contains(string(text), "try again") {
		t.Errorf("%v %q", err, text)
	}
}

// newHouse is the real catalog over a real store, as the product has it; whose says who a session is.
func newHouse(t *testing.T, whose func(funnel.Session) string) (*server.Server, *observations.Store) {
	t.Helper()
	store := servertest.NewTestStore(t)
	root, err := tree.Open(t.TempDir(), store.Dir())
	expect.Must(t, err)
	t.Cleanup(func() { _ = root.Close() })
	f, err := funnel.New(funnel.Options{Store: store, Counter: tokens.New(tokens.O200k), SavedTo: true})
	expect.Must(t, err)
	s, err := server.New(server.Options{
		Funnel: f, Store: store, Tools: server.Catalog(server.Parts{}), Version: "test",
		Trace: trace.InDir(trace.Dir(store.Dir())),
		Sources: func(who funnel.Session) source.Set {
			return source.Set{Roots: []*tree.Root{root}, Places: []source.NamedPlace{source.Observations(store, whose(who))}}
		},
	})
	expect.Must(t, err)
	return s, store
}

// TestS16AnotherIdentityOverHTTP tries by every way there is to see what another identity keeps: by its ID, by lists,
// by completion, by the file it is in, in each era and transport. Each answer is exactly that to an ID that never
// was.
func TestS16AnotherIdentityOverHTTP(t *testing.T) {
	run := func(whose func(funnel.Session) string, owner string) (cases int, leaks []string) {
		s, store := newHouse(t, whose)
		h, err := newHTTP(
			t.Context(), s, Options{Identities: map[string]string{testToken: "anna", otherToken: owner}, SSE: true},
		)
		expect.Must(t, err)
		w := serveHandler(t, h)
		const secret = "what anna keeps"
		id := string(
			servertest.Keep(t, store, "anna", secret+"\n", observations.Stats{Receipt: "LARGE OUTPUT DETECTED " + secret}),
		)
		o, err := store.Stat("anna", observations.ID(id))
		expect.Must(t, err)
		const none = "0123456789ab"
		if got := w.post(
			servertest.ToolCall("1", "grep", `{"source":"obs:`+id+`","pattern":"anna"}`, ""), w.open(),
		); !strings.Contains(got.last(), secret) {
			t.Fatalf("anna herself: %+v", got)
		}
		session := w.open(as(otherToken))
		stream := w.openSSE(as(otherToken))
		defer stream.close()
		stream.post(servertest.Initialize)
		stream.next()
		var ways []string
		for _, source := range []string{"obs:%s", "observation://%s", "OBS:%s", store.SavedTo(o)} {
			source, _ := json.Marshal(source)
			for tool, args := range map[string]string{
				"grep": `{"source":%s,"pattern":"a"}`, "jq": `{"source":%s,"filter":".","text":true}`, "slice": `{"source":%s,"lines":"1-"}`,
				"read": `{"path":%s}`, "search": `{"path":%s,"pattern":"a"}`, "find": `{"path":%s,"show":"stat"}`,
			} {
				ways = append(ways, `"method":"tools/call","params":{"name":"`+tool+`","arguments":`+fmt.Sprintf(args, source)+`}`)
			}
		}
		for _, tool := range []string{`"find","arguments":{"path":"obs:"}`, `"search","arguments":{"path":"obs:","pattern":"anna"}`} {
			ways = append(ways, `"method":"tools/call","params":{"name":`+tool+`}`)
		}
		ways = append(ways,
			`"method":"resources/read","params":{"uri":"observation://%s"}`, `"method":"resources/read","params":{"uri":"observation://%s/receipt"}`,
			`"method":"resources/list","params":{}`,
			`"method":"completion/complete","params":{"ref":{"type":"ref/resource","uri":"observation://{id}"},"argument":{"name":"id","value":""}}`,
		)
		for _, way := range ways {
			ask := func(id string) []string {
				message := `{"jsonrpc":"2.0","id":1,` + strings.NewReplacer("%s", id, string(o.ID), id).Replace(way) + `}`
				answers := []string{w.post(message, session, as(otherToken)).last()}
				stream.post(message)
				return append(answers, stream.next())
			}
			asked := strings.Contains(way, "%s") || strings.Contains(way, id)
			theirs, unknown := ask(id), ask(none)
			for i := range theirs {
				cases++
				same := plainAnswer(theirs[i], id) == plainAnswer(unknown[i], none)
				if strings.Contains(theirs[i], secret) || !same || !asked && strings.Contains(theirs[i], id) {
					leaks = append(leaks, way+": "+theirs[i])
				}
			}
		}
		return cases, leaks
	}
	cases, leaks := run(func(who funnel.Session) string { return who.Owner }, "bob")
	for _, l := range leaks {
		t.Errorf("%.600s", l)
	}
	// In the control both tokens are one identity's.
	_, control := run(func(who funnel.Session) string { return who.Owner }, "anna")
	promise.Kept(
		t,
		promise.Proof{
			Promise: "S16", Cases: cases, Failures: len(leaks), Control: len(control), Figures: "another identity over HTTP",
		},
	)
}

// plainAnswer is an answer without what differs between any two: the ID that was asked for, and times.
func plainAnswer(text, id string) string {
	var m map[string]any
	if json.Unmarshal([]byte(text), &m) != nil {
		return text
	}
	if result, ok := m["result"].(map[string]any); ok {
		delete(result, "_meta") // how long it took
	}
	b, _ := json.Marshal(m)
	return strings.ReplaceAll(string(b), id, "ID")
}
