package usage

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

const thread = "019c1a2b-aaaa-7bbb-8ccc-0123456789ab"

// written writes a session file and returns its path.
func written(t testing.TB, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	expect.Must(t, os.WriteFile(path, content, 0o600))
	return path
}

func sample(t testing.TB, name string) []byte {
	t.Helper()
	return expect.Value(os.ReadFile(filepath.Join("testdata", name)))(t)
}

var (
	claudeWant = Usage{
		Session: session, Turn: "msg_02", PromptTokens: 42_000, At: time.Date(2026, 3, 14, 9, 30, 5, 48e7, time.UTC),
		Model: "claude-sonnet-4-6", Source: FromClaude,
	}
	codexWant = Usage{
		Session: thread, Turn: "56277", PromptTokens: 34_567, Window: 258_400,
		At: time.Date(2026, 3, 14, 9, 26, 33, 0, time.UTC), Source: FromCodex,
	}
)

const codexName = "rollout-2026-03-14T09-26-00-" + thread + ".jsonl"

func TestLastUsage(t *testing.T) {
	claude, codex, compacted := sample(
		t,
		"claude.jsonl",
	), sample(
		t,
		"codex.jsonl",
	), sample(
		t,
		"codex_compacted.jsonl",
	)
	boundary := claude[:bytes.Index(claude, []byte("This session continues"))]
	estimate := Usage{
		Session: thread, Turn: "56277", PromptTokens: 4_777, Window: 258_400,
		At: time.Date(2026, 3, 14, 9, 40, 1, 0, time.UTC), Source: FromCodex,
	}
	lines := bytes.SplitAfter(compacted, []byte("\n"))
	windows := bytes.ReplaceAll(claude, []byte("\n"), []byte("\r\n"))
	noJSON := append(bytes.Clone(claude), "\n\n\"usage\" {\n\x00\n"...)
	for _, c := range []struct {
		name    string
		from    *Client
		content []byte
		want    Usage
		err     error
	}{
		{name: "Claude Code", from: Clients["claude"], content: claude, want: claudeWant},
		{name: "Codex", from: Clients["codex"], content: codex, want: codexWant},
		{name: "Codex after a compaction", from: Clients["codex"], content: compacted, want: estimate},
		{name: "Claude Code just compacted", from: Clients["claude"], content: boundary, err: ErrCompacted},
		{name: "Codex just compacted", from: Clients["codex"], content: bytes.Join(lines[:3], nil), err: ErrCompacted},
		{name: "an empty file", from: Clients["claude"], err: ErrUnknown},
		{name: "one of the other client", from: Clients["claude"], content: codex, err: ErrUnknown},
		{name: "no end of line", from: Clients["claude"], content: bytes.TrimSpace(claude), want: claudeWant},
		{name: "ends of Windows", from: Clients["claude"], content: windows, want: claudeWant},
		{name: "lines of no JSON", from: Clients["claude"], content: noJSON, want: claudeWant},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.from.Last(written(t, codexName, c.content))
			if !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
				t.Fatalf("%v, want %v", err, c.err)
			}
			expect.Same(t, got, c.want)
		})
	}
}

// TestCutAnywhere cuts a file at every byte, as a reader sees it while the client writes. It must return a record that
// is whole in the part, and never a figure that is not in the file.
func TestCutAnywhere(t *testing.T) {
	for name, from := range Clients {
		whole := sample(t, name+".jsonl")
		figures := map[int]bool{28_003: true, 42_000: true, 21_000: true, 34_567: true}
		for n := range whole {
			if u, err := from.lastIn(whole[:n]); err == nil && !figures[u.PromptTokens] ||
				err != nil && !errors.Is(err, ErrUnknown) {
				t.Fatalf("%s cut at %d: %+v, %v", name, n, u, err)
			}
		}
	}
}

func TestFiguresOutOfRange(t *testing.T) {
	claude := func(input string) string {
		return `{"type":"assistant","message":{"id":"m","model":"claude","usage":{"input_tokens":` + input + `}}}` + "\n"
	}
	codex := func(info string) string {
		return `{"type":"event_msg","payload":{"type":"token_count","info":{` + info + `}}}` + "\n"
	}
	for in, want := range map[string]string{
		claude("-5"): "message.usage must be", claude("1e18"): "message.usage must be",
		claude(`"5"`): "message.usage must be",
		codex(`"last_token_usage":{"input_tokens":-5}`):                            "last_token_usage must be",
		codex(`"last_token_usage":{"input_tokens":1e18}`):                          "last_token_usage must be",
		codex(`"last_token_usage":{"input_tokens":5},"model_context_window":1e18`): "model_context_window must be",
		codex(`"last_token_usage":{"input_tokens":{"a":5}}`):                       "last_token_usage must be",
		claude("null"): "no usage", codex(`"last_token_usage":null`): "no usage", codex(`"last_token_usage":5`): "no usage",
		codex(`"total_token_usage":{"input_tokens":5}`): "no usage", // never the sum
	} {
		from := Clients["claude"]
		if strings.Contains(in, "event_msg") {
			from = Clients["codex"]
		}
		if u, err := from.Last(written(t, codexName, []byte(in))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v, want %q", in, u, err, want)
		}
	}
}

// TestOnlyTheTailIsRead has a sparse file of 200 MB whose record lies just inside, or just outside, the last 4 MiB.
func TestOnlyTheTailIsRead(t *testing.T) {
	record := []byte(`{"type":"assistant","message":{"id":"m","model":"claude","usage":{"input_tokens":77}}}` + "\n")
	for _, c := range []struct {
		name string
		at   int64 // of the record, from the end
		ok   bool
	}{
		{"at the end", int64(len(record)), true},
		{"at the first byte of the tail", maxTail, true},
		{"one byte before", maxTail + 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := written(t, "s.jsonl", nil)
			f := expect.Value(os.OpenFile(path, os.O_WRONLY, 0))(t)
			defer func() { _ = f.Close() }()
			const size = 200_000_000
			expect.Must(t, f.Truncate(size))
			expect.Value(f.WriteAt(append([]byte("\n"), record...), size-c.at-1))(t)
			if u, err := Clients["claude"].Last(path); (err == nil) != c.ok || c.ok && u.PromptTokens != 77 {
				t.Errorf("%+v, %v", u, err)
			}
			if allocated := testing.AllocsPerRun(1, func() { _, _ = Clients["claude"].Last(path) }); allocated > 1_000 {
				t.Errorf("%v allocations", allocated)
			}
		})
	}
}

func FuzzLastRecord(f *testing.F) {
	for _, name := range []string{"claude.jsonl", "codex.jsonl", "codex_compacted.jsonl"} {
		f.Add(sample(f, name))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		for _, client := range Clients {
			u, err := client.lastIn(in)
			if err == nil &&
				(u.PromptTokens <= 0 || u.PromptTokens > MaxTokens || u.Window < 0 || u.Window > MaxTokens) {
				t.Fatalf("%+v", u)
			}
			if u.Session != "" && !validID(u.Session) || u.Turn != "" && !validID(u.Turn) {
				t.Fatalf("%+v", u)
			}
		}
	})
}
