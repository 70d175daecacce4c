package diff

import (
	"bytes"
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

	files, hunks, commits int64
}

// changed describes one file of a diff.
type changed struct {
	from, to       string // names without a/ and b/; "" if unknown
	moved          bool   // the diff renames or copies the file
	state          string // "added", "deleted" or "" for a file that is on both sides
	binary         bool   // the diff says only that the files differ
	oneSide        bool   // diff -r says that the file is on one side, not on which
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

// line reads the line with a number, from 1.
func (p *parser) line(line []byte, number int64) {
	if p.hunk != nil {
		if p.belongs(line) {
			return
		}
		p.endHunk()
	}
	if len(line) == 0 {
		return
	}
	switch line[0] {
	case '@':
		p.header(line, number)
	case 'd':
		switch {
		case bytes.HasPrefix(line, []byte("diff --git ")):
			p.begin()
			p.now.from, p.now.to = gitNames(string(line[len("diff --git "):]))
		case bytes.HasPrefix(line, []byte("diff --cc ")):
			p.begin()
			p.now.to = unquoteName(string(line[len("diff --cc "):]))
		case bytes.HasPrefix(line, []byte("diff --combined ")):
			p.begin()
			p.now.to = unquoteName(string(line[len("diff --combined "):]))
		case bytes.HasPrefix(line, []byte("diff ")):
			p.begin()
			words := strings.Fields(string(line))
			p.now.to = words[len(words)-1]
		case bytes.HasPrefix(line, []byte("deleted file mode ")):
			p.note("deleted")
			p.set("deleted")
		}
	case 'I':
		if bytes.HasPrefix(line, []byte("Index: ")) {
			p.begin()
			p.now.to = string(line[len("Index: "):])
		}
	case '-':
		if bytes.HasPrefix(line, []byte("--- ")) {
			if p.now == nil || p.named {
				p.begin()
			}
			p.now.from = headerName(line[4:], p.now.from)
			p.named = true
			if isNull(line[4:]) {
				p.set("added")
			}
		}
	case '+':
		if bytes.HasPrefix(line, []byte("+++ ")) && p.now != nil {
			p.now.to = headerName(line[4:], p.now.to)
			p.named = true
			if isNull(line[4:]) {
				p.set("deleted")
			}
		}
	default:
		p.extended(line)
	}
}

// extended reads a line outside hunks: one of git's extended headers between "diff --git" and the first hunk, a
// commit header, or a line that diff prints for a file that it does not compare.
func (p *parser) extended(line []byte) {
	text := string(line[:min(len(line), 1024)])
	switch {
	case strings.HasPrefix(text, "new file mode "):
		p.note("new")
		p.set("added")
	case strings.HasPrefix(text, "old mode "):
		p.note("mode " + text[len("old mode "):])
	case strings.HasPrefix(text, "new mode "):
		if n := p.notes(); n > 0 && strings.HasPrefix(p.now.note[n-1], "mode ") {
			p.now.note[n-1] += " → " + text[len("new mode "):]
		}
	case strings.HasPrefix(text, "mode ") && strings.Contains(text, ".."): // mode change in a merge
		p.note(text)
	case strings.HasPrefix(text, "similarity index "):
		p.note(text[len("similarity index "):] + " the same")
	case strings.HasPrefix(text, "rename from "), strings.HasPrefix(text, "copy from "):
		if p.now != nil {
			_, name, _ := strings.Cut(text, " from ")
			p.now.from = unquoteName(name)
		}
	case strings.HasPrefix(text, "rename to "), strings.HasPrefix(text, "copy to "):
		if p.now != nil {
			verb, name, _ := strings.Cut(text, " to ")
			p.now.to = unquoteName(name)
			p.now.moved = true
			if verb == "copy" {
				p.note("copied")
				p.set("added")
			}
		}
	case strings.HasPrefix(text, "Binary files ") &&
		strings.HasSuffix(text, " differ"), strings.HasPrefix(text, "GIT binary patch"):
		if p.now == nil || p.named {
			p.begin()
			if names := strings.TrimSuffix(strings.TrimPrefix(text, "Binary files "), " differ"); names != text {
				_, p.now.to, _ = strings.Cut(names, " and ")
			}
		}
		p.note("binary")
		p.now.binary = true
		// Plain diff -r prints no other line for this file, and the next file may begin without a "diff" line.
		p.named = true
	case strings.HasPrefix(text, "Only in "):
		p.begin()
		place, name, _ := strings.Cut(text[len("Only in "):], ": ")
		p.now.to = strings.TrimSuffix(place, "/") + "/" + name
		p.note("only on one side")
		p.now.oneSide = true
		p.named = true
	case strings.HasPrefix(text, "commit ") && isHash(text[7:]), strings.HasPrefix(text, "From ") && len(text) > 46 &&
		isHash(text[5:45]):
		p.commits++
		p.now = nil
	}
}

func isHash(s string) bool {
	s, _, _ = strings.Cut(s, " ")
	if len(s) != 40 && len(s) != 64 {
		return false
	}
	return strings.Trim(s, "0123456789abcdef") == ""
}

// begin starts the next file.
func (p *parser) begin() {
	p.now = &changed{order: p.files}
	p.named = false
	p.files++
	p.onFile(p.now)
}

// set sets the state of the current file.
func (p *parser) set(state string) {
	if p.now != nil {
		p.now.state = state
	}
}

// note adds what the receipt says of the current file, at most four times.
func (p *parser) note(note string) {
	if p.now != nil && len(p.now.note) < 4 {
		p.now.note = append(p.now.note, content.Clip(note, digest.NameRunes))
	}
}

func (p *parser) notes() int {
	if p.now == nil {
		return 0
	}
	return len(p.now.note)
}

// header reads a hunk header, "@@ -1,2 +3,4 @@ text". In the diff of a merge, the header has one more @ and one more
// old range for each parent after the first.
func (p *parser) header(line []byte, number int64) {
	if !p.lines.Header(line) {
		return
	}
	if p.now == nil {
		p.begin()
	}
	p.named = true
	p.now.hunks++
	p.hunk = &hunk{
		number: p.now.hunks - 1, line: number, file: p.now, header: string(line[:min(len(line), 160)]),
		says: sidesOf(p.lines),
	}
	p.hunks++
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
	p.onHunk(h)
}
