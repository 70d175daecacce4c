package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/mcp-funnel/mcp-funnel/server/httpserver"
	"github.com/mcp-funnel/mcp-funnel/server/stdio"
)

// tokenVariable names the environment variable of the token. No flag takes a token: other users can read command lines.
const tokenVariable = "MCP_FUNNEL_TOKEN"

// serveHTTP serves MCP over HTTP until a signal ends it.
func (s *Settings) serveHTTP(ctx context.Context, a *app, w *streams) error {
	identities, from, err := s.identities(a)
	if err != nil {
		return err
	}
	// An HTTP server outlives the process that started it; only signals end it.
	ctx, stop := stdio.Lifetime{}.Context(ctx)
	defer stop()
	srv, err := s.server(a)
	if err != nil {
		return err
	}
	options := s.options().HTTP
	options.Identities = identities
	if err := options.Check(); err != nil {
		return usageError{err}
	}
	l, err := httpserver.Listen(ctx, s.HTTP, !from.generated)
	if network := net.Error(nil); err != nil && !errors.As(err, &network) {
		return usageError{err}
	} else if err != nil {
		return err
	}
	at, hint := describeAddress(l.Addr(), len(s.AllowHost) > 0)
	printMessage(w.err, "serving MCP at "+at+"; "+from.text)
	if hint != "" {
		printMessage(w.err, hint)
	}
	return a.ended(ctx, httpserver.Serve(ctx, srv, l, options))
}

// describeAddress returns the URL at which this machine reaches the server, and a hint about --allow-host if other
// machines can reach it too and no name is allowed yet.
func describeAddress(at net.Addr, named bool) (url, hint string) {
	bound, err := netip.ParseAddrPort(at.String())
	if err != nil {
		return "http://" + at.String() + "/mcp", ""
	}
	ip, all := bound.Addr(), ""
	switch {
	case ip.IsLoopback():
		named = true
	case ip == netip.IPv4Unspecified():
		ip, all = netip.AddrFrom4([4]byte{127, 0, 0, 1}), "all IPv4 addresses"
	case ip == netip.IPv6Unspecified():
		ip, all = netip.IPv6Loopback(), "all addresses"
	}
	url = "http://" + netip.AddrPortFrom(ip, bound.Port()).String() + "/mcp"
	if all != "" {
		url += "; listening on " + all
	}
	if !named {
		hint = "requests for localhost and for the IP address itself are accepted; for a name by which other machines call this one, add --allow-host NAME"
	}
	return url, hint
}

// tokenSource says where the tokens came from.
type tokenSource struct {
	generated bool // by this program, not chosen by the operator
	text      string
}

// identities returns owner by token: from the token file, else from the variable, else from a token that is
// generated once and kept in the store.
func (s *Settings) identities(a *app) (map[string]string, tokenSource, error) {
	token, set := os.LookupEnv(tokenVariable)
	// Processes that this one starts must not inherit the token.
	_ = os.Unsetenv(tokenVariable)
	switch {
	case s.TokenFile != "" && set:
		return nil, tokenSource{}, usagef("both --token-file and %s are set; unset one", tokenVariable)
	case s.TokenFile != "":
		tokens, err := httpserver.ReadTokens(s.TokenFile)
		if err != nil {
			err = usagef("--token-file: %w", err)
		}
		return tokens, tokenSource{text: "tokens from " + s.TokenFile}, err
	case set:
		tokens, err := httpserver.OneToken(token)
		if err != nil {
			err = usagef("%s: %w", tokenVariable, err)
		}
		return tokens, tokenSource{text: "token from " + tokenVariable}, err
	case a.store == nil:
		return nil, tokenSource{}, fmt.Errorf("there is no store to keep a token in: set --token-file or %s", tokenVariable)
	}
	path, err := httpserver.KeepToken(a.store.Dir())
	if err != nil {
		return nil, tokenSource{}, fmt.Errorf("%w; make the store writable, or set --token-file or %s", err, tokenVariable)
	}
	tokens, err := httpserver.ReadTokens(path)
	return tokens, tokenSource{generated: true, text: "the token is in " + path}, err
}
