package continuation

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/base/runes"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// shownPiece is the largest number of characters of an element that an answer shows.
const shownPiece = 160

// maxWhole is the size in bytes up to which a whole document is shown as its restart text.
const maxWhole = 2000

// Names are what an answer calls the things of a document.
type Names struct {
	Kept string // the text so far: "obs:ID"; "" if it is not stored
	Call string // the call that hands in the next part: "deliver after=obs:ID"; "" if there is none
	Part string // the part that was refused, if it is stored
	File string // the command that writes the text so far to a file; "" if there is none

	Outline string // the whole outline, if it is stored because an answer shows a part of it
}

// answer is written about a document.
type answer struct {
	*Document
	names Names
	strings.Builder
}

// Answer says what arrived, and word for word what to send next.
func (d *Document) Answer(r Result, n Names) string {
	b := &answer{Document: d, names: n}
	switch r.Verdict {
	case Done:
		b.whole()
	case Unknown:
		what := "not JSON"
		if d.options.Kind == Text {
			what = "taken as text"
		}
		fmt.Fprintf(&b.Builder, "KEPT: %s, %s: only you know whether it is complete.%s\n",
			plural(int64(len(d.text)), "byte"), what, n.keptAs())
		if n.Call != "" {
			b.WriteString("If anything is missing: ")
			b.goOn()
		}
	case Refused:
		b.refused(r)
	case Stop:
		b.stopped(r)
	default:
		b.cut(r)
	}
	if r.Join != "" && r.Join != "first part" {
		b.WriteString("Joined by: " + r.Join)
		if r.Join == "plain continuation" {
			b.WriteString("; the restart text was not repeated")
		}
		b.WriteByte('.')
		if r.Dropped != "" {
			fmt.Fprintf(&b.Builder, " Left out: %s.", clip(r.Dropped, shownPiece))
		}
		b.WriteByte('\n')
	} else if r.Dropped != "" {
		fmt.Fprintf(&b.Builder, "Left out: %s\n", clip(r.Dropped, shownPiece))
	}
	return b.String()
}

func (n Names) keptAs() string {
	if n.Kept == "" {
		return ""
	}
	return " Kept as " + n.Kept
}

// Missing is the answer to a call without a part: clients drop an argument that was cut off.
func (d *Document) Missing(n Names) string {
	b := &answer{Document: d, names: n}
	b.WriteString("NO PART ARRIVED: the call was probably cut off while it was written.")
	b.WriteString(n.keptAs() + "\nSend at most 8,000 characters at once.\n")
	switch d.State() {
	case Whole:
		b.WriteString("The document is whole as it is.\n")
	case Cut, Ambiguous, NotJSON:
		b.goOn()
	}
	return b.String()
}

// cut is the answer to a text that is cut off.
func (b *answer) cut(r Result) {
	if len(bytes.TrimSpace(b.text)) == 0 {
		b.WriteString("Nothing has arrived yet. Send the first part.\n")
		return
	}
	if r.State == Whole {
		fmt.Fprintf(&b.Builder, "NO SECTION YET: the document parses, and has no section.%s\n", b.names.keptAs())
		if b.names.Call != "" {
			fmt.Fprintf(&b.Builder, "Go on with %s: send the document with its sections, from its beginning.\n", b.names.Call)
		}
		return
	}
	fmt.Fprintf(&b.Builder, "CUT OFF at byte %s, %s.", grouped(len(b.text)), b.where())
	if b.names.Kept != "" {
		fmt.Fprintf(&b.Builder, " Kept so far as %s (part %d)", b.names.Kept, max(1, len(b.history.Parts)))
	}
	b.WriteByte('\n')
	b.delivered("Delivered so far:")
	a := b.anchor
	b.WriteString(
		"Compare this with what was asked for. If anything is missing, deliver the rest; repeat nothing but the restart text.\n",
	)
	if a.last >= 0 {
		fmt.Fprintf(&b.Builder, "Last complete element before cut-off: %s\n",
			content.ClipBytes(string(b.text[a.last:a.lastUntil]), shownPiece))
	}
	if piece := bytes.TrimSpace(b.text[min(a.piece, a.end):a.end]); len(piece) > 0 {
		fmt.Fprintf(&b.Builder, "Cut-off element (incomplete): %s\n", content.ClipBytes(string(piece), shownPiece))
	}
	b.goOn()
}

// goOn says how the next part must begin.
func (b *answer) goOn() {
	call := "Go on."
	if b.names.Call != "" {
		call = "Go on with " + b.names.Call + "."
	}
	if !b.plain && b.anchor.hidden {
		fmt.Fprintf(&b.Builder, "%s Begin with the whole cut-off element, %s, from its beginning and word for word as before, "+
			"then add what is new. It has text that cannot be shown here.\n", call, b.path())
		return
	}
	text := b.Restart()
	if len(text) > maxWhole && (b.plain && len(text) >= len(bytes.TrimSpace(b.text)) || !b.plain && b.anchor.at == 0) {
		fmt.Fprintf(&b.Builder, "%s Send the document again from its beginning, word for word as before, then add what is new: "+
			"no end of it that is short enough occurs in it once.\n", call)
		return
	}
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	fmt.Fprintf(&b.Builder, "%s Begin with this text, word for word, %s:\n%s\n%s\n%s\n", call, b.then(), fence, text, fence)
}

// then says what follows the restart text.
func (d *joined) then() string {
	const add = "then add what is new"
	if d.plain {
		return add
	}
	if d.anchor.inside && d.parser.scan.Inside() == "string" {
		return "which is inside of a string; go on with it, " + add
	}
	switch in := d.parser.inside(); in {
	case "after a comma":
		return add
	case "after a colon", "after a name":
		return "give its value, " + add
	case "inside an object", "inside an array", "inside " + content.Article(content.BetweenValues):
		return add
	}
	return "complete it, " + add
}

// Position says at which byte and inside of what the text ends.
func (d *joined) Position() string {
	switch d.State() {
	case Cut, Ambiguous:
		return fmt.Sprintf("byte %s, %s", grouped(len(d.text)), d.where())
	case Broken, Trailing, TooDeep:
		return d.parser.fault()
	}
	return string(d.State())
}

// where says which element is cut off, and inside of what the text ends.
func (d *joined) where() string {
	return d.path() + ", " + d.parser.inside()
}

// path names the element that is cut off, and its section.
func (d *joined) path() string {
	path := d.pointer()
	if o := d.parser.finished(); o.Found && d.anchor.depth > 1 && d.parser.outline.Current.ID != "" {
		path += fmt.Sprintf(" (section %q)", d.parser.outline.Current.ID)
	}
	return path
}

func (d *joined) pointer() string {
	return content.ClipBytes(cmp.Or(d.parser.pointer(d.anchor.depth), "at the top"), 2*maxWord)
}

// inside says inside of what the text that was read ends: "inside a string", "after a comma".
func (p *parser) inside() string {
	in := p.scan.Inside()
	if in == "object" || in == "array" {
		before := bytes.TrimRight(p.text[:p.offset()], " \t\r\n")
		switch last, f := before[len(before)-1], p.top(); {
		case last == ',':
			return "after a comma"
		case last == ':':
			return "after a colon"
		case f.Object && f.Open >= 0:
			return "after a name"
		}
	}
	return "inside " + content.Article(in)
}

// delivered lists what arrived, below a heading.
func (b *answer) delivered(heading string) {
	o := b.parser.finished()
	lines, _ := o.shown(b.names.Outline, b.fits)
	if len(lines) > 0 {
		b.WriteString(heading + "\n" + strings.Join(lines, "\n") + "\n")
	}
}

// whole is the answer to a whole document.
func (b *answer) whole() {
	fmt.Fprintf(&b.Builder, "WHOLE: %s%s, %s.%s\n", plural(int64(len(b.text)), "byte"), b.sections(), partsOf(len(b.history.Parts)),
		b.names.keptAs())
	b.delivered("Delivered:")
	if b.names.File != "" {
		b.WriteString("To write it to a file: " + b.names.File + "\n")
	}
	for _, f := range b.Review() {
		b.WriteString("Look at, unless it is meant so: " + f + "\n")
	}
}

// sections returns the number of complete sections after a comma, "" for a document that has none.
func (d *joined) sections() string {
	if d.plain || d.parser.outline.Sections == 0 {
		return ""
	}
	return ", " + plural(d.parser.outline.Sections, "section")
}

func partsOf(n int) string {
	if n <= 1 {
		return "in one part"
	}
	return fmt.Sprintf("in %d parts", n)
}

// refused is the answer to a part that was not joined.
func (b *answer) refused(r Result) {
	stored := ""
	if b.names.Part != "" {
		stored = " The part is kept as " + b.names.Part + "; nothing was joined."
	}
	fmt.Fprintf(&b.Builder, "NOT JOINED: %s.%s\n", strings.TrimSuffix(clip(r.Reason, 3*shownPiece), "."), stored)
	switch r.State {
	case Whole:
		fmt.Fprintf(&b.Builder, "The document is whole as it is.%s\n", b.names.keptAs())
	default:
		if len(b.text) > 0 {
			b.goOn()
		}
	}
}

// stopped is the answer where more text cannot help.
func (b *answer) stopped(r Result) {
	switch r.State {
	case Broken:
		b.WriteString(
			"BROKEN: " + r.Reason + "\nNo further text can mend this. Correct it and deliver the document from its beginning.",
		)
	case TooDeep:
		b.WriteString("TOO DEEP: " + r.Reason + "\nIt may be right, but no more levels are read.")
	case Trailing:
		b.WriteString("TRAILING TEXT: " + r.Reason + "\nDeliver the document without it.")
	default:
		fmt.Fprintf(&b.Builder, "STUCK: %s. Stop here and look at what is kept.", r.Reason)
	}
	b.WriteString(b.names.keptAs() + "\n")
	if r.State == Cut && b.names.Call != "" {
		b.WriteString("A part that is another one can still be joined with " + b.names.Call + "\n")
	}
}

// lastLine returns the restart text of a text that is not JSON: its last line if that occurs once, else more of its
// end, as it is.
func (d *Document) lastLine() string {
	t := bytes.TrimRight(d.text, " \t\r\n")
	for n := shownPiece / 2; ; n *= 2 {
		s := runes.TrimStart(t[max(0, len(t)-n):])
		line := s
		if i := bytes.LastIndexByte(s, '\n'); i >= 0 && len(s)-i > restartMin {
			line = s[i+1:]
		}
		for _, s := range [][]byte{line, s} {
			if occursOnce(d.text, s) && d.shown(int64(len(t)-len(s)), int64(len(t))) {
				return string(s)
			}
		}
		if n >= len(t) {
			return string(runes.TrimStart(t[max(0, len(t)-shownPiece):]))
		}
	}
}

// Review returns what a reader should look at in a whole document: findings of what usually went wrong, none of which
// says that it is incomplete.
func (d *joined) Review() []string {
	if d.plain {
		return nil
	}
	o := &d.parser.outline
	var out []string
	list := func(what string, f findings) {
		if f.Count == 0 {
			return
		}
		s := what + ": " + strings.Join(f.First, ", ")
		if more := f.Count - int64(len(f.First)); more > 0 {
			s += fmt.Sprintf(" and %d more", more)
		}
		out = append(out, s)
	}
	list("sections without elements", o.Empty)
	list("ids that occur twice", o.Doubled)
	list("rows that do not fit their headers", o.Ragged)
	list(`strings that end with "…" or have a TODO`, o.Left)
	if o.Unnamed > 0 {
		out = append(out, plural(o.Unnamed, "section")+" without an id")
	}
	if d.parser.doubles > 0 {
		out = append(out, plural(d.parser.doubles, "name")+" that an object has twice; the last one counts")
	}
	return out
}

// grouped writes a number with a comma between groups of three digits.
func grouped(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
