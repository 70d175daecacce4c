package viewer

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
)

// reply is what a browser sees of an answer without its body.
type reply struct {
	StatusCode int
	Header     http.Header
	cookies    []*http.Cookie
}

func (r reply) Cookies() []*http.Cookie { return r.cookies }

// visit sends a request as a browser would; cookies are those that it has.
func (f *fixture) visit(method, address string, form url.Values, identify func(context.Context, string) (Who, error),
	cookies ...*http.Cookie,
) reply {
	f.t.Helper()
	r := httptest.NewRequest(method, "http://127.0.0.1:7777"+Base+address, strings.NewReader(form.Encode()))
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, c := range cookies {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r.WithContext(f.t.Context()), identify)
	got := w.Result()
	expect.OK(f.t, got.Body.Close())
	return reply{got.StatusCode, got.Header, got.Cookies()}
}

// A code signs one person in, and no second one; the cookie goes to this port's pages alone.
func TestCode(t *testing.T) {
	f := newFixture(t)
	code := f.Code(f.who)
	got := f.visit(http.MethodGet, "/obs?code="+code, nil, nil)
	expect.Equal(t, got.StatusCode, http.StatusOK)
	expect.Equal(t, got.Header.Get("Refresh"), "0; url=/view/obs")
	cookies := got.Cookies()
	expect.MustEqual(t, len(cookies), 1)
	c := cookies[0]
	expect.Equal(t, c.Name, "mcp-funnel-view-7777")
	expect.Equal(t, c.Path, Base)
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode {
		t.Errorf("the cookie is %v", c)
	}
	expect.Equal(t, f.visit(http.MethodGet, "/obs?code="+code, nil, nil).StatusCode, http.StatusForbidden, "a second time")
	expect.Equal(t, f.visit(http.MethodGet, "/obs?code="+code, nil, nil, c).StatusCode, http.StatusOK, "again, signed in")
	expect.Equal(t, f.visit(http.MethodGet, "/obs", nil, nil, c).StatusCode, http.StatusOK)
	expect.Equal(t, f.visit(http.MethodGet, "/obs", nil, nil).StatusCode, http.StatusUnauthorized, "no cookie")
	expect.Equal(t, f.visit(http.MethodGet, "/obs?code=guess", nil, nil).StatusCode, http.StatusForbidden, "a guess")
	for name, wrong := range map[string]string{
		"cut": c.Value[:len(c.Value)-1], "another owner": strings.Replace(c.Value, ".", "A.", 1), "empty": "", "no sum": strings.Split(c.Value, ".")[0],
	} {
		forged := &http.Cookie{Name: c.Name, Value: wrong}
		expect.Equal(t, f.visit(http.MethodGet, "/obs", nil, nil, forged).StatusCode, http.StatusUnauthorized, name)
	}
	other := newFixture(t)
	expect.Equal(t, other.visit(http.MethodGet, "/obs", nil, nil, c).StatusCode, http.StatusUnauthorized, "of another process")
	replica := newFixture(t, func(o *Options) { o.Secret = []byte(strings.Repeat("k", 32)) })
	same := newFixture(t, func(o *Options) { o.Secret = []byte(strings.Repeat("k", 32)) })
	in := replica.visit(http.MethodGet, "/?code="+replica.Code(f.who), nil, nil).Cookies()[0]
	expect.Equal(t, same.visit(http.MethodGet, "/obs", nil, nil, in).StatusCode, http.StatusOK, "of another replica")
}

// Codes that nobody used are forgotten once they are too old.
func TestOldCodes(t *testing.T) {
	f := newFixture(t)
	old := f.Code(f.who)
	for sum, c := range f.codes {
		c.until = c.until.Add(-codeLife)
		f.codes[sum] = c
	}
	expect.Equal(t, f.visit(http.MethodGet, "/?code="+old, nil, nil).StatusCode, http.StatusForbidden)
	f.Code(f.who)
	for sum, c := range f.codes {
		c.until = c.until.Add(-codeLife)
		f.codes[sum] = c
	}
	f.Code(f.who)
	expect.Equal(t, len(f.codes), 1)
}

// The address of a handle leads to its page, also of a session whose name is no path.
func TestPathOf(t *testing.T) {
	f := newFixture(t)
	for _, key := range []string{"s/1", "../../obs", "a//b?x=1#y", "сессия"} {
		f.traced(trace.Call{Owner: observations.Local, Session: key, Tool: "tool"}, "{}", "x")
		at := expect.Value(PathOf(key, f.Code(f.who)))(t)
		got := f.visit(http.MethodGet, strings.TrimPrefix(at, Base), nil, nil)
		expect.Equal(t, got.StatusCode, http.StatusOK, key)
		_, to, _ := strings.Cut(got.Header.Get("Refresh"), "url="+Base+"/")
		expect.Contains(t, f.page(to), "Calls 1", key)
	}
	id := string(f.keep(observations.Local, "t", "text", nil))
	expect.Equal(t, expect.Value(PathOf("obs:"+id, ""))(t), Base+"/obs/"+id)
	expect.Equal(t, expect.Value(PathOf("", "c"))(t), Base+"/?code=c")
	_, err := PathOf("run:"+id, "")
	expect.Fails(t, err, "cannot be shown")
}

// A viewer that was closed reads nothing in the background.
func TestClosed(t *testing.T) {
	f := newFixture(t)
	f.Close()
	f.background.Go(func() { t.Error("it runs") })
	f.send(http.MethodGet, "", nil)
	f.background.all.Wait()
}

// A pasted token signs its identity in, which is never the operator.
func TestToken(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.AnyOwner = true })
	id := f.keep("bob", "t", "of bob\n", nil)
	identify := func(_ context.Context, token string) (Who, error) {
		if token != "right" {
			return Who{}, errors.New("unknown token")
		}
		return Who{Owner: "ann"}, nil
	}
	got := f.visit(http.MethodPost, "/login", url.Values{"token": {"wrong"}}, identify)
	expect.Equal(t, got.StatusCode, http.StatusUnauthorized)
	expect.Equal(t, len(got.Cookies()), 0)
	got = f.visit(http.MethodPost, "/login", url.Values{"token": {" right\n"}}, identify)
	expect.MustEqual(t, len(got.Cookies()), 1)
	expect.Equal(t, f.visit(http.MethodGet, "/obs", nil, identify, got.Cookies()...).StatusCode, http.StatusOK)
	expect.Equal(t, f.visit(http.MethodGet, "/obs/"+string(id), nil, identify, got.Cookies()...).StatusCode, http.StatusNotFound)
	expect.Equal(t, f.visit(http.MethodPost, "/login", url.Values{"token": {"right"}}, nil).StatusCode, http.StatusUnauthorized,
		"where no tokens are served")
}

// Nothing changes without the token of a page of the same person.
func TestForms(t *testing.T) {
	f := newFixture(t)
	id := f.keep(observations.Local, "t", "text\n", nil)
	pinned := func() bool {
		o, err := f.o.Store.Stat(observations.Local, id)
		expect.Must(t, err)
		return o.Pinned
	}
	mine := f.visit(http.MethodGet, "/?code="+f.Code(f.who), nil, nil).Cookies()[0]
	other := f.visit(http.MethodGet, "/?code="+f.Code(f.who), nil, nil).Cookies()[0]
	tokenOf := func(c *http.Cookie) string {
		body, _, _ := strings.Cut(c.Value, ".")
		return f.mac("form", body)
	}
	pin := url.Values{"act": {"pin"}, "id": {string(id)}}
	for name, token := range map[string]string{"none": "", "a guess": "guess", "of another sign-in": tokenOf(other), "of the cookie": mine.Value} {
		pin.Set("token", token)
		got := f.visit(http.MethodPost, "/act", pin, nil, mine)
		expect.Equal(t, got.StatusCode, http.StatusForbidden, name)
		expect.Equal(t, pinned(), false, name)
	}
	pin.Set("token", tokenOf(mine))
	expect.Equal(t, f.visit(http.MethodPost, "/act", pin, nil).StatusCode, http.StatusUnauthorized, "no cookie")
	expect.Equal(t, f.visit(http.MethodGet, "/act?"+pin.Encode(), nil, nil, mine).StatusCode, http.StatusNotFound, "by GET")
	expect.Equal(t, pinned(), false)
	got := f.visit(http.MethodPost, "/act", pin, nil, mine)
	expect.Equal(t, got.StatusCode, http.StatusSeeOther)
	expect.Equal(t, got.Header.Get("Location"), "/view/obs/"+string(id))
	expect.Equal(t, pinned(), true)
	big := url.Values{"token": {strings.Repeat("x", maxForm)}}
	expect.Equal(t, f.visit(http.MethodPost, "/act", big, nil, mine).StatusCode, http.StatusBadRequest, "a form over the limit")
}

// Every page says what it may load: nothing but what it holds.
func TestPolicy(t *testing.T) {
	f := newFixture(t)
	id := f.keep(observations.Local, "t", "<script>alert(1)</script>\n", nil)
	for _, at := range []string{"", "obs", "obs/" + string(id), "obs/nothing", "nowhere"} {
		head := f.send(http.MethodGet, at, nil).Header()
		policy := head.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "script-src 'sha256-", "style-src 'sha256-", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"} {
			expect.Has(t, policy, part, at)
		}
		expect.Lacks(t, policy, "unsafe")
	}
	got := f.send(http.MethodGet, "obs/"+string(id)+"/raw", nil)
	expect.Has(t, got.Header().Get("Content-Security-Policy"), "default-src 'none'; sandbox")
	expect.Has(t, got.Header().Get("Content-Disposition"), "attachment")
	expect.Equal(t, got.Header().Get("Content-Type"), "application/octet-stream")
	expect.Equal(t, got.Body.String(), "<script>alert(1)</script>\n")
}
