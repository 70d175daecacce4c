package kinds

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// TestListingsAgreeWithTheirTools: the forms in which grep and ripgrep print matches are told apart, and their matches,
// files and lines of context are those that the files have.
func TestListingsAgreeWithTheirTools(t *testing.T) {
	dir, r := t.TempDir(), rand.New(rand.NewPCG(1, 13))
	matches, files, with := 0, 40, 0
	for i := range files {
		lines, hit := make([]string, 50+r.IntN(50)), false
		for k := range lines {
			lines[k] = fmt.Sprintf("a line of file-%d, 10-%d- and 7:%d: in it", i, k, k)
			if i%4 > 0 && r.IntN(12) == 0 {
				lines[k] += " with needle"
				matches++
				hit = true
			}
		}
		if hit {
			with++
		}
		name := filepath.Join(dir, fmt.Sprintf("dir-%d", i%3), fmt.Sprintf("part-%d-of.txt", i))
		expect.Must(t, os.MkdirAll(filepath.Dir(name), 0o700))
		expect.Must(t, os.WriteFile(name, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	}
	found := fmt.Sprintf("%d matches in %d files", matches, with)
	for _, c := range []struct{ command, want string }{
		{"grep -rn needle .", found},
		{"grep -rn -C2 needle .", found + ", CONTEXT lines of context"},
		{"grep -rc needle .", fmt.Sprintf("%d matches in %d of %d files, a count per file", matches, with, files)},
		{"rg -n --no-heading needle", found},
		{"rg -n -C3 --no-heading needle", found + ", CONTEXT lines of context"},
		{"rg -n --heading needle", found + ", below their file's name"},
		{"rg -n --heading -C1 needle", found + ", below their file's name, CONTEXT lines of context"},
		{"rg -c needle", found + ", a count per file"},
		{"rg -l needle", fmt.Sprintf("%d paths in 3 directories", with)},
	} {
		words := strings.Fields(c.command)
		t.Run(strings.Join(words[:len(words)-1], ""), func(t *testing.T) {
			tool, err := exec.LookPath(words[0])
			if err != nil {
				t.Skip(words[0] + " is not installed")
			}
			cmd := exec.CommandContext(t.Context(), tool, words[1:]...)
			cmd.Dir = dir
			out, err := cmd.Output()
			expect.Must(t, err)
			context := 0
			for l := range strings.Lines(string(out)) {
				if strings.Contains(l, "a line of") && !strings.Contains(l, "needle") {
					context++
				}
			}
			want := strings.ReplaceAll(c.want, "CONTEXT", fmt.Sprint(context))
			s := summarize("", out)
			if got := strings.Join(s.Total, "; "); s.Kind != content.Text || got != want {
				t.Errorf("%s, %q; want %q", s.Kind, got, want)
			}
		})
	}
}

// TestStrayRows: what a program wrote beside its table is shown.
func TestStrayRows(t *testing.T) {
	rows := repeated(40, "\n", func(i int) string { return fmt.Sprintf("%d,shop/a%d", i, i) })
	s := summarize("x.csv", []byte("size,name\n"+rows+"\nERROR: no more\nabc\n"+rows+"\n"))
	if got := strings.Join(s.Says, "; "); got !=
		"2 rows have not 2 cells: first record 40 (line 42) with 1; stands out, line 42: ERROR: no more" {
		t.Error(got)
	}
}

// TestNoListing: texts that resemble a listing are not taken for one.
func TestNoListing(t *testing.T) {
	rows := func(format string) string {
		return repeated(40, "\n", func(i int) string { return fmt.Sprintf(format, i) })
	}
	for name, c := range map[string]struct{ text, total string }{
		"ports":          {rows("db%d.example.com:5432"), ""},
		"addresses":      {rows("10.0.0.%d:8080"), ""},
		"URLs":           {rows("http://host/path/%d:80"), ""},
		"times":          {rows("10:%d"), ""},
		"places":         {rows("src/a.go:%d"), "40 places in 1 file"},
		"versions":       {rows("v1.%d-3-gabcdef is a version"), ""},
		"numbered lines": {"notes.txt of today\n" + rows("%d: some words"), ""},
		"blank":          {strings.Repeat("\n", 40), ""},
	} {
		expect.Equal(t, strings.Join(summarize("", []byte(c.text)).Total, "; "), c.total, name)
	}
}

// TestBullets: a text that is a list is reported with its items, their depth, and the first and the last item.
func TestBullets(t *testing.T) {
	item := func(format string, n int) string {
		return repeated(n, "\n", func(i int) string { return fmt.Sprintf(format, i+1) }) + "\n"
	}
	for _, c := range []struct{ name, text, total, first, last string }{
		{"flat", item("- thing %d", 40), "40 list items", "first item, line 1: thing 1", "last item, line 40: thing 40"},
		{"stars", "\n" + item("* thing %d", 9), "9 list items", "first item, line 2: thing 1", "last item, line 10: thing 9"},
		{"dots", item("• thing %d", 9), "9 list items", "first item, line 1: thing 1", "last item, line 9: thing 9"},
		{"numbers", item("%d. thing", 12), "12 list items", "first item, line 1: thing", "last item, line 12: thing"},
		{"nested", strings.Repeat("- a\n  - b\n    more of b\n\t  * c\n\n- d\n", 9), "36 list items, 3 levels deep",
			"first item, line 1: a", "last item, line 54: d"},
		{"intro", "Things to do:\n\n" + item("- thing %d", 20), "20 list items",
			"first item, line 3: thing 1", "last item, line 22: thing 20"},
		{"long item", "- " + strings.Repeat("é", 9000) + "\n" + item("- thing %d", 9), "10 list items",
			"first item, line 1: éé", "last item, line 10: thing 9"},
		{"deep", repeated(90, "\n", func(i int) string { return strings.Repeat(" ", i) + "- x" }),
			"90 list items, 64 levels deep", "first item, line 1: x", "last item, line 90: x"},
		{"no end", "- a\n- b\n- c\n- d\n- e", "5 list items", "first item, line 1: a", "last item, line 5: e"},
		{"four", item("- thing %d", 4), "", "", ""},
		{"prose", strings.Repeat("Words of a text\nin lines.\n", 20) + item("- thing %d", 9), "", "", ""},
		{"no blank", item("-thing %d", 20), "", "", ""},
		{"flags", item("--flag%d of a command", 20), "", "", ""},
		{"empty items", strings.Repeat("- \n", 20), "", "", ""},
		{"decimals", item("1.%d of a sum", 20), "", "", ""},
	} {
		s := summarize("", []byte(c.text))
		got := strings.Join(s.Total, "; ")
		if s.Kind == content.Markdown {
			_, got, _ = strings.Cut(got, "; ")
		}
		expect.Equal(t, got, c.total, "%s: %s", c.name, s.Kind)
		if c.total != "" && (len(s.Says) != 2 || !strings.HasPrefix(s.Says[0], c.first) || s.Says[1] != c.last) {
			t.Errorf("%s: %.300q", c.name, s.Says)
		}
	}
	s := summarize("x.md", []byte("# Changes\n\n"+item("- change %d", 30)))
	if got := strings.Join(s.Total, "; "); got != "1 heading; 30 list items" || len(s.Says) != 2 {
		t.Errorf("%q, %q", got, s.Says)
	}
}

// TestManyHeadings counts the headings that an outline leaves out.
func TestManyHeadings(t *testing.T) {
	s := summarize("x.md", []byte(strings.Repeat("# part\n\n", 100)+"## below\n\ntext\n"))
	if got := strings.Join(s.Body, "\n"); strings.Count(got, ": # part") != 60 ||
		!strings.Contains(got, "not listed: 40 further headings\nnot listed: 1 heading of level 2") {
		t.Error(got)
	}
}
