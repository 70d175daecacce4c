package extract

import (
	"encoding/xml"
	"strings"
)

// odtDialect has the elements of OpenDocument text. Deleted text is in text:tracked-changes.
var odtDialect = dialect{
	"p": paragraph, "h": paragraph, "table": table, "table-row": row, "table-cell": cell, "covered-table-cell": cell,
	"span": run, "tab": blank, "s": blank, "line-break": blank, "math": equation,
	"tracked-changes": skipped, "note-citation": skipped, "ruby-text": skipped, "forms": skipped,
}

// odtSections are the elements of styles.xml that hold headers and footers.
var odtSections = map[string]string{
	"header": "header", "header-left": "header", "header-first": "header",
	"footer": "footer", "footer-left": "footer", "footer-first": "footer",
}

func readODT(b *builder, a *archive) {
	a.checkManifest()
	var footers []string
	once := copies{add: func(place, line string) {
		switch place {
		case "header":
			b.add(place, line)
		case "footer":
			footers = append(footers, line)
		}
	}}
	f := flow{dialect: odtDialect, a: a, b: b, anyText: true, styles: styleSheet{}, controls: map[string]string{}}
	f.see = func(e xml.StartElement) element {
		if f.section[e.Name.Local] != "" {
			once.next()
		}
		return f.seeODT(e)
	}
	if a.has("styles.xml") {
		f.section, f.emit = odtSections, once.emit
		f.read("styles.xml")
	}
	f.section, f.place, f.emit = nil, "", b.add
	f.paragraphs, f.tables = 0, 0
	f.read("content.xml")
	for _, line := range footers {
		b.add("footer", line)
	}
}

// seeODT takes styles and controls, finds descriptions of pictures, and skips elements that describe others, such as
// the author of a comment.
func (f *flow) seeODT(e xml.StartElement) element {
	space, name := e.Name.Space, e.Name.Local
	_ = f.styles.see(e)
	switch {
	case strings.Contains(space, ":form:"):
		f.control(e)
	case strings.Contains(space, "/dc/elements/"), strings.Contains(space, ":meta:"):
		return skipped
	case strings.Contains(space, ":svg-compatible:") && (name == "title" || name == "desc"):
		return description
	}
	return other
}

// checkManifest fails if the manifest says that parts are encrypted: they are zip entries without a zip password.
func (a *archive) checkManifest() {
	const manifest = "META-INF/manifest.xml"
	if !a.has(manifest) {
		return
	}
	a.tokens(manifest, func(e xml.StartElement) error {
		if e.Name.Local == "encryption-data" {
			return encrypted("part named in " + manifest)
		}
		return nil
	}, ignore)
}
