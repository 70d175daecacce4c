package viewer

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/mcp-funnel/mcp-funnel/session/stats"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
)

const (
	day        = 24 * time.Hour
	maxDays    = int64(trace.Retention / day)
	maxDigests = 4
	overlap    = 2 * time.Hour // calls that began so long before the last reading may have been added since
)

// digest is what pages know of the calls of an owner, about 300 bytes of each. They are read in the background once on
// each day (in UTC); from then on only the last ones are read again, if any were added. Calls that are copied into
// earlier days are seen on the next day.
type digest struct {
	owner string // "": all
	today time.Time

	mu      sync.Mutex
	busy    chan struct{} // closed when the reading that goes on ends; nil: none does
	whole   bool          // all was read
	read    time.Time     // the last time
	stamp   string        // of the trace then
	skipped int           // lines
	err     error         // of any reading
	calls   []*callAt     // in the order in which they began
	groups  map[[2]string]*group
	last    map[int64]*stats.Sum // of the last days, by their number
	byDay   [maxDays]*stats.Sum  // today first
}

// callAt is where a call is found. It is never changed.
type callAt struct {
	ref, tool   string
	at          time.Time
	group       *group
	spent, left int64 // in its context; both 0: not known
}

// group is the calls of a session.
type group struct {
	key, owner, client string
	calls              []*callAt
	sum                *stats.Sum
}

func (g *group) last() time.Time { return g.calls[len(g.calls)-1].at }

// digest returns what is known of the calls that the person may see, and locks it: the caller must unlock mu. If more
// is being read, the page loads itself again.
func (q *request) digest() *digest {
	today := time.Now().UTC().Truncate(day)
	q.mu.Lock()
	d, _ := q.digests.Get(q.ofAll())
	if d == nil || d.today != today || d.lacks() {
		d = &digest{owner: q.ofAll(), today: today, groups: map[[2]string]*group{}, last: map[int64]*stats.Sum{}}
		for _, n := range choices {
			d.last[n] = stats.New()
		}
		for i := range d.byDay {
			d.byDay[i] = stats.New()
		}
		q.digests.Put(q.ofAll(), d, 1)
	}
	q.mu.Unlock()
	d.mu.Lock()
	if d.busy == nil {
		d.busy = make(chan struct{})
		q.background.Go(func() { q.readCalls(d) })
	}
	busy := d.busy
	d.mu.Unlock()
	select {
	case <-busy:
	case <-time.After(patience):
		q.wait = true
	}
	d.mu.Lock()
	return d
}

// lacks reports whether a part of the trace could not be read over a minute ago: all is read again.
func (d *digest) lacks() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err != nil && time.Since(d.read) > time.Minute
}

// readCalls adds to a digest what was added to the trace.
func (v *Viewer) readCalls(d *digest) {
	now, skipped, known := time.Now(), 0, map[string]bool{}
	stamp, err := v.o.Trace.Changed()
	d.mu.Lock()
	defer d.mu.Unlock()
	if since := d.today.Add(day - trace.Retention); !d.whole || err != nil || stamp != d.stamp {
		if d.whole {
			since = d.read.Add(-overlap)
		}
		for i := len(d.calls) - 1; i >= 0 && !d.calls[i].at.Before(since); i-- {
			known[d.calls[i].ref] = true
		}
		d.mu.Unlock()
		for c, wrong := range v.o.Trace.Read(since, &skipped) {
			if v.ctx.Err() != nil {
				break
			}
			d.mu.Lock()
			if err = cmp.Or(err, wrong); wrong == nil && !known[c.Ref] && (d.owner == "" || c.Owner == d.owner) {
				d.add(c)
			}
			d.mu.Unlock()
		}
		d.mu.Lock()
		inTime := func(a, b *callAt) int { return a.at.Compare(b.at) }
		slices.SortStableFunc(d.calls, inTime)
		for _, g := range d.groups {
			slices.SortStableFunc(g.calls, inTime)
		}
		d.whole, d.read, d.stamp, d.err, d.skipped = true, now, stamp, cmp.Or(d.err, err), max(d.skipped, skipped)
	}
	close(d.busy)
	d.busy = nil
}

// add adds one call.
func (d *digest) add(c trace.Call) {
	key := [2]string{c.Owner, c.Group()}
	g := d.groups[key]
	if g == nil {
		g = &group{key: key[1], owner: key[0], sum: stats.New()}
		d.groups[key] = g
	}
	g.client = cmp.Or(g.client, c.Client)
	one := &callAt{ref: c.Ref, tool: toolOf(c), at: c.At, group: g}
	if c.Limited {
		one.spent, one.left = int64(c.Spent), int64(c.Left)
	}
	d.calls, g.calls = append(d.calls, one), append(g.calls, one)
	g.sum.Add(c)
	ago := max(int64(d.today.Sub(c.At.Truncate(day))/day), 0)
	d.byDay[min(ago, maxDays-1)].Add(c)
	for n, sum := range d.last {
		if ago < n {
			sum.Add(c)
		}
	}
}

// notes say what the figures of a page lack.
func (d *digest) notes() (all []string) {
	if !d.whole {
		all = append(all, "The trace is being read: "+grouped(int64(len(d.calls)))+" calls so far.")
	}
	if d.skipped > 0 {
		all = append(all, grouped(int64(d.skipped))+" lines of the trace were skipped: torn, or of another version.")
	}
	if d.err != nil {
		all = append(all, "A part of the trace cannot be read: "+d.err.Error())
	}
	return all
}
