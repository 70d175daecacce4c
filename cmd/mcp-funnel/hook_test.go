package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
)

// hookEvent returns the input of a hook in a directory.
func hookEvent(t *testing.T, dir, tool string, input, response any) string {
	t.Helper()
	b := expect.Value(json.Marshal(map[string]any{
		"session_id": "s-1", "agent_id": "a1", "cwd": dir, "hook_event_name": "PostToolUse",
		"tool_name": tool, "tool_input": input, "tool_response": response, "tool_use_id": "toolu_1",
	}))(t)
	return string(b)
}

// TestHookGivesUpInTime: an input that never ends, and a client that waits, get an answer all the same: none.
func TestHookGivesUpInTime(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	in, never := io.Pipe()
	defer func() { _ = never.Close() }()
	var out, complaints strings.Builder
	code := run(ctx, []string{"--store", filepath.Join(t.TempDir(), "store"), "hook"}, in, &out, &complaints)
	if code != done || out.Len() > 0 ||
		complaints.String() != "mcp-funnel: hook: the output passes as it is: context deadline exceeded\n" {
		t.Errorf("code %d: %q, %q", code, out.String(), complaints.String())
	}
}

// broken panics when it is read.
type broken struct{}

func (broken) Read([]byte) (int, error) { panic("a defect") }

func TestHookSurvivesDefects(t *testing.T) {
	var out, complaints strings.Builder
	code := run(t.Context(), []string{"--store", filepath.Join(t.TempDir(), "store"), "hook"}, broken{}, &out, &complaints)
	if code != done || out.Len() > 0 || !strings.Contains(complaints.String(), "it is: a defect") {
		t.Errorf("code %d: %q, %q", code, out.String(), complaints.String())
	}
}

// TestOnlyTheHookHidesMistakes: a wrong command line of any other command is an error, whatever its words are.
func TestOnlyTheHookHidesMistakes(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	for line, want := range map[string]int{
		"--nosuch hook": done, "hook --nosuch": done, "hook a": done, "hook session-start --nosuch": done, "--config " + none + " hook": done,
		"--nosuch keep --name hook": usage, "keep --nosuch hook": usage, "--config " + none + " keep --name hook": usage,
		"--nosuch usage": failed, "--nosuch call hook": usage,
	} {
		if code, out, said := runIn(t, "{}", strings.Fields(line)...); code != want || out != "" || said == "" {
			t.Errorf("%s: code %d, want %d: %s%s", line, code, want, out, said)
		}
	}
}

// TestHookTracesFiles: the trace has the files of which the client's own tools showed lines to the model, so that an
// investigation counts them as opened.
func TestHookTracesFiles(t *testing.T) {
	dir := expect.Value(filepath.EvalSymlinks(t.TempDir()))(t)
	path := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"a.go", "b-1-c.go"} {
		write(t, path(name), "text\n")
	}
	expect.Must(t, os.Symlink(path("a.go"), path("link")))
	type object = map[string]any
	content := func(text string) object { return object{"mode": "content", "content": text} }
	var many strings.Builder
	for i := range 900 {
		fmt.Fprintf(&many, "a.go:%d:some text of this line\n", i+1)
	}
	shown := int64(0) // of many: ten lines and five
	for i, line := range slices.Collect(strings.Lines(many.String())) {
		if i < 10 || i >= 895 {
			shown += int64(len(line) - len(fmt.Sprintf("a.go:%d:", i+1)))
		}
	}
	names := make([]string, 400)
	for i := range names {
		names[i] = fmt.Sprintf("internal/p%d/x.go", i)
	}
	hash := fmt.Sprintf("%x", sha256.Sum256([]byte("text\n")))
	lines := object{"output_mode": "content"}
	for name, c := range map[string]struct {
		tool            string
		input, response any
		want            []trace.Opened
	}{
		"Read": {"Read", object{"file_path": path("link")},
			object{"type": "text", "file": object{"filePath": path("link"), "content": "text\n"}},
			[]trace.Opened{{File: path("a.go"), Shown: 5, Hash: hash}}},
		"Read, other text": {"Read", object{}, object{"file": object{"filePath": path("a.go"), "content": "before"}},
			[]trace.Opened{{File: path("a.go"), Shown: 6}}},
		"Read, gone": {"Read", object{}, object{"file": object{"filePath": path("none"), "content": "text"}}, nil},
		"Grep": {"Grep", lines, content("a.go:1:text\na.go-2-more\nb-1-c.go:7:x\nnone.go:1:y\nno name\n--\n"),
			[]trace.Opened{{File: path("a.go"), Shown: 10}, {File: path("b-1-c.go"), Shown: 2}}},
		"Grep, one file": {"Grep", object{"output_mode": "content", "path": "a.go"}, content("1:text\n"),
			[]trace.Opened{{File: path("a.go"), Shown: 7}}},
		"Grep, names": {"Grep", object{}, content("a.go:1:text"), nil},
		"Grep, large": {"Grep", lines, content(many.String()), []trace.Opened{{File: path("a.go"), Shown: shown}}},
		"Grep, names, large": {"Grep", object{}, object{"mode": "files_with_matches", "filenames": names,
			"numFiles": 400}, nil},
		"Bash, a grep": {"Bash", object{"command": "git grep -n text"}, object{"stdout": "a.go:1:text\n"},
			[]trace.Opened{{File: path("a.go"), Shown: 5}}},
		"Bash, a compiler": {"Bash", object{"command": "go vet ./..."}, object{"stdout": "a.go:1:2: undefined"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			store := filepath.Join(t.TempDir(), "store")
			code, out, said := runIn(t, hookEvent(t, dir, c.tool, c.input, c.response), "--store", store, "hook")
			if code != done || said != "" || (out != "") != strings.HasSuffix(name, "large") {
				t.Errorf("code %d: %q, %q", code, out, said)
			}
			var got []trace.Opened
			for call, err := range trace.InDir(trace.Dir(store)).Read(time.Time{}, nil) {
				if err != nil || call.Session != "s-1/a1" || call.Owner != observations.Local || call.Tool != c.tool {
					t.Errorf("%+v, %v", call, err)
				}
				got = append(got, call.Opened...)
			}
			expect.Same(t, got, c.want)
		})
	}
}

// startEvent returns the input of a hook of a session that starts.
func startEvent(session, source, transcript string) string {
	return fmt.Sprintf(`{"session_id":%q,"source":%q,"transcript_path":%q,"cwd":"/","hook_event_name":"SessionStart"}`,
		session, source, transcript)
}

// TestSessionStart: after a compaction, and when a session is resumed, its stored outputs are listed in few tokens: the
// one that was used most and latest first, and none that is gone or of another session.
func TestSessionStart(t *testing.T) {
	store, dir := filepath.Join(t.TempDir(), "store"), t.TempDir()
	large := strings.Repeat("a line of some length\n", 300)
	keep := func(session, command string) (id string) {
		t.Helper()
		event := strings.Replace(hookEvent(t, dir, "Bash", map[string]any{"command": command},
			map[string]any{"stdout": large + command}), `"agent_id":"a1",`, "", 1)
		_, out, said := runIn(t, strings.Replace(event, "s-1", session, 1), "--store", store, "hook", "--configured")
		if id = regexp.MustCompile(`obs:[0-9a-z]{12}`).FindString(out); id == "" {
			t.Fatalf("%s%s", out, said)
		}
		return id
	}
	context := func(in string, flags ...string) string {
		t.Helper()
		code, out, said := runIn(t, in, append([]string{"--store", store, "hook", "session-start"}, flags...)...)
		if out == "" {
			expect.Equal(t, fmt.Sprint(code, said), "0", in)
			return ""
		}
		var answer struct {
			Out struct{ HookEventName, AdditionalContext string } `json:"hookSpecificOutput"`
		}
		expect.Must(t, json.Unmarshal([]byte(out), &answer))
		expect.Equal(t, fmt.Sprint(code, said, answer.Out.HookEventName), "0SessionStart")
		if n := tokens.New(tokens.O200k).Count(answer.Out.AdditionalContext); n > startTokens {
			t.Errorf("%d tokens: %s", n, answer.Out.AdditionalContext)
		}
		return answer.Out.AdditionalContext
	}
	expect.Equal(t, context(startEvent("s-1", "compact", "/none")), "")
	if _, err := os.Stat(store); err == nil {
		t.Error("a store was made for nothing")
	}
	first, gone, lost := keep("s-1", "make all"), keep("s-1", "make gone"), keep("s-1", "make lost")
	keep("s-2", "make other")
	last := keep("s-1", "make last")
	if code, _, said := runIn(t, "", "--store", store, "observations", "rm", "--yes", gone); code != done {
		t.Fatal(said)
	}
	data := expect.Value(filepath.Glob(filepath.Join(store, "observations", "*_"+strings.TrimPrefix(lost, "obs:")+"*")))(t)
	if len(data) != 1 {
		t.Fatalf("data of %s: %q", lost, data)
	}
	expect.Must(t, os.Remove(data[0]))
	const head = "Stored outputs that this session used; slice, grep and jq read them at source obs:ID\n"
	want := head + last + " Bash make last: 301 lines text\n" + first + " Bash make all: 301 lines text"
	for _, source := range []string{"compact", "resume"} {
		expect.Equal(t, context(startEvent("s-1", source, "/none"), "--configured"), want, source)
	}
	expect.Contains(t, context(startEvent("s-1", "compact", "")), "a shell reads one by: ", " call slice source=obs:ID", last)
	for _, in := range []string{
		startEvent("s-1", "startup", "/none"), startEvent("s-1", "clear", "/none"), startEvent("s-1", "new", "/none"),
		startEvent("s-3", "compact", "/none"), startEvent("s-3", "compact", ""), startEvent("s-1/a1", "compact", ""),
	} {
		expect.Equal(t, context(in), "", in)
	}
	expect.Equal(t, context(startEvent("s-1", "compact", ""), "--owner", "anna"), "")
	// The server was not told the session: its transcript mentions what it used.
	transcript := filepath.Join(dir, "transcript.jsonl")
	write(t, transcript, `{"a":"`+last+` and `+gone+`"}`+"\n"+`{"a":"obs:000000000000"}`+"\n"+`{"a":"`+first+`, see `+last+`"}`)
	expect.Equal(t, context(startEvent("s-4", "resume", transcript), "--configured"), want)
	expect.Must(t, os.Symlink(transcript, filepath.Join(dir, "link")))
	code, out, said := runIn(t, startEvent("s-4", "resume", filepath.Join(dir, "link")), "--store", store, "hook", "session-start")
	if code != done || out != "" || strings.Count(said, "\n") != 1 {
		t.Errorf("a link: code %d: %q, %q", code, out, said)
	}
	// What only the trace or only the transcript has is listed, and without the transcript what the trace has.
	both := keep("s-6", "make traced")
	text := context(startEvent("s-6", "compact", transcript), "--configured")
	expect.Contains(t, text, both+" Bash make traced", last, first)
	code, out, said = runIn(t, startEvent("s-6", "resume", filepath.Join(dir, "link")), "--store", store, "hook", "session-start")
	if code != done || !strings.Contains(out, both) || strings.Count(said, "\n") != 1 {
		t.Errorf("a link: code %d: %q, %q", code, out, said)
	}
	// Of many, as many as there is room for, at most ten, each with its reference.
	for i := range 12 {
		keep("s-5", fmt.Sprintf("make a target with a name that is much longer than the others %d", i))
	}
	text = context(startEvent("s-5", "compact", ""), "--configured")
	if n := strings.Count(text, "obs:") - 1; n < 5 || n > startReferences {
		t.Errorf("%d references: %s", n, text)
	}
}

// TestSessionStartBadInput: whatever the client writes, the session goes on, and one line says what was wrong.
func TestSessionStartBadInput(t *testing.T) {
	for _, in := range []string{
		"", "x", "[]", "null", `{"hook_event_name":"SessionStart"`, `{"hook_event_name":"SessionStart"}`,
		`{"hook_event_name":"PostToolUse","session_id":"s"}`, `{"session_id":"s"}`, "\x00\xff",
		strings.Replace(startEvent("s", "compact", ""), `"s"`, `"\n"`, 1), strings.Repeat("[", 100_000),
		`{"session_id":"s","session_id":"t","source":"compact","hook_event_name":"SessionStart"}`,
	} {
		code, out, said := runIn(t, in, "--store", filepath.Join(t.TempDir(), "store"), "hook", "session-start")
		if code != done || out != "" || strings.Count(said, "\n") != 1 || !strings.HasPrefix(said, "mcp-funnel: hook: no stored") {
			t.Errorf("%.80q: code %d: %q, %q", in, code, out, said)
		}
	}
}
