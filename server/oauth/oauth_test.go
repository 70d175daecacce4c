package oauth

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"golang.org/x/time/rate"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

const audience = "https://funnel.example/mcp"

// issuer is an issuer of tokens on loopback.
type issuer struct {
	*httptest.Server
	t        testing.TB
	document string // path; all others get 404
	mu       sync.Mutex
	keys     jose.JSONWebKeySet
	raw      string // sent in place of the keys
	down     bool
	fetches  atomic.Int64 // of keys
}

func newIssuer(t testing.TB, document string) *issuer {
	i := &issuer{t: t, document: document}
	i.Server = httptest.NewServer(http.HandlerFunc(i.serve))
	t.Cleanup(i.Close)
	return i
}

func (i *issuer) serve(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case i.down:
		w.WriteHeader(http.StatusBadGateway)
	case r.URL.Path == i.document:
		_, _ = fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, i.URL+"/realm", i.URL+"/keys?use=sig")
	case r.URL.Path == "/keys" && i.raw != "":
		i.fetches.Add(1)
		_, _ = w.Write([]byte(i.raw))
	case r.URL.Path == "/keys":
		i.fetches.Add(1)
		_ = json.NewEncoder(w).Encode(i.keys)
	default:
		http.NotFound(w, r)
	}
}

// rotate replaces the keys.
func (i *issuer) rotate(keys ...jose.JSONWebKey) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys.Keys = keys
}

// set changes the issuer.
func (i *issuer) set(change func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	change()
}

// claims are those of a valid token, with changes; nil removes one.
func (i *issuer) claims(change map[string]any) map[string]any {
	c := map[string]any{
		"iss": i.URL + "/realm", "aud": audience, "sub": "anna", "exp": time.Now().Add(time.Hour).Unix(),
		"scope": "read funnel",
	}
	maps.Copy(c, change)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

// sign returns a token.
func sign(t testing.TB, alg jose.SignatureAlgorithm, key any, kid string, claims map[string]any) string {
	t.Helper()
	o := (&jose.SignerOptions{}).WithType("at+jwt")
	if kid != "" {
		o = o.WithHeader("kid", kid)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, o)
	expect.Must(t, err)
	text, err := json.Marshal(claims)
	expect.Must(t, err)
	signed, err := signer.Sign(text)
	expect.Must(t, err)
	return expect.Value(signed.CompactSerialize())(t)
}

// newVerifier returns a verifier that has the keys of an issuer.
func (i *issuer) newVerifier(change ...func(*Options)) *Verifier {
	i.t.Helper()
	o := Options{Issuer: i.URL + "/realm", Audiences: []string{audience, "api://funnel"}, Scopes: []string{"funnel"}}
	for _, c := range change {
		c(&o)
	}
	v := expect.Value(New(o))(i.t)
	run(i.t, v)
	for wait := 0; v.found.Load() == nil; wait++ {
		if wait == 3000 {
			i.t.Fatal("no keys")
		}
		time.Sleep(10 * time.Millisecond)
	}
	return v
}

// check returns why a token is refused.
func check(v *Verifier, token string) error {
	_, _, err := v.Verify(context.Background(), token)
	return err
}

// run keeps the keys up to date until the test ends.
func run(t testing.TB, v *Verifier) {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { v.Run(ctx); close(done) }()
	t.Cleanup(func() { stop(); <-done })
}

type keys struct {
	rsa *rsa.PrivateKey
	ec  map[jose.SignatureAlgorithm]*ecdsa.PrivateKey
	ed  ed25519.PrivateKey
}

func newKeys(t testing.TB) (k keys, public []jose.JSONWebKey) {
	k.rsa = expect.Value(rsa.GenerateKey(rand.Reader, 2048))(t)
	add := func(kid string, key crypto.PublicKey) { public = append(public, jose.JSONWebKey{Key: key, KeyID: kid}) }
	add("rsa", k.rsa.Public())
	k.ec = map[jose.SignatureAlgorithm]*ecdsa.PrivateKey{}
	for alg, curve := range map[jose.SignatureAlgorithm]elliptic.Curve{
		jose.ES256: elliptic.P256(), jose.ES384: elliptic.P384(), jose.ES512: elliptic.P521(),
	} {
		k.ec[alg] = expect.Value(ecdsa.GenerateKey(curve, rand.Reader))(t)
		add(string(alg), k.ec[alg].Public())
	}
	_, k.ed, _ = ed25519.GenerateKey(rand.Reader)
	add("ed", k.ed.Public())
	return k, public
}

const openID = "/realm/.well-known/openid-configuration"

// Each signature of a private key counts, and both documents name the keys.
func TestValidTokens(t *testing.T) {
	k, public := newKeys(t)
	for _, document := range []string{openID, "/.well-known/oauth-authorization-server/realm"} {
		i := newIssuer(t, document)
		i.rotate(public...)
		v := i.newVerifier()
		for alg, key := range map[jose.SignatureAlgorithm]any{
			jose.RS256: k.rsa, jose.RS384: k.rsa, jose.RS512: k.rsa, jose.PS256: k.rsa, jose.PS384: k.rsa, jose.PS512: k.rsa,
			jose.ES256: k.ec[jose.ES256], jose.ES384: k.ec[jose.ES384], jose.ES512: k.ec[jose.ES512], jose.EdDSA: k.ed,
		} {
			kid := string(alg)
			switch alg[0] {
			case 'R', 'P':
				kid = "rsa"
			case 'E':
				if alg == jose.EdDSA {
					kid = "ed"
				}
			}
			identity, roots, err := v.Verify(t.Context(), sign(t, alg, key, kid, i.claims(nil)))
			expect.OK(t, err, alg)
			if len(identity) != 26 || !strings.HasPrefix(identity, "o-") || roots != nil {
				t.Errorf("%s: %s %v", alg, identity, roots)
			}
			expect.OK(t, check(v, sign(t, alg, key, "", i.claims(nil))), "%s without kid", alg)
		}
		fresh := expect.Value(New(v.options))(t) // requests of one verifier are bounded
		keys, ahead, err := fresh.Check(t.Context())
		expect.Must(t, err)
		if keys != 5 || ahead.Abs() > 30*time.Second {
			t.Errorf("%d keys, %s ahead", keys, ahead)
		}
	}
}

// A table of claims: which count, and what the error says.
func TestClaims(t *testing.T) {
	k, public := newKeys(t)
	i := newIssuer(t, openID)
	i.rotate(public...)
	v := i.newVerifier()
	at := func(d time.Duration) int64 { return time.Now().Add(d).Unix() }
	type change = map[string]any
	for name, c := range map[string]struct {
		change change
		want   string // of the error; "": valid
	}{
		"as it is":              {nil, ""},
		"another issuer":        {change{"iss": i.URL}, "different provider"},
		"issuer with a slash":   {change{"iss": i.URL + "/realm/"}, "different provider"},
		"no issuer":             {change{"iss": nil}, "different provider"},
		"another audience":      {change{"aud": "https://other.example/mcp"}, "for another server"},
		"a longer audience":     {change{"aud": audience + "/"}, "for another server"},
		"no audience":           {change{"aud": nil}, "for another server"},
		"empty audience":        {change{"aud": ""}, "for another server"},
		"a list":                {change{"aud": []string{"https://other.example", audience}}, ""},
		"a list of others":      {change{"aud": []string{"https://other.example", "api://x"}}, "for another server"},
		"an empty list":         {change{"aud": []string{}}, "for another server"},
		"the second audience":   {change{"aud": "api://funnel"}, ""},
		"expired within skew":   {change{"exp": at(-50 * time.Second)}, ""},
		"expired":               {change{"exp": at(-70 * time.Second)}, "expired"},
		"no exp":                {change{"exp": nil}, "expired"},
		"exp is no number":      {change{"exp": "soon"}, "unmarshal"},
		"nbf within skew":       {change{"nbf": at(50 * time.Second)}, ""},
		"not valid yet":         {change{"nbf": at(70 * time.Second)}, "not valid yet"},
		"not valid for long":    {change{"nbf": 1e300}, "not valid yet"},
		"nbf is a text":         {change{"nbf": fmt.Sprint(at(-time.Hour))}, "not valid yet"},
		"no subject":            {change{"sub": nil}, "no sub"},
		"no scope":              {change{"scope": nil}, ErrScope.Error()},
		"another scope":         {change{"scope": "funnels fun"}, ErrScope.Error()},
		"scp, a text":           {change{"scope": nil, "scp": "a funnel"}, ""},
		"scp, a list":           {change{"scope": nil, "scp": []string{"a", "funnel"}}, ""},
		"scope of a wrong type": {change{"scope": 7}, ErrScope.Error()},
	} {
		identity, _, err := v.Verify(t.Context(), sign(t, jose.RS256, k.rsa, "rsa", i.claims(c.change)))
		if c.want == "" {
			expect.OK(t, err, name)
			continue
		}
		expect.Fails(t, err, c.want, name)
		expect.Equal(t, errors.Is(err, ErrScope), c.want == ErrScope.Error(), name)
		expect.Equal(t, identity, "", name)
	}
}

// Tokens that are not signed by a key of the issuer are refused, whatever they say.
func TestForgedTokens(t *testing.T) {
	k, public := newKeys(t)
	other, _ := newKeys(t)
	i := newIssuer(t, openID)
	i.rotate(public...)
	v := i.newVerifier()
	der := expect.Value(x509.MarshalPKIXPublicKey(k.rsa.Public()))(t)
	secrets := map[string][]byte{
		"DER": der, "PEM": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), "modulus": k.rsa.N.Bytes(),
		"JWK": expect.Value(json.Marshal(public[0]))(t),
	}
	valid := sign(t, jose.RS256, k.rsa, "rsa", i.claims(nil))
	parts := strings.Split(valid, ".")
	header := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	forged := map[string]string{
		"empty": "", "no JWT": "0123456789abcdef0123456789abcdef", "two parts": parts[0] + "." + parts[1], "dots": "..",
		"none":              header(`{"alg":"none"}`) + "." + parts[1] + ".",
		"None":              header(`{"alg":"None","kid":"rsa"}`) + "." + parts[1] + "." + parts[2],
		"no alg":            header(`{"kid":"rsa"}`) + "." + parts[1] + "." + parts[2],
		"no signature":      parts[0] + "." + parts[1] + ".",
		"other claims":      parts[0] + "." + header(`{"sub":"root"}`) + "." + parts[2],
		"of another key":    sign(t, jose.RS256, other.rsa, "rsa", i.claims(nil)),
		"key of other type": sign(t, jose.ES256, other.ec[jose.ES256], "rsa", i.claims(nil)),
		"key in the token": sign(t, jose.RS256, jose.JSONWebKey{Key: other.rsa, KeyID: "rsa"}, "rsa",
			i.claims(map[string]any{"jwk": public[0]})),
		"unknown critical header": header(`{"alg":"RS256","kid":"rsa","crit":["x"],"x":1}`) + "." + parts[1] + "." + parts[2],
		"JSON form":               fmt.Sprintf(`{"payload":%q,"protected":%q,"signature":%q}`, parts[1], parts[0], parts[2]),
		"huge":                    valid + strings.Repeat("A", 16<<10),
		"padded":                  valid + "=",
	}
	for name, secret := range secrets {
		for _, alg := range []jose.SignatureAlgorithm{jose.HS256, jose.HS384, jose.HS512} {
			forged[string(alg)+" with the public key as "+name] = sign(t, alg, pad(secret), "rsa", i.claims(nil))
		}
	}
	v.client.Transport.(*transport).limit = rate.NewLimiter(rate.Inf, 1)
	for name, token := range forged {
		if identity, _, err := v.Verify(t.Context(), token); err == nil || errors.Is(err, ErrUnavailable) {
			t.Errorf("%s: %s, %v", name, identity, err)
		}
	}
	expect.OK(t, check(v, valid), "the control")
}

// pad makes a secret as long as HS512 needs.
func pad(secret []byte) []byte {
	if len(secret) < 64 {
		return append(secret, make([]byte, 64-len(secret))...)
	}
	return secret
}

// A storm of unknown keys causes few requests, and tokens of known keys go on to count. New keys are found in it.
func TestUnknownKeysAreBounded(t *testing.T) {
	k, public := newKeys(t)
	next, published := newKeys(t)
	i := newIssuer(t, openID)
	i.rotate(public...)
	v := i.newVerifier()
	valid := sign(t, jose.RS256, k.rsa, "rsa", i.claims(nil))
	began, before := time.Now(), i.fetches.Load()
	var storm sync.WaitGroup
	for worker := range 10 {
		storm.Go(func() {
			for n := range 100 {
				kid := fmt.Sprintf("unknown %d", worker*100+n)
				if _, _, err := v.Verify(t.Context(), sign(t, jose.ES256, next.ec[jose.ES256], kid, i.claims(nil))); err == nil {
					t.Errorf("%s counts", kid)
				}
				expect.OK(t, check(v, valid))
			}
		})
	}
	storm.Wait()
	if n, most := i.fetches.Load()-before, int64(6+time.Since(began)/(2*time.Second)); n < 1 || n > most {
		t.Errorf("%d requests for keys, of at most %d", n, most)
	}
	for j := range published {
		published[j].KeyID = "next " + published[j].KeyID
	}
	i.rotate(published...)
	rotated := sign(t, jose.EdDSA, next.ed, "next ed", i.claims(nil))
	for wait := 0; check(v, rotated) != nil; wait++ {
		if wait == 3000 {
			t.Fatal(check(v, rotated))
		}
		time.Sleep(10 * time.Millisecond)
	}
	if _, _, err := v.Verify(t.Context(), valid); err == nil {
		t.Error("a token of a withdrawn key counts")
	}
}

// While the issuer is away there are no keys; what it sends later counts, and what was fetched before goes on to count.
func TestIssuerAway(t *testing.T) {
	k, public := newKeys(t)
	i := newIssuer(t, openID)
	i.rotate(public...)
	i.set(func() { i.down = true })
	v := expect.Value(New(Options{Issuer: i.URL + "/realm", Audiences: []string{audience}}))(t)
	valid := sign(t, jose.RS256, k.rsa, "rsa", i.claims(nil))
	expect.ErrorIs(t, check(v, valid), ErrUnavailable)
	run(t, v)
	expect.ErrorIs(t, check(v, valid), ErrUnavailable)
	expect.Fails(t, func() error { _, _, err := v.Check(t.Context()); return err }(), "502")
	i.set(func() { i.down = false })
	for wait := 0; check(v, valid) != nil; wait++ {
		if wait == 3000 {
			t.Fatal(check(v, valid))
		}
		time.Sleep(10 * time.Millisecond)
	}
	v.client.Transport.(*transport).limit = rate.NewLimiter(rate.Inf, 1)
	for name, change := range map[string]func(){
		"down": func() { i.down = true }, "no JSON": func() { i.down, i.raw = false, "<html>" },
		"endless": func() { i.raw = `{"keys":[` + strings.Repeat(" ", maxDocument) + "]}" },
		"bad key": func() { i.raw = `{"keys":[{"kty":"RSA","n":"!"}]}` },
	} {
		i.set(change)
		expect.OK(t, check(v, valid), name)
		unknown := sign(t, jose.RS256, k.rsa, "unknown", i.claims(nil))
		expect.ErrorIs(t, check(v, unknown), ErrUnavailable, name)
	}
}

// Documents that could lead to keys of others are refused.
func TestDocuments(t *testing.T) {
	var document string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(document, "http") {
			http.Redirect(w, r, document, http.StatusFound)
			return
		}
		_, _ = w.Write([]byte(document))
	}))
	t.Cleanup(s.Close)
	for text, want := range map[string]string{
		`{"issuer":"https://other.example","jwks_uri":"` + s.URL + `"}`:    "did not match",
		`{"issuer":"` + s.URL + `/","jwks_uri":"` + s.URL + `"}`:           "did not match",
		`{"issuer":"` + s.URL + `","jwks_uri":"http://keys.example/keys"}`: "not https",
		`{"issuer":"` + s.URL + `","jwks_uri":"file:///etc/passwd"}`:       "not a URL with a host",
		`{"issuer":"` + s.URL + `","jwks_uri":"` + s.URL + `"}`:            "no keys",
		"http://127.0.0.1:1/elsewhere":                                     "302",
		strings.Repeat(" ", maxDocument+1):                                 "too large",
	} {
		document = text
		v := expect.Value(New(Options{Issuer: s.URL, Audiences: []string{audience}}))(t)
		_, _, err := v.Check(t.Context())
		expect.Fails(t, err, want, "%.80s", text)
	}
}

// Options that would let other tokens in, or clients look elsewhere, are refused by name.
func TestOptions(t *testing.T) {
	good := Options{Issuer: "https://login.example/realm", Audiences: []string{audience}}
	for want, change := range map[string]func(*Options){
		"":                             func(o *Options) { o.Issuer = "http://localhost:8080" },
		"--oauth-issuer":               func(o *Options) { o.Issuer = "" },
		"not https":                    func(o *Options) { o.Issuer = "http://login.example" },
		"a host":                       func(o *Options) { o.Issuer = "login.example" },
		"--oauth-audience":             func(o *Options) { o.Audiences = nil },
		"URL of /mcp":                  func(o *Options) { o.Audiences = []string{"api://funnel"} },
		`["https://a.example/mcp" ""]`: func(o *Options) { o.Audiences = []string{"https://a.example/mcp", ""} },
	} {
		o := good
		change(&o)
		_, err := New(o)
		if want == "" {
			expect.OK(t, err)
		} else {
			expect.Fails(t, err, want)
		}
	}
}

// Directories come from all claims that have any, and from no others.
func TestRoots(t *testing.T) {
	k, public := newKeys(t)
	i := newIssuer(t, openID)
	i.rotate(public...)
	v := i.newVerifier(func(o *Options) {
		o.Roots = map[string]map[string][]string{
			"sub": {"anna": {"/a"}}, "groups": {"eng": {"/e", "/s"}, "ops": {"/o"}}, "admin": {"true": {"/"}},
		}
	})
	for want, change := range map[string]map[string]any{
		"[/a]": nil, "[]": {"sub": "bert"}, "[/e /s]": {"sub": "bert", "groups": "eng"},
		"[/o]":       {"sub": "bert", "groups": []any{"x", "ops", 7, []string{"eng"}, map[string]any{"eng": "eng"}}},
		"[] admin":   {"sub": "bert", "admin": true},
		"[] a group": {"sub": "eng", "group": "eng"},
	} {
		_, roots, err := v.Verify(t.Context(), sign(t, jose.RS256, k.rsa, "rsa", i.claims(change)))
		expect.Must(t, err)
		if roots == nil || !strings.HasPrefix(want, fmt.Sprint(roots)) {
			t.Errorf("%v: %v", change, roots)
		}
	}
}

// The identity is the one that docs/HTTP.md has operators compute.
func TestIdentity(t *testing.T) {
	k, public := newKeys(t)
	i := newIssuer(t, openID)
	i.rotate(public...)
	v := i.newVerifier()
	const command = `printf '%s\0%s' "$0" "$1" | openssl dgst -sha256 -binary | head -c 15 | base32 | tr A-Z a-z`
	if page, err := os.ReadFile("../../docs/HTTP.md"); err != nil || !strings.Contains(string(page),
		strings.Replace(command, `"$0" "$1"`, "https://login.example/realm SUBJECT", 1)) {
		t.Errorf("docs/HTTP.md has another command: %v", err)
	}
	seen := map[string]string{}
	for _, sub := range []string{"anna", "Anna", "bert", strings.Repeat("x", 1000), "\x00"} {
		identity, _, err := v.Verify(t.Context(), sign(t, jose.RS256, k.rsa, "rsa", i.claims(map[string]any{"sub": sub})))
		expect.Must(t, err)
		if other, twice := seen[identity]; twice {
			t.Errorf("%q and %q are one identity", sub, other)
		}
		seen[identity] = sub
		for _, program := range []string{"sh", "openssl", "base32"} {
			if _, missing := exec.LookPath(program); missing != nil {
				t.Skip(missing)
			}
		}
		if sub != "\x00" { // no argument of a command
			computed := expect.Value(exec.CommandContext(t.Context(), "sh", "-c", command, i.URL+"/realm", sub).Output())(t)
			expect.Equal(t, "o-"+strings.TrimSpace(string(computed)), identity, "%.20q", sub)
		}
	}
}

// What clients read, and where.
func TestMetadata(t *testing.T) {
	v := expect.Value(New(Options{
		Issuer: "https://login.example", Audiences: []string{"https://funnel.example/team/mcp/", "api://x"},
		Scopes: []string{"a b"},
	}))(t)
	document, paths := v.Metadata()
	text := string(expect.Value(json.Marshal(document))(t))
	expect.Equal(t, text, `{"resource":"https://funnel.example/team/mcp/",`+
		`"authorization_servers":["https://login.example"],`+
		`"bearer_methods_supported":["header"],"scopes_supported":["a","b"]}`)
	expect.EqualList(t, paths, []string{metadataPath, metadataPath + "/team/mcp"})
	at := `Bearer resource_metadata="https://funnel.example/.well-known/oauth-protected-resource/team/mcp", scope="a b"`
	expect.Equal(t, v.Challenge(""), at)
	expect.Equal(t, v.Challenge("invalid_token"), at+`, error="invalid_token"`)
	v = expect.Value(New(Options{Issuer: "https://login.example", Audiences: []string{"https://funnel.example"}}))(t)
	document, paths = v.Metadata()
	expect.Lacks(t, string(expect.Value(json.Marshal(document))(t)), "scopes") // RFC 9728 has empty lists left out
	expect.EqualList(t, paths, []string{metadataPath, metadataPath + "/mcp"})
	expect.Equal(t, v.Challenge(""), `Bearer resource_metadata="https://funnel.example`+metadataPath+`"`)
}
