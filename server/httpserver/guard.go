package httpserver

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/server/oauth"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
)

// guard checks every request before any other code reads it. A web page in the user's browser can send requests to
// this port; the guard refuses them by Origin, Host, fetch metadata, missing token and content type.
type guard struct {
	tokens  []credential
	noToken bool
	oauth   *oauth.Verifier // nil: access tokens count as unknown
	hosts   []string        // as in the Host header, in lower case
	origins []string
	linked  string // host of links, allowed for them alone; "": none
	maxBody int64
}

// credential is the hash of a valid token and the identity it belongs to.
type credential struct {
	sum   [sha256.Size]byte
	owner string
}

func newGuard(o Options, maxBody int64) (*guard, error) {
	g := &guard{noToken: o.NoToken, oauth: o.OAuth, maxBody: maxBody}
	if o.Links != nil {
		g.linked = o.Links.Host()
	}
	for token, owner := range o.Identities {
		if err := checkToken(token); err != nil {
			return nil, fmt.Errorf("the token of %s: %w", jsonrpc.Quoted(owner), err)
		}
		if err := checkOwner(owner); err != nil {
			return nil, err
		}
		g.tokens = append(g.tokens, credential{sha256.Sum256([]byte(token)), owner})
	}
	if len(g.tokens) == 0 && !g.noToken && g.oauth == nil && !o.ViewOnly {
		return nil, errors.New("HTTP needs a token")
	}
	for _, host := range o.Hosts {
		if host == "" || strings.ContainsAny(host, "/@ ") {
			return nil, fmt.Errorf(
				"%s is not a host; write it as in the Host header: example.com or example.com:8080",
				jsonrpc.Quoted(host),
			)
		}
		g.hosts = append(g.hosts, strings.ToLower(host))
	}
	for _, origin := range o.Origins {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme == "" || u.Host == "" || origin != u.Scheme+"://"+u.Host {
			return nil, fmt.Errorf("%s is not an origin; write it as browsers do: https://example.com", jsonrpc.Quoted(origin))
		}
		g.origins = append(g.origins, strings.ToLower(origin))
	}
	return g, nil
}

// several reports whether the tokens belong to more than one identity.
func (g *guard) several() bool {
	return g.oauth != nil || slices.ContainsFunc(g.tokens, func(c credential) bool { return c.owner != g.tokens[0].owner })
}

// check returns who sent the request, or why it is refused. It sets the CORS headers that let an allowed page read
// the answer.
func (g *guard) check(w http.ResponseWriter, r *http.Request, to route) (caller, *refusal) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Add("Vary", "Origin")
	for _, check := range []func(*http.Request, route) *refusal{g.checkHost, g.checkOrigin, g.checkBrowser, g.checkQuery} {
		if no := check(r, to); no != nil {
			no.close = true
			return caller{}, no
		}
	}
	origin := r.Header.Get("Origin")
	if origin != "" {
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, Mcp-Protocol-Version, WWW-Authenticate")
	}
	if r.Method == http.MethodOptions && origin != "" && r.Header.Get("Access-Control-Request-Method") != "" {
		h.Set("Access-Control-Allow-Methods", strings.Join(to.methods, ", "))
		h.Set("Access-Control-Allow-Headers",
			"Authorization, Content-Type, Accept, Last-Event-ID, Mcp-Session-Id, Mcp-Protocol-Version, Mcp-Method, Mcp-Name")
		h.Set("Access-Control-Max-Age", "600")
		if r.Header.Get("Access-Control-Request-Private-Network") == "true" {
			h.Set("Access-Control-Allow-Private-Network", "true")
		}
		return caller{preflight: true}, nil
	}
	who, no := g.identify(r, to)
	switch {
	case no == nil:
		no = g.checkBody(w, r, to)
	case no.status == http.StatusServiceUnavailable: // says nothing of the token
	case g.oauth != nil:
		h.Set("WWW-Authenticate", g.oauth.Challenge(no.code))
	default:
		h.Set("WWW-Authenticate", `Bearer realm="mcp-funnel"`)
	}
	if no != nil {
		no.close = true
	}
	return who, no
}

// checkHost refuses a Host that is not this server's. It is the only defence against DNS rebinding: after a page has
// pointed its own name at this address, its browser treats the request as same-origin.
func (g *guard) checkHost(r *http.Request, to route) *refusal {
	host := strings.ToLower(r.Host)
	name := hostname(host)
	if to.link && host == g.linked || loopbackName(name) || slices.Contains(g.hosts, host) || slices.Contains(g.hosts, name) {
		return nil
	}
	// An IP address cannot be rebound: the one that the connection came in on is ours.
	if at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok {
		if ip, err := netip.ParseAddr(name); err == nil && ip.Unmap() == at.AddrPort().Addr().Unmap() {
			return nil
		}
	}
	return refuse(
		http.StatusForbidden, "the Host %s is not allowed; to allow it, start the server with --allow-host",
		jsonrpc.Quoted(r.Host),
	)
}

// hostname returns a host without its port and brackets.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

func loopbackName(name string) bool {
	if name == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.Zone() == "" && ip.Unmap().IsLoopback()
}

func (g *guard) checkOrigin(r *http.Request, _ route) *refusal {
	switch all := r.Header.Values("Origin"); {
	case len(all) == 0:
		return nil
	case len(all) == 1 && g.allowed(all[0], r.Host):
		return nil
	case len(all) > 1:
		return refuse(http.StatusForbidden, "two Origin headers; send one")
	default:
		return refuse(
			http.StatusForbidden, "the Origin %s is not allowed; to allow it, start the server with --allow-origin",
			jsonrpc.Quoted(all[0]),
		)
	}
}

// allowed reports whether an origin is listed or equals the Host, which checkHost has accepted. Other ports of this
// machine are refused: their pages belong to other programs.
func (g *guard) allowed(origin, host string) bool {
	if slices.Contains(g.origins, strings.ToLower(origin)) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && origin == u.Scheme+"://"+u.Host &&
		strings.EqualFold(u.Host, host)
}

// checkBrowser checks the fetch metadata (Sec-Fetch-*), which browsers set and no page can change.
func (g *guard) checkBrowser(r *http.Request, to route) *refusal {
	for _, name := range []string{"Sec-Fetch-Site", "Sec-Fetch-Mode", "Sec-Fetch-Dest"} {
		if len(r.Header.Values(name)) > 1 {
			return refuse(http.StatusForbidden, "two %s headers; send one", name)
		}
	}
	if to.link && to.open && (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
		r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document" {
		return nil // a person has opened the link; no page can read the answer
	}
	if to.page {
		return checkPage(r)
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin":
	case "same-site", "cross-site", "none": // none: the address bar, or an extension
		if r.Header.Get("Origin") == "" { // checkOrigin has accepted any that is there
			return refuse(http.StatusForbidden, "a request from another site needs an Origin header")
		}
	default:
		return refuseFetch(r, "Sec-Fetch-Site")
	}
	if mode := r.Header.Get("Sec-Fetch-Mode"); mode != "" && mode != "cors" && mode != "same-origin" {
		return refuseFetch(r, "Sec-Fetch-Mode")
	}
	if dest := r.Header.Get("Sec-Fetch-Dest"); dest != "" && dest != "empty" {
		return refuseFetch(r, "Sec-Fetch-Dest")
	}
	return nil
}

// checkPage lets a browser open pages in a tab of their own, and what belongs to a page for that page alone.
func checkPage(r *http.Request) *refusal {
	site, mode, dest := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Sec-Fetch-Mode"), r.Header.Get("Sec-Fetch-Dest")
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch {
	case site == "" || site == "same-origin" && (mode != "navigate" || dest == "document"):
		return nil
	case mode == "navigate" && dest == "document" && reads: // no cookie comes with it from another site
		return nil
	}
	return refuseFetch(r, "Sec-Fetch-Site")
}

func refuseFetch(r *http.Request, header string) *refusal {
	return refuse(http.StatusForbidden, "%s %s is not allowed; this is not a page to open in a browser",
		header, jsonrpc.Quoted(r.Header.Get(header)))
}

// checkQuery refuses query parameters, because a token there would end up in logs and histories. The error repeats
// none of them.
func (g *guard) checkQuery(r *http.Request, to route) *refusal {
	if to.page || r.URL.RawQuery == "" && !r.URL.ForceQuery {
		return nil
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err == nil && to.query != "" && len(query) == 1 && len(query[to.query]) == 1 {
		return nil
	}
	return refuse(http.StatusBadRequest, "remove the query; a token goes in the header: Authorization: Bearer TOKEN")
}

// identify returns the identity of the request's token.
func (g *guard) identify(r *http.Request, to route) (caller, *refusal) {
	if g.noToken {
		return caller{owner: observations.Local}, nil
	}
	if to.open {
		return caller{}, nil
	}
	all := r.Header.Values("Authorization")
	if len(all) == 0 {
		return caller{}, refuse(http.StatusUnauthorized,
			"a token is required: Authorization: Bearer TOKEN; the server printed at start where tokens come from")
	}
	scheme, token, _ := strings.Cut(all[0], " ")
	if len(all) > 1 || !strings.EqualFold(scheme, "Bearer") {
		return caller{}, refuse(http.StatusUnauthorized, "send the token in one header: Authorization: Bearer TOKEN")
	}
	return g.owner(r.Context(), token)
}

// owner returns the identity of a token. It compares every token, each in constant time.
func (g *guard) owner(ctx context.Context, token string) (caller, *refusal) {
	sum := sha256.Sum256([]byte(strings.TrimSpace(token)))
	owner := ""
	for _, c := range g.tokens {
		if subtle.ConstantTimeCompare(sum[:], c.sum[:]) == 1 {
			owner = c.owner
		}
	}
	switch {
	case owner != "":
		return caller{owner: owner}, nil
	case g.oauth != nil:
		return g.verify(ctx, token)
	}
	return caller{}, refuse(http.StatusUnauthorized, "unknown token; use one of this server's")
}

// verify returns who sent an access token.
func (g *guard) verify(ctx context.Context, token string) (caller, *refusal) {
	owner, roots, err := g.oauth.Verify(ctx, token)
	no := &refusal{status: http.StatusUnauthorized, code: "invalid_token"}
	switch {
	case err == nil:
		return caller{owner: owner, roots: roots}, nil
	case errors.Is(err, oauth.ErrUnavailable):
		no.status = http.StatusServiceUnavailable
	case errors.Is(err, oauth.ErrScope):
		no.status, no.code = http.StatusForbidden, "insufficient_scope"
	}
	no.text = jsonrpc.Echo(err.Error())
	return caller{}, no
}

// checkBody refuses wrong methods, bodies over the limit, and content types other than JSON, which a page can send to
// another origin only after a preflight request.
func (g *guard) checkBody(w http.ResponseWriter, r *http.Request, to route) *refusal {
	if to.path != "?" && !slices.Contains(to.methods, r.Method) {
		w.Header().Set("Allow", strings.Join(to.methods, ", "))
		return refuse(
			http.StatusMethodNotAllowed, "method %s is not allowed on %s; use %s", jsonrpc.Quoted(r.Method), to.path,
			strings.Join(to.methods, ", "),
		)
	}
	if to.page {
		return nil // the viewer reads no more than a form has
	}
	upload := to.link && r.Method == http.MethodPut // has a limit and a type of its own
	if !upload {
		if r.ContentLength > g.maxBody {
			return tooLarge(g.maxBody)
		}
		r.Body = http.MaxBytesReader(w, r.Body, g.maxBody)
	}
	if r.Method != http.MethodPost && !upload {
		return nil
	}
	for _, coding := range r.Header.Values("Content-Encoding") {
		if coding != "" && !strings.EqualFold(coding, "identity") {
			return refuse(
				http.StatusUnsupportedMediaType, "Content-Encoding %s is not supported; send the message unencoded",
				jsonrpc.Quoted(coding),
			)
		}
	}
	if upload {
		return nil
	}
	types := r.Header.Values("Content-Type")
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset := params["charset"]
	if len(types) != 1 || err != nil || kind != "application/json" || charset != "" &&
		!strings.EqualFold(charset, "utf-8") {
		return refuse(http.StatusUnsupportedMediaType, "send the message as one Content-Type: application/json")
	}
	return nil
}

// Check returns what is wrong with tokens, identities, hosts or origins, without listening.
func (o Options) Check() error {
	_, err := newGuard(o, 0)
	return err
}
