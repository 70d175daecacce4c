package kinds

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus/digesttest"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

func recordsOf(t testing.TB, k content.Kind, text []byte) (n int64, err error) {
	t.Helper()
	r, _, err := content.Decode(bytes.NewReader(text))
	expect.Must(t, err)
	err = Records(context.Background(), r, k, func(int64, content.Span) bool { n++; return true })
	return n, err
}

func finish(k content.Kind, text []byte) digest.Summary {
	d := digestAs(k, text)
	_, _ = d.Write(text)
	return d.Close()
}

// TestRecordsAgree: slice takes records by the numbers that are told.
func TestRecordsAgree(t *testing.T) {
	for name, text := range digesttest.Cases(t) {
		s := summarize(name, text)
		if s.Records < 0 {
			continue
		}
		if n, err := recordsOf(t, s.Kind, text); n != s.Records {
			t.Errorf("%s: %d records, content has %d (%v)", name, s.Records, n, err)
		}
	}
}

func TestRecordsAgreeAny(t *testing.T) {
	scraps := rapid.SampledFrom([]string{"a", ",", ";", "\t", `"`, `""`, "\n", "\r\n", "\r", " ", "é", "1,2\n", "\"x\ny\",", "@@ -1,2 +1,2 @@\n", "@@ -1 +1 @@ f\n", "@@@ -1 -1 +1,2 @@@\n",
		"--- a/x\n", "+++ b/x\n", "diff --git a/x b/x\n", "+x\n", "-x\n", " x\n", "++x\n", "- x\n", "\\ No newline\n", "[", "]", "{}", `{"a":1}`, "12"})
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(strings.Join(rapid.SliceOfN(scraps, 0, 60).Draw(t, "text"), ""))
		for _, k := range []content.Kind{content.Table, content.Diff} {
			s := finish(k, text)
			var n int64
			_ = Records(context.Background(), bytes.NewReader(text), k, func(int64, content.Span) bool { n++; return true })
			expect.MustEqual(t, s.Records, n, "%s, records, content, %q", k, text)
		}
	})
}

var stat = regexp.MustCompile(`^(\d+) files?, (\d+) hunks?, \+(\d+) −(\d+)$`)

func statOf(t *testing.T, s digest.Summary) (files, added, removed int) {
	t.Helper()
	m := stat.FindStringSubmatch(s.Total[len(s.Total)-1])
	if m == nil {
		t.Fatalf("total: %q", s.Total)
	}
	files, _ = strconv.Atoi(m[1])
	added, _ = strconv.Atoi(m[3])
	removed, _ = strconv.Atoi(m[4])
	return files, added, removed
}

// TestDiffAgainstGit: files and lines as git apply counts them; also where lines look like headers.
func TestDiffAgainstGit(t *testing.T) {
	dir := t.TempDir()
	compare := func(name string, text []byte) {
		files, added, removed := 0, 0, 0
		for line := range strings.Lines(digesttest.Output(t, text, "git", "-C", dir, "apply", "--numstat", "-")) {
			var a, r int
			if n, _ := fmt.Sscanf(line, "%d %d", &a, &r); n == 2 {
				added += a
				removed += r
			}
			files++
		}
		f, a, r := statOf(t, finish(content.Diff, text))
		if f != files || a != added || r != removed {
			t.Errorf("%s: %d files, +%d −%d; git: %d files, +%d −%d", name, f, a, r, files, added, removed)
		}
	}
	all := digesttest.Cases(t)
	for _, name := range []string{"git.diff", "mail.diff", "corpus-novel.diff"} {
		compare(name, all[name])
	}
	r := rand.New(rand.NewPCG(3, 5))
	words := []string{
		"-- select", "++ x", "--- a/y", "+++ b/y", "@@ -1 +1 @@", "diff --git a/q b/q", "", " ", "\\ No newline", "line", "x",
		"other", "Binary files a and b differ", "rename to z",
	}
	for i := range 12 {
		var old, changed strings.Builder
		for range 120 {
			w := words[r.IntN(len(words))] + "\n"
			if r.IntN(8) > 0 {
				old.WriteString(w)
			}
			if r.IntN(8) > 0 {
				changed.WriteString(w)
			}
		}
		a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
		for p, text := range map[string]string{a: old.String(), b: strings.TrimSuffix(changed.String(), "\n")} {
			expect.Must(t, os.WriteFile(p, []byte(text), 0o600))
		}
		compare(
			fmt.Sprintf("random %d", i),
			[]byte(digesttest.Output(t, nil, "git", "diff", "--no-index", "--src-prefix=a/", "--dst-prefix=b/", a, b)),
		)
	}
}

// TestDiffCutAnywhere: a diff that ends anywhere is counted as far as it goes, and says so inside a hunk.
func TestDiffCutAnywhere(t *testing.T) {
	text := digesttest.Cases(t)["git.diff"]
	told := 0
	for n := range text {
		s := finish(content.Diff, text[:n])
		if got, _ := recordsOf(t, content.Diff, text[:n]); got != s.Records {
			t.Fatalf("cut at %d: %d hunks, content has %d", n, s.Records, got)
		}
		if len(s.Says) > 0 && strings.HasPrefix(s.Says[0], "breaks off inside hunk ") {
			told++
		}
	}
	if told < 50 || told > len(text)/2 {
		t.Errorf("%d of %d cuts stand inside a hunk", told, len(text))
	}
}

// cutAsRead says in what a summary tells of a break otherwise than content, by which slice goes.
func cutAsRead(t *testing.T, k content.Kind, text []byte, s digest.Summary) string {
	n, err := recordsOf(t, k, text)
	var syntax *content.SyntaxError
	switch {
	case s.Records >= 0 && s.Records != n:
		return fmt.Sprintf("%d records, content has %d", s.Records, n)
	case !errors.As(err, &syntax):
		if s.Cut == nil {
			return ""
		}
	case s.Cut != nil && syntax.Cut && s.Cut.Offset == syntax.Offset && strings.HasSuffix(syntax.Reason, " "+s.Cut.Inside):
		return ""
	}
	return fmt.Sprintf("%+v, content says %v", s.Cut, err)
}

// TestCutNumbers: what a number or literal says that the text ends with is in no count and no range.
func TestCutNumbers(t *testing.T) {
	var numbers, objects, lines strings.Builder
	numbers.WriteString("[5000")
	objects.WriteString(`[{"price":5000}`)
	for i := range 899 {
		fmt.Fprintf(&numbers, ",%d", 5001+i)
		fmt.Fprintf(&objects, `,{"price":%d}`, 5001+i)
		fmt.Fprintf(&lines, "{\"price\":%d}\n", 5001+i)
	}
	for text, want := range map[string]string{
		numbers.String() + ",5":            "900 complete elements; [900] number 5000…5899",
		numbers.String() + ",false":        "900 complete elements; [900] number 5000…5899",
		objects.String() + `,{"price":5`:   "900 complete elements; [900] {price: number 5000…5899}",
		lines.String() + "5":               "899 complete records; [899] {price: number 5001…5899}",
		lines.String() + `{"price":5`:      "899 complete records; [899] {price: number 5001…5899}",
		lines.String() + "\n{\"price\":tr": "899 complete records; [899] {price: number 5001…5899}",
	} {
		s := summarize("", []byte(text))
		expect.Equal(t, strings.Join(append(s.Total, s.Shapes[0]), "; "), want, "…%s", text[len(text)-12:])
	}
}

// TestPointersAreThoseOfSlice: a pointer of the summary stands in one line, in which slice takes it back.
func TestPointersAreThoseOfSlice(t *testing.T) {
	s := summarize("", []byte("{\"x\\ny\":["+strings.Repeat(`{"id":1},`, 300)+`{"id`))
	const at = `/x\x0ay`
	said := strings.Join(slices.Concat(s.Total, s.Says, s.Body), "\n")
	for _, want := range []string{"300 elements at " + at, "inside key at " + at + "/300", "last complete: " + at +
		"/299", "at " + at + "/0: "} {
		expect.Contains(t, said, want)
	}
}

// TestCutAnywhere: JSON that ends anywhere says where, and counts what was complete.
func TestCutAnywhere(t *testing.T) {
	text := []byte(
		`[{"file":"a","n":[1,2,{"x":null}]},{"file":"b","n":[]},-1.5e3, true,` + "\n" +
			` {"file":"b\"c","n":[true,"é"],"rare":1}]`,
	)
	for n := 1; n < len(text); n++ {
		s := finish(content.JSON, text[:n])
		expect.Equal(t, cutAsRead(t, content.JSON, text[:n], s), "", "cut at %d", n)
		if s.Cut == nil || len(s.Says) == 0 ||
			!strings.HasPrefix(s.Says[0], "breaks off at byte "+digest.Number(int64(n))+",") {
			t.Fatalf("cut at %d: %v %q", n, s.Cut, s.Says)
		}
		for _, shape := range s.Shapes {
			if strings.Contains(shape, "file?") || strings.Contains(shape, "n?") {
				t.Errorf("cut at %d: a key is called rare because the text ends: %s", n, shape)
			}
		}
	}
	if s := finish(content.JSON, text); s.Cut != nil || len(s.Says) > 0 {
		t.Errorf("whole: %v %q", s.Cut, s.Says)
	}
}

// TestFilesAgainstNaive: matches, files and the top, in order and out of it, and with more files than are remembered.
func TestFilesAgainstNaive(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for _, c := range []struct {
		files, n int
		sorted   bool
	}{{10, 1000, true}, {10, 1000, false}, {20_000, 60_000, true}, {20_000, 60_000, false}} {
		names := make([]string, c.n)
		for i := range names {
			f := r.IntN(c.files)
			if r.IntN(4) == 0 {
				f = r.IntN(c.files/10 + 1)
			}
			names[i] = fmt.Sprintf("dir/%05d.go", f)
		}
		if c.sorted {
			slices.Sort(names)
		}
		counts := map[string]int{}
		var b strings.Builder
		for i, name := range names {
			counts[name]++
			fmt.Fprintf(&b, `{"line":%d,"file":%q}`+"\n", i, name)
		}
		s := finish(content.NDJSON, []byte(b.String()))
		if s.Matches != int64(c.n) || s.Files != int64(len(counts)) {
			t.Errorf("%+v: %d matches in %d files, want %d", c, s.Matches, s.Files, len(counts))
		}
		if c.files > 12_000 && !c.sorted {
			if strings.HasPrefix(s.Body[0], "top:") {
				t.Errorf("%+v: a top of what was not all counted: %s", c, s.Body[0])
			}
			continue
		}
		all := make([]string, 0, len(counts))
		for name := range counts {
			all = append(all, name)
		}
		sort.Slice(all, func(i, j int) bool {
			if counts[all[i]] != counts[all[j]] {
				return counts[all[i]] > counts[all[j]]
			}
			return all[i] < all[j]
		})
		want := "top: "
		for i, name := range all[:10] {
			if i > 0 {
				want += ", "
			}
			want += fmt.Sprintf("%s %d", name, counts[name])
		}
		expect.Equal(t, s.Body[0], want, c)
	}
}

// What is looked for in a whole piece is found wherever the text is cut, and where an escape sequence hides it.
func TestMarksWhereverCut(t *testing.T) {
	text := []byte("2026-11-20T12:00:00Z INFO start of it\n" +
		"2026-11-20T12:00:01Z INFO http: \x1b[31mpan\x1b[0mic serving 10.0.0.1:80: oh\n" +
		"2026-11-20T12:00:02Z INFO thread 'main' panicked at src/main.rs:1\n" +
		"Nov 20 12:00:03 host kernel: [1.2] Out of memory: Killed process 12 (a)\n" +
		"2026-11-20T12:00:04Z INFO end of it\n")
	want := finish(content.Log, text)
	if says := strings.Join(append(want.Total, want.Says...), "\n"); !strings.Contains(says, "2 panics") ||
		!strings.Contains(says, "1 crash") {
		t.Fatalf("not all is found:\n%s", says)
	}
	for at := range text {
		d := digestAs(content.Log, text)
		_, _ = d.Write(text[:at])
		_, _ = d.Write(text[at:])
		if got := d.Close(); !reflect.DeepEqual(got, want) {
			t.Fatalf("cut at %d:\n%+v, not\n%+v", at, got, want)
		}
	}
}
