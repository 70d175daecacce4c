package savings

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// question is asked of one output and answered by a fixed script of calls.
type question struct {
	source, text string
	calls        []call
	want         []*regexp.Regexp // all of these match the last answer; computed from the generator's own data
}

type call struct {
	tool string
	args map[string]any
}

// fixture writes the outputs and asks their questions.
type fixture struct {
	t         *testing.T
	dir       string
	short     bool
	random    *rand.Rand
	outputs   map[string]string // whole text by source; of a directory, all files with their names
	questions []question
}

func newFixture(t *testing.T, short bool) *fixture {
	f := emptyFixture(t, short)
	for _, make := range []func(*fixture){
		serviceLog, apiDump, geoJSON, orders, changes, testEvents, history, goSource,
	} {
		make(f)
	}
	f.writeOutputs()
	return f
}

func emptyFixture(t *testing.T, short bool) *fixture {
	return &fixture{t: t, dir: t.TempDir(), short: short, random: newRandom(), outputs: map[string]string{}}
}

// writeOutputs writes the outputs as files; those of the tree are written already.
func (f *fixture) writeOutputs() {
	for name, text := range f.outputs {
		if name != tree {
			f.write(name, text)
		}
	}
}

// newRandom returns the numbers that the fixtures are made of.
func newRandom() *rand.Rand { return rand.New(rand.NewPCG(7, 11)) }

func (f *fixture) write(name, text string) {
	path := filepath.Join(f.dir, name)
	expect.Must(f.t, os.MkdirAll(filepath.Dir(path), 0o700))
	expect.Must(f.t, os.WriteFile(path, []byte(text), 0o600))
}

// size returns the number of elements of an output: n, or a tenth of it in the short form.
func (f *fixture) size(n int) int {
	if f.short {
		return n / 10
	}
	return n
}

func (f *fixture) pick(of ...string) string { return of[f.random.IntN(len(of))] }

func (f *fixture) hex(n int) string {
	var b strings.Builder
	for range n {
		fmt.Fprintf(&b, "%x", f.random.IntN(16))
	}
	return b.String()
}

func (f *fixture) ask(source, text string, want []*regexp.Regexp, calls ...call) {
	f.questions = append(f.questions, question{source, text, calls, want})
}

func read(path string) call { return call{"read", map[string]any{"path": path}} }

func jq(source, filter string) call {
	return call{"jq", map[string]any{"source": source, "filter": filter, "slurp": true, "raw": true}}
}

func groups(source, pattern string) call {
	return call{"grep", map[string]any{"source": source, "pattern": pattern, "show": "groups"}}
}

func search(path, pattern, show string) call {
	return call{"search", map[string]any{"path": path, "pattern": pattern, "show": show}}
}

const (
	before = `(?m)(?:^|[^\pL\pN_.,-])`
	after  = `(?:$|[^\pL\pN_])`
)

// words matches each of the words, wherever it stands.
func words(all ...string) (want []*regexp.Regexp) {
	for _, w := range all {
		want = append(want, regexp.MustCompile(before+regexp.QuoteMeta(w)+after))
	}
	return want
}

// near matches the name of a file and the next text, with no other file's name between them.
func near(file, text string) []*regexp.Regexp {
	return []*regexp.Regexp{regexp.MustCompile(
		regexp.QuoteMeta(file) + `(?:[^.]|\.[^g]){0,120}?` + regexp.QuoteMeta(text))}
}

// alone matches a number on a line of its own: elsewhere the same number may count something else.
func alone(n int) []*regexp.Regexp {
	return []*regexp.Regexp{regexp.MustCompile(fmt.Sprintf(`(?m)^%d$`, n))}
}

// counted matches each key beside its number: a list of counts may hold the right numbers at the wrong keys.
func counted(counts map[string]int) (want []*regexp.Regexp) {
	for key, n := range counts {
		want = append(want, beside(key, n)...)
	}
	return want
}

// beside matches a key and a number with only punctuation, or "count", between them, in either order.
func beside(key string, n int) []*regexp.Regexp {
	k, between := regexp.QuoteMeta(key), `[^\pL\pN_\n]{1,12}(?:count[^\pL\pN_\n]{1,12})?`
	return []*regexp.Regexp{regexp.MustCompile(fmt.Sprintf(
		`%[1]s(?:%[2]s%[3]s%[4]d|%[4]d%[3]s%[2]s)%[5]s`, before, k, between, n, after))}
}

// most returns the key with the highest count, the first in order of names where several have it.
func most(counts map[string]int) (key string) {
	for k, n := range counts {
		if key == "" || n > counts[key] || n == counts[key] && k < key {
			key = k
		}
	}
	return key
}

var start = time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)

// TestWant accepts a right answer in several wordings, and no wrong one.
func TestWant(t *testing.T) {
	for _, c := range []struct {
		want       []*regexp.Regexp
		text       string
		acceptable bool
	}{
		{counted(map[string]int{"a": 1, "b": 2}), `kind: "a" ×1|"b" ×2`, true},
		{counted(map[string]int{"a": 1, "b": 2}), "1 a\n2 b\n", true},
		{counted(map[string]int{"a": 1, "b": 2}), "{\"group\":\"a\",\"count\":1}\n{\"group\":\"b\",\"count\":2}", true},
		{counted(map[string]int{"a": 1, "b": 2}), "2 a\n1 b\n", false},
		{counted(map[string]int{"a": 1, "b": 2}), "1 a\n", false},
		{beside("src/wire", 12), "src/wire: 12\nsrc/wire/frame: 7", true},
		{beside("src/wire", 7), "src/wire: 12\nsrc/wire/frame: 7", false},
		{beside("web", 12), "web 112", false},
		{beside("web", 12), "12.5 web", false},
		{alone(12), "showing 0-0 of 1\n12\n", true},
		{alone(12), "showing 0-12 of 12\n", false},
		{words("TestA1", "137"), "failed: TestA1 (137)", true},
		{words("TestA1"), "failed: TestA12", false},
		{near("src/a.go", "func x("), "src/a.go\n  65: func x(in []byte)", true},
		{near("src/a.go", "func x("), `{"file":"src/a.go","line":65,"text":"func x(in []byte)"}`, true},
		{near("src/a.go", "func x("), "src/a.go\n  6: x(in)\nsrc/b.go\n  65: func x(in []byte)", false},
	} {
		expect.Equal(t, holds(c.text, c.want), c.acceptable, "%s in %q", c.want, c.text)
	}
}
