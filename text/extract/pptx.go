package extract

import (
	"encoding/xml"
	"fmt"
	"strings"
)

func readPptx(b *builder, a *archive, main string) {
	var hidden []string
	for i, slide := range a.slides(main) {
		if readSlide(a, b, slide, fmt.Sprintf("slide %d", i+1)) {
			hidden = append(hidden, fmt.Sprint(i+1))
		}
	}
	if len(hidden) > 0 {
		b.note("%s, included: %s", count(len(hidden), "hidden slide"), list(hidden))
	}
}

// slides returns the parts of the slides in the order of the presentation.
func (a *archive) slides(main string) (slides []string) {
	targets := map[string]string{}
	for _, r := range a.relations(main) {
		targets[r.id] = r.target
	}
	a.tokens(main, func(e xml.StartElement) error {
		if e.Name.Local == "sldId" {
			slides = append(slides, targets[attr(e, "id")])
		}
		return nil
	}, ignore)
	return slides
}

// readSlide adds the text of a slide, its notes and its comments. It reports whether the slide is hidden.
func readSlide(a *archive, b *builder, slide, place string) (hidden bool) {
	f := flow{dialect: officeDialect, a: a, b: b, place: place, emit: b.add, see: func(e xml.StartElement) element {
		switch kind := attr(e, "type"); {
		case e.Name.Local == "fld" && (kind == "slidenum" || strings.HasPrefix(kind, "datetime")):
			return skipped // the number of the slide and the day on which it was shown
		case e.Name.Local == "fld":
			return run
		case e.Name.Local == "sld" && attr(e, "show") == "0":
			hidden = true
		}
		return other
	}}
	f.read(slide)
	rels := a.relations(slide)
	for _, kind := range []string{"notesSlide", "comments"} {
		f.place, f.anyText = place+", "+strings.TrimSuffix(kind, "Slide"), kind == "comments"
		for _, r := range rels {
			if r.kind == kind && a.has(r.target) {
				f.read(r.target)
			}
		}
	}
	return hidden
}
