package delta

import (
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// A secret is masked before it is cut to be quoted; one that changed is not said to be equal.
func TestSinceMasks(t *testing.T) {
	mask := func(s string) string {
		return strings.NewReplacer("SECRET-1", "[masked]", "SECRET-2", "[masked]").Replace(s)
	}
	lead := strings.Repeat("x", 90)
	for now, want := range map[string]string{
		lead + "SECRET-1 b\n": "only white space or masked secrets differ",
		lead + "SECRET-2 c\n": "[masked] c",
	} {
		text := NewText(true)
		text.Add([]byte(now))
		got, _ := text.since("obs:x", []byte(lead+"SECRET-2 b\n"), mask)
		if !strings.Contains(got, want) || strings.Contains(got, "SECRET") || strings.Contains(got, "CRET") {
			t.Errorf("%s", got)
		}
	}
}

// What is said of a text by what stood before it: of data each byte counts, of a command's output times do not.
func TestSince(t *testing.T) {
	long := strings.Repeat("x", 200)
	for _, c := range []struct{ before, now, ran, data string }{
		{"a\ntimeout: 5s\n", "a\ntimeout: 900s\n",
			"only times or addresses differ, in 1 line: -timeout: 5s | +timeout: 900s",
			"1 line added, 1 removed: -timeout: 5s | +timeout: 900s"},
		{"at 10:00:00\nto 0xdeadbeef\nsame\n", "at 15:30:00\nto 0xcafebabe\nsame\n",
			"only times or addresses differ, in 2 lines: -at 10:00:00 | +at 15:30:00 | -to 0xdeadbeef | +to 0xcafebabe",
			"2 lines added, 2 removed: -at 10:00:00 | -to 0xdeadbeef | +at 15:30:00 | … and 1 more"},
		{"took 5ms\nold\n", "took 7ms\nnew 3 min\n",
			"1 line added, 1 removed, times and addresses aside: -old | +new 3 min",
			"2 lines added, 2 removed: -took 5ms | -old | +took 7ms | … and 1 more"},
		{long + " 5s\n", long + " 6s\n",
			"only times or addresses differ, in 1 line: -…" + long[:29] + " 5s | +…" + long[:29] + " 6s",
			"1 line added, 1 removed: -" + content.ClipBytes(long+" 5s", 100) + " | +" + content.ClipBytes(long+" 6s", 100)},
		{"5\nseconds\n", "6\nseconds\n",
			"1 line added, 1 removed, times and addresses aside: -5 | +6", "1 line added, 1 removed: -5 | +6"},
		{"a\nb", "a\nb\n", "only white space or masked secrets differ", "only white space or masked secrets differ"},
		{"a\nb", "a\nb\nc", "1 line added, 0 removed, times and addresses aside: +c", "1 line added, 0 removed: +c"},
		{"\nb\n", "a\n\nb\n", "1 line added, 0 removed, times and addresses aside: +a", "1 line added, 0 removed: +a"},
		{`[{"at":"2026-01-01"},{"n":1}]`, `[{"at":"2026-01-02"},{"n":1}]`,
			`only times or addresses differ, in 1 line, of the JSON with a line for each value: -"at": "2026-01-01" | +"at": "2026-01-02"`,
			`1 line added, 1 removed, of the JSON with a line for each value: -"at": "2026-01-01" | +"at": "2026-01-02"`},
	} {
		for exact, want := range map[bool]string{false: c.ran, true: c.data} {
			now := NewText(exact)
			now.Add([]byte(c.now))
			if got, _ := now.since("obs:x", []byte(c.before), func(s string) string { return s }); got != "since obs:x: "+want {
				t.Errorf("%q after %q, exact %t:\n%s\nwant %s", c.now, c.before, exact, got, want)
			}
		}
	}
}
