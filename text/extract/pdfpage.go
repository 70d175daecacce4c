package extract

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/klippa-app/go-pdfium"
	"github.com/klippa-app/go-pdfium/enums"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// pdfFile is an open PDF document.
type pdfFile struct {
	in   pdfium.Pdfium
	doc  references.FPDF_DOCUMENT
	b    *builder
	size int             // bytes of text so far
	on   map[string]bool // names of check boxes with a state that is not Off
}

// extraLine is a line that follows the text of a page.
type extraLine struct{ place, text string }

// page returns the text of a page, from 0, with \r\n after lines, and the text of its annotations.
func (p *pdfFile) page(i int) (text string, extras []extraLine, err error) {
	at := requests.Page{ByIndex: &requests.PageByIndex{Document: p.doc, Index: i}}
	page, err := p.in.FPDFText_LoadPage(&requests.FPDFText_LoadPage{Page: at})
	if err != nil {
		return "", nil, err
	}
	n, err := p.in.FPDFText_CountChars(&requests.FPDFText_CountChars{TextPage: page.TextPage})
	if err != nil {
		return "", nil, err
	}
	if n.Count > 0 {
		t, err := p.in.FPDFText_GetText(&requests.FPDFText_GetText{TextPage: page.TextPage, Count: n.Count})
		if err != nil {
			return "", nil, err
		}
		text = ligatures.Replace(t.Text)
	}
	annotations, err := p.in.FPDFPage_GetAnnotCount(&requests.FPDFPage_GetAnnotCount{Page: at})
	if err != nil {
		return "", nil, err
	}
	form := false
	for a := range annotations.Count {
		line := p.annotation(at, page.TextPage, a)
		if p.size += len(line.text); p.size > maxText {
			break // the caller fails
		}
		form = form || line.place == "form"
		if line.text != "" && !slices.Contains(extras, line) {
			extras = append(extras, line)
		}
	}
	if form {
		extras = append(extras, p.fields(at)...)
	}
	_, err = p.in.FPDFText_ClosePage(&requests.FPDFText_ClosePage{TextPage: page.TextPage})
	return text, extras, err
}

// annotation returns the line of an annotation of a page: a text box, a comment or a link. One that is broken has none.
func (p *pdfFile) annotation(at requests.Page, text references.FPDF_TEXTPAGE, i int) (x extraLine) {
	got, err := p.in.FPDFPage_GetAnnot(&requests.FPDFPage_GetAnnot{Page: at, Index: i})
	if err != nil {
		return x
	}
	a := got.Annotation
	defer func() { _, _ = p.in.FPDFPage_CloseAnnot(&requests.FPDFPage_CloseAnnot{Annotation: a}) }()
	kind, err := p.in.FPDFAnnot_GetSubtype(&requests.FPDFAnnot_GetSubtype{Annotation: a})
	if err != nil {
		return x
	}
	switch kind.Subtype {
	case enums.FPDF_ANNOT_SUBTYPE_POPUP: // repeats another one
	case enums.FPDF_ANNOT_SUBTYPE_WIDGET:
		x.place = "form" // see fields
		if state := p.value(a, "AS"); state != "" && state != "Off" {
			p.on[p.value(a, "T")] = true
		}
	case enums.FPDF_ANNOT_SUBTYPE_LINK:
		x = extraLine{"links", p.link(a, text)}
	default:
		x = extraLine{"comments", p.value(a, "Contents")}
		switch {
		case kind.Subtype == enums.FPDF_ANNOT_SUBTYPE_FREETEXT:
			x.place = "text boxes"
		case kind.Subtype == enums.FPDF_ANNOT_SUBTYPE_STAMP && x.text == "":
			p.b.missed("stamp", 1)
		case kind.Subtype == enums.FPDF_ANNOT_SUBTYPE_FILEATTACHMENT:
			p.b.missed("attached file", 1)
		}
	}
	return x
}

// value returns a text of an annotation; "" if it has none.
func (p *pdfFile) value(a references.FPDF_ANNOTATION, key string) string {
	v, err := p.in.FPDFAnnot_GetStringValue(&requests.FPDFAnnot_GetStringValue{Annotation: a, Key: key})
	if err != nil {
		return ""
	}
	return v.Value
}

// link returns the text of a link and its address; "" if the text has the address, or it leads to another page.
func (p *pdfFile) link(a references.FPDF_ANNOTATION, page references.FPDF_TEXTPAGE) string {
	link, err := p.in.FPDFAnnot_GetLink(&requests.FPDFAnnot_GetLink{Annotation: a})
	if err != nil {
		return ""
	}
	action, err := p.in.FPDFLink_GetAction(&requests.FPDFLink_GetAction{Link: link.Link})
	if err != nil || action.Action == nil {
		return ""
	}
	uri, err := p.in.FPDFAction_GetURIPath(&requests.FPDFAction_GetURIPath{Document: p.doc, Action: *action.Action})
	if err != nil || uri.URIPath == nil {
		return ""
	}
	text := ""
	if r, err := p.in.FPDFAnnot_GetRect(&requests.FPDFAnnot_GetRect{Annotation: a}); err == nil {
		t, err := p.in.FPDFText_GetBoundedText(&requests.FPDFText_GetBoundedText{
			TextPage: page, Left: float64(r.Rect.Left), Top: float64(r.Rect.Top), Right: float64(r.Rect.Right),
			Bottom: float64(r.Rect.Bottom),
		})
		if err == nil {
			text = collapsed(t.Text)
		}
	}
	if address := linked(text, address(*uri.URIPath)); address != "" {
		return text + address
	}
	return ""
}

// fields returns the names and values of the form fields of a page that are filled in. PDFium has no names of options.
func (p *pdfFile) fields(at requests.Page) (lines []extraLine) {
	form, err := p.in.GetForm(&requests.GetForm{Page: at})
	if err != nil {
		p.b.missed("form", 1)
		return nil
	}
	for _, f := range form.Fields {
		values := f.Values
		switch {
		case f.Type == enums.FPDF_FORMFIELD_TYPE_CHECKBOX && f.IsChecked != nil:
			values = []string{checkBox(*f.IsChecked || p.on[f.Name])}
		case f.Value != nil:
			values = append(values, *f.Value)
		}
		if value := strings.Join(values, ", "); value != "" {
			lines = append(lines, extraLine{"form", strings.TrimPrefix(f.Name+": "+value, ": ")})
		}
	}
	return lines
}

// lineEnd is the character with which PDFium marks a hyphen at the end of a line.
const lineEnd = "\ufffe"

var (
	dividedWord = content.Pattern(`[\pL\pM\pN’'-]+(?:\x{fffe}[\pL\pM\pN’'-]*)+`)
	wholeWord   = content.Pattern(`[\pL\pM\pN’'\x{fffe}-]+`)
)

// divided decides how words are spelled that a hyphen divides at the end of a line: "govern-ment" has none on another
// line, "well-known" has one. Where the document does not tell, the text has both spellings.
type divided map[string]bool // by spelling: whether it is also on a line

func newDivided(texts []string) divided {
	d := divided{}
	for _, text := range texts {
		for _, w := range dividedWord().FindAllString(text, -1) {
			joined, hyphened := spellings(w)
			d[joined], d[hyphened] = false, false
		}
	}
	if len(d) == 0 {
		return d
	}
	for _, text := range texts {
		for _, w := range wholeWord().FindAllString(text, -1) {
			w = strings.ToLower(w)
			if _, ok := d[w]; ok {
				d[w] = true
			}
		}
	}
	return d
}

// spellings returns both spellings of a divided word in lower case.
func spellings(word string) (joined, hyphened string) {
	word = strings.ToLower(word)
	return strings.ReplaceAll(word, lineEnd, ""), strings.ReplaceAll(word, lineEnd, "-")
}

// words spells the divided words of a text. It returns the other spelling of those that it cannot decide.
func (d divided) words(text string) (spelled string, other []string) {
	seen := map[string]bool{}
	spelled = dividedWord().ReplaceAllStringFunc(text, func(w string) string {
		plain, hyphened := strings.ReplaceAll(w, lineEnd, ""), strings.ReplaceAll(w, lineEnd, "-")
		lower, lowerHyphened := spellings(w)
		switch before, after, _ := strings.Cut(strings.Trim(w, "-"), lineEnd); {
		case isName(before, after) || d[lowerHyphened] && !d[lower]:
			return hyphened
		case d[lower]:
			return plain
		case utf8.RuneCountInString(before) == 1: // as in e-mail
			plain, hyphened = hyphened, plain
		}
		if !seen[hyphened] {
			seen[hyphened] = true
			other = append(other, hyphened)
		}
		return plain
	})
	return spelled, other
}

// isName reports whether the hyphen is in a name or number, such as INV-2043, Anglo-Saxon or state-of-the-art.
func isName(before, after string) bool {
	last, _ := utf8.DecodeLastRuneInString(before)
	first, _ := utf8.DecodeRuneInString(after)
	second, _ := utf8.DecodeRuneInString(after[min(len(after), utf8.RuneLen(first)):])
	return strings.Contains(before+after, "-") || unicode.IsDigit(last) || unicode.IsDigit(first) ||
		unicode.IsUpper(first) && (!unicode.IsUpper(last) || !unicode.IsUpper(second))
}

// ligatures are letters of fonts that a search for the word would miss.
var ligatures = strings.NewReplacer("ﬀ", "ff", "ﬁ", "fi", "ﬂ", "fl", "ﬃ", "ffi", "ﬄ", "ffl", "ﬅ", "st", "ﬆ", "st")
