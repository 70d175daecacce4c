package jq

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/system/worker/workertest"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
	"github.com/mcp-funnel/mcp-funnel/tools/toolstest"
)

func TestMain(m *testing.M) {
	all := Workers()
	all[source.DatabaseWorker] = source.ReadDatabase
	os.Exit(workertest.Main(m, all))
}

// recorder is an Output that remembers. A page takes so many rows.
type recorder struct {
	bytes.Buffer // of Write: what is kept
	uncalled
	most         int
	rows         []string
	more         []tools.Call
	refused      int
	first, total int64
	next         *tools.Call
	origin       []string
	kept         bool
	notes        []string
	counts       map[string]float64
	progressed   int
	slow         time.Duration // each row takes so long
	largest      int
}

// uncalled has the methods whose effect no test looks at. Its own Write is hidden by that of the buffer.
type uncalled struct{ tools.Discard }

func (r *recorder) Row(b []byte, more tools.Call) error {
	time.Sleep(r.slow)
	r.largest = max(r.largest, len(b))
	if len(r.rows) == r.most {
		r.refused++
		return tools.ErrPageFull
	}
	r.rows = append(r.rows, string(b))
	r.more = append(r.more, more)
	return nil
}
func (r *recorder) TruncatedRow(head, tail []byte, between int64, more tools.Call) error {
	return r.Row(fmt.Appendf(nil, "%s… %d chars …%s", head, between, tail), more)
}
func (r *recorder) Text([]byte) error              { panic("jq shows results, not text") }
func (r *recorder) SetRowRange(first, total int64) { r.first, r.total = first, total }
func (r *recorder) Page() tools.Page               { return r }
func (r *recorder) Next(c tools.Call)              { r.next = &c }
func (r *recorder) Keep(from ...string)            { r.kept, r.origin = true, from }
func (r *recorder) Streams(string) func(bool) io.Writer {
	return func(bool) io.Writer { return r }
}
func (r *recorder) Source(string)                        { panic("jq has no output that stands elsewhere") }
func (r *recorder) Part(string, string) io.Writer        { panic("jq makes no images") }
func (r *recorder) Count(name string, n float64)         { r.counts[name] = n }
func (r *recorder) Note(text string)                     { r.notes = append(r.notes, text) }
func (r *recorder) Progress(done, total int64, _ string) { r.progressed++ }

// folder is a root with files in it.
func folder(t testing.TB, files map[string]string) source.Set {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		expect.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return toolstest.Roots(t, dir)
}

// call calls the tool as a client would.
func call(ctx context.Context, tool tools.Tool, from source.Set, a any, page int) (*recorder, error) {
	b, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	r := &recorder{most: page, counts: map[string]float64{}}
	err = tool.Run(ctx, tools.Input{Args: b, Sources: from}, r)
	return r, err
}

type m = map[string]any

// patience is how long what ends may take on a machine that has much else to do. Programs that never end are stopped by
// then as well, so that it bounds both.
const patience = 2 * time.Minute

var (
	inWorker  = newTool(runner{Options: Options{Memory: 512 << 20, CountFor: patience}, always: true})
	inProcess = newTool(runner{Options: Options{Memory: 512 << 20, CountFor: patience, InProcess: true}, always: true})
	asItIs    = JQ(Options{Memory: 512 << 20, CountFor: patience})
)

// ways are all ways in which a filter may run: the answers are the same.
var ways = []struct {
	name string
	tool tools.Tool
}{{"worker", inWorker}, {"in process", inProcess}, {"as it is", asItIs}}

func run(t testing.TB, tool tools.Tool, text string, a m) (*recorder, error) {
	t.Helper()
	args := m{"source": "in"}
	for k, v := range a {
		args[k] = v
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return call(ctx, tool, folder(t, map[string]string{"in": text}), args, 1000)
}

func joined(rows []string) string { return strings.Join(rows, "\n") }
