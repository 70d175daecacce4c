package conformance

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// changelog is a copy of scripts/release/changelog beside a CHANGELOG.md and changes that are not released.
type changelog struct {
	t   *testing.T
	dir string
}

func newChangelog(t *testing.T, log string, changes map[string]string) changelog {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("a release is made where there is a shell")
	}
	c := changelog{t, t.TempDir()}
	write(t, c.path("CHANGELOG.md"), log)
	write(t, c.path("scripts/release/changelog"), string(expect.Value(os.ReadFile("../scripts/release/changelog"))(t)))
	write(t, c.path("changelog/unreleased/.gitkeep"), "")
	for name, text := range changes {
		write(t, c.path("changelog/unreleased/"+name), text)
	}
	return c
}

func (c changelog) path(name string) string { return filepath.Join(c.dir, filepath.FromSlash(name)) }

// run runs the program, which must end with an exit code and print what is wanted among others.
func (c changelog) run(code int, want string, args ...string) string {
	c.t.Helper()
	cmd := exec.CommandContext(c.t.Context(), "sh", append([]string{c.path("scripts/release/changelog")}, args...)...)
	out, _ := cmd.CombinedOutput()
	expect.Equal(c.t, cmd.ProcessState.ExitCode(), code, "%q: %s", args, out)
	expect.Has(c.t, string(out), want, args)
	return string(out)
}

// is checks what CHANGELOG.md says now.
func (c changelog) is(want string) {
	c.t.Helper()
	expect.Equal(c.t, string(expect.Value(os.ReadFile(c.path("CHANGELOG.md")))(c.t)), want)
}

const firstLog = "# Changelog\n\nAbout it.\n\n## 0.1.0 (unreleased)\n\nThe first.\n\n### Group\n\n- All.\n"

// TestChangelogOfThisCheckout holds headings and changes to their form.
func TestChangelogOfThisCheckout(t *testing.T) {
	t.Parallel()
	changes := map[string]string{}
	for _, path := range expect.Value(filepath.Glob("../changelog/unreleased/*"))(t) {
		changes[filepath.Base(path)] = string(expect.Value(os.ReadFile(path))(t))
	}
	log := string(expect.Value(os.ReadFile("../CHANGELOG.md"))(t))
	expect.Equal(t, newChangelog(t, log, changes).run(0, "", "--check"), "")
	headings := regexp.MustCompile(`(?m)^## .*`).FindAllString(log, -1)
	form := regexp.MustCompile(`^## \d+\.\d+\.\d+ \(\d{4}-\d\d-\d\d\)$`)
	for i, h := range headings {
		if !form.MatchString(h) && (i > 0 || !strings.HasSuffix(h, " (unreleased)")) {
			t.Errorf("%q has no version with a date", h)
		}
	}
	expect.Has(t, headings[len(headings)-1], "## 0.1.0 (")
}

// TestChangelogForm checks that each fault of a change is found, and that it stops a release.
func TestChangelogForm(t *testing.T) {
	t.Parallel()
	wide := strings.Repeat("ä", 120) + "\n"
	for name, of := range map[string]struct{ file, text, want string }{
		"a good one":          {"a-b2.md", wide + "b.\n", ""},
		"one line":            {"a.md", "a.\n", "a.md: 1 lines; 2 to 6"},
		"seven lines":         {"a.md", strings.Repeat("a.\n", 7), "a.md: 7 lines; 2 to 6"},
		"an empty file":       {"a.md", "", "a.md: 0 lines; 2 to 6"},
		"too wide":            {"a.md", "a\nä" + wide + "b.\n", "a.md:2: over 120 columns"},
		"no full stop":        {"a.md", "a.\nb\n", "a.md: no full stop at the end"},
		"two paragraphs":      {"a.md", "a.\n\nb.\n", "a.md:2: a heading or an empty line"},
		"a heading":           {"a.md", "## a\nb.\n", "a.md:1: a heading or an empty line"},
		"an indented heading": {"a.md", "a\n  # b.\n", "a.md:2: a heading or an empty line"},
		"an underlined one":   {"a.md", "a\n ===== \nb.\n", "a.md:2: a heading or an empty line"},
		"one of dashes":       {"a.md", "a\n--\nb.\n", "a.md:2: a heading or an empty line"},
		"raw HTML":            {"a.md", "a <b>\nb.\n", "a.md:1: raw HTML"},
		"a script":            {"a.md", "a [b](JavaScript:c)\nd.\n", "a.md:1: a link that leads neither to"},
		"an escaped script":   {"a.md", "a [b](javascript&colon;c)\nd.\n", "a.md:1: a link that leads neither to"},
		"a link in two lines": {"a.md", "a [b](\njavascript:c).\n", "a.md:1: a link that leads neither to"},
		"a link by name":      {"a.md", "a [b].\n[b]: data:c.\n", "a.md:2: a link that leads neither to"},
		"good links":          {"a.md", "a [b](https://c.example/d?e:f#g), [h](docs/I_J.md#k-l)\nand x[0]: m.\n", ""},
		"a NUL byte":          {"a.md", "a\x00\nb.\n", "a.md: control characters"},
		"a carriage return":   {"a.md", "a\r\nb.\n", "a.md: control characters"},
		"another extension":   {"a.txt", "a\nb.\n", "a.txt: must be named NAME.md"},
		"a name in capitals":  {"A.md", "a\nb.\n", "A.md: must be named NAME.md"},
	} {
		t.Run(name, func(t *testing.T) {
			c, code := newChangelog(t, firstLog, map[string]string{of.file: of.text}), 1
			if of.want == "" {
				code = 0
			}
			c.run(code, of.want, "--check")
			c.is(firstLog)
			c.run(code, of.want, "0.1.0", "2030-01-31")
			if of.want != "" {
				c.is(firstLog)
			}
		})
	}
}

// TestChangelogRelease makes two releases: the first dates the text there is, the second gets a heading of its own.
func TestChangelogRelease(t *testing.T) {
	t.Parallel()
	c := newChangelog(t, firstLog, map[string]string{
		"b.md": "b1 \\n\nb2.\n", "a.md": "a1 [x](docs/X.md#y)\na2 [w](https://w.example).",
	})
	c.run(1, "CHANGELOG.md has 0.1.0, which is not released yet", "0.2.0", "2030-01-31")
	c.run(0, "", "0.1.0", "2030-01-31")
	first := "## 0.1.0 (2030-01-31)\n\na1 [x](docs/X.md#y)\na2 [w](https://w.example).\n\nb1 \\n\nb2.\n\nThe first.\n\n" +
		"### Group\n\n- All.\n"
	c.is("# Changelog\n\nAbout it.\n\n" + first)
	c.run(1, "there is no change below changelog/unreleased", "0.2.0", "2030-02-28") // they were removed
	write(t, c.path("changelog/unreleased/c.md"), "c1\nc2.\n")
	c.run(1, "has version 0.1.0 already", "0.1.0", "2030-02-28")
	c.run(2, "DATE must be like", "0.2.0", "today")
	if exec.Command("date", "-ud", "2026-12-31").Run() == nil { // of GNU
		c.run(2, "there is no day 2026-13-31", "0.2.0", "2026-13-31")
		c.run(2, "there is no day 2030-02-29", "0.2.0", "2030-02-29")
	}
	c.run(2, "VERSION must be like", "0.2.*", "2030-02-28")
	c.run(2, "VERSION must be like", "0.2", "2030-02-28")
	c.run(1, "0.0.9 is not above 0.1.0", "0.0.9", "2030-02-28")
	c.run(2, "usage:", "--help")
	c.run(0, "", "0.2.0", "2030-02-28")
	c.is("# Changelog\n\nAbout it.\n\n## 0.2.0 (2030-02-28)\n\nc1\nc2.\n\n" + first)

	c.run(1, "no version 0.3.0", "notes", "0.3.0")
	expect.Equal(t, c.run(0, "", "notes", "0.2.0"), "c1\nc2.\n\n")
	c.run(0, "a1 [x](https://github.com/mcp-funnel/mcp-funnel/blob/v0.1.0/docs/X.md#y)\na2 [w](https://w.example).\n",
		"notes", "0.1.0")
}
