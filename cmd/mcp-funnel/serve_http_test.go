package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// The URL works from this machine; a hint names --allow-host if other machines can connect.
func TestDescribeAddress(t *testing.T) {
	for at, want := range map[string]struct {
		url  string
		hint bool
	}{
		"127.0.0.1:8080": {"http://127.0.0.1:8080/mcp", false},
		"[::1]:8080":     {"http://[::1]:8080/mcp", false},
		"0.0.0.0:8080":   {"http://127.0.0.1:8080/mcp; listening on all IPv4 addresses", true},
		"[::]:8080":      {"http://[::1]:8080/mcp; listening on all addresses", true},
		"192.0.2.1:80":   {"http://192.0.2.1:80/mcp", true},
	} {
		addr, err := net.ResolveTCPAddr("tcp", at)
		expect.Must(t, err)
		url, hint := describeAddress(addr, false)
		if url != want.url || (hint != "") != want.hint ||
			want.hint && !strings.Contains(hint, "--allow-host") {
			t.Errorf("%s: %q, %q", at, url, hint)
		}
		if _, hint := describeAddress(addr, true); hint != "" {
			t.Errorf("%s with --allow-host: %q", at, hint)
		}
	}
}

// What cannot be read is named with the flag that named it.
func TestConfigIsNamed(t *testing.T) {
	for _, path := range []string{filepath.Join(t.TempDir(), "none"), t.TempDir()} {
		if code, _, complaints := try(t, "--config", path, "doctor"); code != usage ||
			!strings.Contains(complaints, "--config") {
			t.Errorf("code %d: %s", code, complaints)
		}
	}
}

// A word that is wrong is 2, a machine on which it does not work is 1.
func TestServeHTTPExitCodes(t *testing.T) {
	t.Setenv(cli.TokenVariable, strings.Repeat("t", 40))
	var config net.ListenConfig
	taken, err := config.Listen(t.Context(), "tcp4", "127.0.0.1:0")
	expect.Must(t, err)
	defer func() { _ = taken.Close() }()
	for addr, want := range map[string]struct {
		code int
		text string
	}{
		taken.Addr().String(): {failed, "choose another"},
		"99999":               {usage, "--http 99999: the port is out of range"},
		"":                    {usage, "--http is empty"},
	} {
		t.Setenv(cli.TokenVariable, strings.Repeat("t", 40)) // the program takes it out
		if code, _, complaints := try(t, "serve", "--http", addr); code != want.code ||
			!strings.Contains(complaints, want.text) {
			t.Errorf("--http %q: code %d: %s", addr, code, complaints)
		}
	}
	for _, args := range [][]string{
		{"--allow-origin", "*"}, {"--allow-host", "a/b"}, {"--token-file", "nosuch"}, {"--token-file", t.TempDir()},
	} {
		if args[0] == "--token-file" {
			_ = os.Unsetenv(cli.TokenVariable) // Setenv above puts it back
		} else {
			t.Setenv(cli.TokenVariable, strings.Repeat("t", 40))
		}
		code, _, complaints := try(t, append([]string{"serve", "--http", "127.0.0.1:0"}, args...)...)
		if args[0] == "--token-file" && !strings.Contains(complaints, args[0]) || code != usage ||
			strings.Contains(complaints, "serving MCP") {
			t.Errorf("%v: code %d: %s", args, code, complaints)
		}
	}
}

// Limits of identities are refused where there is only one, and so are those that are none.
func TestLimitsOfIdentities(t *testing.T) {
	for _, k := range []struct {
		args []string
		want string
	}{
		{[]string{"serve", "--rate-per-identity", "5,10"}, "set --http too"},
		{[]string{"serve", "--calls-per-identity", "4"}, "set --http too"},
		{[]string{"serve", "--http", "0", "--rate-per-identity", "5"}, "such as 5,10"},
		{[]string{"serve", "--http", "0", "--rate-per-identity", "0,1"}, "--rate-per-identity"},
		{[]string{"serve", "--http", "0", "--rate-per-identity", "1,0"}, "such as 5,10"},
		{[]string{"serve", "--http", "0", "--calls-per-identity=-1"}, "--calls-per-identity must be 0 or more"},
		{[]string{"serve", "--http", "0", "--quota-per-identity", "much"}, "--quota-per-identity"},
	} {
		if code, _, complaints := try(t, k.args...); code != usage || !strings.Contains(complaints, k.want) {
			t.Errorf("%v: code %d: %s", k.args, code, complaints)
		}
	}
	c := newCommandLine(t)
	c.in = strings.Repeat("a line\n", 1000)
	c.expect(done, "", "", "keep", "--quota-per-identity", "1MiB") // stdio and the command line have one too
	if text, err := os.ReadFile(filepath.Join(c.store, "state", "quota.json")); err != nil ||
		!strings.Contains(string(text), `"owners":{"local":`) {
		t.Errorf("%s, %v", text, err)
	}
}
