package search

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/peers/peer"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// answer is what a call had to say: a page of so many rows and bytes, 0 for any.
type answer struct {
	bytes.Buffer
	uncalled
	rowsMost     int
	rows         []string
	more         []tools.Call
	first, total int64
	next         *tools.Call
	kept         []string
	counts       map[string]float64
	notes        []string
	told         atomic.Int64
}

// uncalled has the methods that neither tool calls. Its own Write is hidden by that of the buffer.
type uncalled struct{ tools.Discard }

func (a *answer) Row(b []byte, more tools.Call) error {
	if a.rowsMost > 0 && len(a.rows) == a.rowsMost && a.kept == nil {
		return tools.ErrPageFull
	}
	a.rows = append(a.rows, string(b))
	a.more = append(a.more, more)
	return nil
}
func (a *answer) TruncatedRow(head, tail []byte, between int64, more tools.Call) error {
	return a.Row(fmt.Appendf(nil, "%s… %d chars …%s", head, between, tail), more)
}
func (a *answer) SetRowRange(first, total int64) { a.first, a.total = first, total }
func (a *answer) Page() tools.Page               { return a }
func (a *answer) Next(c tools.Call)              { a.next = &c }
func (a *answer) Keep(from ...string)            { a.kept = append(a.kept, from...) }
func (a *answer) Count(name string, n float64)   { a.counts[name] = n }
func (a *answer) Note(text string)               { a.notes = append(a.notes, text) }
func (a *answer) Progress(int64, int64, string)  { a.told.Add(1) }

func (a *answer) note() string { return strings.Join(a.notes, "\n") }

// args is an object as JSON.
type args map[string]any

func call(t testing.TB, tool tools.Tool, s source.Set, a args) (*answer, error) {
	t.Helper()
	return callOn(t, t.Context(), &answer{}, tool, s, a)
}

func callOn(t testing.TB, ctx context.Context, out *answer, tool tools.Tool, s source.Set, a args) (*answer, error) {
	t.Helper()
	b, err := json.Marshal(a)
	expect.Must(t, err)
	out.counts = map[string]float64{}
	err = tool.Run(ctx, tools.Input{Args: b, Sources: s}, out)
	return out, err
}

// must is call that must not fail.
func must(t testing.TB, tool tools.Tool, s source.Set, a args) *answer {
	t.Helper()
	out, err := call(t, tool, s, a)
	expect.Must(t, err, a)
	return out
}

// folder makes a directory of files: name, text, name, text …
func folder(t testing.TB, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		name := filepath.Join(dir, filepath.FromSlash(files[i]))
		expect.Must(t, os.MkdirAll(filepath.Dir(name), 0o755))
		expect.Must(t, os.WriteFile(name, []byte(files[i+1]), 0o644))
	}
	return dir
}

// stored adds the observations of a new store to a set.
func stored(t testing.TB, s source.Set) (source.Set, *observations.Store) {
	t.Helper()
	store, err := observations.OpenStore(observations.Options{Dir: filepath.Join(t.TempDir(), "store"), MinFree: 1})
	expect.Must(t, err)
	s.Places = []source.NamedPlace{source.Observations(store, observations.Local)}
	return s, store
}

// keep makes an observation.
func keep(t testing.TB, store *observations.Store, m observations.Provenance, text string) observations.ID {
	t.Helper()
	m.Owner = observations.Local
	r, err := store.Record(m)
	expect.Must(t, err)
	if _, err := r.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	longest := 0
	for l := range strings.SplitSeq(text, "\n") {
		longest = max(longest, len(l))
	}
	kind := "text"
	if strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") {
		kind = "json"
	}
	if _, err := r.Commit(
		observations.Stats{Kind: kind, Ext: "txt", LongestLine: int64(longest), Status: "success"},
	); err != nil {
		t.Fatal(err)
	}
	return r.ID()
}

// record is a record of search, as a reader of its output sees it.
type record struct {
	File    string   `json:"file"`
	Line    int64    `json:"line"`
	End     int64    `json:"end"`
	Text    string   `json:"text"`
	Column  int64    `json:"column"`
	Cut     bool     `json:"cut"`
	Before  []string `json:"before"`
	After   []string `json:"after"`
	Matches int64    `json:"matches"`
}

func records(t testing.TB, a *answer) (out []record) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(a.Bytes()))
	d.DisallowUnknownFields()
	for {
		var r record
		if err := d.Decode(&r); err == io.EOF {
			return out
		} else if err != nil {
			t.Fatalf("record %d: %v in %.300q", len(out), err, a.String())
		}
		out = append(out, r)
	}
}

// goroot is a part of Go's own source.
func goroot(t testing.TB) string { return filepath.Join(peer.GoSource(t), "net") }
