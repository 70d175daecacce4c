package stdio

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/server/servertest"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
)

// pipe is a server on real pipes in this process, and the client's ends of them.
type pipe struct {
	t    testing.TB
	in   *os.File
	out  *bufio.Reader
	raw  *os.File
	ends chan error
}

func servePipe(t testing.TB, ctx context.Context, s *server.Server) *pipe {
	t.Helper()
	inR, inW, err := os.Pipe()
	expect.Must(t, err)
	outR, outW, err := os.Pipe()
	expect.Must(t, err)
	p := &pipe{t: t, in: inW, out: bufio.NewReaderSize(outR, 1<<20), raw: outR, ends: make(chan error, 1)}
	go func() {
		err := Serve(ctx, s, inR, outW)
		_ = inR.Close()
		_ = outW.Close()
		p.ends <- err
	}()
	t.Cleanup(func() {
		_ = inW.Close()
		_ = outR.Close()
	})
	return p
}

func (p *pipe) write(lines ...string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, strings.Join(lines, "\n")+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

func (p *pipe) read() (servertest.Message, bool) {
	p.t.Helper()
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		if len(line) > 0 {
			p.t.Errorf("half a line: %.200q", line)
		}
		return servertest.Message{}, false
	}
	var m servertest.Message
	expect.Must(p.t, json.Unmarshal(line, &m), "JSON-RPC on stdout, %.200q", line)
	return m, true
}

func (p *pipe) end() error {
	p.t.Helper()
	select {
	case err := <-p.ends:
		return err
	case <-time.After(5 * time.Minute):
		p.t.Fatal("the server did not end in time")
		return nil
	}
}

func TestServeStdioLeavesNothing(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	p := servePipe(t, t.Context(), newTestServer(t))
	p.write(servertest.Initialize, "", "  \r", "\xef\xbb\xbf", servertest.ToolCall("1", "say", `{"text":"x"}`, "")+"\r")
	_ = p.in.Close()
	var ids []string
	for m, ok := p.read(); ok; m, ok = p.read() {
		ids = append(ids, string(m.ID))
	}
	slices.Sort(ids)
	// The third blank line is none: a byte order mark is taken at the very beginning only.
	expect.EqualList(t, ids, []string{`"init"`, "1", "null"}, "answered")
	expect.OK(t, p.end())
}

func TestByteOrderMarkAndBlankLines(t *testing.T) {
	p := servePipe(t, t.Context(), newTestServer(t))
	p.write("\xef\xbb\xbf"+servertest.Initialize, "", "\r", " \t ", `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	_ = p.in.Close()
	n := 0
	for m, ok := p.read(); ok; m, ok = p.read() {
		n++
		if m.Error != nil {
			t.Errorf("%+v", m.Error)
		}
	}
	expect.Equal(t, n, 2, "answers")
}

func TestAnswersAtEOF(t *testing.T) {
	s := newTestServer(t)
	for run := range 20 {
		p := servePipe(t, t.Context(), s)
		lines := []string{servertest.Initialize}
		for i := range 8 {
			lines = append(lines, servertest.ToolCall(fmt.Sprint(i), "sleep", fmt.Sprintf(`{"ms":%d}`, i*3), ""))
		}
		if _, err := io.WriteString(p.in, strings.Join(lines, "\n")); err != nil { // no newline at the end
			t.Fatal(err)
		}
		_ = p.in.Close()
		n := 0
		for m, ok := p.read(); ok; m, ok = p.read() {
			if m.Result == nil {
				t.Errorf("run %d: %+v", run, m.Error)
			}
			n++
		}
		if err := p.end(); err != nil || n != 9 {
			t.Errorf("run %d: %d of 9 answered, %v", run, n, err)
		}
	}
}

func TestGraceAtEOF(t *testing.T) {
	p := servePipe(t, t.Context(), newTestServer(t, func(o *server.Options) { o.EOFGrace = 100 * time.Millisecond }))
	p.write(
		servertest.Initialize, servertest.ToolCall("1", "sleep", `{"ms":60000,"deaf":true}`, ""),
		servertest.ToolCall("2", "sleep", `{"ms":60000}`, ""),
	)
	_ = p.in.Close()
	late := map[string]int{}
	for m, ok := p.read(); ok; m, ok = p.read() {
		if m.Error != nil && m.Error.Code == jsonrpc.CodeEnding {
			late[string(m.ID)]++
		}
	}
	if late["1"] != 1 || late["2"] != 1 {
		t.Errorf("told of the end: %v", late)
	}
	expect.OK(t, p.end())
}

// Nobody can answer a question once the input has ended: the call does not wait for it.
func TestQuestionAtEOF(t *testing.T) {
	s := newTestServer(t, func(o *server.Options) { o.Tools, o.EOFGrace = servertest.AskTools(), time.Hour })
	p := servePipe(t, t.Context(), s)
	p.write(
		strings.Replace(servertest.Initialize, `"capabilities":{}`, `"capabilities":{"elicitation":{}}`, 1),
		servertest.ToolCall("1", "greet", `{}`, ""),
	)
	var said string
	for m, ok := p.read(); ok; m, ok = p.read() {
		switch {
		case m.Method == "elicitation/create":
			_ = p.in.Close()
		case string(m.ID) == "1":
			said = string(m.Result)
		}
	}
	expect.Contains(t, said, "its input has ended")
	expect.OK(t, p.end())
}

func TestProgressOverStdio(t *testing.T) {
	const calls, each = 4, 75
	s := newTestServer(t, runs(servertest.Notes(each)))
	for round := range 5 {
		p := servePipe(t, t.Context(), s)
		p.write(servertest.Initialize)
		for i := range calls {
			p.write(servertest.ToolCall(fmt.Sprint(i), "say", "{}", fmt.Sprintf(`,"_meta":{"progressToken":"t%d"}`, i)))
		}
		_ = p.in.Close()
		got, answered, after := map[string]int{}, map[string]bool{}, 0
		for m, ok := p.read(); ok; m, ok = p.read() {
			switch {
			case m.Method == "notifications/progress":
				token := string(m.Params.ProgressToken)
				got[token]++
				expect.Equal(t, m.Params.Progress, got[token], "token %s: progress, note", token)
				if answered[token] {
					after++
				}
			case m.ID != nil:
				answered[`"t`+string(m.ID)+`"`] = true
			}
		}
		for i := range calls {
			if token := fmt.Sprintf(`"t%d"`, i); got[token] < each || !answered[token] { // late ones may have come in time
				t.Errorf("round %d: token %s: %d of %d notes, answered %v", round, token, got[token], each, answered[token])
			}
		}
		if after > 0 {
			t.Errorf("round %d: %d notes after the answer", round, after)
		}
	}
}

func TestPingAndCancelWhileBusy(t *testing.T) {
	p := servePipe(t, t.Context(), newTestServer(t))
	p.write(servertest.Initialize)
	p.read()
	// More than the gate lets in: the rest is answered busy at once.
	const asked, let = 400, server.DefaultMaxCalls
	for i := range asked {
		p.write(servertest.ToolCall(fmt.Sprint(i), "sleep", `{"ms":60000}`, ""))
	}
	busy := 0
	for range asked - let {
		m, _ := p.read()
		if strings.Contains(string(m.Result), "busy") {
			busy++
		}
	}
	expect.Equal(t, busy, asked-let, "told busy")
	var took []time.Duration
	for i := range 200 {
		start := time.Now()
		p.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":"p%d","method":"ping"}`, i))
		if m, _ := p.read(); string(m.ID) != fmt.Sprintf(`"p%d"`, i) {
			t.Fatalf("ping %d was answered by %+v", i, m)
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	t.Logf("ping with %d calls running: p50 %v, p99 %v", let, took[100], took[198])
	if took[198] > 5*time.Second {
		t.Errorf("ping waited for calls: p99 %v", took[198])
	}
	for i := range asked { // most of them unknown by now
		p.write(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, i))
	}
	_ = p.in.Close()
	if m, ok := p.read(); ok {
		t.Errorf("a cancelled call was answered: %+v", m)
	}
	expect.OK(t, p.end())
}

// endless gives size bytes of one line, after a beginning.
type endless struct {
	begin string
	size  int64
}

func (e *endless) Read(b []byte) (int, error) {
	if e.begin != "" {
		n := copy(b, e.begin)
		e.begin = e.begin[n:]
		return n, nil
	}
	if e.size <= 0 {
		return 0, io.EOF
	}
	n := int(min(int64(len(b)), e.size))
	for i := range b[:n] {
		b[i] = 'x'
	}
	e.size -= int64(n)
	return n, nil
}

func TestLinesInBoundedMemory(t *testing.T) {
	const maxLine, size = 1 << 20, 300 << 20
	next := "\n" + servertest.Initialize + "\n" + `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	in := io.MultiReader(&endless{begin: `{"jsonrpc":"2.0","id":"long","method":"`, size: size}, strings.NewReader(next))
	var out bytes.Buffer
	s := newTestServer(t, func(o *server.Options) { o.MaxMessage = maxLine })
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	expect.Must(t, Serve(t.Context(), s, in, &out))
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 16*maxLine {
		t.Errorf("%d bytes were allocated for one line of %d, with a limit of %d", grown, size, maxLine)
	}
	expect.Contains(
		t, out.String(), `"id":"long","error":{"code":-32600`, "--max-message", `"id":"init","result"`, `"id":1,"result":{}`,
	)
}

func TestLineReader(t *testing.T) {
	long := strings.Repeat("a", 10)
	for _, test := range []struct {
		in   string
		want string // lines between bars; ! for one too long
	}{
		{"", ""}, {"\n\r\n \n", ""}, {"a\nb", "a|b"}, {"a\r\nb\r\n", "a|b"}, {"\xef\xbb\xbfa\n\xef\xbb\xbfb", "a|\xef\xbb\xbfb"},
		{long + "\n", long}, {long + "\r\n" + long, long + "|" + long}, {long + "b\nc", "!|c"}, {long + long, "!"},
		{long + long + "\r\n\nc\n" + long + "b", "!|c|!"},
	} {
		r := jsonrpc.NewLineReader(strings.NewReader(test.in), 10)
		var got []string
		for {
			line, err := r.Next()
			var over *jsonrpc.TooLongError
			if errors.As(err, &over) {
				got = append(got, "!")
				continue
			}
			if err != nil {
				expect.ErrorIs(t, err, io.EOF)
				break
			}
			got = append(got, string(line))
		}
		expect.Equal(t, strings.Join(got, "|"), test.want, "%q: %q", test.in, got)
	}
	broken := errors.New("broken")
	r := jsonrpc.NewLineReader(io.MultiReader(strings.NewReader("half"), errReader{broken}), 10)
	if line, err := r.Next(); !errors.Is(err, broken) {
		t.Errorf("%q, %v", line, err)
	}
}

type errReader struct{ err error }

func (e errReader) Read([]byte) (int, error) { return 0, e.err }

func TestInputError(t *testing.T) {
	broken := errors.New("broken")
	in := io.MultiReader(strings.NewReader(servertest.Initialize+"\n"), errReader{broken})
	var out bytes.Buffer
	expect.ErrorIs(t, Serve(t.Context(), newTestServer(t), in, &out), broken)
	expect.Contains(t, out.String(), `"id":"init"`)
}

// bigAnswers has every call answered with size bytes.
func bigAnswers(size int) func(context.Context, funnel.Request) (funnel.Answer, error) {
	text := strings.Repeat("x", size)
	return func(context.Context, funnel.Request) (funnel.Answer, error) {
		return funnel.Answer{Blocks: []funnel.Block{{Text: text}}}, nil
	}
}

func TestClientThatNeverReads(t *testing.T) {
	s := newTestServer(t, func(o *server.Options) { o.WriteTimeout = 300 * time.Millisecond }, runs(bigAnswers(1<<20)))
	p := servePipe(t, t.Context(), s)
	p.write(servertest.Initialize)
	go func() {
		for i := range 200 { // stops when the server closes its end
			if _, err := io.WriteString(p.in, servertest.ToolCall(fmt.Sprint(i), "say", "{}", "")+"\n"); err != nil {
				return
			}
		}
	}()
	expect.ErrorIs(t, p.end(), jsonrpc.ErrStalled)
}

// TestOwnSlownessIsNotTheClients blocks a write although its pipe has room: this process is slow, not the client. The
// control is a pipe that is full.
func TestOwnSlownessIsNotTheClients(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("only Unix says whether a pipe has room: skipped")
	}
	const limit = 6 * jsonrpc.StallPollInterval
	r, w, err := os.Pipe()
	expect.Must(t, err)
	defer func() { _, _ = r.Close(), w.Close() }()
	out := blockedFile{w, make(chan struct{})}
	defer close(out.release)
	conn := newTestServer(t).Connect(t.Context())
	tr := &transport{
		conn: conn, out: out, box: jsonrpc.NewOutbox(out),
		options: server.Options{WriteTimeout: limit, Log: slog.New(slog.DiscardHandler)},
	}
	go tr.box.Run()
	expect.Must(t, tr.box.Send([]byte("{}\n"), nil))
	time.AfterFunc(4*limit, func() { conn.End(server.ErrEnding) })
	if tr.watch(func() bool { return true }); tr.box.Ctx.Err() != nil {
		t.Errorf("of a pipe with room: %v", tr.box.Flush())
	}
	expect.Must(t, w.SetWriteDeadline(time.Now().Add(limit)))
	if _, err := w.Write(make([]byte, 1<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("a pipe that nobody reads took 1 MiB: %v", err)
	}
	tr.conn = newTestServer(t).Connect(t.Context())
	if tr.watch(func() bool { return true }); tr.box.Ctx.Err() == nil ||
		!errors.Is(tr.box.Flush(), jsonrpc.ErrStalled) {
		t.Errorf("of a full pipe: want %v", jsonrpc.ErrStalled)
	}
}

// blockedFile is a file to which no write ends before release is closed.
type blockedFile struct {
	*os.File
	release chan struct{}
}

func (f blockedFile) Write([]byte) (int, error) {
	<-f.release
	return 0, os.ErrClosed
}

func TestFullOutputAtEOF(t *testing.T) {
	s := newTestServer(t, runs(bigAnswers(1<<20)))
	p := servePipe(t, t.Context(), s)
	p.write(servertest.Initialize, servertest.ToolCall("1", "say", "{}", ""))
	_ = p.in.Close()
	expect.ErrorIs(t, p.end(), jsonrpc.ErrStalled)
}

func TestSlowReaderGetsAll(t *testing.T) {
	s := newTestServer(t, runs(bigAnswers(5<<19)))
	p := servePipe(t, t.Context(), s)
	p.write(servertest.Initialize, servertest.ToolCall("1", "say", "{}", ""), servertest.ToolCall("2", "say", "{}", ""))
	_ = p.in.Close()
	size := 0
	b := make([]byte, 256<<10)
	for {
		n, err := p.raw.Read(b)
		size += n
		if err != nil {
			break
		}
		time.Sleep(20 * time.Millisecond) // longer in all than a client may read nothing
	}
	if err := p.end(); err != nil || size < 5<<20 {
		t.Errorf("%v, %d bytes", err, size)
	}
}

func TestBrokenOutput(t *testing.T) {
	p := servePipe(t, t.Context(), newTestServer(t))
	_ = p.raw.Close()
	p.write(servertest.Initialize)
	if err := p.end(); err == nil {
		t.Error("no error")
	}
}

func TestContextEndsIt(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	p := servePipe(t, ctx, newTestServer(t))
	p.write(
		servertest.Initialize, servertest.ToolCall("1", "sleep", `{"ms":60000,"deaf":true}`, ""),
		servertest.ToolCall("2", "sleep", `{"ms":60000}`, ""),
	)
	p.read()
	stop()
	if err := p.end(); err != nil { // long before the tool that ignores its context
		t.Error(err)
	}
	for m, ok := p.read(); ok; m, ok = p.read() { // what did stop may say so
		if m.Error == nil || m.Error.Code != jsonrpc.CodeEnding {
			t.Errorf("answered after the end: %+v", m)
		}
	}
}
