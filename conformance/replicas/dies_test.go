package replicas

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// handle is what was stored, and what it must give.
type handle struct {
	id     string
	sha256 string // of all bytes
	first  string // in its first line; "" if it has no lines
	jq     string // a filter, "" where it is no JSON
	want   string // its result
	by     string // the replica that made it
}

// makeHandle stores something in one of three ways: by search, by a command, or by an upload.
func (m *team) makeHandle(ctx context.Context, c *client, n int) (h handle, err error) {
	file := n % records
	switch n % 3 {
	case 0:
		a, err := c.call(ctx, "search", object{"pattern": fmt.Sprintf("word%d is", n%97), "path": "text"})
		if err != nil {
			return h, err
		}
		h = handle{id: shownID.FindString(a.text), first: "text/", by: a.by}
		if h.id == "" || a.failed || !a.receipt.Kept {
			return h, fmt.Errorf("search %d: %s", n, a.text)
		}
		// The replica that made it is the only one that may have read it before the others do.
		g, err := request(ctx, http.MethodGet, strings.Replace(a.receipt.Link, m.balancer.URL, m.at(a.by), 1), nil)
		if err != nil {
			return h, fmt.Errorf("%w: %w", errBroken, err)
		}
		h.sha256 = sum(g.body)
		if g.status != http.StatusOK || g.header.Get("ETag") != `"`+h.sha256+`"` {
			return h, fmt.Errorf("link of search %d: %d, ETag %s of %s", n, g.status, g.header.Get("ETag"), h.sha256)
		}
		return h, nil
	case 1: // over 64 KiB, and below
		lines := 400 + 8000*(n/3%2)
		a, err := c.call(ctx, "run", object{"command": fmt.Sprintf("seq -f '%d and %%.0f' %d", n, lines)})
		if err != nil {
			return h, err
		}
		var text strings.Builder
		for i := range lines {
			fmt.Fprintf(&text, "%d and %d\n", n, i+1)
		}
		h = handle{shownID.FindString(a.text), sum([]byte(text.String())), fmt.Sprint(n, " and 1"), "", "", a.by}
		if h.id == "" || a.failed {
			return h, fmt.Errorf("run %d: %s", n, a.text)
		}
		return h, nil
	}
	var text strings.Builder
	for i := range 200 + n%5*1000 {
		fmt.Fprintf(&text, "%s{\"id\":%d,\"of\":%d,\"file\":%d}", sep(i, "[", ",\n"), i, n, file)
	}
	text.WriteString("]\n")
	id, by, err := c.put(ctx, []byte(text.String()))
	return handle{id, sum([]byte(text.String())), `[{"id":0`, ".[150].of", fmt.Sprint(n), by}, err
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// at returns the URL of a replica.
func (m *team) at(name string) string {
	for _, r := range m.replicas {
		if r.name == name {
			return r.url
		}
	}
	m.t.Errorf("there is no replica %q", name)
	return ""
}

// redeem reads a handle at one replica: by link, by slice and by jq. It returns what is wrong.
func (m *team) redeem(ctx context.Context, c *client, h handle) error {
	url, err := c.link(ctx, h.id)
	if err != nil {
		return fmt.Errorf("%s of %s by link: %w", h.id, h.by, err)
	}
	g, err := request(ctx, http.MethodGet, strings.Replace(url, m.balancer.URL, c.url, 1), nil)
	if err != nil || g.status != http.StatusOK || sum(g.body) != h.sha256 {
		failed := fmt.Errorf("%s of %s by link: %d, sha256 %s, want %s", h.id, h.by, g.status, sum(g.body), h.sha256)
		return errors.Join(failed, err)
	}
	if h.first == "" {
		return nil
	}
	a, err := c.call(ctx, "slice", object{"source": h.id, "lines": "1-2"})
	if err != nil || a.failed || !strings.Contains(a.text, h.first) {
		return errors.Join(fmt.Errorf("%s of %s by slice: %s", h.id, h.by, a.text), err)
	}
	if h.jq == "" {
		return nil
	}
	a, err = c.call(ctx, "jq", object{"source": h.id, "filter": h.jq})
	if err != nil || !strings.Contains(a.text, h.want) {
		return errors.Join(fmt.Errorf("%s of %s by jq: %s", h.id, h.by, a.text), err)
	}
	return nil
}

// makeHandles makes n handles with several clients, and calls at when it has made so many. What broke is repeated.
func (m *team) makeHandles(of []*client, n, many int, at func()) (all []handle, broken int) {
	var next, done, breaks atomic.Int64
	var once sync.Once
	list := make([]handle, n)
	var group sync.WaitGroup
	for w := range many {
		c := of[w%len(of)]
		group.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				for tries := 0; ; tries++ {
					h, err := m.makeHandle(m.t.Context(), c, i)
					if list[i] = h; err == nil {
						break
					}
					if !errors.Is(err, errBroken) || tries == 5 {
						m.t.Error(err)
						return
					}
					breaks.Add(1)
				}
				if done.Add(1) >= int64(n*2/3) {
					once.Do(at)
				}
			}
		})
	}
	group.Wait()
	return list, int(breaks.Load())
}

// redeemAll redeems handles at each of several replicas, and returns how many reads were right.
func (m *team) redeemAll(token string, all []handle, replicas ...*replica) (right int) {
	var count atomic.Int64
	var group sync.WaitGroup
	work := make(chan func() error)
	for range 4 {
		group.Go(func() {
			for do := range work {
				if err := do(); err != nil {
					m.t.Error(err)
				} else {
					count.Add(1)
				}
			}
		})
	}
	for _, r := range replicas {
		c := open(m.t, r.url, token, "2025-11-25")
		for _, h := range all {
			work <- func() error { return m.redeem(m.t.Context(), c, h) }
		}
	}
	close(work)
	group.Wait()
	return int(count.Load())
}

// TestReplicaDies kills one of three replicas while all of them make handles. The sessions of each era go on, and the
// others redeem each handle.
func TestReplicaDies(t *testing.T) {
	t.Parallel()
	n := promise.Size(60, 1000)
	m := trio(t, objectsFor(t), []string{"anna"})
	dead, others := m.replicas[0], m.replicas[1:]
	var sessions []*client
	for _, era := range eras { // opened at the one that dies
		c := open(t, dead.url, m.tokens["anna"], era)
		c.must(t, "find", object{"path": "list"})
		c.url = m.balancer.URL
		sessions = append(sessions, c)
	}
	before := sessions[0].must(t, "search", object{"pattern": "word1 is"})
	first := map[string]time.Duration{}
	lost := make(chan error, 1)
	all, broken := m.makeHandles(sessions, n, 6, func() {
		began := filepath.Join(t.TempDir(), "began")
		go func() {
			c := open(t, dead.url, m.tokens["anna"], stateless)
			_, err := c.call(t.Context(), "run", object{"command": "touch " + began + "; sleep 60"})
			lost <- err
		}()
		eventually(t, "a command", func() error { return expect.Err(os.Stat(began)) })
		dead.kill()
		for _, c := range sessions {
			died := time.Now()
			eventually(t, "an answer to "+c.era, func() error {
				a, err := c.call(t.Context(), "slice", object{"source": before.receipt.ID, "lines": "1-1"})
				if err != nil || a.failed || !strings.Contains(a.text, "word1 is found") {
					return errors.Join(errors.New(a.text), err)
				}
				return nil
			})
			first[c.era] = time.Since(died).Round(time.Millisecond)
		}
	})
	if t.Failed() {
		return
	}
	expect.ErrorIs(t, <-lost, errBroken, "a call in the middle of the death")
	by := map[string]int{}
	for _, h := range all {
		by[h.by]++
	}
	if len(by) != 3 || by["a"] < n/9 {
		t.Errorf("made by %v", by)
	}
	began := time.Now()
	right := m.redeemAll(m.tokens["anna"], all, others...)
	expect.Equal(t, right, 2*n, "handles redeemed by the others")
	t.Logf("%d handles made by %v; %d calls repeated; first answers after the death %v; redeemed %d of %d in %s",
		n, by, broken, first, right, 2*n, time.Since(began).Round(time.Millisecond))
	for era, took := range first {
		if took > 10*time.Second {
			t.Errorf("%s: the first answer after the death took %s", era, took)
		}
	}
}
