package extract

// officeDialect has the elements of WordprocessingML and DrawingML. Deleted text is in w:delText, not in w:t, but
// w:del and w:moveFrom can hold paragraphs too.
var officeDialect = dialect{
	"p": paragraph, "t": textRun, "tbl": table, "tr": row, "tc": cell,
	"tab": blank, "ptab": blank, "br": blank, "cr": blank, "noBreakHyphen": hyphen,
	"del": skipped, "moveFrom": skipped, "pPr": skipped, "rPr": skipped, "sectPr": skipped, "rt": skipped,
	"Fallback": skipped, // repeats the text of mc:Choice for old programs
}

// docxParts are the parts that follow the document, by kind of relationship, with the place of their lines.
var docxParts = map[string]string{
	"footer": "footer", "footnotes": "footnotes", "endnotes": "endnotes", "comments": "comments",
}

func readDocx(b *builder, a *archive, main string) error {
	rels, err := a.relations(main)
	if err != nil {
		return err
	}
	once := onlyOnce(b)
	for _, rel := range rels {
		if rel.kind == "header" && a.has(rel.target) {
			if err := readPart(a, rel.target, "header", once); err != nil {
				return err
			}
		}
	}
	if err := readPart(a, main, "", b.add); err != nil {
		return err
	}
	for _, rel := range rels {
		if place := docxParts[rel.kind]; place != "" && a.has(rel.target) {
			if err := readPart(a, rel.target, place, once); err != nil {
				return err
			}
		}
	}
	return nil
}

func readPart(a *archive, part, place string, emit func(place, line string) error) error {
	f := flow{dialect: officeDialect, place: place, emit: emit}
	return f.read(a, part)
}

// onlyOnce returns a function that adds a line unless it has added it at the same place: each section of a document
// can have a copy of the same header.
func onlyOnce(b *builder) func(place, line string) error {
	seen := map[[2]string]bool{}
	return func(place, line string) error {
		if seen[[2]string{place, line}] {
			return nil
		}
		seen[[2]string{place, line}] = true
		return b.add(place, line)
	}
}
