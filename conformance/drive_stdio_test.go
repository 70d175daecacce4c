package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// stdioClient is the client of a server process, over its standard input and output. Calls may run concurrently.
type stdioClient struct {
	*process
	limit   time.Duration // for one answer
	replies map[string]func() any
	out     chan []byte // what is to be written, in order

	mu      sync.Mutex
	last    int                     // ID of a request
	waiting map[string]chan message // by ID
	heard   map[string]int          // what the server asked or told on its own, by method
	unasked []message               // answers that nobody waits for: to what was written raw, or too late
	broken  []string                // what is no message of the protocol
}

// object has the arguments of a call.
type object = map[string]any

// message is a message from the server.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Result  json.RawMessage `json:"result"`
	Error   *struct {
		Code    int
		Message string
	} `json:"error"`

	took time.Duration // from the request
	size int           // of its line, in bytes
}

// answer is the result of a tool call, as the model gets it.
type answer struct {
	blocks []string
	failed bool            // the tool's error, or the protocol's
	result json.RawMessage // all of it, where it is no error of the protocol
	took   time.Duration
}

func (a answer) text() string { return strings.Join(a.blocks, "\n") }

// answerLimit is the default time limit of an answer, against tests that hang.
const answerLimit = 5 * time.Minute

// errNoAnswer means that no answer came within the limit, or that the server has ended.
var errNoAnswer = errors.New("no answer")

// serveStdio starts the binary on a root, without a free-space floor, and makes the handshake.
func serveStdio(t testing.TB, root string, flags ...string) *stdioClient {
	t.Helper()
	return launch{
		env:   append(environment(t), "GOMEMLIMIT=3GiB"),
		flags: append([]string{"--root", root, "--min-free", "0"}, flags...),
	}.stdio(t)
}

// stdio starts the server and makes the handshake. The server is killed at the end of the test.
func (l launch) stdio(t testing.TB) *stdioClient {
	t.Helper()
	return connect(t, l.command(t), l)
}

// connect starts a server by a command.
func connect(t testing.TB, cmd *exec.Cmd, l launch) *stdioClient {
	t.Helper()
	c := &stdioClient{
		limit:   answerLimit,
		replies: l.replies,
		out:     make(chan []byte, 1024),
		waiting: map[string]chan message{},
		heard:   map[string]int{},
	}
	in := expect.Value(cmd.StdinPipe())(t)
	cmd.Stdout = &lineSplitter{each: c.take}
	c.process = run(t, cmd)
	go c.send(in)
	t.Cleanup(c.kill)
	hello := map[string]any{
		"protocolVersion": "2025-11-25",
		"capabilities":    map[string]any{},
		"clientInfo":      map[string]any{"name": "conformance", "version": "1"},
	}
	if l.capabilities != nil {
		hello["capabilities"] = l.capabilities
	}
	if l.first != nil {
		l.first.pour(c.write)
		c.write([]byte("\n"))
	}
	expect.Value(c.ask("initialize", hello))(t, "no handshake; %s", &c.log)
	c.notify("notifications/initialized", map[string]any{})
	return c
}

// send writes the queued messages. If the server has ended, waiting for its answer fails.
func (c *stdioClient) send(in io.Writer) {
	for {
		select {
		case line := <-c.out:
			_, _ = in.Write(line)
		case <-c.ended:
			return
		}
	}
}

// write queues bytes, sent unchanged and in order.
func (c *stdioClient) write(raw []byte) {
	select {
	case c.out <- raw:
	case <-c.ended:
	}
}

func (c *stdioClient) writeMessage(m map[string]any) {
	m["jsonrpc"] = "2.0"
	line, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	c.write(append(line, '\n'))
}

// lineSplitter calls a function with each line written to it.
type lineSplitter struct {
	rest []byte
	each func(line []byte)
}

func (s *lineSplitter) Write(p []byte) (int, error) {
	for rest := p; ; {
		line, more, whole := bytes.Cut(rest, []byte("\n"))
		s.rest = append(s.rest, line...)
		if !whole {
			return len(p), nil
		}
		if line := bytes.TrimSpace(s.rest); len(line) > 0 {
			s.each(line)
		}
		s.rest, rest = s.rest[:0], more
	}
}

func (c *stdioClient) take(line []byte) {
	batch := make([]message, 1)
	err := json.Unmarshal(line, &batch[0])
	if line[0] == '[' {
		err = json.Unmarshal(line, &batch)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range batch {
		m.size = len(line)
		to, waits := c.waiting[string(m.ID)]
		switch {
		case err != nil || !m.valid():
			c.broken = append(c.broken, fmt.Sprintf("%.300s", line))
			return
		case m.Method != "":
			c.heard[m.Method]++
			if m.ID != nil {
				go c.reply(m)
			}
		case waits:
			delete(c.waiting, string(m.ID))
			to <- m
		default:
			c.unasked = append(c.unasked, m)
		}
	}
}

// valid reports whether the message is a request, a notification, or an answer with a result or an error.
func (m message) valid() bool {
	if m.Version != "2.0" {
		return false
	}
	isResult := len(m.Result) > 0 && m.Result[0] == '{'
	return m.Method != "" || m.ID != nil && isResult != (m.Error != nil)
}

// reply answers a request of the server.
func (c *stdioClient) reply(m message) {
	if of := c.replies[m.Method]; of != nil {
		c.writeMessage(map[string]any{"id": m.ID, "result": of()})
	} else {
		c.writeMessage(map[string]any{"id": m.ID, "error": map[string]any{"code": -32601, "message": "not known here"}})
	}
}

// pending is a request without an answer yet.
type pending struct {
	c      *stdioClient
	method string
	id     string
	answer chan message
	begun  time.Time
}

// begin sends a request.
func (c *stdioClient) begin(method string, params any) pending {
	p := pending{c: c, method: method, answer: make(chan message, 1), begun: time.Now()}
	c.mu.Lock()
	c.last++
	p.id = strconv.Itoa(c.last)
	c.waiting[p.id] = p.answer
	c.mu.Unlock()
	c.writeMessage(map[string]any{"id": json.RawMessage(p.id), "method": method, "params": params})
	return p
}

// beginCall sends a tool call.
func (c *stdioClient) beginCall(name string, args any) pending {
	return c.begin("tools/call", map[string]any{"name": name, "arguments": args})
}

// tool returns the parameters of a tool call.
func tool(name string, args object) object { return object{"name": name, "arguments": args} }

// wait waits for the answer.
func (p pending) wait() (message, error) {
	timer := time.NewTimer(p.c.limit)
	defer timer.Stop()
	took := func(m message) (message, error) {
		m.took = time.Since(p.begun)
		return m, nil
	}
	select {
	case m := <-p.answer:
		return took(m)
	case <-p.c.ended:
		select {
		case m := <-p.answer: // its last
			return took(m)
		default:
		}
		return message{}, fmt.Errorf("%w to %s: the server has ended: %.16000s", errNoAnswer, p.method, &p.c.log)
	case <-timer.C:
		p.forget()
		return message{}, fmt.Errorf("%w to %s in %s", errNoAnswer, p.method, p.c.limit)
	}
}

// answered reports whether the answer has come.
func (p pending) answered() bool { return len(p.answer) > 0 }

// cancel cancels the request: no answer will come.
func (p pending) cancel() {
	p.c.notify("notifications/cancelled", map[string]any{"requestId": json.RawMessage(p.id)})
}

// forget stops waiting for the answer.
func (p pending) forget() {
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	delete(p.c.waiting, p.id)
}

func (c *stdioClient) notify(method string, params any) {
	c.writeMessage(map[string]any{"method": method, "params": params})
}

// ask sends a request and waits for its answer.
func (c *stdioClient) ask(method string, params any) (message, error) {
	return c.begin(method, params).wait()
}

// call calls a tool.
func (c *stdioClient) call(tool string, args any) (answer, error) {
	m, err := c.beginCall(tool, args).wait()
	if err != nil {
		return answer{}, err
	}
	return m.said()
}

// said parses the result of a tool call.
func (m message) said() (answer, error) {
	a := answer{result: m.Result, took: m.took}
	if m.Error != nil {
		a.blocks, a.failed = []string{m.Error.Message}, true
		return a, nil
	}
	var r struct {
		Content []struct{ Type, Text string }
		IsError bool
	}
	if err := json.Unmarshal(m.Result, &r); err != nil {
		return a, err
	}
	a.failed = r.IsError
	for _, b := range r.Content {
		if b.Type != "text" {
			b.Text = "(" + b.Type + ")"
		}
		a.blocks = append(a.blocks, b.Text)
	}
	return a, nil
}

func (c *stdioClient) ping() error {
	m, err := c.ask("ping", map[string]any{})
	if err == nil && m.Error != nil {
		err = errors.New(m.Error.Message)
	}
	return err
}

// strays returns the lines of standard output that are neither notifications nor answers to requests.
func (c *stdioClient) strays() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := append([]string{}, c.broken...)
	for _, m := range c.unasked {
		all = append(all, fmt.Sprintf("an answer to %s, which nobody asked: %s", m.ID, m.Result))
	}
	return all
}

// toldOnItsOwn counts the requests and notifications of the server, by method.
func (c *stdioClient) toldOnItsOwn() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.heard)
}
