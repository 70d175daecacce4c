package extract

import (
	"errors"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// xlsxOf returns a workbook that fill has filled.
func xlsxOf(t testing.TB, fill func(f *excelize.File) error) []byte {
	t.Helper()
	f := excelize.NewFile()
	err := fill(f)
	expect.Must(t, err)
	buf, err := f.WriteToBuffer()
	expect.Must(t, err)
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
		"Sheet1!A4: Acme | 1/3/2026 | 1,234.50 EUR | line 1 line 2",
		"Sheet1!A6:  |  | 25%",
		"Rates!B2: TRUE",
		"[1 hidden sheet, included: Rates]",
	)
}

func TestXlsxNumbers(t *testing.T) {
	for _, c := range []struct {
		value  float64
		format any
		want   string
	}{
		{dayNumber, 14, "2026-03-01"}, // differs by country
		{dayNumber, 15, "1-Mar-26"},
		{dayNumber, 17, "Mar-26"},
		{dayNumber, 22, "2026-03-01 13:45"},
		{dayNumber, "[$-409]d-mmm-yy;@", "1-Mar-26"},
		{dayNumber, "[$-407]d. mmmm yyyy", "1. March 2026"},
		{dayNumber, "[$-zz]d mmm yyyy", "1 Mar 2026"},
		{dayNumber, `dd"."mm\.yyyy hh:mm`, "01.03.2026 13:45"},
		{dayNumber, "m/d/yy h:mm:ss AM/PM", "3/1/26 1:45:30 PM"},
		{dayNumber, 20, "13:45"},
		{dayNumber, `0.0 "days"`, "46082.6 days"},
		{2958465, "yyyy-mm-dd", "9999-12-31"},
		{-1, "yyyy-mm-dd", "-1"},
		{44196.999999, "yyyy-mm-dd", "2020-12-31"},
		{45000.999, "dd hh:mm:ss.00", "15 23:58:33.60"},
		{0.4213, "hh:mm:ss.000", "10:06:40.320"},
		{0.0105, "mm:ss.0", "15:07.2"},
		{1.5, "[h]:mm", "36:00"},
		{-1.5, "[h]:mm", "-36:00"},
		{123456789, "000-000-000", "123-456-789"},
		{-5000, `[>=1000]#,##0,"K";0`, "-5000"},
		{5000, `[>=1000]#,##0,"K";0`, "5K"},
		{-500, `[<1000]0;0.0,"K"`, "-500"},
		{-7, "[<0](0);0", "(7)"},
		{5, "[Red]-0.00;0.00", "-5.00"},
		{-20, "[<=100]0.00;[>100]0", "-20.00"},
		{500, `[>=1000000]0.0,,"M";[>=1000]0.0,"K";0`, "500"},
		{7, `[<5]"low";[>9]"high"`, "7"},
		{0, `0.00;-0.00;"zero"`, "zero"},
		{0, 43, "-"},
		{-1234.5, `_(* #,##0.00_);_(* (#,##0.00);_(* "-"??_);_(@_)`, "(1,234.50)"},
		{-12.5, `General" t"`, "-12.5 t"},
		{3, `"a;b; 0%" 0`, "a;b; 0% 3"},
		{1.005, "0.00", "1.01"},
		{0.285, "0%", "29%"},
		{-0.004, "0.00", "0.00"},
		{1e300, "0", "1" + strings.Repeat("0", 300)},
		{1.5, "?/?", "3/2"},
		{12345.678, "0 0/0", "12345 2/3"},
		{2.25, "# ?/?", "2 1/4"},
		{0, "# ?/?", "0"},
		{5, ";;;", ""},
		{1234.56, `#,##0.00" €"/"kg"`, "1,234.56 €/kg"},
		{2.75, "0.00 $/kg", "2.75 $/kg"},
		{0.12345, "# ?/10000", "1235/10000"},
		{-250, "[Red][<-100]#,##0;#,##0", "-250"},
		{123.5, "G/通用格式", "123.5"},
		{12, "0 g", "12 g"},
		{12, "0 m", "12"},
		{12.36 / 86400, "mm:ss.0", "00:12.4"},
		{1.9999999, "[h]:mm:ss", "48:00:00"},
		{45000.9999999, "yyyy-mm-dd hh:mm:ss", "2023-03-16 00:00:00"},
	} {
		data := xlsxOf(t, func(f *excelize.File) error { return setStyled(f, "A1", c.value, c.format) })
		if x, err := read(t, "xlsx", data); err != nil && c.want != "" || strings.TrimSpace(string(x.Body)) != c.want {
			t.Errorf("%v as %v: got %q, %v; want %q", c.value, c.format, x.Body, err, c.want)
		}
	}
}

func TestXlsx1904(t *testing.T) {
	golden(t, "xlsx", xlsxOf(t, func(f *excelize.File) error {
		on := true
		return errors.Join(f.SetWorkbookProps(&excelize.WorkbookPropsOptions{Date1904: &on}),
			setStyled(f, "A1", 0.0, "yyyy-mm-dd"), setStyled(f, "B1", 1.5, "[h]:mm"))
	}), "Sheet1!A1: 1904-01-01 | 36:00")
}

// TestXlsxExtras reads what lies on a sheet, as a library of spreadsheets writes it.
func TestXlsxExtras(t *testing.T) {
	box := excelize.Shape{Cell: "H1", Type: "rect", Paragraph: []excelize.RichTextRun{{Text: "All in kg"}}}
	margins := excelize.HeaderFooterOptions{OddHeader: `&L&"Arial,Bold"&12Board only`, OddFooter: "Page &P"}
	golden(t, "xlsx", xlsxOf(t, func(f *excelize.File) error {
		return errors.Join(
			f.SetSheetRow("Sheet1", "B2", &[]any{"Item", "2024", "", "2025"}),
			f.MergeCell("Sheet1", "C2", "D2"), f.MergeCell("Sheet1", "E2", "F2"),
			f.SetSheetRow("Sheet1", "C3", &[]any{1, 2, 3}),
			f.SetCellFormula("Sheet1", "C4", "SUM(C3:E3)"),
			setStyled(f, "D4", "x", `"size "@`),
			f.SetCellHyperLink("Sheet1", "B2", "https://items.example/?a=1&b=2", "External"),
			f.SetCellHyperLink("Sheet1", "C2", "Sheet1!A1", "Location"),
			f.AddComment("Sheet1", excelize.Comment{Cell: "C3", Author: "Ana", Text: "counted twice"}),
			f.AddShape("Sheet1", &box), f.SetHeaderFooter("Sheet1", &margins),
		)
	}),
		"Sheet1!B2: Item | 2024 |  | 2025",
		"Sheet1!B3:  | 1 | 2 | 3",
		"Sheet1!B4:  | =SUM(C3:E3) | size x",
		"Sheet1!B2: link of B2: https://items.example/?a=1&b=2",
		"Sheet1: header or footer: Board only",
		"Sheet1!C3: comment on C3: counted twice",
		"Sheet1: text box: All in kg",
		"[Sheet1: 1 formula without a saved value, shown as =FORMULA]",
	)
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
		`<row r="3"><c r="B3" t="s"><v>0</v></c><c r="C3" t="inlineStr"><is><t>inline</t><rPh><t>said</t></rPh></is></c>`+
			`<c r="E3"><f>1+1</f><v>2</v></c></row><row r="9"><c r="A9" t="s"><v>77</v></c><c r="C9" t="s"><v>1</v></c></row>`+
			`<row r="10"><c r="D10"><f t="shared" ref="D10:E10" si="0">B10*2</f></c><c r="E10"><f t="shared" si="0"/></c>`+
			`<c r="F10" t="str"><f>""</f><v></v></c>`+
			`<c r="G10" t="str"><f>HYPERLINK("https://a.example","a")</f><v>a</v></c>`+
			`<c r="H10"><f>SUM(B3:B4)</f><v></v></c></row>`,
		`<si><r><t>rich</t></r><r><t xml:space="preserve"> text</t></r></si>`+
			`<si><t>a_x000D_ b _x0041_ _x005F_x0041_</t><rPh><t>said</t></rPh></si>`),
		"S 1!B3: rich text | inline |  | 2",
		"S 1!B9:  | a b A _x0041_",
		"S 1!B10:  |  | =B10*2 | =(the formula of D10) |  | a | =SUM(B3:B4)",
		"S 1!G10: link of G10: https://a.example",
		"[S 1: 3 formulas without a saved value, shown as =FORMULA]",
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
		"damaged sheet":     {sheetOf(t, `<row><c><v>1</v></c></row><row><c><v>2</v`, ``), ErrBroken},
		"column too high":   {sheetOf(t, `<row><c r="ZZZZ1"><v>1</v></c></row>`, ``), ErrBroken},
		"row too high":      {sheetOf(t, `<row r="9999999"><c><v>1</v></c></row>`, ``), ErrBroken},
		"only empty cells":  {sheetOf(t, `<row><c r="A1" t="s"><v>-1</v></c></row>`, ``), ErrNoText},
		"a wide row is one": {sheetOf(t, wide, ``), nil},
	} {
		t.Run(name, func(t *testing.T) {
			x, err := read(t, "xlsx", c.data)
			expect.ErrorIs(t, err, c.want)
			if err == nil && show(x) != "S 1!XFD1: 1\n" {
				t.Errorf("got %q", show(x))
			}
		})
	}
}
