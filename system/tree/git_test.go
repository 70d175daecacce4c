package tree

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/peers/peer"
)

var trees = flag.Int("trees", 6, "hostile trees to compare with git")

// git runs git in dir, with the configuration of the repository only.
func git(t testing.TB, dir string, in []byte, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(
		t.Context(), peer.Find(t, "git"),
		append([]string{"-c", "core.excludesFile=/dev/null", "-c", "safe.directory=*"}, args...)...,
	)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(in)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "LC_ALL=C")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 1 && args[0] == "check-ignore" {
		err = nil // nothing is ignored
	}
	expect.Must(t, err, "git %v\n%s", args, stderr.Bytes())
	return out
}

// paths returns all slash paths below dir without .git directories, sorted.
func paths(t testing.TB, dir string) []string {
	t.Helper()
	var all []string
	expect.Must(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		if d.Name() == ".git" {
			return filepath.SkipDir
		}
		all = append(all, filepath.ToSlash(p[len(dir)+1:]))
		return nil
	}))
	return all
}

// gitIgnored asks git about each path.
func gitIgnored(t testing.TB, dir string, all []string) map[string]bool {
	t.Helper()
	var in bytes.Buffer
	for _, p := range all {
		in.WriteString("./" + p + "\x00")
	}
	ignored := map[string]bool{}
	for p := range strings.SplitSeq(
		string(git(t, dir, in.Bytes(), "check-ignore", "--no-index", "-z", "--stdin")), "\x00",
	) {
		if p != "" {
			ignored[strings.TrimPrefix(p, "./")] = true
		}
	}
	return ignored
}

// ourIgnored decides about one path as a walk does, except for hidden names.
func ourIgnored(t testing.TB, r *Root, p string) bool {
	t.Helper()
	w := &walker{root: r}
	for i := 0; i <= len(p); i++ {
		if i < len(p) && p[i] != '/' {
			continue
		}
		at := expect.Value(r.Lstat(p[:i]))(t)
		if w.rulesAbove(p[:i]).ignores(p[:i], nameOf(p[:i]), at.IsDir()) {
			return true
		}
	}
	return false
}

// A hostile tree: names and ignore lines are built from the same few parts, so that they match often.
var (
	pieces = []string{"a", "b", "ab", "a.go", "b.go", "c.tar.gz", "foo", "Foo", "build", "x", "foo bar", "x ", "#x", "!x",
		`x\`, "[a]", "a*b", "**", "é", "\xff", "a\tb", "a\vb", ".h", ".h.go", "-", "]", "^", "{a,b}", "1", "~", "a\rb", "x\r"}
	wild = []string{"*", "**", "?", "***", "[ab]", "[a-c]", "[!a]", "[^a-b]", "[]a]", "[!]a]", "[a-]", "[-a]", "[[:alpha:]]", "[[:space:]x]",
		"[[:digit:][:upper:]]", "[[:nope:]]", "[[:alpha:]", "[[:alpha", "[a", "[", `\a`, `\*`, `\[`, `\\`, `\`, `\ `, `[\]]`, `[a\-c]`, `[\a-\c]`, "[[a]", "[[:]", "[[:]a]", "[c-a]",
		"[[:alpha:]-z]", "[a-c-e]", "[*-?]", "[/]", "[!/]", "[.]", "*.go", "*.gz", "*~", "**/", "/**", "/**/", "*/", "/*", `**\/`, "a**", "**a", "a/**/b", "{a,b}"}
)

func randomLine(r *rand.Rand) string {
	pick := func(from []string) string { return from[r.IntN(len(from))] }
	var b strings.Builder
	if r.IntN(4) == 0 {
		b.WriteString("!")
	}
	if r.IntN(30) == 0 {
		b.WriteString("#")
	}
	if r.IntN(5) == 0 {
		b.WriteString("/")
	}
	for n := 1 + r.IntN(4); n > 0; n-- {
		switch r.IntN(7) {
		case 0, 1, 2:
			b.WriteString(pick(pieces))
		case 3, 4:
			b.WriteString(pick(wild))
		case 5:
			b.WriteString("/")
		case 6:
			b.WriteString(pick([]string{"a", "b", "x", "o"}))
		}
	}
	switch r.IntN(14) {
	case 0, 1:
		b.WriteString("/")
	case 2:
		b.WriteString("  ")
	case 3:
		b.WriteString(`\ `)
	case 4:
		b.WriteString(`\  `)
	case 5:
		b.WriteString("\t")
	case 6:
		b.WriteString("\x00x")
	case 7:
		b.WriteString(" /")
	}
	return b.String()
}

func randomRules(r *rand.Rand) []byte {
	var b strings.Builder
	if r.IntN(8) == 0 {
		b.WriteString("\xef\xbb\xbf")
	}
	end := "\n"
	if r.IntN(4) == 0 {
		end = "\r\n"
	}
	switch r.IntN(5) {
	case 0: // deny by default
		b.WriteString("*" + end + "!*/" + end + "!*.go" + end)
	case 1:
		b.WriteString("/*" + end + "!/a" + end + "!/build/" + end)
	}
	for n := r.IntN(7); n > 0; n-- {
		b.WriteString(randomLine(r) + end)
	}
	text := b.String()
	if r.IntN(3) == 0 {
		text = strings.TrimSuffix(text, "\n")
	}
	return []byte(text)
}

func randomTree(t testing.TB, r *rand.Rand, dir string, depth int) {
	t.Helper()
	write := func(name string, text []byte) {
		expect.Must(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	if r.IntN(2) == 0 || depth == 0 {
		write(".gitignore", randomRules(r))
	}
	for range 3 + r.IntN(9) {
		name := pieces[r.IntN(len(pieces))]
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			continue
		}
		switch n := r.IntN(10); {
		case n < 5 && depth < 4:
			sub := filepath.Join(dir, name)
			expect.Must(t, os.Mkdir(sub, 0o700))
			randomTree(t, r, sub, depth+1)
		case n == 9:
			expect.Must(t, os.Symlink("..", filepath.Join(dir, name)))
		default:
			write(name, nil)
		}
	}
}

// Ignore rules decide as git does, on trees generated to find differences.
func TestIgnoresWhatGitIgnores(t *testing.T) {
	var asked, differ, positive int
	for seed := range *trees {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		dir := t.TempDir()
		git(t, dir, nil, "init", "-q")
		if r.IntN(2) == 0 {
			expect.Must(t, os.WriteFile(filepath.Join(dir, ".git/info/exclude"), randomRules(r), 0o600))
		}
		randomTree(t, r, dir, 0)
		all := paths(t, dir)
		want := gitIgnored(t, dir, all)
		root := open(t, dir)
		for _, p := range all {
			asked++
			got := ourIgnored(t, root, p)
			if got {
				positive++
			}
			if got != want[p] {
				if differ++; differ <= 10 {
					t.Errorf("tree %d: %q: ignored %v, git says %v", seed, p, got, want[p])
				}
			}
		}
	}
	t.Logf("%d paths, %d ignored, %d differences", asked, positive, differ)
	if positive < asked/10 || positive > asked*9/10 {
		t.Errorf("%d of %d paths are ignored: such trees find nothing", positive, asked)
	}
}

// Single patterns are matched with many names, in combinations that trees seldom have.
func TestPatternsMatchAsInGit(t *testing.T) {
	dir := t.TempDir()
	git(t, dir, nil, "init", "-q")
	var names []string
	for i := 1; i < 256; i++ {
		if i != '/' {
			names = append(names, string([]byte{byte(i)}))
		}
	}
	names = slices.DeleteFunc(names, func(n string) bool { return n == "." })
	for _, a := range []string{"a", "b", "ab", "aab", "abc", "a-c", "a]", "foo", "foob", "a b", `a\b`, "[a]", "*", "**", "a.b"} {
		for _, b := range []string{"", "/a", "/b", "/a/b", "/ab/a/b", "/foo/bar/a"} {
			names = append(names, a+b)
		}
	}
	names = append(
		slices.Compact(slices.Sorted(slices.Values(names))), strings.Repeat("a/", 200)+"b", strings.Repeat("a", 255),
	)
	var patterns []string
	for _, w := range wild {
		for _, before := range []string{"", "a", "a/", "/", "foo"} {
			for _, after := range []string{"", "b", "/b", "/**/b", "*"} {
				patterns = append(patterns, before+w+after)
			}
		}
	}
	for _, name := range []string{"alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "xdigit"} {
		patterns = append(patterns, "[[:"+name+":]]", "[^[:"+name+":]]")
	}
	r := rand.New(rand.NewPCG(7, 7))
	for range 250 {
		patterns = append(patterns, randomLine(r))
	}
	// Each pattern is in a directory of its own, so that git is called once.
	var in bytes.Buffer
	for i, p := range patterns {
		sub := filepath.Join(dir, fmt.Sprint(i))
		expect.Must(t, os.Mkdir(sub, 0o700))
		expect.Must(t, os.WriteFile(filepath.Join(sub, ".gitignore"), []byte(p+"\n"), 0o600))
		for _, n := range names {
			fmt.Fprintf(&in, "./%d/%s\x00", i, n)
		}
	}
	want := map[string]bool{}
	for p := range strings.SplitSeq(
		string(git(t, dir, in.Bytes(), "check-ignore", "--no-index", "-z", "--stdin")), "\x00",
	) {
		want[strings.TrimPrefix(p, "./")] = true
	}
	differ := 0
	for i, p := range patterns {
		prefix := fmt.Sprintf("%d/", i)
		s := compile([]byte(p+"\n"), len(prefix), nil)
		for _, n := range names {
			// The names do not exist on disk: git treats the last as a file, those before it as directories.
			got := false
			for at := 0; at <= len(n) && !got; at++ {
				if at == len(n) || n[at] == '/' {
					got = s.ignores(prefix+n[:at], nameOf(n[:at]), at < len(n))
				}
			}
			if got != want[prefix+n] {
				if differ++; differ <= 20 {
					t.Errorf("pattern %q, name %q: ignored %v, git says %v", p, n, got, want[prefix+n])
				}
			}
		}
	}
	t.Logf("%d patterns × %d names, %d differences", len(patterns), len(names), differ)
}

// A walk skips exactly what git would not add.
func TestWalkListsWhatGitLists(t *testing.T) {
	listed := 0
	for seed := range *trees {
		r := rand.New(rand.NewPCG(uint64(seed), 2))
		dir := t.TempDir()
		git(t, dir, nil, "init", "-q")
		randomTree(t, r, dir, 0)
		var want []string
		for p := range strings.SplitSeq(string(git(t, dir, nil, "ls-files", "-co", "--exclude-standard", "-z")), "\x00") {
			hidden := strings.HasPrefix(p, ".") || strings.Contains(p, "/.")
			if p != "" && !hidden {
				want = append(want, p)
			}
		}
		slices.SortFunc(want, byComponents)
		var got []string
		report := expect.Value(open(t, dir).Walk(t.Context(), Options{}, func(e Entry) error {
			if e.Type != Dir {
				got = append(got, e.Path)
			}
			return nil
		}))(t)
		listed += len(got)
		expect.EqualList(t, got, want, "tree %d", seed)
		expect.Equal(t, int(report.Files), len(got), "tree %d: files reported, visited", seed)
	}
	if listed < *trees*3 {
		t.Errorf("only %d files listed: such trees find nothing", listed)
	}
}

// byComponents compares paths in the order of a walk.
func byComponents(a, b string) int {
	return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
}

// Ignore files above the root and links do not count; a nested repository is an ordinary directory.
func TestRulesThatGitHasToo(t *testing.T) {
	dir := t.TempDir()
	git(t, dir, nil, "init", "-q")
	for _, sub := range []string{"sub/nested", "sub/link", "sub/cut"} {
		expect.Must(t, os.MkdirAll(filepath.Join(dir, sub), 0o755))
	}
	git(t, filepath.Join(dir, "sub/nested"), nil, "init", "-q")
	for name, text := range map[string]string{
		".gitignore": "*.above\n", "sub/.gitignore": "*.log\n", "sub/nested/.git/info/exclude": "*.txt\n", "sub/nested/.gitignore": "!keep.log\n",
		"sub/nested/a.log": "", "sub/nested/keep.log": "", "sub/nested/b.txt": "", "sub/x.above": "", "outside": "*\n", "sub/link/c": "",
		"sub/cut/.gitignore": strings.Repeat("#\n", MaxRules/2-2) + "first\nlast\n", "sub/cut/first": "", "sub/cut/last": "",
	} {
		expect.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	expect.Must(t, os.Symlink("../../outside", filepath.Join(dir, "sub/link/.gitignore")))
	list := func(root, start string) (got []string, report Report) {
		report = expect.Value(open(t, filepath.Join(dir, root)).Walk(t.Context(), Options{Start: start}, func(e Entry) error {
			if e.Type == File {
				got = append(got, e.Path)
			}
			return nil
		}))(t)
		return got, report
	}
	want := []string{"cut/first", "cut/last", "link/c", "nested/b.txt", "nested/keep.log", "x.above"}
	if got, report := list("sub", "."); !slices.Equal(got, want) || report.CutRules != 1 {
		t.Errorf("root below a repository: %q, %d rules cut", got, report.CutRules)
	}
	// The rules of the directories between the root and Start apply.
	if got, _ := list(".", "sub/nested"); !slices.Equal(got, []string{"sub/nested/b.txt", "sub/nested/keep.log"}) {
		t.Errorf("start below the root: %q", got)
	}
	ours, asGit := []string{}, []string{}
	all := []string{"sub/nested/a.log", "sub/nested/keep.log", "sub/nested/b.txt", "sub/x.above", "sub/link/c"}
	ignored, root := gitIgnored(t, dir, all), open(t, dir)
	for _, p := range all {
		if ourIgnored(t, root, p) {
			ours = append(ours, p)
		}
		if ignored[p] {
			asGit = append(asGit, p)
		}
	}
	if !slices.Equal(ours, asGit) || len(ours) != 2 {
		t.Errorf("ignored %q, git says %q", ours, asGit)
	}
}
