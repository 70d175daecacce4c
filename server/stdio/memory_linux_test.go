package stdio

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/server/servertest"
)

// resident is how much memory a process has, in bytes.
func resident(t *testing.T, pid int) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	expect.Must(t, err)
	for line := range bytes.Lines(status) {
		if fields := strings.Fields(string(line)); fields[0] == "VmRSS:" {
			n, err := strconv.ParseInt(fields[1], 10, 64)
			expect.Must(t, err)
			return n << 10
		}
	}
	t.Fatal("no VmRSS")
	return 0
}

// TestClientThatNeverReadsCannotGrowMemory writes to a process of its own until that takes no more, and
// never reads what it answers.
func TestClientThatNeverReadsCannotGrowMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it floods five processes of their own")
	}
	t.Parallel()
	const most = 256 << 20 // over idle; at work the messages of all calls may take 64 MiB
	large := strings.Repeat("some text ", 100_000)
	for name, message := range map[string]func(i int64) string{
		"pings":  func(i int64) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i) },
		"faults": func(i int64) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q}`, i, large[:5000]) },
		"lists":  func(i int64) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`, i) },
		"large calls": func(i int64) string {
			return servertest.ToolCall(strconv.FormatInt(i, 10), "say", `{"text":"`+large[:100_000]+`"}`, "")
		},
		"questions": func(i int64) string {
			return servertest.ToolCall(strconv.FormatInt(i, 10), "greet", `{}`, `,"_meta":{"progressToken":1}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := startProcess(t, asServer, "")
			p.write(strings.Replace(servertest.Initialize, `"capabilities":{}`, `"capabilities":`+servertest.CanAll, 1))
			if got := p.read(); !strings.Contains(got, `"id":"init"`) {
				t.Fatalf("initialize: %s", got)
			}
			idle := resident(t, p.cmd.Process.Pid)
			var sent atomic.Int64
			go func() {
				for {
					if _, err := io.WriteString(p.in, message(sent.Load())+"\n"); err != nil {
						return
					}
					sent.Add(1)
				}
			}()
			peak, limit := idle, time.Now().Add(20*time.Second)
			for last, still := int64(-1), 0; still < 8 && time.Now().Before(limit); time.Sleep(100 * time.Millisecond) {
				still++
				if n := sent.Load(); n != last {
					last, still = n, 0
				}
				peak = max(peak, resident(t, p.cmd.Process.Pid))
			}
			t.Logf("%d messages, from %d to %d MiB", sent.Load(), idle>>20, peak>>20)
			if peak-idle > most {
				t.Errorf("after %d messages it has %d MiB more than before", sent.Load(), (peak-idle)>>20)
			}
		})
	}
}
