package documents

import (
	"archive/zip"
	"bytes"
	"encoding/csv"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/text/extract"
)

// formats are number formats, each with the numbers that it is tried with.
var formats = []struct{ codes, numbers string }{
	{ // digits, groups and thousands
		"General\n0\n0.0\n0.00\n#\n#.##\n0.##\n0.0#\n#,##0\n#,##0.00\n#,###\n#,##0.0#\n0000\n00000.00\n0,\n0.0,\n#,##0,\n0.00,,\n" +
			"#,##0,\"K\"\n0.0,,\"M\"\n0.000\n#0.0\n##0.00\n#,##0.000\n??0.0?\n0.???\n000-000\n000\\-00\\-0000\n(000) 000-0000\n" +
			"0 0\n00\\:00\n##\\ ##\\ ##\n0\"x\"0\n\\#0\n0.00000\n0.0000000000",
		"0 1 -1 0.5 1234.567 -1234567.891 12 99.995 123456789 -0.004",
	},
	{ // words and currencies
		"$#,##0.00\n\"$\"#,##0.00\n[$€-407]#,##0.00\n#,##0.00 [$€-407]\n#,##0.00 [$€-40C]\n[$CHF] #,##0.00\n[$£-809]#,##0\n" +
			"[$¥-411]#,##0\n#,##0.00\\ \"EUR\"\n0 \"days\"\n\"No. \"0\n\"about \"0.0\" kg\"\n0\\ \\m\n0.0\"°C\"\n#,##0\\ _€\n" +
			"_(0_)\n* 0\n0*-\n+0\n0-\n0!\n0 \"a;b\"\n\"\"0\n&0\n~0\n<0>\n={0}\n[$USD] #,##0.00\n[$-409]0.00\n[$kr-414] #,##0.00",
		"0 1 -1 1234.5 -1234.567 1234567.891",
	},
	{ // percent, exponents and fractions
		"0%\n0.0%\n0.00%\n#%\n%0\n0.0 %\n0.00E+00\n0.0E+0\n0E+0\n##0.0E+0\n0.000E-00\n#.##E+00\n# ?/?\n# ??/??\n?/?\n# ?/2\n# ?/4\n" +
			"# ??/16\n# ??/100\n0 0/0\n0\" and \"?/?",
		"0 0.25 -0.125 0.3333 1.5 -12.75 12345.678 0.00012 3",
	},
	{ // sections and conditions
		"0;-0\n0;(0)\n#,##0;(#,##0)\n#,##0.00;[Red]-#,##0.00\n#,##0.00_);(#,##0.00)\n0.00;-0.00;\"zero\"\n0;-0;;@\n0;;0\n;;;\n0;\n" +
			"\"up\" 0;\"down\" 0;\"same\"\n[Red]0;[Blue]0\n[Red]-0.00;0.00\n0.0%;[Red]-0.0%\n[>=1000]#,##0,\"K\";0\n" +
			"[<1000]0;0.0,\"K\"\n[<0](0);0\n[Red][<0]-#,##0.00;[Blue]#,##0.00\n[>0]\"+\"0;0\n[<=100]0.00;[>100]0\n" +
			"[<1]0.00%;[<10]0.0;0\n[>=1000000]0.0,,\"M\";[>=1000]0.0,\"K\";0\n[=0]\"none\";[=1]\"one\";0\n[<>0]0.0;\"-\"\n" +
			"[=1]\"yes\";[=0]\"no\";General\n[Color10]0;[Color3]-0\n0;\"minus \"0\n\"gain\";\"loss\";\"even\"\n" +
			"_(* #,##0_);_(* (#,##0);_(* \"-\"_);_(@_)\n_(* #,##0.00_);_(* (#,##0.00);_(* \"-\"??_);_(@_)\n" +
			"_-* #,##0.00\\ [$€-407]_-;-* #,##0.00\\ [$€-407]_-;_-* \"-\"??\\ [$€-407]_-;_-@_-\n_($* #,##0.00_);_($* (#,##0.00)\n" +
			"General;-General\nGeneral\" t\"\n0.00 \"Cr\";0.00 \"Dr\"\n+0.0;-0.0;0.0\n▲0;▼0\n\"Yes\";\"Yes\";\"No\"\n[>100]\"high\";[<10]\"low\";\"mid\"\n" +
			"#,##0.00 \"CR\";#,##0.00 \"DR\";\"nil\"",
		"0 1 -1 -7 5 500 -500 -5000 1234.5 -1234.5 2500000 0.25 50",
	},
	{ // dates: the first days of 1900 differ between programs
		"yyyy-mm-dd\nyy-m-d\nd.m.yyyy\ndd.mm.yy\nd/m/yyyy\nm/d/yy\nmm/dd/yyyy\nd mmm yyyy\ndd-mmm-yy\nd mmmm yyyy\nmmmm d, yyyy\nmmm-yy\n" +
			"mmmmm\nddd\ndddd\nddd, d mmm\ndddd, mmmm d, yyyy\nyyyy\nyy\nm\nmm\nd\ndd\n[$-409]d-mmm-yy;@\n" +
			"[$-407]d. mmmm yyyy\n[$-40C]d mmmm yyyy\n[$-411]yyyy\"年\"m\"月\"d\"日\"\n" +
			"d\"th of\" mmmm\n\"on \"d.m.\nyyyymmdd\n\"Q\"m yyyy\nyyyy/mm/dd\ndd-mm-yyyy hh:mm:ss.000",
		"61 46082.573263889 45000.999 36526 44196.999999 2958465",
	},
	{ // both
		"yyyy-mm-dd hh:mm\nyyyy-mm-dd hh:mm:ss\nyyyy-mm-ddThh:mm:ss\nyyyy\\-mm\\-dd\\Thh:mm\nd/m/yyyy h:mm\nm/d/yyyy h:mm AM/PM\n" +
			"dd.mm.yyyy\\ hh:mm;@",
		"61 46082.573263889 45000.75 36526 2958465",
	},
	{ // spans of time
		"[h]:mm\n[m]\n[mm]:ss\n[s]\n[h]",
		"0.5 1.5 2.25 46082.573263889 45000.75",
	},
	{ // times
		"h\nhh\nh:mm\nhh:mm\nhh:mm:ss\nh:mm AM/PM\nh AM/PM\nhh:mm:ss AM/PM\nmm:ss\nm:s\ns\nss\nhh:mm:ss.000\nmm:ss.0\nh:mm:ss.00\n" +
			"ss.00\n[h]:mm:ss.0\n[$-409]h:mm AM/PM;@\nh\"h \"mm\"m\"\nhhmmss\nhh\"h\"",
		"0 0.4213 0.75125 0.0105 0.5 0.999 1.5 2.25 46082.573263889 45000.999 44196.999999",
	},
}

// tried is a number in a format.
type tried struct{ code, number string }

func allTried() (all []tried) {
	for _, f := range formats {
		for _, code := range strings.Split(f.codes, "\n") {
			for _, n := range strings.Fields(f.numbers) {
				all = append(all, tried{code, n})
			}
		}
	}
	return all
}

// workbookOf returns a workbook with each number in a row of its own.
func workbookOf(t *testing.T, all []tried) []byte {
	t.Helper()
	const (
		ns     = ` xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"`
		office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
		rels   = `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">`
		types  = "application/vnd.openxmlformats-officedocument.spreadsheetml."
	)
	var codes, styles, rows strings.Builder
	for i, x := range all {
		fmt.Fprintf(&codes, `<numFmt numFmtId="%d" formatCode="%s"/>`, 200+i, html.EscapeString(x.code))
		fmt.Fprintf(&styles, `<xf numFmtId="%d" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/>`, 200+i)
		fmt.Fprintf(&rows, `<row r="%d"><c r="A%d" t="inlineStr"><is><t>%d</t></is></c><c r="B%d" s="%d"><v>%s</v></c></row>`,
			i+1, i+1, i, i+1, i, x.number)
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, part := range [][2]string{
		{"[Content_Types].xml", `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">` +
			`<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>` +
			`<Override PartName="/xl/workbook.xml" ContentType="` + types + `sheet.main+xml"/>` +
			`<Override PartName="/xl/styles.xml" ContentType="` + types + `styles+xml"/>` +
			`<Override PartName="/xl/worksheets/sheet1.xml" ContentType="` + types + `worksheet+xml"/></Types>`},
		{"_rels/.rels", rels + `<Relationship Id="r1" Type="` + office + `/officeDocument" Target="xl/workbook.xml"/></Relationships>`},
		{"xl/workbook.xml", `<workbook` + ns + ` xmlns:r="` + office + `"><sheets><sheet name="S" sheetId="1" r:id="r1"/></sheets></workbook>`},
		{"xl/_rels/workbook.xml.rels", rels + `<Relationship Id="r1" Type="` + office + `/worksheet" Target="worksheets/sheet1.xml"/>` +
			`<Relationship Id="r2" Type="` + office + `/styles" Target="styles.xml"/></Relationships>`},
		{"xl/styles.xml", `<styleSheet` + ns + `><numFmts>` + codes.String() + `</numFmts><fonts><font/></fonts><fills><fill/></fills>` +
			`<borders><border/></borders><cellStyleXfs><xf/></cellStyleXfs><cellXfs>` + styles.String() + `</cellXfs></styleSheet>`},
		{"xl/worksheets/sheet1.xml", `<worksheet` + ns + `><sheetData>` + rows.String() + `</sheetData></worksheet>`},
	} {
		w, err := z.Create(part[0])
		if err == nil {
			_, err = w.Write([]byte(part[1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// office converts a file with LibreOffice, and returns the new file.
func office(t *testing.T, from, filter string) []byte {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "soffice", "-env:UserInstallation=file://"+dir+"/profile", "--headless", "--convert-to",
		filter, "--outdir", dir, from)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("soffice: %v\n%s", err, out)
	}
	ext, _, _ := strings.Cut(filter, ":")
	b, err := os.ReadFile(filepath.Join(dir, strings.TrimSuffix(filepath.Base(from), filepath.Ext(from))+"."+ext))
	if err != nil {
		t.Fatal(err)
	}
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

// TestNumberFormats compares numbers in 190 formats with what LibreOffice shows.
func TestNumberFormats(t *testing.T) {
	all := allTried()
	book := workbookOf(t, all)
	path := filepath.Join(t.TempDir(), "formats.xlsx")
	if err := os.WriteFile(path, book, 0o600); err != nil {
		t.Fatal(err)
	}
	filter := "csv:Text - txt - csv (StarCalc):44,34,76,1,,1033,false,true" // UTF-8, English, numbers as shown
	theirs, err := csv.NewReader(bytes.NewReader(office(t, path, filter))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
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
	x, err := extract.Read(t.Context(), format, bytes.NewReader(document), int64(len(document)))
	if err != nil {
		t.Fatal(err)
	}
	return x
}
