package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"

	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/server/httpserver"
	"github.com/mcp-funnel/mcp-funnel/server/oauth"
	"github.com/mcp-funnel/mcp-funnel/server/stdio"
	"github.com/mcp-funnel/mcp-funnel/system/database"
)

// serveHTTP serves MCP over HTTP until a signal ends it.
func serveHTTP(s *cli.Settings, ctx context.Context, a *cli.App, w *cli.Streams) error {
	identities, from, err := identities(s, a)
	if err != nil {
		return err
	}
	// An HTTP server outlives the process that started it; only signals end it.
	draining := make(chan struct{})
	life := stdio.Lifetime{}
	if s.Drain > 0 {
		life.Draining, life.Drain = draining, max(time.Duration(s.Drain), httpserver.MinDrain)
	}
	ctx, stop := life.Context(ctx)
	defer stop()
	srv, err := newServer(ctx, s, a)
	if err != nil {
		return err
	}
	options := s.Options().HTTP
	options.Identities, options.Links, options.Draining = identities, a.Links, draining
	if s.OAuthIssuer != "" {
		o := s.Options().OAuth
		o.Log = a.Log
		options.OAuth, _ = oauth.New(o) // the settings were checked
		go options.OAuth.Run(ctx)
	}
	if a.Database != nil {
		options.Relay = relay{a.Database}
		go shareRates(ctx, a.Database, srv)
	}
	if s.HTTPView && a.Store == nil {
		return errors.New("--view: there is no store to show; choose one with --store")
	} else if s.HTTPView {
		options.View = a.Viewer(s, false, srv.Options().SessionKey)
		defer options.View.Close()
	}
	if err := options.Check(); err != nil {
		return cli.Usagef("%w", err)
	}
	l, err := httpserver.Listen(ctx, s.HTTP, !from.generated)
	if network := net.Error(nil); err != nil && !errors.As(err, &network) {
		return cli.Usagef("%w", err)
	} else if err != nil {
		return err
	}
	at, hint := describeAddress(l.Addr(), len(s.AllowHost) > 0)
	cli.PrintMessage(w.Err, "serving MCP at "+at+"; "+from.text)
	if s.HTTPView {
		cli.PrintMessage(w.Err, "pages for people are at /view of the same address")
	}
	if hint != "" {
		cli.PrintMessage(w.Err, hint)
	}
	return ended(ctx, a.Log, httpserver.Serve(ctx, srv, l, options))
}

// relay implements [httpserver.Relay] by notifications of the database.
type relay struct{ db *database.DB }

const relayChannel = "sessions"

func (r relay) Publish(message []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second) // a client waits for it
	defer cancel()
	return r.db.Notify(ctx, relayChannel, string(message))
}

func (r relay) Hear(heard func([]byte)) (stop func()) {
	return r.db.Listen(relayChannel, func(message string) { heard([]byte(message)) })
}

// shareRates divides the rate of each identity by the replicas that are alive. While the database is away it leaves the
// shares as they are.
func shareRates(ctx context.Context, db *database.DB, srv *server.Server) {
	for {
		if alive, err := db.Replicas(ctx); err == nil {
			srv.SetReplicas(len(alive))
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(5 * time.Second):
		}
	}
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
func identities(s *cli.Settings, a *cli.App) (map[string]string, tokenSource, error) {
	token, set := os.LookupEnv(cli.TokenVariable)
	// Processes that this one starts must not inherit the token.
	_ = os.Unsetenv(cli.TokenVariable)
	switch {
	case s.TokenFile != "" && set:
		return nil, tokenSource{}, cli.Usagef("both --token-file and %s are set; unset one", cli.TokenVariable)
	case s.TokenFile != "":
		tokens, err := httpserver.ReadTokens(s.TokenFile)
		if err != nil {
			err = cli.Usagef("--token-file: %w", err)
		}
		return tokens, tokenSource{text: "tokens from " + s.TokenFile}, err
	case set:
		tokens, err := httpserver.OneToken(token)
		if err != nil {
			err = cli.Usagef("%s: %w", cli.TokenVariable, err)
		}
		return tokens, tokenSource{text: "token from " + cli.TokenVariable}, err
	case s.OAuthIssuer != "":
		return nil, tokenSource{text: "access tokens of " + s.OAuthIssuer}, nil
	case a.Store == nil:
		return nil, tokenSource{}, fmt.Errorf("there is no store to keep a token in: set --token-file or %s",
			cli.TokenVariable)
	}
	tokens, where, err := httpserver.KeepToken(a.Records)
	if err != nil {
		return nil, tokenSource{}, fmt.Errorf("%w; make the store writable, or set --token-file or %s", err,
			cli.TokenVariable)
	}
	return tokens, tokenSource{generated: true, text: "the token is in " + where}, nil
}
