package extract

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// style is what a character style says of the meaning of text.
type style struct {
	script  rune   // superscript, subscript or 0
	shifted bool   // script is a position, which can also be a matter of layout
	font    string // of symbols, in lower case; "" for fonts of letters
}

// set applies an element that describes a style or a run.
func (s *style) set(e xml.StartElement, styles map[string]style) {
	switch e.Name.Local {
	case "rStyle", "basedOn":
		*s = styles[attr(e, "val")]
	case "span":
		*s = styles[attr(e, "style-name")]
	case "style":
		*s = styles[attr(e, "parent-style-name")]
	case "vertAlign":
		s.script = scriptOf(attr(e, "val"))
	case "position": // of LibreOffice
		s.script, s.shifted = scriptOf(attr(e, "val")), true
	case "rPr":
		s.script = scriptOf(attr(e, "baseline"))
	case "text-properties":
		s.script, s.font = scriptOf(attr(e, "text-position")), symbolFont(attr(e, "font-name"))
	case "rFonts":
		s.font = symbolFont(attr(e, "ascii"))
	case "latin", "sym":
		if name := symbolFont(attr(e, "typeface")); name != "" {
			s.font = name
		}
	}
}

// scriptOf returns the script of a position, such as "superscript", "sub 58%", "33% 58%" or "-25000".
func scriptOf(position string) rune {
	up, _ := strconv.Atoi(strings.TrimRight(strings.SplitN(position, " ", 2)[0], "%"))
	switch {
	case up > 0 || strings.HasPrefix(position, "super"):
		return superscript
	case up < 0 || strings.HasPrefix(position, "sub"):
		return subscript
	}
	return 0
}

// maxShifted is the length of a text up to which its position makes it a script, in bytes.
const maxShifted = 8

// styleSheet has the styles of a document.
type styleSheet struct {
	all map[string]style // by ID
	id  string           // of the style that is being read
}

// see takes an element of the styles.
func (s *styleSheet) see(e xml.StartElement) error {
	switch name := e.Name.Local; {
	case name == "style":
		s.id = attr(e, "styleId") + attr(e, "name")
	case strings.HasSuffix(name, "-style") || name == "docDefaults":
		s.id = "" // a default, or a style of lists
	}
	before := s.all[s.id]
	after := before
	if after.set(e, s.all); after != before && s.id != "" {
		if s.all == nil {
			s.all = map[string]style{}
		}
		s.all[s.id] = after
	}
	return nil
}

// runStyle returns the style of text at this place.
func (f *flow) runStyle() (s style) {
	for i := len(f.open) - 1; i > 0 && f.open[i].role != paragraph; i-- {
		if s.script == 0 {
			s.script, s.shifted = f.open[i].style.script, f.open[i].style.shifted
		}
		if s.font == "" {
			s.font = f.open[i].style.font
		}
	}
	return s
}

// styled returns text with marks of its script, and with the characters that a font of symbols shows.
func (f *flow) styled(s style, text string) string {
	text, unknown := symbols(s.font, text)
	f.b.missed("symbol", unknown)
	if s.script != 0 && (!s.shifted || len(text) <= maxShifted) {
		return string(s.script) + text + string(s.script+toEnd)
	}
	return text
}

// describe applies an element that describes another or that stands for text.
func (f *flow) describe(e xml.StartElement) {
	f.within(run).style.set(e, f.styles.all)
	top := &f.open[len(f.open)-1]
	number := func(name string) int {
		n, _ := strconv.Atoi(attr(e, name))
		return min(max(n, 0), maxRepeat)
	}
	switch e.Name.Local {
	case "gridSpan":
		f.within(cell).span = max(number("val")-1, 0)
	case "gridBefore":
		f.within(row).cells = slices.Repeat([]string{covered}, number("val"))
	case "gridAfter":
		f.within(row).span = number("val")
	case "table-cell", "covered-table-cell":
		top.repeat = number("number-columns-repeated")
	case "table-row":
		top.repeat = number("number-rows-repeated")
	case "hyperlink":
		top.link = address(f.links[attr(e, "id")])
	case "hlinkClick":
		r := f.within(run)
		if r.link = address(f.links[attr(e, "id")]); r.role != run {
			f.write(linked("", r.link)) // of a shape
		}
	case "a":
		top.link = address(attr(e, "href"))
	case "fldSimple":
		f.fields = append(f.fields, field{code: []byte(attr(e, "instr"))})
	case "fldChar":
		f.fieldChar(attr(e, "fldCharType"))
	case "checkBox", "ddList", "checked", "default", "result", "listEntry":
		f.formField(e)
	case "sym":
		if c, err := strconv.ParseUint(attr(e, "char"), 16, 16); err == nil {
			f.write(f.styled(style{font: symbolFont(attr(e, "font"))}, string(rune(c))))
		}
	case "textpath":
		f.write(" " + attr(e, "string") + " ")
	case "docPr":
		f.pictured = attr(e, "descr")
		f.picture(f.pictured)
	case "cNvPr":
		if text := attr(e, "descr"); text != f.pictured { // Word has it in both elements
			f.picture(text)
		}
	case "shape":
		f.picture(attr(e, "alt"))
	case "relIds":
		f.include(f.targets[attr(e, "dm")])
	case "object":
		if href := attr(e, "href"); href != "" {
			f.include(path.Join(href, "content.xml"))
		}
	case "altChunk":
		f.chunk(f.targets[attr(e, "id")])
	case "control":
		if id := attr(e, "control"); id != "" {
			f.write(f.controls[id])
		} else {
			f.b.missed("form control", 1) // ActiveX
		}
	}
}

// picture writes the description of a picture.
func (f *flow) picture(description string) {
	if description = collapsed(description); description != "" && description != "formula" { // of LibreOffice
		f.write(" [picture: " + description + "] ")
	}
}

// chunk adds the lines of a document that is stored in this one.
func (f *flow) chunk(part string) {
	read := f.b.readers[Format(part)]
	if read == nil || f.included || !f.a.has(part) {
		f.b.missed("embedded document", 1)
		return
	}
	var data []byte
	r, err := f.a.open(part)
	if err == nil {
		data, err = io.ReadAll(r)
		_ = r.Close()
	}
	if err != nil {
		f.a.fail(err)
		return
	}
	inner := builder{} // without readers: a document in this one is not read
	if read(f.a.ctx, &inner, bytes.NewReader(data), int64(len(data))) != nil || inner.err != nil {
		f.b.missed("embedded document", 1)
	}
	for what, n := range inner.unread {
		f.b.missed(what, n)
	}
	f.a.left -= int64(len(inner.body))
	f.b.notes = append(f.b.notes, inner.notes...)
	f.paragraphs++
	for line := range strings.Lines(string(inner.body)) {
		f.deliver(paragraph, collapsed(line))
	}
}

// field is a field of Word, such as a link or an element of a form.
type field struct {
	code           []byte
	at             int // length of the paragraph's text where its result begins
	form           string
	items          []string // of a list
	value, initial string
}

var (
	linkField = content.Pattern(`^\s*HYPERLINK\s+"([^"]+)"`)
	eqField   = content.Pattern(`^\s*(?i:eq)\s+(.*)`)
	fraction  = content.Pattern(`\\[fF]\(([^,;()]*)[,;]([^()]*)\)`)
)

// fieldChar handles the characters that begin, separate and end a field.
func (f *flow) fieldChar(kind string) {
	n := len(f.fields) - 1
	switch {
	case kind == "begin":
		f.fields = append(f.fields, field{at: f.length()})
	case kind == "separate" && n >= 0:
		f.fields[n].at = f.length()
	case kind == "end" && n >= 0:
		x := f.fields[n]
		f.fields = f.fields[:n]
		f.endField(x)
	}
}

// endField adds the address of a link, and the value of a field that has no text of its own.
func (f *flow) endField(x field) {
	p := f.inner()
	if m := linkField().FindSubmatch(x.code); m != nil && p != nil {
		f.append(linked(string(p.text[min(x.at, len(p.text)):]), address(string(m[1]))))
	}
	if f.length() != x.at {
		return
	}
	if m := eqField().FindSubmatch(x.code); m != nil {
		f.append(fraction().ReplaceAllString(string(m[1]), "\x05$1/$2\x05"))
	}
	f.append(x.text())
}

// formField takes an element of the form that a field belongs to.
func (f *flow) formField(e xml.StartElement) {
	if len(f.fields) == 0 {
		return
	}
	x := &f.fields[len(f.fields)-1]
	switch val := attr(e, "val"); e.Name.Local {
	case "listEntry":
		x.items = append(x.items, val)
	case "default":
		x.initial = val
	case "checked", "result":
		x.value = cmp.Or(val, "1")
	default:
		x.form = e.Name.Local
	}
}

// text returns the value of a form field.
func (x field) text() string {
	value := cmp.Or(x.value, x.initial)
	if i, _ := strconv.Atoi(value); x.form == "ddList" && i >= 0 && i < len(x.items) {
		return x.items[i]
	}
	if x.form == "checkBox" {
		return checkBox(value == "1" || value == "true" || value == "on")
	}
	return ""
}

func checkBox(checked bool) string {
	if checked {
		return "☑"
	}
	return "☐"
}

// control takes an element of the form of an OpenDocument file.
func (f *flow) control(e xml.StartElement) {
	id, name := attr(e, "id"), e.Name.Local
	if id == "" && name != "option" {
		return // a property
	}
	f.lastControl = cmp.Or(id, f.lastControl)
	text := cmp.Or(attr(e, "current-value"), attr(e, "value"), attr(e, "label"))
	chosen := attr(e, "current-state") == "checked" || attr(e, "current-selected") == "true"
	switch {
	case name == "checkbox" || name == "radio":
		text = checkBox(chosen) + " " + attr(e, "label")
	case name == "option" && !chosen:
		return
	}
	f.controls[f.lastControl] += text
}

// maxAddress is the length of the address of a link beyond which it is cut, in bytes.
const maxAddress = 300

// address returns the address of a link as it is shown, "" for a place in the document.
func address(link string) string {
	link = collapsed(link)
	if strings.HasPrefix(link, "#") {
		return ""
	}
	if len(link) > maxAddress {
		return strings.ToValidUTF8(link[:maxAddress], "") + "…"
	}
	return link
}

// linked returns what follows the text of a link: its address, unless the text has it.
func linked(text, address string) string {
	bare := strings.TrimSuffix(address, "/")
	for _, scheme := range []string{"mailto:", "tel:", "https://", "http://"} {
		bare = strings.TrimPrefix(bare, scheme)
	}
	if bare == "" || strings.Contains(text, bare) {
		return ""
	}
	return " <" + address + ">"
}
