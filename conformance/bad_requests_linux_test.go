package conformance

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// badRequest sends a request of the corpus unchanged, and returns the fault of its answer, or "". It waits for the
// answer for at most patience.
func badRequest(c badCase, host string, fill *strings.Replacer, patience time.Duration) string {
	conn, err := new(net.Dialer).DialContext(context.Background(), "tcp", host)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(patience))
	status := make(chan string, 1)
	if !c.Leave {
		go func() { // a request may be refused before it ends
			line, _ := bufio.NewReader(conn).ReadString('\n')
			status <- line
		}()
	}
	broken := false
	c.Text.pour(func(piece []byte) {
		if len(piece) < 8<<10 { // placeholders are only in short pieces
			piece = []byte(fill.Replace(string(piece)))
		}
		if !broken {
			_, err := conn.Write(piece)
			broken = err != nil
		}
	})
	if c.Leave {
		return ""
	}
	if c.Want == "" { // any answer is right, or none: do not wait for more
		_ = conn.SetReadDeadline(time.Now().Add(promise.Size(50*time.Millisecond, 300*time.Millisecond)))
	}
	line := <-status
	word := strings.Fields(line)
	switch {
	case c.Want == "", broken && line == "": // the server closed the connection
		return ""
	case len(word) < 2 || !strings.HasPrefix(word[1], c.Want):
		return fmt.Sprintf("status %s wanted, not %q", c.Want, line)
	}
	return ""
}

// requested sends all requests to one server, each round in another order, and checks after each that it still answers.
func requested(
	cases []badCase, rounds, share int, host string, patience time.Duration, alive func() error,
) (tried int, failures []string) {
	fill := strings.NewReplacer("$HOST", host, "$TOKEN", testToken)
	for round := range rounds {
		for _, i := range rand.Perm(len(cases)) {
			if i%share != round%share {
				continue
			}
			tried++
			if wrong := badRequest(cases[i], host, fill, patience); wrong != "" {
				failures = append(failures, cases[i].Name+": "+wrong)
			}
			if err := alive(); err != nil {
				return tried, append(failures, fmt.Sprintf("%s: after it: %v", cases[i].Name, err))
			}
		}
	}
	return tried, failures
}

// The server refuses every bad HTTP request and answers the next one. The control is a server that trusts its input.
func TestS6NoRequestKillsTheServer(t *testing.T) {
	drivesOnly(t)
	t.Parallel()
	s := serveHTTP(t, "--root", t.TempDir())
	session := s.open(testToken)
	alive := func() error {
		if code := session.status(`{"jsonrpc":"2.0","id":1,"method":"ping"}`); code != http.StatusOK {
			return fmt.Errorf("ping: %d", code)
		}
		return nil
	}
	cases := badCases(t, "requests")
	host := strings.TrimPrefix(s.url, "http://")
	tried, failures := requested(cases, promise.Size(2, 20), promise.Size(2, 1), host, 5*time.Minute, alive)
	report(t, failures)
	naive := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}))
	defer naive.Close()
	host = strings.TrimPrefix(naive.URL, "http://")
	_, control := requested(cases, 1, 2, host, 2*time.Second, func() error { return nil }) // it waits for a missing body
	promise.Keptf(t, promise.Proof{Promise: "S6", Cases: tried, Failures: len(failures), Control: len(control)},
		"%d requests over HTTP, one process, answers ping after each", len(cases))
}

// After any first message of a client, the handshake and a call still work.
func TestBadBeginnings(t *testing.T) {
	drivesOnly(t)
	t.Parallel()
	root := t.TempDir()
	write(t, root+"/ok.txt", badWord+"\n")
	for _, c := range badCases(t, "beginnings") {
		t.Run(c.Name, func(t *testing.T) {
			s := launch{flags: []string{"--root", root}, first: c.Text}.stdio(t)
			expect.Must(t, s.ping())
			if a, err := s.call("read", map[string]any{"path": "ok.txt"}); err != nil || !strings.Contains(a.text(), badWord) {
				t.Errorf("%v %s", err, a.text())
			}
			for _, line := range s.broken {
				t.Errorf("a line that is no JSON-RPC: %s", line)
			}
			for _, m := range s.unasked {
				if m.Error != nil && m.size > 1_500 {
					t.Errorf("an error of %d bytes: %.200s", m.size, m.Error.Message)
				}
			}
		})
	}
}

// With every bad command line, environment and configuration, the program prints a short error or serves. It neither
// crashes nor hangs.
func TestBadCommandLines(t *testing.T) {
	root, _ := badRoot(t)
	cases := badCases(t, "commands")
	for _, i := range rand.Perm(len(cases)) {
		c := cases[i]
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			fill := strings.NewReplacer("$ROOT", root)
			flags := []string{"serve", "--store", dir + "/store"}
			for _, f := range c.Flags {
				flags = append(flags, fill.Replace(f.String()))
			}
			if c.Config != nil {
				write(t, dir+"/config.yaml", c.Config.String())
				flags = append(flags, "--config", dir+"/config.yaml")
			}
			env := environment(t)
			for _, e := range c.Env {
				env = append(env, e.String())
			}
			cmd := launch{flags: flags, env: env}.command(t)
			var out, told strings.Builder
			cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &told
			cmd.Stdin = strings.NewReader(hello + "\n" + `{"jsonrpc":"2.0","id":2,"method":"ping"}` + "\n")
			expect.Must(t, cmd.Start())
			late := time.AfterFunc(answerLimit, func() { _ = cmd.Process.Kill() })
			err := cmd.Wait()
			late.Stop()
			serves := strings.Contains(out.String(), `"id":2`)
			switch {
			case strings.Contains(told.String(), "goroutine ") || strings.Contains(told.String(), "panic:"):
				t.Errorf("it crashed: %.2000s", &told)
			case c.Says == "*" && (err != nil || !serves):
				t.Errorf("it should serve: %v, %.500s", err, &told)
			case c.Says != "*" && (err == nil || cmd.ProcessState.ExitCode() < 1):
				t.Errorf("it should be refused: %v, %.500s", err, &told)
			case c.Says != "*" && (told.Len() == 0 || told.Len() > 2_000 || !strings.Contains(told.String(), c.Says)):
				t.Errorf("%d bytes that should say %q: %.500s", told.Len(), c.Says, &told)
			}
		})
	}
}
