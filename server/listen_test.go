package server

import (
	"testing"

	"github.com/mcp-funnel/mcp-funnel/server/servertest"
)

// TestListensFull words each of the bounds that a subscription may meet.
func TestListensFull(t *testing.T) {
	for _, k := range []struct {
		all, each int
		want      string
	}{
		{3, 2, "too many open subscriptions, 2 of this identity; cancel one"},
		{2, 2, "too many open subscriptions, 2 of this identity; cancel one"},
		{1, 2, "too many open subscriptions, 1 of all identities; try again later"},
	} {
		s := newTestServer(t, withStore(t))
		s.listens.Total, s.listens.PerOwner = k.all, k.each
		l := newModernListener(t, s, "ann")
		for i := range min(k.all, k.each) {
			l.listenTo(string(rune('1'+i)), `{"resourcesListChanged":true}`)
			l.next("acknowledged")
		}
		servertest.Within(t, "one too many", l.listenTo("9", `{"resourcesListChanged":true}`))
		l.next(`"id":9`, "-32010", k.want)
		l.conn.end(ErrCancelled)
	}
}

func withStore(t testing.TB) func(*Options) {
	return func(o *Options) { o.Store = servertest.NewTestStore(t) }
}
