package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/session/transcript"
	"github.com/mcp-funnel/mcp-funnel/session/transcript/transcripttest"
)

// A session of ten outputs of 2,000 tokens each, in a new directory.
func writeSession(t *testing.T, format transcript.Format, secret string) (dir string, text []byte) {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 3))
	var calls []transcripttest.Call
	for i := range 10 {
		calls = append(calls, transcripttest.Call{
			ID: fmt.Sprint("c", i), Tool: "Bash", Args: map[string]any{"command": fmt.Sprint("login ", secret, i)},
			Result: transcripttest.Text(r, 4000),
		})
	}
	dir, text = t.TempDir(), transcripttest.Make(format, calls)
	write(t, filepath.Join(dir, "session"), string(text))
	return dir, text
}

// compacts runs compact in a directory with its own store.
func compacts(t *testing.T, dir, store string, args ...string) (code int, out, complaints string) {
	t.Helper()
	for i, a := range args {
		if a == "session" || a == "small" || a == "back" {
			args[i] = filepath.Join(dir, a)
		}
	}
	return runs(t, append([]string{"compact", "--store", filepath.Join(dir, store)}, args...)...)
}

// compacted is compacts that must succeed, with the store of the directory.
func compacted(t *testing.T, dir string, args ...string) {
	t.Helper()
	if code, _, said := compacts(t, dir, "store", args...); code != done {
		t.Fatal(said)
	}
}

func TestCompactAndExpand(t *testing.T) {
	for _, format := range transcripttest.Formats {
		dir, text := writeSession(t, format, "")
		if code, _, said := compacts(t, dir, "store", "--budget", "9000", "session", "-o", "small"); code != done {
			t.Fatalf("%s: %s", format, said)
		}
		for what, k := range map[string]struct {
			store string
			args  []string
			code  int
			said  string
		}{
			"another store":       {"other", []string{"--expand", "small", "-o", "back"}, failed, "no map for"},
			"an existing file":    {"store", []string{"--expand", "small", "-o", "session"}, failed, "exists already"},
			"a missing directory": {"store", []string{"--expand", "small", "-o", filepath.Join(dir, "no/x")}, failed, "no such"},
			"forget and expand":   {"store", []string{"--expand", "--forget", "small"}, usage, "exclude each other"},
			"keep below 0":        {"store", []string{"--keep=-1", "--budget", "9", "session"}, usage, "0 for none"},
		} {
			code, _, said := compacts(t, dir, k.store, k.args...)
			if _, err := os.Stat(filepath.Join(dir, "back")); code != k.code ||
				!strings.Contains(said, k.said) ||
				err == nil {
				t.Errorf("%s: %s: %d, %s", format, what, code, said)
			}
		}
		compacted(t, dir, "--expand", "small", "-o", "back")
		if back, _ := os.ReadFile(filepath.Join(dir, "back")); string(back) != string(text) {
			t.Errorf("%s: other bytes", format)
		}
		if code, _, said := compacts(t, dir, "store", "--forget", "session"); code != done ||
			!strings.Contains(said, "outputs may expire now") {
			t.Errorf("%s: forget: %s", format, said)
		}
		if code, _, said := compacts(t, dir, "store", "--expand", "small"); code != failed ||
			!strings.Contains(said, "--forget") {
			t.Errorf("%s: forgotten: %d, %s", format, code, said)
		}
	}
}

// A name that cannot be written, and outputs that exceed the quota, are refused before anything is stored.
func TestCompactStoresNothingInVain(t *testing.T) {
	for want, args := range map[string][]string{
		"exists already": {"--budget", "9000", "session", "-o", "session"},
		"no such file":   {"--budget", "9000", "session", "-o", "/nosuch/x"},
		"raise --quota":  {"--budget", "9000", "--quota", "30K", "session", "-o", "small"},
	} {
		dir, _ := writeSession(t, transcript.Claude, "")
		code, _, said := compacts(t, dir, "store", args...)
		kept, _ := filepath.Glob(filepath.Join(dir, "store", "observations", "*"))
		if _, err := os.Stat(filepath.Join(dir, "small")); code != failed || !strings.Contains(said, want) ||
			len(kept) > 0 || err == nil {
			t.Errorf("%d, %s, %q", code, said, kept)
		}
	}
}

// A compaction that is interrupted, or whose budget cannot be met, keeps nothing.
func TestCompactKeepsNothingInVain(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	for name, k := range map[string]struct {
		ctx    context.Context
		budget string
	}{"interrupted": {ended, "9000"}, "too small": {t.Context(), "10"}} {
		dir, _ := writeSession(t, transcript.Claude, "")
		store, small := filepath.Join(dir, "store"), filepath.Join(dir, "small")
		var o, e strings.Builder
		code := run(k.ctx, []string{
			"--min-free", "0", "compact", "--store", store, "--budget", k.budget, filepath.Join(dir, "session"), "-o", small,
		}, strings.NewReader(""), &o, &e)
		pinned, _ := filepath.Glob(filepath.Join(store, "observations", "*.pin"))
		maps, _ := filepath.Glob(filepath.Join(store, "maps", "*.json"))
		if _, err := os.Stat(small); code == done || err == nil || len(pinned)+len(maps) > 0 {
			t.Errorf("%s: code %d, %d pins, %d maps: %s", name, code, len(pinned), len(maps), e.String())
		}
	}
}

// A map that cannot be read may need any output: nothing is unpinned.
func TestForgetBesideADamagedMap(t *testing.T) {
	dir, _ := writeSession(t, transcript.Claude, "")
	compacted(t, dir, "--budget", "9000", "session", "-o", "small")
	write(t, filepath.Join(dir, "store", "maps", "0123456789abcdef.json"), `{"v":2}`)
	code, _, said := compacts(t, dir, "store", "--forget", "session")
	pinned, _ := filepath.Glob(filepath.Join(dir, "store", "observations", "*.pin"))
	if code != failed || len(pinned) == 0 || !strings.Contains(said, "nothing is unpinned") {
		t.Errorf("code %d, %d pins: %s", code, len(pinned), said)
	}
}

// Forgetting one of two transcripts without a session id keeps the outputs of the other.
func TestForgetOneOfTwo(t *testing.T) {
	dir, text := writeSession(t, transcript.Chat, "")
	other := string(text)
	for i := 1; i < 10; i++ { // the first one is of both
		other = strings.ReplaceAll(other, fmt.Sprintf(`"c%d"`, i), fmt.Sprintf(`"d%d"`, i))
	}
	write(t, filepath.Join(dir, "back"), other)
	for _, name := range []string{"session", "back"} {
		out := filepath.Join(dir, "small."+name)
		compacted(t, dir, "--budget", "9000", name, "-o", out)
	}
	compacted(t, dir, "--forget", "session")
	if code, _, said := compacts(t, dir, "store", "--expand", filepath.Join(dir, "small.back")); code != failed ||
		!strings.Contains(said, "no map for") { // what both have was of the first one too
		t.Errorf("%d, %s", code, said)
	}
	maps, _ := filepath.Glob(filepath.Join(dir, "store", "maps", "*.json"))
	if m, err := os.ReadFile(maps[0]); err != nil || strings.Count(string(m), `"tool_use_id":"d`) < 3 ||
		strings.Contains(string(m), `"c3"`) {
		t.Errorf("%v: %s", err, m)
	}
}

// A secret of a call's arguments stands in the transcript only.
func TestCompactMasksArguments(t *testing.T) {
	const secret = "ghp_x7Kq2mVt9RzLp4WcYb8NdHs3GfJe6UaQ1oTi"
	dir, _ := writeSession(t, transcript.Claude, secret+" ")
	compacted(t, dir, "--budget", "9000", "session", "-o", "small")
	masked := 0
	err := filepath.WalkDir(filepath.Join(dir, "store"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), secret) {
			t.Errorf("%s: %s", path, text)
		}
		masked += strings.Count(string(text), "github-token")
		return err
	})
	if err != nil || masked == 0 {
		t.Errorf("%v, %d masks", err, masked)
	}
	small, _ := os.ReadFile(filepath.Join(dir, "small"))
	if n := strings.Count(string(small), secret); n != 10 {
		t.Errorf("the secret stands %d times in the transcript, and ten calls have it", n)
	}
	if _, out, _ := runs(t, "context", filepath.Join(dir, "session")); strings.Contains(out, secret) ||
		!strings.Contains(out, "github-token") {
		t.Error(out)
	}
}

// A map that is no map is named.
func TestDamagedMapFiles(t *testing.T) {
	dir, _ := writeSession(t, transcript.Claude, "")
	compacted(t, dir, "--budget", "9000", "session", "-o", "small")
	maps, _ := filepath.Glob(filepath.Join(dir, "store", "maps", "*.json"))
	expect.MustEqual(t, len(maps), 1, "%v", maps)
	m := expect.Value(os.ReadFile(maps[0]))(t)
	for _, damaged := range []string{"", "{", `{"v":2}`, strings.Replace(string(m), `"by":"\"[`, `"by":"\"]`, 1)} {
		write(t, maps[0], damaged)
		for _, args := range [][]string{{"--expand", "small"}, {"--budget", "9000", "session"}, {"--forget", "session"}} {
			if code, _, said := compacts(t, dir, "store", args...); code != failed ||
				!strings.Contains(said, maps[0]) {
				t.Errorf("%.20q: %d, %s", damaged, code, said)
			}
		}
	}
}

// A larger budget than before says that --forget gives outputs back, and after that more of them stay.
func TestCompactWithALargerBudget(t *testing.T) {
	for _, format := range []transcript.Format{transcript.Claude, transcript.Chat} {
		dir, _ := writeSession(t, format, "")
		after := func(budget, out, want string) int {
			t.Helper()
			code, _, said := compacts(t, dir, "store", "--budget", budget, "session", "-o", filepath.Join(dir, out))
			if code != done || want != "" != strings.Contains(said, "compact --forget") || !strings.Contains(said, want) {
				t.Errorf("%s: budget %s: %d, %s", format, budget, code, said)
			}
			text := expect.Value(os.ReadFile(filepath.Join(dir, out)))(t)
			return strings.Count(string(text), "read it with slice")
		}
		small := after("9000", "o1", "")
		larger := after("15000", "o3", "what a budget of 9000 replaced stays replaced")
		if larger != small || after("9000", "o2", "") != small {
			t.Errorf("%s: a later compaction changed what was replaced", format)
		}
		compacted(t, dir, "--forget", "session")
		if large := after("15000", "o4", ""); large >= small {
			t.Errorf("%s: %d outputs replaced for 15000 tokens, %d for 9000", format, large, small)
		}
	}
}

// The budget covers what the client reported, the model in the file counts, and a result that is not known to fit is
// exit code 1: it is written, and the reason is printed.
func TestCompactCoversTheReport(t *testing.T) {
	session := func(model, usage string) string {
		var b strings.Builder
		b.WriteString(`{"type":"user","sessionId":"s","message":{"role":"user","content":"hi"}}` + "\n")
		for i := range 6 {
			_, _ = fmt.Fprintf(&b, `{"type":"assistant","message":{"role":"assistant","content":[{"type":"tool_use",`+
				`"id":"c%d","name":"n","input":{}}]}}`+"\n"+`{"type":"user","message":{"role":"user","content":[`+
				`{"type":"tool_result","tool_use_id":"c%d","content":%q}]}}`+"\n", i, i,
				strings.Repeat(fmt.Sprint(" word ", i), 1000))
		}
		return b.String() + `{"type":"assistant","message":{"role":"assistant","model":"` + model + `","id":"m","content":[` +
			`{"type":"text","text":"ok"}]` + usage + "}}\n"
	}
	const usage, opus = `,"usage":{"input_tokens":40000}`, "claude-opus-4-7"
	for name, k := range map[string]struct {
		text, budget string
		code         int
		said         string
		written      bool
	}{
		"it fits": {session(opus, usage), "41000", done, "40002 tokens before, 40002 after", true},
		"what is counted would fit, the report does not": {
			session(opus, usage), "20000", failed, "system prompt, definitions of tools and what else is not counted 14780", false,
		},
		"known to fit":      {session(opus, usage), "38000", done, "tokens of claude-opus-4-7 are estimated, ±35 %", true},
		"not known to fit":  {session(opus, usage), "30000", failed, "is not known to fit the budget of 30000 tokens", true},
		"an exact model":    {session("gpt-5", usage), "34000", done, "40001 tokens before", true},
		"an unknown model":  {session("x", usage), "34000", done, "x is a model that is not known", true},
		"without a report":  {session(opus, ""), "34000", done, "note: the session reports no usage", true},
		"a document of API": {string(transcripttest.Make(transcript.Chat, nil)), "100", done, "tokens before", true},
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "session"), k.text)
		code, _, said := compacts(t, dir, "store", "--budget", k.budget, "session", "-o", "small")
		if _, err := os.Stat(filepath.Join(dir, "small")); code != k.code || !strings.Contains(said, k.said) ||
			(err == nil) != k.written {
			t.Errorf("%s: %d, written %t: %s", name, code, err == nil, said)
		}
		code, _, figures := compacts(t, dir, "store", "--json", "--budget", k.budget, "session", "-o", "back")
		if code != k.code || k.written && strings.Contains(figures, `"doubt"`) != (code == failed) {
			t.Errorf("%s: %d, %s", name, code, figures)
		}
		for line := range strings.Lines(said) {
			_, note, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "note: ")
			if ok && k.written && !strings.Contains(figures, note) {
				t.Errorf("%s: the figures lack the note %q: %s", name, note, figures)
			}
		}
	}
}
