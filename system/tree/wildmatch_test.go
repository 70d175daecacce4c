package tree

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// slow implements wildmatch by its definition and tries every match.
func slow(p, t string, start bool) bool {
	if p == "" {
		return t == ""
	}
	switch p[0] {
	case '*':
		rest := strings.TrimLeft(p, "*")
		any := false
		if len(p)-len(rest) > 1 && start {
			switch {
			case rest == "":
				return true
			case rest[0] == '/':
				if slow(rest[1:], t, true) {
					return true
				}
				any = true
			case strings.HasPrefix(rest, `\/`):
				any = true
			}
		}
		for i := 0; ; i++ {
			if slow(rest, t[i:], false) {
				return true
			}
			if i == len(t) || t[i] == '/' && !any {
				return false
			}
		}
	case '?':
		return t != "" && t[0] != '/' && slow(p[1:], t[1:], false)
	case '[':
		if t == "" {
			return false
		}
		in, next := matchClass(p, 1, t[0])
		return next >= 0 && in && t[0] != '/' && slow(p[next:], t[1:], false)
	case '\\':
		return len(p) > 1 && t != "" && t[0] == p[1] && slow(p[2:], t[1:], p[1] == '/')
	}
	return t != "" && t[0] == p[0] && slow(p[1:], t[1:], p[0] == '/')
}

func TestWildmatchIsWhatItsDefinitionSays(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	from := func(pieces []string, n int) string {
		var b strings.Builder
		for range r.IntN(n) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		return b.String()
	}
	matched := 0
	for range 200_000 {
		p := from([]string{"a", "b", "/", "*", "**", "?", "**/", "/**", "[ab]", "[!a]", `\a`, `**\/`, "/**/"}, 9)
		s := from([]string{"a", "b", "/", "a/", "ab"}, 10)
		if neverMatches(p) {
			continue
		}
		got, want := wildmatch(p, s), slow(p, s, true)
		expect.MustEqual(t, got, want, "wildmatch(%q, %q)", p, s)
		if got {
			matched++
		}
	}
	if matched < 10_000 {
		t.Errorf("only %d matches", matched)
	}
}

func FuzzWildmatch(f *testing.F) {
	for _, p := range wild {
		f.Add(p, "a/b")
		f.Add("a/"+p+"/b*", "a/x/y/ba")
	}
	f.Fuzz(func(t *testing.T, p, s string) {
		if len(p) > 14 || len(s) > 14 || strings.Contains(p, "\x00") {
			wildmatch(p, s)
			return
		}
		if neverMatches(p) {
			return // never asked
		}
		if got, want := wildmatch(p, s), slow(p, s, true); got != want {
			t.Errorf("wildmatch(%q, %q) = %v", p, s, got)
		}
	})
}

// Patterns that take git years take little time here.
func TestWildmatchNeverTakesLong(t *testing.T) {
	for _, p := range []string{strings.Repeat("*a", 100) + "*b", strings.Repeat("**/", 100) +
		"b", strings.Repeat("**/a*", 60) + "/b", strings.Repeat("[a*]*", 60) + "b"} {
		for _, s := range []string{strings.Repeat("a", 4000), strings.Repeat("a/", 2000) + "a"} {
			if wildmatch(p, s) {
				t.Errorf("%.20q matches %.20q", p, s)
			}
		}
	}
}

func FuzzRules(f *testing.F) {
	f.Add([]byte("*\n!*/\n!*.go\n"), "a/b.go")
	f.Add([]byte("\xef\xbb\xbf#\r\n/a\r\nb/\r\n\\ \n"), " ")
	f.Add([]byte("**/x\n**/*.go\n*.tar.gz\n!**\n[[:nope:]]\n\\\n/\n//\n!\n"), "x/y")
	f.Fuzz(func(t *testing.T, text []byte, p string) {
		s := compile(text, 0, nil)
		s.ignores(p, nameOf(p), false)
		// A last line that ignores everything decides; one that negates it decides again.
		more := append(append([]byte{}, text...), "\n**\n"...)
		if p != "" && !compile(more, 0, nil).ignores(p, nameOf(p), false) {
			t.Errorf("%q: not ignored by a last line **", p)
		}
		if compile(append(more, "!**\n"...), 0, nil).ignores(p, nameOf(p), true) {
			t.Errorf("%q: ignored after a last line !**", p)
		}
	})
}

func BenchmarkRules(b *testing.B) {
	s := compile(
		[]byte(
			"node_modules/\n*.o\n*.a\n*.so\n/build\n/dist/\n!keep.o\n*.tmp\n.idea\n**/gen/*.pb.go\n/doc/*.html\n[Tt]humbs.db\n*~\n",
		),
		0, nil,
	)
	b.ReportAllocs()
	for b.Loop() {
		s.ignores("internal/tree/walk.go", "walk.go", false)
	}
}
