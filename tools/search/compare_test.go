package search

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/peers/peer"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
	"github.com/mcp-funnel/mcp-funnel/tools/toolstest"
)

// original runs grep or rg in dir. Exit status 1 says that nothing was found.
func original(t *testing.T, dir, name string, args ...string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), peer.Find(t, name), args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		t.Fatalf("%s %q: %v: %s", name, args, err, stderr.String())
	}
	var lines []string
	sc := bufio.NewScanner(bytes.NewReader(out))
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		lines = append(lines, strings.TrimSuffix(strings.TrimPrefix(sc.Text(), "./"), "\r"))
	}
	expect.Must(t, sc.Err())
	return lines
}

// tree is a generated tree with everything that search treats in its own way, below which every text is UTF-8.
func generated(t *testing.T) string {
	dir := many(t, 60)
	for name, text := range map[string]string{
		"crlf.txt":        "alpha\r\nfunc beta\r\n\r\nneedle\r\n",
		"empty":           "",
		"blank":           "\n\n\n",
		"noend":           "needle\nlast needle",
		"fold.txt":        "TASK task Task ta\u017fk tas\u212a\nSS ß ẞ\n",
		"cjk.txt":         "世界 needle\n你好\n",
		"sub/a b/x.txt":   "needle in a folder with a blank\n",
		"sub/.hid/x.txt":  "needle hidden\n",
		"ign/x.log":       "needle ignored\n",
		".gitignore":      "*.log\n",
		"sub/deep/y.go":   "func needle() error { return nil }\n",
		"sub/deep/z.json": "{\"needle\": [1, 2, 3]}\n",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		expect.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		expect.Must(t, os.WriteFile(path, []byte(text), 0o644))
	}
	expect.Must(t, os.Mkdir(filepath.Join(dir, ".git"), 0o755))
	return dir
}

// compared are patterns that mean the same to RE2, to grep -E or -P and to rg.
var compared = []struct {
	pattern string
	literal bool
	ignore  bool
}{
	{pattern: "needle"},
	{pattern: "needle", ignore: true},
	{pattern: "file 1[0-9]"},
	{pattern: "^func "},
	{pattern: "nil }$"},
	{pattern: "needle$"},
	{pattern: "^$"},
	{pattern: "[a-z]+Error"},
	{pattern: "(Read|Write)(From|To)"},
	{pattern: "err(or)?s?\\.", ignore: true},
	{pattern: "a.*b.*c"},
	{pattern: "x|needle|zzz"},
	{pattern: "line [0-9]{2} "},
	{pattern: "f(", literal: true},
	{pattern: "[1, 2", literal: true},
	{pattern: "世界"},
	{pattern: "\\bctx\\b"},
	{pattern: "//.*TODO"},
	{pattern: "no such thing anywhere"},
}

func TestSameHitsAsGrepAndRipgrep(t *testing.T) {
	for where, dir := range map[string]string{"generated": generated(t), "GOROOT": goroot(t)} {
		s := toolstest.Roots(t, dir)
		for _, c := range compared {
			flags := []string{"-n"}
			if c.literal {
				flags = append(flags, "-F")
			}
			if c.ignore {
				flags = append(flags, "-i")
			}
			a := args{"pattern": c.pattern, "literal": c.literal, "ignore_case": c.ignore}
			t.Run(where+"/"+c.pattern, func(t *testing.T) {
				compare(
					t, s, a, original(t, dir, "rg", append(flags, "--no-heading", "--no-messages", "--crlf", "-e", c.pattern, ".")...),
					false,
				)
				if !strings.Contains(c.pattern, "$") { // which is not before \r\n to grep
					perl := append(slices.Clip(flags), "-I")
					if !c.literal {
						perl = append(perl, "-P")
					}
					compare(t, s, a, original(t, dir, "grep", append(perl, "-r", "-e", c.pattern, ".")...), true)
				}
			})
		}
	}
}

func compare(t *testing.T, s source.Set, a args, want []string, all bool) {
	t.Helper()
	if all {
		a["all"] = true
		defer delete(a, "all")
	}
	out := must(t, Search(), s, a)
	var got []string
	files := map[string]bool{}
	for _, r := range records(t, out) {
		files[r.File] = true
		if r.Cut { // compared by its place
			r.Text = "…"
		}
		got = append(got, fmt.Sprintf("%s:%d:%s", r.File, r.Line, r.Text))
	}
	for i, w := range want {
		if len(w) > 4096 {
			name, rest, _ := strings.Cut(w, ":")
			n, _, _ := strings.Cut(rest, ":")
			want[i] = name + ":" + n + ":…"
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	expect.Same(t, got, want, "%v: -peer +ours", a)
	if n := out.counts["total_matches"]; int(n) != len(want) || int(out.counts["files_with_matches"]) != len(files) {
		t.Errorf(
			"%v: %v matches in %v files told, %d in %d found", a, n, out.counts["files_with_matches"], len(want), len(files),
		)
	}
}

func TestSameLinesAsGrepN(t *testing.T) {
	s := toolstest.Roots(t, folder(t, "war.txt", string(corpus.WarAndPeace()), "panic.log", string(corpus.PanicLog())))
	for _, c := range []struct{ pattern, flag string }{
		{"Napoleon", ""}, {"napoleon|kutuzov", "-i"}, {"^CHAPTER", ""}, {"Prince [A-Z]ndr", ""}, {"[0-9]{4}", ""}, {"^$", ""}, {"e", "-v"}, {"ERROR", ""}, {"[.]$", ""}, {"é", ""},
	} {
		for _, file := range []string{"war.txt", "panic.log"} {
			for _, context := range []int{0, 2} {
				flags := []string{"-n", "-a", "-P", "-e", c.pattern}
				if context > 0 { // with -C0 grep separates too
					flags = append(flags, fmt.Sprintf("-C%d", context))
				}
				if c.flag != "" {
					flags = append(flags, c.flag)
				}
				if text, err := os.ReadFile(filepath.Join(s.Roots[0].Dir(), file)); err == nil &&
					bytes.Contains(text, []byte("\r\n")) && strings.Contains(c.pattern, "$") {
					continue
				}
				var want []string
				for _, l := range original(t, s.Roots[0].Dir(), "grep", append(flags, file)...) {
					// grep has no blank behind the number
					if n := strings.IndexFunc(l, func(r rune) bool { return r < '0' || r > '9' }); n > 0 {
						l = l[:n+1] + " " + strings.TrimPrefix(l[n+1:], "\ufeff")
					}
					want = append(want, l)
				}
				a := must(
					t, Grep(), s,
					args{
						"source": file, "pattern": c.pattern, "ignore_case": c.flag == "-i", "invert": c.flag == "-v", "context": context,
					},
				)
				var got []string
				if len(a.rows) > 0 {
					got = strings.Split(strings.Join(a.rows, "\n"), "\n")
				}
				if !slices.Equal(want, got) {
					d := cmp.Diff(want, got)
					t.Errorf("%s %q in %s, context %d: -grep +ours\n%.2000s", c.flag, c.pattern, file, context, d)
				}
			}
		}
	}
}

func TestSameMultilineHitsAsRipgrep(t *testing.T) {
	dir := goroot(t)
	s := toolstest.Roots(t, dir)
	for _, p := range []string{`func \(c \*\w+\) Close\(\) error \{\n\tif`, `\{\n\n`, `(?s)/\*.*?\*/`, `return nil,\s+err\n\s*\}\n\}`} {
		var want []string // file:line
		for _, l := range original(t, dir, "rg", "-U", "-n", "--no-heading", "-e", p, ".") {
			name, rest, _ := strings.Cut(l, ":")
			n, _, _ := strings.Cut(rest, ":")
			want = append(want, name+":"+n)
		}
		var got []string
		for _, r := range records(t, must(t, Search(), s, args{"pattern": p, "multiline": true})) {
			for n := r.Line; n <= r.End; n++ {
				got = append(got, fmt.Sprintf("%s:%d", r.File, n))
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		expect.EqualList(t, got, want, "%s: -rg +ours %.3000s", p, cmp.Diff(want, got))
		if len(got) == 0 {
			t.Errorf("%s: nothing to compare", p)
		}
	}
}
