package stdio

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/server/servertest"
)

// mangled is a stream of messages that a server has to survive: what was sent is judged by the pings
// between it, which go on being answered.
type mangled struct {
	t     testing.TB
	in    *os.File
	pings chan string            // ids answered
	other chan servertest.Answer // what else came
	ended chan struct{}          // the output has ended
	bad   func(line []byte)      // a line on the output that is no message
	n     int
}

// serveMangled runs serve on pipes.
func serveMangled(t testing.TB, serve func(in io.Reader, out io.Writer)) *mangled {
	t.Helper()
	inR, inW, err := os.Pipe()
	expect.Must(t, err)
	outR, outW, err := os.Pipe()
	expect.Must(t, err)
	m := &mangled{
		t: t, in: inW, pings: make(chan string, 100), other: make(chan servertest.Answer, 1<<20), ended: make(chan struct{}),
	}
	m.bad = func(line []byte) { t.Errorf("not a message on the output: %.200q", line) }
	go func() {
		serve(inR, outW)
		_, _ = inR.Close(), outW.Close()
	}()
	var once sync.Once
	go func() {
		defer close(m.ended)
		r := bufio.NewReaderSize(outR, 1<<20)
		for {
			line, err := r.ReadBytes('\n')
			if err != nil {
				return
			}
			var a servertest.Answer
			if line[0] == '[' && json.Valid(line) { // a batch, where one was made out
				continue
			}
			if json.Unmarshal(line, &a) != nil {
				once.Do(func() { m.bad(line) })
				continue
			}
			if id := string(a.ID); strings.HasPrefix(id, `"ping `) && a.Error == nil {
				m.pings <- id
				continue
			}
			select {
			case m.other <- a:
			default: // nobody wants to know so many
			}
		}
	}()
	t.Cleanup(func() { _, _ = inW.Close(), outR.Close() })
	return m
}

// send puts lines in, and says whether a ping after them is answered within patience.
func (m *mangled) send(patience time.Duration, lines ...string) bool {
	m.n++
	id := fmt.Sprintf(`"ping %d"`, m.n)
	done := make(chan error, 1)
	go func() {
		_, err := io.WriteString(
			m.in, strings.Join(append(lines, `{"jsonrpc":"2.0","id":`+id+`,"method":"ping"}`), "\n")+"\n",
		)
		done <- err
	}()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		select {
		case got := <-m.pings:
			if got == id {
				return <-done == nil
			}
		case <-m.ended:
			return false
		case <-late.C:
			return false
		}
	}
}

// others are the answers that have come, and n more that are to come.
func (m *mangled) others(n int) (all []servertest.Answer) {
	for {
		select {
		case a := <-m.other:
			all = append(all, a)
			continue
		default:
		}
		if len(all) >= n {
			return all
		}
		select {
		case a := <-m.other:
			all = append(all, a)
		case <-time.After(5 * time.Minute):
			return all
		}
	}
}

// seeds are sound messages, of which fuzzed ones are made.
func seeds() []string {
	all := []string{
		servertest.Initialize, servertest.Initialized,
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`,
		`{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"say","arguments":{"text":"hello"},"_meta":{"progressToken":1}}}`,
		servertest.ToolCall("3", "panic", `{}`, ""), servertest.ToolCall("4", "fail", `{}`, ""), servertest.ToolCall(
			"5", "steps", `{"n":3}`, `,"_meta":{"progressToken":"t"}`,
		),
		servertest.ToolCall("6", "greet", `{"twice":true}`, ","+servertest.MetaWith(servertest.CanAll)),
		servertest.ToolCall(
			"7", "greet", `{}`,
			`,"requestState":"e30.AAAA","inputResponses":{"q1":{"action":"accept"}},`+servertest.MetaWith(servertest.CanAll),
		),
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"x"}}`,
		`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`,
		`{"jsonrpc":"2.0","id":"funnel-1","result":{"action":"accept","content":{}}}`,
		`{"jsonrpc":"2.0","id":"funnel-1","error":{"code":-32601,"message":"no"}}`,
		`{"jsonrpc":"2.0","id":8,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"investigate-output"},"argument":{"name":"source","value":"a"}}}`,
		`{"jsonrpc":"2.0","id":9,"method":"resources/read","params":{"uri":"observation://0123456789ab"}}`,
		`{"jsonrpc":"2.0","id":10,"method":"resources/list","params":{"cursor":"eA=="}}`,
		`{"jsonrpc":"2.0","id":11,"method":"prompts/get","params":{"name":"director","arguments":{"task":"x"}}}`,
		`{"jsonrpc":"2.0","id":12,"method":"logging/setLevel","params":{"level":"debug"}}`,
		`{"jsonrpc":"2.0","id":13,"method":"server/discover","params":{` + servertest.ModernMeta + `}}`,
		`{"jsonrpc":"2.0","id":14,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},` +
			servertest.ModernMeta + `}}`,
		`[{"jsonrpc":"2.0","id":15,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"}]`,
	}
	for _, f := range servertest.BadFrames() {
		if len(f.Line) < 4096 {
			all = append(all, f.Line)
		}
	}
	return all
}

// mangle changes a message in one to four places.
func mangle(r *rand.Rand, from []string) string {
	b := []byte(from[r.IntN(len(from))])
	pieces := []string{
		"{", "}", "[", "]", `"`, ",", ":", "\\", "null", "1e999", "-0", "\x00", "\xff", "\u202e", `\ud800`, `"id":`,
		`"method":`, `"params":{`, "\r", "9223372036854775808",
	}
	for range 1 + r.IntN(4) {
		at := r.IntN(len(b) + 1)
		to := min(len(b), at+r.IntN(20))
		switch r.IntN(6) {
		case 0:
			if at < len(b) {
				b[at] = byte(r.IntN(256))
			}
		case 1:
			b = append(b[:at:at], b[to:]...)
		case 2:
			b = append(b[:at:at], append([]byte(pieces[r.IntN(len(pieces))]), b[at:]...)...)
		case 3:
			b = append(b[:to:to], b[at:]...)
		case 4:
			b = b[:at]
		case 5:
			other := from[r.IntN(len(from))]
			b = append(b[:at:at], other[r.IntN(len(other)+1):]...)
		}
	}
	return strings.ReplaceAll(string(b), "ping ", "ping_") // none is to be taken for one of the test's own
}

// TestS20MalformedProtocolNeverStopsService sends the corpus, streams that are no lines, and fuzzed
// frames to one server: it goes on answering ping. The control reads its input with a bufio.Scanner,
// as is commonly done, which gives up at a long line.
func TestS20MalformedProtocolNeverStopsService(t *testing.T) {
	fuzzed := promise.Size(20_000, 1_000_000)
	if testing.Short() {
		fuzzed = 2_000
	}
	huge := promise.Size[int64](20<<20, 300<<20)
	const patience = 20 * time.Second
	s := newTestServer(t, withAskTools, func(o *server.Options) { o.MaxMessage = 4 << 20 })
	try := func(serve func(io.Reader, io.Writer), patience time.Duration, fuzzed int) (cases, failures int) {
		m := serveMangled(t, serve)
		m.send(patience, servertest.Initialize)
		m.others(1)
		for _, f := range servertest.BadFrames() {
			cases++
			if !m.send(patience, f.Line) {
				return cases, failures + 1 // it has stopped: nothing is to be tried any more
			}
			if got := m.others(min(1, -f.Code)); len(got) != min(1, -f.Code) || len(got) > 0 && got[0].Error.Code != f.Code {
				failures++
				t.Errorf("%s: answered %+v", f.Name, got)
			}
		}
		for name, lines := range map[string][]string{
			"empty lines": {"", "", "\r", "  \t "}, "CRLF": {`{"jsonrpc":"2.0","id":1,"method":"ping"}` +
				"\r"}, "lone CR": {"\r\r\r{\r}"},
			"a byte order mark in between": {"\xef\xbb\xbf{}"}, "NULs": {strings.Repeat("\x00", 1000)},
			"deep and open": {strings.Repeat("[", 1<<20)}, "an id in flight": {servertest.ToolCall(
				"77", "sleep", `{"ms":50}`, "",
			), servertest.ToolCall("77", "sleep", `{"ms":50}`, "")},
			"a flood of answers": slices.Repeat([]string{`{"jsonrpc":"2.0","id":"funnel-9","result":{}}`}, 5000),
			"a flood of cancels": slices.Repeat(
				[]string{`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`}, 5000,
			),
		} {
			cases++
			if !m.send(patience, lines...) {
				t.Errorf("%s stopped it", name)
				return cases, failures + 1
			}
		}
		cases++
		long := make(chan error, 1)
		go func() {
			_, err := io.Copy(m.in, &endless{begin: `{"jsonrpc":"2.0","id":1,"method":"`, size: huge})
			long <- err
		}()
		if err := <-long; err != nil || !m.send(patience, "") {
			t.Errorf("a line of %d bytes stopped it: %v", huge, err)
			return cases, failures + 1
		}
		from, r := seeds(), rand.New(rand.NewPCG(20, 20))
		for cases < fuzzed {
			lines := make([]string, 500)
			for i := range lines {
				lines[i] = mangle(r, from)
			}
			cases += len(lines)
			if !m.send(patience, lines...) {
				t.Errorf("stopped among the frames %d to %d", cases-len(lines), cases)
				return cases, failures + 1
			}
		}
		return cases, failures
	}
	began := time.Now()
	cases, failures := try(func(in io.Reader, out io.Writer) { _ = Serve(t.Context(), s, in, out) }, patience, fuzzed)
	took := time.Since(began)
	_, control := try(func(in io.Reader, out io.Writer) {
		conn := s.Connect(context.Background())
		defer conn.End(server.ErrEnding)
		var mu sync.Mutex
		send := func(m []byte, _ func()) error {
			mu.Lock()
			defer mu.Unlock()
			_, err := out.Write(m)
			return err
		}
		lines := bufio.NewScanner(in)
		for lines.Scan() {
			if work := conn.Accept(conn.Context(), append([]byte(nil), lines.Bytes()...), send); work != nil {
				go work()
			}
		}
	}, patience, 0)
	promise.Keptf(t, promise.Proof{Promise: "S20", Cases: cases, Failures: failures, Control: control},
		"%d frames in %s, one process, then ping", cases, took.Round(time.Millisecond))
}
