package fs

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/tools/toolstest"
)

// TestPackedFiles: find, read and slice take a compressed file as its content, and an archive as a directory.
func TestPackedFiles(t *testing.T) {
	var gz, archive bytes.Buffer
	w := gzip.NewWriter(&gz)
	_, err := io.WriteString(w, strings.Repeat("a line\n", 20_000)+"the end\n")
	if err == nil {
		err = w.Close()
	}
	z := zip.NewWriter(&archive)
	for _, name := range []string{"d/app.log.gz", "b.txt"} {
		if m, e := z.Create(name); e == nil {
			_, err = m.Write(gz.Bytes())
		}
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	plant(t, dir, map[string]string{
		"app.log.gz": gz.String(), "a.zip": archive.String(), "cut.log.gz": gz.String()[:gz.Len()-4], "small.gz": "\x1f\x8b\x08",
		"cut.zip": archive.String()[:99],
	})
	s := toolstest.Roots(t, dir)
	const sizes = "decoded from gzip, 140008 bytes from "
	for _, c := range []struct {
		args       string
		want, note string
	}{
		{`{"path":"app.log.gz"}`, "a line\na line\n", sizes},
		{`{"source":"app.log.gz","lines":"20001"}`, "the end", sizes},
		{`{"source":"app.log.gz","lines":"-1"}`, "the end", sizes},
		{`{"source":"app.log.gz","bytes":"140000-140002"}`, "", sizes},
		{`{"source":"a.zip/d/app.log.gz","lines":"20001-"}`, "the end", sizes},
		{`{"source":"cut.log.gz","lines":"20001"}`, "the end", "cut.log.gz is damaged: at byte "},
		{`{"path":"cut.zip","show":"list"}`, "", "cut.zip: its members from number 1 on cannot be read: zip: not a valid zip file"},
		{`{"path":"a.zip"}`, "a.zip: archive, application/zip, ", ""},
		{`{"path":"small.gz"}`, "small.gz: binary, application/gzip, 3 bytes", "nothing of it can be read"},
		{`{"path":"a.zip/**"}`, "==> a.zip/b.txt <==", ""},
		{`{"path":"app.log.gz","show":"stat"}`, `"kind":"text","lines":20001,"tokens":`, ""},
		{`{"path":"app.log.gz","show":"stat"}`, `"unpacked":140008}`, ""},
		{`{"path":"cut.log.gz","show":"stat"}`, `"unpacked":140008,"error":"the gzip file cut.log.gz is damaged`, ""},
		{`{"path":"small.gz","show":"stat"}`, `"kind":"binary","error":"small.gz begins like a gzip file`, ""},
		{`{"path":"a.zip","show":"stat"}`, `{"path":"a.zip/d/app.log.gz","type":"file","size":`, ""},
		{`{"path":"cut.log.gz","show":"kinds"}`, "stored; the gzip file cut.log.gz is damaged: at byte ", ""},
		{`{"path":"a.zip","show":"tree"}`, "a.zip/\n  b.txt\n  d/\n    app.log.gz\n", ""},
		{`{"path":"a.zip","depth":1,"type":"dir"}`, `{"path":"a.zip/d","type":"dir","size":0,"modified":"`, ""},
		{`{"path":"a.zip/d","sort":"size"}`, `{"path":"a.zip/d/app.log.gz","type":"file","size":`, ""},
	} {
		tool := Read()
		if strings.Contains(c.args, `"source"`) {
			tool = Slice()
		} else if strings.ContainsAny(strings.TrimPrefix(c.args, `{"path":"`), ",") {
			tool = Find()
		}
		a, err := call(t, tool, s, c.args)
		if err != nil {
			t.Errorf("%s: %v", c.args, err)
			continue
		}
		notes := strings.Join(a.notes, "; ")
		if !strings.Contains(a.String(), c.want) || !strings.Contains(notes, c.note) {
			t.Errorf("%s: %.300s\nnotes %q; want %q and %q", c.args, a.String(), notes, c.want, c.note)
		}
	}
}
