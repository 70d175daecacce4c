package documents

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/text/extract"
)

// tried is a number in a format.
type tried struct{ code, number string }

// allTried returns each format of testdata/formats.txt with the numbers that the last line "numbers:" before it names.
func allTried(t *testing.T) (all []tried) {
	t.Helper()
	b := expect.Value(os.ReadFile(filepath.Join("testdata", "formats.txt")))(t)
	var numbers []string
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSuffix(line, "\n")
		if n, ok := strings.CutPrefix(line, "numbers: "); ok {
			numbers = strings.Fields(n)
			continue
		}
		for _, n := range numbers {
			all = append(all, tried{line, n})
		}
	}
	return all
}

// workbookOf returns a workbook with each number in a row of its own.
func workbookOf(t *testing.T, all []tried) []byte {
	t.Helper()
	f, styles := excelize.NewFile(), map[string]int{}
	var failed []error
	for i, x := range all {
		if _, ok := styles[x.code]; !ok {
			id, err := f.NewStyle(&excelize.Style{CustomNumFmt: &x.code})
			styles[x.code], failed = id, append(failed, err)
		}
		n, err := strconv.ParseFloat(x.number, 64)
		number := fmt.Sprint("B", i+1)
		failed = append(failed, err, f.SetCellValue("Sheet1", fmt.Sprint("A", i+1), fmt.Sprint(i)),
			f.SetCellValue("Sheet1", number, n), f.SetCellStyle("Sheet1", number, number, styles[x.code]))
	}
	b, err := f.WriteToBuffer()
	expect.Must(t, errors.Join(append(failed, err)...))
	return b.Bytes()
}

// office converts a file with LibreOffice, and returns the new file.
func office(t *testing.T, from, filter string) []byte {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "soffice", "-env:UserInstallation=file://"+dir+"/profile", "--headless",
		"--convert-to", filter, "--outdir", dir, from)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("soffice: %v\n%s", err, out)
	}
	ext, _, _ := strings.Cut(filter, ":")
	b, err := os.ReadFile(filepath.Join(dir, strings.TrimSuffix(filepath.Base(from), filepath.Ext(from))+"."+ext))
	expect.Must(t, err)
	return b
}

// differ are formats that are shown otherwise than by LibreOffice, with the reason.
var differ = map[string]string{
	"[$-407]d. mmmm yyyy": "names of months are English",
	"[$-40C]d mmmm yyyy":  "names of months are English",
	"# ?/2":               "halves are rounded up, as by Excel",
	"# ?/4":               "halves are rounded up, as by Excel",
	"# ??/100":            "halves are rounded up, as by Excel",
	"0\" and \"?/?":       "a fraction with words is shown as a decimal number",
	"#.##E+00":            "zeros at the end are shown",

	"[>=1000]#,##0,\"K\";0":                     "a section for the rest shows signs, as by Excel",
	"[>0]\"+\"0;0":                              "a section for the rest shows signs, as by Excel",
	"[>=1000000]0.0,,\"M\";[>=1000]0.0,\"K\";0": "a section for the rest shows signs, as by Excel",
	"[=0]\"none\";[=1]\"one\";0":                "a section for the rest shows signs, as by Excel",
	"[=1]\"yes\";[=0]\"no\";General":            "a section for the rest shows signs, as by Excel",
}

// TestNumberFormats compares numbers in 200 formats with what LibreOffice shows.
func TestNumberFormats(t *testing.T) {
	needOffice(t)
	all := allTried(t)
	book := workbookOf(t, all)
	path := filepath.Join(t.TempDir(), "formats.xlsx")
	expect.Must(t, os.WriteFile(path, book, 0o600))
	filter := "csv:Text - txt - csv (StarCalc):44,34,76,1,,1033,false,true" // UTF-8, English, numbers as shown
	theirs := expect.Value(csv.NewReader(bytes.NewReader(office(t, path, filter))).ReadAll())(t)
	ours := strings.Split(strings.TrimSuffix(string(textOf(t, "xlsx", book).Body), "\n"), "\n")
	if len(ours) != len(all) || len(theirs) != len(all) {
		t.Fatalf("%d rows here and %d there, of %d", len(ours), len(theirs), len(all))
	}
	used := map[string]bool{}
	for i, c := range all {
		_, got, _ := strings.Cut(ours[i], " | ")
		want := strings.Replace(strings.Join(strings.Fields(theirs[i][1]), " "), "- ", "-", 1) // a blank as wide as a bracket
		if got != want && differ[c.code] == "" && strings.Replace(got, "- ", "-", 1) != want {
			t.Errorf("%s as %s: %q, LibreOffice shows %q", c.number, c.code, got, want)
		}
		used[c.code] = used[c.code] || got != want
	}
	for code := range differ {
		if !used[code] {
			t.Errorf("%s is shown as by LibreOffice", code)
		}
	}
}

// textOf returns the text of a document.
func textOf(t *testing.T, format string, document []byte) extract.Text {
	t.Helper()
	return expect.Value(extract.Read(t.Context(), format, bytes.NewReader(document), int64(len(document))))(t)
}
