package mcpclient

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Endpoint is a server that speaks streamable HTTP, or its predecessor of protocol 2024-11-05, HTTP with SSE.
type Endpoint struct {
	URL     string
	Headers map[string]string // sent with every request, and to this host only
}

// Remote is a session with an endpoint. Its methods are those of [Process].
type Remote struct {
	*link
	endpoint Endpoint
	client   *http.Client
	session  context.Context // ends when the server has lost the session, or with the link
	lose     context.CancelCauseFunc
	state    atomic.Pointer[state] // replaced while initialize is called
}

// state is what a server has said about its session.
type state struct {
	id       string // of Mcp-Session-Id
	protocol string // that was negotiated
	target   string // where messages are posted to
	older    bool   // responses come on a stream of their own: HTTP with SSE
}

// Times of a remote server.
const (
	requestTime  = 10 * time.Second // to connect, and for all but calls, whose contexts end them
	streamGrace  = time.Second      // for the end of a stream after its response; then its connection is closed
	longestPause = time.Minute      // between streams
	maxResumes   = 5                // of a call's stream without any event
)

// Errors of a server that sends us elsewhere. It is not followed, because the other host would get the headers.
var (
	errRedirect = errors.New("the server redirects to another host")
	errEndpoint = errors.New("the server names an endpoint on another host")
	errMethod   = errors.New("the server redirects to a page, and not as an MCP server does")
)

// Open returns a session with an endpoint, which is not initialized yet. It sends nothing.
func (e Endpoint) Open(log *slog.Logger, handler Handler) (*Remote, error) {
	u, err := url.Parse(e.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%s is no URL of a server: it must begin with http:// or https://", jsonrpc.Quoted(e.URL))
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext = (&net.Dialer{Timeout: requestTime}).DialContext
	jar, err := cookiejar.New(nil) // a load balancer finds the session by its cookie
	if err != nil {
		return nil, err
	}
	r := &Remote{endpoint: e, link: newLink(log, handler), client: &http.Client{
		Transport: transport,
		Jar:       jar,
		CheckRedirect: func(to *http.Request, via []*http.Request) error {
			switch {
			case len(via) > 3 || !sameOrigin(to.URL, u):
				return errRedirect
			case to.Method != via[0].Method:
				return errMethod
			}
			return nil
		},
	}}
	r.session, r.lose = context.WithCancelCause(r.life)
	r.transmit, r.closes = r.send, true
	r.state.Store(&state{target: e.URL})
	return r, nil
}

func sameOrigin(a, b *url.URL) bool { return a.Host == b.Host && a.Scheme == b.Scheme }

// Ended returns a channel that is closed when the server has lost the session. Calls that are running go on.
func (r *Remote) Ended() <-chan struct{} { return r.session.Done() }

// Close ends the session at the server, as far as it can be reached within a second.
func (r *Remote) Close() {
	now := r.state.Load()
	if r.session.Err() == nil || now.older {
		r.end(ErrEnded)
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	if now.id != "" {
		if response, err := r.do(ctx, http.MethodDelete, message{}, ""); err == nil {
			_ = response.Body.Close()
		}
	}
	r.client.CloseIdleConnections()
}

// Call is the same for every server, but the answer of initialize says which protocol later requests name.
func (r *Remote) Call(
	ctx context.Context, method string, params json.RawMessage, progress func(json.RawMessage),
) (json.RawMessage, error) {
	result, err := r.link.Call(ctx, method, params, progress)
	if err == nil && method == "initialize" {
		var agreed struct{ ProtocolVersion string }
		_ = json.Unmarshal(result, &agreed) // without it no version is sent
		now := *r.state.Load()
		now.protocol = agreed.ProtocolVersion
		r.state.Store(&now)
	}
	return result, err
}

type headersKey struct{} // of the headers in a context

// WithHeaders returns a context whose calls send these headers over HTTP; see [ParamHeaders].
func WithHeaders(ctx context.Context, headers map[string]string) context.Context {
	return context.WithValue(ctx, headersKey{}, headers)
}

// ParamHeaders returns the headers that repeat arguments of a tools/call with these params, such as Mcp-Param-Region:
// those that the definition of the tool marks by x-mcp-header. They are encoded as MCP demands.
func ParamHeaders(definition, params json.RawMessage) map[string]string {
	var tool mcp.Tool
	_ = json.Unmarshal(definition, &tool) // one that cannot be read has no such arguments
	return mcp.GenerateParamHeaders(&tool, params)
}

// stateless returns the protocol version that a message of the stateless era declares; "" for other messages.
func (m message) stateless() string {
	var p struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	_ = json.Unmarshal(m.params, &p)                                  // the caller's own JSON
	version, _ := jsonrpc.Unquote(p.Meta[mcp.MetaKeyProtocolVersion]) // it may be missing
	if !mcp.IsModernProtocol(version) {
		return ""
	}
	return version
}

// do sends a request. Its errors do not name the URL, which may hold a key. The caller closes the body.
func (r *Remote) do(ctx context.Context, method string, m message, last string) (*http.Response, error) {
	now := r.state.Load()
	request, err := http.NewRequestWithContext(ctx, method, now.target, bytes.NewReader(m.text))
	if err != nil {
		return nil, err
	}
	for name, value := range r.endpoint.Headers {
		request.Header.Set(name, value)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "text/event-stream")
	if method == http.MethodPost {
		request.Header.Set("Accept", "application/json, text/event-stream")
	}
	own := map[string]string{
		mcp.HeaderSessionID: now.id, mcp.HeaderProtocolVersion: now.protocol, "Last-Event-Id": last,
	}
	if version := m.stateless(); version != "" {
		own = mcp.StandardHeaders(version, mcp.MCPMethod(m.method), m.params)
		own[mcp.HeaderProtocolVersion] = version
	}
	for name, value := range own {
		if value != "" {
			request.Header.Set(name, value)
		}
	}
	headers, _ := ctx.Value(headersKey{}).(map[string]string)
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	response, err := r.client.Do(request)
	if u := (*url.Error)(nil); errors.As(err, &u) {
		err = u.Err
	}
	if err != nil {
		return nil, fmt.Errorf("the server cannot be reached: %w", err)
	}
	return response, nil
}

// send posts a message. The response to a request is awaited in a goroutine.
func (r *Remote) send(ctx context.Context, m message) error {
	switch {
	case m.id != "" && r.session.Err() != nil:
		return context.Cause(r.session)
	case m.id != "":
		go r.guard(func() { r.exchange(ctx, m) })
		return nil
	case m.method == "notifications/cancelled":
		go r.post(m) //nolint:errcheck // the call has ended
		return nil
	}
	err := r.post(m)
	if err == nil && m.method == "notifications/initialized" && !r.state.Load().older {
		go r.guard(r.listen)
	}
	return err
}

// post sends a message that is no request.
func (r *Remote) post(m message) error {
	ctx, stop := context.WithTimeout(r.life, requestTime)
	defer stop()
	response, err := r.do(ctx, http.MethodPost, m, "")
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // there is nothing in it
	return r.check(response, m)
}

// exchange posts a request and receives messages until its stream ends. call ends with the call, its cause says how.
func (r *Remote) exchange(call context.Context, m message) {
	ctx, cancel := context.WithCancel(context.WithValue(r.life, headersKey{}, call.Value(headersKey{})))
	defer cancel()
	defer context.AfterFunc(call, func() {
		if context.Cause(call) == errAnswered { //nolint:errorlint // it is never wrapped
			sleep(ctx, streamGrace) // a stream that ends leaves its connection to the next request
		}
		cancel()
	})()
	err := r.converse(ctx, call, m)
	if w := r.forget("n" + m.id); w != nil {
		w.end(err)
	}
}

// converse posts a request and receives messages until no more come; it returns why. If the stream breaks before the
// response, converse resumes it.
func (r *Remote) converse(ctx, call context.Context, m message) error {
	response, err := r.do(ctx, http.MethodPost, m, "")
	if err == nil && m.method == "initialize" && slices.Contains([]int{400, 404, 405}, response.StatusCode) {
		if why := r.openOlder(ctx); why == nil {
			_ = response.Body.Close()
			response, err = r.do(ctx, http.MethodPost, m, "")
		} else if errors.Is(why, errEndpoint) {
			err = why
		}
	}
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // it was read as far as it is needed
	if err := r.check(response, m); err != nil {
		return err
	}
	now := r.state.Load()
	if now.older {
		<-call.Done() // the response comes on the stream of all
		return nil
	}
	if m.method == "initialize" {
		r.state.Store(&state{id: response.Header.Get("Mcp-Session-Id"), target: now.target})
	}
	var c cursor
	err = r.consume(response, &c, "n"+m.id)
	version := m.stateless()
	for tries := 0; c.id != "" && version == "" && tries < maxResumes && !errors.Is(err, errLong) &&
		sleep(call, min(longestPause, cmp.Or(c.retry, 100*time.Millisecond)<<tries)); tries++ {
		at := c.id
		if err = r.get(ctx, &c, "n"+m.id); c.id != at {
			tries = -1
		}
		if status, refused := errors.AsType[noStreamError](err); refused && status < 500 {
			break
		}
	}
	return err
}

// check returns why a server does not serve a message. If it says so in a response, the response is received.
func (r *Remote) check(response *http.Response, m message) error {
	if response.StatusCode < 300 {
		return nil
	}
	text, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	now := r.state.Load()
	inSession := now.id != "" || now.older
	f, fault := jsonrpc.Parse(text)
	err := fmt.Errorf("the server answers %s: %s", response.Status, jsonrpc.Quoted(string(text)))
	switch {
	case response.StatusCode == http.StatusUnauthorized, response.StatusCode == http.StatusForbidden:
		err = fmt.Errorf("the server answers %s: it wants an authorization, such as "+
			"--header 'Authorization=Bearer ${TOKEN}'; a log-in by OAuth is not supported", response.Status)
		if response.StatusCode == http.StatusUnauthorized && inSession {
			r.lose(err) // some servers say so of a session that they have forgotten
		}
	case !inSession && fault == nil && f.IsResponse && f.Key == "n"+m.id:
		r.answered(f)
	case inSession && (response.StatusCode == http.StatusNotFound || response.StatusCode == http.StatusGone),
		response.StatusCode >= 500,
		response.StatusCode == http.StatusBadRequest && inSession && bytes.Contains(bytes.ToLower(text), []byte("session")):
		r.lose(err) // the next call opens a new session
	}
	return err
}

// lostSession matches errors of servers that have forgotten a session.
var lostSession = content.Pattern(`(?i)\bsession\b.*(not found|expired|invalid|unknown|missing|required|terminated|` +
	`closed|does not exist|no longer)|(no|no valid|invalid|unknown|expired|missing) (mcp[- ])?session|not initialized`)

// received receives a message. An error may say, with status 200, that the server has lost the session.
func (r *Remote) received(text []byte, of string) {
	var m struct{ Error *jsonrpc.Fault }
	const most = 4 << 10
	if r.state.Load().id != "" && len(text) < most && json.Unmarshal(text, &m) == nil && m.Error != nil &&
		(m.Error.Code <= -32000 && m.Error.Code > -32100 || m.Error.Code == invalidRequest) &&
		lostSession().MatchString(m.Error.Message) {
		r.lose(m.Error)
	}
	r.receive(text, of)
}

// consume receives the messages of a body, and returns why no more come. of is the call of the body, as for
// [link.receive].
func (r *Remote) consume(response *http.Response, c *cursor, of string) error {
	switch kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); kind {
	case "application/json":
		text, err := io.ReadAll(io.LimitReader(response.Body, maxFrame+1))
		if err == nil && len(text) > maxFrame {
			err = errLong
		}
		if err != nil {
			return err
		}
		r.received(bytes.TrimSpace(bytes.TrimPrefix(text, []byte(bom))), of)
		return fmt.Errorf("the server's answer is no response to the request: %s",
			jsonrpc.Quoted(string(text[:min(len(text), 1<<10)])))
	case "text/event-stream":
		err := r.receiveEvents(&eventLines{in: bufio.NewReader(response.Body)}, c, of)
		if errors.Is(err, errLong) {
			return err
		}
		return fmt.Errorf("the answer ended before the response: %w", err)
	default:
		return fmt.Errorf("the server answers with %s, and not as an MCP server does", jsonrpc.Quoted(kind))
	}
}

// noStreamError is the status of a server that has no stream.
type noStreamError int

func (e noStreamError) Error() string {
	return fmt.Sprintf("the answer ended before the response, and the server answers %d when it is resumed", int(e))
}

// get receives the server's own messages, or those of the stream that broke at a cursor. It returns why no more come.
func (r *Remote) get(ctx context.Context, c *cursor, of string) error {
	response, err := r.do(ctx, http.MethodGet, message{}, c.id)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // it was read to its end
	if response.StatusCode != 200 || !strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		return noStreamError(response.StatusCode)
	}
	return r.consume(response, c, of)
}

// listen receives the messages that belong to no call while the session lives, if the server has a stream of them.
func (r *Remote) listen() {
	var c cursor
	pause, opened := time.Second, false
	for {
		start := time.Now()
		err := r.get(r.session, &c, ownStream)
		status, refused := errors.AsType[noStreamError](err)
		switch {
		case refused && (!opened || status < 500):
			return // it has none, or has forgotten the session
		case time.Since(start) > pause:
			pause = time.Second
		}
		opened = opened || !refused
		if !sleep(r.session, max(pause, c.retry)) {
			return
		}
		pause = min(2*pause, longestPause)
	}
}

// sleep pauses. It reports false if ctx ends before.
func sleep(ctx context.Context, pause time.Duration) bool {
	timer, stop := context.WithTimeout(ctx, pause)
	defer stop()
	<-timer.Done()
	return ctx.Err() == nil
}

// openOlder opens the stream of HTTP with SSE, whose first event names the URL to post to. All messages of the server
// come on it, and its end is the end of the session.
func (r *Remote) openOlder(ctx context.Context) error {
	life, cancel := context.WithCancel(r.life)
	defer context.AfterFunc(ctx, cancel)()
	defer time.AfterFunc(requestTime, cancel).Stop()
	var c cursor
	response, err := r.do(life, http.MethodGet, message{}, "") //nolint:bodyclose // the goroutine below reads it to its end
	if err != nil {
		cancel()
		return err
	}
	in := &eventLines{in: bufio.NewReader(response.Body)}
	kind, data, err := c.next(in)
	target, wrong := response.Request.URL.Parse(string(data))
	switch {
	case err != nil:
	case kind != "endpoint" || wrong != nil:
		err = errMethod
	case !sameOrigin(target, response.Request.URL):
		err = errEndpoint
	}
	if err != nil {
		cancel() // which closes the body
		return err
	}
	r.state.Store(&state{target: target.String(), older: true})
	go r.guard(func() {
		defer cancel()
		_ = r.receiveEvents(in, &c, "")
		r.end(ErrEnded)
	})
	return nil
}
