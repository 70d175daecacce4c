package policy

import "testing"

// TestWindowOfClaude checks which window a Claude model has: the long one if its name says so, or if a report of it was
// over the short one.
func TestWindowOfClaude(t *testing.T) {
	const short, long = 200_000, 1_000_000
	for _, c := range []struct {
		model string // of the policy
		spent Spent
		want  int
	}{
		{"", Spent{Model: "claude-opus-4-7", Tokens: 199_000}, short},
		{"", Spent{Model: "claude-opus-4-7", Tokens: 200_000}, short},
		{"", Spent{Model: "claude-opus-4-7", Tokens: 200_001}, long},
		{"", Spent{Model: "claude-opus-4-7", Tokens: 210_000, Shown: 20_000}, short},
		{"", Spent{Model: "claude-opus-4-7", Tokens: 30_000, Peak: 350_000}, long},
		{"", Spent{Model: "claude-opus-4-7[1m]", Tokens: 30_000}, long},
		{"", Spent{Model: "Claude-Sonnet-4-5-20250929[1M]", Tokens: 30_000}, long},
		{"claude-opus-4-7[1m]", Spent{Model: "claude-opus-4-7", Tokens: 30_000}, long},
		{"claude-opus-4-7[1m]", Spent{Model: "claude-haiku-4-5", Tokens: 30_000}, short},
		{"claude-opus-4-7[1m]", Spent{Tokens: 30_000}, long},
		{"claude-opus-4-7", Spent{Tokens: 300_000}, long},
		{"claude-opus-4-7", Spent{Model: "o3", Tokens: 300_000}, 200_000},
		{"", Spent{Model: "gpt-5-codex", Tokens: 300_000}, 272_000},
		{"", Spent{Model: "x[1m]", Tokens: 30_000}, 0},
	} {
		c.spent.Source = "test"
		_, window, from, _ := Policy{Model: c.model}.Usable(c.spent)
		if window != c.want || (window > 0) != (from == "table") {
			t.Errorf("%q, %+v: %d from %q, want %d", c.model, c.spent, window, from, c.want)
		}
		c.spent.Window = 123_000
		if _, window, from, _ := (Policy{Model: c.model}).Usable(c.spent); window != 123_000 || from != "reported" {
			t.Errorf("%+v: the reported window is %d from %s", c.spent, window, from)
		}
	}
}
