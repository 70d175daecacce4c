package replicas

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// TestDrainLosesNothing ends replicas by SIGTERM and starts others in their place, while clients of each era make calls
// and open sessions. No call may fail, nor one that runs at the replica that ends.
func TestDrainLosesNothing(t *testing.T) {
	t.Parallel()
	m := trio(t, newFakeObjects(t), []string{"anna"})
	token := m.tokens["anna"]
	stop := make(chan struct{})
	var calls atomic.Int64
	var group sync.WaitGroup
	for i, era := range eras {
		c := open(t, m.balancer.URL, token, era)
		group.Go(func() {
			kept := ""
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				case <-time.After(5 * time.Millisecond):
				}
				calls.Add(1)
				if n%10 == 9 { // a new session, too
					c = open(t, m.balancer.URL, token, era)
				}
				a, err := c.call(t.Context(), "search", object{"pattern": fmt.Sprintf("word%d is", n%50)})
				if kept != "" && err == nil && !a.failed {
					a, err = c.call(t.Context(), "slice", object{"source": kept, "lines": "1-1"})
				}
				if err == nil && !a.failed && n%3 == i%3 {
					_, _, err = c.put(t.Context(), []byte(fmt.Sprintf("upload %d", n)))
				}
				if err != nil || a.failed {
					t.Errorf("%s, call %d: %v %.300s", era, n, err, a.text)
					return
				}
				if a.receipt.Kept {
					kept = a.receipt.ID
				}
			}
		})
	}
	dir := t.TempDir()
	for n, r := range m.replicas[:promise.Size(1, 3)] {
		began, ran := filepath.Join(dir, r.name), make(chan string, 1)
		go func() {
			a, err := open(t, r.url, token, stateless).call(t.Context(), "run",
				object{"command": fmt.Sprintf("touch %s; sleep 4; echo it is done", began)})
			ran <- fmt.Sprint(a.text, err)
		}()
		eventually(t, "a command", func() error { return expect.Err(os.Stat(began)) })
		expect.Must(t, r.cmd.Process.Signal(syscall.SIGTERM))
		eventually(t, "the drain", func() error {
			g, err := request(t.Context(), http.MethodGet, r.url+"/readyz", nil)
			if err == nil && g.status != http.StatusServiceUnavailable {
				err = fmt.Errorf("/readyz says %d", g.status)
			}
			return err
		})
		if text := <-ran; !strings.HasPrefix(text, "it is done") {
			t.Errorf("the call that ran at %s: %s", r.name, text)
		}
		select {
		case <-r.ended:
			expect.OK(t, r.err, "the end of %s", r.name)
		case <-time.After(time.Minute):
			t.Errorf("replica %s did not end", r.name)
		}
		if strings.Contains(r.log.String(), "calls still ran") {
			t.Errorf("replica %s cancelled calls", r.name)
		}
		m.start(fmt.Sprint("d", n))
		time.Sleep(300 * time.Millisecond)
	}
	close(stop)
	group.Wait()
	t.Logf("%d rounds of calls, none failed", calls.Load())
}
