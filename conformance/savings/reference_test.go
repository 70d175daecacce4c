package savings

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/built"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
)

// referenceCommand marks the table of what is passed on by name.
const referenceCommand = "go test ./conformance/savings -run TestByReference -update"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "upstream" {
		serveUpstream(os.Args[2])
		return
	}
	os.Exit(built.Main(m))
}

// record is a row of what the other server returns, with a name that no other row has.
type record struct {
	ID    int     `json:"id"`
	Name  string  `json:"name"`
	Price float64 `json:"price"`
}

// records returns the rows of a tool of the other server.
func records(tool string) (all []record) {
	of := map[string]int{"rows": 439, "samples": 900}[tool]
	random := rand.New(rand.NewPCG(3, uint64(of)))
	for i := range of {
		all = append(all, record{i, fmt.Sprintf("%08x", random.Uint32()), float64(random.IntN(1e6)) / 4})
	}
	return all
}

// serveUpstream is an MCP server. Two of its tools return rows, two take some, and write them to a file as they came.
func serveUpstream(taken string) {
	const listed = `{"tools":[{"name":"rows","inputSchema":{"type":"object"}},` +
		`{"name":"samples","inputSchema":{"type":"object"}},` +
		`{"name":"import","inputSchema":{"type":"object","properties":{"csv":{"type":"string"}}}},` +
		`{"name":"publish","inputSchema":{"type":"object","properties":{"samples":{"type":"array"}}}}]}`
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Name      string
				Arguments map[string]json.RawMessage
			}
		}
		if json.Unmarshal(line, &m) != nil || m.ID == nil {
			continue
		}
		answer := `"error":{"code":-32601,"message":"Method not found"}`
		switch name := m.Params.Name; m.Method {
		case "initialize":
			answer = `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},` +
				`"serverInfo":{"name":"rows","version":"1"}}`
		case "tools/list":
			answer = `"result":` + listed
		case "tools/call":
			text, _ := json.Marshal(map[string]any{name: records(name)}) // plain values
			for _, arg := range m.Params.Arguments {
				text = []byte("done")
				if err := os.WriteFile(taken, arg, 0o600); err != nil {
					text = []byte(err.Error())
				}
			}
			quoted, _ := json.Marshal(string(text)) // a string
			answer = fmt.Sprintf(`"result":{"content":[{"type":"text","text":%s}]}`, quoted)
		}
		_, _ = fmt.Printf(`{"jsonrpc":"2.0","id":%s,%s}`+"\n", m.ID, answer)
	}
}

// TestByReference passes the rows of one tool of another server on to the next, by name: all arrive, and the agent
// has read none of them but a sample, or none at all if it asks for a small receipt.
func TestByReference(t *testing.T) {
	counter := tokens.New(tokens.O200k)
	var table strings.Builder
	table.WriteString("| task | rows | calls | tokens by name, at most | tokens typed again | rows that the agent read |\n" +
		"|---|---:|---:|---:|---:|---:|\n")
	for _, task := range []struct {
		name, from, to, arg, filter string
		limits                      map[string]any
		most                        int // rows that are shown
	}{
		{"copy a result as CSV", "rows", "import", "csv", ".rows[] | [.id, .name, .price] | @csv", nil, 1},
		{"publish an array", "samples", "publish", "samples", ".samples", nil, 1},
		{"copy, small receipts", "rows", "import", "csv", ".rows[] | [.id, .name, .price] | @csv",
			map[string]any{"receipt_tokens": 160}, 0},
		{"publish, small receipts", "samples", "publish", "samples", ".samples", map[string]any{"receipt_tokens": 160}, 0},
	} {
		taken := filepath.Join(t.TempDir(), "taken")
		s := startWith(t, "wrap", "--", os.Args[0], "upstream", taken)
		s.limits = task.limits
		r := caller{about: s.about}
		r.offered.learnJSON(s.offered)
		used, calls := 0, 0
		make := func(tool string, args map[string]any) string {
			c := call{tool, args}
			if names := r.unknown(c); names != nil {
				t.Errorf("%s: %s %v: %q occur in no text that the agent has read", task.name, tool, args, names)
			}
			answer := s.call(c)
			r.seen.learn(answer)
			written, _ := json.Marshal(args) // strings
			calls, used = calls+1, used+counter.Count(string(written))+counter.Count(shownID.ReplaceAllString(answer,
				"obs:k3v9q2m7x4ab"))
			return answer
		}
		name := shownID.FindString(make(task.from, map[string]any{}))
		answer := make(task.to, map[string]any{task.arg: name + " jq " + task.filter})
		if !strings.HasPrefix(answer, "done") {
			t.Fatalf("%s: %s", task.name, answer)
		}
		want, got := arrived(t, task.from, task.arg, taken)
		expect.Same(t, got, want, "%s: other rows arrived", task.name)
		shown := 0
		for _, row := range records(task.from) {
			if strings.Contains(s.heard.String(), row.Name) {
				shown++
			}
		}
		if shown != task.most || calls > 3 {
			t.Errorf("%s: %d rows shown, want %d; %d calls", task.name, shown, task.most, calls)
		}
		expect.Has(t, s.call(call{"publish", map[string]any{"samples": name + " jq .[][]"}}),
			"the tool is not called: the schema of this argument wants no string, and the text is not one JSON value", task.name)
		whole, _ := json.Marshal(map[string]any{task.from: want}) // plain values
		again := expect.Value(os.ReadFile(taken))(t)
		typed := counter.Count("{}") + counter.Count(string(whole)) + counter.Count(`{"`+task.arg+`":`+string(again)+"}") +
			counter.Count("done\n")
		// How much a receipt shows depends on how its random ID is tokenized.
		if used > mostByName {
			t.Errorf("%s: %d tokens, at most %d", task.name, used, mostByName)
		}
		fmt.Fprintf(&table, "| %s | %d | %d | %d | %d | %d |\n", task.name, len(want), calls, mostByName, typed, shown)
	}
	if !t.Failed() {
		keep(t, referenceCommand, table.String())
	}
}

// mostByName is how many tokens a text by name may take, with the call that made it and both answers.
const mostByName = 300

// arrived returns the rows that a tool wrote and those that the next one got.
func arrived(t *testing.T, from, arg, taken string) (want, got []record) {
	t.Helper()
	raw := expect.Value(os.ReadFile(taken))(t)
	if arg == "samples" {
		expect.Must(t, json.Unmarshal(raw, &got), "%.300s", raw)
		return records(from), got
	}
	var csv string
	expect.Must(t, json.Unmarshal(raw, &csv), "%.300s", raw)
	for _, line := range strings.Split(csv, "\n") {
		var row record
		expect.Value(fmt.Sscanf(strings.ReplaceAll(line, `"`, ""), "%d,%8s,%g", &row.ID, &row.Name, &row.Price))(t, line)
		got = append(got, row)
	}
	return records(from), got
}
