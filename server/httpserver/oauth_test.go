package httpserver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/oauth2-proxy/mockoidc"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/records"
	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/server/links"
	"github.com/mcp-funnel/mcp-funnel/server/oauth"
	"github.com/mcp-funnel/mcp-funnel/server/servertest"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// provider is mockoidc on loopback.
type provider struct {
	*mockoidc.MockOIDC
	t testing.TB
}

func newProvider(t testing.TB) provider {
	m := expect.Value(mockoidc.Run())(t)
	t.Cleanup(func() { _ = m.Shutdown() })
	_ = expect.Value(m.Keypair.KeyID())(t) // mockoidc computes it at the first use, without a lock
	return provider{m, t}
}

const resource = "https://funnel.example/mcp"

// verifier returns the verifier of a server of this provider, with its keys.
func (p provider) verifier(o oauth.Options) *oauth.Verifier {
	p.t.Helper()
	o.Issuer, o.Audiences = p.Issuer(), []string{resource, p.ClientID}
	v := expect.Value(oauth.New(o))(p.t)
	p.run(v)
	for wait := 0; ; wait++ {
		if _, _, err := v.Verify(p.t.Context(), p.token(nil)); err == nil {
			return v
		} else if wait == 3000 {
			p.t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (p provider) run(v *oauth.Verifier) {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { v.Run(ctx); close(done) }()
	p.t.Cleanup(func() { stop(); <-done })
}

// token returns a valid token with changed claims; nil removes one.
func (p provider) token(change jwt.MapClaims) string {
	p.t.Helper()
	c := jwt.MapClaims{
		"iss": p.Issuer(), "aud": resource, "sub": "anna", "exp": time.Now().Add(time.Hour).Unix(), "scope": "funnel",
	}
	maps.Copy(c, change)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return expect.Value(p.Keypair.SignJWT(c))(p.t)
}

// flow gets an access token as a client does, with a code.
func (p provider) flow() string {
	p.t.Helper()
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	form := url.Values{
		"scope": {"openid"}, "state": {"s"}, "client_id": {p.ClientID}, "response_type": {"code"},
		"redirect_uri": {"http://127.0.0.1/back"},
	}
	r, err := client.Get(p.AuthorizationEndpoint() + "?" + form.Encode())
	expect.Must(p.t, err)
	_ = r.Body.Close()
	back := expect.Value(r.Location())(p.t)
	r, err = client.PostForm(p.TokenEndpoint(), url.Values{
		"client_id": {p.ClientID}, "client_secret": {p.ClientSecret}, "grant_type": {"authorization_code"},
		"code": {back.Query().Get("code")},
	})
	expect.Must(p.t, err)
	defer func() { _ = r.Body.Close() }()
	var got struct {
		Token string `json:"access_token"`
	}
	expect.Must(p.t, json.NewDecoder(r.Body).Decode(&got))
	return got.Token
}

// withRoots gives the server the directories a, b and c, and a tool that lists the roots of a call.
func withRoots(t testing.TB) (dir string, change func(*server.Options)) {
	dir = expect.Value(filepath.EvalSymlinks(t.TempDir()))(t)
	var set source.Set
	for _, name := range []string{"a", "b", "c"} {
		expect.Must(t, os.MkdirAll(filepath.Join(dir, name, "sub"), 0o700))
		set.Roots = append(set.Roots, expect.Value(tree.Open(filepath.Join(dir, name)))(t))
	}
	t.Cleanup(set.Close)
	return dir, func(o *server.Options) {
		o.Sources = func(funnel.Session) source.Set { return set }
		o.Tools = append(o.Tools, tools.New(tools.Tool{Name: "roots", Title: "Roots", Description: "Lists the roots."},
			func(_ context.Context, _ struct{}, in tools.Input, out tools.Output) error {
				if len(in.Sources.Roots) == 0 {
					return in.Sources.NoRoot
				}
				for _, r := range in.Sources.Roots {
					_, _ = fmt.Fprintf(out, "[%s]", strings.TrimPrefix(r.Dir(), dir))
				}
				return nil
			}))
	}
}

var say = servertest.ToolCall("1", "say", `{"text":"x"}`, "")

// A client finds the issuer, gets a token of it and opens a session. Static tokens count beside it.
func TestAccessTokens(t *testing.T) {
	p := newProvider(t)
	w := serveWeb(t, newTestServer(t), func(o *Options) { o.OAuth = p.verifier(oauth.Options{}) })
	got := w.post(servertest.Initialize, without("Authorization"))
	got.is(t, http.StatusUnauthorized, "a token is required")
	expect.Equal(t, got.header.Get("WWW-Authenticate"),
		`Bearer resource_metadata="https://funnel.example/.well-known/oauth-protected-resource/mcp"`)
	for _, path := range []string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"} {
		got := w.do(http.MethodGet, path, "", without("Authorization"))
		got.is(t, http.StatusOK, `"resource":"`+resource+`"`, `"authorization_servers":["`+p.Issuer()+`"]`)
		expect.Equal(t, got.header.Get("Content-Type"), "application/json")
		w.do(http.MethodPost, path, "{}", without("Authorization")).is(t, http.StatusMethodNotAllowed)
		w.do(http.MethodGet, path, "", without("Authorization"), host("evil.example")).is(t, http.StatusForbidden)
		w.do(http.MethodGet, path, "", without("Authorization"), query("a=b")).is(t, http.StatusBadRequest)
	}
	w.do(http.MethodGet, "/.well-known/oauth-protected-resource/other", "").is(t, http.StatusNotFound)
	mine := as(p.flow())
	session := w.open(mine)
	w.post(say, mine, session).is(t, http.StatusOK, `"text":"x"`)
	w.post(say, as(testToken), w.open()).is(t, http.StatusOK, `"text":"x"`)
	w.post(say, as(testToken), session).is(t, http.StatusNotFound, "session not found")
	modern := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say","arguments":{"text":"y"},` +
		servertest.ModernMeta + "}}"
	w.post(modern, mine, header("Mcp-Protocol-Version", "2026-07-28"), header("Mcp-Method", "tools/call"),
		header("Mcp-Name", "say")).is(t, http.StatusOK, `"text":"y"`)
}

// Requests of an attacker never reach a tool; the refusal says what the client should do.
func TestAttacksOnAccessTokens(t *testing.T) {
	p := newProvider(t)
	srv, ran := touched(t)
	v := p.verifier(oauth.Options{Scopes: []string{"funnel"}})
	w := serveWeb(t, srv, func(o *Options) { o.OAuth, o.Identities = v, nil })
	ago := func(d time.Duration) int64 { return time.Now().Add(-d).Unix() }
	good := p.token(nil)
	parts := strings.Split(good, ".")
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + parts[1] + "."
	public := p.Keypair.PublicKey.N.Bytes()
	hmac := expect.Value(jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"iss": p.Issuer(), "aud": resource, "sub": "anna", "exp": time.Now().Add(time.Hour).Unix(), "scope": "funnel",
	}).SignedString(public))(t)
	anna, bert := as(good), as(p.token(jwt.MapClaims{"sub": "bert"}))
	theirs := w.open(anna)
	touch := servertest.ToolCall("1", "touch", `{}`, "")
	for name, c := range map[string]struct {
		with   with
		status int
		code   string // in WWW-Authenticate
	}{
		"alg none":          {as(none), 401, "invalid_token"},
		"HS256":             {as(hmac), 401, "invalid_token"},
		"wrong iss":         {as(p.token(jwt.MapClaims{"iss": "https://login.example"})), 401, "invalid_token"},
		"wrong aud":         {as(p.token(jwt.MapClaims{"aud": "https://funnel.example"})), 401, "invalid_token"},
		"list of wrong aud": {as(p.token(jwt.MapClaims{"aud": []string{"a", "b"}})), 401, "invalid_token"},
		"expired":           {as(p.token(jwt.MapClaims{"exp": ago(2 * time.Minute)})), 401, "invalid_token"},
		"not valid yet":     {as(p.token(jwt.MapClaims{"nbf": ago(-2 * time.Minute)})), 401, "invalid_token"},
		"no scope":          {as(p.token(jwt.MapClaims{"scope": nil})), 403, "insufficient_scope"},
		"static token":      {as(testToken), 401, "invalid_token"},
		"no token":          {without("Authorization"), 401, ""},
		"another scheme":    {header("Authorization", "DPoP "+good), 401, ""},
		"two tokens":        {twice("Authorization", "Bearer "+good, "Bearer "+good), 401, ""},
		"in the query":      {all(without("Authorization"), query("access_token="+good)), 400, "none"},
		"in the query too":  {query("access_token=" + good), 400, "none"},
		"huge":              {as(good + strings.Repeat("A", 12<<10)), 401, "invalid_token"},
		"session of anna":   {bert, 404, "none"},
	} {
		got := w.post(touch, anna, theirs, c.with)
		expect.Equal(t, got.status, c.status, "%s: %+v", name, got)
		challenge := got.header.Get("WWW-Authenticate")
		if c.code == "none" {
			expect.Equal(t, challenge, "", name)
			continue
		}
		expect.Contains(t, challenge, `Bearer resource_metadata="`, `scope="funnel"`)
		expect.Equal(t, strings.Contains(challenge, "error="), c.code != "", name)
		expect.Contains(t, challenge, c.code)
		if strings.Contains(got.body, parts[2]) || strings.Contains(got.body, parts[1]) {
			t.Errorf("%s: the answer repeats the token: %s", name, got.body)
		}
	}
	res, err := w.request(t.Context(), http.MethodPost, "/mcp", touch, theirs, as(good+strings.Repeat("A", 1<<20)))
	if err == nil { // else the server has closed the connection before the client had sent all
		expect.Equal(t, res.StatusCode, http.StatusRequestHeaderFieldsTooLarge)
		_ = res.Body.Close()
	}
	expect.Equal(t, ran.Load(), 0, "calls")
	w.post(touch, anna, theirs).is(t, http.StatusOK)
	expect.Equal(t, ran.Load(), 1, "calls")
	// The control: a guard that reads the claims of a token and checks nothing runs calls of forged ones.
	h := expect.Value(newHTTP(t.Context(), srv, Options{OAuth: v}))(t)
	h.authorize = func(_ http.ResponseWriter, r *http.Request, _ route) (caller, *refusal) {
		var claims struct{ Sub string }
		parts := strings.Split(r.Header.Get("Authorization"), ".")
		text := expect.Value(base64.RawURLEncoding.DecodeString(parts[1]))(t)
		expect.Must(t, json.Unmarshal(text, &claims))
		return caller{owner: claims.Sub}, nil
	}
	weak := serveHandler(t, h)
	session := weak.open(anna)
	wrong := p.token(jwt.MapClaims{"iss": "https://login.example", "aud": "x"})
	for _, forged := range []string{none, hmac, wrong, p.token(jwt.MapClaims{"exp": 1})} {
		weak.post(touch, as(forged), session).is(t, http.StatusOK)
	}
	expect.Equal(t, ran.Load(), 5, "calls of forged tokens that a weak guard lets in")
}

// Without keys the answer is 503, and the server serves everyone else.
func TestIssuerUnreachable(t *testing.T) {
	p := newProvider(t)
	v := expect.Value(oauth.New(oauth.Options{Issuer: "http://127.0.0.1:1", Audiences: []string{resource}}))(t)
	p.run(v)
	w := serveWeb(t, newTestServer(t), func(o *Options) { o.OAuth = v })
	got := w.post(servertest.Initialize, as(p.token(nil)))
	got.is(t, http.StatusServiceUnavailable, "could not be fetched")
	if got.header.Get("Retry-After") == "" || got.header.Get("WWW-Authenticate") != "" {
		t.Errorf("%v", got.header)
	}
	w.post(say, w.open()).is(t, http.StatusOK)
}

// The identity of a token has a rate, observations and links of its own.
func TestIdentityOfAccessTokens(t *testing.T) {
	p := newProvider(t)
	store := servertest.NewTestStore(t)
	l := expect.Value(links.New(linkBase, records.InDir(store.Dir())))(t)
	run := expect.Value(funnel.New(funnel.Options{Store: store}))(t)
	w := serveWeb(t, newTestServer(t, func(o *server.Options) {
		o.Store, o.Funnel, o.Rate = store, run, server.Rate{PerSecond: 0.001, Burst: 1}
	}), func(o *Options) { o.OAuth, o.Links = p.verifier(oauth.Options{}), l })
	anna, bert := as(p.token(nil)), as(p.token(jwt.MapClaims{"sub": "bert"}))
	w.post(say, anna, w.open(anna)).is(t, http.StatusOK)
	w.post(say, as(p.token(jwt.MapClaims{"jti": "a new token"})), w.open(anna)).is(t, http.StatusTooManyRequests)
	w.post(say, bert, w.open(bert)).is(t, http.StatusOK)
	var link struct{ URL string }
	expect.Must(t, json.Unmarshal([]byte(w.do(http.MethodPost, "/link", "{}", anna).body), &link))
	stored := w.do(http.MethodPut, strings.TrimPrefix(link.URL, linkBase), "a text", without("Authorization"))
	expect.MustEqual(t, stored.status, http.StatusCreated, stored.body)
	w.do(http.MethodPost, "/link", stored.body, bert).is(t, http.StatusNotFound)
	w.do(http.MethodPost, "/link", stored.body, as(testToken)).is(t, http.StatusNotFound)
	w.do(http.MethodPost, "/link", stored.body, anna).is(t, http.StatusOK, linkBase)
}

// A token narrows the roots, never widens them, and those of a session are those of the token of each request: at
// another replica, in each protocol.
func TestRootsOfAccessTokens(t *testing.T) {
	p := newProvider(t)
	dir, roots := withRoots(t)
	at := func(names ...string) (dirs []string) {
		for _, name := range names {
			dirs = append(dirs, filepath.Join(dir, name))
		}
		return dirs
	}
	v := p.verifier(oauth.Options{Roots: map[string]map[string][]string{
		"sub": {"anna": at("a"), "outside": {"/etc", "/", dir}, "other": {"/etc"}}, "groups": {"eng": at("b/sub", "nosuch")},
	}})
	options := func(o *Options) { o.OAuth = v }
	a := serveWeb(t, newTestServer(t, roots, asReplica("a")), options)
	b := serveWeb(t, newTestServer(t, roots, asReplica("b")), options)
	list := servertest.ToolCall("1", "roots", `{}`, "")
	token := func(c jwt.MapClaims) with { return as(p.token(c)) }
	anna, more := token(nil), token(jwt.MapClaims{"groups": []string{"eng"}})
	const none = "your token grants no directory"
	session := a.open(anna)
	for _, c := range []struct {
		at   *webServer
		with []with
		want string
	}{
		{a, []with{anna, session}, `"[/a]"`},
		{b, []with{more, session}, `"[/a][/b/sub]"`}, // taken up with a wider token
		{b, []with{anna, session}, `"[/a]"`},
		{a, []with{more, session}, `"[/a][/b/sub]"`},
		{a, []with{as(testToken), a.open()}, `"[/a][/b][/c]"`},
		{b, []with{token(jwt.MapClaims{"sub": "outside"}), b.open(token(jwt.MapClaims{"sub": "outside"}))}, `"[/a][/b][/c]"`},
		{b, []with{token(jwt.MapClaims{"sub": "other"}), b.open(token(jwt.MapClaims{"sub": "other"}))}, none},
		{b, []with{token(jwt.MapClaims{"sub": "bert"}), b.open(token(jwt.MapClaims{"sub": "bert"}))}, none},
	} {
		c.at.post(list, c.with...).is(t, http.StatusOK, c.want)
	}
	modern := []with{
		header("Mcp-Protocol-Version", "2026-07-28"), header("Mcp-Method", "tools/call"), header("Mcp-Name", "roots"),
	}
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"roots","arguments":{},` +
		servertest.ModernMeta + "}}"
	a.post(call, append(modern, anna)...).is(t, http.StatusOK, `"[/a]"`)
	a.post(call, append(modern, more)...).is(t, http.StatusOK, `"[/a][/b/sub]"`)
	batch := a.post(strings.Replace(servertest.Initialize, "2025-06-18", "2025-03-26", 1), more)
	a.post("["+list+"]", anna, header("Mcp-Session-Id", batch.header.Get("Mcp-Session-Id"))).is(t, http.StatusOK, `"[/a]"`)
	if got := a.post(servertest.Initialize, anna); strings.Contains(got.body, "b, c") {
		t.Errorf("the instructions name other roots: %s", got.body)
	}
	stream := a.openSSE(more)
	defer stream.close()
	stream.change = []with{anna}
	stream.post(servertest.Initialize)
	stream.next()
	stream.post(list)
	if got := stream.next(); !strings.Contains(got, `"[/a]"`) {
		t.Error(got)
	}
}
