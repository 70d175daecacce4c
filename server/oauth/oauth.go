// Package oauth checks the access tokens of one issuer, as a resource server does (RFC 9068, RFC 9728). It asks the
// issuer for its discovery document and its keys, and gives out no tokens.
package oauth

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/time/rate"

	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
)

const (
	// Skew is how far the clocks of the issuer and of this server may differ.
	Skew = time.Minute
	// maxDocument bounds an answer of the issuer, in bytes.
	maxDocument = 1 << 20
	// patience bounds the time for an answer, and is the pause after a failed discovery. The pause after another one is
	// refresh, so that withdrawn keys stop counting.
	patience = 5 * time.Second
	refresh  = time.Hour
)

// algorithms are the signatures that count: those of a private key, which the issuer alone has.
var algorithms = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA,
}

// Errors of [Verifier.Verify]. All others say why a token is not valid.
var (
	ErrUnavailable = errors.New("the keys of the issuer of tokens could not be fetched; try again later")
	ErrScope       = errors.New("the token lacks a scope")
)

// Options say which tokens count.
type Options struct {
	Issuer    string   // URL, as the issuer writes it
	Audiences []string // a token names one; the first is the URL of /mcp, as clients know it
	Scopes    []string // a token needs all
	// Roots are directories by claim and value. A token grants those of all its claims; nil: all roots of the server.
	Roots map[string]map[string][]string
	Log   *slog.Logger // nil: nothing is logged
}

// Verifier checks tokens. It is safe for concurrent use.
type Verifier struct {
	options  Options
	resource *url.URL
	client   *http.Client
	found    atomic.Pointer[oidc.IDTokenVerifier] // nil: there are no keys yet
}

// New returns a verifier, or what is wrong with the options.
func New(o Options) (*Verifier, error) {
	if _, err := secureURL(o.Issuer); err != nil {
		return nil, fmt.Errorf("--oauth-issuer %.100q: %w; roots in the configuration, --oauth-audience and --oauth-scope "+
			"are for its tokens", o.Issuer, err)
	}
	resource, err := secureURL(strings.Join(o.Audiences[:min(1, len(o.Audiences))], ""))
	if err != nil || slices.Contains(o.Audiences, "") {
		return nil, fmt.Errorf("--oauth-audience %.100q: write the URL of /mcp as clients know it, such as "+
			"https://funnel.example/mcp, and then what else tokens may be for: %w", o.Audiences, err)
	}
	o.Scopes = strings.Fields(strings.Join(o.Scopes, " "))
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	direct := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true} // requests are rare
	return &Verifier{options: o, resource: resource, client: &http.Client{
		Transport: &transport{direct, rate.NewLimiter(rate.Every(2*time.Second), 5)}, Timeout: patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// secureURL parses a URL whose answers nobody can change on their way: https, or http on this machine.
func secureURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil {
		return nil, errors.New("not a URL with a host")
	}
	ip, _ := netip.ParseAddr(u.Hostname())
	if u.Scheme != "https" && (u.Scheme != "http" || u.Hostname() != "localhost" && !ip.IsLoopback()) {
		return nil, errors.New("not https, which hosts other than localhost need")
	}
	return u, nil
}

// transport sends requests to the issuer. It bounds the size of answers, and the number of requests: anyone can send
// tokens of unknown keys, each of which makes go-oidc fetch the keys.
type transport struct {
	http.RoundTripper
	limit *rate.Limiter
}

// RoundTrip implements [http.RoundTripper]. If there is no document of OpenID Connect, it gets that of RFC 8414.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, err := secureURL(r.URL.String()); err != nil {
		return nil, err
	}
	if !t.limit.Allow() {
		return nil, errors.New("too many requests for keys")
	}
	response, err := t.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	path, is := strings.CutSuffix(r.URL.Path, "/.well-known/openid-configuration")
	if is && response.StatusCode/100 == 4 {
		_ = response.Body.Close()
		r = r.Clone(r.Context())
		r.URL.Path, r.URL.RawPath = "/.well-known/oauth-authorization-server"+path, ""
		return t.RoundTrip(r)
	}
	response.Body = http.MaxBytesReader(nil, response.Body, maxDocument)
	return response, nil
}

// Run fetches the keys and keeps them up to date until ctx ends. They go on to count while the issuer is unreachable.
func (v *Verifier) Run(ctx context.Context) {
	ctx = oidc.ClientContext(ctx, v.client)
	for pause := refresh; ctx.Err() == nil; pause = refresh {
		issuer, err := oidc.NewProvider(ctx, v.options.Issuer)
		if err == nil {
			found := issuer.VerifierContext(ctx, &oidc.Config{
				SkipClientIDCheck: true, SupportedSigningAlgs: algorithms, Now: func() time.Time { return time.Now().Add(-Skew) },
			})
			if _, err = found.Verify(ctx, unsigned); !isUnfetched(err) {
				v.found.Store(found)
				err = nil
			}
		}
		if err != nil && ctx.Err() == nil {
			v.options.Log.Warn("the issuer of tokens gave no keys", "error", jsonrpc.Echo(err.Error()))
			pause = patience
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// unsigned is a token of no key: checking it fetches the keys. It is made here, so that no scan for secrets finds it.
var unsigned = base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"RS256","kid":"-"}`)) + ".e30.AA"

// isUnfetched reports whether a token could not be checked for want of keys. go-oidc has no type for that.
func isUnfetched(err error) bool {
	return err != nil && strings.HasPrefix(err.Error(), "failed to verify signature: fetching keys ")
}

// Check asks the issuer for its document and its keys. It returns how many there are, and how far the clock of the
// issuer is ahead of this one, within a second.
func (v *Verifier) Check(ctx context.Context) (keys int, ahead time.Duration, err error) {
	issuer, err := oidc.NewProvider(oidc.ClientContext(ctx, v.client), v.options.Issuer)
	if err != nil {
		return 0, 0, err
	}
	var at struct {
		Keys string `json:"jwks_uri"`
	}
	_ = issuer.Claims(&at)                 // NewProvider has decoded them
	response, err := v.client.Get(at.Keys) //nolint:noctx // the client has a time limit
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = response.Body.Close() }()
	var set struct{ Keys []json.RawMessage }
	if err := json.NewDecoder(response.Body).Decode(&set); err != nil || len(set.Keys) == 0 {
		return 0, 0, fmt.Errorf("%s: HTTP %s, and no keys", at.Keys, response.Status)
	}
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		ahead = time.Until(date)
	}
	return len(set.Keys), ahead, nil
}

// Verify returns who sent a token, as a hash of 26 characters, and the directories that the token grants, nil for all
// roots of the server.
func (v *Verifier) Verify(ctx context.Context, token string) (identity string, roots []string, err error) {
	found := v.found.Load()
	if found == nil {
		return "", nil, ErrUnavailable
	}
	t, err := found.Verify(ctx, token)
	if isUnfetched(err) {
		return "", nil, ErrUnavailable
	}
	if err != nil {
		return "", nil, err
	}
	var claims map[string]any
	_ = t.Claims(&claims)                 // go-oidc has decoded them
	before, is := claims["nbf"].(float64) // go-oidc allows five minutes
	granted := strings.Fields(strings.Join(append(texts(claims["scope"]), texts(claims["scp"])...), " "))
	lacks := slices.IndexFunc(v.options.Scopes, func(s string) bool { return !slices.Contains(granted, s) })
	switch {
	case claims["nbf"] != nil && (!is || before > float64(time.Now().Add(Skew).Unix())):
		return "", nil, errors.New("the token is not valid yet (nbf)")
	case !slices.ContainsFunc(t.Audience, func(a string) bool { return slices.Contains(v.options.Audiences, a) }):
		return "", nil, fmt.Errorf("the token is for another server: its aud is %.200q", t.Audience)
	case t.Subject == "" || strings.Contains(token, "{"): // go-jose also takes a signature in JSON
		return "", nil, errors.New("the token has no sub, or is not compact")
	case lacks >= 0:
		return "", nil, fmt.Errorf("%w: %s", ErrScope, v.options.Scopes[lacks])
	}
	sum := sha256.Sum256([]byte(v.options.Issuer + "\x00" + t.Subject)) // identities stand in links, IDs and logs
	return "o-" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:15])), v.roots(claims), nil
}

// roots returns the directories of all claims that have any.
func (v *Verifier) roots(claims map[string]any) []string {
	if v.options.Roots == nil {
		return nil
	}
	dirs := []string{} // not nil: a token without any has none
	for claim, byValue := range v.options.Roots {
		for _, value := range texts(claims[claim]) {
			dirs = append(dirs, byValue[value]...)
		}
	}
	return dirs
}

// texts returns a claim that is a text, or a list of texts.
func texts(claim any) (all []string) {
	list, is := claim.([]any)
	if !is {
		list = []any{claim}
	}
	for _, item := range list {
		if text, is := item.(string); is {
			all = append(all, text)
		}
	}
	return all
}

// metadataPath is where clients look for what they need to get a token (RFC 9728).
const metadataPath = "/.well-known/oauth-protected-resource"

// Metadata returns that document, and its paths: without and with the path of /mcp.
func (v *Verifier) Metadata() (document any, paths []string) {
	document = struct {
		Resource string   `json:"resource"`
		Issuers  []string `json:"authorization_servers"`
		Methods  []string `json:"bearer_methods_supported"`
		Scopes   []string `json:"scopes_supported,omitempty"`
	}{v.options.Audiences[0], []string{v.options.Issuer}, []string{"header"}, v.options.Scopes}
	return document, []string{metadataPath, metadataPath + cmp.Or(strings.TrimRight(v.resource.Path, "/"), "/mcp")}
}

// Challenge returns the header WWW-Authenticate for an error code of RFC 6750; "" if no token was sent.
func (v *Verifier) Challenge(code string) string {
	text := fmt.Sprintf("Bearer resource_metadata=%q", v.resource.Scheme+"://"+v.resource.Host+metadataPath+
		strings.TrimRight(v.resource.EscapedPath(), "/"))
	if len(v.options.Scopes) > 0 {
		text += fmt.Sprintf(", scope=%q", strings.Join(v.options.Scopes, " "))
	}
	if code != "" {
		text += fmt.Sprintf(", error=%q", code)
	}
	return text
}
