package extract

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/klippa-app/go-pdfium/enums"
	pdferrors "github.com/klippa-app/go-pdfium/errors"
	"github.com/tetratelabs/wazero/api"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// pdfFile is an open PDF document.
type pdfFile struct {
	*pdfium
	doc  uint64
	b    *builder
	size int             // bytes of text so far
	on   map[string]bool // names of check boxes with a state that is not Off
}

// extraLine is a line that follows the text of a page.
type extraLine struct{ place, text string }

// page returns the text of a page, from 0, with \r\n after lines, and the text of its annotations.
func (p *pdfFile) page(i int) (text string, extras []extraLine, err error) {
	page := p.call("FPDF_LoadPage", p.doc, uint64(i))
	if page == 0 {
		return "", nil, cmp.Or(p.failed(), pdferrors.ErrPage)
	}
	chars := p.call("FPDFText_LoadPage", page)
	n := p.call("FPDFText_CountChars", chars)
	if chars == 0 || int32(n) < 0 {
		return "", nil, cmp.Or(p.failed(), errors.New("it has no text page"))
	}
	if n > 0 {
		text = ligatures.Replace(fromUTF16(p.buffer(2*(n+1), func(at uint64) uint64 {
			return 2 * p.call("FPDFText_GetText", chars, 0, n, at)
		})))
	}
	annotations := int32(p.call("FPDFPage_GetAnnotCount", page))
	if err := p.failed(); err != nil {
		return "", nil, err
	}
	form := false
	for a := range annotations {
		line := p.annotation(page, chars, uint64(a))
		if p.size += len(line.text); p.size > maxText {
			break // the caller fails
		}
		form = form || line.place == "form"
		if line.text != "" && !slices.Contains(extras, line) {
			extras = append(extras, line)
		}
	}
	if form {
		extras = append(extras, p.fields(page, annotations)...)
	}
	p.call("FPDFText_ClosePage", chars)
	p.call("FPDF_ClosePage", page)
	return text, extras, p.failed()
}

// annotation returns the line of an annotation of a page: a text box, a comment or a link. One that is broken has none.
func (p *pdfFile) annotation(page, chars, i uint64) (x extraLine) {
	a := p.call("FPDFPage_GetAnnot", page, i)
	switch kind := enums.FPDF_ANNOTATION_SUBTYPE(p.call("FPDFAnnot_GetSubtype", a)); kind {
	case enums.FPDF_ANNOT_SUBTYPE_POPUP: // repeats another one
	case enums.FPDF_ANNOT_SUBTYPE_WIDGET:
		x.place = "form" // see fields
		if state := p.value(a, "AS"); state != "" && state != "Off" {
			p.on[p.value(a, "T")] = true
		}
	case enums.FPDF_ANNOT_SUBTYPE_LINK:
		x = extraLine{"links", p.link(a, chars)}
	default:
		x = extraLine{"comments", p.value(a, "Contents")}
		switch {
		case kind == enums.FPDF_ANNOT_SUBTYPE_FREETEXT:
			x.place = "text boxes"
		case kind == enums.FPDF_ANNOT_SUBTYPE_STAMP && x.text == "":
			p.b.missed("stamp", 1)
		case kind == enums.FPDF_ANNOT_SUBTYPE_FILEATTACHMENT:
			p.b.missed("attached file", 1)
		}
	}
	p.call("FPDFPage_CloseAnnot", a)
	_ = p.failed()
	return x
}

// value returns a text of an annotation; "" if it has none.
func (p *pdfFile) value(a uint64, key string) (text string) {
	p.buffer(uint64(len(key)+1), func(name uint64) uint64 {
		p.mod.Memory().WriteString(uint32(name), key+"\x00")
		text = p.text("FPDFAnnot_GetStringValue", a, name)
		return 0
	})
	return text
}

// link returns the text of a link and its address; "" if the text has the address, or it leads to another page.
func (p *pdfFile) link(a, chars uint64) string {
	action := p.call("FPDFLink_GetAction", p.call("FPDFAnnot_GetLink", a))
	uri := strings.TrimSuffix(string(p.bytes("FPDFAction_GetURIPath", p.doc, action)), "\x00")
	if uri == "" {
		return ""
	}
	text := ""
	rect := p.buffer(16, func(at uint64) uint64 { return 16 * p.call("FPDFAnnot_GetRect", a, at) })
	if len(rect) > 0 {
		bounds := []uint64{chars} // left, top, right, bottom
		for side := range slices.Chunk(rect, 4) {
			bounds = append(bounds, api.EncodeF64(float64(math.Float32frombits(binary.LittleEndian.Uint32(side)))))
		}
		n := p.call("FPDFText_GetBoundedText", append(bounds, 0, 0)...)
		text = collapsed(fromUTF16(p.buffer(2*(n+1), func(at uint64) uint64 {
			return 2 * p.call("FPDFText_GetBoundedText", append(bounds, at, n)...)
		})))
	}
	if address := linked(text, address(uri)); address != "" {
		return text + address
	}
	return ""
}

// fields returns the names and values of the form fields of a page that are filled in. PDFium has no names of options.
func (p *pdfFile) fields(page uint64, annotations int32) (lines []extraLine) {
	form := p.call("FPDFDOC_InitFormFillEnvironment", p.doc, p.call("FPDF_FORMFILLINFO_Create"))
	p.call("FORM_OnAfterLoadPage", page, form)
	for i := range annotations {
		a := p.call("FPDFPage_GetAnnot", page, uint64(i))
		if a == 0 || p.call("FPDFAnnot_GetSubtype", a) == uint64(enums.FPDF_ANNOT_SUBTYPE_WIDGET) {
			if line := (extraLine{"form", p.field(form, a)}); line.text != "" && !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
		p.call("FPDFPage_CloseAnnot", a)
	}
	err := p.failed()
	p.call("FORM_OnBeforeClosePage", page, form)
	p.call("FPDFDOC_ExitFormFillEnvironment", form)
	if err != nil || p.failed() != nil {
		p.b.missed("form", 1)
		return nil
	}
	return lines
}

// field returns the name and value of a form field; "" if it is empty or a radio button that is off.
func (p *pdfFile) field(form, a uint64) string {
	kind := enums.FPDF_FORMFIELD_TYPE(int32(p.call("FPDFAnnot_GetFormFieldType", form, a)))
	name := p.text("FPDFAnnot_GetFormFieldName", form, a)
	checked := p.call("FPDFAnnot_IsChecked", form, a) == 1
	value := ""
	switch {
	case kind <= enums.FPDF_FORMFIELD_TYPE_UNKNOWN:
		p.err = cmp.Or(p.err, errors.New("a field has no type"))
	case kind == enums.FPDF_FORMFIELD_TYPE_CHECKBOX:
		value = checkBox(checked || p.on[name])
	case kind == enums.FPDF_FORMFIELD_TYPE_COMBOBOX || kind == enums.FPDF_FORMFIELD_TYPE_LISTBOX:
		var chosen []string
		for i := range int32(p.call("FPDFAnnot_GetOptionCount", form, a)) {
			if p.call("FPDFAnnot_IsOptionSelected", form, a, uint64(i)) == 1 {
				chosen = append(chosen, p.text("FPDFAnnot_GetOptionLabel", form, a, uint64(i)))
			}
		}
		value = strings.Join(chosen, ", ")
	case checked || kind != enums.FPDF_FORMFIELD_TYPE_RADIOBUTTON:
		value = p.text("FPDFAnnot_GetFormFieldValue", form, a)
	}
	if value == "" {
		return ""
	}
	return strings.TrimPrefix(name+": "+value, ": ")
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
