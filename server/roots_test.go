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

	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/internal/secrets"
	"github.com/mcp-funnel/mcp-funnel/internal/tree"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/fs"
)

// granted is a directory of the operator's: work is granted, its sub and its neighbours are there.
type granted struct {
	top  string
	root *tree.Root
}

func newGranted(t testing.TB) *granted {
	t.Helper()
	g := &granted{top: t.TempDir()}
	for _, dir := range []string{"work/sub", "work/two", "work/store", "outside", "work-evil"} {
		if err := os.MkdirAll(filepath.Join(g.top, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"work/top.txt", "work/sub/sub.txt", "work/two/two.txt", "work/store/secret.txt", "outside/secret.txt", "work-evil/secret.txt", "secret.txt"} {
		if err := os.WriteFile(filepath.Join(g.top, file), []byte("this is "+filepath.Base(file)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"work/leave": "../outside", "work/sub/up": ".."} {
		if err := os.Symlink(to, filepath.Join(g.top, link)); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if g.root, err = tree.Open(filepath.Join(g.top, "work"), filepath.Join(g.top, "work", "store")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.root.Close() })
	return g
}

func (g *granted) serve(o *Options) {
	o.Tools = append(o.Tools, fs.Find(), fs.Read())
	o.Sources = func(who funnel.Session) tools.Sources {
		return tools.Sources{Roots: []*tree.Root{g.root}, Owner: who.Owner}
	}
}

// says is the rest of a response with these directories as the client's roots.
func (g *granted) says(dirs ...string) string {
	roots := []map[string]string{}
	for _, dir := range dirs {
		uri := dir
		if !strings.Contains(dir, ":") {
			uri = "file://" + filepath.ToSlash(filepath.Join(g.top, dir))
		}
		roots = append(roots, map[string]string{"uri": uri, "name": "x"})
	}
	text, _ := json.Marshal(map[string]any{"roots": roots}) // of strings
	return `"result":` + string(text)
}

const canRoots = `{"roots":{"listChanged":true}}`

// newRooted is an initialized client that answers roots/list with what says returns.
func newRooted(t *testing.T, s *Server, says func(ours) string) *asking {
	c := newAsking(t, s, canRoots, says)
	c.ask(initialized)
	return c
}

func (c *asking) finds() string {
	c.t.Helper()
	return c.call(c.t.Context(), "1", "find", `{"glob":"**/*.txt"}`).text()
}

// TestClientRootsNarrow has the first call ask, as the client keeps no stream of its own open.
func TestClientRootsNarrow(t *testing.T) {
	g := newGranted(t)
	var log strings.Builder // nothing is logged but by the calls, which are made one by one
	s := newTestServer(t, g.serve, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	says := g.says("work/sub")
	c := newRooted(t, s, func(ours) string { return says })
	if got := c.finds(); !strings.Contains(got, "sub.txt") || strings.Contains(got, "top.txt") || strings.Contains(got, "two.txt") {
		t.Errorf("narrowed to sub, find says: %s", got)
	}
	for _, path := range []string{"top.txt", "../top.txt", "up/top.txt", filepath.Join(g.top, "work", "top.txt")} {
		if got := c.call(t.Context(), "1", "read", fmt.Sprintf(`{"path":%q}`, path)); !got.Result.IsError {
			t.Errorf("narrowed to sub, read %s says: %s", path, got.text())
		}
	}
	asked := len(c.seen)
	says = g.says("work/two", "work/sub")
	if got := c.finds(); strings.Contains(got, "two.txt") || len(c.seen) != asked {
		t.Errorf("asked again without need: %s", got)
	}
	c.ask(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
	if got := c.finds(); !strings.Contains(got, "two.txt") || !strings.Contains(got, "sub.txt") || strings.Contains(got, "top.txt") {
		t.Errorf("narrowed to both, find says: %s", got)
	}
	says = g.says("outside")
	c.ask(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
	for range 2 {
		contains(t, c.finds(), "none of the client's roots lies within a directory granted", "--no-client-roots")
	}
	says = g.says()
	c.ask(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
	contains(t, c.finds(), "top.txt", "sub.txt", "two.txt")
	if said := log.String(); strings.Count(said, "level=WARN") != 1 || !strings.Contains(said, "--no-client-roots") {
		t.Errorf("one warning a session of roots that leave nothing, and none that there is no stream to ask by: %s", said)
	}
}

// TestClientRootsUnknown has the client not say what its roots are: those granted hold.
func TestClientRootsUnknown(t *testing.T) {
	g := newGranted(t)
	for _, reply := range []string{`"error":{"code":-32601,"message":"no"}`, `"result":7`, `"result":{"roots":"x"}`, `"result":{}`} {
		c := newRooted(t, newTestServer(t, g.serve), func(ours) string { return reply })
		contains(t, c.finds(), "top.txt", "sub.txt")
		if len(c.seen) != 1 || c.seen[0].Method != "roots/list" {
			t.Errorf("%s: asked %+v", reply, c.seen)
		}
		contains(t, c.finds(), "top.txt")
	}
	// One that declares none, and a server that is not to look at them, ask nothing.
	c := newAsking(t, newTestServer(t, g.serve), `{}`, func(ours) string { return g.says("work/sub") })
	c.ask(initialized)
	contains(t, c.finds(), "top.txt")
	ignoring := newRooted(t, newTestServer(t, g.serve, func(o *Options) { o.IgnoreRoots = true }), func(ours) string { return g.says("work/sub") })
	contains(t, ignoring.finds(), "top.txt")
	if len(c.seen)+len(ignoring.seen) > 0 {
		t.Errorf("asked %+v, %+v", c.seen, ignoring.seen)
	}
}

// TestClientRootsLate has the client answer after calls have stopped to wait for it: the next call knows.
func TestClientRootsLate(t *testing.T) {
	g := newGranted(t)
	c := newRooted(t, newTestServer(t, g.serve, func(o *Options) { o.AskTimeout = 50 * time.Millisecond }), func(ours) string { return "" })
	for range 2 {
		contains(t, c.finds(), "top.txt", "sub.txt")
	}
	if len(c.seen) != 1 || c.seen[0].Method != "roots/list" {
		t.Fatalf("asked %+v", c.seen)
	}
	c.ask(`{"jsonrpc":"2.0","id":` + string(c.seen[0].ID) + `,` + g.says("work/sub") + `}`)
	wait(t, "the answer", func() bool {
		dirs, _, _ := c.conn.roots.look()
		return dirs != nil
	})
	if got := c.finds(); !strings.Contains(got, "sub.txt") || strings.Contains(got, "top.txt") {
		t.Errorf("narrowed to sub, find says: %s", got)
	}
}

// TestClientRootsAskedAgain has the client say nothing the first time.
func TestClientRootsAskedAgain(t *testing.T) {
	g := newGranted(t)
	s := newTestServer(t, g.serve, func(o *Options) { o.AskTimeout = 50 * time.Millisecond })
	s.rootsAgain = 200 * time.Millisecond
	says := ""
	c := newAsking(t, s, canRoots, func(ours) string { return says })
	c.conn.roots.due = true // as initialized does, which asks on a stream that is not there as well
	contains(t, c.finds(), "top.txt", "sub.txt")
	wait(t, "the question", func() bool {
		_, _, due := c.conn.roots.look()
		return due
	})
	s.askTimeout, s.rootsAgain = time.Minute, time.Minute
	says = g.says("work/sub")
	if got := c.finds(); !strings.Contains(got, "sub.txt") || strings.Contains(got, "top.txt") {
		t.Errorf("narrowed to sub, find says: %s", got)
	}
}

// TestClientRootsOverStdio has the server ask by itself, and a call that comes at once wait for the answer.
func TestClientRootsOverStdio(t *testing.T) {
	g := newGranted(t)
	p := servePipe(t, t.Context(), newTestServer(t, g.serve))
	p.write(strings.Replace(initialize, `"capabilities":{}`, `"capabilities":`+canRoots, 1), initialized, toolCall("1", "find", `{"glob":"**/*.txt"}`, ""))
	p.read()
	q, _ := p.read()
	if q.Method != "roots/list" {
		t.Fatalf("%+v", q)
	}
	p.write(`{"jsonrpc":"2.0","id":` + string(q.ID) + `,` + g.says("work/two") + `}`)
	if m, _ := p.read(); string(m.ID) != "1" || !strings.Contains(string(m.Result), "two.txt") || strings.Contains(string(m.Result), "sub.txt") {
		t.Errorf("%+v: %s", m, m.Result)
	}
	_ = p.in.Close()
	if err := p.end(); err != nil {
		t.Error(err)
	}
}

// TestS26ClientRootsNeverWiden has a client name roots of all sorts and count what it can read of what
// was not granted. The control takes the client's word for it.
func TestS26ClientRootsNeverWiden(t *testing.T) {
	g := newGranted(t)
	names := []string{"", "/", "work", "outside", "work-evil", "work/..", "work/../outside", "work/leave", "work/sub/up", "work/sub/up/..",
		"work/store", "work/top.txt", "work/none", "file:///", "file://localhost/", "FILE:///", "file:///proc/self/root" + g.top,
		"file:" + g.top, "file:.", "file:///..", "file://elsewhere" + g.top, "https://example.org/", "file:///%00", "file:///%2e%2e", "::", "file://" + g.top + "/work/%2e%2e/outside"}
	secrets := []string{"outside/secret.txt", "work-evil/secret.txt", "work/store/secret.txt", "secret.txt"}
	// try counts the secrets that are read with each pair of names as the client's roots.
	try := func(s *Server) (cases, found int) {
		for i, one := range names {
			says := g.says(one, names[(i+7)%len(names)])
			c := newRooted(t, s, func(ours) string { return says })
			spelt := []string{"secret.txt", "../secret.txt", "outside/secret.txt", "../outside/secret.txt", "up/../../secret.txt", "leave/secret.txt", "store/secret.txt", "work/store/secret.txt"}
			for _, secret := range secrets {
				spelt = append(spelt, filepath.Join(g.top, secret))
			}
			for _, path := range spelt {
				cases++
				if got := c.call(t.Context(), "1", "read", fmt.Sprintf(`{"path":%q}`, path)); strings.Contains(got.text(), "this is secret.txt") {
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
	cases, found := try(newTestServer(t, g.serve))
	all, err := tree.Open(g.top) // what a client's word would be taken for
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = all.Close() }()
	_, control := try(newTestServer(t, g.serve, func(o *Options) {
		o.IgnoreRoots = true
		o.Sources = func(who funnel.Session) tools.Sources {
			return tools.Sources{Roots: []*tree.Root{all}, Owner: who.Owner}
		}
	}))
	promise.Kept(t, promise.Proof{Promise: "S26", Cases: cases, Failures: found, Control: control})
}

// A name that holds a secret is not proposed, by a server that masks.
func TestS23CompletionShowsNoSecret(t *testing.T) {
	g := newGranted(t)
	token := "ghp_" + strings.Repeat("aB3dE6gH9", 4)
	if err := os.WriteFile(filepath.Join(g.top, "work", "t-"+token), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	shows := func(mask *secrets.Masker) int {
		c := newClient(t, newTestServer(t, g.serve, func(o *Options) { o.Mask = mask }))
		said := c.ask(`{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"investigate-output"},"argument":{"name":"source","value":"t"}}}`)
		contains(t, said, `"top.txt"`)
		n := strings.Count(said, token[8:24])
		if !strings.Contains(said, `"total":2}`) { // top.txt and two/; a count would tell of it too
			n++
		}
		return n
	}
	promise.Kept(t, promise.Proof{Promise: "S23", Cases: 1, Failures: shows(secrets.New()), Control: shows(nil), Figures: "names that are proposed; control: nothing is masked"})
}

// TestCompletionOfPaths proposes observations and what lies under the roots, the client's own included.
func TestCompletionOfPaths(t *testing.T) {
	g := newGranted(t)
	store := newTestStore(t)
	id := keep(t, store, "local", "x", observations.Seen{})
	s := newTestServer(t, g.serve, func(o *Options) { o.Store = store })
	plain := newAsking(t, s, `{}`, replyTo)
	narrowed := newRooted(t, s, func(ours) string { return g.says("work/sub") })
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
				var o ours
				if err := json.Unmarshal(m, &o); err != nil {
					t.Error(err)
				}
				go k.c.conn.Handle(t.Context(), []byte(`{"jsonrpc":"2.0","id":`+string(o.ID)+`,`+k.c.answer(o)+`}`), nil)
				return nil
			})
		if want := `{"jsonrpc":"2.0","id":1,"result":{"completion":` + k.want + `}}`; got != want {
			t.Errorf("%s %q: %s, want %s", k.name, k.value, got, want)
		}
	}
}
