package server

import (
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
)

// guard decides on every request before anything else looks at it. A web page in the user's browser can
// send what it likes to this port, and has to fail here: by its origin, by the host it believes to speak
// to, by what the browser says of the request, by the missing token, and by its content type.
type guard struct {
	tokens  []credential
	noToken bool
	hosts   []string // as in the Host header, lower case
	origins []string
	maxBody int64
}

// credential is a token that is taken, and whose it is.
type credential struct {
	sum   [sha256.Size]byte
	owner string
}

// caller is who sends a request.
type caller struct {
	owner     string
	preflight bool // a browser asks whether it may
}

func newGuard(o HTTPOptions, maxBody int64) (*guard, error) {
	g := &guard{noToken: o.NoToken, maxBody: maxBody}
	for token, owner := range o.Identities {
		if err := checkToken(token); err != nil {
			return nil, fmt.Errorf("the token of %s: %w", quoted(owner), err)
		}
		if err := checkOwner(owner); err != nil {
			return nil, err
		}
		g.tokens = append(g.tokens, credential{sha256.Sum256([]byte(token)), owner})
	}
	if len(g.tokens) == 0 && !g.noToken {
		return nil, errors.New("HTTP needs a token")
	}
	for _, host := range o.Hosts {
		if host == "" || strings.ContainsAny(host, "/@ ") {
			return nil, fmt.Errorf("%s is not a host; write a name as in the Host header: example.com or example.com:8080", quoted(host))
		}
		g.hosts = append(g.hosts, strings.ToLower(host))
	}
	for _, origin := range o.Origins {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme == "" || u.Host == "" || origin != u.Scheme+"://"+u.Host {
			return nil, fmt.Errorf("%s is not an origin; write it as browsers do: https://example.com", quoted(origin))
		}
		g.origins = append(g.origins, strings.ToLower(origin))
	}
	return g, nil
}

// several says that there is more than one identity.
func (g *guard) several() bool {
	return slices.ContainsFunc(g.tokens, func(c credential) bool { return c.owner != g.tokens[0].owner })
}

// check says who sends the request, or why it is refused. It sets what an allowed web page needs to read the answer.
func (g *guard) check(w http.ResponseWriter, r *http.Request, to route) (caller, *refusal) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Add("Vary", "Origin")
	for _, look := range []func(*http.Request, route) *refusal{g.checkHost, g.checkOrigin, g.checkBrowser, g.checkQuery} {
		if no := look(r, to); no != nil {
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
	if no != nil {
		h.Set("WWW-Authenticate", `Bearer realm="mcp-funnel"`)
		no.close = true
		return who, no
	}
	if no := g.checkBody(w, r, to); no != nil {
		no.close = true
		return who, no
	}
	return who, nil
}

// checkHost refuses a name that is not ours: a page that had its own name pointed at this address
// (DNS rebinding) is to its browser of the same origin, and gives itself away by nothing else.
func (g *guard) checkHost(r *http.Request, _ route) *refusal {
	host := strings.ToLower(r.Host)
	name := hostname(host)
	if loopbackName(name) || slices.Contains(g.hosts, host) || slices.Contains(g.hosts, name) {
		return nil
	}
	// An address cannot be pointed elsewhere: that on which the request came in is ours.
	if at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok {
		if ip, err := netip.ParseAddr(name); err == nil && ip.Unmap() == at.AddrPort().Addr().Unmap() {
			return nil
		}
	}
	return refusef(http.StatusForbidden, "the Host %s is not taken; start the server with --allow-host for it", quoted(r.Host))
}

// hostname is a host without its port and brackets.
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
		return refusef(http.StatusForbidden, "two Origin headers; send one")
	default:
		return refusef(http.StatusForbidden, "the Origin %s is not taken; start the server with --allow-origin for it", quoted(all[0]))
	}
}

// allowed says that an origin is on the list, or the server's own: the Host was found to be ours before. Pages of other
// ports of this machine are of other programs.
func (g *guard) allowed(origin, host string) bool {
	if slices.Contains(g.origins, strings.ToLower(origin)) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && origin == u.Scheme+"://"+u.Host && strings.EqualFold(u.Host, host)
}

// checkBrowser goes by what a browser says of a request, which no page can change.
func (g *guard) checkBrowser(r *http.Request, _ route) *refusal {
	for _, name := range []string{"Sec-Fetch-Site", "Sec-Fetch-Mode", "Sec-Fetch-Dest"} {
		if len(r.Header.Values(name)) > 1 {
			return refusef(http.StatusForbidden, "two %s headers; send one", name)
		}
	}
	switch site := r.Header.Get("Sec-Fetch-Site"); site {
	case "", "same-origin":
	case "same-site", "cross-site", "none": // none: an extension, or the address bar, which sends no Origin
		if r.Header.Get("Origin") == "" { // one that is there was found to be allowed
			return refusef(http.StatusForbidden, "a request of another site without its Origin is not taken")
		}
	default:
		return refusef(http.StatusForbidden, "Sec-Fetch-Site %s is not taken; this is no page to open in a browser", quoted(site))
	}
	switch mode := r.Header.Get("Sec-Fetch-Mode"); mode {
	case "", "cors", "same-origin":
	default:
		return refusef(http.StatusForbidden, "Sec-Fetch-Mode %s is not taken; this is no page to open in a browser", quoted(mode))
	}
	if dest := r.Header.Get("Sec-Fetch-Dest"); dest != "" && dest != "empty" {
		return refusef(http.StatusForbidden, "Sec-Fetch-Dest %s is not taken", quoted(dest))
	}
	return nil
}

// checkQuery refuses parameters: a token there would stand in logs and histories. It names none that it found.
func (g *guard) checkQuery(r *http.Request, to route) *refusal {
	if r.URL.RawQuery == "" && !r.URL.ForceQuery {
		return nil
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err == nil && to.query != "" && len(query) == 1 && len(query[to.query]) == 1 {
		return nil
	}
	return refusef(http.StatusBadRequest, "no query is taken; a token goes in the header: Authorization: Bearer TOKEN")
}

// identify finds whose token it is. Every token is compared, in the same time whatever is wrong with it.
func (g *guard) identify(r *http.Request, to route) (caller, *refusal) {
	if g.noToken {
		return caller{owner: observations.Local}, nil
	}
	if to.open {
		return caller{}, nil
	}
	all := r.Header.Values("Authorization")
	if len(all) == 0 {
		return caller{}, refusef(http.StatusUnauthorized,
			"a token is needed: Authorization: Bearer TOKEN; the server named its file when it started")
	}
	scheme, token, _ := strings.Cut(all[0], " ")
	if len(all) > 1 || !strings.EqualFold(scheme, "Bearer") {
		return caller{}, refusef(http.StatusUnauthorized, "write the token as one header: Authorization: Bearer TOKEN")
	}
	sum := sha256.Sum256([]byte(strings.TrimSpace(token)))
	owner := ""
	for _, c := range g.tokens {
		if subtle.ConstantTimeCompare(sum[:], c.sum[:]) == 1 {
			owner = c.owner
		}
	}
	if owner == "" {
		return caller{}, refusef(http.StatusUnauthorized, "the token is not one of this server's")
	}
	return caller{owner: owner}, nil
}

// checkBody has only JSON through, which no page can send to a stranger without asking first, and no more of it than may be.
func (g *guard) checkBody(w http.ResponseWriter, r *http.Request, to route) *refusal {
	if to.path != "?" && !slices.Contains(to.methods, r.Method) {
		w.Header().Set("Allow", strings.Join(to.methods, ", "))
		return refusef(http.StatusMethodNotAllowed, "%s is not for %s; it takes %s", quoted(r.Method), to.path, strings.Join(to.methods, ", "))
	}
	if r.ContentLength > g.maxBody {
		return tooLarge(g.maxBody)
	}
	r.Body = http.MaxBytesReader(w, r.Body, g.maxBody)
	if r.Method != http.MethodPost {
		return nil
	}
	types := r.Header.Values("Content-Type")
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset := params["charset"]
	if len(types) != 1 || err != nil || kind != "application/json" || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return refusef(http.StatusUnsupportedMediaType, "a message is sent as Content-Type: application/json")
	}
	for _, coding := range r.Header.Values("Content-Encoding") {
		if coding != "" && !strings.EqualFold(coding, "identity") {
			return refusef(http.StatusUnsupportedMediaType, "Content-Encoding %s is not taken; send the message as it is", quoted(coding))
		}
	}
	return nil
}

func tooLarge(max int64) *refusal {
	return &refusal{status: http.StatusRequestEntityTooLarge, close: true,
		text: fmt.Sprintf("the message is over %d bytes, which is the most that is taken (--max-message)", max)}
}
