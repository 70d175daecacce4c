package trace

import (
	"bytes"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/system/database"
	"github.com/mcp-funnel/mcp-funnel/system/database/databasetest"
)

// buffer is a log that several goroutines write.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func inDatabase(t *testing.T, url string) (*Rows, *buffer) {
	t.Helper()
	db := expect.Value(database.Open(t.Context(), database.Options{URL: url}))(t)
	t.Cleanup(db.Close)
	log := &buffer{}
	r := InDatabase(db, slog.New(slog.NewTextHandler(log, nil)))
	t.Cleanup(func() { _ = r.Close() })
	return r, log
}

// everywhere runs a test with a directory and with a database; open opens the trace as another process has it.
func everywhere(t *testing.T, test func(t *testing.T, open func() Store)) {
	t.Run("files", func(t *testing.T) {
		dir := t.TempDir()
		test(t, func() Store { return expect.Value(Open(dir))(t) })
	})
	t.Run("database", func(t *testing.T) {
		url := databasetest.URL(t)
		test(t, func() Store {
			r, _ := inDatabase(t, url)
			return r
		})
	})
}

func toolsOf(t *testing.T, s Store, since time.Time) (all []string) {
	t.Helper()
	for c, err := range s.Read(since, nil) {
		expect.Must(t, err)
		all = append(all, c.Tool)
	}
	return all
}

// TestStores has two processes of several owners, and what a line must not hold.
func TestStores(t *testing.T) {
	everywhere(t, func(t *testing.T, open func() Store) {
		a, b := open(), open()
		now := time.Now().UTC()
		want := Call{V: 1, At: now.Round(0), Session: "s", Owner: "anna", Tool: "search", Error: "\x00 \xff'\\", Kept: true}
		expect.Must(t, a.Append(want, nil))
		for c, err := range a.Read(time.Time{}, nil) {
			expect.Must(t, err)
			want.Error, want.Ref = "\x00 �'\\", c.Ref
			expect.Same(t, c, want, "its own, at once")
		}
		long := strings.Repeat("\x01世", 100_000)
		expect.Must(t, b.Append(Call{At: now.Add(time.Hour), Tool: "long", Error: long, Millis: math.NaN()}, nil))
		expect.Must(t, b.Append(Call{At: now.Add(-time.Hour), Tool: "old"}, nil))
		expect.Must(t, b.Close())
		expect.Must(t, b.Close(), "again")
		expect.Fails(t, b.Append(Call{}, nil), "closed", "after Close")
		all := toolsOf(t, a, time.Time{})
		slices.Sort(all)
		expect.EqualList(t, all, []string{"long", "old", "search"})
		expect.EqualList(t, toolsOf(t, a, now.Add(time.Minute)), []string{"long"})
		for _, err := range a.Read(time.Time{}, nil) {
			expect.Must(t, err)
			break // stopping early is no trouble
		}
	})
}

// TestManyCalls has three processes: more calls than a page, and each once, in the order of its process.
func TestManyCalls(t *testing.T) {
	everywhere(t, func(t *testing.T, open func() Store) {
		const each = pageSize
		var group sync.WaitGroup
		var all []Store
		for i := range 3 {
			s := open()
			all = append(all, s)
			group.Go(func() {
				for k := range each {
					expect.OK(t, s.Append(Call{At: time.Now(), Tool: fmt.Sprintf("%d.%04d", i, k)}, nil))
					if k%50 == 49 {
						time.Sleep(10 * time.Millisecond)
					}
				}
			})
		}
		group.Wait()
		for _, s := range all {
			expect.Must(t, s.Close())
		}
		got := toolsOf(t, all[0], time.Time{})
		expect.Equal(t, len(got), 3*each)
		for i := range 3 {
			of := slices.DeleteFunc(slices.Clone(got), func(s string) bool { return !strings.HasPrefix(s, fmt.Sprint(i)) })
			if len(of) != each || !slices.IsSorted(of) {
				t.Errorf("%d calls of process %d, in order: %v", len(of), i, slices.IsSorted(of))
			}
		}
	})
}

// TestPartitions has replicas that begin days at once, and removes days that are too old.
func TestPartitions(t *testing.T) {
	url := databasetest.URL(t)
	var all []*Rows
	for range 4 {
		r, _ := inDatabase(t, url)
		all = append(all, r)
	}
	at := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	for d := range 35 {
		var group sync.WaitGroup
		for _, r := range all {
			r.now = func() time.Time { return at }
			group.Go(func() {
				expect.OK(t, r.Append(Call{At: at, Tool: fmt.Sprint(d)}, nil))
				_ = r.flush()
			})
		}
		group.Wait()
		at = at.AddDate(0, 0, 1)
	}
	at = at.AddDate(0, 0, -1)
	all[0].expire() // the race for the last one may have been won by one that began too early
	got := toolsOf(t, all[0], time.Time{})
	if len(got) != 4*31 || got[0] != "4" {
		t.Errorf("%d calls from day %s on", len(got), got[0])
	}
	databasetest.Exec(t, url, `do $$ begin
		if (select count(*) from pg_inherits where inhparent = 'trace'::regclass) <> 31 then
			raise exception 'a partition too many, or too few';
		end if; end $$`)
	// Lines that are not ours are skipped.
	databasetest.Exec(t, url, "insert into trace (owner, at, day, line) select '*', at, day, 'x' from trace limit 1",
		`insert into trace (owner, at, day, line) select '*', at, day, '{"v":2}' from trace limit 1`)
	skipped := 0
	for _, err := range all[0].Read(time.Time{}, &skipped) {
		expect.Must(t, err)
	}
	expect.Equal(t, skipped, 2)
}

// TestAway stops the database: calls wait, those beyond the limit are lost, and the log says how many.
func TestAway(t *testing.T) {
	r, log := inDatabase(t, databasetest.URL(t))
	expect.Must(t, r.Append(Call{At: time.Now(), Tool: "first"}, nil))
	expect.Equal(t, len(toolsOf(t, r, time.Time{})), 1)
	databasetest.Stop(t)
	for range maxPending + 7 {
		expect.Must(t, r.Append(Call{At: time.Now(), Tool: "waits"}, nil))
	}
	_ = r.flush()
	expect.Has(t, log.String(), "is not available")
	for _, err := range r.Read(time.Time{}, nil) {
		expect.Fails(t, err, "read trace")
	}
	databasetest.Start(t)
	expect.Equal(t, len(toolsOf(t, r, time.Time{})), 1+maxPending)
	expect.Has(t, log.String(), "lost=7")
	databasetest.Stop(t)
	expect.Must(t, r.Append(Call{At: time.Now(), Tool: "lost"}, nil))
	expect.Fails(t, r.Close(), "1 calls are lost")
}
