package extract

import (
	"errors"
	"strings"
	"testing"
)

const odtNS = `xmlns:office="urn:office" xmlns:text="urn:text" xmlns:table="urn:table" xmlns:style="urn:style" ` +
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
		"[1 picture without text]",
	)
}

func TestODTBad(t *testing.T) {
	skipLarge(t)
	encrypted := `<m:manifest xmlns:m="urn:m"><m:file-entry><m:encryption-data/></m:file-entry></m:manifest>`
	for name, c := range map[string]struct {
		data []byte
		want error
	}{
		"no text":   {odtOf(t, tp("")), ErrNoText},
		"encrypted": {odtOf(t, tp("a"), entry{"META-INF/manifest.xml", encrypted}), ErrEncrypted},
		"unclosed":  {odtOf(t, "<text:p>"), ErrBroken},
		"deep":      {odtOf(t, strings.Repeat("<text:p>", 300)+strings.Repeat("</text:p>", 300)), ErrBroken},
		"zip bomb":  {odtOf(t, tp(strings.Repeat(" ", maxText))), ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := read(t, "odt", c.data); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}
