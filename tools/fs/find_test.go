package fs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-funnel/mcp-funnel/conformance/peers/peer"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
	"github.com/mcp-funnel/mcp-funnel/tools/toolstest"
)

// answer is what a call had to say.
type answer struct {
	bytes.Buffer
	uncalled
	counts map[string]float64
	notes  []string
	source string
	parts  map[string]*bytes.Buffer
	told   int

	paged        bool // the tool asked for a page, of at most rowsMost rows; 0: any
	rows         int
	rowsMost     int
	first, total int64
	next         *tools.Call
}

// uncalled has the methods that neither find nor read calls. Its own Write is hidden by that of the buffer.
type uncalled struct{ tools.Discard }

func (a *answer) Row(b []byte, _ tools.Call) error {
	if a.paged && a.rowsMost > 0 && a.rows == a.rowsMost {
		return tools.ErrPageFull
	}
	a.rows++
	a.Write(append(b, '\n'))
	return nil
}
func (a *answer) Page() tools.Page               { a.paged = true; return a }
func (a *answer) SetRowRange(first, total int64) { a.first, a.total = first, total }
func (a *answer) Next(c tools.Call)              { a.next = &c }
func (a *answer) Streams(string) func(bool) io.Writer {
	return func(bool) io.Writer { return a }
}
func (a *answer) Source(name string)                   { a.source = name }
func (a *answer) Count(name string, n float64)         { a.counts[name] = n }
func (a *answer) Note(text string)                     { a.notes = append(a.notes, text) }
func (a *answer) Progress(done, total int64, _ string) { a.told++ }
func (a *answer) Part(mime, name string) io.Writer {
	b := &bytes.Buffer{}
	a.parts[mime+" "+name] = b
	return b
}

// scale weighs a byte as a token; over a MiB it is not sure.
type scale struct{ bytes.Buffer }

func weigh() tools.TokenCounter { return &scale{} }

// weighed takes what was counted.
func weighed(s observations.Stats) (int64, float64, bool) {
	return s.Tokens, s.TokensMargin, s.Tokens > 0
}

func (s *scale) Total() (int64, float64) {
	if s.Len() > 1<<20 {
		return int64(s.Len()), 0.0125
	}
	return int64(s.Len()), 0
}

// call runs a tool; args is JSON.
func call(t testing.TB, tool tools.Tool, s source.Set, args string) (*answer, error) {
	t.Helper()
	a := &answer{}
	return a, callOn(t, a, tool, s, args)
}

func callOn(t testing.TB, a *answer, tool tools.Tool, s source.Set, args string) error {
	t.Helper()
	a.counts, a.parts = map[string]float64{}, map[string]*bytes.Buffer{}
	return tool.Run(
		context.Background(),
		tools.Input{Args: json.RawMessage(args), Sources: s, NewTokenCounter: weigh, ObservationTokens: weighed}, a,
	)
}

func arguments(t testing.TB, kv ...any) string {
	t.Helper()
	m := map[string]any{}
	for i := 0; i < len(kv); i += 2 {
		m[kv[i].(string)] = kv[i+1]
	}
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// plant makes files, each with its text; a name ending in "/" is a directory, "-> x" as text a link.
func plant(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		at := filepath.Join(dir, filepath.FromSlash(name))
		must(os.MkdirAll(filepath.Dir(at), 0o755))
		switch text := files[name]; {
		case strings.HasSuffix(name, "/"):
			must(os.MkdirAll(at, 0o755))
		case strings.HasPrefix(text, "-> "):
			must(os.Symlink(text[3:], at))
		default:
			must(os.WriteFile(at, []byte(text), 0o644))
			when := time.Date(2026, 1, 2, 3, 4, len(text)%60, 0, time.UTC)
			must(os.Chtimes(at, when, when))
		}
	}
}

func garden(t testing.TB) (string, source.Set) {
	dir := t.TempDir()
	plant(t, dir, map[string]string{
		".gitignore":       "*.log\n/build/\n",
		".hidden/x":        "h",
		"README.md":        "# Title\n\nText.\n",
		"build/out.bin":    "x",
		"cmd/main.go":      "package main\n\nfunc main() {}\n",
		"cmd/main_test.go": "package main\n",
		"debug.log":        "2026-01-02 error\n",
		"doc/a b.txt":      "one\ntwo",
		"doc/link":         "-> ../README.md",
		"pkg/deep/er/x.go": "package er\n",
	})
	return dir, toolstest.Roots(t, dir)
}

// Of several roots those that are still there are looked into, and the one that is not is named.
func TestARootThatIsGoneIsToldAndTheOthersListed(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	plant(t, one, map[string]string{"a.txt": "a"})
	plant(t, two, map[string]string{"b.txt": "b", "c.txt": "c"})
	s := toolstest.Roots(t, one, two)
	if err := os.RemoveAll(one); err != nil {
		t.Fatal(err)
	}
	want := "the root " + s.Roots[0].Name() + " was removed, moved or replaced since it was opened: start the server again"
	for name, args := range map[string]string{"find": `{"glob":"*.txt"}`, "read": `{"path":"*.txt"}`} {
		tool := Find()
		if name == "read" {
			tool = Read()
		}
		a, err := call(t, tool, s, args)
		if err != nil || strings.Count(a.String(), ".txt") != 2 || len(a.notes) != 1 ||
			!strings.HasPrefix(a.notes[0], want) {
			t.Errorf("%s: %v %q, notes %q", name, err, a.String(), a.notes)
		}
	}
	if _, err := call(t, Read(), s, arguments(t, "path", s.Roots[0].Name()+"/a.txt")); err == nil ||
		!strings.HasSuffix(err.Error(), "start the server again, or name another root: "+s.Roots[1].Name()) {
		t.Errorf("%v", err)
	}
	if err := os.RemoveAll(two); err != nil { // where none is left, nothing is known of what they hold
		t.Fatal(err)
	}
	for name, tool := range map[string]tools.Tool{`"glob":"*.txt"`: Find(), `"show":"count"`: Find(), `"path":"*.txt"`: Read()} {
		if a, err := call(t, tool, s, "{"+name+"}"); !errors.Is(err, tree.ErrGone) {
			t.Errorf("%s %s, all gone: %v, notes %q", tool.Name, name, err, a.notes)
		}
	}
}

func TestFindShows(t *testing.T) {
	_, s := garden(t)
	for _, test := range []struct{ name, args, want string }{
		{"files", `{"type":"file"}`, `{"path":"README.md","type":"file","size":15,"modified":"2026-01-02T03:04:15Z"}
{"path":"cmd/main.go","type":"file","size":29,"modified":"2026-01-02T03:04:29Z"}
{"path":"cmd/main_test.go","type":"file","size":13,"modified":"2026-01-02T03:04:13Z"}
{"path":"doc/a b.txt","type":"file","size":7,"modified":"2026-01-02T03:04:07Z"}
{"path":"pkg/deep/er/x.go","type":"file","size":11,"modified":"2026-01-02T03:04:11Z"}
`},
		{"by size", `{"glob":"*.go","sort":"size","limit":2}`, `{"path":"cmd/main.go","type":"file","size":29,"modified":"2026-01-02T03:04:29Z"}
{"path":"cmd/main_test.go","type":"file","size":13,"modified":"2026-01-02T03:04:13Z"}
`},
		{"newest", `{"type":"file","sort":"modified","limit":1,"glob":"**"}`, `{"path":"cmd/main.go","type":"file","size":29,"modified":"2026-01-02T03:04:29Z"}
`},
		{"larger, newer", `{"larger":"10B","newer":"2026-01-02T03:04:14Z"}`, `{"path":"README.md","type":"file","size":15,"modified":"2026-01-02T03:04:15Z"}
{"path":"cmd/main.go","type":"file","size":29,"modified":"2026-01-02T03:04:29Z"}
`},
		{"tree", `{"show":"tree"}`, `./
  README.md
  cmd/
    main.go
    main_test.go
  doc/
    a b.txt
    link@
  pkg/
    deep/
      er/
        x.go
5 directories, 6 files
`},
		{"tree of what matches", `{"show":"tree","glob":"x.go","path":"pkg"}`, `pkg/
  deep/
    er/
      x.go
0 directories, 1 file
`},
		{"tree, one level, all", `{"show":"tree","depth":1,"all":true}`, `./
  .gitignore
  .hidden/
  README.md
  build/
  cmd/
  debug.log
  doc/
  pkg/
5 directories, 3 files
`},
		{"count", `{"show":"count"}`, `{"extension":".go","files":3,"size":53}
{"extension":"(none)","files":1,"size":12}
{"extension":".md","files":1,"size":15}
{"extension":".txt","files":1,"size":7}
{"extension":"total","files":6,"size":87}
`},
		{"stat", `{"show":"stat","glob":"{*.md,a*.txt,main.go}"}`, `{"path":"README.md","type":"file","size":15,"modified":"2026-01-02T03:04:15Z","kind":"markdown","lines":3,"tokens":15,"language":"Markdown"}
{"path":"cmd/main.go","type":"file","size":29,"modified":"2026-01-02T03:04:29Z","kind":"text","lines":3,"tokens":29,"language":"Go"}
{"path":"doc/a b.txt","type":"file","size":7,"modified":"2026-01-02T03:04:07Z","kind":"text","lines":2,"tokens":7,"language":"Text"}
`},
		{"links and directories", `{"type":"link","path":"doc","show":"tree"}`, "doc/\n  link@\n0 directories, 1 file\n"},
		{"an ignored directory that is named", `{"path":"build","show":"tree"}`, "build/\n  out.bin\n0 directories, 1 file\n"},
		{"one file", `{"path":"cmd/main.go"}`, `{"path":"cmd/main.go","type":"file","size":29,"modified":"2026-01-02T03:04:29Z"}
`},
	} {
		t.Run(test.name, func(t *testing.T) {
			a, err := call(t, Find(), s, test.args)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(test.want, a.String()); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

// Tokens that are not exact say how far they may be off.
func TestStatSaysHowSureItIs(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "large.txt"), bytes.Repeat([]byte("a line\n"), 200_000), 0o600); err != nil {
		t.Fatal(err)
	}
	s := toolstest.Roots(t, dir)
	a, err := call(t, Find(), s, `{"show":"stat"}`)
	if want := `"lines":200000,"tokens":1400000,"tokens_within":"±1.3 %","language":"Text"}`; err != nil ||
		!strings.Contains(a.String(), want) {
		t.Errorf("%v, %s, want %s", err, a, want)
	}
}

// What was passed over is said, and nothing found says why.
func TestFindTellsWhatItPassedOver(t *testing.T) {
	_, s := garden(t)
	const left = "4 ignored or hidden entries were skipped: all=true includes them"
	for _, test := range []struct {
		args  string
		notes []string
	}{
		{`{"glob":"*.log"}`, []string{
			"no match among 6 files and 5 directories; 4 ignored or hidden entries were skipped: all=true includes them",
		}},
		{`{"glob":"*.go","type":"dir"}`, []string{
			"no match among 6 files and 5 directories; 3 of another type; 4 ignored or hidden entries were skipped: all=true includes them",
		}},
		{`{"glob":"*.go","newer":"2027-01-01"}`, []string{
			"no match among 6 files and 5 directories; 3 not newer than 2027-01-01; 4 ignored or hidden entries were skipped: all=true includes them",
		}},
		{`{"glob":"*.go","larger":"1MB","path":"pkg"}`, []string{
			"no match among 1 file and 2 directories; 1 not larger than 1MB",
		}},
		{`{"type":"file","limit":2}`, []string{"only the first 2 are shown; there are more: raise limit"}},
		{`{"type":"file","limit":2,"sort":"size"}`, []string{"2 of 5 are shown; raise limit for more", left}},
		{`{"type":"file","limit":5}`, []string{left}}, // a limit that is not reached is not told of
		{`{"glob":"*.go"}`, []string{left}},
		{`{"show":"count"}`, []string{left}},
		{`{"show":"tree"}`, []string{left}},
		{`{"show":"stat"}`, []string{left}},
		{`{"all":true}`, nil},
		{`{"path":"pkg"}`, nil},
	} {
		a, err := call(t, Find(), s, test.args)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(test.notes, a.notes); d != "" {
			t.Errorf("%s: -want +got:\n%s", test.args, d)
		}
	}
}

func TestFindRefuses(t *testing.T) {
	_, s := garden(t)
	for _, test := range []struct{ args, want string }{
		{`{"path":"nowhere"}`, "no such file or directory; find lists the existing files"},
		{`{"path":"cmd/*.go"}`, "path takes no glob; use the argument glob"},
		{`{"path":"../x"}`, "outside the root"},
		{`{"path":".git"}`, "no such file"},
		{`{"glob":"../*"}`, "cannot go up"},
		{`{"glob":"[a"}`, "not a pattern"},
		{`{"newer":"yesterday"}`, "not a duration"},
		{`{"newer":"-5h"}`, "not a duration"},
		{`{"larger":"big"}`, "not a size"},
		{`{"larger":"-1KB"}`, "not a size"},
		{`{"larger":"NaN"}`, "not a size"},
		{`{"limit":-1}`, "at least 0"},
		{`{"path":"obs:","offset":-1}`, "at least 0"},
		{`{"sort":"size","show":"tree"}`, "does not go with show tree"},
		{`{"type":"socket"}`, "one of file, dir, link"},
		{`{"path":"a\u0000b"}`, "NUL"},
	} {
		_, err := call(t, Find(), s, test.args)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %q", test.args, err, test.want)
		}
	}
	long := strings.Repeat("x", 5000)
	for _, args := range []string{arguments(t, "path", long), arguments(t, "glob", long), arguments(t, "newer", long), arguments(t, "larger", long)} {
		if _, err := call(t, Find(), s, args); err == nil || len(err.Error()) > 400 {
			t.Errorf("%.30s: error of %d bytes", args, len(fmt.Sprint(err)))
		}
	}
	if _, err := call(t, Find(), source.Set{}, `{}`); !errors.Is(err, source.ErrNoRoot) {
		t.Errorf("without a root: %v", err)
	}
}

// Any name is shown so that it can be given back.
func TestFindNamesAreTakenBack(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("names of any bytes: a Linux file system is needed")
	}
	dir := t.TempDir()
	names := []string{
		"a b", "\xff\xfe.txt", "new\nline", "tab\t", "obs:k3v9q2m7x4ab", "OBS:x", "q\"uote", `back\slash`, "\u202egpj.exe",
		"\x1b[31m", "é", "[a]*?{b,c}", "-n",
	}
	files := map[string]string{}
	for _, n := range names {
		files[n] = "text of " + n
	}
	plant(t, dir, files)
	s := toolstest.Roots(t, dir)
	a, err := call(t, Find(), s, `{}`)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for line := range strings.Lines(a.String()) {
		var rec struct{ Path string }
		if err := json.Unmarshal([]byte(line), &rec); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		got, err := call(t, Read(), s, arguments(t, "path", rec.Path))
		if err != nil {
			t.Errorf("%q: %v", rec.Path, err)
			continue
		}
		seen++
		if !strings.HasPrefix(got.String(), "text of ") {
			t.Errorf("%q: read %q", rec.Path, got.String())
		}
	}
	if seen != len(names) {
		t.Errorf("%d of %d names could be read back", seen, len(names))
	}
	if a, err := call(t, Find(), s, `{"show":"tree"}`); err != nil || strings.Count(a.String(), "\n") != len(names)+2 {
		t.Errorf("a tree has one line a name: %v\n%s", err, a.String())
	}
}

func TestFindInSeveralRoots(t *testing.T) {
	parent := t.TempDir()
	plant(t, parent, map[string]string{"one/a.go": "a", "two/b.go": "bb", "two/c/d.go": "d"})
	s := toolstest.Roots(t, filepath.Join(parent, "one"), filepath.Join(parent, "two"))
	a, err := call(t, Find(), s, `{"glob":"*.go","show":"tree"}`)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff("one/\n  a.go\ntwo/\n  b.go\n  c/\n    d.go\n0 directories, 3 files\n", a.String()); d != "" {
		t.Error(d)
	}
	if a, err = call(t, Find(), s, `{"path":"two","type":"file","limit":1}`); err != nil ||
		!strings.HasPrefix(a.String(), `{"path":"two/b.go"`) {
		t.Errorf("%v %s", err, a.String())
	}
}

// find lists what rg lists, and what git takes for untracked, hidden names apart.
func TestFindListsWhatOthersList(t *testing.T) {
	dir := filepath.Join(peer.GoSource(t), "cmd", "go")
	cmd := exec.CommandContext(
		t.Context(), peer.Find(t, "rg"), "--files", "--no-ignore-global", "--no-ignore-parent", "--no-require-git",
		"--no-ignore-dot", "--sort", "path",
	)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSpace(string(out)), "\n")
	slices.Sort(want)
	a, err := call(t, Find(), toolstest.Roots(t, dir), `{"type":"file"}`)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(a.String()) {
		var rec struct{ Path string }
		if err := json.Unmarshal([]byte(line), &rec); err != nil {
			t.Fatal(err)
		}
		got = append(got, rec.Path)
	}
	slices.Sort(got)
	if len(got) < 500 {
		t.Errorf("only %d files", len(got))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-rg +find:\n%s", d)
	}
}

func TestFindObservations(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	store, err := observations.OpenStore(
		observations.Options{
			Dir: filepath.Join(t.TempDir(), "store"), MinFree: 1,
			Now: func() time.Time { now = now.Add(time.Minute); return now },
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	keep := func(tool, name, text string) observations.ID {
		stats := observations.Stats{Kind: "text", Ext: "txt", Lines: 1, Status: "success"}
		return kept(t, store, observations.Provenance{Tool: tool, Name: name}, text, stats).ID
	}
	first, second := keep("search", "", "short\n"), keep("keep", "build log", "longer text\n")
	s := source.Set{Places: []source.NamedPlace{source.Observations(store, observations.Local)}}
	paths := func(args string) (got []string) {
		a, err := call(t, Find(), s, args)
		if err != nil {
			t.Fatalf("%s: %v", args, err)
		}
		if !a.paged {
			t.Fatalf("%s: the list is not a page", args)
		}
		for i, line := range strings.Split(strings.TrimSuffix(a.String(), "\n"), "\n") {
			c := strings.Split(line, "\t")
			switch {
			case line == "":
			case i == 0 && !strings.HasPrefix(line, "path\tkind\tlines\tsize\tmodified\ttool\tname"),
				len(c) < 7,
				i > 0 && c[1] != "text":
				t.Fatalf("%s: %q", args, line)
			case i > 0:
				got = append(got, c[0])
			}
		}
		return got
	}
	a, b := "obs:"+string(first), "obs:"+string(second)
	for _, test := range []struct {
		args string
		want []string
	}{
		{`{"path":"obs:"}`, []string{b, a}},
		{`{"path":"obs:","sort":"size","limit":1}`, []string{b}},
		{`{"path":"obs:","glob":"search*"}`, []string{a}},
		{`{"path":"obs:","glob":"build*","show":"stat"}`, []string{b}},
		{`{"path":"obs:","larger":"8B"}`, []string{b}},
		{`{"path":"` + a + `"}`, []string{a}},
	} {
		if d := cmp.Diff(test.want, paths(test.args)); d != "" {
			t.Errorf("%s: %s", test.args, d)
		}
	}
	// One that is kept in part says so, and a count that is not exact by how much.
	part, err := observations.OpenStore(observations.Options{Dir: store.Dir(), MinFree: 1, MaxObservation: 100})
	if err != nil {
		t.Fatal(err)
	}
	o := kept(t, part, observations.Provenance{Tool: "keep"}, string(make([]byte, 130)),
		observations.Stats{Kind: "text", Ext: "txt", Lines: 3, Chars: 130, Tokens: 40, TokensMargin: 0.35})
	for show, want := range map[string]string{
		"list": "\ttext\t3\t100 of 130\tMODIFIED\tkeep\t",
		"stat": "\ttext\t3\t100 of 130\tMODIFIED\tkeep\t" + o.File + "\t130\t40 ±35.0 %\tfalse",
	} {
		a, err := call(t, Find(), s, `{"path":"obs:`+string(o.ID)+`","show":"`+show+`"}`)
		got := a.String()
		want = strings.Replace(want, "MODIFIED", o.Created.Format(time.RFC3339), 1)
		if err != nil || !strings.Contains(got, want) ||
			!strings.Contains(strings.Join(a.notes, "\n"), "1 observation is kept in part") {
			t.Errorf("%s: %s %v, %v; want %s", show, got, a.notes, err, want)
		}
	}
	// Pages are all rows, each once, with and without a limit.
	for i := range 30 {
		keep("keep", fmt.Sprintf("more %d", i), "x\n")
	}
	whole := paths(`{"path":"obs:"}`)
	for _, limit := range []int{0, 1, 7, 20, 33} {
		want := whole
		if limit > 0 {
			want = whole[:min(limit, len(whole))]
		}
		var got []string
		for args := fmt.Sprintf(`{"path":"obs:","limit":%d}`, limit); args != ""; {
			page := &answer{rowsMost: 7}
			if err := callOn(t, page, Find(), s, args); err != nil || page.first != int64(len(got)) {
				t.Fatalf("%s: %v, from %d, shown before %d", args, err, page.first, len(got))
			}
			for line := range strings.Lines(page.String()) {
				if path, _, _ := strings.Cut(line, "\t"); path != "path" {
					got = append(got, path)
				}
			}
			if args = ""; page.next != nil {
				b, err := json.Marshal(page.next.Args)
				if err != nil {
					t.Fatal(err)
				}
				args = string(b)
			}
		}
		if d := cmp.Diff(want, got); d != "" || len(whole) < 30 {
			t.Errorf("limit %d of %d: -whole +pages\n%s", limit, len(whole), d)
		}
	}
	for _, args := range []string{
		`{"path":"obs:","limit":3}`, `{"path":"obs:","offset":26,"limit":3}`, `{"path":"obs:","offset":30,"limit":3}`,
	} {
		if page, err := call(t, Find(), s, args); err != nil || page.total != int64(len(whole)) {
			t.Errorf("%s: %v, %d rows in all, want %d", args, err, page.total, len(whole))
		}
	}
	s.Places = []source.NamedPlace{source.Observations(store, "another")}
	if got := paths(`{"path":"obs:"}`); got != nil {
		t.Errorf("another owner sees %v", got)
	}
}

func TestWhenAndSize(t *testing.T) {
	now := time.Date(2026, 3, 10, 0, 0, 0, 0, time.UTC)
	for in, want := range map[string]time.Time{
		"": {}, "24h": now.Add(-24 * time.Hour), "7d": now.AddDate(0, 0, -7), "1.5d": now.Add(-36 * time.Hour), "2w": now.AddDate(0, 0, -14),
		"2026-01-02": time.Date(
			2026, 1, 2, 0, 0, 0, 0, time.UTC,
		), "2026-01-02T03:04:05+02:00": time.Date(2026, 1, 2, 1, 4, 5, 0, time.UTC),
	} {
		if got, err := parseWhen(in, now); err != nil || !got.Equal(want) {
			t.Errorf("%q: %v %v", in, got, err)
		}
	}
	for in, want := range map[string]int64{"": 0, "500": 500, "10KB": 10_000, "10kb": 10_000, "1.5 MB": 1_500_000, "1MiB": 1 << 20, "2k": 2048, "0": 0} {
		if got, err := parseSize(in); err != nil || got != want {
			t.Errorf("%q: %d %v", in, got, err)
		}
	}
	for _, bad := range []string{"x", "d", "1y", "1e99d", "-1d", "NaNd", "99999999999w"} {
		if got, err := parseWhen(bad, now); err == nil {
			t.Errorf("%q: %v", bad, got)
		}
	}
	for _, bad := range []string{"x", "KB", "1XB", "1KKB", "1e300", "Inf", "-1"} {
		if got, err := parseSize(bad); err == nil {
			t.Errorf("%q: %d", bad, got)
		}
	}
}
