package ask

import (
	"bytes"
	"context"
	"database/sql"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/ask/index"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// documented is a function of Go's library whose comment is a question: which function does this?
type documented struct {
	file     string
	from, to int // lines of the function in the text without comments
	question string
}

// omitted are directories of Go's library: simd and syscall have hundreds of functions with one and the same comment.
var omitted = []string{"testdata", "vendor", "cmd", "internal", "simd", "syscall"}

// stripped copies Go's library without the comments of documented functions, and returns up to n of these.
func stripped(t testing.TB, to string, n int) []documented {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	expect.Must(t, err)
	src := filepath.Join(strings.TrimSpace(string(out)), "src")
	var all []documented
	err = filepath.WalkDir(src, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			if slices.Contains(omitted, e.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return nil
		}
		rel, err := filepath.Rel(src, p)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		text, found := strip(rel, text)
		all = append(all, found...)
		at := filepath.Join(to, rel)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		return os.WriteFile(at, text, 0o644)
	})
	expect.Must(t, err)
	r := rand.New(rand.NewPCG(1, 2))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(n, len(all))]
}

func synopsis(s string) string { return new(doc.Package).Synopsis(s) }

// strip removes the comments of the exported functions of a file that have at least eight words.
func strip(name string, text []byte) ([]byte, []documented) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, name, text, parser.ParseComments)
	if err != nil {
		return text, nil
	}
	var found []documented
	var b bytes.Buffer
	last := 0
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Doc == nil || !fn.Name.IsExported() {
			continue
		}
		question := regexp.MustCompile(`\b`+fn.Name.Name+`\b`).ReplaceAllString(synopsis(fn.Doc.Text()), "")
		if len(strings.Fields(question)) < 8 {
			continue
		}
		b.Write(text[last:set.Position(fn.Doc.Pos()).Offset])
		last = set.Position(fn.Pos()).Offset
		from := 1 + bytes.Count(b.Bytes(), []byte("\n"))
		body := bytes.Count(text[last:set.Position(fn.End()).Offset], []byte("\n"))
		question = strings.Join(strings.Fields(question), " ")
		found = append(found, documented{filepath.ToSlash(name), from, from + body, question})
	}
	b.Write(text[last:])
	return b.Bytes(), found
}

// TestRetrieval asks for functions of Go's library by the first sentence of their comments, which are removed from the
// text. The mean reciprocal rank of the function among the first ten passages is at least 2.4 times that of plain FTS5
// on the same passages.
func TestRetrieval(t *testing.T) {
	if testing.Short() {
		t.Skip("indexes Go's library: the race detector takes a quarter of an hour, and nothing in it runs at once")
	}
	dir := t.TempDir()
	questions := stripped(t, dir, promise.Size(60, 800))
	root, err := tree.Open(dir)
	expect.Must(t, err)
	defer func() { _ = root.Close() }()
	k := New(Options{Slice: 1 << 40})
	sources := source.Set{Roots: []*tree.Root{root}}
	q := &question{k: k, ctx: t.Context(), in: tools.Input{Sources: sources}, args: Args{Path: "."},
		progress: func(int64, int64, string) {}}
	q.k.options.Store = t.TempDir()
	expect.Must(t, q.gather())
	defer q.close()
	expect.Must(t, q.refresh())
	plain := plainIndex(t, q.places[0])
	var ours, theirs, inFive float64
	for _, d := range questions {
		q.text, q.readAs = d.question, d.question
		query, err := q.query(termsOf(d.question))
		expect.Must(t, err)
		all, err := q.passages(query, candidates)
		expect.Must(t, err)
		rank := slices.IndexFunc(all[:min(10, len(all))], func(p found) bool {
			return p.Path == d.file && p.Line <= d.to && p.Line+strings.Count(p.text, "\n") > d.from
		})
		if rank >= 0 {
			ours += 1 / float64(rank+1)
			if rank < 5 {
				inFive++
			}
		}
		theirs += plain(d)
	}
	count := float64(len(questions))
	t.Logf("%d questions: MRR@10 %.3f, in five %.0f %%; plain FTS5 %.3f, ratio %.2f", len(questions), ours/count,
		100*inFive/count, theirs/count, ours/theirs)
	if ours/count < 0.22 || ours < 2.4*theirs {
		t.Error("below the bar")
	}
}

// plainIndex returns the reciprocal rank of a function by FTS5 alone on the same passages: one column, its own words.
func plainIndex(t testing.TB, c *corpus) func(documented) float64 {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "plain.db"))
	expect.Must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	ctx := context.Background()
	run := func(query string, args ...any) {
		if _, err := db.ExecContext(ctx, query, args...); err != nil {
			t.Fatal(err)
		}
	}
	run("CREATE VIRTUAL TABLE f USING fts5 (body)")
	run("BEGIN")
	type place struct {
		path     string
		from, to int
	}
	var places []place
	for _, f := range c.files {
		body, kind, _ := c.text(ctx, f.File)
		for _, chunk := range index.Chunks(ctx, f.Path, kind, body) {
			text := body[chunk.Start:chunk.End]
			run("INSERT INTO f (rowid, body) VALUES (?, ?)", len(places)+1, text)
			places = append(places, place{f.Path, chunk.Line, chunk.Line + bytes.Count(text, []byte("\n"))})
		}
	}
	run("COMMIT")
	word := regexp.MustCompile(`[\pL\d]+`)
	return func(d documented) float64 {
		query := `"` + strings.Join(word.FindAllString(d.question, -1), `" OR "`) + `"`
		rows, err := db.QueryContext(ctx, "SELECT rowid FROM f WHERE f MATCH ? ORDER BY rank LIMIT 10", query)
		expect.Must(t, err)
		defer func() { _ = rows.Close() }()
		for rank := 1; rows.Next(); rank++ {
			var id int
			expect.Must(t, rows.Scan(&id))
			if p := places[id-1]; p.path == d.file && p.from <= d.to && p.to > d.from {
				return 1 / float64(rank)
			}
		}
		return 0
	}
}
