package tree

import (
	"regexp"
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"pgregory.net/rapid"
)

func TestGlob(t *testing.T) {
	for _, test := range []struct {
		pattern, yes, no string // paths, blank-separated
	}{
		{"**", "a a/b .x/y", ""},
		{"*", "a a/b", ""},
		{"*.go", "a.go x/y/a.go .go", "a.gox a.go/b x/a.txt"},
		{"a?c", "abc x/abc", "ac abbc"},
		{"./src/*.go", "src/a.go", "a.go src/x/a.go xsrc/a.go"},
		{"src/**", "src/a src/a/b src", "xsrc/a a/src/b"},
		{"src/**/*.go", "src/a.go src/x/y/a.go", "a.go src/a.txt"},
		{"**/test/**", "test/a x/test/y/z", "x/testy/z"},
		{"{a,b/c}/*.go", "a/x.go b/c/x.go", "b/x.go c/x.go"},
		{"*.{go,mod}", "a.go x/go.mod", "a.sum"},
		{"{*.go,go.{mod,sum}}", "a.go go.mod x/go.sum", "go.work"},
		{"[a-c]*.txt", "b.txt x/cc.txt", "d.txt"},
		{"[!a-c].txt", "d.txt", "b.txt"},
		{"a***", "a abc x/ab", "b"},
		{`\***`, "* *a x/*", "a"},
		{"geb?hr", "gebühr gebu\u0308hr", "gebhr"},
		{`\*.go`, "*.go x/*.go", "a.go"},
		{`[{]x[}]`, "{x}", "x"},
		{`a\,b`, "a,b", "a"},
		{"dir/", "dir x/dir", "dirx"},
		{`x\/y`, "x/y", "y"},
		{"a..b", "a..b", "ab"},
		{"a[!b]c/d", "axc/d", "a/c/d abc/d"},
		{"a/[+-9]/d", "a/1/d", "a//d"},
		{"**/a/**/b/**/c*", "a/b/c x/a/y/b/b/cc", "a/c b/a/c"},
		{"日本*", "日本語 x/日本", "日"},
		{"*gebühr*", "gebühr.md x/gebu\u0308hr.md", "gebuhr.md"},
		{"*gebu\u0308hr*", "gebühr.md x/gebu\u0308hr.md", "gebuhr.md"},
		{"[äö]", "ä x/o\u0308", "a o a\u0301"},
	} {
		g, err := CompileGlob(test.pattern)
		if err != nil {
			t.Errorf("%s: %v", test.pattern, err)
			continue
		}
		for p := range strings.FieldsSeq(test.yes) {
			if !g.Match(p) {
				t.Errorf("%s does not match %s", test.pattern, p)
			}
		}
		for p := range strings.FieldsSeq(test.no) {
			if g.Match(p) {
				t.Errorf("%s matches %s", test.pattern, p)
			}
		}
	}
}

func TestGlobRefused(t *testing.T) {
	for _, test := range []struct{ pattern, want string }{
		{"", "empty"},
		{"../*", "cannot go up"},
		{"{../,}*", "cannot go up"},
		{"a/{b,..}/c", "cannot go up"},
		{`a/\.\./c`, "cannot go up"},
		{"{x,/etc}/*", "begins with /"},
		{"/etc/*", "begins with /"},
		{"[a", "not a pattern"},
		{"[]", "not a pattern"},
		{"{a", "not a pattern"},
		{"a}", "not a pattern"},
		{`a\`, "not a pattern"},
		{"a[/]b", "in a [class]"},
		{"a\x00b", "NUL"},
		{strings.Repeat("a", 1025), "at most 1024"},
		{strings.Repeat("**/a/", 12) + "b", "at most 4 times"},
		{strings.Repeat("{a,b}", 7), "over 64"},
		{strings.Repeat("{a,b}", 200), "over 64"},
		{"{" + strings.Repeat("a,", 64) + "b}", "over 64"},
		{strings.Repeat("{", 500) + strings.Repeat("}", 501), "not a pattern"},
	} {
		if _, err := CompileGlob(test.pattern); err == nil || !strings.Contains(err.Error(), test.want) ||
			len(err.Error()) > 420 {
			t.Errorf("%.30q: error %v, want %q", test.pattern, err, test.want)
		}
	}
	for _, ok := range []string{strings.Repeat("**/", 12) + "b", strings.Repeat("{a,b}", 6), strings.Repeat("{", 500) +
		strings.Repeat("}", 500)} {
		expect.OK(t, expect.Err(CompileGlob(ok)), "%.30q", ok)
	}
}

// An expanded and shortened pattern matches what doublestar matches, and no directory with a match is skipped.
func TestGlobIsDoublestar(t *testing.T) {
	piece := rapid.SampledFrom(
		[]string{
			"a", "b", "ab", ".go", "*", "**", "/", "/**/", "**/", "?", "[ab]", "[!a]", "{a,b}", "{a/,}", "{*,b.go}", `\*`,
			"{**/,x/}", "{,a{b,c}}", "[a-ü]",
			"ü", "\ufffd", "\xff", "日", "*a*",
		},
	)
	name := rapid.SampledFrom([]string{"a", "b", "ab", "a.go", "b.go", "x", "*", "abc", "ü", "aü", "\xff", "a\xfeb", "\ufffd", "日本"})
	matched := 0
	stars := regexp.MustCompile(`\*{3,}`)
	again := regexp.MustCompile(`(^|/)\*\*(/\*\*)+(/|$)`)
	check := func(t *rapid.T) {
		pattern := strings.Join(rapid.SliceOfN(piece, 1, 7).Draw(t, "pattern"), "")
		g, err := CompileGlob(pattern)
		if err != nil || strings.Contains(pattern, "//") || strings.HasSuffix(pattern, "/") {
			return
		}
		p := strings.Join(rapid.SliceOfN(name, 1, 5).Draw(t, "path"), "/")
		// A pattern with braces is several patterns, each for base names or for paths.
		want := false
		alternatives, _ := expand(pattern)
		for _, one := range alternatives {
			if one == "" || strings.Contains(one, "//") || strings.HasSuffix(one, "/") {
				return // doublestar takes an empty name for one
			}
			one = again.ReplaceAllString(one, "$1**$3") // doublestar wants an a/ for a/**/**, not for a/**
			one = stars.ReplaceAllString(one, "*")      // doublestar does not let *** match nothing at an end
			of := p
			if !strings.Contains(one, "/") {
				of = nameOf(p)
			}
			// A class matches no "/", unlike in doublestar.
			if dir, ok := strings.CutSuffix(one, "/**"); ok && dir != "" {
				// "a/**" also matches a. So it does in doublestar, but not always if a "*" ends it.
				want = want || doublestar.MatchUnvalidated(strings.ReplaceAll(dir, "[!a]", "[!/a]"), of)
			}
			want = want || doublestar.MatchUnvalidated(strings.ReplaceAll(one, "[!a]", "[!/a]"), of)
		}
		expect.MustEqual(t, g.Match(p), want, "%q of %q, doublestar says", pattern, p)
		if want {
			matched++
			for i, c := range p {
				if c == '/' && !g.mayMatchBelow(p[:i]) {
					t.Fatalf("%q matches %q, but %q would be passed over", pattern, p, p[:i])
				}
			}
		}
	}
	for range 30 {
		rapid.Check(t, check)
	}
	if matched == 0 {
		t.Error("nothing matched")
	}
}

func FuzzGlob(f *testing.F) {
	for _, p := range []string{"**/*.go", "{a,b{c,d}}/**", "[!a-z]*", `\{a`, "{../,}*", "[{]}", "a/./b//c/"} {
		f.Add(p, "a/b.go")
	}
	f.Fuzz(func(t *testing.T, pattern, p string) {
		g, err := CompileGlob(pattern)
		if err != nil {
			if len(err.Error()) > 500 {
				t.Errorf("error of %d bytes", len(err.Error()))
			}
			return
		}
		if len(p) > 300 {
			return
		}
		if g.Match(p) && !strings.Contains(p, "//") && !strings.HasPrefix(p, "/") {
			for i := range p {
				if p[i] == '/' && !g.mayMatchBelow(p[:i]) {
					t.Errorf("%q matches %q, but %q would be passed over", pattern, p, p[:i])
				}
			}
		}
	})
}
