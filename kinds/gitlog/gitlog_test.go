package gitlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

func objects(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	err := Objects(t.Context(), strings.NewReader(text), &out)
	notes, noted := errors.AsType[*content.Remarks](err)
	if null := strings.Contains(out.String(), `"added":null`); noted != null || noted && len(notes.OfFields) != 3 {
		t.Errorf("%v of %s", err, out.String())
	}
	if !noted {
		expect.Must(t, err)
	}
	return out.String()
}

func TestRecords(t *testing.T) {
	hash := strings.Repeat("a1", 20)
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", ""},
		{"medium", "commit " + hash + " (HEAD -> main)\nAuthor: Ada <a@x>\nDate:   Fri Nov 20 14:30:22 2026 +0100\n\n    Subject\n\n    body\n",
			`"author":"Ada","date":"2026-11-20T14:30:22+01:00","subject":"Subject","files":null,"added":null,"deleted":null`},
		{"coloured", "\x1b[33mcommit " + hash + "\x1b[m\x1b[33m (\x1b[m\x1b[1;36mHEAD\x1b[m)\n" +
			"Author: Ada <a@x>\nDate:   2026-11-20\n\n" +
			"    S\n\n a | 2 \x1b[32m+\x1b[m\x1b[31m-\x1b[m\n 1 file changed, 1 insertion(+), 1 deletion(-)\n",
			`"author":"Ada","date":"2026-11-20","subject":"S","files":1,"added":1,"deleted":1`},
		{"merge and fuller", "commit " + hash + "\nMerge: 1 2\nAuthor:     Ada <a@x>\nAuthorDate: 2026-11-20 14:30:22 +0000\n" +
			"Commit:     B <b@x>\nCommitDate: 2026-11-21 14:30:22 +0000\n\n    S\n",
			`"author":"Ada","date":"2026-11-20T14:30:22+00:00","subject":"S","files":null,"added":null,"deleted":null`},
		{"raw", "commit " + hash + "\ntree " + hash + "\nauthor Ada L <a@x> 1000000000 -0200\ncommitter B <b@x> 1 +0000\n\n    S\n",
			`"author":"Ada L","date":"2001-09-08T23:46:40-02:00","subject":"S","files":null,"added":null,"deleted":null`},
		{"no name, no subject, a relative date", "commit " + hash + "\nAuthor: <a@x>\nDate:   2 days ago\n\n",
			`"author":"a@x","date":"2 days ago","subject":"","files":null,"added":null,"deleted":null`},
		{"stat", "commit " + hash + "\nAuthor: A <a@x>\nDate:   2026-11-20\n\n    S\n\n a | 2 +-\n b | Bin 0 -> 3 bytes\n 2 files changed, 1 insertion(+), 1 deletion(-)\n",
			`"author":"A","date":"2026-11-20","subject":"S","files":2,"added":1,"deleted":1`},
		{"numstat", "commit " + hash + "\nAuthor: A <a@x>\nDate:   2026-11-20\n\n    S\n\n3\t1\ta\n-\t-\tb\n",
			`"author":"A","date":"2026-11-20","subject":"S","files":2,"added":3,"deleted":1`},
		{"a subject like a commit", "commit " + hash + "\nAuthor: A <a@x>\nDate:   2026-11-20\n\n    commit " + hash + "\n",
			`"author":"A","date":"2026-11-20","subject":"commit ` + hash + `","files":null,"added":null,"deleted":null`},
		{"truncated", "commit " + hash + "\nAuth", `"author":null,"date":null,"subject":"","files":null,"added":null,"deleted":null`},
		{"odd encoding", "commit " + hash + "\nAuthor: J\xf6rg <j@x>\nDate:   2026-11-20\n\n    \xff\n",
			`"author":"J` + "\ufffd" + `rg","date":"2026-11-20","subject":"` + "\ufffd" + `","files":null,"added":null,"deleted":null`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := ""
			if tt.want != "" {
				want = `{"commit":"` + hash + `",` + tt.want + "}\n"
			}
			expect.Same(t, objects(t, tt.text), want)
		})
	}
}

// git itself gives the same fields.
func TestRecordsAgreeWithGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	run := func(env []string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), git, append([]string{"-C", dir}, args...)...)
		cmd.Env = append(append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null"), env...)
		out, err := cmd.CombinedOutput()
		expect.Must(t, err, "git %v, %s", args, out)
		return string(out)
	}
	run(nil, "init", "-q")
	for i, who := range []string{"Ada Lovelace", "Grace", "Ada Lovelace", "Zoë"} {
		name, text := filepath.Join(dir, fmt.Sprintf("f%d", i%3)), strings.Repeat("x\n", i+1)
		expect.Must(t, os.WriteFile(name, []byte(text), 0o600))
		env := []string{
			"GIT_AUTHOR_NAME=" + who, "GIT_AUTHOR_EMAIL=a@example.com",
			"GIT_COMMITTER_NAME=C", "GIT_COMMITTER_EMAIL=c@example.com",
			fmt.Sprintf(
				"GIT_AUTHOR_DATE=2026-01-0%dT10:00:00+0%d:30",
				i+1,
				i,
			), "GIT_COMMITTER_DATE=2026-02-01T00:00:00+0000",
		}
		run(env, "add", "-A")
		run(env, "commit", "-q", "-m", fmt.Sprintf("commit number %d\n\n    indented\n\nbody", i))
	}
	want := run(
		nil,
		"log",
		"--no-show-signature",
		`--format={"commit":"%H","author":"%an","date":"%aI","subject":"%s","files":null,"added":null,"deleted":null}`,
	)
	for _, args := range [][]string{
		{}, {"--date=iso"}, {"--format=fuller"}, {"--format=raw"}, {"--decorate=full", "--date=rfc"},
	} {
		got := objects(t, run(nil, append([]string{"log"}, args...)...))
		expect.Same(t, got, want, "%v (-git +ours)", args)
	}
	for _, stat := range []string{"--stat", "--shortstat", "--numstat"} {
		got := objects(t, run(nil, "log", stat))
		expect.Equal(t, strings.Count(got, `"files":1,"added":`), 4, "%s: %s", stat, got)
	}
}

func TestSummary(t *testing.T) {
	var text strings.Builder
	for i := range 9 {
		fmt.Fprintf(
			&text,
			"commit %040x\nAuthor: A%d <a@x>\nDate:   Fri Nov 2%d 14:30:22 2026 +0000\n\n    change %d\n\n a | 1 +\n 1 file changed, %d insertions(+)\n\n",
			i+1,
			i%7,
			i%3,
			i,
			i+1,
		)
	}
	s := New()
	for b := []byte(text.String()); len(b) > 0; { // in odd pieces
		n := min(7, len(b))
		s.Add(b[:n])
		b = b[n:]
	}
	var d digest.Summary
	s.Finish(&d)
	want := digest.Summary{
		Records: 9,
		Total:   []string{"9 commits", "2026-11-20 to 2026-11-22", "+45 −0"},
		Says: []string{
			"7 authors: A0 2, A1 2, A2 1, A3 1, A4 1 … and 2 more",
			"largest commit: 00000000 2026-11-22 change 8 (1 file, +9 −0)",
		},
	}
	if len(d.Body) != 9 || d.Body[0] != "00000000 2026-11-20 A0: change 0" {
		t.Errorf("body %q", d.Body)
	}
	d.Body = nil
	expect.Same(t, d, want)
}

// The spans are the commits, in the order and number of the objects.
func TestSpans(t *testing.T) {
	text := "commit " + strings.Repeat(
		"a",
		40,
	) + "\nAuthor: A\n\n    S\n\n a | 1 +\n\ncommit " + strings.Repeat(
		"b",
		40,
	) + "\nAuthor: B\n"
	var got []string
	expect.Must(t, Spans(context.Background(), strings.NewReader(text), func(_ int64, at content.Span) bool {
		got = append(got, text[at.Start:at.End])
		return true
	}))
	want := []string{
		strings.TrimSuffix(text[:strings.LastIndex(text, "commit")], "\n\n"),
		strings.TrimSuffix(text[strings.LastIndex(text, "commit"):], "\n"),
	}
	expect.Same(t, got, want)
}
