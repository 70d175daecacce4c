// Package savings measures what fixed call scripts show of large outputs, and keeps docs/SAVINGS.md.
package savings

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/marked"
	"github.com/mcp-funnel/mcp-funnel/tokens"
)

const (
	page      = "../../docs/SAVINGS.md"
	command   = "go test ./conformance/savings -update"
	truncated = 10_000 // tokens that a client which keeps head and tail shows
)

var (
	update  = flag.Bool("update", false, "rewrite "+page)
	shownID = regexp.MustCompile(`[0-9]{8}T[0-9]{6}_[0-9a-z]{12}|obs:[0-9a-z]{12}`)
	spaces  = regexp.MustCompile(`[\s":,{}]+`)
)

// TestSavings runs every script through the built server and holds answers, calls and tokens to their bars.
func TestSavings(t *testing.T) {
	scale := 10
	if testing.Short() {
		scale = 1
	}
	f := newFixture(t, scale)
	ask := server(t, f.dir)
	counter := tokens.New(tokens.O200k)
	whole := map[string]int{}
	for name, text := range f.outputs {
		whole[name] = counter.Count(text)
	}
	var rows strings.Builder
	rows.WriteString(
		"| output | question | calls | tokens shown | whole output | head and tail |\n|---|---|---:|---:|---:|---:|\n",
	)
	calls, shown, all, cut := 0, 0, 0, 0
	for _, q := range f.questions {
		tokens, last := 0, ""
		for _, c := range q.calls {
			last = ask(c)
			tokens += counter.Count(
				strings.ReplaceAll(shownID.ReplaceAllString(last, "obs:k3v9q2m7x4ab"), f.dir, "/data"),
			)
		}
		flat := " " + spaces.ReplaceAllString(last, " ") + " "
		for _, want := range q.want {
			if !strings.Contains(flat, " "+want+" ") && !holdsWord(last, want) {
				t.Errorf("%s: %s: no %q in the answer:\n%.1500s", q.source, q.text, want, last)
			}
		}
		if tokens > whole[q.source] {
			t.Errorf("%s: %s: %d tokens shown, the whole output has %d", q.source, q.text, tokens, whole[q.source])
		}
		kept := min(truncated, whole[q.source])
		fmt.Fprintf(
			&rows,
			"| `%s` | %s | %d | %d | %d | %d |\n",
			q.source,
			q.text,
			len(q.calls),
			tokens,
			whole[q.source],
			kept,
		)
		calls, shown, all, cut = calls+len(q.calls), shown+tokens, all+whole[q.source], cut+kept
	}
	n := len(f.questions)
	fmt.Fprintf(
		&rows,
		"| **average** | %d questions, all answered | %.2f | %d | %d | %d |\n",
		n,
		float64(calls)/float64(n),
		shown/n,
		all/n,
		cut/n,
	)
	if n < 24 || len(f.outputs) < 8 || 2*calls > 3*n || shown > 450*n {
		t.Errorf("%d questions of %d outputs, %d calls, %d tokens shown", n, len(f.outputs), calls, shown)
	}
	if !testing.Short() && !t.Failed() {
		keep(t, rows.String())
	}
}

// holdsWord reports whether a text holds a word that no letter or digit borders.
func holdsWord(text, word string) bool {
	return regexp.MustCompile(`(^|[^\pL\pN.])` + regexp.QuoteMeta(word) + `($|[^\pL\pN])`).MatchString(text)
}

// keep compares, or with -update rewrites, the table of the page.
func keep(t *testing.T, rows string) {
	if *update {
		if err := marked.Rewrite(page, command, rows); err != nil {
			t.Fatal(err)
		}
		return
	}
	old, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := marked.Replace(string(old), command, rows)
	if err != nil {
		t.Fatal(err)
	}
	if fresh != string(old) {
		t.Errorf("%s needs updating, run: %s\n%s", page, command, rows)
	}
}

// server builds and starts the server over stdio and returns a function that calls its tools.
func server(t *testing.T, root string) func(call) string {
	t.Helper()
	dir := t.TempDir()
	binary := filepath.Join(dir, "mcp-funnel")
	if out, err := exec.Command("go", "build", "-o", binary, "../../cmd/mcp-funnel").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(binary, "serve", "--root", root, "--store", filepath.Join(dir, "store"))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	lines, id := bufio.NewReader(out), 0
	request := func(method string, params any) string {
		id++
		text, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
		fmt.Fprintf(in, "%s\n", text)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				t.Fatal(method, err)
			}
			var m struct {
				ID     int
				Result struct{ Content []struct{ Text string } }
				Error  *struct{ Message string }
			}
			if err := json.Unmarshal(line, &m); err != nil || m.ID != id {
				continue
			}
			if m.Error != nil {
				t.Fatal(method, m.Error.Message)
			}
			var b strings.Builder
			for _, c := range m.Result.Content {
				b.WriteString(c.Text + "\n")
			}
			return b.String()
		}
	}
	request("initialize", map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": "savings", "version": "1"}})
	fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return func(c call) string {
		return request("tools/call", map[string]any{"name": c.tool, "arguments": c.args})
	}
}
