package usage

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

func TestParseMeta(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     Usage
		err      string // a part of the error
	}{
		{
			name: "all fields",
			in: `{"session":"s","turn":"t","prompt_tokens":51234,"response_tokens_reserved":4096,"window":200000,
				"at":"2026-03-14T09:26:53.5+01:00","source":"codex-session-file"}`,
			want: Usage{
				Session: "s", Turn: "t", PromptTokens: 51234, ResponseTokensReserved: 4096, Window: 200000,
				At: time.Date(2026, 3, 14, 8, 26, 53, 5e8, time.UTC), Source: FromMeta,
			},
		},
		{name: "the least", in: `{"prompt_tokens":0}`, want: Usage{Source: FromMeta}},
		{name: "an exponent", in: `{"prompt_tokens":1.0e5}`, want: Usage{PromptTokens: 1e5, Source: FromMeta}},
		{name: "a newer client", in: `{"prompt_tokens":5,"mood":"good"}`, want: Usage{PromptTokens: 5, Source: FromMeta}},
		{name: "nulls", in: `{"prompt_tokens":5,"window":null,"at":null}`, want: Usage{PromptTokens: 5, Source: FromMeta}},
		{name: "no prompt", in: `{"window":5}`, err: "prompt_tokens is missing"},
		{name: "a null prompt", in: `{"prompt_tokens":null}`, err: "prompt_tokens is missing"},
		{name: "negative", in: `{"prompt_tokens":-1}`, err: "must be a whole number from 0 to 100000000, not -1"},
		{name: "10^18", in: `{"prompt_tokens":1000000000000000000}`, err: "not 1000000000000000000"},
		{name: "10^400", in: `{"prompt_tokens":1e400}`, err: "not 1e400"},
		{name: "a fraction", in: `{"prompt_tokens":1.5}`, err: "not 1.5"},
		{name: "a window out of range", in: `{"prompt_tokens":1,"window":-5}`, err: "window must be"},
		{name: "a reserve as text", in: `{"prompt_tokens":1,"response_tokens_reserved":"x"}`, err: "reserved must be"},
		{name: "a number as text", in: `{"prompt_tokens":"5"}`, err: `not "5"`},
		{name: "an object as number", in: `{"prompt_tokens":{"a":1}}`, err: `not {"a":1}`},
		{name: "a number as session", in: `{"prompt_tokens":1,"session":5}`, err: "session must not be a JSON number"},
		{name: "an empty session", in: `{"prompt_tokens":1,"session":""}`, err: "session must be 1 to 200"},
		{name: "a long turn", in: `{"prompt_tokens":1,"turn":"` + strings.Repeat("x", 201) + `"}`, err: "turn must be"},
		{name: "an escape in a session", in: `{"prompt_tokens":1,"session":"a\u001b[2J"}`, err: "printable"},
		{name: "a wrong time", in: `{"prompt_tokens":1,"at":"yesterday"}`, err: "at must be a time"},
		{name: "a time far ahead", in: `{"prompt_tokens":1,"at":"9999-01-01T00:00:00Z"}`, err: "at must be a time"},
		{name: "an array", in: `[1]`, err: "must be an object"},
		{name: "a number", in: `5`, err: "must be an object"},
		{name: "nothing", in: ``, err: "is not a JSON object"},
		{name: "cut", in: `{"prompt_tokens":5`, err: "is not a JSON object"},
		{name: "two objects", in: `{"prompt_tokens":5}{}`, err: "text after the object"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ParseMeta(json.RawMessage(c.in))
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Fatalf("error %v, want %q", err, c.err)
			}
			if err != nil {
				if strings.Contains(err.Error(), "\n") || len(err.Error()) > 300 {
					t.Errorf("not one short line: %q", err)
				}
				return
			}
			expect.Same(t, got, c.want)
		})
	}
}

func TestSessionID(t *testing.T) {
	joined := func(call string) (string, string, bool) {
		switch call {
		case "toolu_1":
			return "hooked", "", true
		case "toolu_2":
			return "hooked", "explorer", true
		}
		return "", "", false
	}
	environ := func(name string) string { return map[string]string{"CLAUDE_CODE_SESSION_ID": "spawned"}[name] }
	all := func() map[string]any {
		return map[string]any{
			"funnel/usage": map[string]any{"session": "reported", "prompt_tokens": 1}, "funnel/session": "declared",
			"threadId": "codex", "ai.opencode/sessionID": "opencode", "vscode.conversationId": "vscode",
			"claudecode/toolUseId": "toolu_1", "progressToken": 1,
		}
	}
	without := func(keys ...string) map[string]any {
		m := all()
		for _, k := range keys {
			delete(m, k)
		}
		return m
	}
	ours := []string{"funnel/usage", "funnel/session"}
	clients := append(ours, "threadId", "ai.opencode/sessionID", "vscode.conversationId")
	bad := without(ours...)
	bad["threadId"], bad["funnel/session"], bad["funnel/usage"] = 5, "", map[string]any{"session": "a\x1b[2J"}
	for _, c := range []struct {
		name string
		meta map[string]any
		id   string
	}{
		{"the usage first", all(), "reported"},
		{"then the declared session", without("funnel/usage"), "declared"},
		{"then Codex", without(ours...), "codex"},
		{"or OpenCode", without("funnel/usage", "funnel/session", "threadId"), "opencode"},
		{"or VS Code", map[string]any{"vscode.conversationId": "vscode"}, "vscode"},
		{"then the hook", without(clients...), "hooked"},
		{"a subagent's call", map[string]any{"claudecode/toolUseId": "toolu_2"}, "hooked/explorer"},
		{"a call that no hook named", map[string]any{"claudecode/toolUseId": "toolu_3"}, "spawned"},
		{"then the environment", nil, "spawned"},
		{"ids that cannot be names", bad, "opencode"},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect.Equal(t, SessionID(c.meta, environ, joined), c.id)
		})
	}
	expect.Equal(t, SessionID(map[string]any{"claudecode/toolUseId": "toolu_1"}, nil, nil), "", "nothing is known")
}
