package usage

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

const (
	session = "0b1c2d3e-1111-4222-8333-444455556666"
	sonnet  = "claude-sonnet-4-6"
)

func TestParseClientEvent(t *testing.T) {
	for name, want := range map[string]Event{
		"status.json": {
			Kind: Status, Window: 200_000, Usage: &Usage{
				Session: session, PromptTokens: 42_000, Window: 200_000, Model: sonnet, Source: FromStatusLine,
			},
		},
		"status_unknown.json":        {Kind: Status, Window: 200_000},
		"status_old.json":            {Kind: Status},
		"session_start.json":         {Kind: Other},
		"session_start_compact.json": {Kind: Other, Reset: true},
		"session_start_resume.json": {
			Kind: Other, Usage: &Usage{
				Session: session, PromptTokens: 42_210, Model: sonnet, Source: FromHook,
			},
		},
		"post_compact.json":       {Kind: Other, Reset: true},
		"pre_tool_use.json":       {Kind: ToolUse, ToolUseID: "toolu_01"},
		"pre_tool_use_agent.json": {Kind: ToolUse, ToolUseID: "toolu_02", AgentID: "a1b2c3"},
		"post_tool_use.json":      {Kind: Other, ToolUseID: "toolu_01"},
		"stop.json":               {Kind: Other},
	} {
		t.Run(name, func(t *testing.T) {
			f := expect.Value(os.Open(filepath.Join("testdata", name)))(t)
			defer func() { _ = f.Close() }()
			want.Session, want.CWD = session, "/srv/shop"
			got := expect.Value(ParseClientEvent(f))(t)
			expect.Same(t, got, want)
		})
	}
}

func TestFiguresThatAreUnknown(t *testing.T) {
	for _, window := range []string{
		`null`, `{}`, `5`, `"x"`, `[]`, `{"current_usage":null}`, `{"current_usage":42000}`, `{"current_usage":{}}`,
		`{"current_usage":{"input_tokens":null,"cache_read_input_tokens":9}}`, `{"used_percentage":null}`,
		`{"total_input_tokens":180400,"total_output_tokens":9}`, `{"used_percentage":21,"context_window_size":null}`,
		`{"current_usage":{"input_tokens":0,"cache_read_input_tokens":0,"cache_creation_input_tokens":0}}`,
	} {
		e, err := ParseClientEvent(strings.NewReader(`{"session_id":"s","context_window":` + window + `}`))
		if err != nil || e.Usage != nil || e.Kind != Status {
			t.Errorf("%s: %+v, %v", window, e, err)
		}
	}
}

// With tools that run at the server, the figures are sums over several prompts; the last one is the context.
func TestTheLastIterationIsTheContext(t *testing.T) {
	in := `{"session_id":"s","context_window":{"current_usage":{"input_tokens":90,"cache_read_input_tokens":900,
		"iterations":[{"type":"message","input_tokens":40,"cache_read_input_tokens":400},
			{"type":"message","input_tokens":50,"cache_read_input_tokens":500},{"type":"compaction","input_tokens":7}]}}}`
	e, err := ParseClientEvent(strings.NewReader(in))
	if err != nil || e.Usage == nil || e.Usage.PromptTokens != 550 {
		t.Errorf("%+v, %v", e.Usage, err)
	}
}

func TestBadEvents(t *testing.T) {
	usage := func(text string) string {
		return `{"session_id":"s","context_window":{"current_usage":{"input_tokens":` + text + `}}}`
	}
	for in, want := range map[string]string{
		``:                          "is not the JSON object",
		`null`:                      "is not the JSON object",
		`[]`:                        "is not the JSON object",
		`{"session_id":"s"`:         "is not the JSON",
		`{"session_id":"s"} x`:      "is not the JSON",
		`{}`:                        "session_id must be",
		`{"session_id":5}`:          "session_id must be",
		`{"session_id":"a\nb"}`:     "session_id must be",
		`{"session_id":"a\u202eb"}`: "session_id must be",
		`{"session_id":"s","agent_id":"` + strings.Repeat("a", 201) + `"}`: "agent_id must be",
		usage("-1"):   "current_usage must be",
		usage("1e18"): "current_usage must be",
		usage(`"9"`):  "current_usage must be",
		usage(`9e7,"cache_read_input_tokens":9e7`):                                "not 180000000",
		`{"session_id":"s","context_window":{"context_window_size":1e18}}`:        "context_window_size must be",
		`{"session_id":"s","hook_event_name":"SessionStart","context_tokens":-4}`: "context_tokens must be",
	} {
		expect.Fails(t, expect.Err(ParseClientEvent(strings.NewReader(in))), want, in)
	}
}

// endless is a hook's input that never ends.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	e.read += len(p)
	return len(p), nil
}

func TestEventsAreBounded(t *testing.T) {
	in := &endless{}
	if _, err := ParseClientEvent(in); err == nil || in.read > MaxEvent+1<<20 {
		t.Errorf("%d bytes read, %v", in.read, err)
	}
	failing := errors.New("gone")
	expect.ErrorIs(t, expect.Err(ParseClientEvent(io.MultiReader(strings.NewReader("{"), &broken{failing}))), failing)
}

type broken struct{ err error }

func (b *broken) Read([]byte) (int, error) { return 0, b.err }

func FuzzParseMeta(f *testing.F) {
	f.Add([]byte(`{"session":"s","turn":"t","prompt_tokens":5,"window":200000,"at":"2026-03-14T09:26:53Z"}`))
	f.Add([]byte(`{"prompt_tokens":1e18}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		u, err := ParseMeta(in)
		if err != nil {
			if len(err.Error()) > 400 {
				t.Fatalf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		for _, n := range []int{u.PromptTokens, u.Window, u.ResponseTokensReserved} {
			if n < 0 || n > MaxTokens {
				t.Fatalf("%+v", u)
			}
		}
		b := expect.Value(json.Marshal(u))(t)
		if again, err := ParseMeta(b); err != nil || !cmp.Equal(again, u) {
			t.Fatalf("%+v became %+v, %v", u, again, err)
		}
	})
}

func FuzzParseClientEvent(f *testing.F) {
	seeds, _ := filepath.Glob("testdata/*.json")
	for _, name := range seeds {
		b := expect.Value(os.ReadFile(name))(f)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		e, err := ParseClientEvent(strings.NewReader(string(in)))
		if err != nil {
			return
		}
		if !validID(e.Session) || e.Window < 0 || e.Window > MaxTokens {
			t.Fatalf("%+v", e)
		}
		if e.Usage != nil && (e.Usage.PromptTokens <= 0 || e.Usage.PromptTokens > MaxTokens || e.Reset) {
			t.Fatalf("%+v", e.Usage)
		}
	})
}
