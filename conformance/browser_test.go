package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/peers/peer"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// TestS18NoWebPageCanDriveIt opens pages of foreign origins in a real browser; they attack every endpoint by all means
// of a page. No call of theirs reaches the binary, which requires a token, or the fixture server, which requires none.
// The controls are the same two servers without the guard.
func TestS18NoWebPageCanDriveIt(t *testing.T) {
	chromium := peer.Find(t, "chromium")
	if testing.Short() && !promise.Full() {
		t.Skip("a browser is started by the run without -short")
	}
	t.Parallel()
	pages := foreignPages(t)
	canary, control := filepath.Join(t.TempDir(), "canary"), filepath.Join(t.TempDir(), "control")
	root := clientWorkspace(t)
	searches := func(program string) target {
		return target{
			URL:  launchHTTP(t, program, "--root", root, "--view").url,
			Tool: "search",
			Args: map[string]any{"pattern": "needle"},
		}
	}
	product, wide := searches(binary(t)), searches(admitting.binary(t))
	product.Pages, wide.Pages = pages(product.URL), pages(wide.URL)
	open := target{URL: fixture(t, "-canary", canary), Tool: "canary", By: "by"}
	open.Pages = pages(open.URL)
	unguarded := target{URL: fixture(t, "-canary", control, "-unguarded"), Tool: "canary", By: "by"}
	unguarded.Pages = pages(unguarded.URL)

	tried := browse(t, chromium, product, open, wide, unguarded)

	observed, sung, admitted, through := kept(t, product.URL), songs(t, canary), kept(t, wide.URL), songs(t, control)
	callOnce(t, product)
	expect.Equal(t, kept(t, product.URL), observed+1,
		"what the pages send leaves nothing behind where it runs: what they did would not be seen")
	if admitted == 0 {
		t.Error("with the guard off, no page ran the binary's tool: what they try on it proves nothing")
	}
	for name := range unguarded.Pages {
		if through[name] == 0 {
			t.Errorf("with the guard off, the page %s ran no tool: what it tries proves nothing", name)
		}
	}
	if observed+total(sung) > 0 {
		t.Errorf("pages ran tools: %d in the binary, in the fixture server %v", observed, sung)
	}
	promise.Kept(t, promise.Proof{
		Promise:  "S18",
		Cases:    total(tried[0]) + total(tried[1]),
		Failures: observed + total(sung),
		Control:  admitted + total(through),
		Figures: fmt.Sprintf(
			"a real browser, %d kinds of page; with the guard off, %d calls leave something in the binary, %d in the fixture server",
			len(product.Pages), admitted, total(through),
		),
	})
}

// target is a server that the pages attack, by a tool call that leaves a trace.
type target struct {
	URL   string            `json:"url"`
	Pages map[string]string `json:"pages"` // addresses by name
	Tool  string            `json:"tool"`
	Args  map[string]any    `json:"args"`
	By    string            `json:"by"` // the argument that names the calling page; empty: the tool has none
}

// foreignPages serves the pages and returns their addresses for a target.
func foreignPages(t *testing.T) func(target string) map[string]string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Path == "/sandboxed" { // its origin is "null"
			w.Header().Set("Content-Security-Policy", "sandbox allow-scripts allow-forms")
		}
		_, _ = w.Write([]byte("<!doctype html><title>page</title><body>"))
	}))
	t.Cleanup(s.Close)
	port := s.URL[strings.LastIndex(s.URL, ":"):]
	return func(target string) map[string]string {
		at := expect.Value(url.Parse(target))(t)
		return map[string]string{
			"loopback address": "http://127.0.0.1" + port + "/",
			"loopback name":    "http://localhost" + port + "/",
			"foreign":          "http://evil.example" + port + "/",
			"sandboxed":        "http://evil.example" + port + "/sandboxed",
			"rebound":          "http://rebound.example:" + at.Port() + "/rebound",
		}
	}
}

// browse opens the pages in the browser and returns the number of attempts of each page on each target.
func browse(t *testing.T, chromium string, targets ...target) []map[string]int {
	t.Helper()
	order := expect.Value(json.Marshal(map[string]any{"full": promise.Full(), "targets": targets}))(t)
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	home := plainDir(t) // below which a browser's socket has an address that is short enough
	cmd := nodeCommand(t, ctx, "browser.mjs", chromium, filepath.Join(home, "profile"), string(order))
	cmd.Env = append(os.Environ(), "HOME="+home, "TMPDIR="+home)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	var tried []map[string]int
	if err == nil {
		err = json.Unmarshal(out, &tried)
	}
	expect.Must(t, err, "the browser\n%s%s", out, errs.String())
	expect.MustEqual(t, len(tried), len(targets), "the browser\n%s%s", out, errs.String())
	for i, of := range targets {
		for name := range of.Pages {
			if tried[i][name] < 40 {
				t.Fatalf("the page %s tried %d things", name, tried[i][name])
			}
		}
	}
	return tried
}

func total(of map[string]int) (n int) {
	for _, m := range of {
		n += m
	}
	return n
}

// songs returns the number of runs of the tool canary, by page.
func songs(t *testing.T, canary string) map[string]int {
	t.Helper()
	b, err := os.ReadFile(canary)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	by := map[string]int{}
	for line := range strings.Lines(string(b)) {
		var args struct{ By string }
		expect.Must(t, json.Unmarshal([]byte(line), &args), line)
		page, _, _ := strings.Cut(args.By, ": ")
		by[page]++
	}
	return by
}

// statelessMeta makes a request one of the stateless era.
const statelessMeta = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}`

// stateless sends one request with the token.
func stateless(t *testing.T, url, method, name, params string) (json.RawMessage, error) {
	t.Helper()
	headers := []string{"Authorization", "Bearer " + testToken, "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", method}
	if name != "" {
		headers = append(headers, "Mcp-Name", name)
	}
	response, err := post(
		t.Context(), url+"/mcp",
		fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s"_meta":{%s}}}`, method, params, statelessMeta),
		headers...,
	)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	var m struct{ Result json.RawMessage }
	return m.Result, json.NewDecoder(response.Body).Decode(&m)
}

// callOnce makes the call that pages try, with the token.
func callOnce(t *testing.T, to target) {
	t.Helper()
	args, err := json.Marshal(to.Args)
	if err == nil {
		_, err = stateless(t, to.URL, "tools/call", to.Tool, fmt.Sprintf(`"name":%q,"arguments":%s,`, to.Tool, args))
	}
	expect.Must(t, err)
}

// kept returns the number of observations in the product's store.
func kept(t *testing.T, url string) int {
	t.Helper()
	result, err := stateless(t, url, "resources/list", "", "")
	var list struct{ Resources []json.RawMessage }
	if err == nil {
		err = json.Unmarshal(result, &list)
	}
	expect.Must(t, err)
	return len(list.Resources)
}
