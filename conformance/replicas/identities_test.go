package replicas

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// lookups are all ways to an observation; $ID is its ID with obs:, $BARE without.
var lookups = []struct {
	method string
	params object
}{
	{"tools/call", object{"name": "slice", "arguments": object{"source": "$ID", "lines": "1-5"}}},
	{"tools/call", object{"name": "grep", "arguments": object{"source": "$ID", "pattern": "secret"}}},
	{"tools/call", object{"name": "jq", "arguments": object{"source": "$ID", "filter": "."}}},
	{"tools/call", object{"name": "read", "arguments": object{"path": "$ID"}}},
	{"tools/call", object{"name": "search", "arguments": object{"path": "$ID", "pattern": "secret"}}},
	{"tools/call", object{"name": "search", "arguments": object{"path": "obs:", "pattern": "secret"}}},
	{"tools/call", object{"name": "find", "arguments": object{"path": "$ID"}}},
	{"tools/call", object{"name": "find", "arguments": object{"path": "obs:"}}},
	{"tools/call", object{"name": "run", "arguments": object{"command": "cat $OBS/$BARE; ls -la $OBS/"}}},
	{"resources/read", object{"uri": "observation://$BARE"}},
	{"resources/list", object{}},
	{"completion/complete", object{
		"ref":      object{"type": "ref/resource", "uri": "observation://{id}"},
		"argument": object{"name": "id", "value": "$START"},
	}},
}

// lookUp makes all lookups for an ID at a replica, and returns the answers.
func lookUp(t testing.TB, c *client, id string) (all []string) {
	t.Helper()
	bare := strings.TrimPrefix(id, "obs:")
	fill := strings.NewReplacer("$ID", id, "$BARE", bare, "$START", bare[:2])
	for _, l := range lookups {
		text, err := json.Marshal(l.params)
		expect.Must(t, err)
		var params object
		expect.Must(t, json.Unmarshal([]byte(fill.Replace(string(text))), &params))
		result, _, err := c.send(t.Context(), l.method, params)
		answer := string(result)
		if err != nil {
			answer = err.Error()
		}
		for what, as := range times {
			answer = what.ReplaceAllString(answer, as)
		}
		all = append(all, answer)
	}
	url, err := c.link(t.Context(), id)
	return append(all, fmt.Sprint(url, err))
}

// TestIdentitiesAreApart has one identity look for what another one has kept, by all ways and at each replica. What it
// gets must be what it gets for an ID that never was. The control is the owner, who finds it.
func TestIdentitiesAreApart(t *testing.T) {
	t.Parallel()
	m := trio(t, newFakeObjects(t), []string{"anna", "bert"}, "--sandbox", "best-effort")
	anna := open(t, m.replicas[0].url, m.tokens["anna"], stateless)
	const never = "obs:zzzzzzzzzzz9"
	var ids []string
	for _, size := range []int{200, 30_000} { // in a row, and in an object
		id, _, err := anna.put(t.Context(), []byte(strings.Repeat("a secret of anna\n", size)))
		expect.Must(t, err)
		ids = append(ids, id)
	}
	cases, found := 0, 0
	for _, r := range m.replicas {
		bert, owner := open(t, r.url, m.tokens["bert"], stateless), open(t, r.url, m.tokens["anna"], stateless)
		bert.must(t, "run", object{"command": "seq 1000"})
		for _, id := range ids {
			unknown, of := lookUp(t, bert, never), strings.NewReplacer(
				never, id, strings.TrimPrefix(never, "obs:"), strings.TrimPrefix(id, "obs:"))
			for i, got := range lookUp(t, bert, id) {
				cases++
				if strings.Contains(got, "secret of anna") || got != of.Replace(unknown[i]) {
					t.Errorf("replica %s, %v of another's: %.600s\nof none: %s", r.name, lookupName(i), got, of.Replace(unknown[i]))
				}
			}
			for i, got := range lookUp(t, owner, id) {
				if strings.Contains(got, "secret of anna") || got != of.Replace(unknown[i]) && strings.Contains(got, id[4:]) {
					found++
				} else {
					t.Errorf("the control: at replica %s its owner does not find it by %v: %.300s", r.name, lookupName(i), got)
				}
			}
		}
		link, err := owner.link(t.Context(), ids[0])
		expect.Must(t, err)
		forged := strings.Replace(strings.Replace(link, "anna", "bert", 1), m.balancer.URL, r.url, 1)
		g, err := request(t.Context(), http.MethodGet, forged, nil)
		expect.Must(t, err)
		expect.Equal(t, g.status, http.StatusForbidden, "a link for another owner")
	}
	t.Logf("%d lookups of another's observations; their owner found them by %d", cases, found)
}

func lookupName(i int) any {
	if i < len(lookups) {
		return lookups[i]
	}
	return "a link"
}

// TestQuotaIsExact has three replicas keep outputs of one identity at the same time: together they keep as much as its
// quota has room for, and what is counted is what is stored.
func TestQuotaIsExact(t *testing.T) {
	t.Parallel()
	const quota = 4 << 20
	m := trio(t, newFakeObjects(t), []string{"anna", "bert"}, "--quota-per-identity", fmt.Sprint(quota))
	var kept, refused atomic.Int64
	var group sync.WaitGroup
	put := func(c *client, size int) {
		_, _, err := c.put(t.Context(), []byte(strings.Repeat("0123456789abcde\n", size/16)))
		switch {
		case err == nil:
			kept.Add(1)
		case strings.Contains(err.Error(), "quota of this identity"):
			refused.Add(1)
		default:
			t.Error(err)
		}
	}
	for _, r := range m.replicas {
		c := open(t, r.url, m.tokens["anna"], stateless)
		for _, size := range []int{50_000, 100_000} { // in rows, and in objects
			group.Go(func() {
				for range promise.Size(20, 100) {
					put(c, size)
				}
			})
		}
	}
	watched := make(chan struct{})
	most := int64(0)
	go func() {
		defer close(watched)
		for refused.Load() == 0 && !t.Failed() {
			u, _ := m.usage(t)
			most = max(most, u)
			time.Sleep(50 * time.Millisecond)
		}
	}()
	group.Wait()
	<-watched
	time.Sleep(1100 * time.Millisecond) // an owner without room is not looked at for a second
	c := open(t, m.balancer.URL, m.tokens["anna"], stateless)
	const last = 10_000
	for before := int64(-1); before != kept.Load(); {
		before = kept.Load()
		put(c, last)
	}
	used, stored := m.usage(t)
	expect.Equal(t, used, stored, "what is counted, and what is stored")
	if used > quota || most > quota || quota-used > last+4096 {
		t.Errorf("%d bytes of %d are used, meanwhile %d", used, quota, most)
	}
	_, _, err := open(t, m.balancer.URL, m.tokens["bert"], stateless).put(t.Context(), make([]byte, 1<<20))
	expect.OK(t, err, "another identity")
	t.Logf("%d kept, %d refused: %d of %d bytes, meanwhile at most %d", kept.Load(), refused.Load(), used, quota, most)
}

// usage returns what counts for anna's quota, and what is stored of hers.
func (m *team) usage(t testing.TB) (counted, stored int64) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, m.database)
	if err == nil {
		defer func() { _ = conn.Close(ctx) }()
		_, err = conn.Exec(ctx, "set funnel.owner = '*'")
	}
	if err == nil {
		err = conn.QueryRow(ctx, `select coalesce((select bytes from usage where owner = 'anna'), 0),
			(select coalesce(sum(counted), 0)::bigint from observations where owner = 'anna')`).Scan(&counted, &stored)
	}
	expect.OK(t, err)
	return counted, stored
}
