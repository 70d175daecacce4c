package search

import (
	"strings"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/simplifiedchinese"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/tools/toolstest"
)

func encoded(t *testing.T, by encoding.Encoding, text string) string {
	t.Helper()
	stored, err := by.NewEncoder().String(text)
	expect.Must(t, err)
	return stored
}

// Texts in other encodings than UTF-8 are found, or a note names them.
func TestEncodings(t *testing.T) {
	plain := strings.Repeat("2026-03-01 INFO request served\n", 6000)
	s := toolstest.Roots(t, folder(t,
		"latin1.txt", encoded(t, charmap.Windows1252, "eins\nLe café est fermé à Orléans le mardi.\n"),
		"cp1251.txt", encoded(t, charmap.Windows1251, "Собрание пройдет в Казани во вторник.\n"),
		"gbk.txt", encoded(t, simplifiedchinese.GBK, "会议将于星期二在杭州举行。\n"),
		"sjis.txt", encoded(t, japanese.ShiftJIS, "会議は火曜日に京都で行われます。\n"),
		"word.txt", encoded(t, charmap.Windows1251, "city: Омск\n"),
		"late.log", plain+encoded(t, charmap.Windows1252, "Zürich\n"),
		"mixed.txt", "Grüße Größe\n"+encoded(t, charmap.Windows1252, "Zürich\n"),
		"nfd.txt", "Gebu\u0308hr\n",
	))
	const doubtful = " not UTF-8, and words of"
	for _, c := range []struct {
		pattern, file, text string // text: of the line
		notes               []string
	}{
		{"Orléans", "latin1.txt", "Le café est fermé à Orléans le mardi.", []string{"latin1.txt (latin-1)", "3 files"}},
		{"Казан[иь]", "cp1251.txt", "Собрание пройдет в Казани во вторник.", []string{"cp1251.txt (windows-1251)", doubtful}},
		{"杭州", "gbk.txt", "会议将于星期二在杭州举行。", []string{"gbk.txt (gbk)", doubtful}},
		{"京都", "sjis.txt", "会議は火曜日に京都で行われます。", []string{"sjis.txt (shift_jis)", doubtful}},
		{"Омск", "word.txt", "city: Омск", []string{"decoded: word.txt (perhaps windows-1251)"}},
		{"Zürich", "", "", []string{"3 files are" + doubtful, "late.log (some bytes)", "mixed.txt (some bytes)", "(perhaps"}},
		{"Gebühr", "nfd.txt", "Gebu\u0308hr", nil},
		{"Orle\u0301ans", "latin1.txt", "Le café est fermé à Orléans le mardi.", nil},
		{"city", "word.txt", "city: Омск", []string{"decoded: word.txt (perhaps windows-1251)"}},
	} {
		a := must(t, Search(), s, args{"pattern": c.pattern})
		found := records(t, a)
		var want []record
		if c.file != "" {
			want = []record{{File: c.file, Line: 1, Text: c.text}}
		}
		if c.file == "latin1.txt" {
			want[0].Line = 2
		}
		expect.Same(t, found, want, "search %s", c.pattern)
		for _, want := range c.notes {
			if !strings.Contains(a.note(), want) {
				t.Errorf("search %s: no %q in %q", c.pattern, want, a.note())
			}
		}
		if c.pattern == "city" && strings.Contains(a.note(), doubtful) {
			t.Errorf("a pattern of ASCII: %q", a.note())
		}
	}
	for source, want := range map[string]string{
		"latin1.txt": "decoded from latin-1", "word.txt": "not UTF-8: read as windows-1251, which is a guess",
		"late.log": "some bytes are not UTF-8", "mixed.txt": "some bytes are not UTF-8",
	} {
		if a := must(t, Grep(), s, args{"pattern": "Zürich", "source": source}); !strings.Contains(a.note(), want) {
			t.Errorf("grep %s: %q", source, a.note())
		}
	}
	a := must(t, Grep(), s, args{"pattern": "Orléans", "source": "latin1.txt"})
	if want := "2: Le café est fermé à Orléans le mardi."; len(a.rows) != 1 || a.rows[0] != want {
		t.Errorf("grep: %q, want %q", a.rows, want)
	}
}
