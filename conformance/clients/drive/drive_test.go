// Package drive has the official Go SDK's client do on a server what a model's client does, and prints a line per
// check.
//
// It starts only a server that speaks stdio; others are named by their address.
package drive

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var (
	transport = flag.String("transport", "", "stdio, http or sse")
	version   = flag.String("protocol", "2025-11-25", "protocol version to ask for")
	url       = flag.String("url", "", "endpoint of http and sse")
	token     = flag.String("token", "", "bearer token of http and sse")
	matches   = flag.Int("matches", 0, "lines of the workspace that hold the word needle")
)

// TestDrive is compiled and run by TestClients of conformance/, with flags that name a server.
func TestDrive(t *testing.T) {
	if *transport == "" {
		t.Skip("no server is named: TestClients in conformance/ runs this with -transport")
	}
	d := driver{
		transport: *transport, version: *version, url: *url, token: *token, matches: *matches, command: flag.Args(),
	}
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	if err := d.run(ctx); err != nil {
		t.Error("not ok", d.label("connect"), err)
	}
	if d.failed {
		t.Fail()
	}
}

type driver struct {
	transport, version, url, token string
	matches                        int
	command                        []string

	session *mcp.ClientSession
	failed  bool
	kept    string // ID of the observation the large call made

	mu    sync.Mutex
	notes map[any][]float64 // progress told, by token
	over  bool              // some progress was over its total
}

func (d *driver) label(check string) string {
	return fmt.Sprintf("go-sdk %s %s %s:", d.transport, d.version, check)
}

// isBusy says that the server had no room: it lets one call in at once (--max-calls 1), and a place is free a moment
// after the answer or the cancellation. Over HTTP the SDK shows no more than the status.
func isBusy(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "busy: ") || strings.Contains(err.Error(), "Service Unavailable"))
}

// check prints what a check found. It is made again for as long as the server is busy.
func (d *driver) check(ctx context.Context, name string, of func(context.Context) (string, error)) {
	ctx, stop := context.WithTimeout(ctx, 5*time.Minute)
	defer stop()
	found, err := of(ctx)
	for isBusy(err) && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
		found, err = of(ctx)
	}
	if err != nil {
		d.failed = true
		fmt.Println("not ok", d.label(name), err)
		return
	}
	fmt.Println("ok", d.label(name), found)
}

func (d *driver) run(ctx context.Context) error {
	d.notes = map[any][]float64{}
	client := mcp.NewClient(&mcp.Implementation{Name: "drive", Version: "1"}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{}, // no roots: an empty list of them would narrow what tools may read
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.notes[r.Params.ProgressToken] = append(d.notes[r.Params.ProgressToken], r.Params.Progress)
			d.over = d.over || r.Params.Total > 0 && r.Params.Progress > r.Params.Total
		},
	})
	way, err := d.way(ctx)
	if err != nil {
		return err
	}
	if d.session, err = client.Connect(ctx, way, &mcp.ClientSessionOptions{ProtocolVersion: d.version}); err != nil {
		return err
	}
	d.check(ctx, "connect", d.connected)
	d.check(ctx, "list", d.list)
	d.check(ctx, "call", d.small)
	d.check(ctx, "large receipt", d.large)
	d.check(ctx, "jq", d.jq)
	d.check(ctx, "resource", d.resource)
	d.check(ctx, "progress", d.progress)
	d.check(ctx, "cancel", d.cancel)
	d.check(ctx, "bad call", d.bad)
	d.check(ctx, "close", func(context.Context) (string, error) { return "", d.session.Close() })
	return nil
}

// way is the transport to the server.
func (d *driver) way(ctx context.Context) (mcp.Transport, error) {
	client := &http.Client{Transport: bearer(d.token)}
	switch d.transport {
	case "stdio":
		if len(d.command) == 0 {
			return nil, errors.New("stdio needs a command")
		}
		cmd := exec.CommandContext(ctx, d.command[0], d.command[1:]...)
		cmd.Stderr = os.Stderr
		return &mcp.CommandTransport{Command: cmd}, nil
	case "http":
		return &mcp.StreamableClientTransport{Endpoint: d.url, HTTPClient: client, MaxRetries: -1}, nil
	case "sse":
		return &mcp.SSEClientTransport{Endpoint: d.url, HTTPClient: client}, nil
	}
	return nil, fmt.Errorf("no transport %q", d.transport)
}

// bearer sends its token with every request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if b != "" {
		r.Header.Set("Authorization", "Bearer "+string(b))
	}
	return http.DefaultTransport.RoundTrip(r)
}

// call makes one tools/call that has to succeed; the answer is its text.
func (d *driver) call(ctx context.Context, tool string, args map[string]any) (string, error) {
	result, err := d.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return "", err
	}
	if result.IsError {
		return "", errors.New(textOf(result))
	}
	return textOf(result), nil
}

func textOf(r *mcp.CallToolResult) string {
	if r == nil {
		return ""
	}
	var all []string
	for _, c := range r.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			all = append(all, t.Text)
		}
	}
	return strings.Join(all, "\n")
}

func (d *driver) connected(context.Context) (string, error) {
	r := d.session.InitializeResult()
	if r.ProtocolVersion != d.version {
		return "", fmt.Errorf("the server chose %s", r.ProtocolVersion)
	}
	if r.ServerInfo == nil || r.ServerInfo.Name != "mcp-funnel" || r.Instructions == "" {
		return "", fmt.Errorf("the server says of itself %+v, instructions %q", r.ServerInfo, r.Instructions)
	}
	return r.ServerInfo.Version, nil
}

func (d *driver) list(ctx context.Context) (string, error) {
	r, err := d.session.ListTools(ctx, nil)
	if err != nil {
		return "", err
	}
	var names []string
	for _, t := range r.Tools {
		names = append(names, t.Name)
	}
	for _, want := range []string{"search", "find", "read", "grep", "jq", "slice"} {
		if !slices.Contains(names, want) {
			return "", fmt.Errorf("%s is not among %v", want, names)
		}
	}
	return strings.Join(names, ", "), nil
}

func (d *driver) small(ctx context.Context) (string, error) {
	text, err := d.call(ctx, "read", map[string]any{"path": "small.txt"})
	if err == nil && !strings.Contains(text, "the small file") {
		err = fmt.Errorf("read says %q", text)
	}
	return text, err
}

var receipt = regexp.MustCompile(`^LARGE OUTPUT DETECTED: kept whole as obs:([0-9a-z]{12})\n`)

func (d *driver) large(ctx context.Context) (string, error) {
	text, err := d.call(ctx, "search", map[string]any{"pattern": "needle"})
	if err != nil {
		return "", err
	}
	m := receipt.FindStringSubmatch(text)
	if m == nil || !strings.Contains(text, strconv.Itoa(d.matches)+" matches in") {
		return "", fmt.Errorf("no receipt of %d matches: %s", d.matches, text)
	}
	d.kept = m[1]
	return "obs:" + d.kept, nil
}

func (d *driver) jq(ctx context.Context) (string, error) {
	text, err := d.call(ctx, "jq", map[string]any{"source": "obs:" + d.kept, "slurp": true, "filter": "length"})
	if err == nil && strings.TrimSpace(text) != strconv.Itoa(d.matches) {
		err = fmt.Errorf("jq counts %q, want %d", text, d.matches)
	}
	return text, err
}

func (d *driver) resource(ctx context.Context) (string, error) {
	uri := "observation://" + d.kept
	listed := false
	for r, err := range d.session.Resources(ctx, nil) {
		if err != nil {
			return "", err
		}
		listed = listed || r.URI == uri
	}
	if !listed {
		return "", fmt.Errorf("%s is not listed", uri)
	}
	r, err := d.session.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri + "/receipt"})
	if err != nil {
		return "", err
	}
	if len(r.Contents) != 1 || !strings.HasPrefix(r.Contents[0].Text, "LARGE OUTPUT DETECTED") {
		return "", fmt.Errorf("the receipt reads %+v", r.Contents)
	}
	return fmt.Sprintf("%d bytes", len(r.Contents[0].Text)), nil
}

// progress reads many files: the first of them is always told.
func (d *driver) progress(ctx context.Context) (string, error) {
	p := &mcp.CallToolParams{Name: "read", Arguments: map[string]any{"path": "many/*.txt"}}
	p.SetProgressToken("drive-progress")
	r, err := d.session.CallTool(ctx, p)
	if err != nil {
		return "", err
	}
	if r.IsError {
		return "", errors.New(textOf(r))
	}
	// The SDK hands notes and answers to different goroutines: that the note came first shows on the wire, not here.
	for {
		d.mu.Lock()
		told, tokens, over := slices.Clone(d.notes["drive-progress"]), len(d.notes), d.over
		d.mu.Unlock()
		switch {
		case tokens > 1:
			return "", fmt.Errorf("%d tokens were told of, one was given", tokens)
		case over || !slices.IsSorted(told):
			return "", fmt.Errorf("progress went %v, over its total: %t", told, over)
		case len(told) > 0:
			return fmt.Sprint(told), nil
		}
		select {
		case <-ctx.Done():
			return "", errors.New("no progress was told")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// cancel stops an endless call; if that went on, there would be no room for the next.
func (d *driver) cancel(ctx context.Context) (string, error) {
	short, stop := context.WithTimeout(ctx, 300*time.Millisecond)
	defer stop()
	// It ends by being stopped.
	_, err := d.call(short, "jq", map[string]any{"source": "small.json", "filter": "last(range(1e12))"})
	if isBusy(err) {
		return "", err
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		return "", fmt.Errorf("the endless call ended with %v", err)
	}
	began := time.Now()
	for {
		_, err := d.small(ctx)
		if !isBusy(err) || ctx.Err() != nil {
			return fmt.Sprintf("room again after %d ms", time.Since(began).Milliseconds()), err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// bad is answered in words, and service goes on.
func (d *driver) bad(ctx context.Context) (string, error) {
	r, err := d.session.CallTool(ctx, &mcp.CallToolParams{Name: "read", Arguments: map[string]any{"path": "../outside"}})
	if err != nil {
		return "", err
	}
	if text := textOf(r); !r.IsError || strings.Contains(text, "busy: ") {
		return "", fmt.Errorf("a path outside the roots was read: %s", text)
	}
	if r, err := d.session.CallTool(ctx, &mcp.CallToolParams{Name: "no such tool"}); err == nil || isBusy(err) {
		return "", fmt.Errorf("a tool that is not there: %q %v", textOf(r), err)
	}
	_, err = d.call(ctx, "read", map[string]any{"path": "small.txt"})
	return "", err
}
