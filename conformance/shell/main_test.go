package shell_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/system/sandbox"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/system/worker"
	"github.com/mcp-funnel/mcp-funnel/system/worker/workertest"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/jq"
	"github.com/mcp-funnel/mcp-funnel/tools/shell"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

func TestMain(m *testing.M) {
	if ran, code := shell.Main(os.Args); ran {
		os.Exit(code)
	}
	if ran, code := worker.Main(os.Args, jq.Workers()); ran {
		os.Exit(code)
	}
	if ran, code := sandbox.Main(os.Args); ran {
		os.Exit(code)
	}
	os.Exit(workertest.WithPlainBuild(m, sandbox.Use))
}

// bench is a funnel with the tool run, a store and one root.
type bench struct {
	t     testing.TB
	root  string
	store *observations.Store
	shell *shell.Shell
	f     *funnel.Funnel
	tool  tools.Tool
	owner string

	more   []string      // further roots
	limits funnel.Limits // of the calls

	others []tools.Tool // that commands may call; nil: they have no funnel

	opened func() // is called when the root is open; nil: nothing is
	reads  func() // is called before a call reads an observation; nil: nothing is
}

// readPlace is a place that says when it is read.
type readPlace struct {
	source.NamedPlace
	b *bench
}

func (p readPlace) Open(ctx context.Context, path string) (*source.Source, error) {
	if p.b.reads != nil {
		p.b.reads()
	}
	return p.NamedPlace.Open(context.WithoutCancel(ctx), path)
}

// everywhere lets commands write below every root.
var everywhere = []string{"/"}

func newBench(t testing.TB, o shell.Options) *bench {
	t.Helper()
	b := &bench{t: t, root: t.TempDir(), owner: observations.Local}
	b.store = expect.Value(observations.OpenStore(observations.Options{Dir: t.TempDir(), MinFree: -1}))(t)
	t.Cleanup(func() { _ = b.store.Close() })
	o.Store, o.Dir = b.store, t.TempDir()
	o.Hidden = append(o.Hidden, b.store.Dir())
	b.shell = shell.New(o)
	t.Cleanup(b.shell.Close)
	b.tool = b.shell.Run()
	b.f = expect.Value(funnel.New(funnel.Options{Store: b.store}))(t)
	return b
}

// call runs the tool and returns its text and receipt.
func (b *bench) call(ctx context.Context, args map[string]any) (string, funnel.Answer) {
	b.t.Helper()
	raw := expect.Value(json.Marshal(args))(b.t)
	var roots []*tree.Root
	for _, dir := range append([]string{b.root}, b.more...) {
		root := expect.Value(tree.Open(dir))(b.t)
		defer func() { _ = root.Close() }()
		roots = append(roots, root)
	}
	if b.opened != nil {
		b.opened()
	}
	r := funnel.Request{
		Tool: b.tool, Args: raw, Who: funnel.Session{ID: b.owner, Owner: b.owner},
		Limits: b.limits,
		Sources: source.Set{
			Roots:  roots,
			Places: []source.NamedPlace{readPlace{source.Observations(b.store, b.owner), b}},
		},
	}
	if b.others != nil {
		list := func(context.Context) ([]tools.Tool, error) { return b.others, nil }
		r.Caller = funnel.NewCaller(r, list, b.f.Call)
	}
	answer, err := b.f.Call(ctx, r)
	if err != nil {
		return err.Error(), answer
	}
	var text strings.Builder
	for _, block := range answer.Blocks {
		text.WriteString(block.Text + "\n")
	}
	return text.String(), answer
}

// run runs a command.
func (b *bench) run(command string) (string, funnel.Answer) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 5*time.Minute)
	defer cancel()
	return b.call(ctx, map[string]any{"command": command})
}

// stored returns the bytes of the observation that an answer names.
func (b *bench) stored(a funnel.Answer) (observations.Observation, string) {
	b.t.Helper()
	r := expect.Value(b.store.Open(b.owner, observations.ID(a.Receipts[0].ObservationID)))(b.t)
	defer func() { _ = r.Close() }()
	text := make([]byte, r.Size())
	if _, err := r.ReadAt(text, 0); err != nil && r.Size() > 0 {
		b.t.Fatal(err)
	}
	return r.Observation, string(text)
}

// tried is a command of a table in testdata, what its answer has, and its status.
type tried struct{ Name, Command, Output, Want, Status string }
