package usage

// sessionKeys are the keys of `_meta` that hold a session's id: the declared one, then those of Codex, OpenCode and
// Visual Studio Code.
var sessionKeys = []string{SessionMetaKey, "threadId", "ai.opencode/sessionID", "vscode.conversationId"}

// toolUseKey holds Claude Code's id of a tool call, the only id that it sends.
const toolUseKey = "claudecode/toolUseId"

// environKey is set by Claude Code when it starts a server. It is one session only: /clear begins another.
const environKey = "CLAUDE_CODE_SESSION_ID"

// SessionID returns the name of the session that made a call: that of the reported usage, else the declared one, else
// an id that the client puts into `_meta` by itself, else the one that its hook has named, else that of the environment.
// joined returns the session and the agent of a tool call that a hook has named (Accounts.Lookup); it may be nil.
// environ must be nil if clients do not start this process: its environment then belongs to none of them. An id that
// cannot be a name is skipped. If nothing is known, the result is "": the caller uses its process or connection.
func SessionID(
	meta map[string]any, environ func(string) string, joined func(toolUseID string) (session, agent string, ok bool),
) string {
	report, _ := meta[MetaKey].(map[string]any)
	if id := idIn(report, "session"); id != "" {
		return id
	}
	for _, key := range sessionKeys {
		if id := idIn(meta, key); id != "" {
			return id
		}
	}
	if call := idIn(meta, toolUseKey); call != "" && joined != nil {
		if session, agent, ok := joined(call); ok && validID(session) {
			return Key(session, agent)
		}
	}
	if environ != nil {
		if id := environ(environKey); validID(id) {
			return id
		}
	}
	return ""
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
