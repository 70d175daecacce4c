package main

import (
	"errors"
	"os"
	"time"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"

	"github.com/mcp-funnel/mcp-funnel/observations"
	clientusage "github.com/mcp-funnel/mcp-funnel/session/usage"
)

// pulledAge is how old a record of a session file may be. The model was asked just before it called a tool, so an older
// record is of another session: Claude Code starts a server once, and a new session in it with each /clear.
const pulledAge = 10 * time.Minute

// sessionOf returns the session that the client of a call means; "" if it names none. Only over stdio does the client
// start the server, so that the environment is of its session.
func sessionOf(s *cli.Settings, all *clientusage.Accounts) func(owner string, meta map[string]any) string {
	environ := os.Getenv
	if s.HTTP != "" {
		environ = nil
	}
	return func(owner string, meta map[string]any) string {
		var joined func(string) (string, string, bool)
		if all != nil {
			joined = func(call string) (string, string, bool) { return all.Lookup(owner, call) }
		}
		return clientusage.SessionID(meta, environ, joined)
	}
}

// sessionFile returns the newest session file of a client in the current directory, or that of a session.
func sessionFile(c *clientusage.Client, session string) (string, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return "", err
	}
	return c.Find(cwd, session)
}

// unnamedSession returns why --usage-from claude finds no session file; "" if it does. Claude Code names its session to
// a server that it starts, and in no call.
func unnamedSession(s *cli.Settings) string {
	if s.UsageFrom != "claude" || clientusage.SessionID(nil, os.Getenv, nil) != "" {
		return ""
	}
	return "--usage-from claude: CLAUDE_CODE_SESSION_ID is not set, so no session file is read and nothing is limited," +
		" unless calls name their session (PreToolUse hook of docs/BUDGET.md)"
}

// pullUsage returns what reads the usage of a session out of its client's file, nil without --usage-from. It reads the
// file of that session only: another one of the same directory has another context.
func pullUsage(s *cli.Settings, all *clientusage.Accounts) func(session string) *clientusage.Usage {
	client, ok := clientusage.Clients[s.UsageFrom]
	if !ok {
		return nil
	}
	return func(session string) *clientusage.Usage {
		path, err := sessionFile(client, session)
		if err != nil || session == "" {
			return nil
		}
		u, err := client.Last(path)
		if errors.Is(err, clientusage.ErrCompacted) && all != nil {
			_ = all.Forget(observations.Local, session, client.Source) // it is asked again with the next call
		}
		if err != nil || time.Since(u.At) > pulledAge {
			return nil
		}
		return &u
	}
}
