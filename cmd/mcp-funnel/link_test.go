package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/records"
	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/server/httpserver"
	"github.com/mcp-funnel/mcp-funnel/server/links"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// TestLinksOfTheCommandLine prints links, which a server of the same store answers.
func TestLinksOfTheCommandLine(t *testing.T) {
	c := newCommandLine(t)
	c.in = strings.Repeat("a line\n", 1000)
	_, _, said := c.run("keep")
	_, id, _ := strings.Cut(strings.TrimSpace(said), "kept as ")
	if id == "" { // its receipt names it
		_, out, _ := c.run("observations", "list")
		id = out[strings.Index(out, "obs:"):][:len("obs:k3v9q2m7x4ab")]
	}
	h := handlerOf(t, c.store)
	w := httptest.NewServer(h)
	defer w.Close()
	base := "--link-base=" + w.URL
	link := func(words ...string) string {
		code, out, said := c.run(append([]string{base, "link"}, words...)...)
		if code != done || !strings.HasPrefix(out, w.URL+"/link/") || !strings.Contains(said, "needs no token") {
			t.Fatalf("%q: code %d, %s%s", words, code, out, said)
		}
		return strings.TrimSpace(out)
	}
	send := func(method, url, body string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		expect.Must(t, err)
		res, err := http.DefaultClient.Do(r)
		expect.Must(t, err)
		defer func() { _ = res.Body.Close() }()
		text, err := io.ReadAll(res.Body)
		expect.Must(t, err)
		return res.StatusCode, string(text)
	}
	for _, words := range [][]string{{id}, {strings.TrimPrefix(id, "obs:"), "--for", "1h"}} {
		if code, body := send(http.MethodGet, link(words...), ""); code != http.StatusOK || body != c.in {
			t.Errorf("%q: %d, %d bytes", words, code, len(body))
		}
	}
	code, body := send(http.MethodPut, link("--put"), "sent\n")
	if code != http.StatusCreated {
		t.Fatalf("%d %s", code, body)
	}
	stored := body[strings.Index(body, "obs:"):][:len("obs:k3v9q2m7x4ab")]
	if _, out, _ := c.run("observations", "cat", stored); out != "sent\n" {
		t.Errorf("%q", out)
	}
	for _, k := range []struct {
		code  int
		words []string
		says  string
	}{
		{usage, []string{"link", id}, "set --link-base"},
		{usage, []string{"--link-base", "nonsense", "link", id}, "--link-base"},
		{usage, []string{base, "link"}, "--put"},
		{usage, []string{base, "link", id, "--put"}, "--put"},
		{usage, []string{base, "link", id, "--for", "8d"}, "7 days"},
		{usage, []string{base, "link", id, "--for", "0s"}, "7 days"},
		{usage, []string{base, "link", "nonsense"}, "12 characters"},
		{failed, []string{base, "link", "obs:0123456789ab"}, "observations list"},
		{usage, []string{"--link-base", "nonsense", "call", "find"}, "--link-base"},
	} {
		if code, out, said := c.run(k.words...); code != k.code || out != "" || !strings.Contains(said, k.says) {
			t.Errorf("%q: code %d, %s%s", k.words, code, out, said)
		}
	}
}

// TestLinkOfAReceipt reads a large output of a server by the link in its receipt, with nothing but the link.
func TestLinkOfAReceipt(t *testing.T) {
	c, token := newCommandLine(t), strings.Repeat("t", 40)
	write(t, filepath.Join(c.root, "big.txt"), strings.Repeat("a word here\n", 10_000))
	t.Setenv(cli.TokenVariable, token)
	ctx, stop := context.WithCancel(t.Context())
	said, errw := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{
			"--root", c.root, "--store", c.store, "--min-free", "0", "--link-base", "https://funnel.example/files",
			"serve", "--http", "127.0.0.1:0",
		}, strings.NewReader(""), io.Discard, errw)
		_ = errw.Close()
	}()
	defer func() {
		stop()
		<-ended
	}()
	first, err := bufio.NewReader(said).ReadString('\n')
	expect.Must(t, err)
	go func() { _, _ = io.Copy(io.Discard, said) }()
	_, at, _ := strings.Cut(first, "serving MCP at ")
	at, _, _ = strings.Cut(at, ";")
	send := func(method, url, body string, head map[string]string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		expect.Must(t, err)
		for name, value := range head {
			r.Header.Set(name, value)
		}
		r.Host = cmp.Or(head["Host"], r.Host)
		res, err := http.DefaultClient.Do(r)
		expect.Must(t, err)
		defer func() { _ = res.Body.Close() }()
		text, err := io.ReadAll(res.Body)
		expect.Must(t, err)
		return res.StatusCode, string(text)
	}
	code, text := send(http.MethodPost, at, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search",`+
		`"arguments":{"pattern":"word"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
		`"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`,
		map[string]string{
			"Authorization": "Bearer " + token, "Content-Type": "application/json",
			"Accept":               "application/json, text/event-stream",
			"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "search",
		})
	var a struct {
		Result struct {
			Content []struct{ Text string }
			Meta    map[string]json.RawMessage `json:"_meta"`
		}
	}
	var receipt funnel.Receipt
	if err := json.Unmarshal([]byte(text), &a); err != nil || code != http.StatusOK {
		t.Fatalf("%d %s", code, text)
	}
	expect.Must(t, json.Unmarshal(a.Result.Meta["funnel/receipt"], &receipt))
	path, ok := strings.CutPrefix(receipt.Link, "https://funnel.example/files")
	if !ok || !strings.Contains(a.Result.Content[0].Text, "\nlink: "+receipt.Link+"\n") {
		t.Fatalf("no link in %s", text)
	}
	code, text = send(http.MethodGet, strings.TrimSuffix(at, "/mcp")+path, "", map[string]string{"Host": "funnel.example"})
	if sum := sha256.Sum256([]byte(text)); code != http.StatusOK || hex.EncodeToString(sum[:]) != receipt.SHA256 {
		t.Errorf("%d, %d bytes, of another hash", code, len(text))
	}
	log, err := filepath.Glob(filepath.Join(c.store, "*", "*"))
	expect.Must(t, err)
	for _, name := range log { // neither the trace nor a sidecar names it
		if b, err := os.ReadFile(name); err == nil && strings.Contains(string(b), path) {
			t.Errorf("%s has the link", name)
		}
	}
}

// handlerOf serves a store and its links.
func handlerOf(t *testing.T, dir string) http.Handler {
	t.Helper()
	store, err := observations.OpenStore(observations.Options{Dir: dir, MinFree: -1})
	expect.Must(t, err)
	t.Cleanup(func() { _ = store.Close() })
	all, err := links.New("http://127.0.0.1", records.InDir(dir))
	expect.Must(t, err)
	f, err := funnel.New(funnel.Options{Store: store})
	expect.Must(t, err)
	none := func(funnel.Session) source.Set { return source.Set{} }
	s, err := server.New(server.Options{Funnel: f, Store: store, Sources: none})
	expect.Must(t, err)
	h, err := httpserver.Handler(s, httpserver.Options{
		Identities: map[string]string{strings.Repeat("t", 40): observations.Local}, Links: all,
	})
	expect.Must(t, err)
	return h
}

// TestTheKeyOfLinksIsHidden reads the key by hard links outside of its store; another file there is the control.
func TestTheKeyOfLinksIsHidden(t *testing.T) {
	c := newCommandLine(t)
	c.in = "text\n"
	_, _, _ = c.run("keep")
	_, err := links.New("http://127.0.0.1", records.InDir(c.store))
	expect.Must(t, err)
	key, err := os.ReadFile(links.KeyPath(c.store))
	expect.Must(t, err)
	expect.Must(t, os.Link(links.KeyPath(c.store), filepath.Join(c.root, "key.txt")))
	expect.Must(t, os.WriteFile(filepath.Join(c.root, "copy.txt"), key, 0o600))
	for name, shown := range map[string]bool{"key.txt": false, "copy.txt": true} {
		_, out, _ := c.run("--no-mask", "call", "read", "path="+name)
		if strings.Contains(out, string(key[:30])) != shown {
			t.Errorf("%s: %s", name, out)
		}
	}
}
