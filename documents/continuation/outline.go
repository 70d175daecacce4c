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
	// listedLines is how many lines of an outline are remembered from its beginning, and as many from its end.
	listedLines = 100
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
	all     bool     // First has all lines
	First   []string `json:"first,omitempty"`
	Last    []string `json:"last,omitempty"` // of those after First
	Lines   int64    `json:"lines,omitempty"`
	Unnamed int64    `json:"unnamed,omitempty"` // sections without an id, which have no line

	Sections int64      `json:"sections,omitempty"` // complete ones
	Found    bool       `json:"found,omitempty"`    // the document has a list of sections
	Current  sectionSum `json:"current"`
	Element  tableSum   `json:"element"`

	IDs     map[uint64]struct{} `json:"-"`
	Doubled []string            `json:"doubled,omitempty"` // ids that occur again
	Empty   []string            `json:"empty,omitempty"`   // pointers of sections without elements
	Ragged  []string            `json:"ragged,omitempty"`  // pointers of rows whose length differs from the headers
	Left    []string            `json:"left,omitempty"`    // pointers of strings that end with … or have a TODO
	Counts  findingCounts       `json:"counts"`
}

type findingCounts struct{ Doubled, Empty, Ragged, Left int64 }

// sectionSum is what one section has, over all its elements.
type sectionSum struct {
	ID, Type                           string
	Texts, Items, Rows, Code, Elements int64
	Headings                           []string
	Level                              string // of the heading being read
	Text                               string
}

// tableSum is the element being read: the length of its headers, 0 if unknown.
type tableSum struct{ Width int64 }

func (o *outline) clone() outline {
	c := *o
	c.First, c.Last = slices.Clone(o.First), slices.Clone(o.Last)
	c.Current.Headings = slices.Clone(o.Current.Headings)
	c.Doubled, c.Empty = slices.Clone(o.Doubled), slices.Clone(o.Empty)
	c.Ragged, c.Left = slices.Clone(o.Ragged), slices.Clone(o.Left)
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
		o.Current.Level, o.Current.Text, o.Element = "", "", tableSum{}
	}
}

// scalar follows the end of a string, number or literal.
func (o *outline) scalar(p *parser, e content.Event, raw []byte) {
	f := p.top()
	if e == content.StringEnd && leftover(raw[1:len(raw)-1]) {
		o.add(&o.Left, &o.Counts.Left, func() string { return p.pointer(len(p.containers) - 1) })
	}
	if !f.Object || f.Role != section && f.Role != element {
		return
	}
	key := string(p.text[f.Key[0]:f.Key[1]])
	o.member(key, f.Role, raw)
	if f.Role == section && key == "id" {
		sum := hashOf([]byte(unquote(inQuotes(raw)))) // of the whole id: o.Current.ID is clipped
		if _, found := o.IDs[sum]; found {
			o.add(&o.Doubled, &o.Counts.Doubled, func() string { return o.Current.ID })
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
		o.Element.Width = f.Count
	case row:
		if w := o.Element.Width; whole && w > 0 && f.Count != w {
			o.add(&o.Ragged, &o.Counts.Ragged, func() string { return p.pointer(len(p.containers) - 2) })
		}
	case section:
		o.Sections++
		if whole && o.Current.Elements == 0 {
			o.add(&o.Empty, &o.Counts.Empty, func() string { return p.pointer(len(p.containers) - 2) })
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
	switch {
	case s.Type == "heading" && len(s.Headings) > 0:
		return name + " " + strings.Join(s.Headings, "; ")
	case s.Type == "heading":
		return name
	case s.Type == "paragraph":
		return name + " with " + plural(s.Texts, "text")
	case s.Type == "bullet_list" || s.Type == "numbered_list":
		return name + " with " + plural(s.Items, "item")
	case s.Type == "table":
		return name + " with " + plural(s.Rows, "row")
	case s.Type == "code_block":
		return name + " with " + plural(s.Code, "code line")
	}
	return name + " with " + plural(s.Elements, "element")
}

func (o *outline) line(s string) {
	o.Lines++
	if len(o.First) < listedLines || o.all {
		o.First = append(o.First, s)
		return
	}
	if len(o.Last) == listedLines {
		o.Last = o.Last[:copy(o.Last, o.Last[1:])]
	}
	o.Last = append(o.Last, s)
}

// add appends a finding, if there are few, and counts it.
func (o *outline) add(list *[]string, count *int64, what func() string) {
	*count++
	if len(*list) < maxFindings {
		*list = append(*list, clip(what(), 2*maxWord))
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

// Outline returns all lines of what was delivered. If there are many, it reads the text again.
func (d *Document) Outline() []string {
	if d.plain {
		return nil
	}
	o := d.parser.finished()
	if o.Lines > int64(len(o.First)+len(o.Last)) {
		p := newParser()
		p.outline.all = true
		p.read(d.text, int64(len(d.text)))
		o = p.finished()
	}
	return slices.Concat(o.First, o.Last)
}

// Abridged reports whether the outline has more lines than an answer shows, and whether Outline would have to read the
// text again.
func (d *Document) Abridged() (abridged, again bool) {
	if d.plain {
		return false, false
	}
	o := d.parser.finished()
	all := slices.Concat(o.First, o.Last)
	again = o.Lines > int64(len(all))
	return again || d.options.Tokens("- "+strings.Join(all, "\n- ")) > d.options.OutlineTokens, again
}

// lines returns the outline as far as it fits: as many first as last lines, with the number of those left out between
// them, and what stores all. fits reports whether a text does.
func (o *outline) lines(kept string, fits func(string) bool) []string {
	all := slices.Concat(o.First, o.Last)
	missing := o.Lines - int64(len(all))
	render := func(first, last int) []string {
		var out []string
		for _, s := range all[:first] {
			out = append(out, "- "+s)
		}
		if n := o.Lines - int64(first+last); n > 0 {
			more := fmt.Sprintf("… %d more …", n)
			if kept != "" {
				more = fmt.Sprintf("… %d more; the whole list: %s …", n, kept)
			}
			out = append(out, more)
		}
		for _, s := range all[len(all)-last:] {
			out = append(out, "- "+s)
		}
		return out
	}
	if missing == 0 {
		if out := render(len(all), 0); fits(strings.Join(out, "\n")) {
			return out
		}
	}
	low, high := 0, len(o.First)
	if missing == 0 {
		high = (len(all) - 1) / 2
	}
	for low < high { // the largest number of lines at each end that fits
		mid := (low + high + 1) / 2
		if fits(strings.Join(render(mid, min(mid, len(all)-mid)), "\n")) {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return render(low, min(low, len(all)-low))
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
