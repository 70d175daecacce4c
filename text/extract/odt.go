package extract

import (
	"encoding/xml"
	"strings"
)

// odtDialect has the elements of OpenDocument text. Deleted text is in text:tracked-changes.
var odtDialect = dialect{
	"p": paragraph, "h": paragraph, "table": table, "table-row": row, "table-cell": cell, "covered-table-cell": cell,
	"tab": blank, "s": blank, "line-break": blank,
	"tracked-changes": skipped, "note-citation": skipped, "ruby-text": skipped, "forms": skipped,
}

// odtSections are the elements of styles.xml that hold headers and footers.
var odtSections = map[string]string{
	"header": "header", "header-left": "header", "header-first": "header",
	"footer": "footer", "footer-left": "footer", "footer-first": "footer",
}

// odtMetadata skips elements that describe others, such as the author of a comment and the title of a picture.
func odtMetadata(e xml.StartElement) element {
	for _, space := range []string{"/dc/elements/", ":meta:", ":svg-compatible:", "/MathML"} {
		if strings.Contains(e.Name.Space, space) {
			return skipped
		}
	}
	return other
}

func readODT(b *builder, a *archive) error {
	if err := a.checkManifest(); err != nil {
		return err
	}
	once := onlyOnce(b)
	var footers []string
	if a.has("styles.xml") {
		styles := flow{dialect: odtDialect, anyText: true, section: odtSections, see: odtMetadata}
		styles.emit = func(place, line string) error {
			switch place {
			case "header":
				return once(place, line)
			case "footer":
				footers = append(footers, line)
			}
			return nil
		}
		if err := styles.read(a, "styles.xml"); err != nil {
			return err
		}
	}
	body := flow{dialect: odtDialect, anyText: true, see: odtMetadata, emit: b.add}
	if err := body.read(a, "content.xml"); err != nil {
		return err
	}
	for _, line := range footers {
		if err := once("footer", line); err != nil {
			return err
		}
	}
	return nil
}

// checkManifest fails if the manifest says that parts are encrypted: they are zip entries without a zip password.
func (a *archive) checkManifest() error {
	const manifest = "META-INF/manifest.xml"
	if !a.has(manifest) {
		return nil
	}
	return a.tokens(manifest, func(e xml.StartElement) error {
		if e.Name.Local == "encryption-data" {
			return encrypted("part named in " + manifest)
		}
		return nil
	}, ignore)
}
