package cli

import (
	"os"

	"github.com/mcp-funnel/mcp-funnel/session/usage"
)

// SessionFiles are how the session files of a client are found and read.
type SessionFiles struct {
	find   func(p usage.Place, cwd, session string) (string, error)
	Read   func(path string) (usage.Usage, error)
	Source string // of the usage that Read returns
}

// SessionClients are the clients whose session files are read, by their value of --usage-from.
var SessionClients = map[string]SessionFiles{
	"claude": {usage.FindClaude, usage.FromClaudeFile, usage.FromClaude},
	"codex":  {usage.FindCodex, usage.FromCodexFile, usage.FromCodex},
}

// Path returns the newest session file of the current directory, or that of a session.
func (c SessionFiles) Path(session string) (string, error) {
	home, _ := os.UserHomeDir() // find reports an unknown one
	cwd, err := os.Getwd()
	if err != nil {
		return "", err
	}
	return c.find(usage.Place{Home: home, Environ: os.Getenv}, cwd, session)
}
