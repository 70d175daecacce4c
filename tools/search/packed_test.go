package search

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/tools/toolstest"
)

func gzipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := io.WriteString(w, text)
	expect.Must(t, err)
	expect.Must(t, w.Close())
	return b.String()
}

// A batch never keeps members in memory for which the next one waits.
func TestManyLargeMembers(t *testing.T) {
	text := strings.Repeat("a line of a large member\n", 7<<20/25)
	var members []string
	for i := range 1100 {
		members = append(members, fmt.Sprint("small", i), "x")
	}
	for i := range 20 {
		members = append(members, fmt.Sprint("large", i), text+"a needle\n")
	}
	s := toolstest.Roots(t, folder(t, "a.zip", zipped(t, members...)))
	ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second)
	defer cancel()
	a, err := callOn(t, ctx, &answer{}, Search(), s, args{"path": "a.zip", "pattern": "needle", "show": "counts"})
	expect.Must(t, err)
	expect.Equal(t, a.counts["total_matches"], 20)
}

func zipped(t *testing.T, members ...string) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(members); i += 2 {
		_, err := io.WriteString(expect.Value(z.Create(members[i]))(t), members[i+1])
		expect.Must(t, err)
	}
	expect.Must(t, z.Close())
	return b.String()
}

// Compressed files are searched as their content, small ones and large ones; archives if they are named or asked for.
func TestPackedFiles(t *testing.T) {
	long := strings.Repeat("nothing here, and a number 0123456789\n", 20_000)
	large := gzipped(t, long+"a needle\n")
	archive := zipped(t, "in/a.go", "a needle\n", "in/b.txt", "nothing\n", "c.gz", gzipped(t, "x\na needle"))
	s := toolstest.Roots(t, folder(t,
		"small.gz", gzipped(t, "one\na needle\n"), "large.gz", large, "cut.gz", large[:len(large)-20], "tiny.gz", large[:9],
		"a.zip", archive, "d/b.jar", archive, "plain.txt", "a needle\n", "word.docx", archive,
	))
	type row struct {
		file string
		line int64
	}
	for _, c := range []struct {
		args  args
		want  []row
		notes []string
	}{
		{args{}, []row{{"large.gz", 20_001}, {"plain.txt", 1}, {"small.gz", 2}}, []string{
			"the gzip file cut.gz is damaged", "1 file could not be read: read tiny.gz: tiny.gz begins like a gzip file",
			"2 files are decoded: large.gz (gzip, 760009 bytes from ", "small.gz (gzip, 13 bytes from",
		}},
		{args{"path": "a.zip"}, []row{{"a.zip/in/a.go", 1}, {"a.zip/c.gz", 2}}, []string{"decoded: a.zip/c.gz (gzip, 10 "}},
		{args{"path": "a.zip/in"}, []row{{"a.zip/in/a.go", 1}}, nil},
		{args{"path": "a.zip/c.gz"}, []row{{"a.zip/c.gz", 2}}, nil},
		{args{"path": "d", "archives": true}, []row{{"d/b.jar/in/a.go", 1}, {"d/b.jar/c.gz", 2}}, nil},
		{args{"archives": true, "glob": "*.go"}, []row{{"a.zip/in/a.go", 1}, {"d/b.jar/in/a.go", 1}}, nil},
		{args{"glob": "*.go"}, nil, nil},
	} {
		c.args["pattern"] = "needle"
		a := must(t, Search(), s, c.args)
		var got []row
		for _, r := range records(t, a) {
			got = append(got, row{r.File, r.Line})
		}
		expect.EqualList(t, got, c.want, c.args)
		expect.Contains(t, strings.Join(a.notes, "; "), c.notes...)
	}
	same := zipped(t, "x", "needle one\n", "y", "needle\n", "x", "needle two\n")
	twice := toolstest.Roots(t, folder(t, "twice.zip", same))
	const said = "1 name occurs more than once in twice.zip, such as x: the last of the members with one name is read"
	a := must(t, Search(), twice, args{"pattern": "needle", "archives": true})
	if got := records(t, a); len(got) != 2 || got[0].File != "twice.zip/y" || got[1].Text != "needle two" {
		t.Errorf("%+v", got)
	}
	expect.Equal(t, strings.Join(a.notes, "; "), said)
	a = must(t, Grep(), twice, args{"source": "twice.zip/x", "pattern": "needle"})
	expect.EqualList(t, a.rows, []string{"1: needle two"})
	expect.Contains(t, strings.Join(a.notes, "; "), "2 members have the name twice.zip/x: the last ")
	a = must(t, Grep(), s, args{"source": "a.zip/c.gz", "pattern": "needle"})
	expect.EqualList(t, a.rows, []string{"2: a needle"})
}
