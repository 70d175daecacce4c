package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
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
		"--nosuch hook": done, "hook --nosuch": done, "hook a": done, "--config " + none + " hook": done,
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
