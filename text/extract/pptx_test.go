package extract

import (
	"errors"
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
		entry{"ppt/slides/slide2.xml", slideOf(``, ap("Title"), `<a:p><a:r><a:t>two</a:t></a:r><a:br/><a:r><a:t>lines</a:t>`+
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
		"slide 1: two lines",
		"slide 1: boxes",
		"slide 1, notes: say hello",
		"slide 2: shown second",
		"slide 2: a | b",
		"[1 hidden slide, included: 2]",
		"[1 picture without text]",
		"[2 charts, not extracted]",
	)
}

func TestPptxBad(t *testing.T) {
	skipLarge(t)
	one := `<p:sldId id="256" r:id="r1"/>`
	for name, c := range map[string]struct {
		data []byte
		want error
	}{
		"no slides":     {pptxOf(t, ``), ErrNoText},
		"missing slide": {pptxOf(t, one), ErrBroken},
		"unknown slide": {pptxOf(t, `<p:sldId r:id="r9"/>`), ErrBroken},
		"no text":       {pptxOf(t, one, entry{"ppt/slides/slide1.xml", slideOf(``)}), ErrNoText},
		"unclosed":      {pptxOf(t, one, entry{"ppt/slides/slide1.xml", "<p:sld>"}), ErrBroken},
		"one slide a thousand times": {
			pptxOf(t, strings.Repeat(one, 1000), entry{"ppt/slides/slide1.xml", slideOf(``, ap(strings.Repeat("a", 1<<17)))}),
			ErrTooLarge,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := read(t, "pptx", c.data); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}
