package savings

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/session/transcript"
	"github.com/mcp-funnel/mcp-funnel/session/transcript/transcripttest"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
)

const (
	sessionsCommand = "go test ./conformance/savings -run TestLongSessions -update"
	sessionBudget   = 100_000 // tokens that the client may send
	sessionName     = "session.jsonl"
)

// TestLongSessions compacts a session of a client and asks for what stood in its results: the answer is in the
// compacted session, or behind one of its pointers.
func TestLongSessions(t *testing.T) {
	f := &fixture{t: t, dir: t.TempDir(), random: newRandom(), outputs: map[string]string{}}
	results := 120
	s := startServer(t, f.dir)
	counter := tokens.New(tokens.O200k)
	session := f.session(results)
	f.write(sessionName, string(session))
	compacted := filepath.Join(f.dir, "compacted.jsonl")
	cmd := exec.Command(s.binary, "compact", "--store", s.store, "--budget", fmt.Sprint(sessionBudget),
		filepath.Join(f.dir, sessionName), "-o", compacted)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(compacted)
	expect.Must(t, err)
	whole, sent := sentTexts(t, session), sentTexts(t, text)
	cut := oldestGone(whole, counter)
	of := output{countAll(whole, counter), strings.Join(cut, "\n"), countAll(cut, counter)}
	shown := strings.Join(sent, "\n")
	for i := range sent {
		sent[i] = shownID.ReplaceAllString(sent[i], "obs:k3v9q2m7x4ab") // tokens of IDs differ
	}
	var rows []row
	for _, q := range f.sessionQuestions(results, shown) {
		r := row{question: q, calls: len(q.calls), tokens: countAll(sent, counter), output: of}
		answer := shown
		if len(q.calls) > 0 {
			answer = f.run(s, q, func(text string) { r.tokens += counter.Count(text) }, shown)
		}
		if !holds(answer, q.want) {
			t.Errorf("%s: no %v in the answer:\n%.2500s", q.text, q.want, answer)
		}
		r.inCut = holds(r.cut, q.want)
		if r.tokens > sessionBudget || r.tokens > r.output.tokens || r.inCut && r.tokens > r.kept {
			t.Errorf(
				"%s: %d tokens sent, whole %d, the client's own cut %d",
				q.text,
				r.tokens,
				r.output.tokens,
				r.kept,
			)
		}
		rows = append(rows, r)
	}
	if inCut := rows[len(rows)-1].inCut; !inCut || rows[0].inCut {
		t.Error("the client's own cut has the first answer, or not the last one")
	}
	if !t.Failed() {
		keep(t, sessionsCommand, questions(rows))
	}
}

// session returns a session of Claude Code with so many runs of tests, each of some 4,000 tokens.
func (f *fixture) session(results int) []byte {
	var calls []transcripttest.Call
	for i := range results {
		var b strings.Builder
		for n := range 120 {
			name := fmt.Sprintf(
				"Test%s%s%d",
				f.pick("Read", "Write", "Merge"),
				f.pick("Small", "Large", "Empty"),
				n,
			)
			fmt.Fprintf(&b, "=== RUN   %s\n", name)
			if n == 40 {
				fmt.Fprintf(
					&b,
					"    store_test.go:%d: got %d, want %d\n--- FAIL: %s (0.01s)\n",
					100+n,
					700+i,
					200+i,
					name,
				)
				continue
			}
			fmt.Fprintf(&b, "--- PASS: %s (0.%02ds)\n", name, f.random.IntN(100))
		}
		fmt.Fprintf(&b, "FAIL\tstore%d\t1.2s\n", i)
		calls = append(calls, transcripttest.Call{
			ID: fmt.Sprint(
				"toolu_",
				i,
			), Tool: "Bash", Args: map[string]any{"command": fmt.Sprint("go test -v ./store", i)},
			Result: b.String(),
		})
	}
	return transcripttest.Make(transcript.Claude, calls)
}

// sessionQuestions asks for an early, a middle and the last result. The script of a question knows the observation from
// the pointer in the compacted session.
func (f *fixture) sessionQuestions(results int, compacted string) (all []question) {
	for _, at := range []int{3, results / 2, results - 1} {
		q := question{
			source: sessionName, text: fmt.Sprintf("What did the test of store%d that failed want?", at),
			want: []*regexp.Regexp{regexp.MustCompile(fmt.Sprintf(`got %d, want %d\b`, 700+at, 200+at))},
		}
		pointer := regexp.MustCompile(fmt.Sprintf(`\[[^\[\]]*\./store%d\b[^\[\]]*source (obs:\w+)`, at)).
			FindStringSubmatch(compacted)
		switch {
		case pointer != nil:
			q.calls = []call{{"grep", map[string]any{"source": pointer[1], "pattern": "want"}}}
		case at < results-1:
			f.t.Fatalf("no pointer to the result of store%d", at)
		}
		all = append(all, q)
	}
	return all
}

// sentTexts returns what the client sends of a session, block by block.
func sentTexts(t *testing.T, session []byte) (all []string) {
	t.Helper()
	read, err := transcript.Read(session)
	expect.Must(t, err)
	for i := range read.Blocks {
		if b := &read.Blocks[i]; b.Sent {
			all = append(all, b.Name+b.Args.Text()+b.Text())
		}
	}
	return all
}

// oldestGone returns what a client sends that leaves out the oldest results until the rest fits the same budget.
func oldestGone(texts []string, counter *tokens.Counter) []string {
	left := append([]string(nil), texts...)
	total := countAll(left, counter)
	for i, text := range left {
		if n := counter.Count(text); total > sessionBudget && n > 1000 {
			left[i], total = "[old result cleared]", total-n
		}
	}
	return left
}

func countAll(texts []string, counter *tokens.Counter) (n int) {
	for _, text := range texts {
		n += counter.Count(text)
	}
	return n
}
