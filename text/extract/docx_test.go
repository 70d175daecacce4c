package extract

import (
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

func wt(text string) string { return `<w:r><w:t xml:space="preserve">` + text + `</w:t></w:r>` }

func raised(how, text string) string {
	return `<w:r><w:rPr><w:vertAlign w:val="` + how + `"/></w:rPr><w:t>` + text + `</w:t></w:r>`
}

func sym(font, char string) string {
	return `<w:r><w:sym w:font="` + font + `" w:char="` + char + `"/></w:r>`
}

func fieldOf(data, code string) string {
	return `<w:r><w:fldChar w:fldCharType="begin">` + data + `</w:fldChar></w:r><w:r><w:instrText>` + code +
		`</w:instrText></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r>`
}

func spanned(n, inner string) string {
	return `<w:tc><w:tcPr><w:gridSpan w:val="` + n + `"/></w:tcPr>` + inner + `</w:tc>`
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
		"[not read: 1 picture]",
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
		"scripts": {
			`<w:p>` + wt("5 m") + raised("superscript", "2") + wt(", 10") + raised("superscript", "1") +
				raised("superscript", "2") + wt("0 and H") + raised("subscript", "2") + wt("O on the 5") +
				raised("superscript", "th") + wt(" by word") + raised("superscript", "[1]") + wt(" x") +
				raised("superscript", "n+1") + wt("y 1") + raised("superscript", "3") + wt("/") + raised("subscript", "4") +
				wt(" kg 10.") + raised("superscript", "2") + wt(" s") +
				`<w:r><w:rPr><w:rStyle w:val="Up"/></w:rPr><w:t>7</w:t></w:r></w:p>`,
			"5 m^2, 10^12 0 and H_2O on the 5th by word[1] x^(n+1)y 1 3/4 kg 10.^2 s^7\n",
		},
		"position": {
			`<w:p>` + wt("5 m") + `<w:r><w:rPr><w:position w:val="8"/></w:rPr><w:t>2</w:t></w:r>` +
				`<w:r><w:rPr><w:position w:val="-2"/></w:rPr><w:t>and a lower line</w:t></w:r></w:p>`, "5 m^2and a lower line\n",
		},
		"old script": {
			`<w:p>` + wt("a") +
				`<w:r><w:rPr><w:rPrChange><w:rPr><w:vertAlign w:val="superscript"/></w:rPr></w:rPrChange></w:rPr>` +
				`<w:t>2</w:t></w:r></w:p>`, "a2\n",
		},
		"symbols": {
			`<w:p>` + wt("a ") + sym("Symbol", "F0A3") + wt(" b ") + sym("Wingdings 3", "F041") +
				sym("Segoe UI Symbol", "2610") +
				`<w:r><w:rPr><w:rFonts w:ascii="Wingdings"/></w:rPr><w:t>q</w:t></w:r>` +
				`<w:r><w:rPr><w:rFonts w:ascii="Symbol"/></w:rPr><w:t>whole words</w:t></w:r></w:p>`,
			"a ≤ b ☐❑whole words\n",
		},
		"links": {
			`<w:p>` + wt("see ") + `<w:hyperlink r:id="r1">` + wt("our site") + `</w:hyperlink>` + wt(" or ") +
				`<w:hyperlink r:id="r1">` + wt("https://site.example/a") + `</w:hyperlink>` +
				`<w:hyperlink w:anchor="x">` + wt(" below") +
				`</w:hyperlink></w:p><w:p><w:fldSimple w:instr=" HYPERLINK &quot;mailto:a@b.example&quot; ">` + wt("mail") +
				`</w:fldSimple></w:p>`,
			"see our site <https://site.example/a> or https://site.example/a below\nmail <mailto:a@b.example>\n",
		},
		"forms": {
			`<w:p>` +
				fieldOf(`<w:ffData><w:checkBox><w:default w:val="0"/><w:checked/></w:checkBox></w:ffData>`, "FORMCHECKBOX") +
				wt(" yes ") + fieldOf(`<w:ffData><w:checkBox><w:default w:val="0"/></w:checkBox></w:ffData>`, "FORMCHECKBOX") +
				wt(" no ") + fieldOf(`<w:ffData><w:ddList><w:result w:val="1"/><w:listEntry w:val="Oslo"/>`+
				`<w:listEntry w:val="Bergen"/></w:ddList></w:ffData>`, "FORMDROPDOWN") +
				wt(" ") + fieldOf("", `EQ \f(1,2)`) + `</w:p>`,
			"☑ yes ☐ no Bergen 1/2\n",
		},
		"pictures": {
			`<w:p>` + wt("Fig") + `<w:r><w:drawing><wp:docPr id="1" descr="A &#10; map"/>` +
				`<pic:cNvPr descr="A &#10; map"/></w:drawing></w:r></w:p>` +
				`<w:p><w:r><w:pict><v:textpath string="DRAFT 7"/></w:pict></w:r></w:p>`,
			"Fig [picture: A map]\nDRAFT 7\n",
		},
		"columns": {
			`<w:tbl><w:tr><w:trPr><w:gridBefore w:val="1"/></w:trPr>` + spanned("2", p("a")) + tc(p("b")) + `</w:tr>` +
				`<w:tr>` + tc(p("1")) + tc(p("2")) + tc(p("3")) + tc(p("4")) + `</w:tr><w:tr>` + spanned("4", `<w:p/>`) +
				`</w:tr></w:tbl>`,
			" | a |  | b\n1 | 2 | 3 | 4\n",
		},
		"invisible": {p("co\u00adop\u200beration \u00a0 5 %"), "cooperation 5 %\n"},
		"entities":  {p("a &lt; b &amp;&amp; c"), "a < b && c\n"},
	} {
		t.Run(name, func(t *testing.T) {
			styles := `<w:style w:styleId="Up"><w:rPr><w:vertAlign w:val="superscript"/></w:rPr></w:style>`
			x, err := read(t, "docx", docxOf(t, c.body, []string{"hyperlink https://site.example/a", "styles s.xml"},
				entry{"word/s.xml", wordPart("styles", styles)}))
			if err != nil || string(x.Body) != c.want {
				t.Errorf("got %q, %v; want %q", x.Body, err, c.want)
			}
		})
	}
}

func TestDocxOtherParts(t *testing.T) {
	golden(t, "docx", docxOf(t, p("body"),
		[]string{"comments comments.xml", "footnotes footnotes.xml", "header /word/h.xml"},
		entry{"word/comments.xml",
			wordPart("comments", `<w:comment>`+p("why?")+`</w:comment><w:comment>`+p("why?")+`</w:comment>`)},
		entry{"word/footnotes.xml", wordPart("footnotes", `<w:footnote>`+p("see page 3")+`</w:footnote>`)},
		entry{"word/h.xml", "\ufeff" + wordPart("hdr", p("top"))},
	), "header: top", "paragraph 1: body", "comments: why?", "comments: why?", "footnotes: see page 3")
}

func TestDocxDocumentsWithin(t *testing.T) {
	inner := docxOf(t, p("of a docx")+`<w:altChunk r:id="r1"/>`, []string{"aFChunk c.html"},
		entry{"word/c.html", "deeper"})
	diagram := `<w:p><w:r><dgm:relIds r:dm="r4"/></w:r></w:p>`
	golden(t, "docx", docxOf(t, p("before")+
		`<w:altChunk r:id="r1"/><w:altChunk r:id="r2"/><w:altChunk r:id="r3"/>`+diagram+p("after"),
		[]string{"aFChunk c.htm", "aFChunk c.docx", "aFChunk c.mystery", "diagramData d.xml"},
		entry{"word/c.htm", "<p>of a page</p><p>10<sup>6</sup></p>"}, entry{"word/c.docx", string(inner)},
		entry{"word/c.mystery", "?"},
		entry{"word/d.xml", `<d>` + strings.ReplaceAll(p("box"), "w:", "a:") + diagram + `</d>`}),
		"paragraph 1: before", "paragraph 2: of a page", "paragraph 2: 10^6", "paragraph 3: of a docx",
		"paragraph 4: box", "paragraph 5: after", "[not read: 2 embedded documents]")
}

func TestDocxBad(t *testing.T) {
	skipLarge(t)
	deep := strings.Repeat("<w:p>", maxDepth+1) + strings.Repeat("</w:p>", maxDepth+1)
	refuses(t, "docx", map[string]refusal{
		"no text":       {docxOf(t, `<w:p/>`, nil), ErrNoText},
		"only pictures": {docxOf(t, `<w:p/>`, nil, entry{"word/media/image1.png", "png"}), ErrNoText},
		"unclosed":      {docxOf(t, `<w:p><w:r>`, nil), ErrBroken},
		"entity bomb":   {docxOf(t, p("&lol9;"), nil), ErrBroken},
		"deep":          {docxOf(t, deep, nil), ErrBroken},
		"wide": {
			docxOf(t, `<w:tbl><w:tr>`+strings.Repeat(spanned("9999", p("a")), 1<<13)+`</w:tr></w:tbl>`, nil), ErrTooLarge,
		},
		"no document": {zipOf(t, entry{"_rels/.rels", relsOf("officeDocument w.xml")}), ErrBroken},
		"zip bomb":    {docxOf(t, p(strings.Repeat("a", maxText+1)), nil), ErrTooLarge},
		"bomb in many parts": {
			docxOf(t, p(strings.Repeat("a", maxText/2)), []string{"header h.xml", "header h.xml"},
				entry{"word/h.xml", wordPart("hdr", p(strings.Repeat("a", maxText/3)))}),
			ErrTooLarge,
		},
	})
}
