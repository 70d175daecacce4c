package main

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/observations/remote/remotetest"
	"github.com/mcp-funnel/mcp-funnel/system/database/databasetest"
)

// TestDoctorOfARemoteStore has a bucket and a database that work, and each that does not.
func TestDoctorOfARemoteStore(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test-secret")
	p := remotetest.New(t)
	root, key := t.TempDir(), filepath.Join(t.TempDir(), "key")
	write(t, key, strings.Repeat("0123456789", 4))
	short := filepath.Join(t.TempDir(), "short")
	write(t, short, "0123")
	healthy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/there/healthz" {
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer healthy.Close()
	// s3 changes what the server answers.
	s3 := func(refuse func(*http.Request) bool, answer func(*http.Response) error) string {
		behind := expect.Value(url.Parse(p.S3))(t)
		to := &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(behind)
				r.Out.Host = r.In.Host // that of the signature
			},
			ModifyResponse: func(r *http.Response) error { return answer(r) },
		}
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !refuse(r) {
				to.ServeHTTP(w, r)
				return
			}
			w.WriteHeader(http.StatusForbidden)
		}))
		t.Cleanup(proxy.Close)
		return proxy.URL
	}
	refuses := func(verb string) string {
		return s3(func(r *http.Request) bool { return r.Method == verb && strings.Contains(r.URL.Path, "/check/") },
			func(*http.Response) error { return nil })
	}
	skewed := s3(func(*http.Request) bool { return false }, func(r *http.Response) error {
		if r.Header.Get("Last-Modified") != "" {
			r.Header.Set("Last-Modified", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
		}
		return nil
	})
	run := func(s3 string, more ...string) (code int, out string) {
		code, out, said := runs(t, append(append([]string{
			"--root", root, "--store", remotetest.Bucket, "--database", p.Database, "--s3-endpoint", s3,
			"--s3-region", "us-east-1", "--cache", t.TempDir(), "--http", "127.0.0.1:0",
		}, more...), "doctor")...)
		expect.Lacks(t, out+said, "test-secret")
		return code, out
	}
	run(p.S3) // the first one joins bucket and database
	for name, k := range map[string]struct {
		s3   string
		more []string
		code int
		says []string
	}{
		"all works": {p.S3, []string{
			"--link-base", healthy.URL + "/there/", "--session-key-file", key, "--rate-per-identity", "5,10",
		}, done, []string{
			"ok   bucket", "written, read back, deleted", "ok   database", "tables of version", "ok   links", "ok   sessions",
			"--rate-per-identity 5,10, --calls-per-identity none", "ok   store      s3://",
			"weak bucket     the server stores bytes whose checksum is wrong", // as the one of this test does
		}},
		"links":     {p.S3, []string{"--link-base", healthy.URL}, done, []string{"weak links", "it answers 404"}},
		"a key":     {p.S3, []string{"--session-key-file", short}, failed, []string{"BAD  sessions", "openssl rand"}},
		"no write":  {refuses(http.MethodPut), nil, failed, []string{"BAD  bucket", "403", "read, write and delete"}},
		"no read":   {refuses(http.MethodGet), nil, failed, []string{"BAD  bucket", "403", "read, write and delete"}},
		"no delete": {refuses(http.MethodDelete), nil, failed, []string{"BAD  bucket", "remove in", "403"}},
		"its clock": {skewed, nil, failed, []string{"BAD  bucket", "its clock is 59m"}},
	} {
		code, out := run(k.s3, k.more...)
		if code != k.code {
			t.Errorf("%s: code %d: %s", name, code, out)
		}
		expect.Contains(t, out, k.says...)
	}
	if code, out := run("127.0.0.1:1"); code != failed || !strings.Contains(out, "BAD  store") {
		t.Errorf("no server: code %d: %s", code, out)
	}
	databasetest.SetReadOnly(t, p.Database, true)
	if code, out := run(p.S3); code != failed || !strings.Contains(out, "BAD  database") {
		t.Errorf("read-only: code %d: %s", code, out)
	}
	databasetest.SetReadOnly(t, p.Database, false)
	databasetest.Exec(t, p.Database, "alter role funnel bypassrls")
	defer databasetest.Exec(t, p.Database, "alter role funnel nobypassrls")
	_, out := run(p.S3)
	expect.Contains(t, out, "weak database", "bypasses row-level security")
	expect.Must(t, os.Remove(key))
	if code, out := run(p.S3, "--session-key-file", key); code != failed || !strings.Contains(out, "BAD  sessions") {
		t.Errorf("no key: code %d: %s", code, out)
	}
}
