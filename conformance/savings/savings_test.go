// Package savings measures what fixed call scripts show of large outputs, and keeps docs/SAVINGS.md.
package savings

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
)

const (
	page     = "../../docs/SAVINGS.md"
	command  = "go test ./conformance/savings -update"
	headTail = 10_000 // tokens that a client which keeps head and tail shows
)

var (
	update  = flag.Bool("update", false, "rewrite "+page)
	shownID = regexp.MustCompile(`[0-9]{8}T[0-9]{6}_[0-9a-z]{12}|obs:[0-9a-z]{12}`)
)

// output is the cost of one output without this server.
type output struct {
	tokens int
	cut    string // its head and tail
	kept   int    // tokens of cut
}

// row is what one question took.
type row struct {
	question
	calls, tokens int
	inCut         bool // the answer is in the head and tail of the output
	output
}

// TestSavings runs every script through the built server and holds answers, calls and tokens to their bars.
func TestSavings(t *testing.T) {
	f := newFixture(t, testing.Short())
	s := startServer(t, f.dir)
	counter := tokens.New(tokens.O200k)
	rows, calls, shown := f.askAll(s, counter)
	n := len(rows)
	t.Logf("%d questions of %d outputs, %d calls, %d tokens shown", n, len(f.outputs), calls, shown)
	if n < 24 || len(f.outputs) < 8 || 2*calls > 3*n || shown > 450*n {
		t.Errorf("%d questions of %d outputs, %d calls, %d tokens shown; want at most %d calls and %d tokens",
			n, len(f.outputs), calls, shown, 3*n/2, 450*n)
	}
	if !testing.Short() && !t.Failed() {
		keep(t, command, table(rows, counter.Count(s.list())))
	}
}

// askAll asks all questions, and checks that no answer costs more than the output, whole or as a client cuts it. read is
// what the caller has read before.
func (f *fixture) askAll(s *client, counter *tokens.Counter, read ...string) (rows []row, calls, shown int) {
	outputs := map[string]output{}
	for name, text := range f.outputs {
		cut := truncate(text, headTail, counter)
		outputs[name] = output{counter.Count(text), cut, counter.Count(cut)}
	}
	for _, q := range f.questions {
		r := row{question: q, calls: len(q.calls), output: outputs[q.source]}
		answer := f.run(s, q, func(text string) { r.tokens += counter.Count(text) }, read...)
		if !holds(answer, q.want) {
			f.t.Errorf("%s: %s: not all of %v in the answer:\n%.2500s", q.source, q.text, q.want, answer)
		}
		r.inCut = holds(r.cut, q.want)
		if r.tokens > r.output.tokens || r.inCut && r.tokens > r.kept {
			f.t.Errorf("%s: %s: %d tokens shown, the whole output has %d, the client's own cut %d with the answer %t",
				q.source, q.text, r.tokens, r.output.tokens, r.kept, r.inCut)
		}
		calls, shown, rows = calls+r.calls, shown+r.tokens, append(rows, r)
	}
	return rows, calls, shown
}

// run makes the calls of a question, each of names that are known by then, and returns the last answer.
// read is what its caller has read besides the question.
func (f *fixture) run(s *client, q question, show func(string), read ...string) (answer string) {
	r := caller{about: s.about}
	r.offered.learnJSON(s.offered)
	for _, text := range append(read, q.source+": "+q.text) {
		r.seen.learn(text)
	}
	for i, c := range q.calls {
		if names := r.unknown(c); names != nil {
			f.t.Errorf("%s: %s: call %d, %s %v: %q occur in no text that the caller has seen",
				q.source, q.text, i+1, c.tool, c.args, names)
		}
		if last := q.calls[len(q.calls)-1]; i < len(q.calls)-1 && r.unknown(last) == nil {
			f.t.Errorf(
				"%s: %s: the last call needs no name from the calls before it; remove call %d",
				q.source,
				q.text,
				i+1,
			)
		}
		answer = strings.ReplaceAll(shownID.ReplaceAllString(s.call(c), "obs:k3v9q2m7x4ab"), f.dir, "/data")
		r.seen.learn(answer)
		show(answer)
	}
	return answer
}

func holds(text string, want []*regexp.Regexp) bool {
	for _, w := range want {
		if !w.MatchString(text) {
			return false
		}
	}
	return true
}

// questions has the rows.
func questions(rows []row) string {
	var b strings.Builder
	b.WriteString("| output | question | calls | tokens shown | whole output | client's own cut | net | answer in the cut |\n")
	b.WriteString("|---|---|---:|---:|---:|---:|---:|---|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| `%s` | %s | %d | %d | %d | %d | %d | %s |\n", r.source, r.text, r.calls, r.tokens,
			r.output.tokens, r.kept, r.kept-r.tokens, map[bool]string{true: "yes", false: "no"}[r.inCut])
	}
	return b.String()
}

// table has the rows, their average, and their sums for one session, which pays for the list of tools once.
func table(rows []row, list int) string {
	var b strings.Builder
	b.WriteString(questions(rows))
	calls, shown, whole, kept, inCut := 0, 0, 0, 0, 0
	for _, r := range rows {
		if r.inCut {
			inCut++
		}
		calls, shown, whole, kept = calls+r.calls, shown+r.tokens, whole+r.output.tokens, kept+r.kept
	}
	n := len(rows)
	fmt.Fprintf(&b, "| **average** | %d questions, all answered | %.2f | %d | %d | %d | %d | %d of %d |\n",
		n, float64(calls)/float64(n), shown/n, whole/n, kept/n, (kept-shown)/n, inCut, n)
	fmt.Fprintf(&b, "| **one session** | all of them, and the list of tools (%d tokens) | %d | %d | %d | %d | %d | |\n",
		list, calls, shown+list, whole, kept, kept-shown-list)
	return b.String()
}

// keep compares, or with -update rewrites, the table of the page.
func keep(t *testing.T, command, rows string) {
	t.Helper()
	if *update {
		table := filepath.Join(t.TempDir(), "table.md")
		expect.Must(t, os.WriteFile(table, []byte(rows), 0o600))
		replace := exec.CommandContext(t.Context(), "../../scripts/page", page, command, table)
		if out, err := replace.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return
	}
	old := expect.Value(os.ReadFile(page))(t)
	_, kept, _ := strings.Cut(string(old), "<!-- begin: "+command+" -->\n")
	kept, _, ok := strings.Cut(kept, "<!-- end: "+command+" -->")
	if diff := differ(kept, rows); !ok || diff != "" {
		t.Errorf("%s needs updating, run: %s\n%s", page, command, diff)
	}
}

// differ returns the first line in which two tables differ by more than a receipt's wording: all but the tokens shown
// and the net must be equal, and the tokens shown within a tenth.
func differ(old, fresh string) string {
	a, b := strings.Split(old, "\n"), strings.Split(fresh, "\n")
	if len(a) != len(b) {
		return fmt.Sprintf("%d lines, now %d", len(a), len(b))
	}
	for i := range a {
		x, y := strings.Split(a[i], " | "), strings.Split(b[i], " | ")
		if len(x) == len(y) && len(x) > 3 {
			m, _ := strconv.Atoi(x[3])
			n, _ := strconv.Atoi(y[3])
			if 10*max(m-n, n-m) <= max(m, n) {
				x[3] = y[3]
				if len(x) > 6 {
					x[6] = y[6] // the cut without them
				}
			}
		}
		if strings.Join(x, "|") != strings.Join(y, "|") {
			return a[i] + "\n" + b[i]
		}
	}
	return ""
}
