package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// frozenAnswers are exit codes, fixed phrases and JSON keys of real commands, and what they leave in the store. The
// commands are in testdata/frozen/calls.txt, in the order in which they run, in one store: LOG and GONE stand for
// observations, "<" is followed by the file of the input, and behind "json: " the output is a JSON value, or begins
// with one.
func frozenAnswers(t *testing.T) []string {
	p := newFrozenProgram(t)
	var log, rows strings.Builder
	for i := range 300 {
		fmt.Fprintf(&log, "line %d: the pump is ready and waits for water\n", i)
		fmt.Fprintf(&rows, `{"id":%d,"name":"pump %d"}`+"\n", i, i)
	}
	inputs := map[string]string{
		"log.txt":      log.String(),
		"rows.ndjson":  rows.String(),
		"small.txt":    "one line\n",
		"notadir":      "",
		"unknown.yaml": "nonsense: 1\n",
	}
	for name, text := range inputs {
		write(t, filepath.Join(p.dir, name), text)
	}
	p.env = append(p.env, "MCP_FUNNEL_ROOT="+p.dir)
	out := []string{"# exit code: command, the fixed phrases of its answer, the keys of its JSON"}
	ids := strings.NewReplacer()
	calls := expect.Value(os.ReadFile(filepath.Join("testdata", "frozen", "calls.txt")))(t)
	for _, call := range lines(string(calls)) {
		call, isJSON := strings.CutPrefix(call, "json: ")
		call, stdin, _ := strings.Cut(call, " < ")
		answer, code := p.run(inputs[stdin], nil, strings.Fields(ids.Replace(call))...)
		out = append(out, fmt.Sprintf("%d: %s", code, call))
		if isJSON {
			out = append(out, frozenKeys(t, answer)...)
		} else if call != "--help" && !strings.HasPrefix(call, "observations cat") {
			for _, phrase := range frozenPhrases(answer) {
				out = append(out, "  "+phrase)
			}
		}
		switch call {
		case "keep --name first":
			ids = strings.NewReplacer("LOG", shownID.FindString(answer))
		case "call jq source=rows.ndjson filter=.id save=true":
			log := ids.Replace("LOG")
			ids = strings.NewReplacer("LOG", log, "GONE", shownID.FindString(answer))
		}
	}
	return append(out, frozenStore(t, filepath.Join(p.dir, "store"), ids.Replace)...)
}

// frozenStore lists the kinds of files in a store with their modes, and the keys of those that are JSON.
func frozenStore(t *testing.T, store string, id func(string) string) []string {
	var out []string
	kinds := []struct {
		what *regexp.Regexp
		as   string
	}{
		{regexp.MustCompile(`[a-z]+_\d{8}T\d{6}_[0-9a-z]{12}\.`), "TOOL_TIME_ID."},
		{regexp.MustCompile(`/[0-9a-z]{12}\.`), "/ID."},
		{regexp.MustCompile(`\d{8}_\d+-[0-9a-f]+`), "DAY_PROCESS-RANDOM"},
		{regexp.MustCompile(`/\d{8}\.`), "/DAY."},
	}
	var traced []any
	expect.Must(t, filepath.WalkDir(store, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == store {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, store+string(filepath.Separator)))
		for _, k := range kinds {
			name = k.what.ReplaceAllString(name, k.as)
		}
		if line := info.Mode().String() + " " + name; !slices.Contains(out, line) {
			out = append(out, line)
		}
		if !strings.HasSuffix(name, ".jsonl") {
			return nil
		}
		text, err := os.ReadFile(path)
		for line := range bytes.Lines(text) {
			var call any
			if err := json.Unmarshal(line, &call); err != nil {
				return err
			}
			traced = append(traced, call)
		}
		return err
	}))
	slices.Sort(out)
	out = append([]string{"", "# files of the store"}, out...)
	for _, f := range []struct{ title, path string }{
		{"sidecar", filepath.Join(store, "observations", strings.TrimPrefix(id("LOG"), "obs:")+".json")},
		{"tombstone", filepath.Join(store, "observations", strings.TrimPrefix(id("GONE"), "obs:")+".json")},
		{"quota", filepath.Join(store, "state", "quota.json")},
	} {
		text := expect.Value(os.ReadFile(f.path))(t)
		out = append(out, "", "# keys: "+f.title)
		out = append(out, frozenKeys(t, string(text))...)
	}
	return append(append(out, "", "# keys: lines of the trace"), keyPaths(traced, "")...)
}
