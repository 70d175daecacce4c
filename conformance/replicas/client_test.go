package replicas

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// eras are the protocols of streamable HTTP; the last one has no sessions.
var eras = []string{"2025-03-26", "2025-06-18", "2025-11-25", stateless}

const stateless = "2026-07-28"

// client is one client in its session.
type client struct {
	url, token, era, session string
	last                     atomic.Int64 // ID of a request
}

type object = map[string]any

// open makes a client, and its session where the protocol has them.
func open(t testing.TB, url, token, era string) *client {
	t.Helper()
	c := &client{url: url, token: token, era: era}
	if era == stateless {
		return c
	}
	a, header, err := c.send(t.Context(), "initialize", object{
		"protocolVersion": era, "capabilities": object{}, "clientInfo": object{"name": "replicas", "version": "1"},
	})
	expect.Must(t, err)
	expect.Contains(t, string(a), `"protocolVersion":"`+era+`"`)
	if c.session = header.Get("Mcp-Session-Id"); c.session == "" {
		t.Fatalf("%s: no session: %s", era, a)
	}
	return c
}

// errBroken is a connection that broke before the answer: the call may be repeated.
var errBroken = errors.New("the connection broke")

// send sends a request and returns its result. An error of the protocol is an error.
func (c *client) send(ctx context.Context, method string, params object) (json.RawMessage, http.Header, error) {
	headers := []string{
		"Content-Type", "application/json", "Accept", "application/json, text/event-stream",
		"Authorization", "Bearer " + c.token,
	}
	if c.era == stateless {
		name, _ := params["name"].(string)
		if uri, ok := params["uri"].(string); ok {
			name = uri
		}
		params["_meta"] = object{
			"io.modelcontextprotocol/protocolVersion":    stateless,
			"io.modelcontextprotocol/clientInfo":         object{"name": "replicas", "version": "1"},
			"io.modelcontextprotocol/clientCapabilities": object{},
		}
		headers = append(headers, "Mcp-Protocol-Version", stateless, "Mcp-Method", method)
		if name != "" {
			headers = append(headers, "Mcp-Name", name)
		}
	} else if c.session != "" {
		headers = append(headers, "Mcp-Session-Id", c.session, "Mcp-Protocol-Version", c.era)
	}
	message, err := json.Marshal(object{"jsonrpc": "2.0", "id": c.last.Add(1), "method": method, "params": params})
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	g, err := request(ctx, http.MethodPost, c.url+"/mcp", message, headers...)
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("%w: %w", errBroken, err)
	case g.status == http.StatusBadGateway:
		return nil, nil, fmt.Errorf("%w: %s", errBroken, g.body)
	case g.status != http.StatusOK:
		return nil, g.header, fmt.Errorf("%d %s", g.status, g.body)
	}
	result, err := answerIn(g)
	return result, g.header, err
}

// answerIn returns the result in an answer, which notes may precede.
func answerIn(g got) (json.RawMessage, error) {
	texts := [][]byte{g.body}
	if strings.HasPrefix(g.header.Get("Content-Type"), "text/event-stream") {
		texts = nil
		for line := range bytes.Lines(g.body) {
			if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
				texts = append(texts, data)
			}
		}
	}
	for _, text := range texts {
		var m struct {
			Method        string
			Result, Error json.RawMessage
		}
		if err := json.Unmarshal(text, &m); err != nil {
			return nil, fmt.Errorf("%w in %.300s", err, text)
		}
		if m.Error != nil {
			return nil, fmt.Errorf("the protocol's error %s", m.Error)
		}
		if m.Method == "" {
			return m.Result, nil
		}
	}
	return nil, fmt.Errorf("%w: no answer in %.300s", errBroken, g.body)
}

// answer is what a tool answered.
type answer struct {
	text    string
	failed  bool // the tool's error
	receipt struct {
		ID       string `json:"observation_id"`
		Kept     bool   `json:"kept"`
		Complete bool   `json:"complete"`
		Link     string `json:"link"`
	}
	meta object
	by   string // the replica
	took time.Duration
}

// call calls a tool.
func (c *client) call(ctx context.Context, tool string, args object) (a answer, err error) {
	began := time.Now()
	result, header, err := c.send(ctx, "tools/call", object{"name": tool, "arguments": args})
	if err != nil {
		return a, fmt.Errorf("%s %v: %w", tool, args, err)
	}
	var r struct {
		Content []struct{ Text string }
		IsError bool
		Meta    json.RawMessage `json:"_meta"`
	}
	if err := json.Unmarshal(result, &r); err != nil {
		return a, err
	}
	for _, block := range r.Content {
		a.text += block.Text
	}
	var m struct {
		Receipt json.RawMessage `json:"funnel/receipt"`
	}
	if r.Meta != nil {
		if err := errors.Join(json.Unmarshal(r.Meta, &m), json.Unmarshal(r.Meta, &a.meta)); err != nil {
			return a, err
		}
	}
	if m.Receipt != nil {
		if err := json.Unmarshal(m.Receipt, &a.receipt); err != nil {
			return a, err
		}
		a.receipt.ID = "obs:" + a.receipt.ID
	}
	a.failed, a.by, a.took = r.IsError, header.Get(servedBy), time.Since(began)
	return a, nil
}

// must is call, whose answer must be no error.
func (c *client) must(t testing.TB, tool string, args object) answer {
	t.Helper()
	a, err := c.call(t.Context(), tool, args)
	expect.Must(t, err)
	if a.failed {
		t.Fatalf("%s %v: %s", tool, args, a.text)
	}
	return a
}

var shownID = regexp.MustCompile(`obs:[0-9a-z]{12}\b`)

// link asks for a link with the client's token: to store something, or to read an observation.
func (c *client) link(ctx context.Context, id string) (url string, err error) {
	body, _ := json.Marshal(map[string]string{"id": id})
	if id == "" {
		body = []byte("{}")
	}
	g, err := request(ctx, http.MethodPost, c.url+"/link", body,
		"Content-Type", "application/json", "Authorization", "Bearer "+c.token)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errBroken, err)
	}
	var a struct{ URL string }
	if g.status != http.StatusOK || json.Unmarshal(g.body, &a) != nil || a.URL == "" {
		return "", statusError(g)
	}
	return a.URL, nil
}

func statusError(g got) error {
	if g.status == http.StatusBadGateway {
		return fmt.Errorf("%w: %s", errBroken, g.body)
	}
	return fmt.Errorf("%d %.300s", g.status, g.body)
}

// put stores something by a link of its own, and returns its ID.
func (c *client) put(ctx context.Context, data []byte) (id, by string, err error) {
	url, err := c.link(ctx, "")
	if err != nil {
		return "", "", err
	}
	g, err := request(ctx, http.MethodPut, url, data)
	if err != nil {
		return "", "", fmt.Errorf("%w: %w", errBroken, err)
	}
	var a struct{ ID string }
	if g.status != http.StatusCreated || json.Unmarshal(g.body, &a) != nil {
		return "", "", statusError(g)
	}
	return a.ID, g.header.Get(servedBy), nil
}
