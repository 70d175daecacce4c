package shell_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tools/shell"
)

// TestSmallOutputs compares what is shown of small outputs, and their status.
func TestSmallOutputs(t *testing.T) {
	t.Parallel()
	b := newBench(t, shell.Options{})
	for _, c := range corpus.Rows[tried](t, "small.ndjson") {
		t.Run(c.Name, func(t *testing.T) {
			b.t = t
			text, answer := b.run(c.Command)
			if c.Want == "stderr" {
				c.Want = "the command does not parse: line 1, column 1"
			}
			if !strings.Contains(text, c.Want) || answer.Failed || answer.Receipts[0].Status != c.Status {
				t.Errorf(
					"%q, failed %v, %s; want %q, %s",
					text,
					answer.Failed,
					answer.Receipts[0].Status,
					c.Want,
					c.Status,
				)
			}
		})
	}
}

// TestDefaultShell checks that bash runs a command where it is installed, and that the description names the shell. The
// control is a plain sh, which takes `&>` for `&` and a redirection: the message is printed although the test failed.
func TestDefaultShell(t *testing.T) {
	t.Parallel()
	needs(t, "bash")
	const command = `false &> /tmp/out && echo "tests passed"`
	b := newBench(t, shell.Options{})
	text, answer := b.run(command)
	if strings.Contains(text, "tests passed") || answer.Receipts[0].Status != "failure" {
		t.Errorf("%q, %s", text, answer.Receipts[0].Status)
	}
	if want := "Run bash, "; !strings.HasPrefix(b.tool.Description, want) {
		t.Errorf("%q, want %q", b.tool.Description, want)
	}
	if text, answer := b.run("false | true"); answer.Receipts[0].Status != "success" {
		t.Errorf("pipefail is set: %q", text)
	}
	for _, c := range []struct{ command, want string }{
		{`[[ abc == a* && 10 -gt 9 ]] && echo yes`, "yes\n"},
		{`a=(one "two three" four); echo "${#a[@]}: ${a[1]}"`, "3: two three\n"},
		{`diff <(seq 3) <(seq 4)`, "3a4\n> 4\n"},
		{`echo {1..3}`, "1 2 3\n"},
		{`set -o pipefail; false | true; echo $?`, "1\n"},
		{`x=abcabc; echo "${x//b/-}"; wc -c <<<"$x"`, "a-ca-c\n7\n"},
		{`seq 2 |& cat`, "1\n2\n"},
		{`declare -A m=([k]=v); echo "${m[k]}"`, "v\n"},
	} {
		if text, _ := b.run(c.command); !strings.HasPrefix(text, c.want) {
			t.Errorf("%s: %q, want %q", c.command, text, c.want)
		}
	}
	real := expect.Value(filepath.EvalSymlinks("/bin/sh"))(t)
	b = newBench(t, shell.Options{Shell: "/bin/sh"})
	if want := "Run " + filepath.Base(real) + ", "; !strings.HasPrefix(b.tool.Description, want) {
		t.Errorf("%q, want %q", b.tool.Description, want)
	}
	if text, _ := b.run(command); filepath.Base(real) == "dash" && !strings.Contains(text, "tests passed") {
		t.Errorf("control: %q", text)
	}
}

// TestBadArguments compares the errors of calls that start nothing.
func TestBadArguments(t *testing.T) {
	t.Parallel()
	b := newBench(t, shell.Options{AllowProgram: []string{"echo", "ls"}})
	expect.Must(t, os.WriteFile(filepath.Join(b.root, "file"), nil, 0o600))
	for _, c := range []struct {
		name string
		args map[string]any
		want string
	}{
		{"nothing", map[string]any{}, "command is empty"},
		{"blank", map[string]any{"command": " \n"}, "command is empty"},
		{"NUL", map[string]any{"command": "echo \x00"}, "NUL"},
		{"too long", map[string]any{"command": strings.Repeat("x", 2<<20)}, "2097152 bytes"},
		{"negative time", map[string]any{"command": "ls", "timeout_s": -1}, "timeout_s"},
		{"long time", map[string]any{"command": "ls", "timeout_s": 1e9}, "timeout_s"},
		{"outside", map[string]any{"command": "ls", "cwd": "/etc"}, "outside the root"},
		{"missing", map[string]any{"command": "ls", "cwd": "no/such"}, "no/such"},
		{"a file", map[string]any{"command": "ls", "cwd": "file"}, "name a directory"},
		{"scratch", map[string]any{"command": "ls", "cwd": "scratch:/tmp"}, "begin the command with cd /tmp"},
		{"unknown handle", map[string]any{"after": "run:0123456789ab"}, "no command is running"},
		{"both", map[string]any{"after": "run:0123456789ab", "command": "ls"}, "leave out command"},
		{"program", map[string]any{"command": "echo x; ls | rm -rf /tmp/x"}, "rm is not among the programs"},
		{"observation", map[string]any{"command": "ls $OBS/0123456789ab"}, "no such observation"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b.t = t
			text, answer := b.call(t.Context(), c.args)
			if !answer.Failed || !strings.Contains(text, c.want) || len(text) > 600 {
				t.Errorf("%q; want an error with %q", text, c.want)
			}
		})
	}
}

var handleName = regexp.MustCompile(`run:[0-9a-z]{12}`)

// follow runs a command, continues it until it ends, and returns all answers.
func (b *bench) follow(command string) (texts []string, last funnel.Answer) {
	b.t.Helper()
	text, answer := b.run(command)
	for texts = append(texts, text); answer.Receipts[0].Metadata["running"] == 1; texts = append(texts, text) {
		name := handleName.FindString(text)
		if name == "" || len(texts) > 30 {
			b.t.Fatalf("call %d: no handle: %s", len(texts), text)
		}
		time.Sleep(100 * time.Millisecond) // output that comes between two calls is not lost
		text, answer = b.call(b.t.Context(), map[string]any{"after": name})
	}
	return texts, answer
}

// TestContinues follows a command over several calls. Each line must be shown once, and what is stored in the end must
// be the whole output, without the parts that earlier calls stored.
func TestContinues(t *testing.T) {
	t.Parallel()
	b := newBench(t, shell.Options{Slice: 300 * time.Millisecond})
	texts, answer := b.follow(
		"for i in 1 2 3 4 5 6; do echo text $i; sleep .1; echo error $i >&2; sleep .1; done; exit 2",
	)
	if len(texts) < 3 || answer.Receipts[0].Metadata["exit_code"] != 2 {
		t.Fatalf("%d calls: %s", len(texts), texts)
	}
	all, want := strings.Join(texts, ""), ""
	for i := 1; i <= 6; i++ {
		for _, line := range []string{fmt.Sprintf("text %d\n", i), fmt.Sprintf("stderr| error %d\n", i)} {
			if strings.Count(all, line) != 1 || strings.Contains(all, "stderr| text") {
				t.Errorf("%q is not shown once: %s", line, all)
			}
			want += strings.TrimPrefix(line, "stderr| ")
		}
	}
	o, got := b.stored(answer)
	if got != want || len(o.Stats.Stderr) != 6 {
		t.Errorf("%d ranges; stored: %s", len(o.Stats.Stderr), got)
	}
	for i, text := range texts[1:] {
		replaced := regexp.MustCompile(`SAVED as obs:\w+`).FindString(texts[i])
		expect.Has(t, text, "which replaces "+strings.TrimPrefix(replaced, "SAVED as "), "answer %d", i+2)
		expect.Has(t, text, "\ntotal: ", "answer %d", i+2)
	}
	if list, err := b.store.List(b.owner, false); err != nil || len(list) != 1 {
		t.Errorf("%d observations are left, %v", len(list), err)
	}
	handle, last := handleName.FindString(texts[0]), texts[len(texts)-1]
	expect.Has(t, last, handle+" has ended with exit code 2", "the last answer")
	ended := handle + " has ended with exit code 2: its output is obs:" + string(o.ID)
	for _, argument := range []string{"after", "stop"} {
		if text, answer := b.call(t.Context(), map[string]any{argument: handle}); !answer.Failed ||
			!strings.Contains(text, ended) {
			t.Errorf("%s of a command that has ended: %s", argument, text)
		}
	}
	part := regexp.MustCompile(`SAVED as obs:(\w+)`).FindStringSubmatch(texts[0])[1]
	expect.Fails(t, expect.Err(b.store.Open(b.owner, observations.ID(part))), "obs:"+part+" was replaced by obs:",
		"a part that was replaced")
}

// TestStop ends a command on request, and keeps what it wrote.
func TestStop(t *testing.T) {
	t.Parallel()
	b := newBench(t, shell.Options{Slice: 200 * time.Millisecond})
	text, _ := b.run("echo begun; sleep 100; echo never")
	handle := handleName.FindString(text)
	b.owner = "other"
	if text, answer := b.call(t.Context(), map[string]any{"stop": handle}); !answer.Failed {
		t.Errorf("another client stopped it: %s", text)
	}
	b.owner = observations.Local
	text, answer := b.call(t.Context(), map[string]any{"stop": handle})
	expect.Has(t, text, "ended by stop after ", "stop")
	expect.Has(t, text, handle+" has ended with exit code", "stop")
	if _, got := b.stored(answer); got != "begun\n" {
		t.Errorf("stored: %q", got)
	}
	for _, more := range []string{"command", "after", "cwd"} {
		if text, answer := b.call(t.Context(), map[string]any{"stop": handle, more: "x"}); !answer.Failed ||
			!strings.Contains(text, "stop ends a command: leave out") {
			t.Errorf("with %s: %s", more, text)
		}
	}
}

// TestContinuesLong checks the receipts of a command that writes much in each call, and that a pinned part stays. The
// command waits for files, so that no answer depends on how fast the machine is.
func TestContinuesLong(t *testing.T) {
	t.Parallel()
	b := newBench(t, shell.Options{Slice: 500 * time.Millisecond})
	text, answer := b.run(`last=$(seq 20001 40000); seq 1 20000; until test -e middle; do sleep .02; done
		printf begun; until test -e end; do sleep .02; done; printf ' ended\n%s\nthe end\n' "$last"`)
	part := observations.ID(answer.Receipts[0].ObservationID)
	expect.Must(t, b.store.Pin(b.owner, part, true))
	all := text
	files := []string{"", "middle", "end"}
	for i := 0; answer.Receipts[0].Metadata["running"] == 1; i++ {
		if i > 0 && i < len(files) {
			expect.Must(t, os.WriteFile(filepath.Join(b.root, files[i]), nil, 0o600))
		}
		text, answer = b.call(t.Context(), map[string]any{"after": handleName.FindString(text)})
		all += "\n" + text
	}
	if !strings.Contains(all, "--- new: 20001-200") || !strings.Contains(all, " of 4000") ||
		!strings.Contains(all, "begun ended\n20001\n") || !strings.Contains(all, "\nthe end") ||
		strings.Count(all, "\n1\n2\n") != 1 || strings.Count(all, "--- head: 1-") != 1 {
		t.Errorf("all answers: %s", all)
	}
	if _, got := b.stored(answer); strings.Count(got, "\n") != 40002 || !strings.HasSuffix(got, "40000\nthe end\n") {
		t.Errorf("%d lines stored", strings.Count(got, "\n"))
	}
	expect.OK(t, expect.Err(b.store.Stat(b.owner, part)), "the pinned part")
	if texts, _ := b.follow("echo once; sleep 1.5"); len(texts) < 3 || !strings.HasSuffix(texts[1], "; nothing new\n"+
		"note: "+strings.SplitN(texts[1], "note: ", 2)[1]) || strings.Count(strings.Join(texts, ""), "once") != 1 {
		t.Errorf("a silent command: %s", texts)
	}
}

// TestForeignHandle checks that a handle of another owner reads like an unknown one.
func TestForeignHandle(t *testing.T) {
	t.Parallel()
	b := newBench(t, shell.Options{Slice: 100 * time.Millisecond})
	text, _ := b.run("sleep 30")
	name := regexp.MustCompile(`run:[0-9a-z]{12}`).FindString(text)
	b.owner = "other"
	theirs, answer := b.call(t.Context(), map[string]any{"after": name})
	unknown, _ := b.call(t.Context(), map[string]any{"after": "run:0123456789ab"})
	if name == "" || !answer.Failed ||
		strings.ReplaceAll(theirs, name, "") != strings.ReplaceAll(unknown, "run:0123456789ab", "") {
		t.Errorf("%q and %q", theirs, unknown)
	}
}

// TestTimeout ends a command, and keeps what it wrote.
func TestTimeout(t *testing.T) {
	t.Parallel()
	b := newBench(t, shell.Options{})
	text, answer := b.call(t.Context(), map[string]any{"command": "echo before; sleep 100", "timeout_s": 1})
	if !answer.Failed || !strings.Contains(text, "after 1s (timeout_s): give more, up to 600") ||
		!strings.Contains(text, "before") {
		t.Error(text)
	}
}

// TestCancel ends a command when its call is cancelled.
func TestCancel(t *testing.T) {
	t.Parallel()
	b := newBench(t, shell.Options{AllowWrite: everywhere})
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(200*time.Millisecond, cancel)
	b.call(ctx, map[string]any{"command": "sleep 1; touch late"})
	time.Sleep(1200 * time.Millisecond)
	expect.Fails(t, expect.Err(os.Stat(filepath.Join(b.root, "late"))), "", "the command went on")
}

// TestCancelBetweenCalls cancels the call that asks for output spooled since the last one: the next call has all of it.
func TestCancelBetweenCalls(t *testing.T) {
	t.Parallel()
	b := newBench(t, shell.Options{Slice: 300 * time.Millisecond})
	text, _ := b.run("seq 3; sleep 1; seq 4 100000; sleep 2; echo end")
	handle := regexp.MustCompile(`run:\w+`).FindString(text)
	time.Sleep(1300 * time.Millisecond)
	cancelled, cancel := context.WithCancel(t.Context())
	b.reads = cancel
	text, _ = b.call(cancelled, map[string]any{"after": handle})
	if cancelled.Err() == nil {
		t.Fatalf("the output of the first call was not read: %s", text)
	}
	b.reads = nil
	time.Sleep(2 * time.Second)
	text, answer := b.call(t.Context(), map[string]any{"after": handle})
	var want strings.Builder
	for i := range 100000 {
		fmt.Fprintln(&want, i+1)
	}
	want.WriteString("end\n")
	if _, got := b.stored(answer); got != want.String() {
		t.Errorf("%d of %d bytes: %s", len(got), want.Len(), text)
	}
}

// TestLongOutput checks that the store has every byte of an output, and that output beyond the limit ends the command.
func TestLongOutput(t *testing.T) {
	t.Parallel()
	b := newBench(t, shell.Options{Output: 1 << 20})
	text, answer := b.run("seq 100000")
	var want strings.Builder
	for i := 1; i <= 100000; i++ {
		fmt.Fprintln(&want, i)
	}
	if o, got := b.stored(answer); got != want.String() || o.Name != "seq" || !strings.Contains(text, "100000 lines") {
		t.Errorf("%d of %d bytes stored: %s", len(got), want.Len(), text)
	}
	text, answer = b.run("yes")
	if o, _ := b.stored(answer); o.Bytes != 1<<20 || !strings.Contains(text, "over 1 MiB of output") {
		t.Errorf("%d bytes: %s", o.Bytes, text)
	}
}

// TestCutOutput cuts outputs at the limit: the receipt says that they are kept in part, how many bytes are kept and how
// many were seen, and so do the readers of the observation. The control is an output of just the limit.
func TestCutOutput(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	for _, slice := range []time.Duration{0, 300 * time.Millisecond} { // in one call, and over several
		b := newBench(t, shell.Options{Output: limit, Slice: slice})
		for _, command := range []string{"yes | head -c 3000000", "sleep 1; yes", "sleep 1; head -c 1048577 /dev/zero"} {
			texts, answer := b.follow(command)
			text := texts[len(texts)-1]
			r := answer.Receipts[0]
			o, _ := b.stored(answer)
			want := fmt.Sprintf("%d of %d bytes seen are kept", limit, limit+o.Dropped)
			if !strings.Contains(text, " in part as obs:"+string(o.ID)+" (first 1048576 bytes)") ||
				!strings.Contains(text, want) || o.Bytes != limit || o.Dropped <= 0 || !r.Truncated || r.Complete {
				t.Errorf("%s: %d kept, %d dropped: %s", command, o.Bytes, o.Dropped, text)
			}
			if text, _ = b.run("true $OBS/" + string(o.ID)); strings.Contains(text, "no such") {
				t.Error(text)
			}
		}
		texts, answer := b.follow("sleep 1; yes | head -c 1048576")
		if o, _ := b.stored(answer); o.Dropped != 0 || strings.Contains(texts[len(texts)-1], "in part") {
			t.Errorf("an output of the limit: %s", texts[len(texts)-1])
		}
	}
}

// TestStandardErrorRanges checks that what is stored has no marks, and that the ranges of standard error are right.
func TestStandardErrorRanges(t *testing.T) {
	t.Parallel()
	b := newBench(t, shell.Options{})
	_, answer := b.run(
		`for i in $(seq 10); do echo "out $i"; sleep .1; echo "err $i" >&2; sleep .1; done; seq 1000`,
	)
	o, text := b.stored(answer)
	var out, err strings.Builder
	at := int64(0)
	for _, r := range o.Stats.Stderr {
		out.WriteString(text[at:r[0]])
		err.WriteString(text[r[0]:r[1]])
		at = r[1]
	}
	out.WriteString(text[at:])
	var wantOut, wantErr strings.Builder
	for i := 1; i <= 10; i++ {
		fmt.Fprintf(&wantOut, "out %d\n", i)
		fmt.Fprintf(&wantErr, "err %d\n", i)
	}
	for i := 1; i <= 1000; i++ {
		fmt.Fprintln(&wantOut, i)
	}
	if out.String() != wantOut.String() || err.String() != wantErr.String() || len(o.Stats.Stderr) != 10 {
		t.Errorf("%d ranges; %q", len(o.Stats.Stderr), err.String())
	}
}

// TestObservationReference runs a command on a stored output, and checks that others are not visible.
func TestObservationReference(t *testing.T) {
	t.Parallel()
	b := newBench(t, shell.Options{})
	_, first := b.run("seq 5000")
	_, other := b.run("seq 6000")
	id, hidden := first.Receipts[0].ObservationID, other.Receipts[0].ObservationID
	text, _ := b.run("wc -l < $OBS/" + id + "; ls $OBS; echo x > $OBS/" + id)
	expect.Contains(t, text, "5000\n", "Read-only file system")
	expect.Lacks(t, text, hidden)
}

// TestDeltas compares what is said of a command that ran before.
func TestDeltas(t *testing.T) {
	t.Parallel()
	b := newBench(t, shell.Options{AllowWrite: everywhere})
	const command = "cat list; seq 1000; echo took 0.$(date +%N) s"
	for _, c := range []struct{ list, want string }{
		{"a\nb\n", ""},
		{"a\nb\n", ": only times or addresses differ, in 1 line: -took 0."},
		{"a\nc\n", "1 line added, 1 removed, times and addresses aside: -b | +c"},
	} {
		expect.Must(t, os.WriteFile(filepath.Join(b.root, "list"), []byte(c.list), 0o600))
		text, _ := b.run(command)
		if !strings.Contains(text, c.want) || c.want == "" && strings.Contains(text, "since obs:") ||
			!strings.Contains(text, "1003 lines") {
			t.Errorf("want %q: %s", c.want, text)
		}
	}
}

// TestDeltaNames checks what is said of outputs that changed in a few lines, of unchanged ones, which are one line, and
// of one whose observation was removed, which is not named.
func TestDeltaNames(t *testing.T) {
	t.Parallel()
	b := newBench(t, shell.Options{AllowWrite: everywhere})
	list := func(text string) {
		expect.Must(t, os.WriteFile(filepath.Join(b.root, "list"), []byte(text), 0o600))
	}
	run := func() (string, string) {
		text, answer := b.run("cat list; seq 1000; exit 3")
		return text, answer.Receipts[0].ObservationID
	}
	list("a\n++b\n")
	text, first := run()
	expect.Lacks(t, text, "since")
	text, second := run()
	want := "LARGE OUTPUT DETECTED: kept whole as obs:" + second + "; total: 1002 lines, "
	if !strings.HasPrefix(text, want) || strings.Count(strings.TrimSpace(text), "\n") > 0 ||
		!strings.Contains(text, "; exit code 3; ") ||
		!strings.HasSuffix(text, "; note: unchanged since obs:"+first+"\n") {
		t.Errorf("unchanged: %q", text)
	}
	list("a\n++c\n--d\ne\nf\ng\n")
	text, third := run()
	want = "since obs:" + second + ": 5 lines added, 1 removed, times and addresses aside: -++b | +++c | +--d | … and 3 more\n"
	if !strings.Contains(text, want) {
		t.Errorf("no %q in %s", want, text)
	}
	expect.Must(t, b.store.Remove(b.owner, observations.ID(third)))
	if text, _ = run(); strings.Contains(text, third) || !strings.Contains(text, "unchanged since the last run") ||
		!strings.Contains(text, "--- head: ") {
		t.Errorf("the last output was removed: %s", text)
	}
	list("b\n")
	_, last := run()
	expect.Must(t, b.store.Remove(b.owner, observations.ID(last)))
	list("c\n")
	if text, _ = run(); strings.Contains(text, "since") {
		t.Errorf("the last output was removed: %s", text)
	}
}

// TestDeltaOfTests checks what is said of the failed tests of two runs, and that a run that broke off fixes nothing.
func TestDeltaOfTests(t *testing.T) {
	t.Parallel()
	b := newBench(t, shell.Options{AllowWrite: everywhere})
	fails := func(names ...string) (text string) {
		for _, name := range names {
			text += "--- FAIL: " + name + " (0.01s)\n    a_test.go:3: no\n"
		}
		return text + "FAIL\nFAIL\texample.com/x\t0.1s\n"
	}
	const broke = "# example.com/x\n./a.go:1:1: no\nFAIL\texample.com/x [build failed]\n"
	for i, c := range []struct{ output, exit, want string }{
		{fails("TestA", "TestB", "TestC"), "1", ""},
		{fails("TestC", "TestD"), "1", ": fixed 2 (TestA, TestB), new 1 (TestD), still failing 1\n"},
		{fails("TestD", "TestC"), "1", " added, "},
		{broke, "1", ": failed before and have no result now 2 (TestC, TestD), new 0\n"},
		{fails("TestE"), "1", ": fixed 0, new, or not run before, 1 (TestE)\n"},
		{"bash: go: command not found\n", "127", "have no result now 1 (TestE), new 0\n"},
		{fails("TestE"), "1", "or not run before, 1 (TestE)\n"},
		{"ok  \texample.com/x\t0.1s\n", "0", ": fixed 1 (TestE), new 0\n"},
		{"ok  \texample.com/x\t0.2s\n", "0", "only times or addresses differ, in 1 line: -ok  \texample.com/x\t0.1s | +ok"},
	} {
		text := c.output + strings.Repeat("x\n", 300)
		expect.Must(t, os.WriteFile(filepath.Join(b.root, "out"), []byte(text+"exit "+c.exit+"\n"), 0o600))
		text, _ = b.run("cat out; exit $(tail -1 out | cut -c6-)")
		if c.want == "" && strings.Contains(text, "since") || !strings.Contains(text, c.want) {
			t.Errorf("run %d: no %q in %s", i, c.want, text)
		}
	}
}
