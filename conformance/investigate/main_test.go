package investigate_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/peers/peer"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/records"
	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// object and list are JSON, as arguments and notes have it.
type (
	object = map[string]any
	list   = []any
)

// bench is a funnel with all tools, a store, a trace and one root.
type bench struct {
	t       testing.TB
	root    *tree.Root
	dir     string
	store   *observations.Store
	records *records.Files // of the process that b.i works in
	log     *trace.Log
	i       *investigate.Investigator
	f       *funnel.Funnel
	offers  map[string]tools.Tool
	owner   string
	counter *tokens.Counter
}

// in returns a bench on a directory, with a store of its own.
func in(t testing.TB, dir string) *bench {
	t.Helper()
	b := &bench{
		t: t, dir: dir, owner: observations.Local, offers: map[string]tools.Tool{}, counter: tokens.New(tokens.O200k),
	}
	store := observations.Options{Dir: filepath.Join(t.TempDir(), "store"), MinFree: -1}
	b.store = expect.Value(observations.OpenStore(store))(t)
	t.Cleanup(func() { _ = b.store.Close() })
	b.root = expect.Value(tree.Open(dir))(t)
	t.Cleanup(func() { _ = b.root.Close() })
	b.dir = b.root.Dir()
	b.log = expect.Value(trace.Open(trace.Dir(b.store.Dir())))(t)
	t.Cleanup(func() { _ = b.log.Close() })
	b.f = expect.Value(funnel.New(funnel.Options{Store: b.store, Trace: b.log, Counter: b.counter}))(t)
	b.restart()
	return b
}

// newRecords returns the records of the store as another process sees them.
func (b *bench) newRecords() *records.Files {
	files := records.InDir(b.store.Dir())
	b.t.Cleanup(files.Close)
	return files
}

// restart makes a new Investigator, as a new process has.
func (b *bench) restart() {
	b.records = b.newRecords()
	b.i = investigate.New(investigate.Options{Records: b.records, Trace: b.log})
	b.t.Cleanup(b.i.Close)
	for _, t := range server.Catalog(server.Parts{Investigator: b.i, Toolsets: server.Toolsets}) {
		b.offers[t.Name] = t
	}
}

func (b *bench) sources() source.Set {
	return source.Set{
		Roots:  []*tree.Root{b.root},
		Places: []source.NamedPlace{source.Observations(b.store, b.owner), b.i.Place(b.owner)},
	}
}

func (b *bench) caller() investigate.Caller {
	return investigate.Caller{Sources: b.sources(), Owner: b.owner, Count: b.counter.Count}
}

// call runs a tool and returns what is shown, and what a program may read of it.
func (b *bench) call(tool string, args object) (text string, answer funnel.Answer) {
	b.t.Helper()
	raw := expect.Value(json.Marshal(args))(b.t)
	answer = expect.Value(b.f.Call(b.t.Context(), funnel.Request{
		Tool: b.offers[tool], Args: raw, Who: funnel.Session{ID: "s", Owner: b.owner}, Sources: b.sources(),
	}))(b.t)
	var parts []string
	for _, block := range answer.Blocks {
		parts = append(parts, block.Text)
	}
	return strings.Join(parts, "\n"), answer
}

// order is what an answer attaches for programs.
type order struct {
	Investigation, Order, Step string
	Dirs                       []struct {
		Path, Tier string
		Turns      int
	}
}

// investigate calls the tool and returns the order that it gives out.
func (b *bench) investigate(args object) (text string, o order) {
	b.t.Helper()
	text, a := b.call("investigate", args)
	if a.Extra != nil {
		raw, err := json.Marshal(a.Extra)
		if err == nil {
			err = json.Unmarshal(raw, &o)
		}
		expect.Must(b.t, err)
	}
	return text, o
}

// text calls the tool and returns what is shown.
func (b *bench) text(args object) string {
	b.t.Helper()
	text, _ := b.call("investigate", args)
	return text
}

// show returns a view.
func (b *bench) show(what string) string {
	b.t.Helper()
	return b.text(object{"show": what})
}

// read returns a source as the tool read shows it.
func (b *bench) read(path string) string {
	b.t.Helper()
	text, _ := b.call("read", object{"path": path})
	return text
}

// finished answers all orders, and returns the first one.
func (b *bench) finished(format string) order {
	b.t.Helper()
	_, o := b.investigate(nil)
	b.finish(o, format)
	return o
}

// answer hands in a note. It returns what is shown and the next order.
func (b *bench) answer(o order, note object) (text string, next order) {
	b.t.Helper()
	return b.investigate(object{"order": o.Order, "note": note})
}

// refused calls a tool. The test fails unless the call fails with one short text that has want.
func (b *bench) refused(tool string, args object, want string) {
	b.t.Helper()
	text, a := b.call(tool, args)
	if !a.Failed || !strings.Contains(text, want) || strings.Count(text, "\n") > 2 {
		b.t.Errorf("%s %.300s: failed %v: %.400s\nwant %q", tool, fmt.Sprint(args), a.Failed, text, want)
	}
}

// verify looks up all citations again.
func (b *bench) verify() investigate.Verification {
	b.t.Helper()
	return expect.Value(b.i.Verify(b.t.Context(), b.caller(), ""))(b.t)
}

// report returns the report of an investigation.
func (b *bench) report(name string) investigate.Report {
	b.t.Helper()
	return expect.Value(b.i.Report(b.t.Context(), b.caller(), name))(b.t)
}

// paths returns the directories of an order.
func (o order) paths() (all []string) {
	for _, d := range o.Dirs {
		all = append(all, d.Path)
	}
	return all
}

// note answers an order as a diligent agent would.
func (o order) note(format string) object {
	switch o.Step {
	case "plan":
		return object{
			"survey": object{"description": "a tree of tests", "confidence": 0.8},
			"plan":   object{"priority_dirs": list{}, "investigation_order": "leaf-first"},
		}
	case "report":
		return object{"report": object{"brief": "A tree of tests.", "detailed": "It has directories."}}
	}
	var dirs list
	for _, p := range o.paths() {
		dirs = append(dirs, object{"path": p, "summary": fmt.Sprintf(format, p), "dominant_category": "source"})
	}
	return object{"dirs": dirs, "confidence": 0.9, "completeness": 1}
}

// finish answers orders until none is left, and returns how many.
func (b *bench) finish(o order, format string) (n int) {
	b.t.Helper()
	for ; o.Order != ""; n++ {
		var text string
		text, o = b.answer(o, o.note(format))
		if strings.HasPrefix(text, "error") || n > 2000 {
			b.t.Fatalf("after %d orders: %s", n, text)
		}
	}
	return n
}

// filesOf returns the files in the first directory of an order.
func (b *bench) filesOf(o order) (files []string) {
	list := expect.Value(os.ReadDir(filepath.Join(b.dir, o.Dirs[0].Path)))(b.t)
	for _, e := range list {
		if e.Type().IsRegular() {
			files = append(files, path.Join(o.Dirs[0].Path, e.Name()))
		}
	}
	return files
}

// write makes files below a directory.
func write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		p := filepath.Join(dir, name)
		expect.Must(t, os.MkdirAll(filepath.Dir(p), 0o755))
		expect.Must(t, os.WriteFile(p, []byte(text), 0o600))
	}
}

// project is a small tree with something to cite.
func project(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"README.md":         "# Shop\n\nA shop that keeps its orders in a pool of connections.\n",
		"go.mod":            "module example.org/shop\n\ngo 1.26\n",
		"main.go":           "// Command shop sells things.\npackage main\n\nfunc main() {}\n",
		"db/pool.go":        "// Package db keeps connections.\npackage db\n\n// Pool is bounded.\ntype Pool struct{}\n\nconst maxOpen = 20\n",
		"db/query.go":       "package db\n\n// Query asks.\nfunc Query(q string) int { return len(q) }\n",
		"db/testdata/a.sql": "select 1\n",
		"web/web.go":        "// Package web serves.\npackage web\n\nfunc Serve() {}\n",
	})
	return dir
}

// unstable matches what differs between two investigations of the same tree: ids and times.
var unstable = regexp.MustCompile(`(inv|ord):[0-9a-z]{12}|\d{4}-\d\d-\d\d[T ][0-9:.]+Z?`)

// goroot returns the directory of the toolchain that runs the tests.
func goroot(t testing.TB) string {
	t.Helper()
	return filepath.Dir(peer.GoSource(t))
}
