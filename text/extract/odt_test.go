package extract

import (
	"strings"
	"testing"
)

const odtNS = `xmlns:office="urn:office" xmlns:text="urn:text" xmlns:table="urn:table" xmlns:style="urn:style" ` +
	`xmlns:form="urn:oasis:names:tc:opendocument:xmlns:form:1.0" ` +
	`xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:svg="urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0"`

func odtOf(t testing.TB, body string, parts ...entry) []byte {
	t.Helper()
	return zipOf(t, append([]entry{
		{"mimetype", "application/vnd.oasis.opendocument.text"},
		{"content.xml", `<office:document-content ` + odtNS + `><office:body><office:text>` + body +
			`</office:text></office:body></office:document-content>`},
	}, parts...)...)
}

func tp(text string) string { return `<text:p>` + text + `</text:p>` }

func odtSample(t testing.TB) []byte {
	cell := func(inner string) string { return `<table:table-cell>` + inner + `</table:table-cell>` }
	return odtOf(t, `<text:tracked-changes>`+tp("deleted")+`</text:tracked-changes>`+
		`<text:h>Head<text:span>ing</text:span></text:h>`+tp("")+
		tp(`a<text:s text:c="3"/>b<text:tab/>c<text:line-break/>d`)+
		tp(`noted<text:note><text:note-citation>1</text:note-citation><text:note-body>`+tp("the note")+
			`</text:note-body></text:note>`)+
		tp(`asked<office:annotation><dc:creator>Jo</dc:creator>`+tp("why?")+`</office:annotation> once`)+
		`<table:table><table:table-header-rows><table:table-row>`+cell(tp("Name"))+cell(tp("Sum"))+
		`</table:table-row></table:table-header-rows><table:table-row>`+cell(tp("A"))+cell(tp("450,000"))+
		`</table:table-row></table:table>`+`<text:list><text:list-item>`+tp("item")+`</text:list-item></text:list>`,
		entry{"styles.xml", `<office:document-styles ` + odtNS + `><style:master-page><style:footer>` + tp("page") +
			`</style:footer><style:header>` + tp("Acme") + `</style:header><style:header-left>` + tp("Acme") +
			`</style:header-left></style:master-page></office:document-styles>`},
		entry{"META-INF/manifest.xml", `<manifest:manifest xmlns:manifest="urn:m"/>`},
		entry{"Pictures/1.png", "png"})
}

func TestODT(t *testing.T) {
	golden(t, "odt", odtSample(t),
		"header: Acme",
		"paragraph 1: Heading",
		"paragraph 3: a b c d",
		"paragraph 4: noted",
		"paragraph 4: the note",
		"paragraph 5: asked once",
		"paragraph 5: why?",
		"table 1, row 1: Name | Sum",
		"table 1, row 2: A | 450,000",
		"paragraph 6: item",
		"footer: page",
		"[not read: 1 picture]",
	)
}

func TestODTText(t *testing.T) {
	styles := `<style:style style:name="T1"><style:text-properties style:text-position="super 58%"/></style:style>` +
		`<style:style style:name="T2"><style:text-properties style:text-position="-33% 58%"/></style:style>` +
		`<style:style style:name="T3"><style:text-properties style:font-name="Wingdings"/></style:style>`
	span := func(style, text string) string {
		return `<text:span text:style-name="` + style + `">` + text + `</text:span>`
	}
	cell := func(attrs, text string) string {
		return `<table:table-cell ` + attrs + `>` + tp(text) + `</table:table-cell>`
	}
	for name, c := range map[string]struct{ body, want string }{
		"scripts": {tp("10" + span("T1", span("T9", "6")) + " H" + span("T2", "2") + "O"), "10^6 H_2O\n"},
		"symbols": {tp(span("T3", "\uf0fe") + " \uf0fe"), "☑\n"},
		"link": {tp(`<text:a xlink:href="https://a.example/b">here</text:a> <text:a xlink:href="#x">there</text:a>`),
			"here <https://a.example/b> there\n"},
		"formula": {tp(`a <draw:object xlink:href="./Object 1"/> b`), "a (x+1)/2 b\n"},
		"picture": {tp(`a<draw:frame><svg:desc>A map</svg:desc></draw:frame>`), "a [picture: A map]\n"},
		"form": {
			`<office:forms><form:form><form:checkbox form:id="c1" form:label="I agree" form:current-state="checked"><form:properties>` +
				`<form:property form:property-name="X" office:value="0"/></form:properties></form:checkbox>` +
				`<form:listbox form:id="c2"><form:option form:label="Oslo"/><form:option form:label="Bergen" ` +
				`form:current-selected="true"/></form:listbox></form:form></office:forms>` +
				tp(`<draw:control draw:control="c1"/> in <draw:control draw:control="c2"/>`),
			"☑ I agree in Bergen\n",
		},
		"repeats": {
			`<table:table><table:table-row table:number-rows-repeated="2">` + cell(`table:number-columns-repeated="2"`, "a") +
				cell(`table:number-columns-spanned="2"`, "b") + `<table:covered-table-cell/>` + cell("", "c") +
				`</table:table-row><table:table-row table:number-rows-repeated="1000000"><table:table-cell/></table:table-row>` +
				`</table:table>`,
			"a | a | b |  | c\na | a | b |  | c\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			x, err := read(t, "odt", odtOf(t, styles+c.body, entry{"Object 1/content.xml",
				`<math xmlns="http://www.w3.org/1998/Math/MathML"><semantics><mfrac><mrow><mi>x</mi><mo>+</mo><mn>1</mn></mrow>` +
					`<mn>2</mn></mfrac><annotation>{x+1} over 2</annotation></semantics></math>`}))
			if err != nil || string(x.Body) != c.want {
				t.Errorf("got %q, %v; want %q", x.Body, err, c.want)
			}
		})
	}
}

func TestODTBad(t *testing.T) {
	skipLarge(t)
	encrypted := `<m:manifest xmlns:m="urn:m"><m:file-entry><m:encryption-data/></m:file-entry></m:manifest>`
	refuses(t, "odt", map[string]refusal{
		"no text":   {odtOf(t, tp("")), ErrNoText},
		"encrypted": {odtOf(t, tp("a"), entry{"META-INF/manifest.xml", encrypted}), ErrEncrypted},
		"unclosed":  {odtOf(t, "<text:p>"), ErrBroken},
		"deep":      {odtOf(t, strings.Repeat("<text:p>", 300)+strings.Repeat("</text:p>", 300)), ErrBroken},
		"zip bomb":  {odtOf(t, tp(strings.Repeat(" ", maxText))), ErrTooLarge},
	})
}
