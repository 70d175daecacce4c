package conformance

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// badAnswer is a call on an odd input, a line of testdata/bad/answers.ndjson, and what its answer must contain. The
// numbers follow from badTexts, not from an answer.
type badAnswer struct {
	Name  string   `json:"name"`
	Tool  string   `json:"tool"`
	Args  object   `json:"args"` // "$ID" is the observation that the call before stored
	Globs int      `json:"globs"`
	Glob  string   `json:"glob"` // with %d: the argument glob is a list of so many
	Fails bool     `json:"fails"`
	Shows []string `json:"shows"`
	Lacks []string `json:"lacks"`

	Then []badAnswer `json:"then"`
}

// badHunk returns the diff of a file with one hunk: a line that stays, 20 deleted and 30 added ones.
func badHunk(i int) string {
	var b strings.Builder
	fmt.Fprintf(
		&b,
		"diff --git a/f%d.go b/f%[1]d.go\nindex 1111111..2222222 100644\n--- a/f%[1]d.go\n+++ b/f%[1]d.go\n",
		i,
	)
	fmt.Fprintf(&b, "@@ -1,21 +1,31 @@ func f%d()\n keep\n", i)
	for k := range 20 {
		fmt.Fprintf(&b, "-old %d\n", k)
	}
	for k := range 30 {
		fmt.Fprintf(&b, "+new %d of %d\n", k, i)
	}
	return b.String()
}

// badTexts returns the odd inputs by file name. They are made here because they are large.
func badTexts(t testing.TB) map[string]string {
	t.Helper()
	files := map[string]string{"plain.txt": "one\ntwo\nthree\n"}
	add := func(name string, n int, line func(i int) string) {
		var b strings.Builder
		for i := range n {
			b.WriteString(line(i))
		}
		files[name] += b.String()
	}
	add("keys.txt", 100_000, func(i int) string { return fmt.Sprintf("id=%06d done\n", i) })
	add("keys.txt", 50, func(int) string { return "id=000007 again\n" })
	for i := range 10 {
		files[fmt.Sprintf("globs/a%d.json", i)] = "{}"
	}
	files["globs/other.md"] = "one\n"
	files["theirs/.mcp-funnel-store"], files["theirs/token"] = "", "zzz-nowhere\n"

	add("end.diff", 200, badHunk)
	whole := files["end.diff"]
	last := badHunk(199)
	files["end.diff"] = whole[:len(whole)-len(last)+strings.Index(last, "-old 6")]
	cut := badHunk(100)
	files["middle.diff"] = strings.Replace(whole, cut, cut[:strings.Index(cut, "+new 4")]+"[9000 lines left out]\n", 1)
	add("merged.diff", 300, func(i int) string {
		return fmt.Sprintf("diff --cc m%d.go\nindex 1111111,2222222..3333333\n--- a/m%[1]d.go\n+++ b/m%[1]d.go\n"+
			"@@@ -1,3 -1,3 +1,4 @@@ func f()\n  keep\n- ours\n -theirs\n++both\n++more\n  end\n", i)
	})
	files["joined.diff"] = whole + files["merged.diff"]

	add("three.log", 300, func(i int) string {
		return fmt.Sprintf("2026-03-01T10:%02d:%02dZ INFO server request id=%d status=200\n", i/60, i%60, i)
	})
	add("three.log", 200, func(i int) string {
		return fmt.Sprintf("Mar  1 11:%02d:%02d host sshd[%d]: Accepted key\n", i/60, i%60, i)
	})
	add("three.log", 100, func(i int) string {
		return fmt.Sprintf("[01/Mar/2026:12:%02d:%02d +0000] ERROR disk failed\n", i/60, i%60)
	})

	files["ragged.csv"] = "id,name,amount\n"
	add("ragged.csv", 1000, func(i int) string {
		switch i % 100 {
		case 50:
			return fmt.Sprintf("%d,short\n", i)
		case 70:
			return fmt.Sprintf("%d,long,%d,extra,more\n", i, i)
		}
		return fmt.Sprintf("%d,n%d,%d\n", i, i%5, 2*i)
	})
	add("wide.csv", 201, func(row int) string {
		cells := []string{}
		for i := range 2000 {
			if row == 0 {
				cells = append(cells, fmt.Sprint("c", i))
			} else {
				cells = append(cells, fmt.Sprint((row-1)*2000+i))
			}
		}
		return strings.Join(cells, ",") + "\n"
	})

	commits := func(name string, authors ...string) {
		add(name, 120, func(i int) string {
			return fmt.Sprintf(
				"commit %08x%032x\nAuthor: %s <a@x.org>\nDate:   Mon Mar 2 10:%02d:00 2026 +0100\n\n    Fix %d\n\n",
				i+1,
				i,
				authors[i%len(authors)],
				i%60,
				i,
			)
		})
	}
	commits("latin.gitlog", "J\xf6rg M\xfcller", "Ren\xe9e", "plain name")
	commits("mixed.gitlog", "Łukasz Żółć", "山田太郎", "Zoë", "Anaïs", "J\xf6rg") // 24 bytes in no UTF-8
	commits("wide.gitlog", "Łukasz", "山田太郎")
	var wide strings.Builder
	wide.WriteString("\xff\xfe")
	for _, u := range utf16.Encode([]rune(files["wide.gitlog"])) {
		wide.Write([]byte{byte(u), byte(u >> 8)})
	}
	files["wide.gitlog"] = wide.String()

	records := []any{}
	for i := range 500 {
		records = append(records, object{"file": fmt.Sprintf("src/f%d.go", i%20), "line": i, "message": "unused"})
	}
	var deep any = records
	for k := range 5 {
		deep = object{fmt.Sprint("level", 5-k): deep, "n": k}
	}
	files["objects.json"] = marshal(t, deep)
	files["strings.json"] = marshal(t, records)
	for range 5 {
		files["strings.json"] = marshal(t, files["strings.json"])
	}
	return files
}

func marshal(t testing.TB, v any) string {
	t.Helper()
	b := expect.Value(json.Marshal(v))(t)
	return string(b)
}

// Each odd input gets an answer with the right totals, in which what is not shown is counted.
func TestBadInputsAreCounted(t *testing.T) {
	drivesOnly(t)
	t.Parallel()
	root := t.TempDir()
	for name, text := range badTexts(t) {
		write(t, filepath.Join(root, name), text)
	}
	s := serveStdio(t, root)
	cases := corpus.Rows[badAnswer](t, "bad/answers.ndjson")
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) { c.check(t, s, "") })
	}
	if len(cases) < 40 {
		t.Errorf("only %d cases", len(cases))
	}
}

var observationID = regexp.MustCompile(`obs:[0-9a-hjkmnp-tv-z]{12}`)

// check makes the call and those that follow. id is the observation that the call before stored.
func (c badAnswer) check(t *testing.T, s *stdioClient, id string) {
	t.Helper()
	for name, v := range c.Args {
		if v == "$ID" {
			c.Args[name] = id
		}
	}
	if c.Globs > 0 {
		all := []string{}
		for i := range c.Globs {
			all = append(all, fmt.Sprintf(c.Glob, i))
		}
		c.Args["glob"] = all
	}
	a := expect.Value(s.call(c.Tool, c.Args))(t)
	text := a.text()
	expect.Equal(t, a.failed, c.Fails, "failed: %.500s", text)
	for _, want := range c.Shows {
		expect.Has(t, text, want, "%s does not show", c.Tool)
	}
	for _, wrong := range c.Lacks {
		if strings.Contains(text, wrong) {
			t.Errorf("%s shows %q:\n%.3000s", c.Tool, wrong, text)
		}
	}
	for _, next := range c.Then {
		next.check(t, s, observationID.FindString(text))
	}
}
