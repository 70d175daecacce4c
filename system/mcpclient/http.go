package mcpclient

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
)

// Endpoint is a server that speaks streamable HTTP.
type Endpoint struct {
	URL     string
	Headers map[string]string // sent with every request, and to this host only
}

// Remote is a session with an endpoint. Its methods are those of [Process].
type Remote struct {
	endpoint Endpoint
	client   *http.Client
	last     atomic.Int64
	once     sync.Once
	ended    chan struct{}

	mu       sync.Mutex
	session  string // of Mcp-Session-Id
	protocol string // that was negotiated
}

// errRedirect is why a redirect to another host is not followed: it would get the headers.
var errRedirect = errors.New("the server redirects to another host")

// Open returns a session with an endpoint, which is not initialized yet. It sends nothing.
func (e Endpoint) Open(_ *slog.Logger, _ Handler) (*Remote, error) {
	u, err := url.Parse(e.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%s is no URL of a server: it must begin with http:// or https://", jsonrpc.Quoted(e.URL))
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = time.Minute
	return &Remote{endpoint: e, ended: make(chan struct{}), client: &http.Client{
		Transport: transport,
		CheckRedirect: func(to *http.Request, via []*http.Request) error {
			if len(via) > 3 || to.URL.Host != u.Host || to.URL.Scheme != u.Scheme {
				return errRedirect
			}
			return nil
		},
	}}, nil
}

// Ended returns a channel that is closed when the server has forgotten the session.
func (r *Remote) Ended() <-chan struct{} { return r.ended }

func (r *Remote) end() { r.once.Do(func() { close(r.ended) }) }

// Close ends the session at the server, as far as it can be reached within a second.
func (r *Remote) Close() {
	r.end()
	ctx, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	if request, err := r.request(ctx, http.MethodDelete, nil); err == nil && request.Header.Get("Mcp-Session-Id") != "" {
		if response, err := r.client.Do(request); err == nil {
			_ = response.Body.Close()
		}
	}
	r.client.CloseIdleConnections()
}

func (r *Remote) request(ctx context.Context, method string, body []byte) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, method, r.endpoint.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, value := range r.endpoint.Headers {
		request.Header.Set(name, value)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.session != "" {
		request.Header.Set("Mcp-Session-Id", r.session)
	}
	if r.protocol != "" {
		request.Header.Set("Mcp-Protocol-Version", r.protocol)
	}
	return request, nil
}

// Notify sends a notification.
func (r *Remote) Notify(method string, params json.RawMessage) error {
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	response, err := r.post(ctx, fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params))
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// post sends a message. The caller closes the body.
func (r *Remote) post(ctx context.Context, message []byte) (*http.Response, error) {
	request, err := r.request(ctx, http.MethodPost, message)
	if err != nil {
		return nil, err
	}
	response, err := r.client.Do(request)
	if err != nil {
		if u := (*url.Error)(nil); errors.As(err, &u) {
			err = u.Err // without the URL, which may hold a key
		}
		return nil, fmt.Errorf("the server cannot be reached: %w", err)
	}
	if response.StatusCode < 300 {
		return response, nil
	}
	defer response.Body.Close() //nolint:errcheck // the answer is read as far as it is needed
	text, _ := io.ReadAll(io.LimitReader(response.Body, 4<<10))
	switch {
	case response.StatusCode == http.StatusUnauthorized, response.StatusCode == http.StatusForbidden:
		return nil, fmt.Errorf("the server answers %s: it wants an authorization, such as "+
			"--header 'Authorization=Bearer ${TOKEN}'; a log-in by OAuth is not supported", response.Status)
	case response.StatusCode == http.StatusNotFound || response.StatusCode >= 500:
		r.end() // the next call opens a new session
	}
	return nil, fmt.Errorf("the server answers %s: %s", response.Status, jsonrpc.Quoted(string(text)))
}

// Call sends a request and returns the result of its response, as [Process] does.
func (r *Remote) Call(
	ctx context.Context, method string, params json.RawMessage, progress func(json.RawMessage),
) (json.RawMessage, error) {
	id := strconv.FormatInt(r.last.Add(1), 10)
	if progress != nil {
		var err error
		if params, err = WithMeta(params, "progressToken", json.RawMessage(id)); err != nil {
			return nil, err
		}
	}
	response, err := r.post(ctx, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params))
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // it was read to its last message
	f, err := responseIn(response, "n"+id, progress)
	if ctx.Err() != nil {
		_ = r.Notify("notifications/cancelled", fmt.Appendf(nil, `{"requestId":%s}`, id)) // the call has ended
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	if method == "initialize" {
		r.opened(response.Header.Get("Mcp-Session-Id"), f.Result)
	}
	return resultOf(method, f)
}

func (r *Remote) opened(session string, result json.RawMessage) {
	var agreed struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	_ = json.Unmarshal(result, &agreed) // without it no version is sent
	r.mu.Lock()
	defer r.mu.Unlock()
	r.session, r.protocol = session, agreed.ProtocolVersion
}

// responseIn returns the response with a key from a body of one message, or from a stream of events.
func responseIn(response *http.Response, key string, progress func(json.RawMessage)) (f jsonrpc.Frame, err error) {
	body := io.LimitReader(response.Body, maxFrame+1)
	kind, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
	switch kind {
	case "application/json":
		text, err := io.ReadAll(body)
		if err == nil && len(text) > maxFrame {
			err = fmt.Errorf("the answer has over %d MiB", maxFrame>>20)
		}
		if err != nil {
			return f, err
		}
		f, fault := jsonrpc.Parse(bytes.TrimSpace(text))
		if fault != nil || f.Key != key {
			return f, fmt.Errorf("the server's answer is no response to the request: %s", jsonrpc.Quoted(string(text)))
		}
		return f, nil
	case "text/event-stream":
		return nextResponse(bufio.NewReaderSize(body, 64<<10), key, progress)
	}
	return f, fmt.Errorf("the server answers with %s, and not as an MCP server does", jsonrpc.Quoted(kind))
}

// nextResponse reads events until the response with a key. Requests of the server are not answered.
func nextResponse(in *bufio.Reader, key string, progress func(json.RawMessage)) (f jsonrpc.Frame, err error) {
	var data []byte
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return f, fmt.Errorf("the answer ended before the response: %w", err)
		}
		line = bytes.TrimRight(line, "\r\n")
		if part, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			if len(data) > 0 {
				data = append(data, '\n')
			}
			data = append(data, bytes.TrimPrefix(part, []byte(" "))...)
		}
		if len(line) > 0 || len(data) == 0 {
			continue
		}
		message, fault := jsonrpc.Parse(data)
		switch {
		case fault != nil:
		case message.IsResponse && message.Key == key:
			return message, nil
		case message.Method == "notifications/progress" && progress != nil:
			progress(paramsOf(data))
		}
		data = nil
	}
}
