package conformance

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// limit is one row of docs/LIMITS.md: a constant of the program, and how a call that reaches it is answered.
type limit struct {
	what  string
	where string // package/Constant
	unit  string // bytes, time, or what is counted
	told  string
}

// limits are the caps that a call of a tool of the toolset core can run into. A cap of a library is named with the
// library.
var limits = []struct {
	of  string
	all []limit
}{
	{"Patterns (search, grep)", []limit{
		{"a pattern", "text/linesearch.MaxPattern", "bytes", "error: `pattern: N bytes are over the limit`"},
		{"its compiled program, known before it is compiled", "text/linesearch.MaxProgram", "instructions", "error: `it is too large …; use fewer or smaller repeat counts`; a list of literal texts may have more"},
		{"a line shown without a window around its match", "text/linesearch.DefaultWindow", "bytes", "`[from-to of size]` behind the line, and a note; `slice` shows more"},
		{"a JSON value searched as one piece, a line saved whole", "tools/search.maxSaved", "bytes", "note: `over 1 MiB: only the first 1 MiB was searched`"},
		{"files searched at once", "tools/search.maxWorkers", "files", "nothing: it only takes longer"},
	}},
	{"Globs (find, search, read)", []limit{
		{"a glob", "system/tree.maxGlob", "bytes", "error: `N bytes long; a pattern may have at most …`"},
		{"`**` in one alternative, adjacent ones counted once", "system/tree.maxDoubleStars", "times", "error: `contains ** N times`"},
		{"patterns it expands to, by its braces", "system/tree.maxAlternatives", "patterns", "error: `use fewer {a,b}`"},
	}},
	{"Walks and files (find, search, read)", []limit{
		{"links in the path of a file", "system/tree.maxLinks", "links", "error: `too many links`"},
		{"names in the path of a file, after following links", "system/tree.maxSteps", "names", "error: `too many links`"},
		{"names of a directory that a walk holds at a time", "system/tree.ownRoom", "bytes", "nothing: it only takes longer"},
		{"names that all walks hold above that", "system/tree.sharedRoom", "bytes", "nothing: it only takes longer"},
		{"one ignore file", "system/tree.MaxRules", "bytes", "note: `too large: applied in part`"},
		{"all ignore files on the way to a directory", "system/tree.maxRulesInAll", "bytes", "note: `too large: applied in part`"},
		{"entries sorted by size or time", "tools/fs.maxSorted", "entries", "note: `the first N of M in this order`"},
		{"names of sorted entries", "tools/fs.maxSortedNames", "bytes", "note: `the first N of M in this order`"},
		{"entries sorted by a call that need not wait for others", "tools/fs.maxSortedFreely", "entries", "nothing: it only takes longer"},
		{"names of them, by such a call", "tools/fs.maxNamesFreely", "bytes", "nothing: it only takes longer"},
		{"concurrent calls that sort more", "tools/fs.maxLargeSorts", "calls", "nothing: it only takes longer"},
		{"extensions counted apart", "tools/fs.maxExtensions", "extensions", "a record `(others)`"},
		{"files of one `read`", "tools/fs.maxRead", "files", "note: `only the first … files are read; there are more`"},
		{"bytes of one `read` of several files", "tools/fs.maxReadBytes", "bytes", "note: `not read`, or `shown in part`"},
		{"one picture", "tools/fs.maxImage", "bytes", "`too large to show; an image may have at most N bytes`"},
		{"one picture, a side", "tools/fs.maxSide", "pixels", "`N × N pixels: too large to show`"},
		{"one picture in all", "tools/fs.maxPixels", "pixels", "`N × N pixels: too large to show`; a damaged one is named too"},
		{"all pictures of an answer", "funnel.maxImages", "bytes", "note: `is not shown: an answer takes at most …`"},
	}},
	{"jq", []limit{
		{"a filter", "tools/jq/plan.maxFilter", "bytes", "error: `filter is N bytes long, at most … are taken`"},
		{"`args` in all", "tools/jq/plan.maxArgs", "bytes", "error: `args are over … bytes`"},
		{"a line or row made an object", "kinds/record.MaxLine", "bytes", "error: `line … is longer than …`"},
		{"a result shown; all of a longer one can be saved", "tools/jq.wholeRow", "bytes", "its ends, cut in its middle; `save` keeps it"},
		{"a source on which a filter may run without a worker", "tools/jq.smallText", "bytes", "nothing: the answers are the same"},
		{"the text of such a filter", "tools/jq/plan.maxSafe", "bytes", "nothing: it runs in a worker"},
		{"memory of a worker, an eighth of the machine's (`--jq-memory`), but no more than",
			"system/worker.mostDefault", "bytes", "error: `the filter needs more than … of memory`"},
		{"the same, but no less than", "system/worker.DefaultMemory", "bytes", "the same"},
		{"the least that can be set", "system/worker.MinMemory", "bytes", "raised to it"},
		{"threads of a worker, in namespaces of its own", "system/worker.maxThreads", "threads", "error: `the worker failed`"},
		{"files of a worker", "system/worker.maxOpen", "files", "error: `the worker failed`"},
	}},
	{"JSON", []limit{
		{"a JSON Pointer in an answer", "text/content.maxPointer", "bytes", "`…` at its end"},
		{"a key in a pointer", "text/content.maxKey", "bytes", "clipped with `…`"},
	}},
	{"Answers", []limit{
		{"a page, whatever its tokens", "funnel/policy.MaxPageChars", "characters", "`showing a-b of n; next: …`"},
		{"a receipt, at most (`--receipt-tokens`)", "funnel/policy.MaxReceipt", "tokens", "what has no room is left out, the least important first"},
		{"plain text that does not repeat of which each line is read", "kinds/logs.restAfter", "bytes",
			"`from line N on, only errors and stack traces were looked for`"},
		{"a log or other text of which each line is looked at for its pattern", "kinds/logs.patternsWhole", "bytes", "`about` before the count of a pattern, `from samples of N MiB`; levels, errors and panics are counted in all of it; other findings are not looked for"},
		{"notes of one answer", "funnel.maxNotes", "notes", "nothing"},
	}},
	{"The store", []limit{
		{"one observation (`--max-observation`)", "observations.DefaultMaxObservation", "bytes", "`kept in part as` obs:ID, `(first N bytes)`, and how many were seen"},
		{"all observations (`--quota`)", "observations.DefaultQuota", "bytes", "the least recently used are removed; if none can be, `not kept (CAUSE)`"},
		{"space that stays free on its disk (`--min-free`)", "observations.DefaultMinFree", "bytes", "`not kept (CAUSE)`"},
		{"after last use, in which it is neither evicted nor expired", "observations.freshFor", "time", "`observations used within the last minute are not evicted`; a prune says how many stay for it"},
		{"from last use (`--max-age`)", "observations.DefaultMaxAge", "time", "an expired ID names the call that made it"},
	}},
	{"The protocol", []limit{
		{"a message (`--max-message`)", "server.DefaultMaxMessage", "bytes", "error: `a message of N bytes was dropped`"},
		{"calls at once (`--max-calls`)", "server.DefaultMaxCalls", "calls", "error that says to try again"},
		{"a call (`--call-timeout`)", "server.DefaultCallTimeout", "time", "error: `timed out after …`, with what was found until then"},
		{"after the end of input (`--eof-grace`)", "server.DefaultEOFGrace", "time", "error: `the input has ended`"},
		{"time in which a client must read something", "server.DefaultWriteTimeout", "time", "its calls are cancelled; in an HTTP session only the answer is lost"},
	}},
	{"HTTP", []limit{
		{"connections (`--http-connections`)", "server/httpserver.DefaultConnections", "connections", "503 with Retry-After"},
		{"sessions (`--http-sessions`)", "server/httpserver.DefaultSessions", "sessions", "the one that was idle longest ends; if none is idle, 503"},
		{"an idle session (`--http-idle`)", "server/httpserver.DefaultIdle", "time", "404, as the protocol demands: the client starts a new one"},
		{"the head of a request", "server/httpserver.maxHeader", "bytes", "431"},
		{"sending it", "server/httpserver.headerTimeout", "time", "the connection is closed"},
		{"sending a body", "server/httpserver.bodyTimeout", "time", "400 that names both times"},
		{"none of a body comes", "server/httpserver.bodyPause", "time", "400 that names both times"},
		{"answers that an `/sse` client has not read, before it may ask no more", "system/jsonrpc.MaxQueued", "bytes", "503: `this client has answers it does not read`"},
		{"open `subscriptions/listen` of one connection", "server.maxListens", "streams", "error that says to cancel one"},
	}},
}

// valueOf evaluates a constant of the program from its source: most are no business of other packages.
func valueOf(t *testing.T, where string) int64 {
	t.Helper()
	dir, name, _ := strings.Cut(where, ".")
	names, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(dir), "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: no package there", where)
	}
	for _, file := range names {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			group, ok := d.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			for _, spec := range group.Specs {
				v := spec.(*ast.ValueSpec)
				if len(v.Names) != 1 || v.Names[0].Name != name || len(v.Values) != 1 {
					continue
				}
				expr := types.ExprString(v.Values[0])
				for unit, d := range map[string]time.Duration{"time.Hour": time.Hour, "time.Minute": time.Minute, "time.Second": time.Second, "time.Millisecond": time.Millisecond} {
					expr = strings.ReplaceAll(expr, unit, fmt.Sprint(int64(d)))
				}
				value, err := types.Eval(token.NewFileSet(), nil, token.NoPos, expr)
				if err != nil {
					t.Fatalf("%s: %v", where, err)
				}
				n, exact := constant.Int64Val(constant.ToInt(value.Value))
				if !exact {
					t.Fatalf("%s is no whole number: %s", where, expr)
				}
				return n
			}
		}
	}
	t.Fatalf("%s: there is no such constant", where)
	return 0
}

// quotedWords are the words of an answer in a row, and standIns the placeholders in them.
var (
	quotedWords = regexp.MustCompile("`[^`]+`")
	standIns    = regexp.MustCompile(`…|\b[NMABn]\b|\b(CAUSE|ID|from-to of size|a-b)\b`)
)

// The words that the page quotes are in the program, word for word.
func TestLimitsAreTold(t *testing.T) {
	var source strings.Builder
	err := filepath.WalkDir("..", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		source.Write(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range limits {
		for _, l := range group.all {
			for _, words := range quotedWords.FindAllString(l.told, -1) {
				for _, piece := range standIns.Split(strings.Trim(words, "`"), -1) {
					if piece = strings.Trim(piece, " ;:()[]"); len(piece) > 3 && !strings.Contains(source.String(), piece) {
						t.Errorf("%s: %q is nowhere in the program", l.what, piece)
					}
				}
			}
		}
	}
}

// worded is a value as a reader wants it.
func worded(n int64, unit string) string {
	switch unit {
	case "bytes":
		for _, u := range []struct {
			size int64
			name string
		}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
			if n >= u.size && n%u.size == 0 {
				return fmt.Sprintf("%d %s", n/u.size, u.name)
			}
		}
	case "time":
		if d := time.Duration(n); d%(24*time.Hour) == 0 {
			return fmt.Sprintf("%d days", d/(24*time.Hour))
		}
		return time.Duration(n).String()
	}
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits + " " + unit
}

func limitsPage(t *testing.T) string {
	var b strings.Builder
	b.WriteString(`# Limits

*For users.*

The limits of ’find’, ’search’, ’read’, ’slice’, ’grep’ and ’jq’, of answers, the store, the protocol and HTTP, and how
each is reported. Written by ’make update’ from the constants of the program. Other pages have those of ’run’
([RUN.md](RUN.md)), ’ask’ and the text of documents ([ASK.md](ASK.md)), ’deliver’ ([CONTINUATION.md](CONTINUATION.md),
[INTENT.md](INTENT.md)), ’investigate’ ([INVESTIGATION.md](INVESTIGATION.md)), and ’wrap’ ([UPSTREAM.md](UPSTREAM.md)).
`)
	for _, group := range limits {
		fmt.Fprintf(&b, "\n## %s\n\n| what | at most | how it is reported |\n|---|---|---|\n", group.of)
		for _, l := range group.all {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", l.what, worded(valueOf(t, l.where), l.unit), l.told)
		}
	}
	b.WriteString(`
Where there are several identities, none has more than three quarters of the connections, the calls at once and the
bytes of messages: what it asks for beyond them is answered "busy" and says so, and the others are served.

Of libraries: a pattern nests at most 1,000 groups and repeats at most 1,000 times (Go's regexp); JSON nests at most
10,000 deep (jsontext).
`)
	return strings.ReplaceAll(b.String(), "’", "`")
}

// The page of limits says what the program does.
func TestLimitsPage(t *testing.T) {
	promise.WithoutRace(t)
	path := filepath.Join("..", "docs", "LIMITS.md")
	want := limitsPage(t)
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/LIMITS.md is not what the constants say: run go test ./conformance -run TestLimitsPage -update")
	}
}
