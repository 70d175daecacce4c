package replicas

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/system/database/databasetest"
)

// longestCall is how long a call may last while a store is away.
const longestCall = 20 * time.Second

// TestStoresAway has the object store, then the database, be away while clients make calls. Small answers must go on
// whole, large ones must say that nothing was kept and show what fits, and no call may hang. Afterwards calls keep
// again, without a restart. It does not run beside other tests, whose database it would stop.
func TestStoresAway(t *testing.T) {
	o := newFakeObjects(t)
	m := trio(t, o, []string{"anna"})
	m.away(t, "the object store", o.stop, o.start)
	if promise.Full() { // takes connections, and does not answer
		m.away(t, "the silent object store", func() { o.silent.Store(true) }, func() { o.silent.Store(false) })
	}
	m.away(t, "the database", func() { databasetest.Stop(t) }, func() { databasetest.Start(t) })
}

func (m *team) away(t *testing.T, what string, stop, start func()) {
	t.Helper()
	var sessions []*client
	for i, era := range eras {
		c := open(t, m.replicas[i%3].url, m.tokens["anna"], era)
		c.must(t, "find", object{"path": "small.txt"})
		sessions = append(sessions, c)
	}
	id, _, err := sessions[0].put(t.Context(), []byte(strings.Repeat("kept before the outage\n", 50_000)))
	expect.Must(t, err)
	stop()
	until := time.Now().Add(promise.Size(5*time.Second, time.Minute))
	var mu sync.Mutex
	slowest, count := map[string]time.Duration{}, map[string]int{}
	var group sync.WaitGroup
	for _, c := range sessions {
		group.Go(func() {
			for n := 0; n == 0 || time.Now().Before(until); n++ {
				for _, call := range []struct {
					kind, tool string
					args       object
					check      func(answer) error
				}{
					{"small", "read", object{"path": "small.txt"}, smallIsWhole},
					{"row", "search", object{"pattern": "word3 is"}, func(a answer) error {
						if strings.HasSuffix(what, "object store") { // the database has what is small
							return isKept(a)
						}
						return saysNotKept(a)
					}},
					{"large", "run", object{"command": "seq -f 'row %.0f' 30000"}, saysNotKept},
					{"old", "slice", object{"source": id, "lines": "3-3"}, func(a answer) error {
						if !a.failed && !strings.Contains(a.text, "kept before") { // it may be in a cache
							return errors.New("neither an error nor the lines")
						}
						return nil
					}},
				} {
					ctx, cancel := context.WithTimeout(t.Context(), 3*longestCall)
					a, err := c.call(ctx, call.tool, call.args)
					cancel()
					mu.Lock()
					slowest[call.kind] = max(slowest[call.kind], a.took)
					count[call.kind]++
					mu.Unlock()
					if err == nil {
						err = call.check(a)
					}
					if err != nil {
						t.Errorf("%s is away, %s, %s: %v\n%.800s", what, c.era, call.kind, err, a.text)
						return
					}
				}
			}
		})
	}
	group.Wait()
	for kind, took := range slowest {
		if took > longestCall {
			t.Errorf("%s is away: a call of the kind %s took %s", what, kind, took)
		}
	}
	start()
	back := time.Now()
	for _, c := range sessions {
		eventually(t, "keeping after the outage, "+c.era, func() error {
			a, err := c.call(t.Context(), "run", object{"command": "seq -f 'row %.0f' 30000"})
			if err == nil {
				err = isKept(a)
			}
			return err
		})
		a := c.must(t, "slice", object{"source": id, "lines": "50000-50000"})
		expect.Contains(t, a.text, "kept before")
	}
	t.Logf("%s was away: calls %v, the slowest %v; all keep again after %s", what, count, slowest,
		time.Since(back).Round(time.Millisecond))
}

func smallIsWhole(a answer) error {
	if a.failed || !strings.Contains(a.text, "a small file\nof two lines") {
		return errors.New("the small answer is not whole")
	}
	return nil
}

// saysNotKept checks that a large answer says that it was not kept, and shows some of it.
func saysNotKept(a answer) error {
	_, cause, found := strings.Cut(a.text, "not kept (")
	if a.failed || !found || a.receipt.Kept || strings.HasPrefix(cause, ")") || strings.Count(a.text, "\n") < 10 {
		return errors.New("it does not say that it was not kept, and show what fits")
	}
	return nil
}

func isKept(a answer) error {
	if a.failed || !a.receipt.Kept || !strings.Contains(a.text, "kept whole as obs:") {
		return fmt.Errorf("not kept: %.300s", a.text)
	}
	return nil
}

// TestStartNeedsTheDatabase starts a replica whose database is away: it must end and say so.
func TestStartNeedsTheDatabase(t *testing.T) {
	t.Parallel()
	l := listen(t, "127.0.0.1:0")
	at := l.Addr().String()
	expect.Must(t, l.Close())
	m := &team{
		t: t, root: t.TempDir(), database: "postgres://funnel@" + at + "/funnel?sslmode=disable", objects: newFakeObjects(t),
	}
	p := run(t, command(t, append([]string{"--root", m.root}, m.store(t.TempDir())...)...))
	<-p.ended
	expect.Equal(t, p.cmd.ProcessState.ExitCode(), 1)
	expect.Contains(t, p.log.String(), "the database "+at+"/funnel is not available")
	expect.Lacks(t, p.log.String(), "panic")
}
