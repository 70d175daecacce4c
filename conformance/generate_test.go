package conformance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/agents/chat/chattest"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/continuation/intent"
)

// generates runs mcp-funnel generate.
func generates(t *testing.T, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return launch{stdin: strings.NewReader(stdin), flags: append([]string{"generate"}, args...)}.output(t)
}

// example returns the last JSON object of the text that tells a model what a document looks like.
func example(t *testing.T, level intent.Level) string {
	t.Helper()
	shape := intent.Shape(level)
	from, to := strings.Index(shape, "\n{"), strings.LastIndex(shape, "}")
	if from < 0 || to < from {
		t.Fatalf("no example for %s: %s", level, shape)
	}
	return shape[from+1 : to+1]
}

// TestOneWorkflowTakesThreeCompletions takes an intent, plans its tasks and defines an action. The intent is asked for
// once: the plan and the action get the kept one.
func TestOneWorkflowTakesThreeCompletions(t *testing.T) {
	drivesOnly(t)
	replies := []string{example(t, intent.Intent), example(t, intent.Tasks), example(t, intent.Action)}
	var script []chattest.Reply
	for _, r := range replies {
		script = append(script, chattest.Reply{Text: "```json\n" + r + "\n```"})
	}
	s := chattest.New(t, script...)
	kept := filepath.Join(t.TempDir(), "intent.json")
	for i, step := range []struct {
		stdin string
		args  []string
	}{
		{"Compare the costs of both quarters.", []string{"--as", "intent"}},
		{"", []string{"--as", "tasks", "--intent", kept}},
		{"Read the figures", []string{"--as", "action", "--intent", kept}},
	} {
		out, errs, code := generates(t, step.stdin, append(step.args, "--endpoint-url", s.URL)...)
		if strings.TrimSpace(out) != replies[i] || code > 1 || code == 1 && !strings.Contains(errs, "fault") {
			t.Errorf("%v: exit code %d, %s\n%s", step.args, code, errs, out)
		}
		if i == 0 {
			write(t, kept, out)
		}
	}
	requests := s.Requests()
	expect.Equal(t, len(requests), 3, "completions")
	for i, r := range requests {
		if prompt := r.Messages[0].Content; strings.Contains(prompt, "`deliver`") ||
			i > 0 && !strings.Contains(prompt, "detectedLanguage") {
			t.Errorf("request %d: %s", i+1, prompt)
		}
	}
}

// TestGenerateInParts has an endpoint that cuts its replies, and one that stops in the middle.
func TestGenerateInParts(t *testing.T) {
	drivesOnly(t)
	doc := plan(60)
	s := chattest.Answering(t, func(_ int, r chattest.Request) chattest.Reply {
		at := 0
		if _, rest, ok := strings.Cut(r.Messages[0].Content, "what is new:\n```\n"); ok {
			text, _, _ := strings.Cut(rest, "\n```")
			at = strings.Index(doc, text)
		}
		return chattest.Reply{Text: doc[at:min(len(doc), at+700)]}
	})
	out, errs, code := generates(t, "Write the plan.", "--endpoint-url", s.URL, "--json")
	if out != doc || code != 0 || !strings.Contains(errs, `"state":"whole"`) {
		t.Errorf("exit code %d, %d bytes of %d, %s", code, len(out), len(doc), errs)
	}
	ended := chattest.New(t, chattest.Reply{Text: doc, Finish: "length"})
	if out, errs, code = generates(t, "Write the plan.", "--endpoint-url", ended.URL); out != doc || code != 0 ||
		!strings.Contains(errs, `gives "length" as its reason`) {
		t.Errorf("exit code %d, %d bytes, %s", code, len(out), errs)
	}
	half := chattest.New(
		t,
		chattest.Reply{Text: doc[:900]},
		chattest.Reply{Status: 503, Raw: `{"message":"too busy"}`},
	)
	out, errs, code = generates(t, "Write the plan.", "--endpoint-url", half.URL)
	if out != doc[:900] || code != 1 || !strings.Contains(errs, "too busy") {
		t.Errorf("exit code %d, %d bytes, %s", code, len(out), errs)
	}
	url := chattest.New(t, chattest.Reply{Text: "yes"}).URL
	found, _, _ := launch{dir: plainDir(t), flags: []string{"doctor", "--endpoint", "--endpoint-url", url}}.output(t)
	expect.Contains(t, found, `answered "yes"`)
	expect.Contains(t, found, "it reports usage")
}

// TestKeyIsNeverShown has an endpoint that repeats the key in its error.
func TestKeyIsNeverShown(t *testing.T) {
	drivesOnly(t)
	const key = "an-endpoint-key-of-no-known-form"
	file := filepath.Join(t.TempDir(), "key")
	expect.Must(t, os.WriteFile(file, []byte(key), 0o600))
	s := chattest.New(t, chattest.Reply{Status: 401, Raw: `{"error":{"message":"the key ` + key + ` is wrong"}}`})
	out, errs, code := generates(t, "x", "--endpoint-url", s.URL, "--endpoint-key-file", file, "--log-level", "debug")
	if code != 1 || strings.Contains(out+errs, key) || !strings.Contains(errs, "[key]") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	if got := s.Requests()[0].Header.Get("Authorization"); got != "Bearer "+key { // else the test proves nothing
		t.Errorf("the endpoint got %q", got)
	}
}
