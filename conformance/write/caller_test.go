package write_test

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/records"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
	"github.com/mcp-funnel/mcp-funnel/tools/write"
)

// caller calls the tools that change files, of one funnel whose roots may be changed: dir, and others.
type caller struct {
	t     testing.TB
	dir   string
	f     *funnel.Funnel
	tools map[string]tools.Tool
	set   source.Set
	store *observations.Store
	onPut func() // is called before a record of a change is written; nil: nothing
}

// putting is a store of records that calls onPut of a caller.
type putting struct {
	records.Store
	of *caller
}

func (p putting) Put(key records.Key, body []byte) error {
	if p.of.onPut != nil {
		p.of.onPut()
	}
	return p.Store.Put(key, body)
}

func newCaller(t testing.TB, others ...string) *caller {
	t.Helper()
	c := &caller{t: t, dir: expect.Value(filepath.EvalSymlinks(t.TempDir()))(t), tools: map[string]tools.Tool{}}
	store := expect.Value(observations.OpenStore(observations.Options{Dir: t.TempDir(), MinFree: -1}))(t)
	t.Cleanup(func() { _ = store.Close() })
	c.store = store
	for _, dir := range append([]string{c.dir}, others...) {
		c.set.Roots = append(c.set.Roots, expect.Value(tree.Open(dir))(t))
	}
	t.Cleanup(c.set.Close)
	c.f = expect.Value(funnel.New(funnel.Options{Store: store}))(t)
	c.set.Versions = source.NewVersions()
	c.set.Places = []source.NamedPlace{source.Observations(store, observations.Local)}
	w := write.New(write.Options{Dirs: c.set.Roots, Store: store, Records: putting{records.InDir(store.Dir()), c}})
	for _, tool := range []tools.Tool{w.Edit(), w.Write(), w.Move(), w.Remove()} {
		c.tools[tool.Name] = tool
	}
	return c
}

// args are the arguments of a call.
type args = map[string]any

// call returns the text of an answer, and whether the tool has failed.
func (c *caller) call(tool string, of args) (text string, failed bool) {
	c.t.Helper()
	return c.callTo(nil, tool, of)
}

// callTo is [caller.call], and writes the whole output, if whole is not nil.
func (c *caller) callTo(whole io.Writer, tool string, of args) (text string, failed bool) {
	c.t.Helper()
	answer, err := c.f.Call(c.t.Context(), funnel.Request{
		Tool: c.tools[tool], Args: expect.Value(json.Marshal(of))(c.t), Sources: c.set, Whole: whole,
		Who: funnel.Session{ID: observations.Local, Owner: observations.Local},
	})
	if err != nil {
		return err.Error(), true
	}
	var all strings.Builder
	for _, block := range answer.Blocks {
		all.WriteString(block.Text)
	}
	return all.String(), answer.Failed
}

// file writes a file below the root, with the directories on the way, and returns its path.
func (c *caller) file(name, text string) string {
	c.t.Helper()
	path := filepath.Join(c.dir, name)
	expect.Must(c.t, os.MkdirAll(filepath.Dir(path), 0o755))
	expect.Must(c.t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

// text returns the bytes of a file below the root; "(none)" if there is none.
func (c *caller) text(name string) string {
	b, err := os.ReadFile(filepath.Join(c.dir, name))
	if err != nil {
		return "(none)"
	}
	return string(b)
}
