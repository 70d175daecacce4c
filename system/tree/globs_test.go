package tree

import (
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"pgregory.net/rapid"
)

func TestGlobs(t *testing.T) {
	paths := []string{"a.go", "a_test.go", "sub/b.go", "sub/b_test.go", "vendor/x/c.go", "README.md", "sub/!odd.go"}
	for _, tt := range []struct {
		patterns []string
		want     string // the paths that match
	}{
		{[]string{"*.go"}, "a.go a_test.go sub/b.go sub/b_test.go vendor/x/c.go sub/!odd.go"},
		{[]string{"*.go", "!*_test.go"}, "a.go sub/b.go vendor/x/c.go sub/!odd.go"},
		{[]string{"!*_test.go", "*.go"}, "a.go sub/b.go vendor/x/c.go sub/!odd.go"},
		{[]string{"!*.go"}, "README.md"},
		{[]string{"!vendor", "!*_test.go"}, "a.go sub/b.go README.md sub/!odd.go"},
		{[]string{"*.md", "a.go"}, "a.go README.md"},
		{[]string{"sub/**", "!**/*_test.go"}, "sub/b.go sub/!odd.go"},
		{[]string{"!{sub,vendor}/**"}, "a.go a_test.go README.md"},
		{[]string{`\!odd.go`}, "sub/!odd.go"},
		{[]string{`!\!odd.go`, "*.go", "!a*", "!vendor"}, "sub/b.go sub/b_test.go"},
		{[]string{"!**"}, ""},
	} {
		g, err := CompileGlobs(tt.patterns)
		if err != nil {
			t.Errorf("%q: %v", tt.patterns, err)
			continue
		}
		var got []string
		for _, p := range paths {
			if g.Match(p) {
				got = append(got, p)
				for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
					if !g.mayMatchBelow(dir) {
						t.Errorf("%q: %s matches, and %s is not walked", tt.patterns, p, dir)
					}
				}
			}
		}
		expect.Equal(t, strings.Join(got, " "), tt.want, "%q", tt.patterns)
	}
	if g, err := CompileGlobs([]string{"!vendor"}); err != nil || g.mayMatchBelow("vendor") ||
		g.mayMatchBelow("vendor/x") {
		t.Errorf("an excluded directory is walked: %v", err)
	}
}

func TestGlobsThatAreEverything(t *testing.T) {
	for _, patterns := range [][]string{nil, {}, {"**"}} {
		if g, err := CompileGlobs(patterns); g != nil || err != nil {
			t.Errorf("%q: %v, %v", patterns, g, err)
		}
	}
}

func TestGlobsRefused(t *testing.T) {
	many := func(n int) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprintf("f%d", i))
		}
		return all
	}
	expect.OK(t, expect.Err(CompileGlobs(many(maxPatterns))), "%d patterns", maxPatterns)
	for _, tt := range []struct {
		patterns []string
		want     string
	}{
		{[]string{"!"}, `"!*.md" excludes Markdown files`},
		{[]string{""}, "empty"},
		{[]string{"a", "["}, "not a pattern"},
		{[]string{"!["}, "not a pattern"},
		{[]string{"!(a|b).go"}, `glob=["!a.go","!b.go"]`},
		{[]string{"src/!(a).go"}, `glob=["!src/a.go"]`},
		{[]string{"@(a|b).go"}, "write {a,b}.go"},
		{many(maxPatterns + 1), "over 1000 patterns"},
	} {
		expect.Fails(t, expect.Err(CompileGlobs(tt.patterns)), tt.want, "%.60q", tt.patterns)
	}
	expect.Fails(t, expect.Err(CompileGlob("@(a|b)")), "write {a,b}", "a single one")
}

// A name matches the list as it matches each pattern by itself.
func TestGlobsAreTheirPatterns(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		some := rapid.SampledFrom([]string{"*.go", "a*", "**/b/*", "sub", "x/**", "{a,b}.md", "[a-c]*", "b"})
		var patterns []string
		for range rapid.IntRange(1, 4).Draw(r, "n") {
			p := some.Draw(r, "pattern")
			if rapid.Bool().Draw(r, "exclude") {
				p = "!" + p
			}
			patterns = append(patterns, p)
		}
		name := rapid.StringMatching(`([abx]/|sub/|b/){0,3}[abcx](\.go|\.md)?`).Draw(r, "name")
		want, any := false, false
		excluded := false
		for _, p := range patterns {
			p, exclude := strings.CutPrefix(p, "!")
			g := expect.Value(CompileGlob(p))(t)
			if !exclude {
				any = true
				want = want || g.Match(name)
				continue
			}
			for at := name; at != "."; at = path.Dir(at) {
				excluded = excluded || g.Match(at)
			}
		}
		want = (want || !any) && !excluded
		g := expect.Value(CompileGlobs(patterns))(r, "%q on %s", patterns, name)
		expect.MustEqual(r, g.Match(name), want, "%q on %s", patterns, name)
	})
}

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
