package conformance

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// nodeIssuer is oauth2-mock-server on loopback.
type nodeIssuer struct {
	t   testing.TB
	url string
}

func newNodeIssuer(t testing.TB) nodeIssuer {
	t.Helper()
	cmd := nodeCommand(t, t.Context(), "oauth.mjs", "issuer")
	in := expect.Value(cmd.StdinPipe())(t)
	out := expect.Value(cmd.StdoutPipe())(t)
	cmd.Stderr = os.Stderr
	expect.Must(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	expect.Must(t, err, "the issuer did not start")
	return nodeIssuer{t, strings.TrimSpace(line)}
}

func (i nodeIssuer) post(path string, form url.Values) (answer struct {
	Token string `json:"access_token"`
}) {
	i.t.Helper()
	r, err := http.PostForm(i.url+path, form) //nolint:noctx // the issuer ends with the test
	expect.Must(i.t, err)
	defer func() { _ = r.Body.Close() }()
	expect.MustEqual(i.t, r.StatusCode, http.StatusOK, "POST %s", path)
	if path == "/token" {
		expect.Must(i.t, json.NewDecoder(r.Body).Decode(&answer))
	}
	return answer
}

// token returns an access token for the server of the tests with further claims.
func (i nodeIssuer) token(subject string, claims object) string {
	i.t.Helper()
	all := object{"aud": resourceURL, "sub": subject}
	for name, value := range claims {
		all[name] = value
	}
	text := expect.Value(json.Marshal(all))(i.t)
	return i.post("/token", url.Values{"grant_type": {"client_credentials"}, "claims": {string(text)}}).Token
}

const resourceURL = "https://funnel.example/mcp"

// The binary with an identity provider of another project: a client of another project finds it, its tokens open
// sessions that go on at another replica with the roots of the token at hand, and static tokens count beside it.
func TestOAuth(t *testing.T) {
	drivesOnly(t)
	t.Parallel()
	i := newNodeIssuer(t)
	m := newTeam(t)
	for _, dir := range []string{"a", "b"} {
		write(t, filepath.Join(m.root, dir, "secret.txt"), "the word of "+dir+"\n")
	}
	write(t, filepath.Join(m.root, "a", "many.txt"), strings.Repeat("many of a\n", 500))
	config := filepath.Join(filepath.Dir(m.root), "config.yaml")
	write(t, config, "oauth-issuer: "+i.url+"\noauth-audience: ["+resourceURL+"]\n"+
		"roots:\n  sub:\n    anna|1: [root/a]\n  groups: {eng: [root/b], wide: [/, ~, ..]}\n")
	flags := []string{"--config", config, "--log-level", "debug"}
	a, b := m.start("a", flags...), m.start("b", flags...)

	discover := nodeCommand(t, t.Context(), "oauth.mjs", "discover", a.url+"/mcp")
	discover.Stderr = os.Stderr
	found := string(expect.Value(discover.Output())(t))
	expect.Contains(t, found, `"status":401`, `/.well-known/oauth-protected-resource/mcp"`, `"resource":"`+resourceURL+`"`,
		fmt.Sprintf(`"issuer":%q`, i.url))

	anna, more := i.token("anna|1", nil), i.token("anna|1", object{"groups": []string{"eng"}})
	search := toolCall("search", object{"pattern": "the word"})
	var opened got
	for range 3000 { // until the keys are there
		if opened = a.post(initializeAs("2025-06-18", `{}`), anna, ""); opened.status != http.StatusServiceUnavailable {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	id := opened.header.Get("Mcp-Session-Id")
	expect.MustEqual(t, opened.status, http.StatusOK, opened.body)
	expect.Contains(t, a.post(search, anna, id).body, "the word of a")
	expect.Lacks(t, a.post(search, anna, id).body, "the word of b")
	saved := shownID.FindString(a.post(toolCall("search", object{"pattern": "many"}), anna, id).body)
	a.kill()
	for token, wants := range map[string][2]string{
		more: {"the word of b", "x"}, anna: {"the word of a", "the word of b"},
	} {
		var moved got
		for range 3000 {
			if moved = b.post(search, token, id); moved.status != http.StatusServiceUnavailable {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		expect.Contains(t, moved.body, wants[0])
		if wants[1] != "x" {
			expect.Lacks(t, moved.body, wants[1])
		}
	}
	slice := toolCall("slice", object{"source": saved, "lines": "1-9"})
	expect.Contains(t, b.post(slice, anna, id).body, "many of a")
	for name, text := range map[string]string{
		"an absolute path": toolCall("read", object{"path": filepath.Join(m.root, "b", "secret.txt")}),
		"a relative path":  toolCall("read", object{"path": "../b/secret.txt"}),
		"its name":         toolCall("read", object{"path": "b/secret.txt"}),
	} {
		got := b.post(text, anna, id)
		expect.Contains(t, got.body, `"isError":true`)
		expect.Lacks(t, got.body, "the word of b", name)
	}

	// Others: no entry, all roots and no more, another audience, a session of somebody else, a static token.
	bert := i.token("bert", nil)
	hers := b.post(initializeAs("2025-06-18", `{}`), bert, "").header.Get("Mcp-Session-Id")
	expect.Contains(t, b.post(search, bert, hers).body, "your token grants no directory")
	expect.Equal(t, b.post(search, bert, id).status, http.StatusNotFound)
	expect.Lacks(t, b.post(slice, bert, hers).body, "many of a")
	wide := i.token("carl", object{"groups": "wide"})
	his := b.post(initializeAs("2025-06-18", `{}`), wide, "").header.Get("Mcp-Session-Id")
	expect.Contains(t, b.post(search, wide, his).body, "the word of a", "the word of b")
	expect.Contains(t, b.post(toolCall("read", object{"path": "/etc/hostname"}), wide, his).body, `"isError":true`)
	for _, claims := range []object{{"aud": "https://other.example"}, {"exp": 1}, {"iss": "https://other.example"}} {
		no := b.post(search, i.token("anna|1", claims), id)
		expect.Equal(t, no.status, http.StatusUnauthorized)
		expect.Contains(t, no.header.Get("WWW-Authenticate"), `error="invalid_token"`)
	}
	static := b.post(initializeAs("2025-06-18", `{}`), m.bert, "").header.Get("Mcp-Session-Id")
	expect.Contains(t, b.post(search, m.bert, static).body, "the word of a", "the word of b")

	// New keys, one after the other.
	for _, alg := range []string{"EdDSA", "PS256"} {
		i.post("/key", url.Values{"alg": {alg}})
		for range 3 {
			token := i.token("anna|1", nil)
			var got got
			for range 3000 { // requests for keys are bounded
				if got = b.post(pingMessage, token, id); got.status != http.StatusServiceUnavailable {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			expect.Equal(t, got.status, http.StatusOK, got.body)
		}
	}

	out, errs, _ := launch{env: m.env, flags: append([]string{
		"doctor", "--root", m.root, "--store", m.store, "--min-free", "0"}, flags[:2]...)}.output(t)
	expect.Contains(t, out+errs, "ok   oauth      "+i.url+": 3 keys; its clock is ")
	log := b.end(syscall.SIGTERM)
	for _, secret := range []string{anna, more, bert, strings.Split(anna, ".")[1], "anna|1"} {
		if strings.Contains(log, secret) {
			t.Errorf("the log holds %s", secret)
		}
	}
}
