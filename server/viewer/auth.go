package viewer

import (
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net"
	"net/http"
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
	maps.DeleteFunc(v.codes, func(_ [sha256.Size]byte, old code1) bool { return time.Now().After(old.until) })
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

// Identify returns whose a token is that a person has pasted.
type Identify func(ctx context.Context, token string) (Who, error)

// ServeHTTP serves the pages below [Base]. Its caller has checked Host, Origin and fetch metadata. Without identify
// nobody is asked for a token.
func (v *Viewer) ServeHTTP(w http.ResponseWriter, r *http.Request, identify Identify) {
	head := w.Header()
	head.Set("Content-Security-Policy", look().policy)
	head.Set("Referrer-Policy", "same-origin") // with no-referrer, forms would have the Origin null
	head.Set("X-Frame-Options", "DENY")
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	err := r.ParseForm()
	q := v.request(r.Context(), r.URL)
	who, token, ok := v.signedIn(r)
	fresh, redeemed := v.redeem(q.query.Get("code"))
	var p *page
	var status int
	switch {
	case err != nil:
		p, status = q.result(nil, problemf(http.StatusBadRequest, "%s", err))
	case redeemed:
		p, status = q.enter(w, r, fresh), http.StatusOK
	case ok && q.query.Has("code"): // opened again: the person is signed in
		p, status = q.enter(w, r, who), http.StatusOK
	case q.query.Has("code"):
		const wrong = "This address was used before, or is older than 10 minutes: start mcp-funnel view again."
		p, status = q.signInPage(wrong, identify != nil), http.StatusForbidden
	case !ok:
		p, status = q.login(w, r, identify)
	default:
		q.who, q.token, q.plain = who, token, who.Operator && q.query.Get("unmasked") == "1"
		p, status = q.serve(w, r)
	}
	if p == nil {
		return
	}
	body := q.render(p, "page")
	head.Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// enter signs a person in, and leads to the page without the code. A redirect would be part of a navigation that
// another program began, in which a browser withholds the cookie.
func (q *request) enter(w http.ResponseWriter, r *http.Request, who Who) *page {
	q.signIn(w, r, who)
	to := q.with("code", "")
	w.Header().Set("Refresh", "0; url="+string(to))
	return &page{Title: "Signed in", Blocks: []any{links{{Text: "Continue", To: to}}}}
}

// login signs a person in who sends a token, and asks others for one.
func (q *request) login(w http.ResponseWriter, r *http.Request, identify Identify) (*page, int) {
	if identify == nil || r.Method != http.MethodPost || strings.Join(q.path, "/") != "login" {
		return q.signInPage("", identify != nil), http.StatusUnauthorized
	}
	who, err := identify(r.Context(), strings.TrimSpace(r.PostForm.Get("token")))
	if err != nil {
		return q.signInPage(err.Error(), true), http.StatusUnauthorized
	}
	q.path = nil
	return q.enter(w, r, who), http.StatusOK
}

func (q *request) signInPage(wrong string, tokens bool) *page {
	p := &page{Title: "Sign in"}
	if wrong != "" {
		p.Blocks = append(p.Blocks, note{wrong, "bad"})
	}
	if !tokens {
		p.Blocks = append(p.Blocks, note{"Open the address that mcp-funnel view has printed.", ""})
		return p
	}
	p.Blocks = append(p.Blocks, &form{
		To: q.url("login"), Post: true, Fields: []field{{Name: "token", Label: "Token of this server", Size: 40, Secret: true}},
		Submit: "Sign in", Hint: "It becomes a cookie for 12 hours; the address never has it.",
	})
	return p
}

// serve returns the page that a person who is signed in asks for; nil if it has sent something else.
func (q *request) serve(w http.ResponseWriter, r *http.Request) (p *page, status int) {
	var err error
	switch {
	case r.Method == http.MethodPost:
		err = q.post(w, r)
	case q.query.Has("export"):
		err = q.download(w)
	case len(q.path) == 3 && q.path[0] == "obs" && q.path[2] == "raw":
		err = q.raw(w, r)
	case len(q.path) == 1 && q.path[0] == "live":
		q.live(w, r)
	default:
		return q.handle()
	}
	if err != nil {
		return q.result(nil, err)
	}
	return nil, 0
}

// post changes something, if the form has the token of a page of the same person, and leads to where that is seen.
func (q *request) post(w http.ResponseWriter, r *http.Request) error {
	if !hmac.Equal([]byte(r.PostForm.Get("token")), []byte(q.token)) {
		return problemf(http.StatusForbidden, "This form is not of a page of yours: load the page again.")
	}
	q.query = r.PostForm
	to, err := q.act()
	if err == nil {
		http.Redirect(w, r, string(to), http.StatusSeeOther)
	}
	return err
}
