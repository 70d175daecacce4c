package diff

import (
	"bytes"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// parser reads a diff line by line. The counts in a hunk header decide which lines belong to the hunk: a removed line
// "-- x", which the diff shows as "--- x", is not mistaken for a file header.
type parser struct {
	onFile func(*changed) // a file begins with the current line
	onHunk func(*hunk)    // a hunk has ended before the current line

	now *changed // nil before the first file and after the header of a commit
	// named is true if the current file has had a "---" or "+++" line or a hunk: the next "---" line begins another
	// file.
	named bool
	hunk  *hunk // the current hunk; nil outside hunks
	lines content.HunkLines
	plain []byte // the current line without colours

	head      string // the names after "diff --git"
	old, new  side   // of the current file
	property  bool   // inside the lines of a property of svn: they are no hunk
	patch     bool   // inside a binary patch
	block     bool   // inside a block of it
	altered   bool   // the file is renamed or copied with changes: hunks follow
	unindexed bool   // a file of git's format had hunks and no index line: hg or svn wrote it

	open   bool  // more of the current file must follow
	cut    int64 // number of the line in which the text ends, outside of a file; 0 if in none
	short  *hunk // the first hunk that ends before it has all its lines; nil if there is none
	shorts int64 // number of such hunks
	last   *hunk // the hunk in which the diff ends; nil if in none

	files, hunks, commits int64
}

// changed describes one file of a diff.
type changed struct {
	from, to       string // names without prefixes; "" if unknown
	git            bool   // its header is "diff --git"
	indexed        bool   // its header has git's line "index"
	property       bool   // svn writes properties of it
	moved          bool   // the diff renames or copies the file
	state          string // "added", "deleted" or "" for a file that is on both sides
	vague          bool   // the diff does not say whether the file is added, deleted or modified
	uncounted      bool   // the diff says only that the files differ, or that the file is on one side
	damage         string // what the diff lacks of the file, "" if nothing
	note           []string
	added, removed int64
	hunks          int64
	order          int64 // number of the file, from 0
}

type hunk struct {
	number, line   int64 // number of the hunk in its file, from 0; line number of its header, from 1
	header         string
	file           *changed
	added, removed int64
	says, missing  sides // lines that the header announces, and those of them that the diff lacks
}

// sides counts lines of the old texts and of the new one.
type sides struct{ old, new int64 }

// sidesOf returns the lines that remain of a hunk.
func sidesOf(l content.HunkLines) sides {
	s := sides{new: max(l.New, 0)}
	for _, n := range l.Old {
		s.old += max(n, 0)
	}
	return s
}

// line reads the line with a number, from 1. cut is true if the text ends in the line, without a newline.
func (p *parser) line(line []byte, number int64, cut bool) {
	if bytes.IndexByte(line, 0x1b) >= 0 {
		raw := line
		p.plain = content.WithoutEscapes(p.plain[:0], line)
		if line = p.plain; cut && len(line) == 0 {
			if !bytes.HasSuffix(raw, []byte("[m")) && !bytes.HasSuffix(raw, []byte("[0m")) { // a colour begins a line
				p.cut = number
			}
			if p.hunk != nil && p.lines.Whole() {
				p.endHunk()
			}
			return
		}
	}
	switch {
	case p.hunk != nil:
		if p.belongs(line) {
			return
		}
		p.endHunk()
	case p.property:
		if p.property, _, _ = p.lines.Take(line); p.property {
			p.open = !p.lines.Whole()
			return
		}
	case p.patch && p.patchLine(line):
		return
	}
	switch {
	case len(line) == 0:
	case line[0] == '@' && p.header(line, number):
	case !p.fileLine(string(line), cut) && cut && slices.ContainsFunc(starts, func(s string) bool {
		return bytes.HasPrefix([]byte(s), line) || s[0] == '@' && bytes.HasPrefix(line, []byte(s))
	}):
		if p.open = p.open || p.now != nil && bytes.IndexByte([]byte("@isl"), line[0]) >= 0; !p.open {
			p.cut = number
		}
	}
}

// starts are the beginnings of lines with which a diff continues. A text that ends within one is truncated.
var starts = []string{
	"diff --git ", "diff --cc ", "diff -r", "index ", "similarity ", "Index: ", "@@", "--- ", "Binary files ", "Only in ",
	"GIT binary patch", "literal ", "delta ", "commit ", "Property changes on: ", "Cannot display: ", `\ No newline`,
}

// fileLine reads a line outside of hunks and reports whether it is of a file's header.
func (p *parser) fileLine(text string, cut bool) bool {
	word, rest, blank := strings.Cut(text, " ")
	c := p.now
	switch {
	case word == "diff" && strings.HasPrefix(rest, "-"):
		p.diffLine(rest)
	case word == "Index:" && rest != "":
		p.begin(true)
		p.now.from, p.now.to, p.now.vague = rest, rest, true
	case word == "---" && blank:
		if c == nil || p.named {
			p.begin(true)
		}
		p.old = sideOf(rest, p.now.to)
		p.named, p.open, p.now.vague = true, true, false
		if p.now.from == "" {
			p.now.from = p.now.only(p.old.name, "a/")
		}
		if p.old.absent {
			p.now.state = "added"
		}
	case c == nil && word != "Binary" && word != "Only" && word != "Property" && word != "commit" && word != "From":
		return false
	case word == "+++" && blank && p.named && c.hunks == 0:
		p.new = sideOf(rest, c.to)
		c.setNames(p.old, p.new)
		if p.new.absent {
			c.state = "deleted"
		}
	case strings.HasPrefix(text, "=====") && c.vague:
		p.open = cut && len(text) < 67
	case word == "##" && c.property && p.lines.Header([]byte(strings.ReplaceAll(text, "##", "@@"))):
		p.property = true
		p.open = !p.lines.Whole()
	case text == "Added: svn:mime-type", text == "Deleted: svn:mime-type":
		c.vague = c.uncounted // a binary file that is added or deleted has no other sign
	case strings.HasPrefix(text, "   ") && c != nil && c.property: // svn 1.6 writes properties so
		p.open = false
	case strings.HasPrefix(text, "Property changes on: "):
		name := strings.TrimPrefix(text, "Property changes on: ")
		if c == nil || name != c.name() && !c.git && !(cut && strings.HasPrefix(c.name(), name)) {
			p.begin(false)
			p.now.from, p.now.to = name, name
		}
		p.now.property, p.now.vague = true, p.now.vague && p.now.uncounted
		p.named, p.open = true, true
	case strings.HasPrefix(text, "Binary file") && (strings.HasSuffix(text, " differ") ||
		strings.HasSuffix(text, " has changed")), text == "GIT binary patch", word == "Cannot" && c.vague:
		p.binaryLine(text)
	case strings.HasPrefix(text, "Only in ") && strings.Contains(text, ": "):
		p.begin(false)
		place, name, _ := strings.Cut(text[len("Only in "):], ": ")
		p.now.to = strings.TrimSuffix(place, "/") + "/" + name
		p.note("only on one side")
		p.now.vague, p.now.uncounted = true, true
		p.named = true
	case word == "commit" && isHash(rest), word == "From" && len(rest) > 41 && isHash(rest[:40]):
		p.commits++
		p.now, p.open = nil, false
	default:
		return c != nil && c.git && !p.named && p.extended(text, word, rest, cut)
	}
	return true
}

// diffLine reads a line that begins with "diff -".
func (p *parser) diffLine(rest string) {
	if c := p.now; c == nil || !c.vague || p.named || c.git || c.uncounted { // svn and CVS write it below "Index: "
		p.begin(true)
	}
	p.open = true
	c := p.now
	option, names, _ := strings.Cut(rest, " ")
	switch option {
	case "--git":
		p.head = names
		c.git, c.vague = true, false
		c.from, c.to = headerNames(names, true)
	case "--cc", "--combined":
		c.git = true
		c.to = unquoteName(names)
	default:
		if c.vague {
			return
		}
		if m := hgHeader().FindStringSubmatch(rest); m != nil {
			c.from, c.to = m[1], m[1]
			return
		}
		for strings.HasPrefix(rest, "-") || strings.HasPrefix(rest, "'-") {
			_, rest, _ = strings.Cut(rest, " ")
		}
		_, c.to = headerNames(rest, false)
	}
}

var hgHeader = content.Pattern(`^(?:-r [0-9a-f]{12,40} )+(.+)$`)

// extended reads one of git's extended headers, between "diff --git" and the first hunk.
func (p *parser) extended(text, word, rest string, cut bool) bool {
	c := p.now
	what, value, _ := strings.Cut(rest, " ")
	switch word + " " + what {
	case "new file", "deleted file":
		p.note(word)
		c.state = map[string]string{"new": "added", "deleted": "deleted"}[word]
		p.open = !p.unindexed // hg and svn write no more of an empty file
	case "old mode":
		p.note("mode " + value)
		p.open = true
	case "new mode":
		if n := len(c.note); n > 0 && strings.HasPrefix(c.note[n-1], "mode ") {
			c.note[n-1] += " → " + value
		}
		p.open = cut && len(value) < 6
	case "similarity index", "dissimilarity index":
		p.note(value + " the same")
		p.open, p.altered = true, value != "100%"
	case "rename from", "copy from":
		c.from = unquoteName(value)
		p.open = true
	case "rename to", "copy to":
		c.to = unquoteName(value)
		c.moved = true
		if word == "copy" {
			p.note("copied")
			c.state = "added"
		}
		before, ok := strings.CutSuffix(p.head, strings.TrimPrefix(value, `"`))
		ok = ok && value != "" && (strings.HasSuffix(before, "/") || strings.HasSuffix(before, " "))
		p.open = p.altered || cut && !ok
	default:
		switch {
		case word == "index":
			c.indexed = true
			p.open = !emptyIndex().MatchString(rest) && !strings.Contains(rest, ",")
		case word == "mode" && strings.Contains(rest, ".."): // mode change in a merge
			p.note(text)
			p.open = false
		default:
			return false
		}
	}
	return true
}

// emptyIndex matches the blobs of an empty file that is added or deleted: git writes no more of it.
var emptyIndex = content.Pattern(`^(0{7,64}\.\.(e69de29|473a0f4)|(e69de29|473a0f4)[0-9a-f]*\.\.0{7})`)

// binaryLine reads the line that replaces the hunks of a binary file.
func (p *parser) binaryLine(text string) {
	if c := p.now; c == nil || p.named && (c.hunks > 0 || c.uncounted) {
		p.begin(false)
	}
	c := p.now
	if names, ok := strings.CutPrefix(text, "Binary files "); ok && c.from == "" && c.to == "" {
		a, b := split(strings.TrimSuffix(names, " differ"), " and ")
		c.setNames(side{name: a}, side{name: b})
		switch null {
		case a:
			c.state = "added"
		case b:
			c.state = "deleted"
		}
	}
	if name, ok := strings.CutPrefix(text, "Binary file "); ok {
		name = strings.TrimSuffix(name, " has changed")
		c.from, c.to = name, name
	}
	p.note("binary")
	c.uncounted = true
	c.vague = strings.HasPrefix(text, "Binary file ") // hg writes the same of an added file
	p.patch, p.block = text == "GIT binary patch", false
	p.open = p.patch
	// Plain diff -r prints no other line for this file, and the next file may begin without a "diff" line.
	p.named = true
}

// patchLine reads a line of a binary patch and reports whether it is one. An empty line ends each block of lines in
// base 85; the first character of such a line is the number of its bytes, at most 52.
func (p *parser) patchLine(line []byte) bool {
	switch {
	case len(line) == 0:
		p.block, p.open = false, false
	case bytes.HasPrefix(line, []byte("literal ")), bytes.HasPrefix(line, []byte("delta ")):
		p.block, p.open = true, true
	case p.block && bytes.IndexByte(line, ' ') < 0:
		n := int(line[0]&31) + int(line[0]>>5&1)*26
		p.open = line[0] == 'z' || len(line) != 1+(n+3)/4*5
	default:
		p.patch = false
	}
	return p.patch
}

// finish ends the last file.
func (p *parser) finish() {
	if p.hunk != nil {
		p.last = p.hunk
		p.endHunk()
	} else if p.open && p.now != nil {
		p.now.damage = "its header is incomplete"
		if p.named && (p.now.hunks > 0 || p.now.uncounted) {
			p.now.damage = "its last lines are incomplete"
		}
	}
}

// damage returns notes: where the diff is truncated, and how many hunks before that lack lines.
func (p *parser) damage() (notes []string) {
	others := p.shorts
	switch {
	case p.last != nil && p.last.missing != (sides{}):
		others--
		notes = append(notes, "breaks off inside "+p.last.lacks())
	case p.open && p.now != nil:
		notes = append(notes, "breaks off inside file "+digest.Number(p.now.order)+", "+
			content.Clip(p.now.name(), digest.NameRunes)+": "+p.now.damage)
	case p.cut > 0:
		notes = append(notes, "breaks off inside line "+digest.Number(p.cut))
	}
	if others > 0 {
		notes = append(notes, content.Plural(others, "hunk ends", "hunks end")+" too early, first line "+
			digest.Number(p.short.line)+", "+p.short.lacks())
	}
	return notes
}

func isHash(s string) bool {
	s, _, _ = strings.Cut(s, " ")
	if len(s) != 40 && len(s) != 64 {
		return false
	}
	return strings.Trim(s, "0123456789abcdef") == ""
}

// begin starts the next file. open is true if more of its header must follow.
func (p *parser) begin(open bool) {
	p.now = &changed{order: p.files}
	p.named, p.open, p.patch, p.altered = false, open, false, false
	p.old, p.new = side{}, side{}
	p.files++
	p.onFile(p.now)
}

// note adds a note on the current file for the receipt, at most four in all.
func (p *parser) note(note string) {
	if p.now != nil && len(p.now.note) < 4 {
		p.now.note = append(p.now.note, content.Clip(note, digest.NameRunes))
	}
}

// header reads a hunk header, "@@ -1,2 +3,4 @@ text". In the diff of a merge, the header has one more @ and one more
// old range for each parent after the first. ok is false if the line is none.
func (p *parser) header(line []byte, number int64) (ok bool) {
	if !p.lines.Header(line) {
		return false
	}
	if p.now == nil {
		p.begin(false)
	}
	p.named, p.open, p.now.vague = true, false, false
	p.unindexed = p.unindexed || p.now.git && !p.now.indexed
	if p.now.hunks++; p.now.hunks == 1 && p.now.state == "" {
		switch says := sidesOf(p.lines); {
		case p.old.epoch && says.old == 0:
			p.now.state = "added"
		case p.new.epoch && says.new == 0:
			p.now.state = "deleted"
		}
	}
	p.hunk = &hunk{
		number: p.now.hunks - 1, line: number, file: p.now, header: string(line[:min(len(line), 160)]),
		says: sidesOf(p.lines),
	}
	p.hunks++
	return true
}

// belongs reports whether a line is part of the current hunk, and counts the line if it is added or removed.
func (p *parser) belongs(line []byte) bool {
	belongs, added, removed := p.lines.Take(line)
	if added {
		p.hunk.added++
	}
	if removed {
		p.hunk.removed++
	}
	return belongs
}

// endHunk ends the current hunk.
func (p *parser) endHunk() {
	h := p.hunk
	p.hunk = nil
	h.missing = sidesOf(p.lines)
	h.file.added += h.added
	h.file.removed += h.removed
	if h.missing != (sides{}) {
		if h.file.damage == "" {
			h.file.damage = h.lacks()
		}
		if p.shorts++; p.shorts == 1 {
			p.short = h
		}
	}
	p.onHunk(h)
}
