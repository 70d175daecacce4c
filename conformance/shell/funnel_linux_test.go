//go:build amd64 || arm64

package shell_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
	"github.com/mcp-funnel/mcp-funnel/system/sandbox"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/jq"
	"github.com/mcp-funnel/mcp-funnel/tools/shell"
)

// newFunnelBench is a bench whose commands may call the core tools, run itself and more tools.
func newFunnelBench(t testing.TB, o shell.Options, more ...tools.Tool) *bench {
	b := newBench(t, o)
	b.others = append(server.Catalog(server.Parts{JQ: jq.Options{}}), append(more, b.tool)...)
	return b
}

// effect is a tool that counts its calls and says whose call it is.
type effect struct {
	calls atomic.Int64
	tool  tools.Tool
}

func newEffect(name string, kind tools.Effect) *effect {
	e := &effect{}
	e.tool = tools.New(tools.Tool{Name: name, Title: name, Description: "Counts.", Effect: kind},
		func(_ context.Context, _ struct{}, in tools.Input, out tools.Output) error {
			e.calls.Add(1)
			_, err := fmt.Fprintln(out, in.Owner)
			return err
		})
	return e
}

func (b *bench) write(name, text string) {
	b.t.Helper()
	expect.Must(b.t, os.WriteFile(filepath.Join(b.root, name), []byte(text), 0o600))
}

// TestFunnelPrintsAll compares what commands read by tools with the files, far beyond a page and a receipt.
func TestFunnelPrintsAll(t *testing.T) {
	t.Parallel()
	b := newFunnelBench(t, shell.Options{})
	var text, records strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&text, "line %d of a text\n", i)
		fmt.Fprintf(&records, `{"n":%d}`+"\n", i)
	}
	b.write("text", text.String())
	b.write("all.ndjson", records.String())
	b.write("wide.json", `{"a":"`+strings.Repeat("wide ", 40_000)+`"}`)
	for _, c := range []struct{ command, want string }{
		{"funnel read text | cmp - text && echo same", "same\n"},
		{"funnel slice text lines=1- | cmp - text && echo same", "same\n"},
		{"funnel jq source=all.ndjson filter=.n | cmp - <(seq 0 19999) && echo same", "same\n"},
		{"funnel jq source=all.ndjson filter='map(.n)|add' slurp=true", "199990000\n"},
		{"funnel jq source=wide.json filter='.a|length'", "200000\n"},
		{"funnel jq source=wide.json filter=.a raw=true | wc -c", "200001\n"},
		{"funnel grep source=text pattern='9 of' | wc -l; grep -c '9 of' text", "2000\n2000\n"},
		{"funnel search pattern='9 of' | wc -l", "2000\n"},
		{"funnel search 'line 7 of' | head -c 60", `{"file":"text","line":8,"text":"line 7 of a text"}` + "\n"},
		{"funnel find | wc -l", "3\n"}, {"funnel find path=nope; echo $?", "1\n"},
		{"funnel read nope; echo $?", "nope: no such file"},
		{"funnel read nope 2>/dev/null; echo $?", "1\n"},
		{"funnel jq; echo $?", "missing argument"},
		{"funnel jq source=text nofilter; echo $?", "2\n"},
		{"funnel nothing; echo $?", `no tool "nothing"`},
		{"funnel run ls; echo $?", "write the command itself"},
		{"funnel", "slice      Show a part"},
		{"funnel jq --help", "filter (required)"},
		{"funnel search --receipt line | head -1", "LARGE OUTPUT DETECTED"},
		{"yes | funnel jq source=all.ndjson filter=.n | head -1", "0\n"},
	} {
		if got, _ := b.run(c.command); !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.command, got, c.want)
		}
	}
	b.write("one", strings.Repeat("x", 2<<20))
	if text, _ := b.run("funnel slice one lines=1; echo $?"); !strings.Contains(text, "too long for this") {
		t.Errorf("a cut line: %.300q", text)
	}
}

// TestFunnelFansOut makes 50 calls in one command, 40 times at full size: right, and few tokens. A signal that
// interrupts the server while it connects a process once made one call of 150 fail.
func TestFunnelFansOut(t *testing.T) {
	t.Parallel()
	b := newFunnelBench(t, shell.Options{})
	for i := range 50 {
		b.write(fmt.Sprintf("%d.json", i), fmt.Sprintf(`{"n":%d,"pad":%q}`, i, strings.Repeat("x ", 500)))
	}
	for range promise.Size(1, 40) {
		b.fansOut(t)
	}
}

func (b *bench) fansOut(t *testing.T) {
	text, a := b.run(`seq 0 49 | xargs -P 20 -I{} funnel jq source={}.json filter=.n | sort -n | paste -sd' '; time :`)
	var want strings.Builder
	for i := range 50 {
		fmt.Fprintf(&want, "%d ", i)
	}
	if !strings.HasPrefix(text, strings.TrimSpace(want.String())+"\n") || a.Receipts[0].ShownTokens > 500 {
		t.Errorf("%d tokens: %s", a.Receipts[0].ShownTokens, text)
	}
}

// TestFunnelEndsWithItsCall cancels a run whose command waits for a tool; lets one answer before the tool has ended, and
// continues it; and has a command give up a tool.
func TestFunnelEndsWithItsCall(t *testing.T) {
	t.Parallel()
	var began, ended atomic.Int64
	let := make(chan struct{})
	slow := tools.New(tools.Tool{Name: "slow", Title: "slow", Description: "Waits."},
		func(ctx context.Context, _ struct{}, _ tools.Input, out tools.Output) error {
			began.Add(1)
			defer ended.Add(1)
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-let:
				_, err := io.WriteString(out, "slow is done\n")
				return err
			}
		})
	patient := newFunnelBench(t, shell.Options{}, slow)
	b := newFunnelBench(t, shell.Options{Slice: 2 * time.Second}, slow) // in which a busy machine begins the call
	wait := func(n int64, of *atomic.Int64) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); of.Load() < n; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d, want %d", of.Load(), n)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		wait(1, &began)
		cancel()
	}()
	if _, answer := patient.call(ctx, map[string]any{"command": "funnel slow"}); len(answer.Blocks) > 0 {
		t.Errorf("a cancelled call answered: %+v", answer.Blocks)
	}
	wait(1, &ended)
	if text, _ := patient.run("timeout 2 funnel slow; echo given up"); !strings.Contains(text, "given up") {
		t.Error(text)
	}
	wait(2, &ended)

	text, _ := b.run("funnel slow; echo code $?")
	_, handle, running := strings.Cut(text, "run after=")
	if !running {
		t.Fatal(text)
	}
	wait(3, &ended) // it ended with the call, which has answered
	close(let)
	all := ""
	for tries := 0; tries < 100 && !strings.Contains(text, "has ended"); tries++ {
		text, _ = b.call(t.Context(), map[string]any{"after": strings.Fields(handle)[0]})
		all += text
	}
	if !strings.Contains(all, "slow is done\n") || !strings.Contains(all, "code 0\n") {
		t.Errorf("continued: %s", all)
	}
}

// TestFunnelIsBounded has a tool write more than a command may, and more of them wait than run at once.
func TestFunnelIsBounded(t *testing.T) {
	t.Parallel()
	var running, most atomic.Int64
	busy := tools.New(tools.Tool{Name: "busy", Title: "busy", Description: "Waits."},
		func(context.Context, struct{}, tools.Input, tools.Output) error {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			time.Sleep(10 * time.Millisecond)
			return nil
		})
	b := newFunnelBench(t, shell.Options{Output: 1 << 20}, busy)
	b.write("small", strings.Repeat("0123456789\n", 40_000))
	b.write("large", strings.Repeat("0123456789\n", 100_000))
	text, _ := b.run("funnel read large | wc -c; funnel read large path=large 2>&1; funnel read small | wc -c")
	if !strings.Contains(text, "over 1 MiB") || !strings.Contains(text, "440000\n") {
		t.Error(text)
	}
	b.run("seq 40 | xargs -P 40 -I{} funnel busy")
	if n := most.Load(); n < 2 || n > 8 {
		t.Errorf("%d calls ran at once", n)
	}
}

// TestS36CommandsCallAsTheirCaller attempts to reach tools and observations of another identity, a tool that may change
// something, and the connection of a command from elsewhere: from this process, another one of the user, a command that
// has no funnel, one of another caller, and processes that a command leaves behind. The controls are the same attempts
// where they are allowed.
func TestS36CommandsCallAsTheirCaller(t *testing.T) {
	touch, mark := newEffect("touch", tools.Writes), newEffect("mark", tools.ReadOnly)
	dir := expect.Value(filepath.EvalSymlinks(filepath.Dir(expect.Value(os.Executable())(t))))(t)
	b := newFunnelBench(t, shell.Options{AllowRead: []string{dir}}, touch.tool, mark.tool)
	b.owner = "alice"
	if text, _ := b.run("true"); strings.Contains(text, "cannot be contained") {
		t.Skip(text)
	}
	secret, kept := b.call(t.Context(), map[string]any{"command": "seq -f 'secret of alice %.0f' 5000"})
	id := kept.Receipts[0].ObservationID
	if id == "" {
		t.Fatal(secret)
	}
	as := func(owner, command string) string {
		c := *b // calls of several owners run concurrently
		c.owner = owner
		text, _ := c.run(command)
		return text
	}
	outside := func() string {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "mark")
		cmd.Args[0] = "funnel"
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	withoutFunnel := *b
	withoutFunnel.others = nil
	program := filepath.Join(dir, filepath.Base(os.Args[0]))
	var failures atomic.Int64
	cases := 0
	failed := func(what, text string) {
		failures.Add(1)
		t.Errorf("%s: %.300s", what, text)
	}
	rounds := promise.Size(4, 100)
	for range rounds {
		before := mark.calls.Load()
		// While a command of alice is connected, others try.
		var wg sync.WaitGroup
		wg.Go(func() { as("alice", "for i in 1 2 3; do funnel find >/dev/null; done") })
		wg.Go(func() {
			if conn, err := sandbox.Dial(); err == nil {
				_ = conn.Close()
				failed("this process has connected", "")
			}
		})
		wg.Go(func() {
			if out := outside(); !strings.Contains(out, "no server answers here") {
				failed("another process", out)
			}
		})
		wg.Go(func() {
			if text, _ := withoutFunnel.run("exec -a funnel " + program + " mark"); !strings.Contains(text, "no server answers here") {
				failed("a command without a funnel", text)
			}
		})
		wg.Wait()
		if mark.calls.Load() != before {
			failed("mark was called", "")
		}
		// bob reads what alice has kept, by each tool, and calls what may change something.
		text := as("bob", strings.ReplaceAll(`funnel read path=obs:ID; funnel slice obs:ID lines=1; funnel grep source=obs:ID pattern=alice
			funnel jq source=obs:ID filter=.text; funnel search pattern=alice path=obs:ID; funnel find path=obs:; funnel run ls
			funnel touch; funnel touch '{}'; funnel --receipt touch; for i in 1 2 3; do funnel mark; done | sort -u`, "ID", id))
		if strings.Contains(text, "secret of") || strings.Contains(text, "alice\n") || !strings.Contains(text, "bob\n") {
			failed("bob", text)
		}
		if touch.calls.Load() != 0 {
			failed("touch was called", text)
		}
		// What a command leaves behind calls nothing.
		as("bob", "(setsid sh -c 'while :; do funnel mark; done' >/dev/null 2>&1 &) ; funnel mark")
		before = mark.calls.Load()
		time.Sleep(5 * time.Millisecond)
		if mark.calls.Load() != before {
			failed("a process outlived its command", "")
		}
		cases += 3 + 10 + 1
	}

	control := 0
	if strings.Contains(as("alice", "funnel read path=obs:"+id), "secret of alice 5000") {
		control++
	}
	if strings.Contains(as("bob", "funnel mark"), "bob") {
		control++
	}
	allowed := newFunnelBench(t, shell.Options{Tools: []string{"touch"}}, touch.tool)
	if allowed.run("funnel touch"); touch.calls.Load() == 1 {
		control++
	}
	promise.Keptf(t, promise.Proof{Promise: "S36", Cases: cases, Failures: int(failures.Load()), Control: control},
		"%d rounds of 14 attempts; control: the owner, a tool that only reads, a tool that the operator allows", rounds)
}

// TestFunnelStaysUsable has processes of a command connect, say nothing or nonsense, and end: later calls are answered.
func TestFunnelStaysUsable(t *testing.T) {
	t.Parallel()
	needs(t, "python3")
	b := newFunnelBench(t, shell.Options{})
	text, _ := b.run(`python3 - <<'E'
import os, socket
def dial(): return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0x66756e6e)
open = [dial() for _ in range(40)]
for i, text in enumerate([b"\n", b"{}\n", b"[1]\n", b"\xff\n", b"x" * 2000000, b'["find"', b'["read","x"]\n']):
    try:
        open[i].send(text)
    except OSError: pass
try:
    socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0)
    print("a unix socket was opened")
except PermissionError: print("refused")
E
funnel find 2>&1; echo code $?`)
	if !strings.Contains(text, "refused\n") || !strings.HasSuffix(strings.TrimSpace(text), "code 0") {
		t.Error(text)
	}
}

// TestFunnelKeepsTheRecord looks at what is traced of a command's calls.
func TestFunnelKeepsTheRecord(t *testing.T) {
	t.Parallel()
	b := newFunnelBench(t, shell.Options{})
	b.write("a.json", `{"n":1}`)
	log := expect.Value(trace.Open(t.TempDir()))(t)
	b.f = expect.Value(funnel.New(funnel.Options{Store: b.store, Trace: log}))(t)
	b.run("funnel jq source=a.json filter=.n; funnel read nope")
	var calls []trace.Call
	for c, err := range log.Read(time.Time{}, new(int)) {
		expect.Must(t, err)
		calls = append(calls, c)
	}
	if len(calls) != 3 || calls[0].Via != "command" || calls[0].Tool != "jq" || calls[0].SeenBytes != 2 ||
		calls[1].Status != "failure" || calls[2].Tool != "run" {
		t.Errorf("%+v", calls)
	}
}
