package extract

import (
	"strings"
	"testing"
)

const slideNS = `xmlns:p="urn:p" xmlns:a="urn:a" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"`

// ap is a paragraph of DrawingML.
func ap(text string) string { return `<a:p><a:r><a:t>` + text + `</a:t></a:r></a:p>` }

func slideOf(attrs string, shapes ...string) string {
	return `<p:sld ` + slideNS + attrs + `><p:sp><p:txBody>` +
		strings.Join(shapes, `</p:txBody></p:sp><p:sp><p:txBody>`) + `</p:txBody></p:sp></p:sld>`
}

func pptxOf(t testing.TB, ids string, parts ...entry) []byte {
	t.Helper()
	return zipOf(t, append([]entry{
		{"_rels/.rels", relsOf("officeDocument ppt/presentation.xml")},
		{"ppt/presentation.xml", `<p:presentation ` + slideNS + `><p:sldIdLst>` + ids + `</p:sldIdLst></p:presentation>`},
		{"ppt/_rels/presentation.xml.rels", relsOf("slide slides/slide1.xml", "slide slides/slide2.xml")},
	}, parts...)...)
}

func pptxSample(t testing.TB) []byte {
	return pptxOf(t, `<p:sldId id="256" r:id="r2"/><p:sldId id="257" r:id="r1"/>`,
		entry{"ppt/slides/slide1.xml", slideOf(` show="0"`, ap("shown second"),
			`<a:tbl><a:tr><a:tc>`+ap("a")+`</a:tc><a:tc>`+ap("b")+`</a:tc></a:tr></a:tbl>`)},
		entry{"ppt/slides/slide2.xml", slideOf(``, ap("Title"), `<dgm:relIds r:dm="r2"/>`+
			`<a:p><a:r><a:t>two</a:t></a:r><a:br/><a:r><a:t>lines</a:t>`+
			`</a:r><a:fld type="slidenum"><a:t>7</a:t></a:fld></a:p>`)},
		entry{"ppt/slides/_rels/slide2.xml.rels", relsOf("notesSlide ../notesSlides/n1.xml", "diagramData ../diagrams/d.xml",
			"image ../media/image1.png")},
		entry{"ppt/notesSlides/n1.xml", slideOf(``, ap("say hello"))},
		entry{"ppt/diagrams/d.xml", `<d xmlns:a="urn:a">` + ap("boxes") + `</d>`},
		entry{"ppt/media/image1.png", "png"},
		entry{"ppt/charts/chart1.xml", "<c/>"},
		entry{"ppt/charts/chart2.xml", "<c/>"})
}

func TestPptx(t *testing.T) {
	golden(t, "pptx", pptxSample(t),
		"slide 1: Title",
		"slide 1: boxes",
		"slide 1: two lines",
		"slide 1, notes: say hello",
		"slide 2: shown second",
		"slide 2: a | b",
		"[1 hidden slide, included: 2]",
		"[not read: 2 charts, 1 picture]",
	)
}

func TestPptxText(t *testing.T) {
	run := func(props, text string) string {
		return `<a:r><a:rPr ` + props + `</a:rPr><a:t>` + text + `</a:t></a:r>`
	}
	link := `><a:hlinkClick r:id="r1"/>`
	golden(t, "pptx", pptxOf(t, `<p:sldId id="256" r:id="r1"/>`,
		entry{"ppt/slides/slide1.xml", slideOf(``, `<a:p>`+run(`>`, "10")+run(`baseline="30000">`, "6")+run(`>`, " H")+
			run(`baseline="-25000">`, "2")+run(`>`, "O ")+run(`><a:sym typeface="Wingdings"/>`, "à")+run(`>`, " see ")+
			run(link, "our ")+run(`b="1"`+link, "site")+`</a:p><a:p>`+run(`>`, "add 2")+
			`<a14:m><m:oMath><m:f><m:num><m:r><m:t>1</m:t></m:r></m:num><m:den><m:r><m:t>2</m:t></m:r></m:den></m:f>`+
			`</m:oMath></a14:m>`+run(`>`, "cups")+`</a:p>`, `<p:cNvPr id="4" descr="A dam"/>`)},
		entry{"ppt/slides/_rels/slide1.xml.rels",
			relsOf("hyperlink https://site.example/a", "comments c1.xml", "comments c2.xml")},
		entry{"ppt/slides/c1.xml", `<p:cmLst xmlns:p="urn:p"><p:cm><p:text>June</p:text></p:cm>` +
			`<p:cm><p:text>June</p:text></p:cm></p:cmLst>`},
		entry{"ppt/slides/c2.xml", `<cmLst xmlns:a="urn:a"><cm><txBody>` + ap("May") + `</txBody></cm></cmLst>`}),
		"slide 1: 10^6 H_2O → see our site <https://site.example/a>",
		"slide 1: add 2 1/2 cups",
		"slide 1: [picture: A dam]",
		"slide 1, comments: June",
		"slide 1, comments: June",
		"slide 1, comments: May",
	)
}

func TestPptxBad(t *testing.T) {
	skipLarge(t)
	one := `<p:sldId id="256" r:id="r1"/>`
	refuses(t, "pptx", map[string]refusal{
		"no slides":     {pptxOf(t, ``), ErrNoText},
		"missing slide": {pptxOf(t, one), ErrBroken},
		"unknown slide": {pptxOf(t, `<p:sldId r:id="r9"/>`), ErrBroken},
		"no text":       {pptxOf(t, one, entry{"ppt/slides/slide1.xml", slideOf(``)}), ErrNoText},
		"unclosed":      {pptxOf(t, one, entry{"ppt/slides/slide1.xml", "<p:sld>"}), ErrBroken},
		"one slide a thousand times": {
			pptxOf(t, strings.Repeat(one, 1000), entry{"ppt/slides/slide1.xml", slideOf(``, ap(strings.Repeat("a", 1<<17)))}),
			ErrTooLarge,
		},
	})
}
