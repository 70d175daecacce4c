package viewer

import (
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	codeLife   = 10 * time.Minute
	cookieLife = 12 * time.Hour
	maxForm    = 64 << 10 // bytes of a form that is sent
)

// code1 is what a one-time code stands for.
type code1 struct {
	who   Who
	until time.Time
}

var coding = base64.RawURLEncoding.Strict()

func keyOf(secret []byte) []byte {
	if secret == nil {
		secret = make([]byte, sha256.Size)
		_, _ = rand.Read(secret) // never fails
	}
	key, err := hkdf.Key(sha256.New, secret, nil, "mcp-funnel view 1", sha256.Size)
	if err != nil { // only if the length asked for is too large
		panic(err)
	}
	return key
}

// Code returns a code that signs a person in once, within 10 minutes: [Base]/?code=CODE.
func (v *Viewer) Code(who Who) string {
	c := rand.Text()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.codes[sha256.Sum256([]byte(c))] = code1{who, time.Now().Add(codeLife)}
	return c
}

// redeem returns whom a code signs in. It is void from then on.
func (v *Viewer) redeem(c string) (Who, bool) {
	sum := sha256.Sum256([]byte(c))
	v.mu.Lock()
	defer v.mu.Unlock()
	found, ok := v.codes[sum]
	delete(v.codes, sum)
	return found.who, ok && time.Now().Before(found.until)
}

// signed is the content of a cookie.
type signed struct {
	Who
	Until int64  `json:"u"` // Unix seconds
	Nonce string `json:"n"`
}

func (v *Viewer) mac(use, text string) string {
	m := hmac.New(sha256.New, v.key)
	_, _ = m.Write([]byte(use + "\x00" + text))
	return coding.EncodeToString(m.Sum(nil))
}

// cookieName contains the port, because browsers share cookies between the ports of a host.
func cookieName(r *http.Request) string {
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		port = "0"
	}
	return "mcp-funnel-view-" + port
}

// signIn sets the cookie of a person.
func (v *Viewer) signIn(w http.ResponseWriter, r *http.Request, who Who) {
	text, _ := json.Marshal(signed{who, time.Now().Add(cookieLife).Unix(), rand.Text()}) // cannot fail
	body := coding.EncodeToString(text)
	http.SetCookie(w, &http.Cookie{
		Name: cookieName(r), Value: body + "." + v.mac("cookie", body), Path: Base, MaxAge: int(cookieLife / time.Second),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	})
}

// signedIn returns who sent a request, by its cookie, and the token that forms of its pages have.
func (v *Viewer) signedIn(r *http.Request) (who Who, token string, ok bool) {
	c, err := r.Cookie(cookieName(r))
	if err != nil {
		return Who{}, "", false
	}
	body, sum, _ := strings.Cut(c.Value, ".")
	text, err := coding.DecodeString(body)
	var s signed
	if err != nil || !hmac.Equal([]byte(sum), []byte(v.mac("cookie", body))) || json.Unmarshal(text, &s) != nil ||
		time.Now().Unix() > s.Until {
		return Who{}, "", false
	}
	return s.Who, v.mac("form", body), true
}

// ServeHTTP serves the pages below [Base]. Its caller has checked Host, Origin and fetch metadata. identify returns
// whose a pasted token is.
func (v *Viewer) ServeHTTP(w http.ResponseWriter, r *http.Request, identify func(context.Context, string) (Who, error)) {
	head := w.Header()
	head.Set("Content-Security-Policy", look().policy)
	head.Set("Referrer-Policy", "same-origin") // with no-referrer, forms would have the Origin null
	head.Set("X-Frame-Options", "DENY")
	path := strings.Trim(strings.TrimPrefix(r.URL.Path, Base), "/")
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err == nil && r.Method == http.MethodPost {
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		err = r.ParseForm()
	}
	q := &request{Viewer: v, ctx: r.Context(), query: query}
	if path != "" {
		q.path = strings.Split(path, "/")
	}
	if err != nil {
		q.write(w, &page{Title: "Bad request", Blocks: []any{note{err.Error(), "bad"}}}, http.StatusBadRequest)
		return
	}
	who, token, ok := v.signedIn(r)
	if c := query.Get("code"); c != "" {
		if who, ok := v.redeem(c); ok {
			v.signIn(w, r, who)
			v.enter(w, q)
			return
		}
		if !ok {
			q.write(w, q.signInPage("This address was used before, or is older than 10 minutes: start mcp-funnel view again.",
				identify != nil), http.StatusForbidden)
			return
		}
		v.enter(w, q) // opened again: the person is signed in
		return
	}
	if !ok {
		status, wrong := http.StatusUnauthorized, ""
		if path == "login" && r.Method == http.MethodPost && identify != nil {
			who, err := identify(r.Context(), strings.TrimSpace(r.PostForm.Get("token")))
			if err == nil {
				v.signIn(w, r, who)
				q.path = nil
				v.enter(w, q)
				return
			}
			wrong = err.Error()
		}
		q.write(w, q.signInPage(wrong, identify != nil), status)
		return
	}
	q.who, q.token, q.plain = who, token, who.Operator && query.Get("unmasked") == "1"
	if r.Method == http.MethodPost {
		v.post(w, r, q)
		return
	}
	if path == "live" {
		q.live(w, r)
		return
	}
	send := func() error { return q.download(w) }
	if len(q.path) == 3 && q.path[0] == "obs" && q.path[2] == "raw" {
		send = func() error { return q.raw(w, r) }
	}
	if q.query.Has("export") || len(q.path) == 3 && q.path[0] == "obs" && q.path[2] == "raw" {
		if err := send(); err != nil {
			p, status := q.failed(err)
			q.write(w, p, status)
		}
		return
	}
	p, status := q.handle()
	q.write(w, p, status)
}

// enter leads to the page without the code. A redirect would be part of a navigation that another program began, in
// which a browser withholds the cookie.
func (v *Viewer) enter(w http.ResponseWriter, q *request) {
	to := q.with("code", "")
	w.Header().Set("Refresh", "0; url="+string(to))
	q.write(w, &page{Title: "Signed in", Blocks: []any{links{{Text: "Continue", To: to}}}}, http.StatusOK)
}

func (q *request) signInPage(wrong string, tokens bool) *page {
	p := &page{Title: "Sign in"}
	if wrong != "" {
		p.Blocks = append(p.Blocks, note{wrong, "bad"})
	}
	if tokens {
		p.Blocks = append(p.Blocks, &form{
			To: q.url("login"), Post: true, Fields: []field{{Name: "token", Label: "Token of this server", Size: 40}}, Submit: "Sign in",
			Hint: "It becomes a cookie for 12 hours; the address never has it.",
		})
	} else {
		p.Blocks = append(p.Blocks, note{"Open the address that mcp-funnel view has printed.", ""})
	}
	return p
}

// write sends a page.
func (q *request) write(w http.ResponseWriter, p *page, status int) {
	body := q.render(p, "page")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// post changes something, if the form has the token of a page of the same person, and leads to where that is seen.
func (v *Viewer) post(w http.ResponseWriter, r *http.Request, q *request) {
	err := problemf(http.StatusForbidden, "This form is not of a page of yours: load the page again.")
	to := href("")
	if hmac.Equal([]byte(r.PostForm.Get("token")), []byte(q.token)) {
		q.query = r.PostForm
		to, err = q.act()
	}
	if err != nil {
		p, status := q.failed(err)
		q.write(w, p, status)
		return
	}
	http.Redirect(w, r, string(to), http.StatusSeeOther)
}
