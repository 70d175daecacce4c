package diff

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

type fileRecord struct {
	File           string
	OldFile        *string `json:"old_file"`
	Status         *string
	Added, Deleted *int64
	Hunks          []struct {
		At, Lines, Added, Deleted int64
		Header                    string
	}
	Truncated bool
}

func recordsOf(t *testing.T, text string) (all []fileRecord) {
	t.Helper()
	var out bytes.Buffer
	err := Objects(t.Context(), strings.NewReader(text), &out)
	if err != nil && !errors.As(err, new(*content.Remarks)) {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		var f fileRecord
		d := json.NewDecoder(strings.NewReader(line))
		d.DisallowUnknownFields()
		expect.Must(t, d.Decode(&f), line)
		all = append(all, f)
	}
	return all
}

// brief writes records as "status old→file +added −deleted hunks".
func brief(all []fileRecord) (lines []string) {
	word := func(s *string) string {
		if s == nil {
			return "null"
		}
		return *s
	}
	number := func(n *int64) string {
		if n == nil {
			return "null"
		}
		return strconv.FormatInt(*n, 10)
	}
	for _, f := range all {
		s := fmt.Sprintf(
			"%s %s→%s +%s −%s %d",
			word(f.Status),
			word(f.OldFile),
			f.File,
			number(f.Added),
			number(f.Deleted),
			len(f.Hunks),
		)
		if f.Truncated {
			s += " truncated"
		}
		lines = append(lines, s)
	}
	return lines
}

// svn is a diff of Subversion with lines of properties that look like headers and hunks.
var svn = strings.ReplaceAll(`Index: trunk/readme.txt
=
--- trunk/readme.txt	(revision 12)
+++ trunk/readme.txt	(working copy)
@@ -1,2 +1,3 @@
 one
+two
 three

Property changes on: trunk/readme.txt
___________________________________________________________________
Added: p:x
## -1,2 +1,3 ##
--- x
-@@ -1 +1 @@
+++ y
+Index: z
+@@ -1 +1 @@
\ No newline at end of property
Index: trunk/new.txt
=
--- trunk/new.txt	(nonexistent)
+++ trunk/new.txt	(working copy)
@@ -0,0 +1 @@
+hello
Index: trunk/logo.png
=
Cannot display: file marked as a binary type.
svn:mime-type = application/octet-stream
Index: trunk/new.png
=
Cannot display: file marked as a binary type.
svn:mime-type = image/png

Property changes on: trunk/new.png
___________________________________________________________________
Added: svn:mime-type
## -0,0 +1 ##
+image/png
\ No newline at end of property
Index: trunk/empty
=
Index: trunk/gone.txt
=
--- trunk/gone.txt	(revision 12)
+++ trunk/gone.txt	(nonexistent)
@@ -1 +0,0 @@
-bye

Property changes on: trunk
___________________________________________________________________
Added: svn:ignore
   + *.o
`, "\n=\n", "\n"+strings.Repeat("=", 67)+"\n")

func TestRecords(t *testing.T) {
	const git = "diff --git a/%s b/%s\n"
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"empty", "", nil},
		{"no diff", "hello\nworld\n", nil},
		{"plain", "--- a.c\t2026-01-01\n+++ b.c\t2026-01-01\n@@ -1 +1,2 @@\n-x\n+y\n+z\n", []string{"modified a.c→b.c +2 −1 1"}},
		{"added by /dev/null", "--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+y\n", []string{"added null→n +1 −0 1"}},
		{"deleted by /dev/null", "--- a/n\n+++ /dev/null\n@@ -1 +0,0 @@\n-y\n", []string{"deleted n→n +0 −1 1"}},
		{"a removed line like a header", "--- a/n\n+++ b/n\n@@ -1,2 +1 @@\n--- x\n y\n--- a/o\n+++ b/o\n@@ -1 +1 @@\n-a\n+b\n", []string{
			"modified n→n +0 −1 1", "modified o→o +1 −1 1",
		}},
		{"truncated", fmt.Sprintf(git, "f", "f") + "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n", []string{
			"modified f→f +0 −1 1 truncated",
		}},
		{"cut in the middle", "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n[cut]\n--- a/g\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n", []string{
			"modified f→f +0 −1 1 truncated", "modified g→g +1 −1 1",
		}},
		{"mode alone", fmt.Sprintf(git, "f", "f") + "old mode 100644\nnew mode 100755\n", []string{"modified f→f +0 −0 0"}},
		{"copy", fmt.Sprintf(git, "f", "g") + "similarity index 100%\ncopy from f\ncopy to g\n", []string{
			"added f→g +0 −0 0",
		}},
		{"binary", fmt.Sprintf(git, "f", "f") + "index 1..2 100644\nBinary files a/f and b/f differ\n", []string{
			"modified f→f +null −null 0",
		}},
		{"only in", "Only in b: x.txt\n", []string{"null b/x.txt→b/x.txt +null −null 0"}},
		{"merge", "diff --cc f\nindex 1,2..3\n--- a/f\n+++ b/f\n@@@ -1,1 -1,1 +1,2 @@@\n- a\n -b\n++c\n++d\n", []string{"modified f→f +2 −2 1"}},
		{"several commits", "commit " + strings.Repeat("a", 40) + "\nAuthor: A\n\n    m\n\n" + fmt.Sprintf(git, "f", "f") +
			"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n\ncommit " + strings.Repeat("b", 40) + "\n\n    --- x\n\n" +
			fmt.Sprintf(git, "g", "g") +
			"--- a/g\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n", []string{"modified f→f +1 −1 1", "modified g→g +1 −1 1"}},
		{"svn", svn, []string{
			"modified trunk/readme.txt→trunk/readme.txt +1 −0 1", "added null→trunk/new.txt +1 −0 1",
			"modified trunk/logo.png→trunk/logo.png +null −null 0", "null trunk/new.png→trunk/new.png +null −null 0",
			"null trunk/empty→trunk/empty +0 −0 0", "deleted trunk/gone.txt→trunk/gone.txt +0 −1 1",
			"modified trunk→trunk +0 −0 0",
		}},
		{"CVS", "Index: d/f.c\n" + strings.Repeat("=", 67) + "\nRCS file: /cvs/d/f.c,v\nretrieving revision 1.1\n" +
			"diff -u -r1.1 -r1.2\n--- f.c\t1 Jan 2026 00:00:00 -0000\t1.1\n+++ f.c\t2 Jan 2026 00:00:00 -0000\t1.2\n" +
			"@@ -1 +1 @@\n-a\n+b\n", []string{"modified d/f.c→d/f.c +1 −1 1"}},
		{"hg", "diff -r 000000000000 a/my x.bin\nBinary file a/my x.bin has changed\n" +
			"diff -r 0123456789ab -r 1123456789ab a/two words\n--- a/a/two words\tThu Jan 01 00:00:00 1970 +0000\n" +
			"+++ b/a/two words\tFri Jan 02 00:00:00 2026 +0000\n@@ -1,1 +1,1 @@\n-a\n+b\n", []string{
			"null a/my x.bin→a/my x.bin +null −null 0", "modified a/two words→a/two words +1 −1 1",
		}},
		{"diff -rN", "diff -ruN a/my new b/my new\n--- a/my new\t1970-01-01 01:00:00.000000000 +0100\n" +
			"+++ b/my new\t2026-01-01 00:00:00.000000000 +0000\n@@ -0,0 +1 @@\n+1\n" +
			"Binary files a/x and y and b/x and y differ\n" +
			"--- a/old\t1970-01-01 00:00:00.000000000 +0000\n+++ b/old\t2026-01-01 00:00:00 +0000\n@@ -1 +1 @@\n-1\n+2\n", []string{
			"added null→my new +1 −0 1", "modified x and y→x and y +null −null 0", "modified old→old +1 −1 1",
		}},
		{"binary patch", "diff --git a/b b/b\nindex 1..2 100644\nGIT binary patch\nliteral 3\nKc$`aQNCE%>hycU@\n\nliteral 3\n" +
			"Kc$`aQNCp4_i2%g_\n\ndiff --git a/f b/f\nindex 1..2 100644\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n", []string{
			"modified b→b +null −null 0", "modified f→f +1 −1 1",
		}},
		{"merge of binary files", "diff --cc b\nindex 1,2..3\nBinary files differ\n", []string{"modified b→b +null −null 0"}},
		{"custom prefixes", "diff --git x/y/my mode z/my mode\nold mode 100644\nnew mode 100755\n" +
			"diff --git x/y/f z/f\nindex 1..2\n--- x/y/f\n+++ z/f\n@@ -1 +1 @@\n-a\n+b\n", []string{
			"modified my mode→my mode +0 −0 0", "modified f→f +1 −1 1",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			expect.Same(t, brief(recordsOf(t, tt.text)), tt.want)
		})
	}
}

// A hunk's at and lines are the lines of the diff that it takes, and its span is their text.
func TestHunksOfRecords(t *testing.T) {
	text := "--- a/n\r\n+++ b/n\r\n@@ -1,2 +1 @@ f()\r\n-x\r\n y\r\n@@ -9 +8 @@\n-a\n+b\n\\ No newline at end of file\n-- \n2.39\n"
	lines := strings.Split(text, "\n")
	all := recordsOf(t, text)
	if len(all) != 1 || len(all[0].Hunks) != 2 {
		t.Fatalf("%+v", all)
	}
	for i, h := range all[0].Hunks {
		shown := lines[h.At-1 : h.At-1+h.Lines]
		if !strings.HasPrefix(shown[0], h.Header) || strings.Contains(strings.Join(shown, "\n"), "2.39") {
			t.Errorf("hunk %d: %q is %q", i, h.Header, shown)
		}
		err := Files(t.Context(), strings.NewReader(text), func(_ int64, f *File) bool {
			at := f.Hunks[i].At
			if got := strings.TrimSuffix(text[at.Start:at.End], "\r"); got != strings.TrimSuffix(
				strings.Join(shown, "\n"),
				"\r",
			) {
				t.Errorf("hunk %d: the span is %q, the lines are %q", i, got, shown)
			}
			return true
		})
		expect.OK(t, err)
	}
}

// git counts the same lines and names the same files.
func TestRecordsAgreeWithGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(
			t.Context(),
			git,
			append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		out, err := cmd.CombinedOutput()
		expect.Must(t, err, "git %v, %s", args, out)
		return string(out)
	}
	write := func(name, text string) {
		t.Helper()
		expect.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	run("init", "-q")
	write("changed", "a\nb\n-- c\n")
	write("two words", strings.Repeat("line\n", 30))
	write("gone", "x\n")
	write("bin", "a\x00b")
	write("ümläut", "1\n")
	run("add", "-A")
	run("commit", "-qm", "one")
	write("changed", "a\nB\n++ d\n-- e\n")
	write("two words", strings.Repeat("line\n", 14)+"new\n"+strings.Repeat("line\n", 16)+"end")
	write("bin", "a\x00c")
	write("ümläut", "2")
	write("new", "")
	run("rm", "-q", "gone")
	run("mv", "two words", "three  words")
	run("add", "-A")
	var want []string
	for line := range strings.Lines(run("diff", "--cached", "-M", "--numstat", "-z")) {
		parts := strings.Split(line, "\x00")
		for i := 0; i+1 < len(parts); i++ {
			f := strings.Split(parts[i], "\t")
			if f[2] == "" { // renamed: old and new name follow
				f[2] = parts[i+2]
				i += 2
			}
			want = append(want, strings.ReplaceAll(fmt.Sprintf("%s %s %s", f[0], f[1], f[2]), "-", "null"))
		}
	}
	var got []string
	for _, f := range recordsOf(t, run("diff", "--cached", "-M")) {
		number := func(n *int64) string {
			if n == nil {
				return "null"
			}
			return strconv.FormatInt(*n, 10)
		}
		got = append(got, number(f.Added)+" "+number(f.Deleted)+" "+f.File)
	}
	if diff := cmp.Diff(want, got); diff != "" || len(want) != 6 {
		t.Errorf("(-git +ours)\n%s", diff)
	}
}
