package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/mcp-funnel/mcp-funnel/server"
)

// tokenVariable holds the token where no file does. There is no flag for it: command lines can be read by others.
const tokenVariable = "MCP_FUNNEL_TOKEN"

func (s *Settings) serveHTTP(ctx context.Context, h *house, w *streams) error {
	identities, from, err := s.identities(h)
	if err != nil {
		return usageError{err}
	}
	// It outlives whoever started it, as servers do; signals end it.
	ctx, stop := server.Lifetime{}.Context(ctx)
	defer stop()
	srv, err := s.server(h)
	if err != nil {
		return err
	}
	l, err := server.Listen(ctx, s.HTTP, !from.made)
	if err != nil {
		return usageError{err}
	}
	_, _ = fmt.Fprintf(w.err, "mcp-funnel: serving MCP at http://%s/mcp; %s\n", l.Addr(), from.text)
	return h.ended(ctx, srv.ServeListener(ctx, l, server.HTTPOptions{
		Identities: identities, SSE: s.SSE, Hosts: s.AllowHost, Origins: s.AllowOrigin,
		Connections: s.HTTPConnections, Sessions: s.HTTPSessions, Idle: time.Duration(s.HTTPIdle),
	}))
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
		return nil, tokenSource{}, fmt.Errorf("both --token-file and %s are set; unset one", tokenVariable)
	case s.TokenFile != "":
		tokens, err := server.ReadTokens(s.TokenFile)
		return tokens, tokenSource{text: "tokens from " + s.TokenFile}, err
	case set:
		tokens, err := server.OneToken(token)
		if err != nil {
			err = fmt.Errorf("%s: %w", tokenVariable, err)
		}
		return tokens, tokenSource{text: "token from " + tokenVariable}, err
	case h.store == nil:
		return nil, tokenSource{}, fmt.Errorf("there is no store to keep a token in: set --token-file or %s", tokenVariable)
	}
	path, err := server.KeepToken(h.store.Dir())
	if err != nil {
		return nil, tokenSource{}, err
	}
	tokens, err := server.ReadTokens(path)
	return tokens, tokenSource{made: true, text: "the token is in " + path}, err
}
