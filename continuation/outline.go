package continuation

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

const (
	// listedLines is how many lines an answer shows from the beginning of an outline, and as many from its end.
	listedLines = 100
	// maxLines is how many lines of an outline are remembered; more are counted.
	maxLines = 1 << 20
	// maxHeadings is how many headings of one section are named in its line.
	maxHeadings = 6
	// maxWord is the largest number of characters of a heading or an id in an outline.
	maxWord = 60
	// maxFindings is how many findings of one sort are remembered.
	maxFindings = 5
)

// role is what a container is in a document with sections. Others have no role.
type role uint8

const (
	noRole role = iota
	document
	sections
	section
	elements
	element
	items
	headers
	rows
	row
)

// outline collects what was delivered. It has one line for each section of a document with sections, else one for each
// container down to two levels.
type outline struct {
	Lines    []string
	Unlisted int64 // lines after maxLines
	Unnamed  int64 // sections without an id, which have no line

	Sections int64 // complete ones
	Found    bool  // the document has a list of sections
	Current  sectionSum
	Width    int64 // of the headers of the element being read; 0: unknown

	IDs     map[uint64]struct{}
	Doubled findings // ids that occur again
	Empty   findings // pointers of sections without elements
	Ragged  findings // pointers of rows whose length differs from the headers
	Left    findings // pointers of strings that end with … or have a TODO
}

// findings are the first places where something was found, and how many there are.
type findings struct {
	First []string
	Count int64
}

// add counts a finding, and appends it if there are few.
func (f *findings) add(what func() string) {
	if f.Count++; len(f.First) < maxFindings {
		f.First = append(slices.Clip(f.First), clip(what(), 2*maxWord))
	}
}

// sectionSum is what one section has, over all its elements.
type sectionSum struct {
	ID, Type                           string
	Texts, Items, Rows, Code, Elements int64
	Headings                           []string
	Level                              string // of the heading being read
	Text                               string
}

// clone returns a copy that another parser can fill. What was listed so far is shared.
func (o *outline) clone() outline {
	c := *o
	c.Lines, c.Current.Headings = slices.Clip(o.Lines), slices.Clip(o.Current.Headings)
	c.IDs = maps.Clone(o.IDs)
	return c
}

// childRole returns the role of a container that begins as the current child of the innermost open one.
func (o *outline) childRole(p *parser, object bool) role {
	f := p.top()
	if !f.Object {
		switch {
		case len(p.containers) == 1 && f.Count == 0 && object:
			return document
		case f.Role == sections && object:
			return section
		case f.Role == elements && object:
			return element
		case f.Role == rows && !object:
			return row
		}
		return noRole
	}
	key := string(p.text[f.Key[0]:f.Key[1]])
	switch {
	case f.Role == document && key == "sections" && !object:
		return sections
	case f.Role == section && key == "elements":
		if object {
			return element
		}
		return elements
	case f.Role == element && !object:
		switch key {
		case "items":
			return items
		case "headers":
			return headers
		case "rows":
			return rows
		}
	}
	return noRole
}

// begin follows the start of the innermost container.
func (o *outline) begin(p *parser) {
	switch p.top().Role {
	case sections:
		o.Found = true
	case section:
		o.Current = sectionSum{}
	case element:
		o.Current.Elements++
		o.Current.Level, o.Current.Text, o.Width = "", "", 0
	}
}

// scalar follows the end of a string, number or literal.
func (o *outline) scalar(p *parser, e content.Event, raw []byte) {
	f := p.top()
	if e == content.StringEnd && leftover(raw[1:len(raw)-1]) {
		o.Left.add(func() string { return p.pointer(len(p.containers) - 1) })
	}
	if !f.Object || f.Role != section && f.Role != element {
		return
	}
	key := string(p.text[f.Key[0]:f.Key[1]])
	o.member(key, f.Role, raw)
	if f.Role == section && key == "id" {
		sum := hashOf([]byte(unquote(inQuotes(raw)))) // of the whole id: o.Current.ID is clipped
		if _, found := o.IDs[sum]; found {
			o.Doubled.add(func() string { return o.Current.ID })
		}
		if o.IDs == nil {
			o.IDs = map[uint64]struct{}{}
		}
		if len(o.IDs) < maxNames {
			o.IDs[sum] = struct{}{}
		}
	}
}

// member counts a member of a section or element.
func (o *outline) member(key string, r role, raw []byte) {
	s := &o.Current
	text := func() string { return unquote(inQuotes(raw)) }
	switch {
	case r == section && key == "id":
		s.ID = word(text())
	case r == section && key == "content_type":
		s.Type = word(text())
	case r == section:
	case key == "text":
		s.Texts++
		s.Text = word(text())
		if s.Text == "" {
			s.Text = " "
		}
		o.heading()
	case key == "level":
		s.Level = word(string(raw))
		o.heading()
	case key == "code":
		s.Code += codeLines(raw)
	}
}

// heading adds a heading once both its level and its text are known.
func (o *outline) heading() {
	s := &o.Current
	if s.Level == "" || s.Text == "" {
		return
	}
	if len(s.Headings) < maxHeadings {
		s.Headings = append(s.Headings, strings.TrimSpace(s.Level+" "+s.Text))
	} else if len(s.Headings) == maxHeadings {
		s.Headings = append(s.Headings, "…")
	}
	s.Level = ""
}

// end follows the end of the innermost container, or the end of the text inside of it.
func (o *outline) end(p *parser, whole bool) {
	f := p.top()
	switch f.Role {
	case items:
		o.Current.Items += f.Count
	case rows:
		o.Current.Rows += f.Count
	case headers:
		o.Width = f.Count
	case row:
		if w := o.Width; whole && w > 0 && f.Count != w {
			o.Ragged.add(func() string { return p.pointer(len(p.containers) - 2) })
		}
	case section:
		o.Sections++
		if whole && o.Current.Elements == 0 {
			o.Empty.add(func() string { return p.pointer(len(p.containers) - 2) })
		}
		if o.Current.ID == "" {
			o.Unnamed++
		} else if line := o.Current.line(); whole {
			o.line(line)
		} else {
			o.line(line + " (cut off)")
		}
	case noRole, document:
		if depth := len(p.containers) - 1; depth <= 2 && !o.Found && p.objectsAbove(depth) {
			o.line(p.countLine(depth))
		}
	}
}

// objectsAbove reports whether the container at a depth is in objects only.
func (p *parser) objectsAbove(depth int) bool {
	return !slices.ContainsFunc(p.containers[1:max(depth, 1)], func(f container) bool { return !f.Object })
}

// countLine is the line of a container at a depth in a document without sections.
func (p *parser) countLine(depth int) string {
	f := &p.containers[depth]
	path := ""
	if depth > 0 {
		path = clip(p.pointer(depth-1), 2*maxWord)
	}
	path = cmp.Or(path, "the document")
	if f.Object {
		return path + " with " + plural(f.Count, "member")
	}
	return path + " with " + plural(f.Count, "element")
}

func (s *sectionSum) line() string {
	name := fmt.Sprintf("%s %q", cmp.Or(s.Type, "section"), s.ID)
	if s.Type == "heading" {
		return strings.TrimSpace(name + " " + strings.Join(s.Headings, "; "))
	}
	counted, ok := map[string]struct {
		n   int64
		one string
	}{
		"paragraph": {s.Texts, "text"}, "bullet_list": {s.Items, "item"}, "numbered_list": {s.Items, "item"},
		"table": {s.Rows, "row"}, "code_block": {s.Code, "code line"},
	}[s.Type]
	if !ok {
		counted.n, counted.one = s.Elements, "element"
	}
	return name + " with " + plural(counted.n, counted.one)
}

func (o *outline) line(s string) {
	if len(o.Lines) < maxLines {
		o.Lines = append(o.Lines, s)
	} else {
		o.Unlisted++
	}
}

// finished returns the outline of a text that ends inside of a container: the open containers have what is complete.
func (p *parser) finished() outline {
	c := p.clone()
	c.closeString()
	for len(c.containers) > 1 {
		c.outline.end(c, false)
		c.containers = c.containers[:len(c.containers)-1]
	}
	return c.outline
}

// closeString counts the lines of code that a string has so far.
func (p *parser) closeString() {
	f := p.top()
	if p.scan.Inside() == "string" && f.Object && f.Role == element &&
		string(p.text[f.Key[0]:f.Key[1]]) == "code" {
		p.outline.Current.Code += codeLines(p.text[p.value:p.offset()])
	}
}

// Outline returns all lines of what was delivered. abridged says that an answer does not show all of them.
func (d *Document) Outline() (all []string, abridged bool) {
	if d.plain {
		return nil, false
	}
	o := d.parser.finished()
	_, whole := o.shown("", d.fits)
	return o.Lines, !whole
}

// fits reports whether a text is small enough for the outline in an answer.
func (d *Document) fits(text string) bool { return d.options.Tokens(text) <= d.options.OutlineTokens }

// shown returns the outline as far as it fits: as many first as last lines, with the number of those left out between
// them, and what stores all. fits reports whether a text does.
func (o *outline) shown(kept string, fits func(string) bool) (lines []string, whole bool) {
	render := func(first, last int) []string {
		var out []string
		for _, s := range o.Lines[:first] {
			out = append(out, "- "+s)
		}
		if n := int64(len(o.Lines)-first-last) + o.Unlisted; n > 0 {
			more := fmt.Sprintf("… %d more …", n)
			if kept != "" {
				more = fmt.Sprintf("… %d more; the whole list: %s …", n, kept)
			}
			out = append(out, more)
		}
		for _, s := range o.Lines[len(o.Lines)-last:] {
			out = append(out, "- "+s)
		}
		return out
	}
	if len(o.Lines) <= 2*listedLines {
		if out := render(len(o.Lines), 0); fits(strings.Join(out, "\n")) {
			return out, true
		}
	}
	low, high := 0, min((len(o.Lines)-1)/2, listedLines)
	for low < high { // the largest number of lines at each end that fits
		mid := (low + high + 1) / 2
		if fits(strings.Join(render(mid, mid), "\n")) {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return render(low, low), false
}

// leftover reports whether a string looks as if its writer meant to come back to it.
func leftover(raw []byte) bool {
	t := bytes.TrimRight(raw, " ")
	return bytes.HasSuffix(t, []byte("…")) || bytes.HasSuffix(t, []byte("...")) ||
		bytes.HasSuffix(t, []byte(`\u2026`)) ||
		bytes.Contains(raw, []byte("TODO"))
}

// inQuotes returns a string without its quotes; the last one may be missing.
func inQuotes(raw []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimPrefix(raw, []byte{'"'}), []byte{'"'})
}

// codeLines counts the lines of a string that are not blank.
func codeLines(raw []byte) int64 {
	return int64(filledLines([]byte(unquote(inQuotes(raw)))))
}

func word(s string) string { return clip(strings.Join(strings.Fields(s), " "), maxWord) }

func clip(s string, limit int) string { return content.ClipEnd(s, limit) }

func plural(n int64, one string) string { return content.Plural(n, one, one+"s") }
