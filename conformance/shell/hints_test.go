package shell_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/tools/shell"
)

// TestGrantHints runs commands that fail, and compares which grant is named. Those that were refused nothing must name
// none, whatever they print.
func TestGrantHints(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, nil, 0o644); err != nil { //nolint:gosec // a test's file
		t.Fatal(err)
	}
	const (
		connect = `python3 -c 'import socket; socket.create_connection(("192.0.2.1", 80))'`
		resolve = `python3 -c 'import socket; socket.getaddrinfo("example.com", 80)'`
		closed  = `python3 -c 'import socket; socket.create_connection(("127.0.0.1", 9))'`
		unbound = `python3 -c 'import socket; socket.create_connection(("::1", 9))'`
	)
	for _, c := range []struct{ name, command, want string }{
		{"no route", connect, "--allow-net"},
		{"no route, both streams in one", connect + " 2>&1", "--allow-net"},
		{"no name server", resolve, "--allow-net"},
		{"curl without a name server", "curl -sS http://example.com/", "--allow-net"},
		{"no network, said in a long output", "seq 5000; " + connect, "--allow-net"},
		{"connection refused on loopback", closed, ""},
		{"connection refused on loopback, IPv6", unbound, ""},
		{"curl to a closed port", "curl -sS http://127.0.0.1:9/", ""},
		{"a program that prints it", "echo connect: network is unreachable >&2; false", ""},
		{"a log that holds it", "echo 'dial tcp: lookup a.b: no such host'; grep x /etc/hostname; exit 1", ""},
		{"write below a root", "touch here", "--allow-write"},
		{"write by an absolute path", `touch "$PWD/here"`, "--allow-write"},
		{"redirection below a root", "echo x > here", "--allow-write"},
		{"redirection to a system directory", "echo x > /usr/lib/x", ""},
		{"chmod below a root", "chmod 700 .", "--allow-write"},
		{"write to a system directory", "touch /usr/lib/x", ""},
		{"chmod of a system file", "chmod 700 /usr/bin/env", ""},
		{"a hidden file", "cat " + secret, "--allow-read"},
		{"a hidden file, by a program", "python3 -c 'open(\"" + secret + "\")'", "--allow-read"},
		{"a missing file", "cat missing", ""},
		{"a missing file elsewhere", "cat /srv/no/such/file", ""},
		{"a hidden path beside another failure", "echo see " + outside + "; cat missing", ""},
		{"too little memory", "python3 -c 'bytearray(10**10)'", "--run-memory"},
		{"a program that is not found", "no-such-program", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, program := range []string{"curl", "python3"} {
				if strings.Contains(c.command, program+" ") {
					needs(t, program)
				}
			}
			b := newBench(t, shell.Options{})
			text, answer := b.run(c.command)
			if answer.Receipts[0].Status != "failure" {
				t.Fatalf("it did not fail: %s", text)
			}
			if c.want == "" && strings.Contains(text, "--allow-") || !strings.Contains(text, c.want) {
				t.Errorf("want %q: %s", c.want, text)
			}
		})
	}
}
