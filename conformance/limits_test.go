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

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// limit is one row of docs/LIMITS.md: a constant of the program, and how a call that reaches it is answered. The rows
// are in testdata/limits.ndjson: the caps that a call of a tool of the toolset core can run into. A cap of a library is
// named with the library.
type limit struct {
	Of, What string
	Where    string // package/Constant
	Unit     string // bytes, time, or what is counted
	Told     string
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
		parsed := expect.Value(parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution))(t)
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
				value := expect.Value(types.Eval(token.NewFileSet(), nil, token.NoPos, expr))(t, where)
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
	expect.Must(t, filepath.WalkDir("..", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		source.Write(b)
		return err
	}))
	for _, l := range corpus.Rows[limit](t, "limits.ndjson") {
		for _, words := range quotedWords.FindAllString(l.Told, -1) {
			for _, piece := range standIns.Split(strings.Trim(words, "`"), -1) {
				if piece = strings.Trim(piece, " ;:()[]"); len(piece) > 3 && !strings.Contains(source.String(), piece) {
					t.Errorf("%s: %q is nowhere in the program", l.What, piece)
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

The limits of ’find’, ’search’, ’read’, ’slice’, ’grep’ and ’jq’, of changes of files, answers, the store, the protocol
and HTTP, and how each is reported. Written by ’make update’ from the constants of the program. Other pages have those of ’run’
([RUN.md](RUN.md)), ’ask’ and the text of documents ([ASK.md](ASK.md)), ’deliver’ ([CONTINUATION.md](CONTINUATION.md),
[INTENT.md](INTENT.md)), ’investigate’ ([INVESTIGATION.md](INVESTIGATION.md)), and ’wrap’ ([UPSTREAM.md](UPSTREAM.md)).
`)
	of := ""
	for _, l := range corpus.Rows[limit](t, "limits.ndjson") {
		if l.Of != of {
			of = l.Of
			fmt.Fprintf(&b, "\n## %s\n\n| what | at most | how it is reported |\n|---|---|---|\n", of)
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", l.What, worded(valueOf(t, l.Where), l.Unit), l.Told)
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
		write(t, path, want)
		return
	}
	got := expect.Value(os.ReadFile(path))(t)
	expect.Equal(t, string(got), want,
		"docs/LIMITS.md is not what the constants say: run go test ./conformance -run TestLimitsPage -update")
}
