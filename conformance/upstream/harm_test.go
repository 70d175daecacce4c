//go:build linux

package upstream_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// sickness is a fault of a server, and what its calls may answer but errors.
type sickness struct {
	fault  string
	tools  string  // what the server lists instead, from its first start on
	may    string  // in an answer that is right
	beside []other // the calls that are measured
}

// sicknesses are the faults. remote is a URL that nobody may ask.
func sicknesses(remote string) []sickness {
	const plain = `,"inputSchema":{"type":"object"}},`
	clash := ""
	for _, name := range []string{"jq", "grep", "slice", "search", "find", "read", "upstream_jq", "upstream_grep"} {
		clash += `{"name":"` + name + `"` + plain
	}
	rest := `{"name":"raw"` + plain + `{"name":"exit"` + plain + `{"name":"echo","inputSchema":{"type":"object"}}`
	return []sickness{
		{fault: "hangs"},
		{fault: "ends in a call"},
		{fault: "floods stdout", may: "done"},
		{fault: "floods stderr", may: "done"},
		{fault: "half frame"},
		{fault: promise.Size("huge frame", "1 GB frame")},
		{fault: "wrong id", may: "right"},
		{fault: "late answer"},
		{fault: "name clash", tools: clash + rest},
		{fault: "endless pages"},
		{fault: "remote schema", tools: `{"name":"remote","inputSchema":{"type":"object","$ref":"` + remote + `"}},` + rest},
		{fault: "banner on stdout"},
		{fault: "ignores SIGTERM"},
		{fault: "grandchildren"},
		{fault: "never answers initialize"},
		{fault: "dies every second call"},
		{fault: "reads no more"},
	}
}

// other is a call that a sick server may not harm: of a tool of ours, or of another server.
type other struct{ tool, args, want string }

// others are the calls that are measured; %s stands for a stored text.
var others = []other{
	{"jq", `{"source":"%s","filter":"length"}`, `"text":"20000"`},
	{"grep", `{"source":"%s","pattern":"row 4[0-9]*7\\b"}`, "row 407"},
	{"slice", `{"source":"%s","lines":"101-102"}`, "row 100"},
	{"well_echo", `{"text":"%s lines 1-2"}`, "row 0"},
}

// rowsText is a JSON text of 20,000 lines.
func rowsText() string {
	var b strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&b, ",\n\"row %d\"", i)
	}
	return "[" + b.String()[1:] + "\n]\n"
}

// killed kills the processes of a server, and what they started.
func killed(t *testing.T, state string) {
	t.Helper()
	for pid, command := range processesWith(state) {
		if words := strings.Split(command, " "); words[0] == os.Args[0] && words[1] == "sick" {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may be gone
		}
	}
}

// healed lets the fault of a server end, and waits until its calls are answered.
func healed(t *testing.T, c *client, state string) bool {
	t.Helper()
	if err := os.Remove(state); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	killed(t, state) // one that sleeps or hangs does so until then
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if strings.Contains(c.call("echo", `{"text":"well"}`), `\"well\"`) {
			return true
		}
	}
	return false
}

// harm is what a sick server did to others.
type harm struct {
	cases  int
	wrong  []string
	errors int       // calls of the server that it did not answer, or that were answered by an error
	right  int       // the other calls of the server
	ratios []float64 // of the p99 of others, beside the sick server and beside the same server when it is idle
}

// try lets a server fall ill that many times. Before and meanwhile it calls others at least n times, and for a while.
func (s sickness) try(t *testing.T, runs, n int, while time.Duration) (h harm) {
	t.Helper()
	fail := func(format string, args ...any) { h.wrong = append(h.wrong, s.fault+": "+fmt.Sprintf(format, args...)) }
	state := filepath.Join(t.TempDir(), "state")
	if s.tools != "" {
		write(t, state, "["+s.tools+"]")
	}
	entry := fmt.Sprintf("{command: %q, args: [sick, none, ", os.Args[0])
	c := start(t, configured(t, fmt.Sprintf("upstreams:\n  upstream: %s%q]}\n  well: %s%q]}\n",
		entry, state, entry, filepath.Join(t.TempDir(), "well")), "wrap")...)
	quoted, _ := json.Marshal(rowsText()) // a string
	id := observation.FindString(c.call("raw", `{"result":{"content":[{"type":"text","text":`+string(quoted)+`}]}}`))
	measured := func(beside func(i int)) time.Duration {
		var took []time.Duration
		for i, end := 0, time.Now().Add(while); i < n || time.Now().Before(end); i++ {
			beside(i)
			o := s.beside[i%len(s.beside)]
			began := time.Now()
			got := c.call(o.tool, fmt.Sprintf(o.args, id))
			took = append(took, time.Since(began))
			h.cases++
			if !strings.Contains(got, o.want) {
				fail("%s: %.300s", o.tool, got)
			}
		}
		slices.Sort(took)
		return took[len(took)*99/100]
	}
	measured(func(int) {}) // the first calls take longer
	for range runs {
		idle := measured(func(int) {})
		if s.tools == "" {
			write(t, state, "fault: "+s.fault)
		}
		killed(t, state) // many faults show in the first call of a process
		var begun []int
		ill := measured(func(i int) {
			open := 0
			for _, id := range begun {
				if c.others[id] == "" {
					open++
				}
			}
			if i%(n/6) == 0 && open < 4 {
				params := fmt.Sprintf(`{"name":"echo","arguments":{"text":"call %d"}}`, c.last+1)
				begun = append(begun, c.begin("tools/call", params))
			}
		})
		h.ratios = append(h.ratios, float64(ill)/float64(idle))
		for _, id := range begun {
			if c.others[id] == "" {
				_, err := fmt.Fprintf(c.in, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`+"\n", id)
				expect.Must(t, err)
			}
		}
		h.cases++
		if s.tools == "" && !healed(t, c, state) {
			fail("it does not get well: %s", c.errs)
			return h
		}
		for _, id := range begun {
			got := c.others[id]
			right := strings.Contains(got, fmt.Sprintf(`\"call %d\"`, id)) || s.may != "" && strings.Contains(got, s.may)
			h.cases++
			if right {
				h.right++
			} else {
				h.errors++
			}
			if got != "" && !right && !strings.Contains(got, `"isError":true`) && !strings.Contains(got, `"code":`) {
				fail("call %d: %.300s", id, got)
			}
		}
	}
	c.end()
	time.Sleep(50 * time.Millisecond)
	if left := processesWith(state); len(left) > 0 {
		fail("left: %v", left)
	}
	return h
}

// TestS30SickServersHarmOnlyTheirCalls calls tools beside a server with a fault: each answers what it must, the calls
// of the server are right or errors, and it gets well. At full size the p99 of the others is at most twice that beside
// an idle server (median of 5 runs). The control measures calls of the sick server itself.
func TestS30SickServersHarmOnlyTheirCalls(t *testing.T) {
	inParallel(t)
	promise.OrdinaryRun(t)
	var asked atomic.Int64
	remote := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer remote.Close()
	proof := promise.Proof{Promise: "S30"}
	runs, n, while := promise.Size(1, 5), promise.Size(18, 200), promise.Size(0, time.Second)
	worst, of := 0.0, ""
	all := sicknesses(remote.URL)
	for i := range all {
		all[i].beside = others
	}
	var mu sync.Mutex // guards proof, worst and of
	t.Run("faults", func(t *testing.T) {
		for _, s := range all {
			t.Run(s.fault, func(t *testing.T) {
				inParallel(t)
				began := time.Now()
				h := s.try(t, runs, n, while)
				mu.Lock()
				defer mu.Unlock()
				proof.Cases, proof.Failures = proof.Cases+h.cases, proof.Failures+len(h.wrong)
				for _, one := range h.wrong[:min(len(h.wrong), 5)] {
					t.Error(one)
				}
				if len(h.ratios) == 0 {
					return
				}
				slices.Sort(h.ratios)
				ratio := h.ratios[len(h.ratios)/2]
				t.Logf("%d calls failed, %d were right; p99 %.2f times that beside an idle server, in %s", h.errors, h.right,
					ratio, time.Since(began).Round(time.Millisecond))
				if promise.Full() && ratio > 2 {
					proof.Failures++
					t.Errorf("the p99 of other tools is %.2f times that beside an idle server", ratio)
				}
				if ratio > worst {
					worst, of = ratio, s.fault
				}
			})
		}
	})
	proof.Cases++
	if asked.Load() > 0 {
		proof.Failures++
		t.Errorf("a schema was asked for at %s", remote.URL)
	}
	own := sickness{fault: "dies every second call", beside: []other{{"rows", `{"of":"%s"}`, "kept whole"}}}
	proof.Control = len(own.try(t, 1, 30, 0).wrong)
	proof.Figures = fmt.Sprintf("%d faults; p99 of other tools at most %.2f times that beside an idle server (%s); "+
		"control: calls of the sick server itself", len(all), worst, of)
	promise.Kept(t, proof)
}
