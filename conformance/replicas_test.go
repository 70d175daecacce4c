package conformance

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// team is what several replicas share: a store, a root, a session key and the tokens of two identities.
type team struct {
	t                      testing.TB
	env                    []string
	root, store, key, file string
	anna, bert             string
}

func newTeam(t testing.TB) team {
	t.Helper()
	dir := t.TempDir()
	m := team{
		t: t, env: environment(t), root: filepath.Join(dir, "root"), store: filepath.Join(dir, "store"),
		key: newKey(t), file: filepath.Join(dir, "tokens"), anna: strings.Repeat("a1", 20), bert: strings.Repeat("b2", 20),
	}
	write(t, filepath.Join(m.root, "long.txt"), strings.Repeat("a line to be found\n", 500))
	write(t, m.file, "anna: "+m.anna+"\nbert: "+m.bert+"\n")
	expect.Must(t, os.Chmod(m.file, 0o600))
	return m
}

// newKey returns the path of a new session key.
func newKey(t testing.TB) string {
	t.Helper()
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	path := filepath.Join(t.TempDir(), "key")
	expect.Must(t, os.WriteFile(path, key, 0o600))
	return path
}

// start starts a replica; flags may replace those of the team.
func (m team) start(name string, flags ...string) *httpServer {
	m.t.Helper()
	return launch{env: m.env, flags: append([]string{
		"--root", m.root, "--store", m.store, "--min-free", "0", "--token-file", m.file, "--session-key-file", m.key,
		"--replica", name, "--log-level", "info",
	}, flags...)}.http(m.t)
}

// got is an HTTP answer read to its end.
type got struct {
	status int
	header http.Header
	body   string
}

// do makes a request.
func (s *httpServer) do(method, path, body string, headers ...string) got {
	s.t.Helper()
	ctx, stop := context.WithTimeout(s.t.Context(), answerLimit)
	defer stop()
	request, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	expect.Must(s.t, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	expect.Must(s.t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	expect.Must(s.t, err)
	return got{response.StatusCode, response.Header, string(text)}
}

func (s *httpServer) post(body, token, session string) got {
	s.t.Helper()
	return s.do(http.MethodPost, "/mcp", body, "Authorization", "Bearer "+token, "Mcp-Session-Id", session)
}

func initializeAs(protocol, capabilities string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":%q,"capabilities":%s,`+
		`"clientInfo":{"name":"conformance","version":"1"}}}`, protocol, capabilities)
}

func toolCall(tool string, args object) string {
	b, _ := json.Marshal(object{
		"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": object{"name": tool, "arguments": args},
	})
	return string(b)
}

const pingMessage = `{"jsonrpc":"2.0","id":3,"method":"ping"}`

// Sessions of each era go on at another replica after the first was killed; a session ID that is changed, of another
// identity, sealed with another key or too old is unknown to every replica.
func TestSessionsOutliveTheirReplica(t *testing.T) {
	drivesOnly(t)
	t.Parallel()
	m := newTeam(t)
	a, b := m.start("a"), m.start("b")
	stranger, strict := m.start("c", "--session-key-file", newKey(t)), m.start("d", "--http-idle", "1s")
	sessions, receipts := map[string]string{}, map[string]string{}
	for _, protocol := range []string{"2025-03-26", "2025-06-18", "2025-11-25"} {
		opened := a.post(initializeAs(protocol, `{}`), m.anna, "")
		id := opened.header.Get("Mcp-Session-Id")
		expect.Contains(t, opened.body, `"protocolVersion":"`+protocol+`"`, `"funnel/replica":"a"`)
		if id == "" || len(id) > 400 {
			t.Fatalf("a session ID of %d bytes: %s", len(id), id)
		}
		found := a.post(toolCall("search", object{"pattern": "found"}), m.anna, id)
		sessions[protocol], receipts[protocol] = id, shownID.FindString(found.body)
	}
	a.kill()
	time.Sleep(2100 * time.Millisecond) // an ID counts whole seconds: now it is too old for d
	for protocol, id := range sessions {
		// The answer and what could not move.
		read := toolCall("slice", object{"source": receipts[protocol], "lines": "1-1"})
		moved := b.post(read, m.anna, id)
		expect.Equal(t, moved.status, http.StatusOK)
		expect.Contains(t, moved.body, "a line to be found", "replica a and goes on at replica b", "run:ID", "subscribe again")
		again := b.post(read, m.anna, id)
		expect.Contains(t, again.body, "a line to be found")
		if strings.Contains(again.body, "replica a") {
			t.Errorf("the notice comes twice: %s", again.body)
		}
		batch := b.post("["+pingMessage+"]", m.anna, id)
		if isOld := protocol == "2025-03-26"; isOld != strings.Contains(batch.body, `"result":{}`) {
			t.Errorf("%s: a batch: %s", protocol, batch.body)
		}
		unknown := func(what string, s *httpServer, token, id string) {
			t.Helper()
			answer := s.post(pingMessage, token, id)
			if answer.status != http.StatusNotFound || !strings.Contains(answer.body, "start a new one with initialize") {
				t.Errorf("%s, %s: %d %s", protocol, what, answer.status, answer.body)
			}
		}
		changed := []byte(id)
		changed[len(changed)/2] ^= 1
		unknown("another identity", b, m.bert, id)
		unknown("changed", b, m.anna, string(changed))
		unknown("cut", b, m.anna, id[:len(id)-1])
		unknown("another key", stranger, m.anna, id)
		unknown("too old", strict, m.anna, id)
		// Deleted: this replica knows, another one does not before the ID is too old.
		expect.Equal(t, b.do(http.MethodDelete, "/mcp", "", "Authorization", "Bearer "+m.anna, "Mcp-Session-Id", id).status,
			http.StatusNoContent)
		unknown("deleted", b, m.anna, id)
	}
	if log := b.end(syscall.SIGTERM); !strings.Contains(log, "replica=b") || !strings.Contains(log, "opened_by=a") {
		t.Errorf("the log names no replica: %s", log)
	}
}

// A call of the stateless era that asked its client at one replica goes on at another, with the same key only.
func TestQuestionsGoOnAtAnotherReplica(t *testing.T) {
	drivesOnly(t)
	t.Parallel()
	key := newKey(t)
	start := func(key string) *httpServer {
		cmd := launch{program: program(t, "fixture"), flags: []string{
			"-http", "127.0.0.1:0", "-store", filepath.Join(t.TempDir(), "store"), "-session-key", key,
		}}.command(t)
		return listening(t, cmd, "serving at ")
	}
	a, b, stranger := start(key), start(key), start(newKey(t))
	call := func(s *httpServer, more string) string {
		const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
			`"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},` +
			`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}`
		return s.do(http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"test_elicitation",`+
			`"arguments":{"message":"who?"},`+more+meta+`}}`,
			"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "test_elicitation").body
	}
	var asked struct {
		Result struct {
			ResultType, RequestState string
		}
	}
	expect.Must(t, json.Unmarshal([]byte(call(a, "")), &asked))
	expect.Equal(t, asked.Result.ResultType, "input_required")
	a.kill()
	more := fmt.Sprintf(`"requestState":%q,"inputResponses":{"q1":{"action":"accept","content":{"username":"Anna"}}},`,
		asked.Result.RequestState)
	expect.Contains(t, call(stranger, more), "requestState is invalid")
	expect.Contains(t, call(b, more), "Anna", `"resultType":"complete"`)
}

// SIGTERM: first /readyz says so and nothing new is begun, the running call ends, then the process.
func TestServeDrains(t *testing.T) {
	drivesOnly(t)
	t.Parallel()
	m := newTeam(t)
	flags := []string{"--toolsets", "core,shell", "--sandbox", "off", "--slice", "5m", "--call-timeout", "6m"}
	s, other := m.start("a", append(flags, "--drain", "10m")...), m.start("b", append(flags, "--drain", "1s")...)
	session := s.open(m.anna)
	state := func(s *httpServer, path string) string {
		answer := s.do(http.MethodGet, path, "")
		return fmt.Sprint(answer.status, " ", strings.TrimSpace(answer.body))
	}
	expect.Equal(t, state(s, "/readyz"), "200 ready")

	done, started := filepath.Join(t.TempDir(), "done"), filepath.Join(t.TempDir(), "started")
	waits := object{"command": fmt.Sprintf("touch %s; while [ ! -e %s ]; do sleep 0.05; done; echo it is done", started, done)}
	ran := make(chan string, 1)
	go func() {
		a, err := session.call("run", waits)
		ran <- fmt.Sprint(a.text(), err)
	}()
	if !waitFor(answerLimit, func() bool { _, err := os.Stat(started); return err == nil }) {
		t.Fatal("the command was not started")
	}
	expect.Must(t, s.cmd.Process.Signal(syscall.SIGTERM))
	waitFor(answerLimit, func() bool { return state(s, "/readyz") != "200 ready" })
	expect.Equal(t, state(s, "/readyz"), "503 draining")
	expect.Equal(t, state(s, "/healthz"), "200 ok")
	modern := strings.Replace(toolCall("find", object{}), `"params":{`, `"params":{"_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},`, 1)
	for name, answer := range map[string]got{
		"a new session":     s.post(initializeAs("2025-11-25", `{}`), m.anna, ""),
		"a call":            s.post(toolCall("find", object{}), m.anna, session.id),
		"a batch":           s.post("["+pingMessage+"]", m.anna, session.id),
		"a stateless call":  s.post(modern, m.anna, ""),
		"another's session": s.post(`{"jsonrpc":"2.0","method":"notifications/x"}`, m.anna, other.open(m.anna).id),
		"a stream": s.do(http.MethodGet, "/mcp", "", "Authorization", "Bearer "+m.anna, "Mcp-Session-Id",
			session.id),
	} {
		if answer.status != http.StatusServiceUnavailable || answer.header.Get("Retry-After") == "" ||
			!strings.Contains(answer.body, "replica a is draining") {
			t.Errorf("%s: %d %v %s", name, answer.status, answer.header, answer.body)
		}
	}
	expect.Equal(t, s.post(`{"jsonrpc":"2.0","method":"notifications/x"}`, m.anna, session.id).status, http.StatusAccepted)
	if !s.running() {
		t.Fatal("it ended before its call")
	}
	write(t, done, "")
	expect.Contains(t, <-ran, "it is done")
	<-s.ended
	expect.Must(t, s.err)

	// A call that does not end is cancelled, and an idle server drains for 2 s.
	go func() {
		a, err := other.open(m.anna).call("run", object{"command": "touch " + done + "2; sleep 1000"})
		ran <- fmt.Sprint(a.text(), err)
	}()
	waitFor(answerLimit, func() bool { _, err := os.Stat(done + "2"); return err == nil })
	began := time.Now()
	expect.Contains(t, other.end(syscall.SIGTERM), "calls still ran at the end of the drain")
	if took := time.Since(began); took < 2*time.Second {
		t.Errorf("it drained for %s", took)
	}
	<-ran
	// A second signal ends the drain.
	twice := m.start("d", append(flags, "--drain", "10m")...)
	go func() {
		a, err := twice.open(m.anna).call("run", object{"command": "touch " + done + "3; sleep 1000"})
		ran <- fmt.Sprint(a.text(), err)
	}()
	waitFor(answerLimit, func() bool { _, err := os.Stat(done + "3"); return err == nil })
	expect.Must(t, twice.cmd.Process.Signal(syscall.SIGTERM))
	waitFor(answerLimit, func() bool { return state(twice, "/readyz") == "503 draining" })
	time.Sleep(300 * time.Millisecond) // what comes within 200 ms counts as a copy of the first signal
	expect.Contains(t, twice.end(syscall.SIGTERM), "calls still ran at the end of the drain")
	<-ran
	if log := m.start("e", "--drain", "0").end(syscall.SIGTERM); strings.Contains(log, "draining") {
		t.Errorf("--drain 0 drains: %s", log)
	}
	idle := m.start("c")
	began = time.Now()
	idle.end(syscall.SIGTERM)
	if took := time.Since(began); took < 2*time.Second {
		t.Errorf("an idle one drained for %s", took)
	}
}

// The handle of a command names its replica, and so does the error of another one.
func TestCommandsBelongToTheirReplica(t *testing.T) {
	drivesOnly(t)
	t.Parallel()
	m := newTeam(t)
	flags := []string{"--toolsets", "core,shell", "--sandbox", "off", "--slice", "1s"}
	a, b := m.start("a", flags...), m.start("B", flags...)
	session := a.open(m.anna)
	shown := session.mustCall("run", object{"command": "sleep 1000"})
	_, handle, found := strings.Cut(shown, "run:")
	if handle, _, _ = strings.Cut(handle, "@"); !found || !strings.Contains(shown, "run:"+handle+"@a") {
		t.Fatalf("no handle: %s", shown)
	}
	moved := httpSession{b, m.anna, session.id}
	expect.Contains(t, moved.mustCall("run", object{"after": "run:" + handle + "@a"}), "runs on replica a, and this is B",
		"a command cannot move", "again")
	expect.Contains(t, session.mustCall("run", object{"stop": strings.ToUpper("run:"+handle) + "@a"}), "run:"+handle)
}

// A key file is checked as token files are.
func TestSessionKeyFileIsChecked(t *testing.T) {
	drivesOnly(t)
	dir := t.TempDir()
	file := func(name string, text []byte, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		expect.Must(t, os.WriteFile(path, text, 0o600))
		expect.Must(t, os.Chmod(path, mode))
		return path
	}
	good, err := os.ReadFile(newKey(t))
	expect.Must(t, err)
	for _, c := range []struct{ path, want string }{
		{file("short", good[:31], 0o600), "31 bytes; a key has at least 32"},
		{file("zero", make([]byte, 64), 0o600), "random ones"},
		{file("open", good, 0o640), "chmod 600"},
		{file("long", bytes.Repeat(good, 200), 0o600), "it may have at most 4096"},
		{filepath.Join(dir, "none"), "no such file"},
		{dir, "is a directory"},
		{"/dev/zero", "not a regular file"},
	} {
		_, errs, code := launch{env: append(environment(t), "MCP_FUNNEL_TOKEN="+testToken), flags: []string{
			"serve", "--http", "127.0.0.1:0", "--root", dir, "--session-key-file", c.path,
		}}.output(t)
		if code == 0 || !strings.Contains(errs, c.want) || !strings.Contains(errs, "session") {
			t.Errorf("%s: exit code %d\n%s", c.path, code, errs)
		}
	}
	for _, name := range []string{"a b", "ü", strings.Repeat("x", 65)} {
		_, errs, code := launch{flags: []string{"serve", "--replica", name}}.output(t)
		if code == 0 || !strings.Contains(errs, "--replica") {
			t.Errorf("--replica %q: exit code %d\n%s", name, code, errs)
		}
	}
}
