package viewer

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/session/stats"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
	"github.com/mcp-funnel/mcp-funnel/tools/upstream"
)

// Without calls and observations the overview says what to do.
func TestEmptyOverview(t *testing.T) {
	f := newFixture(t)
	expect.Contains(t, f.page(""), "No client called a tool in these days.", "mcp-funnel install CLIENT", "No server is wrapped", "Nothing is stored yet")
	expect.Has(t, f.page("sessions"), "No client has called a tool in the last 30 days")
	expect.Has(t, f.page("search?q=x"), "Nothing is found")
}

// The figures are those of package stats over the same calls, also after other processes have added some.
func TestFigures(t *testing.T) {
	f := newFixture(t)
	random := rand.New(rand.NewPCG(1, 2))
	today := time.Now().UTC().Truncate(day)
	var ids []string
	for batch := range 4 {
		old := 28 * day
		if batch > 0 { // the rest is added while the pages are looked at
			old = time.Hour
		}
		for i := range 40 {
			c := trace.Call{
				At: time.Now().Add(-time.Duration(random.Int64N(int64(old)))), Owner: observations.Local, Session: fmt.Sprint("s", i%5),
				Tool: []string{"a", "b", "read"}[i%3], SeenTokens: random.Int64N(9000), ShownTokens: random.Int64N(900),
			}
			switch i % 4 {
			case 0:
				c.Observation, c.Kept = string(observations.RandomID()), true
				ids = append(ids, c.Observation)
			case 1:
				c.Source = "obs:" + ids[random.IntN(len(ids))]
			case 2:
				c.Status = "failure"
			}
			if i == 7 {
				c.Via = trace.ViaList
			}
			expect.Must(t, f.o.Trace.Append(c, nil)) // the calls of one process are read in this order
		}
		for _, days := range choices {
			sum := stats.New()
			for c, err := range f.o.Trace.Read(today.Add(day*time.Duration(1-days)), nil) {
				expect.Must(t, err)
				sum.Add(c)
			}
			r, p := sum.Report(0), f.page(fmt.Sprintf("?days=%d", days))
			for _, c := range append(named(heads(sums...), sumCells(r.Total)), fact{"Tool lists", number(r.List)}) {
				expect.Has(t, p, c.Name+" "+c.Cell.Text, "%d days", days)
			}
		}
	}
}

// A call that another process adds is on the next page; lines that are torn are counted.
func TestGrows(t *testing.T) {
	f := newFixture(t)
	for i := range 3 {
		f.traced(trace.Call{Owner: observations.Local, Session: "s", Tool: "t", SeenTokens: 1000}, "{}", "x")
		p := f.page("")
		expect.Has(t, p, fmt.Sprintf("Calls %d Seen %d,000", i+1, i+1))
		expect.Has(t, f.page("sessions/s"), fmt.Sprintf("Calls %d", i+1))
	}
	name := filepath.Join(trace.Dir(f.store), time.Now().UTC().Format("20060102")+"_1-00000001.jsonl")
	expect.Must(t, os.WriteFile(name, []byte("{torn\n"), 0o600))
	expect.Contains(t, f.page(""), "1 lines of the trace were skipped", "Calls 3")
}

// A wrapped server costs its schemas in each session, and its answers.
func TestServerCosts(t *testing.T) {
	f := newFixture(t)
	schema := `{"name":"list_issues","description":"` + strings.Repeat("word ", 400) + `"}`
	expect.Must(t, upstream.RecordsIn(f.o.Records).Change("k1", func(*upstream.Record) (*upstream.Record, error) {
		return &upstream.Record{V: 1, Server: "tracker", Approved: []json.RawMessage{
			json.RawMessage(schema), json.RawMessage(`{"name":"read"}`),
		}}, nil
	}))
	cost := grouped(int64(f.o.Counter.Count(schema) + f.o.Counter.Count(`{"name":"read"}`)))
	expect.Has(t, f.page(""), "tracker "+cost+" tokens a session; called never")
	traced := func(server, tool, via string, seen, shown int64) {
		f.traced(trace.Call{
			Owner: observations.Local, Session: "s", Server: server, Tool: tool, Via: via, SeenTokens: seen, ShownTokens: shown,
		}, "", "")
	}
	traced("tracker", "list_issues", "", 5000, 600)
	traced("other", "list_issues", "", 7, 7)
	traced("", "read", "", 70, 70) // our own
	traced("tracker", "tracker_read", "", 30, 30)
	expect.Has(t, f.page(""), "tracker "+cost+" tokens a session; called twice 2 5,030 630 0 4,400 0")
	expect.Has(t, f.page(""), "list_issues 2 5,007")             // of both servers
	traced("tracker", "list_issues", trace.ViaObserved, 100, 40) // before its outputs were shown as receipts
	expect.Has(t, f.page(""), "tracker "+cost+" tokens a session; called 3 times 3 5,130 670 0 4,460 0")
	traced("tracker", "tools/list", trace.ViaList, 0, 6000)
	expect.Has(t, f.page(""), "tracker 6,000 tokens a session; called 3 times; drop this 3 5,130")
	f.who = Who{Owner: "ann"}
	expect.Lacks(t, f.page(""), "tracker", "Whole store")
}

// The overview names what fills the store, what is pinned and what expires next.
func TestStoreFigures(t *testing.T) {
	f := newFixture(t)
	small, big := f.keep(observations.Local, "small", "s\n", nil), f.keep(observations.Local, "big", strings.Repeat("line\n", 5000), nil)
	expect.Must(t, f.o.Store.Pin(observations.Local, small, true))
	p := f.page("")
	_, p, _ = strings.Cut(p, "By tool Tool Size ")
	expect.Has(t, p, "big 24.4 KiB small 2 bytes Pinned")
	_, pinned, _ := strings.Cut(p, "Pinned")
	pinned, rest, _ := strings.Cut(pinned, "What expires next")
	expect.Has(t, pinned, "never "+string(small))
	aging, largest, _ := strings.Cut(rest, "Largest")
	expect.Has(t, aging, string(big))
	expect.Lacks(t, aging, string(small))
	expect.Has(t, largest[strings.Index(largest, string(big)):], string(small))
}
