package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/mcp-funnel/mcp-funnel/server"
)

// tokenVariable holds the token where no file does. There is no flag for it: command lines can be read by others.
const tokenVariable = "MCP_FUNNEL_TOKEN"

func (s *Settings) serveHTTP(ctx context.Context, h *house, w *streams) error {
	identities, from, err := s.identities(h)
	if err != nil {
		return err
	}
	// It outlives whoever started it, as servers do; signals end it.
	ctx, stop := server.Lifetime{}.Context(ctx)
	defer stop()
	srv, err := s.server(h)
	if err != nil {
		return err
	}
	options := server.HTTPOptions{
		Identities: identities, SSE: s.SSE, Hosts: s.AllowHost, Origins: s.AllowOrigin,
		Connections: s.HTTPConnections, Sessions: s.HTTPSessions, Idle: time.Duration(s.HTTPIdle),
	}
	if err := options.Check(); err != nil {
		return usageError{err}
	}
	l, err := server.Listen(ctx, s.HTTP, !from.made)
	if network := net.Error(nil); err != nil && !errors.As(err, &network) {
		return usageError{err}
	} else if err != nil {
		return err
	}
	at, hint := reach(l.Addr(), len(s.AllowHost) > 0)
	complain(w.err, "serving MCP at "+at+"; "+from.text)
	if hint != "" {
		complain(w.err, hint)
	}
	return h.ended(ctx, srv.ServeListener(ctx, l, options))
}

// reach is the URL at which this machine finds the server, and what to say of others where they can reach it.
func reach(at net.Addr, named bool) (url, hint string) {
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
		hint = "taken are requests for localhost and for the IP address itself; for a name by which other machines call this one, add --allow-host NAME"
	}
	return url, hint
}

// tokenSource says where the token came from.
type tokenSource struct {
	made bool // by us, not chosen by the operator
	text string
}

// identities are those who may come in: of the token file, else of the variable, else of a token made once and kept.
func (s *Settings) identities(h *house) (map[string]string, tokenSource, error) {
	token, set := os.LookupEnv(tokenVariable)
	// Nothing that this process starts is to have it.
	_ = os.Unsetenv(tokenVariable)
	switch {
	case s.TokenFile != "" && set:
		return nil, tokenSource{}, usagef("both --token-file and %s are set; unset one", tokenVariable)
	case s.TokenFile != "":
		tokens, err := server.ReadTokens(s.TokenFile)
		if err != nil {
			err = usagef("--token-file: %w", err)
		}
		return tokens, tokenSource{text: "tokens from " + s.TokenFile}, err
	case set:
		tokens, err := server.OneToken(token)
		if err != nil {
			err = usagef("%s: %w", tokenVariable, err)
		}
		return tokens, tokenSource{text: "token from " + tokenVariable}, err
	case h.store == nil:
		return nil, tokenSource{}, fmt.Errorf("there is no store to keep a token in: set --token-file or %s", tokenVariable)
	}
	path, err := server.KeepToken(h.store.Dir())
	if err != nil {
		return nil, tokenSource{}, fmt.Errorf("%w; make the store writable, or set --token-file or %s", err, tokenVariable)
	}
	tokens, err := server.ReadTokens(path)
	return tokens, tokenSource{made: true, text: "the token is in " + path}, err
}
