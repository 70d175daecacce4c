package server

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/server/servertest"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
)

// newWatchServer keeps what is large, and looks at its store often.
func newWatchServer(t *testing.T) (*Server, *observations.Store) {
	t.Helper()
	store := servertest.NewTestStore(t)
	f, err := funnel.New(funnel.Options{Store: store, Counter: tokens.New(tokens.O200k)})
	expect.Must(t, err)
	s := newTestServer(t, func(o *Options) { o.Funnel, o.Store = f, store })
	s.storeWatch.interval = 5 * time.Millisecond
	return s, store
}

// listener is a client that hears what belongs to no call.
type listener struct {
	*client
	heard chan string
}

func (l *listener) hear(m []byte, _ func()) error {
	l.heard <- strings.TrimSpace(string(m))
	return nil
}

// next is what is heard next.
func (l *listener) next(want ...string) string {
	l.t.Helper()
	select {
	case m := <-l.heard:
		expect.Contains(l.t, m, want...)
		return m
	case <-time.After(5 * time.Minute):
		l.t.Fatalf("nothing was heard in time, want %q", want)
		return ""
	}
}

func (l *listener) quiet() {
	l.t.Helper()
	select {
	case m := <-l.heard:
		l.t.Errorf("heard: %s", m)
	default:
	}
}

func newListener(t *testing.T, s *Server, owner string) *listener {
	l := &listener{client: &client{t: t, conn: s.Connect(t.Context())}, heard: make(chan string, 1000)}
	l.conn.account.Owner = owner
	expect.Contains(t, l.ask(servertest.Initialize), `"resources":{"subscribe":true,"listChanged":true}`)
	expect.Equal(t, l.ask(servertest.Initialized), "")
	return l
}

// looked waits until the server knows what there is: what comes after is told.
func looked(t *testing.T, s *Server) {
	t.Helper()
	for range 2000 {
		s.storeWatch.mu.Lock()
		there := s.storeWatch.known != nil
		s.storeWatch.mu.Unlock()
		if there {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("the store was not looked at in time")
}

const listChanged = `{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}`

// TestListChangedIsTheOwners makes observations by calls and beside them, as another process would.
func TestListChangedIsTheOwners(t *testing.T) {
	s, store := newWatchServer(t)
	ann, too, bob := newListener(t, s, "ann"), newListener(t, s, "ann"), newListener(t, s, "bob")
	for _, l := range []*listener{ann, too, bob} {
		defer l.conn.Listen(l.hear)()
	}
	looked(t, s)
	if got := ann.call("big", `{"kb":100}`); !strings.Contains(got.Text(), "kept whole") {
		t.Fatalf("%+v", got)
	}
	ann.next(listChanged)
	too.next(listChanged)
	id := servertest.Keep(t, store, "ann", "made by another process", observations.Stats{})
	ann.next(listChanged)
	too.next(listChanged)
	expect.Must(t, store.Remove("ann", id))
	ann.next(listChanged)
	too.next(listChanged)
	// Whatever was to reach bob would have done so before what is his.
	bob.quiet()
	servertest.Keep(t, store, "bob", "his", observations.Stats{})
	bob.next(listChanged)
	ann.quiet()
	too.quiet()
}

// TestToldLater has no stream open while something happens.
func TestToldLater(t *testing.T) {
	s, _ := newWatchServer(t)
	l := newListener(t, s, observations.Local)
	l.conn.subscriber.enqueue(true)
	for range 2000 { // until it was tried in vain
		l.conn.subscriber.mu.Lock()
		tried := !l.conn.subscriber.sending && l.conn.subscriber.pending.list
		l.conn.subscriber.mu.Unlock()
		if tried {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	defer l.conn.Listen(l.hear)()
	l.next(listChanged)
	l.quiet()
}

func TestSubscribe(t *testing.T) {
	s, store := newWatchServer(t)
	l := newListener(t, s, "ann")
	defer l.conn.Listen(l.hear)()
	ask := func(method, uri string) string {
		return l.ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"resources/%s","params":{"uri":%q}}`, method, uri))
	}
	one, two := servertest.Keep(
		t, store, "ann", "one", observations.Stats{},
	), servertest.Keep(t, store, "ann", "two", observations.Stats{})
	theirs := servertest.Keep(t, store, "bob", "theirs", observations.Stats{})
	gone := servertest.Keep(t, store, "ann", "gone", observations.Stats{})
	expect.Must(t, store.Remove("ann", gone))
	s.storeWatch.mu.Lock()
	s.storeWatch.known = nil // what was made until here was made before
	s.storeWatch.mu.Unlock()
	looked(t, s)
	spelt := observations.URIPrefix + strings.ToUpper(string(one))
	expect.Contains(t, ask("subscribe", spelt), `"result":{}`)
	expect.Contains(t, ask("subscribe", spelt), `"result":{}`)
	expect.Contains(t, ask("subscribe", observations.URIPrefix+string(two)), `"result":{}`)
	expect.Contains(t, ask("unsubscribe", observations.URIPrefix+string(two)), `"result":{}`)
	expect.Contains(t, ask("unsubscribe", "observation://000000000000"), `"result":{}`)
	unknown, foreign := ask("subscribe", "observation://000000000000"), ask(
		"subscribe", observations.URIPrefix+string(theirs),
	)
	expect.Contains(t, unknown, "-32002", "no observation obs:000000000000")
	if strings.ReplaceAll(unknown, "000000000000", "ID") != strings.ReplaceAll(foreign, string(theirs), "ID") {
		t.Errorf("another owner's observation is told apart from an unknown one:\n%s\n%s", unknown, foreign)
	}
	expect.Contains(t, ask("subscribe", observations.URIPrefix+string(gone)), "-32002", "has expired")
	expect.Contains(t, ask("subscribe", "file:///etc/passwd"), "-32002", "unknown resource")
	expect.Contains(t, ask("subscribe", ""), "-32602")

	for _, id := range []observations.ID{one, two} {
		expect.Must(t, store.Remove("ann", id))
	}
	servertest.Keep(t, store, "ann", "the last", observations.Stats{})
	var updated []string
	for range 20 { // list_changed comes once or twice, as it happens
		if m := l.next(); m != listChanged {
			updated = append(updated, m)
		}
		if len(updated) > 0 && len(l.heard) == 0 {
			break
		}
	}
	if want := `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"` + spelt +
		`"}}`; len(updated) != 1 || updated[0] != want {
		t.Errorf("told %q, want %s", updated, want)
	}
}

func TestSubscriptionsAreBounded(t *testing.T) {
	s, store := newWatchServer(t)
	l := newListener(t, s, "ann")
	var last string
	for range maxSubscriptions + 1 {
		last = l.ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"observation://%s"}}`,
			servertest.Keep(t, store, "ann", "x", observations.Stats{})))
	}
	expect.Contains(t, last, "-32602", "at most 100 resources")
	expect.Equal(t, len(l.conn.subscriber.uris), maxSubscriptions, "subscriptions")
}

// listenTo opens a stream of the stateless era.
func (l *listener) listenTo(id, filter string) (done chan struct{}) {
	done = make(chan struct{})
	message := fmt.Sprintf(
		`{"jsonrpc":"2.0","id":%s,"method":"subscriptions/listen","params":{"notifications":%s,%s}}`, id, filter,
		servertest.ModernMeta,
	)
	work := l.conn.Accept(l.t.Context(), []byte(message), l.hear)
	go func() {
		defer close(done)
		work()
	}()
	return done
}

func newModernListener(t *testing.T, s *Server, owner string) *listener {
	l := &listener{client: newModern(t, s), heard: make(chan string, 1000)}
	l.conn.account.Owner = owner
	return l
}

func TestListenStream(t *testing.T) {
	s, store := newWatchServer(t)
	one := servertest.Keep(t, store, "ann", "one", observations.Stats{})
	theirs := servertest.Keep(t, store, "bob", "theirs", observations.Stats{})
	l := newModernListener(t, s, "ann")
	defer l.conn.Listen(func(m []byte, _ func()) error {
		t.Errorf("not on the stream of the request: %s", m)
		return nil
	})()
	l.says("server/discover", `{`+servertest.ModernMeta+`}`, `"resources":{"subscribe":true,"listChanged":true}`)

	all := l.listenTo(
		`"all"`,
		`{"toolsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["observation://`+strings.ToUpper(string(one))+`","obs:`+string(one)+`","observation://`+string(theirs)+`","file:///x"]}`,
	)
	l.next(`"method":"notifications/subscriptions/acknowledged"`, `"io.modelcontextprotocol/subscriptionId":"all"`,
		`"notifications":{"resourcesListChanged":true,"resourceSubscriptions":["observation://`+strings.ToUpper(string(one))+`"]}`)
	looked(t, s)
	updates := l.listenTo(`2`, `{"resourceSubscriptions":["observation://`+string(one)+`"]}`)
	l.next(
		`"io.modelcontextprotocol/subscriptionId":2`,
		`"notifications":{"resourceSubscriptions":["observation://`+string(one)+`"]}`,
	)
	servertest.Keep(t, store, "bob", "his", observations.Stats{})
	servertest.Keep(t, store, "ann", "hers", observations.Stats{})
	l.next(`"method":"notifications/resources/list_changed"`, `"io.modelcontextprotocol/subscriptionId":"all"`)
	expect.Must(t, store.Remove("ann", one))
	heard := l.next() + "\n" + l.next() + "\n" + l.next()
	expect.Contains(t, heard, `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":2},"uri":"observation://`+string(one)+`"}}`,
		`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"all"},"uri":"observation://`+strings.ToUpper(string(one))+`"}}`,
		`"method":"notifications/resources/list_changed"`)

	// The client cancels one, which gets no answer; the other is answered when the connection ends.
	l.ask(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
	servertest.Within(t, "the cancelled stream", updates)
	l.quiet()
	l.conn.end(ErrEnding)
	servertest.Within(t, "the other stream", all)
	l.next(
		`"id":"all"`, `"resultType":"complete"`, `"io.modelcontextprotocol/subscriptionId":"all"`,
		`io.modelcontextprotocol/serverInfo`,
	)
	if n := s.listens.Count(); n != 0 || len(s.storeWatch.subscribers) != 0 {
		t.Errorf("%d streams are counted as open, %d watched for", n, len(s.storeWatch.subscribers))
	}
}

func TestListenRefuses(t *testing.T) {
	s, _ := newWatchServer(t)
	l := newModernListener(t, s, "ann")
	servertest.Within(t, "a stream for nothing", l.listenTo("1", `{"toolsListChanged":true}`))
	l.next(`acknowledged`, `"notifications":{}`)
	l.next(`"id":1`, `"result"`)
	servertest.Within(t, "a filter that is none", l.listenTo("1", `[]`))
	l.next(`"id":1`, `-32602`)
	l.says("resources/subscribe", `{"uri":"obs:x",`+servertest.ModernMeta+`}`, "-32601")
	l.says("subscriptions/listen",
		`{"notifications":{"resourcesListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`,
		"-32602", "clientCapabilities")
	var open []chan struct{}
	for i := range maxListens {
		open = append(open, l.listenTo(fmt.Sprint(i), `{"resourcesListChanged":true}`))
		l.next("acknowledged")
	}
	servertest.Within(t, "one too many", l.listenTo("99", `{"resourcesListChanged":true}`))
	l.next(`"id":99`, `-32010`, "16 subscriptions of this connection are open")
	servertest.Within(t, "an id in flight", func() chan struct{} {
		done := make(chan struct{})
		l.says("server/discover", `{`+servertest.ModernMeta+`}`, "in flight")
		close(done)
		return done
	}())
	l.conn.end(ErrEnding)
	for _, done := range open {
		servertest.Within(t, "a stream", done)
	}
}
