package replicas

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// TestVersitygw keeps objects of one and of several parts on a real S3 server, which compares checksums, and which is
// killed and started again. Each replica redeems all of them.
func TestVersitygw(t *testing.T) {
	t.Parallel() // it waits until versitygw is built
	g := newVersitygw(t)
	m := trio(t, g, []string{"anna"})
	token := m.tokens["anna"]
	c := open(t, m.balancer.URL, token, "2025-11-25")
	var all []handle
	put := func(data []byte, first string) {
		t.Helper()
		id, by, err := c.put(t.Context(), data)
		expect.Must(t, err)
		all = append(all, handle{id: id, sha256: sum(data), first: first, by: by})
	}
	for i, size := range []int{1 << 10, 64 << 10, 64<<10 + 1, 1 << 20, 8 << 20, 8<<20 + 1, 21 << 20} {
		first := fmt.Sprint("upload ", i)
		put(append([]byte(first+"\n"), bytes.Repeat([]byte("and a line more\n"), size/16)...), first)
	}
	put(append([]byte("random\n"), corpus.Random(9<<20)...), "")
	made, _ := m.makeHandles([]*client{c}, 6, 2, func() {})
	all = append(all, made...)

	g.stop()
	a := c.must(t, "run", object{"command": "seq -f 'row %.0f' 30000"})
	expect.OK(t, saysNotKept(a))
	g.start()
	eventually(t, "keeping after the outage", func() error {
		a, err := c.call(t.Context(), "run", object{"command": "seq -f 'row %.0f' 30000"})
		if err == nil {
			err = isKept(a)
		}
		return err
	})
	began := time.Now()
	right := m.redeemAll(token, all, m.replicas...)
	expect.Equal(t, right, 3*len(all), "handles redeemed")
	t.Logf("%d of %d redeemed in %s", right, 3*len(all), time.Since(began).Round(time.Millisecond))

	// A range in the middle, at a replica that has no copy.
	last := all[6]
	url, err := c.link(t.Context(), last.id)
	expect.Must(t, err)
	fresh := m.start("fresh")
	got, err := request(t.Context(), http.MethodGet, strings.Replace(url, m.balancer.URL, fresh.url, 1), nil,
		"Range", "bytes=10000000-10000031")
	expect.Must(t, err)
	expect.Equal(t, got.status, http.StatusPartialContent)
	expect.Equal(t, len(got.body), 32)
	expect.Contains(t, "and a line more\nand a line more\nand a line more\n", string(got.body))
	at := open(t, fresh.url, token, stateless)
	expect.Contains(t, at.must(t, "slice", object{"source": last.id, "lines": "1000000-1000000"}).text, "and a line more")
}
