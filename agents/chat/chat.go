// Package chat completes one conversation at an OpenAI-compatible endpoint: a local model server, or a remote one that
// the operator allowed.
//
// Every request is self-contained; nothing is remembered between requests. It never follows a redirect to another host,
// and never logs the key.
package chat

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/system/osfile"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/secrets"
)

// Options of a Client.
type Options struct {
	URL         string        // of the API, as http://127.0.0.1:8080/v1
	Name        string        // of the model, as the endpoint knows it; may be empty
	KeyFile     string        // a file with the key; "": none is sent
	Context     int           // the model's context window in tokens; 0: that of the profile, or unknown
	Profile     string        // of [Profiles]; "": default
	AllowRemote bool          // the host need not be this machine
	Timeout     time.Duration // of one request without a byte from the endpoint; 5 min. In all it may take ten times that

	Count func(string) int // counts tokens, as an upper bound; a third of the bytes by default
}

const (
	defaultTimeout = 5 * time.Minute
	// maxReply is how many bytes of one reply are read.
	maxReply = 16 << 20
	// totalTimeouts is how many times Timeout a request may take in all.
	totalTimeouts = 10
	// maxKey is the largest key file in bytes.
	maxKey = 16 << 10
)

// Profile is what a model's requests may have. A parameter that is not named is not sent.
type Profile struct {
	Context    int            // window in tokens; 0: unknown
	MaxTokens  int            // of one reply; 0: not sent
	Parameters map[string]any // further parameters, as they are sent
	Prefill    bool           // the endpoint goes on with an assistant's message (llama.cpp: continue_final_message)
}

// Profiles by name. The figures of lfm2.5-1.2b are its maker's.
var Profiles = map[string]Profile{
	"default": {},
	"lfm2.5-1.2b": {
		Context: 8192, MaxTokens: 1024,
		Parameters: map[string]any{"temperature": 0.1, "top_k": 50, "top_p": 0.1, "repeat_penalty": 1.05},
		Prefill:    true,
	},
}

// Client talks to one endpoint. It is safe for concurrent use.
type Client struct {
	options Options
	profile Profile
	url     string // of the API
	host    string // of it
	key     string
	http    *http.Client
	mask    *secrets.Masker
}

// New returns a Client, or an error that names the setting that is wrong. It sends nothing.
func New(o Options) (*Client, error) {
	profile, ok := Profiles[cmp.Or(o.Profile, "default")]
	if !ok {
		return nil, fmt.Errorf("endpoint profile %q is not known; there are default and lfm2.5-1.2b", o.Profile)
	}
	u, err := url.Parse(o.URL)
	switch {
	case o.URL == "":
		return nil, errors.New("no endpoint: name one with --endpoint-url, as http://127.0.0.1:8080/v1")
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("endpoint URL %q: write it as http://127.0.0.1:8080/v1", content.ClipEnd(o.URL, 200))
	case u.User != nil:
		return nil, errors.New("endpoint URL: a user and password in it would be shown; use --endpoint-key-file")
	case !o.AllowRemote && !isLoopback(u.Hostname()):
		return nil, fmt.Errorf("endpoint %s is another machine: what is sent leaves this one; allow it with --endpoint-allow-remote",
			u.Host)
	}
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	o.Context = cmp.Or(o.Context, profile.Context)
	if o.Count == nil {
		o.Count = func(s string) int { return (len(s) + 2) / 3 }
	}
	c := &Client{
		options: o, profile: profile, mask: secrets.New(),
		url: strings.TrimSuffix(u.String(), "/"), host: u.Host,
	}
	if c.key, err = readKey(o.KeyFile); err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if isLoopback(u.Hostname()) {
		transport.Proxy = nil
	}
	c.http = &http.Client{Transport: transport, CheckRedirect: sameHost}
	return c, nil
}

// sameHost refuses redirects to another host, which would get the key and the conversation.
func sameHost(r *http.Request, via []*http.Request) error {
	if r.URL.Host != via[0].URL.Host || r.URL.Scheme != via[0].URL.Scheme || len(via) > 3 {
		return fmt.Errorf("the endpoint redirects to %s, which is not followed", r.URL.Host)
	}
	return nil
}

// isLoopback reports whether a host is this machine, without asking a name server.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// readKey reads a key from a file that only its owner may read.
func readKey(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	f, err := os.OpenFile(path, os.O_RDONLY|osfile.Nonblock, 0) // opening a FIFO would wait for a writer
	if err != nil {
		return "", fmt.Errorf("endpoint key file: %w", err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return "", fmt.Errorf("endpoint key file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("endpoint key file %s is no regular file", path)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 { // Windows has no such mode
		return "", fmt.Errorf("endpoint key file %s: others may read it; run chmod 600 on it", path)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxKey+1))
	if err != nil {
		return "", fmt.Errorf("endpoint key file: %w", err)
	}
	key := strings.TrimSpace(string(b))
	if key == "" || len(b) > maxKey || strings.ContainsAny(key, "\r\n\x00") {
		return "", fmt.Errorf("endpoint key file %s: it must have one line with the key", path)
	}
	return key, nil
}

// Context returns the model's context window in tokens; 0: unknown.
func (c *Client) Context() int { return c.options.Context }

// MaxTokens returns the largest reply of the profile in tokens; 0: not limited.
func (c *Client) MaxTokens() int { return c.profile.MaxTokens }

// Prefills reports whether the endpoint goes on with an assistant's message.
func (c *Client) Prefills() bool { return c.profile.Prefill }
