package extract

import (
	"errors"
	"strings"
	"testing"
)

const wordNS = `xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:mc="urn:mc"`

// docxOf returns a document with a body, and further parts with their relationships ("kind target").
func docxOf(t testing.TB, body string, rels []string, parts ...entry) []byte {
	t.Helper()
	return zipOf(t, append([]entry{
		{"[Content_Types].xml", `<Types/>`},
		{"_rels/.rels", relsOf("officeDocument word/document.xml")},
		{"word/document.xml", `<?xml version="1.0" encoding="UTF-8"?><w:document ` + wordNS + `><w:body>` + body +
			`</w:body></w:document>`},
		{"word/_rels/document.xml.rels", relsOf(rels...)},
	}, parts...)...)
}

func wordPart(root, body string) string {
	return `<w:` + root + ` ` + wordNS + `>` + body + `</w:` + root + `>`
}

// p is a paragraph with one run for each text.
func p(texts ...string) string {
	return `<w:p><w:r><w:t>` + strings.Join(texts, `</w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>`) + `</w:t></w:r></w:p>`
}

func tc(inner string) string { return `<w:tc><w:tcPr/>` + inner + `</w:tc>` }

func docxSample(t testing.TB) []byte {
	return docxOf(t, p("Budget of ", "2026")+
		`<w:p/>`+
		p("The sum is 450", ",000 €.")+
		`<w:tbl><w:tr>`+tc(p("Name"))+tc(p("Amount"))+`</w:tr><w:tr>`+tc(p("A")+p("B"))+tc(p("12"))+`</w:tr></w:tbl>`+
		p("after the table"),
		[]string{"header header1.xml", "footer footer1.xml", "header header2.xml", "hyperlink https://example.com"},
		entry{"word/header1.xml", wordPart("hdr", p("Acme"))},
		entry{"word/header2.xml", wordPart("hdr", p("Acme"))},
		entry{"word/footer1.xml", wordPart("ftr", p("confidential"))},
		entry{"word/media/image1.png", "png"})
}

func TestDocx(t *testing.T) {
	samples["docx"] = docxSample
	golden(t, "docx", docxSample(t),
		"header: Acme",
		"paragraph 1: Budget of 2026",
		"paragraph 3: The sum is 450,000 €.",
		"table 1, row 1: Name | Amount",
		"table 1, row 2: A B | 12",
		"paragraph 4: after the table",
		"footer: confidential",
		"[1 picture without text]",
	)
}

func TestDocxParagraphs(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"tabs and breaks": {
			`<w:p><w:pPr><w:tabs><w:tab w:pos="9"/></w:tabs></w:pPr><w:r><w:t>a</w:t><w:tab/><w:t>b</w:t><w:br/>` +
				`<w:t>c</w:t></w:r></w:p>`,
			"a b c\n",
		},
		"tracked changes": {
			`<w:p><w:r><w:t xml:space="preserve">we pay </w:t></w:r><w:del><w:r><w:delText>10</w:delText></w:r></w:del>` +
				`<w:ins><w:r><w:t>20</w:t></w:r></w:ins><w:moveFrom><w:r><w:t>moved</w:t></w:r></w:moveFrom></w:p>`,
			"we pay 20\n",
		},
		"hyphen": {`<w:p><w:r><w:t>a</w:t><w:noBreakHyphen/><w:t>b</w:t></w:r></w:p>`, "a-b\n"},
		"field codes": {
			`<w:p><w:r><w:instrText>PAGE</w:instrText></w:r><w:r><w:t>7</w:t></w:r></w:p>`,
			"7\n",
		},
		"text box": {
			`<w:p><w:r><mc:AlternateContent><mc:Choice><w:txbxContent>` + p("in the box") + `</w:txbxContent></mc:Choice>` +
				`<mc:Fallback><w:txbxContent>` + p("in the box") + `</w:txbxContent></mc:Fallback></mc:AlternateContent>` +
				`</w:r><w:r><w:t>around it</w:t></w:r></w:p>`,
			"around it\nin the box\n",
		},
		"nested table": {
			`<w:tbl><w:tr>` + tc(p("a")+`<w:tbl><w:tr>`+tc(p("b"))+tc(p("c"))+`</w:tr></w:tbl>`) + tc(p("d")) +
				`</w:tr></w:tbl>`,
			"a b | c | d\n",
		},
		"content control": {`<w:sdt><w:sdtContent>` + p("chosen") + `</w:sdtContent></w:sdt>`, "chosen\n"},
		"invisible":       {p("co\u00adop\u200beration \u00a0 5 %"), "cooperation 5 %\n"},
		"entities":        {p("a &lt; b &amp;&amp; c"), "a < b && c\n"},
	} {
		t.Run(name, func(t *testing.T) {
			x, err := read(t, "docx", docxOf(t, c.body, nil))
			if err != nil || string(x.Body) != c.want {
				t.Errorf("got %q, %v; want %q", x.Body, err, c.want)
			}
		})
	}
}

func TestDocxOtherParts(t *testing.T) {
	golden(t, "docx", docxOf(t, p("body"),
		[]string{"comments comments.xml", "footnotes footnotes.xml", "header /word/h.xml"},
		entry{"word/comments.xml", wordPart("comments", `<w:comment>`+p("why?")+`</w:comment>`)},
		entry{"word/footnotes.xml", wordPart("footnotes", `<w:footnote>`+p("see page 3")+`</w:footnote>`)},
		entry{"word/h.xml", "\ufeff" + wordPart("hdr", p("top"))},
	), "header: top", "paragraph 1: body", "comments: why?", "footnotes: see page 3")
}

func TestDocxBad(t *testing.T) {
	skipLarge(t)
	deep := strings.Repeat("<w:p>", maxDepth+1) + strings.Repeat("</w:p>", maxDepth+1)
	for name, c := range map[string]struct {
		data []byte
		want error
	}{
		"no text":       {docxOf(t, `<w:p/>`, nil), ErrNoText},
		"only pictures": {docxOf(t, `<w:p/>`, nil, entry{"word/media/image1.png", "png"}), ErrNoText},
		"unclosed":      {docxOf(t, `<w:p><w:r>`, nil), ErrBroken},
		"entity bomb":   {docxOf(t, p("&lol9;"), nil), ErrBroken},
		"deep":          {docxOf(t, deep, nil), ErrBroken},
		"no document":   {zipOf(t, entry{"_rels/.rels", relsOf("officeDocument w.xml")}), ErrBroken},
		"zip bomb":      {docxOf(t, p(strings.Repeat("a", maxText+1)), nil), ErrTooLarge},
		"bomb in many parts": {
			docxOf(t, p(strings.Repeat("a", maxText/2)), []string{"header h.xml", "header h.xml"},
				entry{"word/h.xml", wordPart("hdr", p(strings.Repeat("a", maxText/3)))}),
			ErrTooLarge,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := read(t, "docx", c.data); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}
