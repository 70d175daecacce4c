package extract

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"
	"unicode/utf8"
)

// check reads a document, and checks what holds for any input.
func check(t *testing.T, format string, data []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	x, err := Read(ctx, format, bytes.NewReader(data), int64(len(data)))
	if err != nil {
		known := []error{ErrEncrypted, ErrNoText, ErrBroken, ErrTooLarge}
		if !slices.ContainsFunc(known, func(k error) bool { return errors.Is(err, k) }) {
			t.Fatalf("%s: unexpected error %v", format, err)
		}
		return
	}
	if len(x.Body) == 0 || x.Body[len(x.Body)-1] != '\n' || !utf8.Valid(x.Body) {
		t.Fatalf("%s: the text is not lines of UTF-8: %q", format, x.Body)
	}
	lines := bytes.Split(x.Body[:len(x.Body)-1], []byte("\n"))
	for _, line := range lines {
		if i := bytes.IndexFunc(line, func(r rune) bool { return r != '\t' && dropped(r) }); i >= 0 {
			t.Fatalf("%s: an invisible character in %q", format, line)
		}
	}
	last := 0
	for _, p := range x.Places {
		if p.Line <= last || p.Line > len(lines) || p.Name == "" {
			t.Fatalf("%s: place %+v after line %d, of %d lines", format, p, last, len(lines))
		}
		last = p.Line
	}
}

func FuzzReadZip(f *testing.F) {
	formats := []string{"docx", "xlsx", "pptx", "odt"}
	for _, format := range formats {
		f.Add(samples[format](f))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, format := range formats {
			check(t, format, data)
		}
	})
}

// FuzzReadXML puts the input into zip files, where FuzzReadZip would only damage the compression.
func FuzzReadXML(f *testing.F) {
	f.Add(p("a")+`<w:tbl><w:tr>`+tc(p("b"))+`</w:tr></w:tbl>`, `<si><t>a</t></si>`)
	f.Add(ap("a")+`<a:tbl><a:tr><a:tc>`+ap("b")+`</a:tc></a:tr></a:tbl>`, `<si><r><t>a</t></r></si>`)
	f.Add(fieldOf(`<w:ffData><w:checkBox/></w:ffData>`, "EQ \\f(1,2)")+`<w:p>`+raised("subscript", "2")+
		`<w:altChunk r:id="r1"/><w:oMath><w:f><w:num>`+wt("1")+`</w:num></w:f></w:oMath>`+
		`<w:hyperlink r:id="r1">`+wt("x")+`</w:hyperlink></w:p>`, ``)
	f.Add(tp("a")+`<table:table><table:table-row><table:table-cell/></table:table-row></table:table>`, ``)
	f.Add(`<row r="3"><c r="B3" t="s" s="1"><v>0</v></c><c t="inlineStr"><is><t>b</t></is></c></row>`, `<si><t>a</t></si>`)
	f.Fuzz(func(t *testing.T, body, shared string) {
		check(t, "docx", docxOf(t, body, nil))
		check(t, "odt", odtOf(t, body))
		check(t, "xlsx", sheetOf(t, body, shared))
		check(t, "pptx", pptxOf(t, `<p:sldId r:id="r1"/>`, entry{"ppt/slides/slide1.xml", slideOf(``, body)}))
	})
}

func FuzzReadHTML(f *testing.F) {
	f.Add(htmlSample(f))
	f.Add([]byte("<table><tr><td>x<table><tr><td>1<td>2</table>y</table><pre>a\n\tb</pre><script/>c"))
	f.Add([]byte("\xff\xfe<\x00p\x00>\x00\xe9\x00"))
	f.Fuzz(func(t *testing.T, data []byte) { check(t, "html", data) })
}

func FuzzReadEML(f *testing.F) {
	f.Add(emlSample(f))
	f.Add(crlf("Subject: =?koi8-r?b?wQ==?=", "Content-Type: text/html", "Content-Transfer-Encoding: base64", "",
		"PHA+YQ=="))
	f.Fuzz(func(t *testing.T, data []byte) {
		check(t, "eml", data)
		check(t, "mbox", data)
	})
}

func FuzzReadRTF(f *testing.F) {
	f.Add([]byte(`{\rtf1\ansicpg1251{\fonttbl{\f1\fcharset128 x;}}\f1\'8b\'9e\u-10179?\par{\pict\bin2 ab}}`))
	f.Fuzz(func(t *testing.T, data []byte) { check(t, "rtf", data) })
}

func FuzzReadPDF(f *testing.F) {
	f.Add(pdfSample(f))
	f.Add([]byte("%PDF-1.7\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Count 1/Kids[2 0 R]>>endobj\n" +
		"trailer<</Root 1 0 R>>"))
	f.Fuzz(func(t *testing.T, data []byte) { check(t, "pdf", data) })
}
