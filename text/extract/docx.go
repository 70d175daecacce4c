package extract

import "maps"

// officeDialect has the elements of WordprocessingML and DrawingML. Deleted text is in w:delText, not in w:t, but
// w:del and w:moveFrom can hold paragraphs too.
var officeDialect = dialect{
	"p": paragraph, "text": paragraph, "t": textRun, "r": run, "tbl": table, "tr": row, "tc": cell, "oMath": equation,
	"tab": blank, "ptab": blank, "br": blank, "cr": blank, "noBreakHyphen": hyphen,
	"instrText": instruction, "fldSimple": simpleField,
	"del": skipped, "moveFrom": skipped, "pPr": skipped, "rPrChange": skipped, "sectPr": skipped, "sdtPr": skipped,
	"rt":       skipped,
	"Fallback": skipped, // repeats the text of mc:Choice for old programs
}

// docxParts are the parts that follow the document, by kind of relationship, with the place of their lines.
var docxParts = map[string]string{
	"footer": "footer", "footnotes": "footnotes", "endnotes": "endnotes", "comments": "comments",
}

func readDocx(b *builder, a *archive, main string) {
	rels := a.relations(main)
	var styles styleSheet
	once := copies{add: b.add}
	read := func(part, place string, emit func(place, line string)) {
		f := flow{dialect: officeDialect, a: a, b: b, place: place, emit: emit, styles: styles}
		f.read(part)
	}
	parts := func(places map[string]string) {
		for _, rel := range rels {
			place, emit := places[rel.kind], b.add
			if place == "" || !a.has(rel.target) {
				continue
			}
			if rel.kind == "header" || rel.kind == "footer" {
				once.next()
				emit = once.emit
			}
			read(rel.target, place, emit)
		}
	}
	for _, rel := range rels {
		if rel.kind == "styles" && a.has(rel.target) {
			a.tokens(rel.target, styles.see, ignore)
		}
	}
	parts(map[string]string{"header": "header"})
	read(main, "", b.add)
	parts(docxParts)
}

// copies adds the lines of parts that can be copies of each other: each section of a document can have the same header.
type copies struct {
	add       func(place, line string)
	seen, new map[[2]string]bool
}

// next starts another part.
func (c *copies) next() {
	if c.seen == nil {
		c.seen = map[[2]string]bool{}
	}
	maps.Copy(c.seen, c.new)
	c.new = map[[2]string]bool{}
}

// emit adds a line unless an earlier part has it at the same place.
func (c *copies) emit(place, line string) {
	if key := [2]string{place, line}; !c.seen[key] {
		c.new[key] = true
		c.add(place, line)
	}
}
