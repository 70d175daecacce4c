package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/records"
	clientusage "github.com/mcp-funnel/mcp-funnel/session/usage"
)

const shopSession = "0b1c2d3e-1111-4222-8333-444455556666"

// hooked is a store and the command usage that writes to it.
type hooked struct {
	t     *testing.T
	store string
}

func newHooked(t *testing.T) hooked { return hooked{t, filepath.Join(t.TempDir(), "store")} }

// run gives the command an input and returns what it printed.
func (h hooked) run(input string, args ...string) (code int, out, complaints string) {
	h.t.Helper()
	return runIn(h.t, input, append([]string{"usage", "--store", h.store}, args...)...)
}

// event gives the command a sample of session/usage, which must be accepted.
func (h hooked) event(name string) string {
	h.t.Helper()
	b := expect.Value(os.ReadFile(sampleEvent(name)))(h.t)
	code, out, complaints := h.run(string(b))
	if code != done || complaints != "" {
		h.t.Errorf("%s: code %d: %s", name, code, complaints)
	}
	return out
}

func (h hooked) account(session string) clientusage.Account {
	h.t.Helper()
	return expect.Value(clientusage.OpenAccounts(records.InDir(h.store)).Read(observations.Local, session))(h.t)
}

func sampleEvent(name string) string {
	return filepath.Join("..", "..", "session", "usage", "testdata", name)
}

func TestUsageOfASession(t *testing.T) {
	h := newHooked(t)
	const known = "context 42.0k of 200.0k | reserve 4.1k | left 78 % | 0 pointers\n"
	const unknown = "context ? of 200.0k | reserve 4.1k | left ? | 0 pointers\n"
	for _, step := range []struct {
		event, out string
		prompt     int // of the account; 0: no report
		resets     int
	}{
		{"session_start.json", "", 0, 0},
		{"status_unknown.json", unknown, 0, 0},
		{"session_start_resume.json", "", 42_210, 0},
		{"status_unknown.json", unknown, 42_210, 0}, // a status line knows nothing yet
		{"pre_tool_use.json", "", 42_210, 0},
		{"post_tool_use.json", "", 42_210, 0},
		{"stop.json", "", 42_210, 0},
		{"post_compact.json", "", 0, 1},
		{"session_start_compact.json", "", 0, 1},
		{"status_unknown.json", unknown, 0, 1},
		{"status_old.json", "context ? of ? | reserve 4.1k | left ? | 0 pointers\n", 0, 1},
		{"status.json", known, 0, 1}, // it may be of before the reset, a second ago
	} {
		expect.Equal(t, h.event(step.event), step.out, "%s printed", step.event)
		a := h.account(shopSession)
		prompt := 0
		if a.Report != nil {
			prompt = a.Report.PromptTokens
		}
		if prompt != step.prompt || a.Resets != step.resets {
			t.Errorf("%s: %d tokens, %d resets", step.event, prompt, a.Resets)
		}
	}
}

func TestUsageJoinsToolCalls(t *testing.T) {
	h := newHooked(t)
	h.event("pre_tool_use.json")
	h.event("pre_tool_use_agent.json")
	all := clientusage.OpenAccounts(records.InDir(h.store))
	for call, want := range map[string]string{"toolu_01": shopSession, "toolu_02": shopSession + "/a1b2c3"} {
		id := clientusage.SessionID(map[string]any{"claudecode/toolUseId": call}, nil,
			func(call string) (string, string, bool) { return all.Lookup(observations.Local, call) })
		expect.Equal(t, id, want, call)
	}
}

func TestUsageCountsWhatWasShown(t *testing.T) {
	h := newHooked(t)
	h.event("status.json")
	all := clientusage.OpenAccounts(records.InDir(h.store))
	expect.Must(t, all.Update(observations.Local, shopSession, func(a *clientusage.Account) {
		a.Show(50_000, a.Report.At.Add(2*statusDelay))
		a.Pointers = 1
	}))
	const want = "context 42.0k of 200.0k | reserve 4.1k | left 52 % | 1 pointer\n"
	expect.Equal(t, h.event("status.json"), want)
}

// TestUsageNeverStopsTheClient: a client takes code 2 of a hook as an order to stop what it is doing.
func TestUsageNeverStopsTheClient(t *testing.T) {
	h := newHooked(t)
	for _, c := range []struct {
		input string
		args  []string
	}{
		{"", nil}, {"no JSON", nil}, {`{"session_id":5}`, nil}, {`{"session_id":"s"`, nil},
		{`{"session_id":"s","context_window":{"current_usage":{"input_tokens":-1}}}`, nil},
		{strings.Repeat(" ", clientusage.MaxEvent+1), nil},
		{"{}", []string{"--nosuch"}}, {"{}", []string{"--from", "nosuch"}}, {"{}", []string{"a", "b"}},
		{"{}", []string{"--large-lines", "-4"}}, {"{}", []string{"--config", filepath.Join(t.TempDir(), "none")}},
		{"", []string{"--from", "claude", filepath.Join(t.TempDir(), "none.jsonl")}}, {"{}", []string{"file.jsonl"}},
	} {
		code, out, complaints := h.run(c.input, c.args...)
		if code != failed || out != "" || complaints == "" {
			t.Errorf("%.60q %v: code %d, %q, %q", c.input, c.args, code, out, complaints)
		}
	}
	var o, e strings.Builder
	in := panicking{}
	expect.Equal(t, run(t.Context(), []string{"usage", "--store", h.store}, in, &o, &e), failed,
		"a panic: code: %s", e.String())
	if code, _, _ := runs(t, "--nosuch", "usage"); code != failed {
		t.Errorf("a wrong flag before the command: code %d", code)
	}
	if code, _, _ := runs(t, "keep", "--nosuch"); code != usage {
		t.Errorf("another command: code %d", code)
	}
}

type panicking struct{}

func (panicking) Read([]byte) (int, error) { panic(errors.New("unexpected")) }

// TestUsageWithoutAStore: the status line is printed all the same.
func TestUsageWithoutAStore(t *testing.T) {
	h := newHooked(t)
	expect.Must(t, os.WriteFile(h.store, nil, 0o600))
	b := expect.Value(os.ReadFile(sampleEvent("status.json")))(t)
	code, out, complaints := h.run(string(b))
	if code != done || !strings.HasPrefix(out, "context 42.0k of 200.0k ") || complaints == "" {
		t.Errorf("code %d: %q, %q", code, out, complaints)
	}
}

func TestUsageFromSessionFiles(t *testing.T) {
	h := newHooked(t)
	code, out, complaints := h.run("", "--from", "claude", sampleEvent("claude.jsonl"))
	if code != done || out != "context 42.0k of 200.0k | reserve 4.1k | left 78 % | 0 pointers\n" {
		t.Errorf("code %d: %q, %q", code, out, complaints)
	}
	if a := h.account(shopSession); a.Report == nil || a.Report.PromptTokens != 42_000 {
		t.Errorf("%+v", a)
	}
	code, out, _ = h.run("", "--from", "claude", sampleEvent("claude.jsonl"), "--json")
	if code != done || !strings.Contains(out, `"prompt_tokens": 42000`) {
		t.Errorf("code %d: %q", code, out)
	}
	b := expect.Value(os.ReadFile(sampleEvent("codex.jsonl")))(t)
	home, dir := t.TempDir(), t.TempDir()
	t.Setenv("CODEX_HOME", home)
	t.Chdir(dir)
	day := filepath.Join(home, "sessions", "2026", "03", "14")
	if code, _, complaints := h.run("", "--from", "codex"); code != failed ||
		!strings.Contains(complaints, "name the file") {
		t.Errorf("code %d: %s", code, complaints)
	}
	begun := strings.ReplaceAll(string(b), "/srv/shop", filepath.ToSlash(dir))
	name := filepath.Join(day, "rollout-2026-03-14T09-26-00-019c1a2b-aaaa-7bbb-8ccc-0123456789ab.jsonl")
	write(t, name, begun)
	code, out, complaints = h.run("", "--from", "codex")
	if code != done || out != "context 34.6k of 258.4k | reserve 4.1k | left 86 % | 0 pointers\n" {
		t.Errorf("code %d: %q, %q", code, out, complaints)
	}
}

// TestUsageReadsNoSessionFileUnasked: a hook names the transcript, and only --from reads one.
func TestUsageReadsNoSessionFileUnasked(t *testing.T) {
	h := newHooked(t)
	path := expect.Value(filepath.Abs(sampleEvent("claude.jsonl")))(t)
	for _, name := range []string{"Stop", "PreToolUse", "PostToolUse", "SessionStart", "UserPromptSubmit"} {
		code, out, complaints := h.run(`{"hook_event_name":"` + name + `","session_id":"` + shopSession +
			`","tool_use_id":"toolu_1","transcript_path":"` + filepath.ToSlash(path) + `"}`)
		if code != done || out != "" || complaints != "" || h.account(shopSession).Report != nil {
			t.Errorf("%s: code %d: %q, %q, %+v", name, code, out, complaints, h.account(shopSession))
		}
	}
}

func TestUsageLine(t *testing.T) {
	report := func(prompt, reserve, window int) *clientusage.Usage {
		return &clientusage.Usage{PromptTokens: prompt, ResponseTokensReserved: reserve, Window: window}
	}
	for name, c := range map[string]struct {
		window, budget, emergency int // of the settings
		report                    *clientusage.Usage
		pointers                  int
		want                      string
	}{
		"nothing": {0, 0, 0, nil, 0,
			"context ? of ? | reserve 0 | left ? | 0 pointers"},
		"a window by hand": {10_000, 0, 0, report(2_500, 0, 0), 0,
			"context 2.5k of 10.0k | reserve 0 | left 75 % | 0 pointers"},
		"the reported window first": {10_000, 0, 0, report(2_500, 1_000, 6_000), 0,
			"context 2.5k of 6.0k | reserve 1.0k | left 50 % | 0 pointers"},
		"a limit of the prompt": {0, 5_000, 0, report(2_500, 0, 1_000_000), 0,
			"context 2.5k of 1.00M | reserve 0 | left 50 % | 0 pointers"},
		"full": {0, 0, 0, report(9_999_999, 0, 6_000), 12,
			"context 10.00M of 6.0k | reserve 0 | left 0 % | 12 pointers"},
		"reserves above the window": {0, 0, 1_024, report(1, 8_000, 6_000), 0,
			"context 1 of 6.0k | reserve 8.0k | left 0 % | 0 pointers"},
	} {
		var s cli.Settings
		s.ContextWindow, s.PromptBudget, s.EmergencyBuffer = c.window, c.budget, c.emergency
		expect.Equal(t, usageLine(&s, clientusage.Account{Report: c.report, Pointers: c.pointers}, 0), c.want, name)
	}
}

// TestBlocksToPaste: the JSON that docs/BUDGET.md gives is valid, and its commands are those of this program, by whole
// paths: a client starts them without the shell's PATH and directory.
func TestBlocksToPaste(t *testing.T) {
	b := expect.Value(os.ReadFile(filepath.Join("..", "..", "docs", "BUDGET.md")))(t)
	blocks := strings.Split(string(b), "```json\n")[1:]
	hooks := 0
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		var v struct {
			StatusLine struct{ Type, Command string }
			Hooks      map[string][]struct {
				Matcher string
				Hooks   []struct{ Type, Command string }
			}
			Meta map[string]json.RawMessage `json:"_meta"`
		}
		if err := json.Unmarshal([]byte(block), &v); err != nil {
			t.Errorf("%v in %s", err, block)
		}
		for name, entries := range v.Hooks {
			for _, h := range entries[0].Hooks {
				if hooks++; h.Command != "/usr/local/bin/mcp-funnel usage" || h.Type != "command" ||
					v.StatusLine.Command != h.Command {
					t.Errorf("%s runs %+v", name, h)
				}
			}
		}
		if raw := v.Meta[clientusage.MetaKey]; raw != nil {
			expect.OK(t, expect.Err(clientusage.ParseMeta(raw)))
			hooks++
		}
	}
	for _, relative := range []string{`"mcp-funnel"`, `"--root", "."`, "--root . ", "-- mcp-funnel"} {
		if strings.Contains(string(b), relative) {
			t.Errorf("%s is no whole path", relative)
		}
	}
	expect.Equal(t, hooks, 4, "hooks and reports found")
}
