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
)

// frozenCalls are commands in the order in which they run, in one store. LOG and GONE stand for observations.
var frozenCalls = []struct {
	words string
	stdin string // name of a file
	json  bool   // its output is one JSON value, or begins with one
}{
	{words: "version"},
	{words: "--version"},
	{words: "--help"},
	{words: "completion bash"},
	{words: "completion tcsh"},
	{words: "__complete mcp-funnel"},
	{words: "doctor"},
	{words: "--store notadir doctor"},
	{words: "tokens log.txt"},
	{words: "tokens missing.txt"},
	{words: "--model nonsense tokens log.txt"},
	{words: "serve"},
	{words: "--http nowhere.invalid:80:80 serve"},
	{words: "frobnicate"},
	{words: "--nonsense version"},
	{words: "--receipt-tokens 100 doctor"},
	{words: "--config missing.yaml doctor"},
	{words: "--config unknown.yaml doctor"},
	{words: "keep --name first", stdin: "log.txt"},
	{words: "keep --json --name second", stdin: "rows.ndjson", json: true},
	{words: "keep", stdin: "small.txt"},
	{words: "--max-observation 1KiB keep", stdin: "log.txt"},
	{words: "--store notadir keep", stdin: "log.txt"},
	{words: "call"},
	{words: "call nothing"},
	{words: "call search"},
	{words: "call grep path"},
	{words: "call read path=missing.txt"},
	{words: "call read path=small.txt"},
	{words: "--page-tokens 400 call read path=log.txt"},
	{words: "call search pattern=ready"},
	{words: "call search pattern=ready --json", json: true},
	{words: "call search pattern=nothinghere"},
	{words: "call find"},
	{words: "call find show=count --json", json: true},
	{words: "call grep source=log.txt pattern=ready limit=2"},
	{words: "call grep source=log.txt pattern=ready limit=2 offset=5"},
	{words: "call grep source=log.txt pattern=ready limit=2 offset=298"},
	{words: "call grep source=log.txt pattern=ready offset=1000"},
	{words: "call grep source=LOG pattern=ready --json", json: true},
	{words: "call jq source=rows.ndjson filter=.id limit=3"},
	{words: "call jq source=rows.ndjson filter=.id save=true"},
	{words: "call jq source=rows.ndjson filter=.id limit=3 --json", json: true},
	{words: "call jq source=rows.ndjson filter=.id|"},
	{words: "call slice source=log.txt lines=1-3"},
	{words: "call slice source=log.txt chars=0-20"},
	{words: "call slice source=log.txt bytes=0-20"},
	{words: "call slice source=rows.ndjson records=0-1"},
	{words: "call slice source=log.txt"},
	{words: "call slice source=obs:000000000000 lines=1"},
	{words: "--no-enabled call read path=log.txt"},
	{words: "observations list"},
	{words: "observations list --json", json: true},
	{words: "obs list"},
	{words: "observations show LOG", json: true},
	{words: "observations show 000000000000"},
	{words: "observations cat LOG"},
	{words: "observations cat zzz"},
	{words: "observations cat 000000000000"},
	{words: "observations verify"},
	{words: "observations pin LOG"},
	{words: "observations pin --off LOG"},
	{words: "observations pin 000000000000"},
	{words: "observations prune --dry"},
	{words: "observations rm GONE"},
	{words: "observations cat GONE"},
	{words: "observations list --all --json", json: true},
	{words: "call slice source=GONE lines=1"},
}

// frozenAnswers are exit codes, fixed phrases and JSON keys of real commands, and what they leave in the store.
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
	for _, call := range frozenCalls {
		answer, code := p.run(inputs[call.stdin], nil, strings.Fields(ids.Replace(call.words))...)
		out = append(out, fmt.Sprintf("%d: %s", code, call.words))
		if call.json {
			out = append(out, frozenKeys(t, answer)...)
		} else if call.words != "--help" && !strings.HasPrefix(call.words, "observations cat") {
			for _, phrase := range frozenPhrases(answer) {
				out = append(out, "  "+phrase)
			}
		}
		switch call.words {
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
	}
	var traced []any
	err := filepath.WalkDir(store, func(path string, entry fs.DirEntry, err error) error {
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
		if !strings.HasPrefix(name, "trace/") {
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
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	out = append([]string{"", "# files of the store"}, out...)
	for _, f := range []struct{ title, path string }{
		{"sidecar", filepath.Join(store, "observations", strings.TrimPrefix(id("LOG"), "obs:")+".json")},
		{"tombstone", filepath.Join(store, "observations", strings.TrimPrefix(id("GONE"), "obs:")+".json")},
		{"quota", filepath.Join(store, "state", "quota.json")},
	} {
		text, err := os.ReadFile(f.path)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, "", "# keys: "+f.title)
		out = append(out, frozenKeys(t, string(text))...)
	}
	return append(append(out, "", "# keys: lines of the trace"), keyPaths(traced, "")...)
}
