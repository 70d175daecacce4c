package cases

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

func TestMail(t *testing.T) {
	var tests []one
	for file, want := range map[string][]string{
		"cc.eml":         {"Cc: Cleo <cleo@c.example>, Dan <dan@d.example>", "Bcc: eve@e.example", "Reply-To: desk@a"},
		"bom.eml":        {"Subject: With BOM"},
		"s1.eml":         {"Rechnung für", "Mai\n", "x-unknown"},
		"cp850.eml":      {"Grüße aus Köln"},
		"utf7.eml":       {"Café opens at nine, Grüße"},
		"stub.eml":       {"Our price is 4,200 euro until 9 April."},
		"b64junk.eml":    {"The room is B12 and the hour is nine."},
		"eqboundary.eml": {"\nThe key is under the mat."},
		"ctempty.eml":    {"Plain tea."},
	} {
		tests = append(tests, one{
			dir: "mail", args: call("read", "path="+file), has: want, lacks: []string{"these are its bytes"},
		})
	}
	try(t, tests)
}

func TestEncodings(t *testing.T) {
	const city, line = "Orléans", "Le café est fermé à Orléans le mardi."
	try(t, []one{
		{dir: "encodings", args: question(city), has: []string{line, "latin1.txt (latin-1)"}},
		{dir: "encodings", args: call("search", "pattern="+city), has: []string{line, "latin1.txt (latin-1)"}},
		{dir: "encodings", args: call("grep", "source=latin1.txt", "pattern="+city), has: []string{"1: " + line}},
		{dir: "encodings", args: question("Казани"), has: []string{"Собрание пройдет в Казани", "windows-1251"}},
		{dir: "encodings", args: call("search", "pattern=Казани"), has: []string{"пройдет в Казани", "windows-1251"}},
		{dir: "encodings", args: call("slice", "source=cp1251.txt", "lines=1"), has: []string{"Собрание пройдет в Казани"}},
		{dir: "encodings", args: question("ວຽງຈັນ"), has: []string{"From lao.txt"}},
		{dir: "encodings", args: call("find", "glob=*Gebühren*", "path=names"), has: []string{"sicht_1.md", "sicht_2.md"}},
		{dir: "encodings", args: call("read", "path=names/Gebührenübersicht_1.md"), has: []string{"liegt bei"}},
		{dir: "encodings", args: call("read", "path=names/Gebührenübersicht_2.md"), has: []string{"liegt bei"}},
		{dir: "encodings", args: call("read", "path=a.rtf"), has: []string{"Die Gebühr beträgt 90 Franken.\nZweite Zeile."}},
		{dir: "encodings", args: call("read", "path=d.ipynb"), has: []string{"# Gebühr\nDie Gebühr ist 93 Franken\n"}},
		{dir: "encodings", args: call("jq", "source=d.ipynb", "filter=.cells[0].cell_type"), has: []string{`"markdown"`}},
		{dir: "encodings", args: call("slice", "source=d.ipynb", "at=/cells/0/source/1"), has: []string{`"Die Geb\u00fchr`}},
		{dir: "encodings", args: call("search", "pattern=Gebühr"), has: []string{"a.rtf", "d.ipynb", "cell 1"}},
	})
}

// A file whose encoding is only a guess is named each time, also from an index that was kept.
func TestDoubtfulEncodings(t *testing.T) {
	dir := filepath.Join(work, "inputs", "doubtful")
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // test data
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"word.txt": "city: \xce\xec\xf1\xea\n", "mixed.txt": "Größe, Straße\nZ\xfcrich\n",
	} {
		expect.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	const both = "2 files are not UTF-8, and words of them may not be found: mixed.txt (some bytes), " +
		"word.txt (perhaps windows-1251)"
	store := t.TempDir()
	for range 2 {
		expect.Contains(t, answer(t, "doubtful", "--store", store, "ask", "Zürich"), both)
	}
	try(t, []one{
		{dir: "doubtful", args: question("Омск"), has: []string{"city: Омск", "perhaps windows-1251"}},
		{dir: "doubtful", args: call("search", "pattern=Zürich"), has: []string{both}},
		{dir: "doubtful", args: question("city"), has: []string{"city: Омск"}, lacks: []string{"may not be found"}},
	})
}
