package stdio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/server/servertest"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/system/worker/workertest"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/jq"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// longCalls keep each tool of the catalog busy: the first three for minutes, the others until they are cancelled, since
// what they give is not taken before.
var longCalls = []struct{ tool, args string }{
	{"search", `{"pattern":"[01]*1[01]{300}[c-z]"}`},
	{"grep", `{"source":"bits.txt","pattern":"[01]*1[01]{300}[c-z]"}`},
	{"jq", `{"source":"rows.json","filter":"last(range(1e12))"}`},
	{"read", `{"path":"lines.txt"}`},
	{"slice", `{"source":"lines.txt","lines":"1-400000"}`},
	{"find", `{"show":"stat"}`},
}

// untaken is the output of a call whose client takes nothing until the call is cancelled.
type untaken struct {
	tools.Output
	ctx context.Context
}

func (u untaken) Write(p []byte) (int, error) {
	<-u.ctx.Done()
	return u.Output.Write(p)
}

func (u untaken) Page() tools.Page { return untakenPage{u.Output.Page(), u.ctx} }

type untakenPage struct {
	tools.Page
	ctx context.Context
}

func (u untakenPage) Row(b []byte, more tools.Call) error {
	<-u.ctx.Done()
	return u.Page.Row(b, more)
}

// ending is how a tool came to its end: its error, and what its context was ended for, if it was.
type ending struct{ err, cause error }

// largeInputs is a root with what longCalls look into.
func largeInputs(t *testing.T) *tree.Root {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, text []byte) {
		expect.Must(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	var bits []byte // at random, so that no automaton comes to know them
	for r := rand.New(rand.NewPCG(1, 2)); len(bits) < 1<<20; bits = append(bits, '\n') {
		for range 16 {
			bits = fmt.Appendf(bits, "%064b", r.Uint64())
		}
	}
	write("bits.txt", bytes.Repeat(bits, 32))
	write("lines.txt", bytes.Repeat([]byte("a line of a text that goes on and on\n"), 500<<10))
	write("rows.json", []byte(`[1,2,3]`))
	expect.Must(t, os.Mkdir(filepath.Join(dir, "many"), 0o700))
	for i := range 1000 {
		write(fmt.Sprintf("many/%d.txt", i), []byte("a\n"))
	}
	root, err := tree.Open(dir)
	expect.Must(t, err)
	t.Cleanup(func() { _ = root.Close() })
	return root
}

// watched is a tool that says when it begins and how it ends.
func watched(tool tools.Tool, began chan<- string, ended chan<- ending, running *atomic.Int64) tools.Tool {
	run := tool.Run
	tool.Run = func(ctx context.Context, in tools.Input, out tools.Output) error {
		running.Add(1)
		defer running.Add(-1)
		began <- tool.Name
		if slices.Contains([]string{"read", "slice", "find"}, tool.Name) {
			out = untaken{out, ctx}
		}
		err := run(ctx, in, out)
		ended <- ending{err, context.Cause(ctx)}
		return err
	}
	return tool
}

// children counts the processes below this one.
func children(t *testing.T) (n int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	expect.Must(t, err)
	parent := map[int]int{}
	for _, name := range stats {
		stat, err := os.ReadFile(name)
		if err != nil {
			continue // it is gone
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		parent[pid], _ = strconv.Atoi(fields[1])
	}
	for pid := range parent {
		for up := parent[pid]; up > 1; up = parent[up] {
			if up == os.Getpid() {
				n++
				break
			}
		}
	}
	return n
}

// TestS8CancelStopsTheWork cancels calls of every tool over one connection with none, 32 and 400 other
// calls in flight. A call counts as stopped where the cancellation is what ended its context, and it did not do all its
// work. The control sends another notification in place of the cancellation.
func TestS8CancelStopsTheWork(t *testing.T) {
	cancels := promise.Size(36, 300)
	if testing.Short() {
		cancels = 12
	}
	root := largeInputs(t)
	began, ended := make(chan string, 16), make(chan ending, 16)
	var running atomic.Int64
	s := newTestServer(t, func(o *server.Options) {
		for _, tool := range server.Catalog(server.Parts{JQ: jq.Options{InProcess: workertest.Race}}) {
			o.Tools = append(o.Tools, watched(tool, began, ended, &running))
		}
		o.MaxCalls, o.EOFGrace, o.CallTimeout = 600, time.Millisecond, 10*time.Minute
		o.Sources = func(who funnel.Session) source.Set {
			return source.Set{Roots: []*tree.Root{root}}
		}
	})
	// try makes n calls beside so many others and counts those that were not stopped within patience.
	try := func(n, beside int, method string, patience time.Duration) (failures int, took, pings []time.Duration) {
		m := serveMangled(t, func(in io.Reader, out io.Writer) { _ = Serve(t.Context(), s, in, out) })
		m.send(patience, servertest.Initialize)
		for i := range beside {
			if _, err := io.WriteString(
				m.in, servertest.ToolCall(fmt.Sprint(1_000_000+i), "sleep", `{"ms":3600000}`, "")+"\n",
			); err != nil {
				t.Fatal(err)
			}
		}
		for i := range n {
			call := longCalls[i%len(longCalls)]
			if _, err := io.WriteString(m.in, servertest.ToolCall(fmt.Sprint(i), call.tool, call.args, "")+"\n"); err != nil {
				t.Fatal(err)
			}
			expect.MustEqual(t, <-began, call.tool, "runs")
			told := time.Now()
			if !m.send(20*time.Second, fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":{"requestId":%d}}`, method, i)) {
				t.Errorf("ping was not answered beside %d calls", beside)
				return failures + 1, took, pings
			}
			pings = append(pings, time.Since(told))
			late := time.NewTimer(patience)
			select {
			case end := <-ended:
				took = append(took, time.Since(told))
				if end.err == nil || !errors.Is(end.cause, server.ErrCancelled) {
					failures++
					t.Logf("%s was not stopped: its error is %v, its context's end %v", call.tool, end.err, end.cause)
				}
			case <-late.C:
				failures++
			}
			late.Stop()
		}
		_ = m.in.Close()
		<-m.ended
		for wait := time.Now().Add(20 * time.Second); running.Load() > 0 && time.Now().Before(wait); {
			time.Sleep(5 * time.Millisecond)
		}
		if left := running.Load(); left > 0 {
			t.Errorf("%d tools still run after the connection has ended", left)
		}
		return failures, took, pings
	}
	p99 := func(all []time.Duration) time.Duration {
		slices.Sort(all)
		return all[len(all)*99/100].Round(100 * time.Microsecond)
	}
	proof := promise.Proof{Promise: "S8"}
	for _, beside := range []int{0, 32, 400} {
		failures, took, pings := try(cancels, beside, "notifications/cancelled", 10*time.Second)
		proof.Cases, proof.Failures = proof.Cases+cancels, proof.Failures+failures
		if len(took) > 0 {
			stopped, ping := p99(took), p99(pings)
			proof.Figures += fmt.Sprintf("beside %d calls: stopped p99 %s, ping p99 %s; ", beside, stopped, ping)
			if promise.Full() && (stopped > 250*time.Millisecond || ping > 50*time.Millisecond) {
				proof.Failures++
				t.Errorf("beside %d calls: stopped p99 %s, promised 250 ms; ping p99 %s, promised 50 ms", beside, stopped, ping)
			}
		}
	}
	left := children(t)
	for wait := time.Now().Add(10 * time.Second); left > 0 && time.Now().Before(wait); left = children(t) {
		time.Sleep(20 * time.Millisecond)
	}
	proof.Cases++
	if left > 0 {
		proof.Failures++
		t.Errorf("%d processes are left", left)
	}
	proof.Figures += fmt.Sprintf("%d processes left", left)
	proof.Control, _, _ = try(3, 0, "notifications/not-cancelled", time.Second)
	promise.Kept(t, proof)
}
