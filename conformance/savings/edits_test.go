package savings

import (
	"bytes"
	"compress/gzip"
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
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
)

// editsCommand marks the table of edits.
const editsCommand = "go test ./conformance/savings -run TestEdits -update"

// changedFile is a file of this project as a caller has seen it, and as it is two changes later.
type changedFile struct{ Path, Seen, Now string }

// staleEdit is an edit that a caller makes, who has seen a file two changes ago: it adds a line after some lines.
type staleEdit struct {
	kind string
	file *changedFile
	old  string   // the lines, as the caller gives them
	more []string // the same lines with those above, to say which place is meant
	want string   // the file afterwards
	end  int      // the line of the file after which the line stands
}

// The kinds of edits, and how many there are of each.
const (
	stillThere = "the lines are still there"
	changed    = "the lines have changed since"
	otherSpace = "typed with spaces in place of tabs"
	several    = "lines that are there several times"
)

var editKinds = []struct {
	kind string
	n    int
}{{stillThere, 14}, {changed, 12}, {otherSpace, 6}, {several, 8}}

const added = "\n// added by the caller"

// lineRange is a range of the lines of a text.
type lineRange struct{ from, to int }

// of returns the lines without the last line end.
func (r lineRange) of(lines []string) string {
	return strings.TrimSuffix(strings.Join(lines[r.from:r.to], ""), "\n")
}

// editsOf returns the edits of all files, the same at each run.
func editsOf(files []*changedFile) (all []staleEdit) {
	for _, k := range editKinds {
		var found [][]staleEdit
		for _, f := range files {
			found = append(found, f.edits(k.kind))
		}
		for i, n := 0, 0; n < k.n && i < 20; i++ { // in turn of each file
			for _, of := range found {
				if i < len(of) && n < k.n {
					all, n = append(all, of[i]), n+1
				}
			}
		}
	}
	return all
}

// edits returns the edits of one kind of a file, at most one for every 20 lines.
func (f *changedFile) edits(kind string) (all []staleEdit) {
	seen, now := strings.SplitAfter(f.Seen, "\n"), strings.SplitAfter(f.Now, "\n")
	for from := 0; from < len(seen)-8; from++ {
		if at := f.edit(kind, seen, now, from); at != nil {
			all = append(all, *at)
			from += 20
		}
	}
	return all
}

// edit returns the edit of a kind that begins at a line, nil if there is none.
func (f *changedFile) edit(kind string, seen, now []string, from int) *staleEdit {
	once := func(text string) bool {
		return len(text) > 8 && strings.Count(f.Seen, text) == 1 && strings.Count(f.Now, text) == 1
	}
	at := lineRange{from, from + 3}
	old := at.of(seen)
	switch kind {
	case several:
		at.to = at.from + 1
		if old = at.of(seen); from < 3 || strings.TrimSpace(old) == "" || strings.Count(f.Now, old) < 2 {
			return nil
		}
		var more []string
		for up := 1; up <= 3; up++ {
			more = append(more, lineRange{from - up, at.to}.of(seen))
		}
		if !once(more[2]) || once(more[0]) && strings.Index(f.Now, old) > strings.Index(f.Now, more[0]) {
			return nil
		}
		e := f.adds(kind, now, more[2], old)
		e.more = more
		return e
	case changed:
		at.to = from + 5
		if old = at.of(seen); !once(seen[at.from]) || !once(seen[at.to-1]) || strings.Contains(f.Now, old) {
			return nil
		}
		end := strings.Index(f.Now, seen[at.to-1])
		if begin := strings.Index(f.Now, seen[at.from]); begin > end || strings.Count(f.Now[begin:end], "\n") > 7 {
			return nil
		}
		return f.adds(kind, now, strings.TrimSuffix(seen[at.to-1], "\n"), old)
	case otherSpace:
		if !strings.HasPrefix(old, "\t") || !strings.Contains(old, "\n\t\t") {
			return nil
		}
	}
	if !once(old) {
		return nil
	}
	e := f.adds(kind, now, old, old)
	if kind == otherSpace {
		e.old = strings.ReplaceAll(old, "\t", "    ")
	}
	return e
}

// adds returns the edit that adds the line after a text, which is in the file once.
func (f *changedFile) adds(kind string, now []string, after, old string) *staleEdit {
	end := strings.Count(f.Now[:strings.Index(f.Now, after)+len(after)], "\n") + 1
	want := lineRange{0, end}.of(now) + added + "\n" + strings.Join(now[end:], "")
	return &staleEdit{kind: kind, file: f, old: old, want: want, end: end}
}

// result counts what became of edits.
type result struct{ edits, calls, tokens, atOnce, then, wrong int }

// editor makes edits of one file by a server's tools.
type editor struct {
	*client
	t       *testing.T
	path    string
	crlf    bool // the file has line ends \r\n
	counter *tokens.Counter
	names   *strings.Replacer // of what differs at each run
}

// put writes the file, text what is in it with line ends \n; other is that a line end is not as put wrote it.
func (e *editor) put(text string) {
	if e.crlf {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	expect.Must(e.t, os.WriteFile(e.path, []byte(text), 0o600))
}

func (e *editor) text() (text string, other bool) {
	text = string(expect.Value(os.ReadFile(e.path))(e.t))
	plain := strings.ReplaceAll(text, "\r\n", "\n")
	return plain, e.crlf && text != strings.ReplaceAll(plain, "\n", "\r\n")
}

// ask makes a call, and counts it.
func (e *editor) ask(r *result, tool string, args map[string]any) (answer string, failed bool) {
	answer, failed = e.try(call{tool, args})
	answer = e.names.Replace(shownID.ReplaceAllString(answer, "obs:k3v9q2m7x4ab"))
	r.calls, r.tokens = r.calls+1, r.tokens+e.counter.Count(answer)
	return answer, failed
}

// ends notes what an edit has left.
func (e *editor) ends(r *result, of staleEdit, calls int, about string) {
	switch got, other := e.text(); {
	case got != of.want || other:
		r.wrong++
		e.t.Logf("%s: %s: wrong after %d calls (line ends: %t)\n%s", of.file.Path, of.kind, calls, other, about)
	case calls == 1:
		r.atOnce++
	default:
		r.then++
	}
}

var shownHunk = regexp.MustCompile(`(?s)\(- old, \+ the file\):\n(.*?)\n+ \(hash`)

// shownLines returns the lines of the file that the error of an edit shows.
func shownLines(answer string) string {
	m := shownHunk.FindStringSubmatch(answer)
	if m == nil {
		return ""
	}
	var lines []string
	for _, row := range strings.Split(m[1], "\n") {
		if strings.HasPrefix(row, " ") || strings.HasPrefix(row, "+") {
			lines = append(lines, row[1:])
		}
	}
	return strings.Join(lines, "\n")
}

// here makes an edit by the tool edit. The caller of a refused one has only what the error shows, and the lines that it
// has seen.
func (e *editor) here(r *result, of staleEdit) {
	r.edits++
	e.put(of.file.Now)
	ask := func(old string) (string, bool) {
		return e.ask(r, "edit", map[string]any{"path": filepath.Base(e.path), "edits": []any{
			map[string]any{"old": old, "new": old + added}}})
	}
	answer, failed := ask(of.old)
	about := answer
	calls := 1
	for _, old := range of.more {
		if !failed {
			break
		}
		calls++
		answer, failed = ask(old)
	}
	if lines := shownLines(answer); failed && of.more == nil {
		if lines == "" {
			e.t.Errorf("%s: %s: the error shows no lines:\n%s", of.file.Path, of.kind, answer)
		}
		calls++
		answer, _ = ask(lines)
	}
	if got, _ := e.text(); of.kind == changed && strings.Contains(got, added) { // the region may end elsewhere
		at := strings.Count(got[:strings.Index(got, added)], "\n") + 1
		if strings.Replace(got, added, "", 1) == of.file.Now && max(at-of.end, of.end-at) <= 3 {
			of.want = got
		}
	}
	e.ends(r, of, calls, about+answer)
}

// there makes it by server-filesystem. The caller of a refused one reads the file again.
func (e *editor) there(r *result, of staleEdit) {
	r.edits++
	e.put(of.file.Now)
	ask := func(old string) bool {
		_, failed := e.ask(r, "edit_file", map[string]any{"path": e.path, "edits": []any{
			map[string]any{"oldText": old, "newText": old + added}}})
		return failed
	}
	calls := 1
	if ask(of.old) {
		calls = 3
		e.ask(r, "read_text_file", map[string]any{"path": e.path})
		now := strings.SplitAfter(of.file.Now, "\n")
		ask(lineRange{max(0, of.end-6), of.end}.of(now))
	}
	e.ends(r, of, calls, "")
}

// TestEdits makes 40 edits of files of this project by what a caller has seen of them two changes ago. Each must be
// made where it belongs, or be refused with what is needed to go on: the second edit is made of that alone. The same
// edits are made by server-filesystem.
func TestEdits(t *testing.T) {
	packed := expect.Value(os.ReadFile("testdata/edited.ndjson.gz"))(t)
	text := expect.Value(io.ReadAll(expect.Value(gzip.NewReader(bytes.NewReader(packed)))(t)))(t)
	var files []*changedFile
	for line := range bytes.Lines(text) {
		f := &changedFile{}
		expect.Must(t, json.Unmarshal(line, f))
		files = append(files, f)
	}
	all := editsOf(files)
	expect.MustEqual(t, len(all), 40)
	dir := expect.Value(filepath.EvalSymlinks(t.TempDir()))(t)
	ours := startWith(t, "serve", "--root", dir, "--toolsets", "core,write", "--allow-write", dir)
	script := expect.Value(filepath.Abs("../npm/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"))(t)
	node, missing := exec.LookPath("node")
	if _, err := os.Stat(script); err != nil {
		missing = err
	}
	var theirs *client
	if missing == nil {
		theirs = startServing(t, exec.Command(node, script, dir))
	} else if os.Getenv("CI") != "" {
		t.Fatal(missing)
	}
	counter := tokens.New(tokens.O200k)
	results := map[string]*[2]result{"all": {}}
	for i, of := range all {
		if results[of.kind] == nil {
			results[of.kind] = &[2]result{}
		}
		for side, s := range []*client{ours, theirs} {
			if s == nil {
				continue
			}
			e := &editor{client: s, t: t, path: filepath.Join(dir, filepath.Base(of.file.Path)), crlf: i%5 == 4,
				counter: counter,
				names:   strings.NewReplacer(dir, "/data")}
			r := result{}
			[]func(*result, staleEdit){e.here, e.there}[side](&r, of)
			for _, sum := range []*result{&results[of.kind][side], &results["all"][side]} {
				sum.add(r)
			}
		}
	}
	if sum := results["all"][0]; sum.wrong > 0 || sum.atOnce+sum.then < 38 {
		t.Errorf("of %d edits %d were right at once, %d then, %d wrong", sum.edits, sum.atOnce, sum.then, sum.wrong)
	}
	if missing != nil {
		t.Skipf("server-filesystem was not compared: %v", missing)
	}
	keep(t, editsCommand, editsTable(results))
}

func (r *result) add(o result) {
	r.edits, r.calls, r.tokens = r.edits+o.edits, r.calls+o.calls, r.tokens+o.tokens
	r.atOnce, r.then, r.wrong = r.atOnce+o.atOnce, r.then+o.then, r.wrong+o.wrong
}

func editsTable(results map[string]*[2]result) string {
	var b strings.Builder
	b.WriteString("| edits | | calls | tokens of answers | right at once | right then | tokens of its answers | its calls " +
		"| right at once | right then | wrong |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	row := func(name string, r *[2]result) {
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d | %d | %d | %d | %d | %d |\n", name, r[0].edits, r[0].calls,
			r[0].tokens,
			r[0].atOnce, r[0].then, r[1].tokens, r[1].calls, r[1].atOnce, r[1].then, r[1].wrong)
	}
	for _, k := range editKinds {
		row(k.kind, results[k.kind])
	}
	row("**all**", results["all"])
	return b.String()
}
