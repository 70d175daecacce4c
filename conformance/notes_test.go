package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// Of noteCalls concurrent calls each tells noteEach steps of progress in one burst.
const (
	noteCalls = 4
	noteEach  = 75
)

// noted is a message as the clients of these tests read it.
type noted struct {
	ID     json.RawMessage
	Method string
	Result json.RawMessage
	Params struct {
		ProgressToken string
		Progress      int
	}
}

// ledger is what became of the notes, over all rounds.
type ledger struct {
	mu                        sync.Mutex
	told, lost, strange, late int
	wrong                     []string
}

func (l *ledger) add(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrong = append(l.wrong, fmt.Sprintf(format, args...))
}

// reader follows one stream on which the answers to some calls are due.
type reader struct {
	ledger   *ledger
	due      map[string]int // notes so far, by token; a call's token is t and its id
	answered map[string]bool
}

func newReader(l *ledger, ids ...string) *reader {
	r := &reader{ledger: l, due: map[string]int{}, answered: map[string]bool{}}
	for _, id := range ids {
		r.due["t"+id] = 0
	}
	return r
}

func (r *reader) take(message []byte) {
	var m noted
	if err := json.Unmarshal(message, &m); err != nil {
		r.ledger.add("not JSON: %.100q", message)
		return
	}
	r.ledger.mu.Lock()
	defer r.ledger.mu.Unlock()
	token := m.Params.ProgressToken
	n, mine := r.due[token]
	switch {
	case m.Method != "notifications/progress":
		if m.Result != nil {
			r.answered["t"+string(m.ID)] = true
		}
		return
	case !mine:
		r.ledger.strange++
	case r.answered[token]:
		r.ledger.late++
	case m.Params.Progress != n+1:
		r.ledger.wrong = append(r.ledger.wrong, fmt.Sprintf("note %d of %s says %d", n+1, token, m.Params.Progress))
	}
	r.ledger.told++
	r.due[token]++
}

// done says whether everything due on the stream is answered.
func (r *reader) done() bool {
	r.ledger.mu.Lock()
	defer r.ledger.mu.Unlock()
	for token := range r.due {
		if strings.HasPrefix(token, "t") && !r.answered[token] {
			return false
		}
	}
	return true
}

// close counts what never came.
func (r *reader) close() {
	r.ledger.mu.Lock()
	defer r.ledger.mu.Unlock()
	for token, n := range r.due {
		r.ledger.lost += max(noteEach-n, 0)
		if !r.answered[token] {
			r.ledger.wrong = append(r.ledger.wrong, token+" was not answered")
		}
	}
}

const hello = `{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"notes","version":"1"}}}`

func steps(id, meta string) string {
	return fmt.Sprintf(
		`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"steps","arguments":{"n":%d},"_meta":{"progressToken":"t%s"%s}}}`,
		id, noteEach, id, meta,
	)
}

func noteIDs() (ids []string) {
	for i := range noteCalls {
		ids = append(ids, fmt.Sprint(i+1))
	}
	return ids
}

// TestNotes has 300 notes told under 4 concurrent calls, over every transport: none may be lost, stand on the stream
// of another call, or come after its answer.
func TestNotes(t *testing.T) {
	drivesOnly(t)
	t.Parallel()
	url := fixture(t)
	rounds := promise.Size(3, 50)
	for name, round := range map[string]func(context.Context, *testing.T, *ledger) error{
		"stdio": notesOverStdio,
		"http": func(ctx context.Context, t *testing.T, l *ledger) error {
			return notesOverHTTP(
				ctx, url+"/mcp", l,
			)
		},
		"http/stateless": func(ctx context.Context, t *testing.T, l *ledger) error {
			return notesStateless(
				ctx, url+"/mcp", l,
			)
		},
		"sse": func(ctx context.Context, t *testing.T, l *ledger) error { return notesOverSSE(ctx, url, l) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &ledger{}
			for range rounds {
				ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
				err := round(ctx, t, l)
				stop()
				expect.Must(t, err)
			}
			t.Logf(
				"%d rounds: of %d notes %d lost, %d on another's stream, %d after the answer", rounds, l.told, l.lost, l.strange,
				l.late,
			)
			if l.told != rounds*noteCalls*noteEach || l.lost+l.strange+l.late+len(l.wrong) > 0 {
				t.Errorf("%d told; %s", l.told, strings.Join(l.wrong, "; "))
			}
		})
	}
}

// TestLedgerSeesWhatIsWrong is the control of TestNotes.
func TestLedgerSeesWhatIsWrong(t *testing.T) {
	note := func(token string, n int) string {
		return fmt.Sprintf(`{"method":"notifications/progress","params":{"progressToken":%q,"progress":%d}}`, token, n)
	}
	l := &ledger{}
	r := newReader(l, "1")
	for _, m := range []string{
		note("t1", 1), note("t1", 3), note("t2", 1), `{"id":1,"result":{}}`, note("t1", 4), `half a mess`,
	} {
		r.take([]byte(m))
	}
	delete(r.due, "t2")
	r.close()
	if l.told != 4 || l.lost != noteEach-3 || l.strange != 1 || l.late != 1 || len(l.wrong) != 2 {
		t.Errorf("%+v", l)
	}
}

func notesOverStdio(ctx context.Context, t *testing.T, l *ledger) error {
	cmd := exec.CommandContext(ctx, program(t, "fixture"), "-store", filepath.Join(t.TempDir(), "store"))
	lines := []string{hello}
	for _, id := range noteIDs() {
		lines = append(lines, steps(id, ""))
	}
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n"))
	out, err := cmd.Output()
	if err != nil {
		return err
	}
	r := newReader(l, noteIDs()...)
	for line := range bytes.Lines(out) {
		r.take(line)
	}
	r.close()
	return nil
}

// eachOnItsOwn makes the calls at once, each with the answer's stream to itself.
func eachOnItsOwn(ctx context.Context, url string, l *ledger, meta string, headers ...string) error {
	results := make(chan error, noteCalls)
	for _, id := range noteIDs() {
		go func() {
			response, err := post(ctx, url, steps(id, meta), headers...)
			if err != nil {
				results <- err
				return
			}
			defer func() { _ = response.Body.Close() }()
			r := newReader(l, id)
			err = events(response.Body, func(_, data string) bool { r.take([]byte(data)); return true })
			r.close()
			results <- err
		}()
	}
	var all error
	for range noteCalls {
		all = errors.Join(all, <-results)
	}
	return all
}

// openStream opens the stream of what the server sends on its own; session is "" where there is none yet.
func openStream(ctx context.Context, url, session string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "text/event-stream")
	if session != "" {
		request.Header.Set("Mcp-Session-Id", session)
	}
	stream, err := http.DefaultClient.Do(request)
	if err == nil && stream.StatusCode != http.StatusOK {
		err = errors.Join(fmt.Errorf("the stream: %s", stream.Status), stream.Body.Close())
	}
	if err != nil {
		return nil, err
	}
	return stream.Body, nil
}

func notesOverHTTP(ctx context.Context, url string, l *ledger) error {
	response, err := post(ctx, url, hello)
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	session := response.Header.Get("Mcp-Session-Id")
	// The session's own stream is open meanwhile; nothing about the calls may come on it.
	listening, stop := context.WithCancel(ctx)
	defer stop()
	stream, err := openStream(listening, url, session)
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }()
	own := newReader(l)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		// ends with an error when we stop listening
		_ = events(stream, func(_, data string) bool { own.take([]byte(data)); return true })
	}()
	err = eachOnItsOwn(ctx, url, l, "", "Mcp-Session-Id", session, "MCP-Protocol-Version", "2025-11-25")
	stop()
	<-ended
	return err
}

func notesStateless(ctx context.Context, url string, l *ledger) error {
	meta := "," + statelessMeta
	return eachOnItsOwn(
		ctx, url, l, meta, "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "steps",
	)
}

func notesOverSSE(ctx context.Context, url string, l *ledger) error {
	listening, stop := context.WithCancel(ctx)
	defer stop()
	stream, err := openStream(listening, url+"/sse", "")
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }()
	r := newReader(l, noteIDs()...)
	sent := make(chan error, noteCalls)
	begun := false
	send := func(endpoint, message string) error {
		response, err := post(ctx, endpoint, message)
		if err == nil {
			err = response.Body.Close()
		}
		return err
	}
	endpoint := ""
	err = events(stream, func(event, data string) bool {
		switch {
		case event == "endpoint":
			endpoint = url + data
			if err := send(endpoint, hello); err != nil {
				l.add("initialize: %v", err)
				return false
			}
		case !begun: // the answer to initialize
			begun = true
			for _, id := range noteIDs() {
				go func() { sent <- send(endpoint, steps(id, "")) }()
			}
		default:
			r.take([]byte(data))
		}
		return !r.done()
	})
	r.close()
	for range noteCalls {
		if begun {
			err = errors.Join(err, <-sent)
		}
	}
	return err
}

// TestPipedCallsAreAnswered gives the binary eight calls by a pipe that ends with them.
func TestPipedCallsAreAnswered(t *testing.T) {
	drivesOnly(t)
	t.Parallel()
	runs := promise.Size(10, 100)
	root := clientWorkspace(t)
	lines := []string{hello}
	for i := range 8 {
		call := []string{
			`"read","arguments":{"path":"small.txt"}`, `"search","arguments":{"pattern":"needle"}`,
			`"grep","arguments":{"pattern":"7","source":"lines.txt"}`, `"find","arguments":{}`,
		}[i%4]
		lines = append(lines, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%s}}`, i+1, call))
	}
	env := environment(t)
	answered := 0
	for run := range runs {
		input := strings.NewReader(strings.Join(lines, "\n")) // no newline at the end
		out, errs, code := launch{env: env, stdin: input, flags: []string{"--root", root}}.output(t)
		expect.MustEqual(t, code, 0, "run %d: exit code: %s", run, errs)
		n := 0
		for line := range bytes.Lines([]byte(out)) {
			var m noted
			if err := json.Unmarshal(line, &m); err != nil || m.Result == nil ||
				bytes.Contains(m.Result, []byte(`"isError":true`)) {
				t.Errorf("run %d: %v: %.300s", run, err, line)
			} else if string(m.ID) != `"hello"` {
				n++
			}
		}
		if answered += n; n != 8 {
			t.Errorf("run %d: %d of 8 answered", run, n)
		}
	}
	t.Logf("%d of %d calls answered in %d runs", answered, 8*runs, runs)
}
