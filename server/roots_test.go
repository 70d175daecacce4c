package server

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/server/servertest"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/secrets"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// Serving offers the tools that work on files, on that directory.
func serving(g *servertest.Granted) func(*Options) {
	return func(o *Options) { o.Tools, o.Sources = append(o.Tools, g.Tools()...), g.Sources }
}

// newRooted is an initialized client that answers roots/list with what says returns.
func newRooted(t *testing.T, s *Server, says func(servertest.Ours) string) *asking {
	c := newAsking(t, s, servertest.CanRoots, says)
	c.ask(servertest.Initialized)
	return c
}

func (c *asking) finds() string {
	c.t.Helper()
	return c.call(c.t.Context(), "1", "find", `{"glob":"**/*.txt"}`).Text()
}

// TestClientRootsNarrow has the first call ask, as the client keeps no stream of its own open.
func TestClientRootsNarrow(t *testing.T) {
	g := servertest.NewGranted(t)
	var log strings.Builder // nothing is logged but by the calls, which are made one by one
	s := newTestServer(t, serving(g), func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	says := g.Says("work/sub")
	c := newRooted(t, s, func(servertest.Ours) string { return says })
	if got := c.finds(); !strings.Contains(got, "sub.txt") || strings.Contains(got, "top.txt") ||
		strings.Contains(got, "two.txt") {
		t.Errorf("narrowed to sub, find says: %s", got)
	}
	for _, path := range []string{"top.txt", "../top.txt", "up/top.txt", filepath.Join(g.Top, "work", "top.txt")} {
		if got := c.call(t.Context(), "1", "read", fmt.Sprintf(`{"path":%q}`, path)); !got.Result.IsError {
			t.Errorf("narrowed to sub, read %s says: %s", path, got.Text())
		}
	}
	asked := len(c.seen)
	says = g.Says("work/two", "work/sub")
	if got := c.finds(); strings.Contains(got, "two.txt") || len(c.seen) != asked {
		t.Errorf("asked again without need: %s", got)
	}
	c.ask(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
	if got := c.finds(); !strings.Contains(got, "two.txt") || !strings.Contains(got, "sub.txt") ||
		strings.Contains(got, "top.txt") {
		t.Errorf("narrowed to both, find says: %s", got)
	}
	says = g.Says("outside")
	c.ask(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
	for range 2 {
		expect.Contains(t, c.finds(), "none of the client's roots lies within a directory granted", "--no-client-roots")
	}
	says = g.Says()
	c.ask(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
	expect.Contains(t, c.finds(), "top.txt", "sub.txt", "two.txt")
	if said := log.String(); strings.Count(said, "level=WARN") != 1 || !strings.Contains(said, "--no-client-roots") {
		t.Errorf("one warning a session of roots that leave nothing, and none that there is no stream to ask by: %s", said)
	}
}

// TestClientRootsUnknown has the client give no valid answer: calls on files are refused until it does. Stored outputs
// stay readable.
func TestClientRootsUnknown(t *testing.T) {
	g := servertest.NewGranted(t)
	many := make([]string, maxRoots+1)
	for i := range many {
		many[i] = "work"
	}
	for reply, want := range map[string]string{
		`"error":{"code":-32601,"message":"no"}`: "(-32601)",
		`"result":7`:                             "no list of roots",
		`"result":{"roots":"x"}`:                 "no list of roots",
		`"result":{}`:                            "no list of roots",
		`"result":{"roots":null}`:                "no list of roots",
		`"result":{"roots":[{"name":"x"}]}`:      "root 0 of its answer has no uri",
		g.Says(many...):                          "it lists 101 roots, over the limit of 100",
	} {
		says := reply
		store := servertest.NewTestStore(t)
		id := servertest.Keep(t, store, "local", "kept text", observations.Stats{})
		s := newTestServer(t, serving(g), func(o *Options) {
			o.Store = store
			of := o.Sources
			o.Sources = func(who funnel.Session) source.Set {
				set := of(who)
				set.Places = append(set.Places, source.Observations(store, "local"))
				return set
			}
		})
		c := newRooted(t, s, func(servertest.Ours) string { return says })
		for range 2 {
			got := c.finds()
			expect.Contains(t, got, want, "roots/list", "--no-client-roots")
			if strings.Contains(got, "top.txt") {
				t.Errorf("%s: shown without roots: %s", reply, got)
			}
		}
		expect.Contains(t, c.call(t.Context(), "1", "read", fmt.Sprintf(`{"path":"obs:%s"}`, id)).Text(), "kept text")
		if len(c.seen) < 2 || c.seen[0].Method != "roots/list" {
			t.Errorf("%s: asked %+v, want a question with each call", reply, c.seen)
		}
		says = g.Says("work/sub")
		if got := c.finds(); !strings.Contains(got, "sub.txt") || strings.Contains(got, "top.txt") {
			t.Errorf("after a valid answer, find says: %s", got)
		}
		says = reply
		c.ask(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
		if got := c.finds(); strings.Contains(got, "sub.txt") {
			t.Errorf("%s after a change: the roots of before hold: %s", reply, got)
		}
	}
	// One that declares none, and a server that is not to look at them, ask nothing.
	c := newAsking(t, newTestServer(t, serving(g)), `{}`, func(servertest.Ours) string { return g.Says("work/sub") })
	c.ask(servertest.Initialized)
	expect.Contains(t, c.finds(), "top.txt")
	ignoring := newRooted(
		t, newTestServer(t, serving(g), func(o *Options) { o.IgnoreRoots = true }),
		func(servertest.Ours) string { return g.Says("work/sub") },
	)
	expect.Contains(t, ignoring.finds(), "top.txt")
	if len(c.seen)+len(ignoring.seen) > 0 {
		t.Errorf("asked %+v, %+v", c.seen, ignoring.seen)
	}
}

// TestClientRootsLate has the client answer after calls have stopped to wait for it: the next call knows.
func TestClientRootsLate(t *testing.T) {
	g := servertest.NewGranted(t)
	c := newRooted(
		t, newTestServer(t, serving(g), func(o *Options) { o.AskTimeout = 50 * time.Millisecond }),
		func(servertest.Ours) string { return "" },
	)
	for range 2 {
		if got := c.finds(); strings.Contains(got, ".txt") || !strings.Contains(got, "it has not answered yet") {
			t.Errorf("before the answer, find says: %s", got)
		}
	}
	if len(c.seen) != 1 || c.seen[0].Method != "roots/list" {
		t.Fatalf("asked %+v", c.seen)
	}
	c.ask(`{"jsonrpc":"2.0","id":` + string(c.seen[0].ID) + `,` + g.Says("work/sub") + `}`)
	servertest.Wait(t, "the answer", func() bool {
		dirs, _, _, _ := c.conn.roots.current()
		return dirs != nil
	})
	if got := c.finds(); !strings.Contains(got, "sub.txt") || strings.Contains(got, "top.txt") {
		t.Errorf("narrowed to sub, find says: %s", got)
	}
}

// TestClientRootsAskedAgain has the client say nothing the first time.
func TestClientRootsAskedAgain(t *testing.T) {
	g := servertest.NewGranted(t)
	s := newTestServer(t, serving(g), func(o *Options) { o.AskTimeout = 50 * time.Millisecond })
	s.lateRoots = 200 * time.Millisecond
	says := ""
	c := newAsking(t, s, servertest.CanRoots, func(servertest.Ours) string { return says })
	if got := c.finds(); strings.Contains(got, ".txt") {
		t.Errorf("before the answer, find says: %s", got)
	}
	servertest.Wait(t, "the question", func() bool {
		_, _, _, due := c.conn.roots.current()
		return due
	})
	s.options.AskTimeout, s.lateRoots = time.Minute, time.Minute
	says = g.Says("work/sub")
	if got := c.finds(); !strings.Contains(got, "sub.txt") || strings.Contains(got, "top.txt") {
		t.Errorf("narrowed to sub, find says: %s", got)
	}
}

// TestRootsOfClients checks which roots of a client are understood, and why others are not.
func TestRootsOfClients(t *testing.T) {
	host, err := os.Hostname()
	expect.Must(t, err)
	for uri, want := range map[string]string{
		"file:///code": "/code", "file:/code": "/code", "file://localhost/code": "/code", "FILE:///code": "/code",
		"file://" + host + "/code": "/code", "/code": "/code", "/code/../x": "/x", "file:///a%20b": "/a b",
		"https://example.org/": "it is no file URI", "work": "it is no file URI", "::": "it is no URI",
		"file://elsewhere/code": "it names another machine, elsewhere", "file:work": "its path is not absolute",
	} {
		if dir, why := dirOf(uri); dir != want && (dir != "" || !strings.HasPrefix(why, want)) {
			t.Errorf("%s: %q, %q; want %s", uri, dir, why, want)
		}
	}
}

// TestLifetimes checks how long a client may keep the lists that cannot change, and that it may not keep others.
func TestLifetimes(t *testing.T) {
	c := newClient(t, newTestServer(t))
	for method, want := range map[string]string{
		"tools/list": `"ttlMs":3600000`, "prompts/list": `"ttlMs":3600000`, "resources/templates/list": `"ttlMs":3600000`,
		"resources/list": `"ttlMs":0`,
	} {
		expect.Contains(t, c.ask(servertest.StatelessRequest(method, "")), want)
	}
}

// TestS26ClientRootsNeverWiden has a client name roots of all sorts and count what it can read of what
// was not granted. The control takes the client's word for it.
func TestS26ClientRootsNeverWiden(t *testing.T) {
	g := servertest.NewGranted(t)
	names := []string{"", "/", "work", "outside", "work-evil", "work/..", "work/../outside", "work/leave", "work/sub/up", "work/sub/up/..",
		"work/store", "work/top.txt", "work/none", "file:///", "file://localhost/", "FILE:///", "file:///proc/self/root" +
			g.Top,
		"file:" + g.Top, "file:.", "file:///..", "file://elsewhere" + g.Top, "https://example.org/", "file:///%00", "file:///%2e%2e", "::", "file://" + g.Top + "/work/%2e%2e/outside"}
	secrets := []string{"outside/secret.txt", "work-evil/secret.txt", "work/store/secret.txt", "secret.txt"}
	// try counts the secrets that are read with each pair of names as the client's roots.
	try := func(s *Server) (cases, found int) {
		for i, one := range names {
			says := g.Says(one, names[(i+7)%len(names)])
			c := newRooted(t, s, func(servertest.Ours) string { return says })
			spelt := []string{
				"secret.txt", "../secret.txt", "outside/secret.txt", "../outside/secret.txt", "up/../../secret.txt",
				"leave/secret.txt", "store/secret.txt", "work/store/secret.txt",
			}
			for _, secret := range secrets {
				spelt = append(spelt, filepath.Join(g.Top, secret))
			}
			for _, path := range spelt {
				cases++
				if got := c.call(
					t.Context(), "1", "read", fmt.Sprintf(`{"path":%q}`, path),
				); strings.Contains(got.Text(), "this is secret.txt") {
					found++
				}
			}
			cases++
			if strings.Contains(c.finds(), "secret.txt") {
				found++
			}
		}
		return cases, found
	}
	cases, found := try(newTestServer(t, serving(g)))
	all, err := tree.Open(g.Top) // what a client's word would be taken for
	expect.Must(t, err)
	defer func() { _ = all.Close() }()
	_, control := try(newTestServer(t, serving(g), func(o *Options) {
		o.IgnoreRoots = true
		o.Sources = func(who funnel.Session) source.Set {
			return source.Set{Roots: []*tree.Root{all}}
		}
	}))
	promise.Kept(t, promise.Proof{Promise: "S26", Cases: cases, Failures: found, Control: control})
}

// A name that holds a secret is not proposed, by a server that masks.
func TestS23CompletionShowsNoSecret(t *testing.T) {
	g := servertest.NewGranted(t)
	token := "ghp_" + strings.Repeat("aB3dE6gH9", 4)
	expect.Must(t, os.WriteFile(filepath.Join(g.Top, "work", "t-"+token), nil, 0o600))
	shows := func(mask *secrets.Masker) int {
		c := newClient(t, newTestServer(t, serving(g), func(o *Options) { o.Mask = mask }))
		said := c.request("completion/complete", `{"ref":{"type":"ref/prompt","name":"investigate-output"},"argument":{"name":"source","value":"t"}}`)
		expect.Contains(t, said, `"top.txt"`)
		n := strings.Count(said, token[8:24])
		if !strings.Contains(said, `"total":2}`) { // top.txt and two/; a count would tell of it too
			n++
		}
		return n
	}
	promise.Keptf(t, promise.Proof{Promise: "S23", Cases: 1, Failures: shows(secrets.New()), Control: shows(nil)},
		"names that are proposed; control: nothing is masked")
}

// TestCompletionOfPaths proposes observations and what lies under the roots, the client's own included.
func TestCompletionOfPaths(t *testing.T) {
	g := servertest.NewGranted(t)
	store := servertest.NewTestStore(t)
	id := servertest.Keep(t, store, "local", "x", observations.Stats{})
	s := newTestServer(t, serving(g), func(o *Options) { o.Store = store })
	plain := newAsking(t, s, `{}`, servertest.ReplyTo)
	narrowed := newRooted(t, s, func(servertest.Ours) string { return g.Says("work/sub") })
	for _, k := range []struct {
		c           *asking
		name, value string
		want        string
	}{
		{plain, "source", "", `{"values":["obs:` + string(id) + `","leave","sub/","top.txt","two/"],"total":5}`},
		{plain, "source", "t", `{"values":["top.txt","two/"],"total":2}`},
		{plain, "source", "sub/s", `{"values":["sub/sub.txt"],"total":1}`},
		{plain, "source", "obs:", `{"values":["obs:` + string(id) + `"],"total":1}`},
		{plain, "source", "../", `{"values":[]}`},
		{plain, "source", "store/", `{"values":[]}`},
		{plain, "question", "t", `{"values":[]}`},
		{narrowed, "source", "s", `{"values":["sub.txt"],"total":1}`},
		{narrowed, "source", "../", `{"values":[]}`},
	} {
		var got string
		k.c.conn.Handle(t.Context(), []byte(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"investigate-output"},"argument":{"name":%q,"value":%q}}}`, k.name, k.value)),
			func(m []byte, last func()) error {
				if last != nil {
					got = strings.TrimSpace(string(m))
					return nil
				}
				var o servertest.Ours
				expect.OK(t, json.Unmarshal(m, &o))
				go k.c.conn.Handle(t.Context(), []byte(`{"jsonrpc":"2.0","id":`+string(o.ID)+`,`+k.c.answer(o)+`}`), nil)
				return nil
			})
		if want := `{"jsonrpc":"2.0","id":1,"result":{"completion":` + k.want + `}}`; got != want {
			t.Errorf("%s %q: %s, want %s", k.name, k.value, got, want)
		}
	}
}
