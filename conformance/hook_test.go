package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// hooked runs the command hook as a client does.
type hooked struct {
	t        *testing.T
	dir      string
	env      []string
	response json.RawMessage // of the last event
}

func newHooked(t *testing.T) *hooked {
	drivesOnly(t)
	return &hooked{t: t, dir: plainDir(t), env: append(environment(t), "MCP_FUNNEL_MIN_FREE=0")}
}

// event returns the input of a hook.
func (h *hooked) event(tool string, input, response any) []byte {
	h.t.Helper()
	raw := func(v any) json.RawMessage {
		if text, ok := v.(json.RawMessage); ok {
			return text
		}
		var b bytes.Buffer
		e := json.NewEncoder(&b) // as JSON.stringify writes it
		e.SetEscapeHTML(false)
		expect.Must(h.t, e.Encode(v))
		return bytes.TrimSpace(b.Bytes())
	}
	h.response = raw(response)
	return raw(map[string]any{
		"session_id": "s-1", "transcript_path": "/none", "cwd": h.dir, "hook_event_name": "PostToolUse",
		"tool_name": tool, "tool_input": raw(input), "tool_response": h.response, "tool_use_id": "toolu_1",
	})
}

// run runs the program on an input; it must end with code 0.
func (h *hooked) run(in io.Reader, words ...string) (out, complaints string) {
	h.t.Helper()
	out, complaints, code := launch{dir: h.dir, env: h.env, stdin: in, flags: words}.output(h.t)
	expect.Equal(h.t, code, 0, "%q: exit code: %s", words, complaints)
	return out, complaints
}

var receiptOf = regexp.MustCompile(`"LARGE OUTPUT DETECTED: kept whole as (obs:[0-9a-z]{12})(?:[^"\\]|\\.)*"`)

// largeText returns 900 lines.
func largeText(word string) string {
	var b strings.Builder
	for i := range 900 {
		fmt.Fprintf(&b, "%s %d: é <tag> \"quoted\" \\ 😀 %x\n", word, i, i*2654435761)
	}
	return b.String()
}

// TestHookReplacesLargeOutputs: with each receipt put back for its text the output is what it was, and each receipt's
// observation has exactly the bytes of the text.
func TestHookReplacesLargeOutputs(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	long, other := largeText("out"), largeText("err")
	cut := filepath.Join(h.dir, "cut.txt")
	write(t, cut, long)
	type object = map[string]any
	for name, c := range map[string]struct {
		tool     string
		response any
		texts    []string
	}{
		"Bash": {"Bash", object{
			"stdout": long, "stderr": "few", "interrupted": false, "isImage": false, "noOutputExpected": false,
		}, []string{long}},
		"Bash, both": {"Bash", object{"stderr": other, "stdout": long, "interrupted": true}, []string{other, long}},
		"Grep": {"Grep", object{
			"mode": "content", "numFiles": 0, "filenames": []string{}, "content": long, "numLines": 900, "appliedLimit": nil,
		}, []string{long}},
		"WebFetch": {"WebFetch", object{
			"bytes": 1e6, "code": 200, "codeText": "OK", "result": long, "durationMs": 5, "url": "https://example.com/?a=1&b=2",
		}, []string{long}},
		"MCP, a string": {"mcp__git__log", long, []string{long}},
		"MCP, blocks": {"mcp__git__log", []object{
			{"type": "text", "text": long}, {"type": "image", "data": long, "mimeType": "image/png"},
			{"type": "text", "text": "few"}, {"type": "text", "text": other},
		}, []string{long, other}},
		"a tool with the name of ours, larger than our answers": {
			"mcp__other__search", long + long, []string{long + long},
		},
		"Bash, cut": {"Bash", object{
			"stdout": long[:2000], "stderr": "", "interrupted": false, "persistedOutputPath": cut, "persistedOutputSize": 7,
		}, []string{long}},
	} {
		t.Run(name, func(t *testing.T) {
			h.t = t
			out, complaints := h.run(bytes.NewReader(h.event(c.tool, object{"command": "make"}, c.response)), "hook")
			expect.Equal(t, complaints, "")
			const before, after = `{"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedToolOutput":`, "}}\n"
			got, ok := strings.CutPrefix(out, before)
			got, ended := strings.CutSuffix(got, after)
			if !ok || !ended || !json.Valid([]byte(got)) {
				t.Fatalf("%q", out)
			}
			found := receiptOf.FindAllStringSubmatch(got, -1)
			expect.MustEqual(t, len(found), len(c.texts), "receipts: %s", got)
			want := strings.NewReplacer(`"persistedOutputPath":"`+cut+`",`, "", `"persistedOutputSize":7,`, "").
				Replace(string(h.response))
			for i, text := range c.texts {
				if kept, _ := h.run(nil, "observations", "cat", found[i][1]); kept != text {
					t.Errorf("%s has %d bytes, the text %d", found[i][1], len(kept), len(text))
				}
				var b bytes.Buffer
				e := json.NewEncoder(&b)
				e.SetEscapeHTML(false)
				if name == "Bash, cut" {
					text = text[:2000]
				}
				expect.Must(t, e.Encode(text))
				got = strings.Replace(got, found[i][0], strings.TrimSpace(b.String()), 1)
			}
			expect.Equal(t, got, want, "more than the texts was changed")
		})
	}
}

// TestHookNamesTheNextCall: the command that a receipt names can be run as it is.
func TestHookNamesTheNextCall(t *testing.T) {
	h := newHooked(t)
	in := h.event("mcp__git__log", struct{}{}, largeText("row"))
	next := func(words ...string) string {
		out, _ := h.run(bytes.NewReader(in), words...)
		_, line, found := strings.Cut(out, `\nnext: `)
		if !found {
			t.Fatal(out)
		}
		return strings.TrimSuffix(line, "\"}}\n")
	}
	for _, words := range [][]string{{"hook"}, {"--store", filepath.Join(h.dir, "a b"), "hook"}} {
		const others = " (jq filter=EXPR, grep pattern=X or slice lines=1-9); do not read it whole"
		line := strings.TrimSuffix(strings.TrimPrefix(next(words...), "run "), others)
		line = strings.Replace(line, "TOOL", "jq filter='[.line,.text]'", 1)
		cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
		cmd.Dir, cmd.Env = h.dir, h.env
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), `[1,"row 0: `) {
			t.Errorf("%s: %v: %s", line, err, out)
		}
	}
	if line := next("hook", "--configured"); !strings.HasPrefix(line, "direct jq, grep or slice at source obs:") {
		t.Error(line)
	}
}

// TestHookPrintsNothing where the output is to pass as it is: standard error has one line if something failed.
func TestHookPrintsNothing(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	type object = map[string]any
	long := largeText("out")
	bash := func(more object) []byte {
		response := object{"stdout": long, "stderr": "", "interrupted": false}
		for name, v := range more {
			response[name] = v
		}
		return h.event("Bash", object{"command": "make"}, response)
	}
	large := bash(nil)
	file := func(name, text string) string {
		path := filepath.Join(h.dir, name)
		write(t, path, text)
		return path
	}
	plain, link := file("plain", long+long), filepath.Join(h.dir, "link")
	expect.Must(t, os.Symlink(plain, link))
	cut := func(path string) []byte { return bash(object{"persistedOutputPath": path, "persistedOutputSize": 9}) }
	for name, c := range map[string]struct {
		in    []byte
		words []string
		why   string // on standard error; "": nothing is there
	}{
		"small":           {bash(object{"stdout": "ok\n"}), nil, ""},
		"no output":       {bash(object{"stdout": ""}), nil, ""},
		"an image":        {bash(object{"isImage": true}), nil, ""},
		"Read":            {h.event("Read", object{}, object{"type": "text", "file": object{"content": long}}), nil, ""},
		"an unknown tool": {h.event("Task", object{}, long), nil, ""},
		"our own answer":  {h.event("mcp__any__grep", object{}, []object{{"type": "text", "text": long[:30_000]}}), nil, ""},
		"our own command": {
			h.event("Bash", object{"command": "mcp-funnel call jq"}, object{"stdout": long[:30_000]}), nil, "",
		},
		"the funnel off":   {large, []string{"--no-enabled"}, ""},
		"uncut":            {large, []string{"--uncut", "Bash"}, ""},
		"nothing":          {nil, nil, "is not the JSON of a hook"},
		"no JSON":          {[]byte("x"), nil, "is not the JSON of a hook"},
		"cut input":        {large[:len(large)-9], nil, "is not the JSON of a hook"},
		"another event":    {bytes.Replace(large, []byte("PostToolUse"), []byte("PreToolUse"), 1), nil, "PreToolUse"},
		"another shape":    {h.event("Bash", object{}, long), nil, "begins with {"},
		"a bad name":       {bytes.Replace(large, []byte(`"s-1"`), []byte(`"a\nb"`), 1), nil, "session_id must be"},
		"65 MiB":           {bytes.Repeat([]byte(" "), 65<<20), nil, "over 64 MiB"},
		"an unknown flag":  {large, []string{"--nosuch"}, "unknown flag --nosuch"},
		"a bad setting":    {large, []string{"--large-lines", "-4"}, "--large-lines"},
		"no configuration": {large, []string{"--config", filepath.Join(h.dir, "none")}, "none"},
		"no store":         {large, []string{"--store", plain}, "it was not kept whole"},
		"a full disk":      {large, []string{"--min-free", "100000TB"}, "it was not kept whole"},
		"too large":        {large, []string{"--max-observation", "5kB"}, "it was not kept whole"},
		"cut, no file":     {cut(filepath.Join(h.dir, "none")), nil, "no such file"},
		"cut, a link":      {cut(link), nil, "it is a link"},
		"cut, a directory": {cut(h.dir), nil, "it is not a regular file"},
		"cut, less":        {cut(file("less", "x")), nil, "it has less"},
	} {
		t.Run(name, func(t *testing.T) {
			h.t = t
			out, complaints := h.run(bytes.NewReader(c.in), append(c.words, "hook")...)
			if out != "" || c.why == "" && complaints != "" || !strings.Contains(complaints, c.why) {
				t.Errorf("printed %.200q, and %q, want %q", out, complaints, c.why)
			}
		})
	}
}

// TestHookMasksSecrets: a receipt masks, the observation is exact.
func TestHookMasksSecrets(t *testing.T) {
	h := newHooked(t)
	const key = "AKIAQ3EGRIVNMP5XWZ7B"
	text := "key " + key + "\n" + largeText("row")
	out, _ := h.run(bytes.NewReader(h.event("mcp__a__b", struct{}{}, text)), "hook")
	found := receiptOf.FindStringSubmatch(out)
	if found == nil || strings.Contains(out, key) || !strings.Contains(out, "1 secret masked") {
		t.Fatal(out)
	}
	if kept, _ := h.run(nil, "observations", "cat", found[1]); kept != text {
		t.Errorf("%.60q was kept", kept)
	}
}

// TestHookCountsAsCoverage: what the client's own Read has shown counts for an investigation, until the file changes.
func TestHookCountsAsCoverage(t *testing.T) {
	h := newHooked(t)
	for _, name := range []string{"a.go", "b.go"} {
		write(t, filepath.Join(h.dir, name), "package a\n")
	}
	investigate := func(words ...string) string {
		all := []string{"--root", h.dir, "--toolsets", "core,investigation", "call", "investigate"}
		out, _ := h.run(nil, append(all, words...)...)
		return out
	}
	investigate()
	opened := func(want string) {
		t.Helper()
		expect.Contains(t, investigate("show=report"), "opened through this server: "+want+"\n")
	}
	read := func(text string) {
		t.Helper()
		path := filepath.Join(h.dir, "a.go")
		out, complaints := h.run(bytes.NewReader(h.event("Read", map[string]any{"file_path": path}, map[string]any{
			"type": "text", "file": map[string]any{
				"filePath": path, "content": text, "numLines": 1, "startLine": 1, "totalLines": 1,
			}})), "hook")
		expect.Equal(t, out+complaints, "", "the hook printed %q, %q", out, complaints)
	}
	opened("nothing")
	read("package a\n")
	opened("1 of 2 files, 50 % of the bytes")
	write(t, filepath.Join(h.dir, "a.go"), "package b\n")
	opened("nothing")
	read("package b\n")
	opened("1 of 2 files, 50 % of the bytes")
}
