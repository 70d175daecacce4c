package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oauth2-proxy/mockoidc"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

const mcpURL = "https://funnel.example/mcp"

// doctor checks the document, the keys and the clock of the issuer.
func TestDoctorAsksTheIssuer(t *testing.T) {
	m := expect.Value(mockoidc.Run())(t)
	t.Cleanup(func() { _ = m.Shutdown() })
	var ahead time.Duration
	keys := `{"keys":[{}]}`
	var s *httptest.Server
	s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
		if r.URL.Path == "/keys" {
			_, _ = fmt.Fprint(w, keys)
			return
		}
		_, _ = fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, s.URL, s.URL+"/keys")
	}))
	t.Cleanup(s.Close)
	for _, c := range []struct {
		issuer string
		set    func()
		want   string
	}{
		{m.Issuer(), func() {}, "ok   oauth      " + m.Issuer() + ": 1 keys; its clock is "},
		{s.URL, func() { ahead = 50 * time.Second }, "ok   oauth"},
		{s.URL, func() { ahead = 90 * time.Second }, "BAD  oauth"},
		{s.URL, func() { ahead = -90 * time.Second }, "BAD  oauth"},
		{s.URL, func() { ahead, keys = 0, `{"keys":[]}` }, "BAD  oauth      " + s.URL + "/keys: HTTP 200 OK, and no keys"},
		{s.URL + "/", func() {}, "BAD  oauth      oidc: issuer URL provided to client"},
		{"http://127.0.0.1:1", func() {}, "BAD  oauth      Get "},
	} {
		c.set()
		_, out, _ := try(t, "--oauth-issuer", c.issuer, "--oauth-audience", mcpURL, "--store", t.TempDir(), "doctor")
		expect.Contains(t, out, c.want)
	}
	if _, out, _ := try(t, "--store", t.TempDir(), "doctor"); strings.Contains(out, "oauth") {
		t.Error(out)
	}
}

// Settings of access tokens that say nothing, or too little, are refused by name.
func TestOAuthSettings(t *testing.T) {
	for _, c := range []struct {
		args []string
		file string
		want string
	}{
		{[]string{"--oauth-issuer", "https://login.example"}, "", "--oauth-audience"},
		{[]string{"--oauth-issuer", "http://login.example", "--oauth-audience", mcpURL}, "", "not https"},
		{[]string{"--oauth-audience", mcpURL}, "", "--oauth-issuer"},
		{[]string{"--oauth-scope", "funnel"}, "", "--oauth-issuer"},
		{nil, "roots: {sub: {anna: [/a]}}", "roots in the configuration"},
		{nil, "oauth-issuer: https://login.example\noauth-audience: api://funnel", "URL of /mcp"},
		{nil, "roots: [/srv]", ":1:8: roots has lists of directories by claim and value"},
		{nil, "roots: /srv", "the directories of this server are root"},
		{nil, "roots:", "roots has lists"},
		{nil, "roots: {sub: [/a]}", "roots has lists"},
		{nil, "roots: {sub: {anna: /a}}", "roots has lists"},
		{nil, "roots: {sub: {anna: [{a: b}]}}", "roots has lists"},
		{nil, "roots: {sub: {anna: [/a]}} // text", "comment"},
	} {
		path := filepath.Join(t.TempDir(), "config.yaml")
		expect.Must(t, os.WriteFile(path, []byte(c.file), 0o600))
		args := append(c.args, "--config", path, "--store", t.TempDir(), "observations", "list")
		code, _, said := try(t, args...)
		if code != usage || !strings.Contains(said, c.want) {
			t.Errorf("%v, %q: code %d: %s", c.args, c.file, code, said)
		}
	}
}
