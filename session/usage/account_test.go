package usage

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/records"
)

var noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

// opened returns accounts whose clock the test sets.
func opened(t testing.TB) (*Accounts, *time.Time) {
	t.Helper()
	s, at := OpenAccounts(records.InDir(t.TempDir())), new(time.Time)
	*at = noon
	s.now = func() time.Time { return *at }
	return s, at
}

func read(t testing.TB, s *Accounts, session string) Account {
	t.Helper()
	return expect.Value(s.Read("local", session))(t)
}

func TestNoAccountIsZero(t *testing.T) {
	s, _ := opened(t)
	if a := read(t, s, "none"); a.Report != nil || a.Shown != 0 {
		t.Errorf("%+v", a)
	}
}

// TestReportRules has one row for each rule of what a report changes. The session has a report of 50,000 tokens in turn
// t1, made at noon, and 700 tokens were shown at noon + 1 s.
func TestReportRules(t *testing.T) {
	second := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Second) }
	for _, c := range []struct {
		name          string
		u             Usage
		prompt, shown int
	}{
		{"another turn", Usage{Turn: "t2", PromptTokens: 51_000, At: second(2)}, 51_000, 0},
		{"figures that go backwards", Usage{Turn: "t2", PromptTokens: 9_000, At: second(2)}, 9_000, 0},
		{"the same turn and figures", Usage{Turn: "t1", PromptTokens: 50_000, At: second(2)}, 50_000, 700},
		{"the same figures, turn unknown", Usage{PromptTokens: 50_000, At: second(2)}, 50_000, 700},
		{"the same figures in another turn", Usage{Turn: "t2", PromptTokens: 50_000, At: second(2)}, 50_000, 0},
		{"an older report", Usage{Turn: "t0", PromptTokens: 40_000, At: second(-1)}, 50_000, 700},
		{"made before the output", Usage{Turn: "t2", PromptTokens: 50_100, At: second(0)}, 50_100, 700},
		{"without a time", Usage{Turn: "t2", PromptTokens: 52_000}, 52_000, 0},
		{"from a clock ahead", Usage{Turn: "t2", PromptTokens: 52_000, At: second(9_999)}, 52_000, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, clock := opened(t)
			expect.Must(t, s.Report("local", "s", Usage{Turn: "t1", PromptTokens: 50_000, Window: 200_000, At: noon}))
			*clock = second(1)
			expect.Must(t, s.show("local", "s", 700))
			*clock = second(3)
			expect.Must(t, s.Report("local", "s", c.u))
			a := read(t, s, "s")
			if a.Report.PromptTokens != c.prompt || a.Shown != c.shown {
				t.Errorf("prompt %d, shown %d; want %d, %d", a.Report.PromptTokens, a.Shown, c.prompt, c.shown)
			}
			expect.Equal(t, a.Report.Window, 200_000, "the window was forgotten: %+v", a.Report)
			if a.Report.At.After(*clock) {
				t.Errorf("a report of the future: %v", a.Report.At)
			}
		})
	}
}

func TestReportAfterTheClockWasSetBack(t *testing.T) {
	s, clock := opened(t)
	expect.Must(t, s.Report("local", "s", Usage{Turn: "t1", PromptTokens: 50_000}))
	expect.Must(t, s.Reset("local", "s"))
	expect.Must(t, s.Report("local", "s", Usage{Turn: "t2", PromptTokens: 60_000}))
	*clock = noon.Add(-24 * time.Hour)
	expect.Must(t, s.Report("local", "s", Usage{Turn: "t3", PromptTokens: 70_000}))
	if a := read(t, s, "s"); a.Report.PromptTokens != 70_000 {
		t.Errorf("%+v", a.Report)
	}
}

func TestReset(t *testing.T) {
	s, clock := opened(t)
	expect.Must(t, s.Report("local", "s", Usage{Turn: "t1", PromptTokens: 50_000}))
	expect.Must(t, s.show("local", "s", 700))
	*clock = noon.Add(time.Second)
	expect.Must(t, s.Reset("local", "s"))
	a := read(t, s, "s")
	if a.Report != nil || a.Shown != 0 || a.Notices != 0 || a.Resets != 1 {
		t.Errorf("%+v", a)
	}
	// A report from before the compaction arrives late.
	expect.Must(t, s.Report("local", "s", Usage{Turn: "t1", PromptTokens: 50_000, At: noon}))
	if a := read(t, s, "s"); a.Report != nil {
		t.Errorf("a report from before the reset was taken: %+v", a.Report)
	}
}

// A client announces one compaction by PostCompact and SessionStart.
func TestTwoHooksOfOneCompaction(t *testing.T) {
	s, clock := opened(t)
	for _, c := range []struct {
		after time.Duration
		want  int
	}{{0, 1}, {2 * time.Second, 1}, {2 * time.Minute, 2}} {
		*clock = noon.Add(c.after)
		expect.Must(t, s.Reset("local", "s"))
		if a := read(t, s, "s"); a.Resets != c.want {
			t.Errorf("after %v: %d resets, want %d", c.after, a.Resets, c.want)
		}
	}
}

func TestForgetChangesNothingWithoutAReportOfTheSource(t *testing.T) {
	s, _ := opened(t)
	expect.Must(t, s.show("local", "s", 700))
	expect.Must(t, s.Forget("local", "s", FromStatusLine))
	if a := read(t, s, "s"); a.Shown != 700 || a.Resets != 0 {
		t.Errorf("%+v", a)
	}
	expect.Must(t, s.Report("local", "s", Usage{PromptTokens: 1, Source: FromHook}))
	expect.Must(t, s.Forget("local", "s", FromStatusLine))
	if a := read(t, s, "s"); a.Report == nil {
		t.Error("the report of a hook was forgotten")
	}
	expect.Must(t, s.Report("local", "s", Usage{PromptTokens: 2, Source: FromStatusLine}))
	expect.Must(t, s.Forget("local", "s", FromStatusLine))
	expect.Must(t, s.Forget("local", "s", FromStatusLine))
	if a := read(t, s, "s"); a.Report != nil || a.Resets != 1 {
		t.Errorf("%+v", a)
	}
}

func TestSessionsAndOwnersAreApart(t *testing.T) {
	s, _ := opened(t)
	for i, k := range [][2]string{{"a", "s"}, {"b", "s"}, {"a", "t"}, {"as", ""}, {"", "as"}, {"a:", "s"}, {"../x", "s"}} {
		expect.Must(t, s.show(k[0], k[1], i+1))
	}
	for i, k := range [][2]string{{"a", "s"}, {"b", "s"}, {"a", "t"}, {"as", ""}, {"", "as"}, {"a:", "s"}, {"../x", "s"}} {
		if a, err := s.Read(k[0], k[1]); err != nil || a.Shown != i+1 {
			t.Errorf("%q: %+v, %v", k, a, err)
		}
	}
}

func TestJoin(t *testing.T) {
	s, _ := opened(t)
	expect.Must(t, s.Join("local", "toolu_1", "s", "explorer"))
	if session, agent, ok := s.Lookup("local", "toolu_1"); session != "s" || agent != "explorer" || !ok {
		t.Errorf("%q %q %v", session, agent, ok)
	}
	if _, _, ok := s.Lookup("other", "toolu_1"); ok {
		t.Error("another owner found the call")
	}
	if _, _, ok := s.Lookup("local", "toolu_2"); ok {
		t.Error("an unknown call was found")
	}
}

// TestShownIsNeverLost compares the account with the sum of what was shown, over random orders of reports and outputs.
func TestShownIsNeverLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a Account
		type event struct {
			at     time.Time
			tokens int
		}
		var all []event
		now := noon
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "pause")) * time.Second)
			if n := rapid.IntRange(0, 500).Draw(t, "tokens"); n > 50 {
				a.Show(n, now)
				all = append(all, event{now, n})
				continue
			}
			at := now.Add(-time.Duration(rapid.IntRange(0, 9).Draw(t, "late")) * time.Second)
			a.Enter(Usage{
				Turn:         rapid.SampledFrom([]string{"", "1", "2", "3"}).Draw(t, "turn"),
				PromptTokens: rapid.IntRange(1, 4).Draw(t, "prompt"), At: at,
			}, now)
		}
		want := 0
		for _, e := range all {
			if a.Report == nil || e.at.After(a.Report.At) {
				want += e.tokens
			}
		}
		if a.Shown < want {
			t.Fatalf("shown %d, but %d were shown after the report", a.Shown, want)
		}
		if len(a.Recent) > maxRecent {
			t.Fatalf("%d recent outputs", len(a.Recent))
		}
	})
}

func TestParallelUpdates(t *testing.T) {
	store := t.TempDir()
	var all sync.WaitGroup
	for range 4 { // as four processes: each has its own lock file open
		s := OpenAccounts(records.InDir(store))
		for range 8 {
			all.Go(func() {
				for range 5 {
					err := s.show("local", "s", 1)
					for n := 0; n < 10 && err != nil && strings.Contains(err.Error(), "try again"); n++ {
						err = s.show("local", "s", 1) // a disk may hold up whoever has the lock for a second
					}
					expect.OK(t, err)
				}
			})
		}
	}
	all.Wait()
	a, err := OpenAccounts(records.InDir(store)).Read("local", "s")
	expect.OK(t, err, "%+v", a)
	expect.Equal(t, a.Shown, 160, "%+v", a)
}

func TestTornFilesBeginAnew(t *testing.T) {
	s, _ := opened(t)
	expect.Must(t, s.show("local", "s", 5))
	path := s.records.Where(accountOf("local", "s"))
	for _, content := range []string{
		"", `{"shown":5`, "[]", "null", `{"shown":5,"notices":"x"}`, string(make([]byte, records.Account.Limit+1)),
	} {
		expect.Must(t, os.WriteFile(path, []byte(content), 0o600))
		expect.Must(t, s.show("local", "s", 7))
		if a := read(t, s, "s"); a.Shown != 7 {
			t.Errorf("%.20q: %+v", content, a)
		}
	}
}

func TestAccountsSurviveARoundTrip(t *testing.T) {
	s, _ := opened(t)
	want := Account{
		Report: &Usage{
			Session: "s", Turn: "t", PromptTokens: 1, ResponseTokensReserved: 2, Window: 3, At: noon, Source: FromMeta,
		},
		Shown: 4, Notices: 5, Resets: 6, Updated: noon, Pointers: 7, Recent: []Output{{noon, 4}}, ResetAt: noon,
	}
	expect.Must(t, s.Update("local", "s", func(a *Account) { *a = want }))
	expect.Same(t, read(t, s, "s"), want)
}

// TestPeak checks that the largest prompt of a model is kept over smaller reports and over a compaction, and not for
// another model.
func TestPeak(t *testing.T) {
	all := OpenAccounts(records.InDir(t.TempDir()))
	report := func(model string, tokens int) {
		t.Helper()
		u := Usage{Model: model, PromptTokens: tokens, Turn: fmt.Sprint(tokens), Source: FromClaude}
		expect.Must(t, all.Report("o", "s", u))
	}
	for _, c := range []struct {
		model  string
		tokens int
		reset  bool
		peak   int
	}{
		{"a", 250_000, false, 250_000}, {"a", 30_000, false, 250_000}, {"", 40_000, false, 250_000},
		{"a", 30_001, true, 250_000}, {"b", 20_000, false, 20_000}, {"b", 260_000, false, 260_000},
	} {
		if c.reset {
			expect.Must(t, all.Reset("o", "s"))
		}
		report(c.model, c.tokens)
		if a, err := all.Read("o", "s"); err != nil || a.Peak == nil || a.Peak.Tokens != c.peak {
			t.Errorf("%+v: %v, %+v", c, err, a.Peak)
		}
	}
	expect.Must(t, all.Report("o", "t", Usage{Session: "t", PromptTokens: 1, Source: FromCodex}))
	if list, err := all.List(); err != nil || len(list) != 2 || list[0].Report.Session != "t" {
		t.Errorf("%v, %+v", err, list)
	}
}

// show adds tokens that were shown to a session now.
func (s *Accounts) show(owner, session string, tokens int) error {
	return s.Update(owner, session, func(a *Account) { a.Show(tokens, s.now()) })
}
