package search

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
	"github.com/mcp-funnel/mcp-funnel/tools/toolstest"
)

func TestCost(t *testing.T) {
	c := tokens.New(tokens.O200k)
	for _, x := range []struct {
		tool tools.Tool
		most int
	}{{Search(), 260}, {Grep(), 220}} {
		b, err := json.Marshal(map[string]any{
			"name": x.tool.Name, "title": x.tool.Title, "description": x.tool.Description, "inputSchema": x.tool.Schema,
			"annotations": map[string]any{"readOnlyHint": true, "openWorldHint": false},
		})
		expect.Must(t, err)
		if n := c.Count(string(b)); n > x.most {
			t.Errorf("%s costs %d tokens, over %d: %s", x.tool.Name, n, x.most, b)
		} else {
			t.Logf("%s: %d tokens", x.tool.Name, n)
		}
	}
}

func utf16le(s string) string {
	b := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(s)) {
		b = append(b, byte(u), byte(u>>8))
	}
	return string(b)
}

func TestRecords(t *testing.T) {
	long := strings.Repeat("x", 6000) + "NEEDLE" + strings.Repeat("y", 9000)
	s := toolstest.Roots(t, folder(t,
		"b.txt", "one\ntwo needle\nthree\nfour\nneedle five\n",
		"a/c.go", "package c // needle\r\n// NEEDLE\r\n",
		"a.txt", "needle",
		"long.txt", "short\n"+long+"\n",
		"wide.txt", utf16le("eins\nzwei needle\n"),
		"latin.txt", "caf\xe9 needle\n",
		"bom.txt", "\xef\xbb\xbfneedle first\n",
		"image.bin", "\x00\x01\x02needle\x00\x00\xff\xfe\x00",
		"ignored.txt", "needle\n", ".hidden", "needle\n", ".gitignore", "ignored.txt\n", ".git/config", "needle\n",
		"bad.txt", "a\xffneedle\x00\n",
	))
	type row struct {
		Name string
		Args args
		Want []record
	}
	for _, c := range append(expect.Table[row](t, "testdata/records.tsv"),
		row{"a long line", args{"pattern": "NEEDLE", "path": "long.txt"}, []record{
			{File: "long.txt", Line: 2, Text: long[4976 : 4976+4096], Column: 6001, Cut: true},
		}},
		row{"one file, absolute", args{
			"pattern": "needle", "path": filepath.Join(s.Roots[0].Dir(), "a.txt"),
		}, []record{{File: "a.txt", Line: 1, Text: "needle"}}},
	) {
		t.Run(c.Name, func(t *testing.T) {
			a := must(t, Search(), s, c.Args)
			expect.Same(t, records(t, a), c.Want, a.note())
		})
	}
}

// Of several roots those that are still there are searched, and the one that is not is named.
func TestARootThatIsGoneIsToldAndTheOthersSearched(t *testing.T) {
	one, two := folder(t, "a.txt", "needle\n"), folder(t, "b.txt", "needle\n")
	s := toolstest.Roots(t, one, two)
	expect.Must(t, os.RemoveAll(one))
	a := must(t, Search(), s, args{"pattern": "needle"})
	want := "the root " + s.Roots[0].Name() + " was removed, moved or replaced since it was opened: start the server again"
	if found := records(t, a); len(found) != 1 || !strings.HasSuffix(found[0].File, "/b.txt") ||
		!strings.HasPrefix(a.note(), want) {
		t.Errorf("%+v, notes %q", found, a.notes)
	}
	if _, err := call(t, Search(), s, args{"pattern": "needle", "path": s.Roots[0].Name()}); err == nil ||
		!strings.HasSuffix(err.Error(), "; start the server again") {
		t.Errorf("%v", err)
	}
	if err := os.RemoveAll(two); err != nil { // where none is left, nothing is known of what they hold
		t.Fatal(err)
	}
	if a, err := call(t, Search(), s, args{"pattern": "needle"}); !errors.Is(err, tree.ErrGone) {
		t.Errorf("all gone: %v, notes %q", err, a.notes)
	}
}

// One note tells of all texts of an answer that are not shown as they are stored.
func TestDecodedIsToldOnce(t *testing.T) {
	files := []string{
		"plain.txt", "needle\n", "bom.txt", "\xef\xbb\xbfneedle\n", "none.txt", utf16le("nothing of it\n"), "a.txt",
		utf16le("ein needle\n"),
	}
	s := toolstest.Roots(t, folder(t, files...))
	if a := must(t, Search(), s, args{"pattern": "needle"}); a.note() != "decoded: a.txt (utf-16le)" {
		t.Errorf("%q", a.notes)
	}
	for source, want := range map[string]string{"a.txt": "a.txt: decoded from utf-16le", "plain.txt": "", "bom.txt": ""} {
		if a := must(t, Grep(), s, args{"pattern": "needle", "source": source}); a.note() != want {
			t.Errorf("grep %s: %q", source, a.notes)
		}
	}
	for i := range 500 {
		files = append(files, fmt.Sprintf("many/%03d.txt", i), "caf\xe9 needle\n")
	}
	files = append(
		files, "many/long.txt", utf16le("needle\n"+strings.Repeat(strings.Repeat("z", 99)+"\n", 2*maxSmall/200)),
	)
	s = toolstest.Roots(t, folder(t, files...))
	want := "502 files are decoded, the first: a.txt (utf-16le), many/000.txt (latin-1), many/001.txt (latin-1)"
	for _, show := range []string{"matches", "counts"} {
		if a := must(t, Search(), s, args{"pattern": "needle", "show": show}); a.note() != want {
			t.Errorf("%q", a.notes)
		}
	}
}

// A record cannot hold bytes that are not UTF-8. None is lost, and what stands in place of them is said.
func TestBytesThatAreNotUTF8StandInTheRecord(t *testing.T) {
	late := strings.Repeat("plain\n", 20_000) // a text is not taken for another encoding by what stands so late
	s := toolstest.Roots(
		t,
		folder(
			t, "late.txt", late+"caf\xe9\ncaf\xe9 \x1b needle\n\xff\xc3\n", "too.txt", late+"needle\n\xe4\xb8\n", "fine.txt",
			late+"needle �\n",
		),
	)
	for _, c := range []struct {
		path    string
		context int
		want    record
		note    string
	}{
		{"late.txt", 0, record{
			File: "late.txt", Line: 20002, Text: "caf\\xe9 \x1b needle",
		}, `1 file has lines that are not UTF-8: their invalid bytes are shown as \xNN`},
		{"late.txt", 1, record{
			File: "late.txt", Line: 20002, Text: "caf\\xe9 \x1b needle", Before: []string{`caf\xe9`},
			After: []string{`\xff\xc3`},
		}, "1 file has"},
		{"too.txt", 0, record{File: "too.txt", Line: 20001, Text: "needle"}, ""},
		{"too.txt", 1, record{
			File: "too.txt", Line: 20001, Text: "needle", Before: []string{"plain"}, After: []string{`\xe4\xb8`},
		}, "1 file has"},
		{"fine.txt", 0, record{File: "fine.txt", Line: 20001, Text: "needle �"}, ""},
	} {
		a := must(t, Search(), s, args{"pattern": "needle", "path": c.path, "context": c.context})
		expect.Same(t, records(t, a), []record{c.want}, "%s, context %d", c.path, c.context)
		if !strings.HasPrefix(a.note(), c.note) || c.note == "" && a.note() != "" {
			t.Errorf("%s, context %d: note %q", c.path, c.context, a.note())
		}
	}
}

func TestWhatWasNotSearchedIsSaid(t *testing.T) {
	dir := folder(t, "a.txt", "x\n", "b.bin", "\x00\x01\x02\x03", ".hidden", "x", "no.txt", "secret", "d/x.txt", "x")
	s := toolstest.Roots(t, dir)
	for _, c := range []struct {
		args args
		want []string
		not  []string
	}{
		{args{"pattern": "nothing"}, []string{
			"no match in 3 files; 1 ignored or hidden entry skipped: all=true includes them", "1 binary file was not searched",
		}, nil},
		{args{"pattern": "x"}, []string{"1 binary file was not searched"}, []string{"no match"}},
		{args{"pattern": "x", "glob": "*.rs"}, []string{"no match: no file matches glob *.rs"}, nil},
		{args{"pattern": "x", "path": "b.bin"}, []string{"no match in 0 files", "1 binary file was not searched"}, nil},
		{args{"pattern": "x", "path": "a.txt", "glob": "*.go"}, []string{"no file matches glob *.go"}, nil},
	} {
		a := must(t, Search(), s, c.args)
		for _, w := range c.want {
			if !strings.Contains(a.note(), w) {
				t.Errorf("%v: notes %q lack %q", c.args, a.notes, w)
			}
		}
		for _, w := range c.not {
			if strings.Contains(a.note(), w) {
				t.Errorf("%v: notes %q hold %q", c.args, a.notes, w)
			}
		}
	}
	if os.Getuid() == 0 {
		t.Log("running as root: unreadable files are tried by their loss only")
	} else {
		expect.Must(t, os.Chmod(filepath.Join(dir, "no.txt"), 0))
		if a := must(t, Search(), s, args{"pattern": "nothing"}); !strings.Contains(a.note(), "1 file could not be read: ") {
			t.Errorf("an unreadable file is not told: %q", a.notes)
		}
	}
}

func TestUTF16MultilineOver4MiBIsTold(t *testing.T) {
	s := toolstest.Roots(
		t, folder(t, "wide.txt", utf16le(strings.Repeat(strings.Repeat("z", 99)+"\n", 60_000)+"end\nmark\n")),
	)
	a := must(t, Search(), s, args{"pattern": `end\nmark`, "multiline": true})
	if a.Len() > 0 || !strings.Contains(a.note(), "multiline searched only the first 4 MiB of wide.txt") {
		t.Errorf("told: %q, records %q", a.notes, a.String())
	}
	if a := must(t, Search(), s, args{"pattern": `^mark$`}); len(records(t, a)) != 1 {
		t.Errorf("line by line it is searched whole: %q", a.notes)
	}
}

func TestRefusals(t *testing.T) {
	dir := folder(t, "a.txt", "x\n", "d/e.txt", "x")
	fifo(t, filepath.Join(dir, "fifo"))
	s := toolstest.Roots(t, dir)
	for _, c := range []struct {
		tool tools.Tool
		args args
		want string
	}{
		{Search(), args{"pattern": "a(b"}, "pattern: missing closing )\n  a(b\n   ^\nto search for it as plain text: \"literal\": true"},
		{Search(), args{"pattern": "(?<=a)b"}, "RE2 has no look-behind"},
		{Search(), args{"pattern": `a\nb`}, "set multiline"},
		{Search(), args{"pattern": "x", "path": "../x"}, "outside the root"},
		{Search(), args{"pattern": "x", "path": "gone"}, "gone: no such file or directory; find lists the existing files"},
		{Search(), args{"pattern": "x", "path": "*.txt"}, "path takes no glob; use the argument glob"},
		{Search(), args{"pattern": "x", "path": "fifo"}, "not a regular file"},
		{Search(), args{"pattern": "x", "path": "obs:"}, "keeps no observations"},
		{Search(), args{"pattern": "x", "path": "obs:zzz"}, "obs:"},
		{Search(), args{"pattern": "x", "context": 21}, "from 0 to 20"},
		{Search(), args{"pattern": "x", "glob": strings.Repeat("**/", 12)}, ""},
		{Search(), args{"query": "x"}, `did you mean "pattern"?`},
		{Grep(), args{"source": "a.txt", "pattern": "a(b"}, "as plain text: \"literal\": true"},
		{Grep(), args{"source": "", "pattern": "x"}, "source is empty: name a file or obs:ID"},
		{Grep(), args{"source": "a.txt", "pattern": `a\nb`}, "search with multiline"},
		{Grep(), args{"source": "gone", "pattern": "x"}, "gone"},
		{Grep(), args{"source": "d", "pattern": "x"}, "it is a directory; find with this path lists it"},
		{Grep(), args{"source": "fifo", "pattern": "x"}, "not a regular file"},
		{Grep(), args{"source": "a.txt", "pattern": "x", "offset": 7}, "offset 7 is past the last match: 1 match in 1 line"},
		{Grep(), args{"source": "a.txt", "pattern": "x", "offset": -1}, "at least 0"},
		{Grep(), args{"pattern": "x"}, `missing argument "source"`},
	} {
		a, err := call(t, c.tool, s, c.args)
		switch {
		case c.want == "":
		case err == nil:
			t.Errorf("%v: taken: %q %q", c.args, a.String(), a.notes)
		case !strings.Contains(err.Error(), c.want):
			t.Errorf("%v: %q lacks %q", c.args, err, c.want)
		case len(err.Error()) > 700:
			t.Errorf("%v: the error has %d bytes", c.args, len(err.Error()))
		}
	}
}

// A limit leaves rows out and not totals, and the answer says so.
func TestSearchLimit(t *testing.T) {
	s := toolstest.Roots(t, folder(t, "a.txt", strings.Repeat("x y\n", 3000), "b.txt", "x\n\nx\n"))
	for _, show := range []string{"matches", "files", "counts", "dirs", "groups"} {
		query := args{"pattern": "[xy]", "show": show}
		all := strings.SplitAfter(must(t, Search(), s, query).String(), "\n")
		all = all[:len(all)-1]
		for _, limit := range []int{1, 2, len(all) - 1, len(all), len(all) + 1} {
			query["limit"] = max(limit, 1)
			a := must(t, Search(), s, query)
			want := strings.Join(all[:min(max(limit, 1), len(all))], "")
			noted := strings.Contains(a.note(), fmt.Sprintf("the first %d of %d rows are shown", limit, len(all)))
			if a.String() != want || a.counts["total_matches"] != 3002 || noted != (limit > 0 && limit < len(all)) {
				t.Errorf("%s, limit %d: %d bytes, want %d; %v, %q", show, limit, len(a.String()), len(want), a.counts, a.note())
			}
		}
	}
}

func TestSearchOfObservations(t *testing.T) {
	now := time.Now()
	store, err := observations.OpenStore(observations.Options{
		Dir: filepath.Join(t.TempDir(), "store"), MinFree: 1, Now: func() time.Time { return now },
	})
	expect.Must(t, err)
	s := toolstest.Roots(t, folder(t, "needle.txt", "needle in a file\n"))
	s.Places = []source.NamedPlace{source.Observations(store, observations.Local)}
	one := keep(t, store, observations.Provenance{Tool: "run"}, "a\nneedle one\n")
	two := keep(
		t, store, observations.Provenance{Tool: "search", Args: json.RawMessage(`{"pattern":"needle","path":"src"}`)},
		"needle two\n",
	)
	keep(
		t, store, observations.Provenance{Tool: "search", Args: json.RawMessage(`{"pattern":"needle","path":"obs:"}`)},
		"needle again\n",
	)
	keep(
		t, store,
		observations.Provenance{
			Tool: "search", Args: json.RawMessage(`{"pattern":"needle","path":"OBS:` + string(one) + `"}`),
		},
		"needle again\n",
	)
	keep(t, store, observations.Provenance{Tool: "jq", Origin: []string{"obs:" + string(one)}}, "needle again\n")

	other := keep(t, store, observations.Provenance{Tool: "run"}, "hay\n")
	now = now.Add(time.Hour)

	want := []record{
		{File: "obs:" + string(one), Line: 2, Text: "needle one"}, {File: "obs:" + string(two), Line: 1, Text: "needle two"},
	}
	slices.SortFunc(want, func(a, b record) int { return strings.Compare(a.File, b.File) })
	a := must(t, Search(), s, args{"pattern": "needle", "path": "obs:"})
	expect.Same(t, records(t, a), want)
	for id, shown := range map[observations.ID]bool{one: true, two: true, other: false} {
		if o, err := store.Stat(observations.Local, id); err != nil || o.Used.After(o.Created.Add(time.Minute)) != shown {
			t.Errorf("obs:%s: used %v after it was stored, %v; a match is shown: %t", id, o.Used.Sub(o.Created), err, shown)
		}
	}
	if !strings.Contains(a.note(), "3 observations derived from other observations skipped") {
		t.Errorf("not told: %q", a.notes)
	}
	a = must(t, Search(), s, args{"pattern": "needle", "path": "obs:" + string(one)})
	if d := cmp.Diff([]record{{File: "obs:" + string(one), Line: 2, Text: "needle one"}}, records(t, a)); d != "" {
		t.Errorf("one observation: -want +got\n%s", d)
	}
	a = must(t, Search(), s, args{"pattern": "needle", "path": "obs:", "glob": "run"})
	if got := records(t, a); len(got) != 1 || got[0].File != "obs:"+string(one) {
		t.Errorf("glob by tool: %v", got)
	}
	if _, err := call(t, Search(), s, args{"pattern": "x", "path": "obs:0123456789ab"}); err == nil ||
		!errors.Is(err, observations.ErrNotFound) {
		t.Errorf("an unknown observation: %v", err)
	}
}

func TestSeveralRoots(t *testing.T) {
	a, b := folder(t, "x/f", "needle\n"), folder(t, "y/f", "needle\n")
	s := toolstest.Roots(t, filepath.Join(a, "x"), filepath.Join(b, "y"))
	want := []record{{File: "x/f", Line: 1, Text: "needle"}, {File: "y/f", Line: 1, Text: "needle"}}
	expect.Same(t, records(t, must(t, Search(), s, args{"pattern": "needle"})), want)
}

// many makes a tree of n files of very different sizes.
func many(t testing.TB, n int) string {
	var files []string
	for i := range n {
		var b strings.Builder
		for l := range i * 37 % 400 {
			fmt.Fprintf(&b, "line %d of file %d", l, i)
			if (l+i)%11 == 0 {
				b.WriteString(" needle")
			}
			b.WriteByte('\n')
		}
		files = append(files, fmt.Sprintf("d%d/f%03d.txt", i%7, i), b.String())
	}
	return folder(t, files...)
}

func TestOrderDoesNotDependOnParallelism(t *testing.T) {
	s := toolstest.Roots(t, many(t, 500))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	one := must(t, Search(), s, args{"pattern": "needle", "context": 1})
	for _, n := range []int{2, 8, 16} {
		runtime.GOMAXPROCS(n)
		if a := must(t, Search(), s, args{"pattern": "needle", "context": 1}); !bytes.Equal(a.Bytes(), one.Bytes()) {
			t.Fatalf("with %d workers the output differs", n)
		}
	}
	if got := one.counts["files_with_matches"]; got < 400 {
		t.Errorf("%v files match", got)
	}
}

// stuck is an output whose reader does not read until it is let go.
type stuck struct {
	answer
	go1 chan struct{}
}

func (s *stuck) Write(p []byte) (int, error) { <-s.go1; return s.answer.Write(p) }

func TestCancelEndsEverything(t *testing.T) {
	s := toolstest.Roots(t, many(t, 300))
	before := runtime.NumGoroutine()
	ctx, cancel := context.WithCancel(t.Context())
	out := &stuck{go1: make(chan struct{})}
	out.counts = map[string]float64{}
	ended := make(chan error)
	go func() {
		ended <- Search().Run(ctx, tools.Input{Args: json.RawMessage(`{"pattern":"."}`), Sources: s}, out)
	}()
	time.Sleep(50 * time.Millisecond) // long enough for all workers to wait
	cancel()
	close(out.go1)
	if err := <-ended; !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), "search stopped after ") {
		t.Errorf("ended with %v", err)
	}
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if runtime.NumGoroutine() <= before {
			return
		}
	}
	t.Errorf("%d goroutines before, %d after", before, runtime.NumGoroutine())
}

func TestADearPatternIsCancelled(t *testing.T) {
	var random strings.Builder // so that an automaton has ever new states
	for r := rand.New(rand.NewPCG(1, 2)); random.Len() < 8<<20; {
		fmt.Fprintf(&random, "%064b%064b%064b%064b\n", r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64())
	}
	s := toolstest.Roots(t, folder(t, "a.txt", strings.Repeat(strings.Repeat("é", 500_000), 4), "b.txt", random.String()))
	for _, a := range []args{
		{"pattern": `[01]*1[01]{150}[c-z]`, "glob": "b.txt"},
		{"pattern": `(?s)(?:\pL.){400}\d`, "multiline": true},
		{"pattern": `(?s)(?:\d.){400}\pL`, "multiline": true, "glob": "b.txt"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_, err := callOn(t, ctx, &answer{}, Search(), s, a)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) { // not stopped, it would take minutes and find nothing
			t.Errorf("%v: %v", a, err)
		}
	}
}
