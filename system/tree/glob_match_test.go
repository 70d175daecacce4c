package tree

import (
	"path"
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"
	"pgregory.net/rapid"
)

// mayMatchBelow reports whether a walk enters the directory p.
func (g *Glob) mayMatchBelow(p string) bool {
	s := g.begin()
	for name := range strings.SplitSeq(p, "/") {
		if s = g.below(g.after(s, name)); s == nil {
			return false
		}
	}
	return true
}

// pathGlob matches each pattern by itself, from the start of the path.
type pathGlob struct{ alternatives, except [][]string }

// matchNames tries again after the latest "**" only.
func matchNames(parts []string, p string) bool {
	after, from := 0, ""
	at := 0
	for {
		switch {
		case at < len(parts) && parts[at] == "**":
			if at++; at == len(parts) {
				return true
			}
			after, from = at, p
			continue
		case p == "":
			return at == len(parts)
		case at < len(parts):
			name, rest, _ := strings.Cut(p, "/")
			if doublestar.MatchUnvalidated(parts[at], name) {
				at, p = at+1, rest
				continue
			}
		}
		if from == "" {
			return false
		}
		_, from, _ = strings.Cut(from, "/")
		at, p = after, from
	}
}

func mayMatchBelow(parts []string, p string) bool {
	for _, part := range parts {
		if part == "**" || p == "" {
			return true
		}
		var name string
		name, p, _ = strings.Cut(p, "/")
		if !doublestar.MatchUnvalidated(part, name) {
			return false
		}
	}
	return false
}

func (g pathGlob) is(p string, which func(parts []string, p string) bool) bool {
	for _, parts := range g.alternatives {
		if which(parts, p) {
			return !g.excludes(p)
		}
	}
	return false
}

func (g pathGlob) excludes(p string) bool {
	for ; p != "."; p = path.Dir(p) {
		for _, parts := range g.except {
			if matchNames(parts, p) {
				return true
			}
		}
	}
	return false
}

// A compiled glob matches the paths that its patterns match one by one, and enters the same directories: also with
// names that are not ASCII or not UTF-8.
func TestGlobMatchesAsItsPatterns(t *testing.T) {
	piece := rapid.SampledFrom([]string{
		"a", "b", "ab", ".go", "*", "**", "/", "/", "/**/", "**/", "?", "[ab]", "[!a]", "[a-ü]", "{a,b}", "{a/,}", `\*`,
		"ü", "\ufffd", "\xff", "[\xff]", "日", "{**/,x/}", "***", `\***`, "*a*",
	})
	name := rapid.SampledFrom([]string{
		"a", "b", "ab", "a.go", "aab", "x", "*", "abc", "ü", "aü", "\xff", "a\xfeb", "\ufffd", "日本", ".", "a*b",
	})
	matched, entered := 0, 0
	check := func(t *rapid.T) {
		var patterns []string
		for range rapid.IntRange(1, 4).Draw(t, "n") {
			p := strings.Join(rapid.SliceOfN(piece, 1, 6).Draw(t, "pattern"), "")
			if rapid.IntRange(0, 3).Draw(t, "exclude") == 0 {
				p = "!" + p
			}
			patterns = append(patterns, p)
		}
		g, err := CompileGlobs(patterns)
		if err != nil || g == nil {
			return
		}
		want := pathGlob{g.patterns[:g.except], g.patterns[g.except:]}
		for range 4 {
			p := strings.Join(rapid.SliceOfN(name, 1, 5).Draw(t, "path"), "/")
			if strings.Contains("/"+p+"/", "/./") {
				continue
			}
			if got := g.Match(p); got != want.is(p, matchNames) {
				t.Fatalf("%q of %q: %t", patterns, p, got)
			} else if got {
				matched++
			}
			enters := true // a walk asks for each directory above
			for i, c := range p + "/" {
				if c == '/' {
					enters = enters && want.is(p[:i], mayMatchBelow)
				}
			}
			if got := g.mayMatchBelow(p); got != enters {
				t.Fatalf("%q enters %q: %t", patterns, p, got)
			} else if got {
				entered++
			}
		}
	}
	for range 30 {
		rapid.Check(t, check)
	}
	if matched == 0 || entered == 0 {
		t.Errorf("%d matched, %d entered", matched, entered)
	}
}
