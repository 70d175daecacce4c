package extract

import (
	"errors"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"
)

// xlsxOf returns a workbook that fill has filled.
func xlsxOf(t testing.TB, fill func(f *excelize.File) error) []byte {
	t.Helper()
	f := excelize.NewFile()
	err := fill(f)
	if err != nil {
		t.Fatal(err)
	}
	buf, err := f.WriteToBuffer()
	if err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// dayNumber is 2026-03-01 13:45:30 in a workbook.
const dayNumber = 46082.573263889

// setStyled sets a cell of Sheet1 to a number with a number format: an int of a built-in one, or a format code.
func setStyled(f *excelize.File, cell string, value, format any) error {
	style := excelize.Style{}
	switch format := format.(type) {
	case int:
		style.NumFmt = format
	case string:
		style.CustomNumFmt = &format
	}
	id, err := f.NewStyle(&style)
	return errors.Join(err, f.SetCellValue("Sheet1", cell, value), f.SetCellStyle("Sheet1", cell, cell, id))
}

func xlsxSample(t testing.TB) []byte {
	return xlsxOf(t, func(f *excelize.File) error {
		_, err := f.NewSheet("Rates")
		return errors.Join(err,
			f.SetSheetRow("Sheet1", "A1", &[]any{"Name", "Due", "Amount"}),
			f.SetSheetRow("Sheet1", "A4", &[]any{"Acme", nil, nil, "line 1\nline 2"}),
			setStyled(f, "B4", dayNumber, "d/m/yyyy"),
			setStyled(f, "C4", 1234.5, "#,##0.00 \"EUR\""),
			setStyled(f, "C6", 0.25, 9),
			f.SetCellValue("Rates", "B2", true),
			f.SetSheetVisible("Rates", false),
		)
	})
}

func TestXlsx(t *testing.T) {
	golden(t, "xlsx", xlsxSample(t),
		"Sheet1!A1: Name | Due | Amount",
		"Sheet1!A4: Acme | 2026-03-01 | 1,234.50 EUR | line 1 line 2",
		"Sheet1!C6: 25%",
		"Rates!B2: TRUE",
		"[1 hidden sheet, included: Rates]",
	)
}

func TestXlsxDates(t *testing.T) {
	for _, c := range []struct {
		format any
		want   string
	}{
		{14, "2026-03-01"},
		{15, "2026-03-01"},
		{16, "2026-03-01"},
		{17, "2026-03-01"},
		{22, "2026-03-01 13:45"},
		{"[$-409]d-mmm-yy;@", "2026-03-01"},
		{"mmmm", "2026-03-01"},
		{`dd"."mm\.yyyy hh:mm`, "2026-03-01 13:45"},
		{"m/d/yy h:mm:ss AM/PM", "2026-03-01 13:45:30"},
		{"h:mm", "13:45"},
		{20, "13:45"},
		{`0.0 "days"`, "46082.6 days"},
		{"[Red]0", "46083"},
		{2, "46082.57"},
	} {
		x, err := read(t, "xlsx", xlsxOf(t, func(f *excelize.File) error {
			return setStyled(f, "A1", dayNumber, c.format)
		}))
		if got := strings.TrimSpace(string(x.Body)); err != nil || got != c.want {
			t.Errorf("format %v: got %q, %v; want %q", c.format, got, err, c.want)
		}
	}
}

// sheetOf returns a workbook with the XML of one sheet and of the shared strings.
func sheetOf(t testing.TB, rows, shared string) []byte {
	t.Helper()
	const ns = `xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"`
	return zipOf(t,
		entry{"[Content_Types].xml", `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>`},
		entry{"_rels/.rels", relsOf("officeDocument xl/workbook.xml")},
		entry{"xl/workbook.xml", `<workbook ` + ns + ` xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/` +
			`relationships"><sheets><sheet name="S 1" sheetId="1" r:id="r1"/></sheets></workbook>`},
		entry{"xl/_rels/workbook.xml.rels", relsOf("worksheet worksheets/sheet1.xml", "sharedStrings sharedStrings.xml")},
		entry{"xl/worksheets/sheet1.xml", `<worksheet ` + ns + `><sheetData>` + rows + `</sheetData></worksheet>`},
		entry{"xl/sharedStrings.xml", `<sst ` + ns + `>` + shared + `</sst>`},
	)
}

func TestXlsxByHand(t *testing.T) {
	golden(t, "xlsx", sheetOf(t,
		`<row r="3"><c r="B3" t="s"><v>0</v></c><c r="C3" t="inlineStr"><is><t>inline</t></is></c>`+
			`<c r="E3"><f>1+1</f><v>2</v></c></row><row r="9"><c r="A9" t="s"><v>77</v></c></row>`,
		`<si><r><t>rich</t></r><r><t xml:space="preserve"> text</t></r></si>`),
		"S 1!B3: rich text | inline |  | 2",
	)
}

func TestXlsxBad(t *testing.T) {
	skipLarge(t)
	workbookOf := func(text string) []byte {
		return zipOf(t, entry{"_rels/.rels", relsOf("officeDocument xl/workbook.xml")}, entry{"xl/workbook.xml", text})
	}
	wide := `<row><c r="XFD1"><v>1</v></c></row>`
	for name, c := range map[string]struct {
		data []byte
		want error
	}{
		"empty":             {sheetOf(t, ``, ``), ErrNoText},
		"sheet bomb":        {sheetOf(t, strings.Repeat(" ", maxText+1), ``), ErrTooLarge},
		"many strings":      {sheetOf(t, ``, strings.Repeat("<si/>", maxSharedTags+1)), ErrTooLarge},
		"broken workbook":   {workbookOf("<workbook"), ErrBroken},
		"column too high":   {sheetOf(t, `<row><c r="ZZZZ1"><v>1</v></c></row>`, ``), ErrBroken},
		"row too high":      {sheetOf(t, `<row r="9999999"><c><v>1</v></c></row>`, ``), ErrBroken},
		"only empty cells":  {sheetOf(t, `<row><c r="A1" t="s"><v>-1</v></c></row>`, ``), ErrNoText},
		"a wide row is one": {sheetOf(t, wide, ``), nil},
	} {
		t.Run(name, func(t *testing.T) {
			x, err := read(t, "xlsx", c.data)
			if !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if err == nil && show(x) != "S 1!XFD1: 1\n" {
				t.Errorf("got %q", show(x))
			}
		})
	}
}

// TestNumberFormats compares numbers with what excelize shows.
func TestNumberFormats(t *testing.T) {
	formats := []string{
		"0", "0.00", "#,##0", "#,##0.00", "0%", "0.0%", "$#,##0.00", `#,##0.00 "EUR"`, `[$€-407]#,##0.00`,
		"0.00E+00", "#,##0;(#,##0)", "00000", `\x0`, `#,##0.00\ _€`, `#,##0.00\ "€"`,
	}
	values := []float64{0, 1, -1, 0.5, -1234.567, 1234567.891, 12, 1e12, 99.995}
	for _, format := range formats {
		for _, v := range values {
			f := excelize.NewFile()
			if err := setStyled(f, "A1", v, format); err != nil {
				t.Fatal(err)
			}
			want, err := f.GetCellValue("Sheet1", "A1")
			if err != nil {
				t.Fatal(err)
			}
			if got := formatNumber(v, format, false); got != want {
				t.Errorf("%v as %s: %q, excelize shows %q", v, format, got, want)
			}
		}
	}
}
