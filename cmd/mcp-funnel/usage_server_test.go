package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/records"
	clientusage "github.com/mcp-funnel/mcp-funnel/session/usage"
)

// served is a root with one large file, a store, and a server over them.
type served struct {
	hooked
	root string
}

func newServed(t *testing.T) served {
	s := served{newHooked(t), t.TempDir()}
	large := strings.Repeat("a total of the shop\n", 5_000)
	write(t, filepath.Join(s.root, "large.txt"), large)
	return s
}

// lockedText is a text that goroutines write and read.
type lockedText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// search serves one session on stdio that searches the large file once, and returns what the server wrote.
func (s served) search(meta string, flags ...string) string {
	s.t.Helper()
	frames := opening + `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"search",` +
		`"arguments":{"pattern":"total"},"_meta":` + meta + "}}\n"
	var o, e lockedText // a server that ends does not wait for ever for a writer
	args := append([]string{"serve", "--root", s.root, "--store", s.store, "--min-free", "0"}, flags...)
	expect.MustEqual(s.t, run(s.t.Context(), args, strings.NewReader(frames), &o, &e), done, "code: %s", e.String())
	return o.String()
}

// TestHookNamesTheSessionOfACall: the hook before a call names its session, whose account then counts the answer.
func TestHookNamesTheSessionOfACall(t *testing.T) {
	s := newServed(t)
	s.event("status.json")
	s.event("pre_tool_use.json")
	if out := s.search(`{"claudecode/toolUseId":"toolu_01"}`); !strings.Contains(out, "LARGE OUTPUT DETECTED") {
		t.Fatalf("no receipt: %.300s", out)
	}
	if a := s.account(shopSession); a.Shown < 100 || a.Pointers != 1 {
		t.Errorf("the call did not count: %+v", a)
	}
	s.search(`{"claudecode/toolUseId":"toolu_99"}`)
	if a := s.account(shopSession); a.Pointers != 1 {
		t.Errorf("another session's call counted: %+v", a)
	}
}

// TestUsageOfAHookDecides: with little left by the hook's report, an output is not shown.
func TestUsageOfAHookDecides(t *testing.T) {
	s := newServed(t)
	code, _, complaints := s.run(`{"session_id":"full","context_window":{"context_window_size":200000,
		"current_usage":{"input_tokens":194800}}}`)
	expect.MustEqual(t, code, done, complaints)
	expect.Has(t, s.search(`{"funnel/session":"full"}`), "context full", "no notice")
	if out := s.search(`{"funnel/session":"fresh"}`); strings.Contains(out, "context full") {
		t.Errorf("another session got a notice: %.600s", out)
	}
	if code, _, _ := s.run(`{"session_id":"full","hook_event_name":"PostCompact"}`); code != done {
		t.Error("no reset")
	}
	if out := s.search(`{"funnel/session":"full"}`); strings.Contains(out, "context full") {
		t.Errorf("a notice after the compaction: %.600s", out)
	}
}

// TestUsageFromASessionFile: --usage-from reads the file of the session that the client names, and no other.
func TestUsageFromASessionFile(t *testing.T) {
	s := newServed(t)
	home := t.TempDir()
	t.Setenv("CODEX_HOME", home)
	const thread = "019c1a2b-aaaa-7bbb-8ccc-0123456789ab"
	path := filepath.Join(home, "sessions", "2026", "03", "14", "rollout-2026-03-14T09-26-00-"+thread+".jsonl")
	record := func(tokens int, at time.Time) {
		t.Helper()
		write(t, path, fmt.Sprintf(`{"timestamp":%q,"type":"event_msg","payload":{"type":"token_count","info":{`+
			`"last_token_usage":{"input_tokens":%d},"total_token_usage":{"total_tokens":%[2]d},`+
			`"model_context_window":200000}}}`+"\n", at.UTC().Format(time.RFC3339Nano), tokens))
	}
	record(194_800, time.Now())
	mine, other := `{"threadId":"`+thread+`"}`, `{"threadId":"`+thread[:35]+`0"}`
	for _, c := range []struct {
		name, meta string
		flags      []string
		full       bool
	}{
		{"unasked", mine, nil, false},
		{"another session", other, []string{"--usage-from", "codex"}, false},
		{"no session", `{}`, []string{"--usage-from", "codex"}, false},
		{"another client", mine, []string{"--usage-from", "claude"}, false},
		{"this session", mine, []string{"--usage-from", "codex"}, true},
	} {
		if out := s.search(c.meta, c.flags...); strings.Contains(out, "context full") != c.full {
			t.Errorf("%s: %.600s", c.name, out)
		}
	}
	expect.Must(t, clientusage.OpenAccounts(records.InDir(s.store)).Reset(observations.Local, thread))
	record(194_800, time.Now().Add(-pulledAge-time.Minute))
	if out := s.search(mine, "--usage-from", "codex"); strings.Contains(out, "context full") {
		t.Errorf("an old record decided: %.600s", out)
	}
}

// TestWindowOfTheReportedModel: a session file has no window, but the model's name; its window, or that of --model, or
// the setting decides.
func TestWindowOfTheReportedModel(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	t.Setenv("CLAUDE_CONFIG_DIR", home)
	t.Chdir(dir)
	dir = expect.Value(os.Getwd())(t)
	const session = "11111111-1111-4111-8111-111111111111"
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, dir)
	for _, c := range []struct {
		model string
		used  int
		flags []string
		full  bool
		from  string
	}{
		{"claude-sonnet-4-5", 194_800, nil, true, `"window_from":"table"`},
		{"claude-sonnet-4-5", 10_000, nil, false, `"window_from":"table"`},
		{"claude-sonnet-4-5", 194_800, []string{"--context-window", "1000000"}, false, `"window_from":"setting"`},
		{"claude-sonnet-4-5", 210_000, nil, false, `"window_from":"table"`},
		{"claude-sonnet-4-5", 194_800, []string{"--model", "claude-sonnet-4-5[1m]"}, false, `"window_from":"table"`},
		{"unknown-1", 194_800, nil, false, ""},
		{"unknown-1", 194_800, []string{"--model", "claude-opus-4-1"}, true, `"window_from":"table"`},
	} {
		s := newServed(t)
		write(t, filepath.Join(home, "projects", name, session+".jsonl"), fmt.Sprintf(
			`{"type":"assistant","sessionId":%q,"timestamp":%q,`+
				`"message":{"id":"m1","model":%q,"usage":{"input_tokens":%d}}}`+"\n",
			session, time.Now().UTC().Format(time.RFC3339Nano), c.model, c.used,
		))
		out := s.search(`{"funnel/session":"`+session+`"}`, append(c.flags, "--usage-from", "claude")...)
		traced := ""
		files, _ := filepath.Glob(filepath.Join(s.store, "trace", "*"))
		for _, f := range files {
			text, _ := os.ReadFile(f)
			traced += string(text)
		}
		if strings.Contains(out, "context full") != c.full || !strings.Contains(traced, c.from) ||
			c.from == "" && strings.Contains(traced, "window_from") {
			t.Errorf("%+v: %.600s\n%s", c, out, traced)
		}
	}
}

// TestUsageFromClaudeWithoutASession checks that a server and doctor say that --usage-from claude limits nothing where
// Claude Code has not named its session.
func TestUsageFromClaudeWithoutASession(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	t.Setenv("CLAUDE_CONFIG_DIR", home)
	t.Chdir(dir)
	const session, said = "11111111-1111-4111-8111-111111111111", "CLAUDE_CODE_SESSION_ID is not set"
	for _, k := range []struct {
		id, from string
		warns    bool
		doctor   string
	}{
		{"", "claude", true, said}, {"", "codex", false, "weak usage      --usage-from codex: "},
		{"", "none", false, "no session has reported"}, {session, "claude", false, "no session file was found"},
	} {
		t.Setenv("CLAUDE_CODE_SESSION_ID", k.id)
		args := []string{"--root", dir, "--store", filepath.Join(t.TempDir(), "store"), "--usage-from", k.from}
		code, _, complaints := runs(t, append(args, "serve")...)
		if code != done || strings.Contains(complaints, said) != k.warns {
			t.Errorf("%+v: code %d: %s", k, code, complaints)
		}
		if _, report, _ := runs(t, append(args, "doctor")...); !strings.Contains(report, k.doctor) {
			t.Errorf("%+v:\n%s", k, report)
		}
	}
}

// TestDoctorShowsReports checks that doctor shows the last report of each session and where its window comes from.
func TestDoctorShowsReports(t *testing.T) {
	h := newHooked(t)
	all := clientusage.OpenAccounts(records.InDir(h.store))
	h.event("status.json") // makes the store
	for i, u := range []clientusage.Usage{
		{Session: "one", PromptTokens: 90_000, Model: "claude-opus-4-7", Source: clientusage.FromClaude},
		{Session: "one", PromptTokens: 250_000, Model: "claude-opus-4-7", Source: clientusage.FromClaude},
		{Session: "two", PromptTokens: 80_000, Window: 128_000, Source: clientusage.FromMeta},
		{Session: "three", PromptTokens: 70_000, Model: "x-1", Source: clientusage.FromCodex},
	} {
		u.Turn = fmt.Sprint(i)
		expect.Must(t, all.Report(observations.Local, u.Session, u))
	}
	check := func(want []string, flags ...string) {
		t.Helper()
		_, report, _ := runs(t, append(flags, "--root", t.TempDir(), "--store", h.store, "doctor")...)
		for _, w := range want {
			if !strings.Contains(report, w) {
				t.Errorf("no %q in\n%s", w, report)
			}
		}
		if strings.Contains(report, "90000 tokens") || strings.Count(report, "session ") != 4 {
			t.Errorf("not the last report of each session:\n%s", report)
		}
	}
	check([]string{
		"session one: 250000 tokens reported by claude-session-file ", "; window of 1000000 from the table (claude-opus-4-7)",
		"session two: 80000 tokens reported by meta ", "; window of 128000 from: reported; 42880 tokens left",
		"session three: 70000 tokens reported by codex-session-file ", "; the window of x-1 is unknown, set --context-window",
	})
	check([]string{"; window of 300000 from: setting"}, "--context-window", "300000")
}

func TestUsageFromIsForStdio(t *testing.T) {
	if code, _, complaints := try(t, "--usage-from", "claude", "--http", "127.0.0.1:0"); code != usage ||
		!strings.Contains(complaints, "--usage-from") {
		t.Errorf("code %d: %s", code, complaints)
	}
}
