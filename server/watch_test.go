package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tokens"
)

// newWatchServer keeps what is large, and looks at its store often.
func newWatchServer(t *testing.T) (*Server, *observations.Store) {
	t.Helper()
	store := newTestStore(t)
	f, err := funnel.New(funnel.Options{Store: store, Counter: tokens.New(tokens.O200k)})
	if err != nil {
		t.Fatal(err)
	}
	s := newTestServer(t, func(o *Options) { o.Funnel, o.Store = f, store })
	s.kept.each = 5 * time.Millisecond
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
		contains(l.t, m, want...)
		return m
	case <-time.After(10 * time.Second):
		l.t.Fatalf("nothing was heard within 10 s, want %q", want)
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

const initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`

func newListener(t *testing.T, s *Server, owner string) *listener {
	l := &listener{client: &client{t: t, conn: s.Connect(t.Context())}, heard: make(chan string, 1000)}
	l.conn.who.Owner = owner
	contains(t, l.ask(initialize), `"resources":{"subscribe":true,"listChanged":true}`)
	if got := l.ask(initialized); got != "" {
		t.Error(got)
	}
	return l
}

// looked waits until the server knows what there is: what comes after is told.
func looked(t *testing.T, s *Server) {
	t.Helper()
	for range 2000 {
		s.kept.mu.Lock()
		there := s.kept.there != nil
		s.kept.mu.Unlock()
		if there {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("the store was not looked at within 10 s")
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
	if got := ann.call("big", `{"kb":100}`); !strings.Contains(got.text(), "kept whole") {
		t.Fatalf("%+v", got)
	}
	ann.next(listChanged)
	too.next(listChanged)
	id := keep(t, store, "ann", "made by another process", observations.Seen{})
	ann.next(listChanged)
	too.next(listChanged)
	if err := store.Remove("ann", id); err != nil {
		t.Fatal(err)
	}
	ann.next(listChanged)
	too.next(listChanged)
	// Whatever was to reach bob would have done so before what is his.
	bob.quiet()
	keep(t, store, "bob", "his", observations.Seen{})
	bob.next(listChanged)
	ann.quiet()
	too.quiet()
}

// TestBurstsAreTold together.
func TestBurstsAreTold(t *testing.T) {
	s, _ := newWatchServer(t)
	l := newListener(t, s, observations.Local)
	defer l.conn.Listen(l.hear)()
	began := time.Now()
	const n = 500
	for i := range n {
		s.kept.made(observations.Local, observations.ID(fmt.Sprintf("%012d", i)))
	}
	l.next(listChanged)
	told, took := 1+len(l.heard), time.Since(began)
	if most := 2 + int(took/tellEach); told > most {
		t.Errorf("%d changes in %s were told in %d messages, at most %d are meant", n, took, told, most)
	}
}

// TestToldLater has no stream open while something happens.
func TestToldLater(t *testing.T) {
	s, _ := newWatchServer(t)
	l := newListener(t, s, observations.Local)
	s.kept.made(observations.Local, "0123456789ab")
	for range 2000 { // until it was tried in vain
		l.conn.own.mu.Lock()
		tried := !l.conn.own.busy && l.conn.own.pending.list
		l.conn.own.mu.Unlock()
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
	one, two := keep(t, store, "ann", "one", observations.Seen{}), keep(t, store, "ann", "two", observations.Seen{})
	theirs := keep(t, store, "bob", "theirs", observations.Seen{})
	gone := keep(t, store, "ann", "gone", observations.Seen{})
	if err := store.Remove("ann", gone); err != nil {
		t.Fatal(err)
	}
	s.kept.mu.Lock()
	s.kept.there = nil // what was made until here was made before
	s.kept.mu.Unlock()
	looked(t, s)
	spelt := observations.URIPrefix + strings.ToUpper(string(one))
	contains(t, ask("subscribe", spelt), `"result":{}`)
	contains(t, ask("subscribe", spelt), `"result":{}`)
	contains(t, ask("subscribe", observations.URIPrefix+string(two)), `"result":{}`)
	contains(t, ask("unsubscribe", observations.URIPrefix+string(two)), `"result":{}`)
	contains(t, ask("unsubscribe", "observation://000000000000"), `"result":{}`)
	unknown, foreign := ask("subscribe", "observation://000000000000"), ask("subscribe", observations.URIPrefix+string(theirs))
	contains(t, unknown, "-32002", "no observation obs:000000000000")
	if strings.ReplaceAll(unknown, "000000000000", "ID") != strings.ReplaceAll(foreign, string(theirs), "ID") {
		t.Errorf("another owner's observation is told apart from an unknown one:\n%s\n%s", unknown, foreign)
	}
	contains(t, ask("subscribe", observations.URIPrefix+string(gone)), "-32002", "has expired")
	contains(t, ask("subscribe", "file:///etc/passwd"), "-32002", "unknown resource")
	contains(t, ask("subscribe", ""), "-32602")

	for _, id := range []observations.ID{one, two} {
		if err := store.Remove("ann", id); err != nil {
			t.Fatal(err)
		}
	}
	keep(t, store, "ann", "the last", observations.Seen{})
	var updated []string
	for range 20 { // list_changed comes once or twice, as it happens
		if m := l.next(); m != listChanged {
			updated = append(updated, m)
		}
		if len(updated) > 0 && len(l.heard) == 0 {
			break
		}
	}
	if want := `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"` + spelt + `"}}`; len(updated) != 1 || updated[0] != want {
		t.Errorf("told %q, want %s", updated, want)
	}
}

func TestSubscriptionsAreBounded(t *testing.T) {
	s, store := newWatchServer(t)
	l := newListener(t, s, "ann")
	var last string
	for range maxSubscriptions + 1 {
		last = l.ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"observation://%s"}}`,
			keep(t, store, "ann", "x", observations.Seen{})))
	}
	contains(t, last, "-32602", "at most 100 resources")
	if n := len(l.conn.own.uris); n != maxSubscriptions {
		t.Errorf("%d subscriptions", n)
	}
}

// listenTo opens a stream of the stateless era.
func (l *listener) listenTo(id, filter string) (done chan struct{}) {
	done = make(chan struct{})
	message := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"subscriptions/listen","params":{"notifications":%s,%s}}`, id, filter, modernMeta)
	work := l.conn.accept(l.t.Context(), []byte(message), l.hear)
	go func() {
		defer close(done)
		work()
	}()
	return done
}

func newModernListener(t *testing.T, s *Server, owner string) *listener {
	l := &listener{client: newModern(t, s), heard: make(chan string, 1000)}
	l.conn.who.Owner = owner
	return l
}

func TestListenStream(t *testing.T) {
	s, store := newWatchServer(t)
	one := keep(t, store, "ann", "one", observations.Seen{})
	theirs := keep(t, store, "bob", "theirs", observations.Seen{})
	l := newModernListener(t, s, "ann")
	defer l.conn.Listen(func(m []byte, _ func()) error {
		t.Errorf("not on the stream of the request: %s", m)
		return nil
	})()
	contains(t, l.ask(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{`+modernMeta+`}}`), `"resources":{"subscribe":true,"listChanged":true}`)

	all := l.listenTo(`"all"`, `{"toolsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["observation://`+strings.ToUpper(string(one))+`","obs:`+string(one)+`","observation://`+string(theirs)+`","file:///x"]}`)
	l.next(`"method":"notifications/subscriptions/acknowledged"`, `"io.modelcontextprotocol/subscriptionId":"all"`,
		`"notifications":{"resourcesListChanged":true,"resourceSubscriptions":["observation://`+strings.ToUpper(string(one))+`"]}`)
	looked(t, s)
	updates := l.listenTo(`2`, `{"resourceSubscriptions":["observation://`+string(one)+`"]}`)
	l.next(`"io.modelcontextprotocol/subscriptionId":2`, `"notifications":{"resourceSubscriptions":["observation://`+string(one)+`"]}`)
	keep(t, store, "bob", "his", observations.Seen{})
	keep(t, store, "ann", "hers", observations.Seen{})
	l.next(`"method":"notifications/resources/list_changed"`, `"io.modelcontextprotocol/subscriptionId":"all"`)
	if err := store.Remove("ann", one); err != nil {
		t.Fatal(err)
	}
	heard := l.next() + "\n" + l.next() + "\n" + l.next()
	contains(t, heard, `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":2},"uri":"observation://`+string(one)+`"}}`,
		`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"all"},"uri":"observation://`+strings.ToUpper(string(one))+`"}}`,
		`"method":"notifications/resources/list_changed"`)

	// The client cancels one, which gets no answer; the other is answered when the connection ends.
	l.ask(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
	within(t, "the cancelled stream", updates)
	l.quiet()
	l.conn.end(errEnding)
	within(t, "the other stream", all)
	l.next(`"id":"all"`, `"resultType":"complete"`, `"io.modelcontextprotocol/subscriptionId":"all"`, `io.modelcontextprotocol/serverInfo`)
	if n := s.listens.count(); n != 0 || len(s.kept.watchers) != 0 {
		t.Errorf("%d streams are counted as open, %d watched for", n, len(s.kept.watchers))
	}
}

func TestListenRefuses(t *testing.T) {
	s, _ := newWatchServer(t)
	l := newModernListener(t, s, "ann")
	within(t, "a stream for nothing", l.listenTo("1", `{"toolsListChanged":true}`))
	l.next(`acknowledged`, `"notifications":{}`)
	l.next(`"id":1`, `"result"`)
	within(t, "a filter that is none", l.listenTo("1", `[]`))
	l.next(`"id":1`, `-32602`)
	contains(t, l.ask(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"obs:x",`+modernMeta+`}}`), "-32601")
	contains(t, l.ask(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"resourcesListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`), "-32602", "clientCapabilities")
	var open []chan struct{}
	for i := range maxListens {
		open = append(open, l.listenTo(fmt.Sprint(i), `{"resourcesListChanged":true}`))
		l.next("acknowledged")
	}
	within(t, "one too many", l.listenTo("99", `{"resourcesListChanged":true}`))
	l.next(`"id":99`, `-32010`, "16 subscriptions of this connection are open")
	within(t, "an id in flight", func() chan struct{} {
		done := make(chan struct{})
		contains(t, l.ask(`{"jsonrpc":"2.0","id":3,"method":"server/discover","params":{`+modernMeta+`}}`), "in flight")
		close(done)
		return done
	}())
	l.conn.end(errEnding)
	for _, done := range open {
		within(t, "a stream", done)
	}
}

// TestListenKeepsNoPlace has streams open where only one call may run, and the input end under them.
func TestListenKeepsNoPlace(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	store := newTestStore(t)
	s := newTestServer(t, func(o *Options) { o.Store, o.MaxCalls = store, 1 })
	p := servePipe(t, t.Context(), s)
	for id := range 3 {
		p.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"subscriptions/listen","params":{"notifications":{"resourcesListChanged":true},%s}}`, id, modernMeta))
		if m, _ := p.read(); m.Method != "notifications/subscriptions/acknowledged" {
			t.Fatalf("%+v", m)
		}
	}
	p.write(toolCall("9", "say", `{"text":"x"}`, ","+modernMeta))
	if m, _ := p.read(); string(m.ID) != "9" || !strings.Contains(string(m.Result), `"text":"x"`) {
		t.Errorf("%+v", m)
	}
	_ = p.in.Close()
	ended := map[string]bool{}
	for m, ok := p.read(); ok; m, ok = p.read() {
		var result struct{ ResultType string }
		if err := json.Unmarshal(m.Result, &result); err != nil || result.ResultType != "complete" {
			t.Errorf("%v: %+v", err, m)
		}
		ended[string(m.ID)] = true
	}
	if len(ended) != 3 {
		t.Errorf("answered at the end: %v", ended)
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
}
