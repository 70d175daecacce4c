package usage

// Sources of a session's name, in the order in which SessionID asks them.
const (
	SessionFromUsage   = MetaKey
	SessionFromMeta    = SessionMetaKey
	SessionFromClient  = "client"      // an id that the client puts into `_meta` by itself
	SessionFromHook    = "hook"        // the client's hook named the session of a tool call
	SessionFromEnv     = "environment" // of a server that the client started
	SessionFromProcess = "process"     // nothing is known: the caller uses its process or connection
)

// clientKeys are the keys of `_meta` that hold a conversation's id: Codex, OpenCode, Visual Studio Code.
var clientKeys = []string{"threadId", "ai.opencode/sessionID", "vscode.conversationId"}

// toolUseKey holds Claude Code's id of a tool call, the only id that it sends.
const toolUseKey = "claudecode/toolUseId"

// environKey is set by Claude Code when it starts a server. It is one session only: /clear begins another.
const environKey = "CLAUDE_CODE_SESSION_ID"

// SessionID returns the name of the session that made a call, and where it comes from. joined returns the session and
// the agent of a tool call that a hook has named (account.Accounts.Lookup); it may be nil. environ must be nil if
// clients do not start this process: its environment then belongs to none of them. An id that cannot be a name is
// skipped. If nothing is known, id is "".
func SessionID(
	meta map[string]any, environ func(string) string, joined func(toolUseID string) (session, agent string, ok bool),
) (id, source string) {
	if report, ok := meta[MetaKey].(map[string]any); ok {
		if id := idIn(report, "session"); id != "" {
			return id, SessionFromUsage
		}
	}
	if id := idIn(meta, SessionMetaKey); id != "" {
		return id, SessionFromMeta
	}
	for _, key := range clientKeys {
		if id := idIn(meta, key); id != "" {
			return id, SessionFromClient
		}
	}
	if call := idIn(meta, toolUseKey); call != "" && joined != nil {
		if session, agent, ok := joined(call); ok && validID(session) {
			return Key(session, agent), SessionFromHook
		}
	}
	if environ != nil {
		if id := environ(environKey); validID(id) {
			return id, SessionFromEnv
		}
	}
	return "", SessionFromProcess
}

// Key returns the name of the session of an agent: a subagent has a context of its own, so it is a session of its own.
// agent is "" for the main conversation.
func Key(session, agent string) string {
	if agent == "" {
		return session
	}
	return session + "/" + agent
}

// idIn returns the member key of m if it is a valid ID, else "".
func idIn(m map[string]any, key string) string {
	if id, ok := m[key].(string); ok && validID(id) {
		return id
	}
	return ""
}
