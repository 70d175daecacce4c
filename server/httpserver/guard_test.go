package httpserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/records"
	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/server/servertest"
	"github.com/mcp-funnel/mcp-funnel/system/database"
	"github.com/mcp-funnel/mcp-funnel/system/database/databasetest"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// hostile is a request as a web page, a stranger or a confused proxy might send it, with everything else
// about it right: the token too, except where it is about that.
type hostile struct {
	name string
	with with
	post bool // says something of POST alone
}

func host(name string) with { return func(r *http.Request) { r.Host = name } }

func without(name string) with { return func(r *http.Request) { r.Header.Del(name) } }

func twice(name, one, two string) with {
	return func(r *http.Request) { r.Header[http.CanonicalHeaderKey(name)] = []string{one, two} }
}

func query(q string) with {
	return func(r *http.Request) {
		if r.URL.RawQuery != "" {
			q = r.URL.RawQuery + "&" + q
		}
		r.URL.RawQuery = q
	}
}

func all(changes ...with) with {
	return func(r *http.Request) {
		for _, c := range changes {
			c(r)
		}
	}
}

func hostiles() []hostile {
	var list []hostile
	add := func(post bool, name string, w with) { list = append(list, hostile{name, w, post}) }
	for _, origin := range []string{
		"https://evil.example", "http://evil.example:8080", "null", "http://localhost.evil", "http://127.0.0.1.evil.example",
		"http://localhost@evil.example", "http://evil.example#localhost", "file://", "chrome-extension://abcdef", "http://", "localhost",
		"http://localhost/path", "http://localhost:6274", "http://127.0.0.1", "https://0.0.0.0", "http://[::ffff:10.0.0.1]", "*", " ",
	} {
		add(false, "Origin "+origin, header("Origin", origin))
	}
	add(false, "an empty Origin", func(r *http.Request) { r.Header["Origin"] = []string{""} })
	add(false, "two Origins", twice("Origin", "http://localhost", "https://evil.example"))
	for _, name := range []string{
		"evil.example", "evil.example:8080", "localhost.evil", "0.0.0.0", "127.0.0.1.nip.io", "169.254.169.254", "[::]:80", "localhost.",
		"10.0.0.1", "[fe80::1%25lo]",
	} {
		add(false, "Host "+name, host(name))
	}
	for name, values := range map[string][]string{
		"Sec-Fetch-Site": {"cross-site", "same-site", "none", "strange"},
		"Sec-Fetch-Mode": {"no-cors", "navigate", "websocket", "strange"},
		"Sec-Fetch-Dest": {"document", "iframe", "script", "image", "worker"},
	} {
		for _, v := range values {
			add(false, name+" "+v, header(name, v))
		}
	}
	add(false, "two Sec-Fetch-Sites", twice("Sec-Fetch-Site", "same-origin", "cross-site"))
	add(false, "a form of another site", all(header("Origin", "https://evil.example"), header("Sec-Fetch-Site", "cross-site"),
		header("Sec-Fetch-Mode", "no-cors"), header("Content-Type", "text/plain"), without("Authorization")))
	for _, kind := range []string{
		"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/json", "application/x-ndjson",
		"application/json; charset=utf-16", "application/json, text/plain", ";",
	} {
		add(true, "Content-Type "+kind, header("Content-Type", kind))
	}
	add(true, "no Content-Type", without("Content-Type"))
	add(true, "two Content-Types", twice("Content-Type", "application/json", "text/plain"))
	add(true, "packed", header("Content-Encoding", "gzip"))
	add(false, "no token", without("Authorization"))
	add(false, "wrong token", as(strings.Repeat("0", 32)))
	add(false, "a part of the token", as(testToken[:31]))
	add(false, "more than the token", as(testToken+"0"))
	add(false, "token in other case", as(strings.ToUpper(testToken)))
	add(false, "no scheme", header("Authorization", testToken))
	add(false, "another scheme", header("Authorization", "Basic "+testToken))
	add(false, "two tokens", twice("Authorization", "Bearer "+strings.Repeat("0", 32), "Bearer "+testToken))
	add(false, "token in the query", all(without("Authorization"), query("access_token="+testToken)))
	add(false, "token in the query too", query("token="+testToken))
	add(false, "token in a cookie", all(without("Authorization"), header("Cookie", "token="+testToken)))
	add(false, "token in another header", all(without("Authorization"), header("X-API-Key", testToken)))
	for _, method := range []string{http.MethodPut, http.MethodPatch, "TRACE", http.MethodHead, "STRANGE"} {
		add(false, method, func(r *http.Request) { r.Method = method })
	}
	return list
}

// touched is a server with a tool that counts how often it ran.
func touched(t testing.TB) (*server.Server, *atomic.Int64) {
	n := new(atomic.Int64)
	return newTestServer(t, func(o *server.Options) {
		o.MaxMessage = 1 << 20
		o.Tools = []tools.Tool{tools.New(tools.Tool{Name: "touch", Title: "Touch", Description: "Counts."},
			func(context.Context, struct{}, tools.Input, tools.Output) error { n.Add(1); return nil })}
	}), n
}

// serveOpen is a server with the guard given, or without any.
func serveOpen(t testing.TB, s *server.Server, off bool) *webServer {
	h, err := newHTTP(t.Context(), s, Options{Identities: map[string]string{testToken: "local"}, SSE: true})
	expect.Must(t, err)
	if off {
		h.authorize = func(http.ResponseWriter, *http.Request, route) (caller, *refusal) {
			return caller{owner: observations.Local}, nil
		}
	}
	return serveHandler(t, h)
}

// serveHandler is a face on a plain server.
func serveHandler(t testing.TB, h *httpServer) *webServer {
	srv := httptest.NewServer(h)
	t.Cleanup(func() {
		h.end(server.ErrEnding)
		srv.CloseClientConnections()
		srv.Close()
	})
	return &webServer{t: t, url: srv.URL, http: srv.Client()}
}

// attack sends every hostile request to every endpoint, where the way is prepared as well as an attacker
// could wish for: a session is open, its ID is known. It says how many there were, and which had an effect. What this
// client itself would not send is no case.
func attack(t *testing.T, off bool) (cases int, effects []string) {
	s, ran := touched(t)
	w := serveOpen(t, s, off)
	session := w.open()
	stream := w.openSSE()
	defer stream.close()
	stream.post(servertest.Initialize)
	stream.next()
	call := servertest.ToolCall("1", "touch", "{}", "")
	stateless, headers := modern("tools/call", "touch", `"name":"touch","arguments":{}`)
	endpoints := []struct {
		method, path, body string
		with               with
	}{
		{http.MethodPost, "/mcp", call, session},
		{http.MethodPost, "/mcp", stateless, all(headers...)},
		{http.MethodPost, "/mcp", servertest.Initialize, all()},
		{http.MethodGet, "/mcp", "", session},
		{http.MethodDelete, "/mcp", "", session},
		{http.MethodGet, "/sse", "", all()},
		{http.MethodPost, stream.path, call, all()},
		{http.MethodGet, "/metrics", "", all()},
		{http.MethodGet, "/healthz", "", all()},
	}
	unsent := map[string]error{}
	for _, e := range endpoints {
		ends := e.method == http.MethodDelete
		if off && e.body == "" && !ends { // the control is about the tool, and the session
			continue
		}
		for _, h := range hostiles() {
			if h.post && e.method != http.MethodPost || e.path == "/healthz" && strings.Contains(h.name, "token") ||
				e.path == "/healthz" && strings.Contains(h.name, "scheme") {
				continue
			}
			if off && ends { // the one before may have been ended
				e.with = w.open()
			}
			before := ran.Load()
			ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
			res, err := w.request(ctx, e.method, e.path, e.body, e.with, h.with)
			effect := ""
			switch {
			case errors.Is(err, context.DeadlineExceeded):
				effect = "no answer"
			case err != nil: // net/http itself would not send it
				unsent[h.name] = err
				stop()
				continue
			case res.StatusCode < 400 && e.path == "/healthz" && h.name == http.MethodHead: // as GET, open to all
			case res.StatusCode < 400:
				effect = res.Status
			case res.Header.Get("Access-Control-Allow-Origin") == "https://evil.example":
				effect = "may be read"
			default:
				text, _ := io.ReadAll(io.LimitReader(res.Body, 1<<16))
				if bytes.Contains(text, []byte(testToken)) {
					effect = "echoes the token"
				} else if len(bytes.TrimSpace(text)) == 0 && h.name != http.MethodHead {
					effect = "says nothing of the way out"
				}
			}
			stop()
			if err == nil {
				_ = res.Body.Close()
			}
			if ran.Load() != before {
				effect = "the tool ran"
			}
			cases++
			if effect != "" {
				effects = append(effects, fmt.Sprintf("%s %s, %s: %s", e.method, e.path, h.name, effect))
			}
		}
	}
	for name, err := range unsent {
		t.Logf("not sent: %s: %v", name, err)
	}
	if len(unsent) > 5 {
		t.Errorf("%d kinds of request were not sent", len(unsent))
	}
	return cases, effects
}

func TestS18NoPageDrivesIt(t *testing.T) {
	if n := len(hostiles()); n < 40 {
		t.Fatalf("%d hostile requests", n)
	}
	cases, effects := attack(t, false)
	for _, e := range effects {
		t.Error(e)
	}
	_, control := attack(t, true)
	ran, ended := 0, 0
	for _, e := range control {
		switch {
		case strings.HasSuffix(e, "the tool ran"):
			ran++
		case strings.HasPrefix(e, "DELETE ") && strings.HasSuffix(e, ": 204 No Content"):
			ended++
		}
	}
	if ran == 0 || ended == 0 {
		t.Errorf(
			"with the guard off the tool ran %d times, and %d sessions were ended: what is tried proves nothing", ran, ended,
		)
	}
	promise.Kept(t, promise.Proof{Promise: "S18", Cases: cases, Failures: len(effects), Control: ran + ended,
		Figures: fmt.Sprintf("%d hostile requests; with the guard off %d take effect", len(hostiles()), len(control))})
}

// TestEveryRouteIsGuarded walks the routes, and paths that are none: nothing answers a stranger but /healthz and /readyz.
func TestEveryRouteIsGuarded(t *testing.T) {
	w := serveWeb(t, newTestServer(t))
	h, err := newHTTP(t.Context(), newTestServer(t), Options{NoToken: true, SSE: true})
	expect.Must(t, err)
	open := map[string]string{"/healthz": "ok\n", "/readyz": "ready\n"}
	paths := []string{
		"/", "/nothing", "/mcp/", "//mcp", "/metrics/..", "/debug/pprof/", "/.well-known/oauth-protected-resource",
	}
	for _, r := range h.routes() {
		paths = append(paths, r.path)
	}
	for _, path := range paths {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete, http.MethodOptions} {
			for name, change := range map[string]with{"no token": without("Authorization"), "foreign host": host("evil.example"), "foreign origin": header("Origin", "https://evil.example")} {
				got := w.do(method, path, "{}", change)
				if open[path] != "" && name == "no token" && method == http.MethodGet {
					if got.status != http.StatusOK || got.body != open[path] {
						t.Errorf("%s: %+v", path, got)
					}
					continue
				}
				if got.status != http.StatusUnauthorized && got.status != http.StatusForbidden &&
					!(open[path] != "" && got.status == http.StatusMethodNotAllowed) {
					t.Errorf("%s %s, %s: %d %s", method, path, name, got.status, got.body)
				}
			}
		}
	}
	for _, path := range paths[:7] {
		w.do(http.MethodGet, path, "").is(t, http.StatusNotFound)
	}
	// Without --sse the legacy paths are not there.
	w = serveWeb(t, newTestServer(t), func(o *Options) { o.SSE = false })
	w.do(http.MethodGet, "/sse", "").is(t, http.StatusNotFound)
}

func TestGuardTakes(t *testing.T) {
	w := serveWeb(t, newTestServer(t), func(o *Options) {
		o.Hosts = []string{"funnel.example", "other.example:8080"}
		o.Origins = []string{"https://app.example", "chrome-extension://abcdefgh"}
	})
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	session := w.open()
	for name, change := range map[string]with{
		"an allowed host":          host("Funnel.Example:1234"),
		"an allowed host and port": host("other.example:8080"),
		"localhost":                host("localhost"),
		"IPv6":                     host("[::1]:80"),
		"an allowed origin": all(
			header("Origin", "https://app.example"), header("Sec-Fetch-Site", "cross-site"), header("Sec-Fetch-Mode", "cors"),
			header("Sec-Fetch-Dest", "empty"),
		),
		"an allowed extension": all(
			header("Origin", "chrome-extension://abcdefgh"), header("Sec-Fetch-Site", "none"), header("Sec-Fetch-Mode", "cors"),
		),
		"a page of this server": all(
			header("Origin", "http://localhost:80"), host("localhost:80"), header("Sec-Fetch-Site", "same-origin"),
			header("Sec-Fetch-Mode", "cors"),
		),
		"the same origin":           header("Sec-Fetch-Site", "same-origin"),
		"a scheme in other letters": header("Authorization", "bEARER "+testToken),
		"a charset":                 header("Content-Type", `application/json; charset="UTF-8"`),
	} {
		if got := w.post(ping, session, change); got.status != http.StatusOK {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	got := w.post(ping, session, header("Origin", "https://app.example"))
	if got.header.Get("Access-Control-Allow-Origin") != "https://app.example" ||
		!strings.Contains(got.header.Get("Access-Control-Expose-Headers"), "Mcp-Session-Id") {
		t.Errorf("%+v", got.header)
	}
	if got := w.post(ping, session); got.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("%+v", got.header)
	}
	// A browser asks first, without the token.
	asks := all(
		without("Authorization"), header("Access-Control-Request-Method", "POST"),
		header("Access-Control-Request-Headers", "authorization"),
	)
	got = w.do(http.MethodOptions, "/mcp", "", asks, header("Origin", "https://app.example"))
	if got.status != http.StatusNoContent || !strings.Contains(got.header.Get("Access-Control-Allow-Methods"), "POST") ||
		!strings.Contains(got.header.Get("Access-Control-Allow-Headers"), "Authorization") {
		t.Errorf("%+v", got)
	}
	for _, origin := range []string{"https://evil.example", "null"} {
		got := w.do(http.MethodOptions, "/mcp", "", asks, header("Origin", origin))
		if got.status != http.StatusForbidden || got.header.Get("Access-Control-Allow-Methods") != "" {
			t.Errorf("%s: %+v", origin, got)
		}
	}
}

func TestGuardRefusesOptions(t *testing.T) {
	for name, o := range map[string]Options{
		"no token":              {},
		"a short token":         {Identities: map[string]string{"short": "local"}},
		"a spaced token":        {Identities: map[string]string{strings.Repeat("a ", 20): "local"}},
		"no owner":              {Identities: map[string]string{testToken: ""}},
		"a strange owner":       {Identities: map[string]string{testToken: "../x"}},
		"a host with a path":    {NoToken: true, Hosts: []string{"example.com/x"}},
		"an origin with a path": {NoToken: true, Origins: []string{"https://example.com/"}},
		"any origin":            {NoToken: true, Origins: []string{"*"}},
	} {
		if _, err := Handler(newTestServer(t), o); err == nil || strings.Contains(err.Error(), testToken) ||
			strings.Contains(err.Error(), "short\"") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLargeBodies has more sent than is taken, told beforehand and not, and more at once than all may take.
func TestLargeBodies(t *testing.T) {
	s, ran := touched(t)
	w := serveWeb(t, s)
	session := w.open()
	large := servertest.ToolCall("1", "touch", `{"x":"`+strings.Repeat("x", 1<<20)+`"}`, "")
	for name, change := range map[string]with{
		"told": all(), "chunked": func(r *http.Request) { r.ContentLength = -1; r.TransferEncoding = []string{"chunked"} },
	} {
		ctx, stop := context.WithCancel(t.Context())
		res, err := w.request(ctx, http.MethodPost, "/mcp", large, session, change)
		if err == nil {
			text, _ := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if res.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(string(text), "--max-message") {
				t.Errorf("%s: %s %s", name, res.Status, text)
			}
		} // else the server closed the connection before all was sent, as it may
		stop()
	}
	if ran.Load() > 0 {
		t.Error("the tool ran")
	}
	if got := w.post(servertest.ToolCall("1", "touch", "{}", ""), session); got.status != http.StatusOK ||
		ran.Load() != 1 {
		t.Errorf("%+v", got)
	}
}

func TestBodyBudget(t *testing.T) {
	b := newBodyBudget(100)
	if !b.reserve("ann", 0, freeBytes) || b.Count() != 0 {
		t.Error("the first part is free")
	}
	if !b.reserve("ann", freeBytes-10, 60) || b.Count() != 50 || b.reserve("ann", freeBytes, 60) ||
		!b.reserve("ann", freeBytes, 50) {
		t.Errorf("%d held", b.Count())
	}
	b.release("ann", freeBytes+50)
	b.release("ann", freeBytes+50)
	b.release("ann", 10)
	expect.Equal(t, b.Count(), 0, "held")
}

// logBuffer may be read while it is written.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// TestTokensAreNotLogged sends a token in every wrong place, and looks for it in the log at its finest and in what is
// answered.
func TestTokensAreNotLogged(t *testing.T) {
	const planted = "PLANTEDplantedPLANTEDplantedPLANTED0"
	var log logBuffer
	s := newTestServer(t, func(o *server.Options) {
		o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.Level(-100)}))
	})
	w := serveWeb(t, s, func(o *Options) { o.Identities[planted] = "planted" })
	session := w.open(as(planted))
	shown := ""
	for i, h := range hostiles() {
		if testing.Short() && i%8 > 0 {
			continue
		}
		for _, change := range []with{
			as(planted), as(planted + "x"), header("Authorization", planted), query(
				"access_token=" + planted,
			), query(planted), header("Cookie", planted),
		} {
			for _, path := range []string{"/mcp", "/sse", "/metrics", "/" + planted} {
				ctx, stop := context.WithCancel(t.Context())
				if res, err := w.request(ctx, http.MethodPost, path, "{", h.with, change); err == nil {
					text, _ := io.ReadAll(io.LimitReader(res.Body, 1<<16))
					shown += string(text)
					_ = res.Body.Close()
				}
				stop()
			}
		}
	}
	w.post(`{"jsonrpc":"2.0","id":1,"method":"`+strings.Repeat("x", 300)+`"}`, as(planted), session)
	if strings.Contains(shown, planted) {
		t.Error("a token is echoed")
	}
	if text := log.String(); strings.Contains(text, planted) || !strings.Contains(text, "refused") {
		t.Errorf("the log holds the token, or not what is looked for:\n%.2000s", text)
	}
}

func TestTokenFiles(t *testing.T) {
	a, b := strings.Repeat("a", 32), strings.Repeat("b", 40)
	write := func(text string, mode os.FileMode) string {
		path := filepath.Join(t.TempDir(), "tokens")
		expect.Must(t, os.WriteFile(path, []byte(text), mode))
		return path
	}
	got, err := ReadTokens(write("# people\n\nanna: "+a+"\r\nbob:"+b+"\n", 0o600))
	if err != nil || len(got) != 2 || got[a] != "anna" || got[b] != "bob" {
		t.Errorf("%v %v", got, err)
	}
	if got, err := ReadTokens(write(a, 0o400)); err != nil || got[a] != observations.Local {
		t.Errorf("%v %v", got, err)
	}
	for name, k := range map[string]struct {
		text string
		mode os.FileMode
		want string
	}{
		"readable by others":   {a, 0o644, "chmod 600"},
		"readable by a group":  {a, 0o640, "chmod 600"},
		"empty":                {"# none\n", 0o600, "no token in it"},
		"a short one":          {"anna: " + a + "\nbob: " + a[:31], 0o600, "line 2: 31 bytes"},
		"one token twice":      {"anna: " + a + "\nbob: " + a, 0o600, "line 2"},
		"one identity twice":   {"anna: " + a + "\nAnna: " + b, 0o600, "line 2"},
		"two without names":    {a + "\n" + b, 0o600, "line 2"},
		"a strange identity":   {"../x: " + a, 0o600, "line 1"},
		"the operator's own":   {"local: " + a, 0o600, "line 1: the identity local is that of the operator's own"},
		"the same in capitals": {"anna: " + a + "\nLOCAL: " + b, 0o600, "line 2: the identity LOCAL"},
		"spaces within":        {"anna: " + a + " " + b, 0o600, "visible ASCII"},
		"too large":            {strings.Repeat("#\n", maxTokenFile), 0o600, "at most"},
	} {
		got, err := ReadTokens(write(k.text, k.mode))
		if err == nil || !strings.Contains(err.Error(), k.want) || strings.Contains(err.Error(), a[:20]) {
			t.Errorf("%s: %v %v", name, got, err)
		}
	}
	for _, path := range []string{filepath.Join(t.TempDir(), "none"), t.TempDir()} {
		if got, err := ReadTokens(path); err == nil {
			t.Errorf("%s: %v", path, got)
		}
	}
}

func TestKeepToken(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := KeepToken(records.InDir(filepath.Join(dir, "none"))); err == nil {
		t.Error("kept without a store")
	}
	texts := make(chan string, 8)
	for range cap(texts) { // as many servers start at once
		go func() {
			tokens, where, err := KeepToken(records.InDir(dir))
			expect.OK(t, err)
			expect.Equal(t, where, TokenPath(dir))
			texts <- fmt.Sprint(tokens)
		}()
	}
	first := <-texts
	for range cap(texts) - 1 {
		expect.Equal(t, <-texts, first)
	}
	tokens := expect.Value(ReadTokens(TokenPath(dir)))(t)
	expect.Equal(t, fmt.Sprint(tokens), first)
	expect.Must(t, os.WriteFile(TokenPath(dir), []byte("short"), 0o600))
	_, _, err := KeepToken(records.InDir(dir))
	expect.Fails(t, err, TokenPath(dir))
}

func TestKeepSessionKey(t *testing.T) {
	url := databasetest.URL(t)
	var keys []string
	for range 2 { // replicas
		db := expect.Value(database.Open(t.Context(), database.Options{URL: url}))(t)
		defer db.Close()
		key := expect.Value(KeepSessionKey(records.InDatabase(db)))(t)
		keys = append(keys, string(key))
	}
	if keys[0] != keys[1] || len(keys[0]) < minKey {
		t.Errorf("%d and %d bytes", len(keys[0]), len(keys[1]))
	}
	databasetest.Exec(t, url, "update records set body = 'short'")
	db := expect.Value(database.Open(t.Context(), database.Options{URL: url}))(t)
	defer db.Close()
	expect.Fails(t, expect.Err(KeepSessionKey(records.InDatabase(db))), "session-key of kind secret")
}
