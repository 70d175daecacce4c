// Package diff summarises diffs: files, hunks, lines added and removed.
//
// The package trusts the line counts in hunk headers. It does not apply a diff or check that a diff applies.
package diff

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/internal/kind/digest"
)

const (
	diffFiles = 4000 // maximum number of files sorted; of more files, those with the most changed lines remain
	diffShown = 200  // maximum number of files listed
	diffHunks = 40   // maximum number of hunk headers listed
)

// difference summarises a unified diff from git or from plain diff. The text may describe a merge, contain several
// diffs, or be truncated. The counts in a hunk header decide which lines belong to the hunk: a removed line "-- x",
// which the diff shows as "--- x", is not mistaken for a file header. Each hunk is a record, numbered from 0.
type difference struct {
	rows digest.LineSplitter

	files   int64
	hunks   int64
	added   int64
	removed int64
	commits int64
	list    []*changed
	now     *changed
	// named is true if the current file has had a "---" or "+++" line or a hunk: the next "---" line begins another
	// file.
	named bool
	first []*hunk // the first diffHunks hunks
	// most holds the diffHunks hunks with the most changed lines, largest first. The summary lists them instead of
	// first if the diff has more than diffHunks hunks.
	most     []*hunk
	hunk     *hunk // the current hunk; nil outside hunks
	lines    content.HunkLines
	expected struct{ old, new int64 }
}

// changed describes one file of a diff.
type changed struct {
	from, to       string // names without a/ and b/; "" if unknown
	moved          bool   // the diff renames or copies the file
	note           []string
	added, removed int64
	hunks          int64
	hunk           int64 // number of the first hunk, from 0; -1 if there is none
	order          int64
}

type hunk struct {
	number, line   int64 // number of the hunk, from 0; line number of its header, from 1
	header         string
	file           *changed
	added, removed int64
}

func New() *difference {
	d := &difference{}
	d.rows.Visit = d.line
	return d
}

func (d *difference) Add(p []byte) { d.rows.Write(p) }

func (d *difference) line(line []byte, size int64) {
	if d.hunk != nil {
		if d.belongs(line) {
			return
		}
		d.endHunk()
	}
	if len(line) == 0 {
		return
	}
	switch line[0] {
	case '@':
		d.header(line)
	case 'd':
		switch {
		case bytes.HasPrefix(line, []byte("diff --git ")):
			d.begin()
			d.now.from, d.now.to = gitNames(string(line[len("diff --git "):]))
		case bytes.HasPrefix(line, []byte("diff --cc ")):
			d.begin()
			d.now.to = unquoteName(string(line[len("diff --cc "):]))
		case bytes.HasPrefix(line, []byte("diff --combined ")):
			d.begin()
			d.now.to = unquoteName(string(line[len("diff --combined "):]))
		case bytes.HasPrefix(line, []byte("diff ")):
			d.begin()
			words := strings.Fields(string(line))
			d.now.to = words[len(words)-1]
		case bytes.HasPrefix(line, []byte("deleted file mode ")):
			d.tell("deleted")
		}
	case 'I':
		if bytes.HasPrefix(line, []byte("Index: ")) {
			d.begin()
			d.now.to = string(line[len("Index: "):])
		}
	case '-':
		if bytes.HasPrefix(line, []byte("--- ")) {
			if d.now == nil || d.named {
				d.begin()
			}
			d.now.from = headerName(line[4:], d.now.from)
			d.named = true
		}
	case '+':
		if bytes.HasPrefix(line, []byte("+++ ")) && d.now != nil {
			d.now.to = headerName(line[4:], d.now.to)
			d.named = true
		}
	default:
		d.extended(line)
	}
}

// extended reads a line outside hunks: one of git's extended headers between "diff --git" and the first hunk, a
// commit header, or a line that diff prints for a file that it does not compare.
func (d *difference) extended(line []byte) {
	text := string(line[:min(len(line), 1024)])
	switch {
	case strings.HasPrefix(text, "new file mode "):
		d.tell("new")
	case strings.HasPrefix(text, "old mode "):
		d.tell("mode " + text[len("old mode "):])
	case strings.HasPrefix(text, "new mode "):
		if n := d.notes(); n > 0 && strings.HasPrefix(d.now.note[n-1], "mode ") {
			d.now.note[n-1] += " → " + text[len("new mode "):]
		}
	case strings.HasPrefix(text, "mode ") && strings.Contains(text, ".."): // mode change in a merge
		d.tell(text)
	case strings.HasPrefix(text, "similarity index "):
		d.tell(text[len("similarity index "):] + " the same")
	case strings.HasPrefix(text, "rename from "), strings.HasPrefix(text, "copy from "):
		if d.now != nil {
			_, name, _ := strings.Cut(text, " from ")
			d.now.from = unquoteName(name)
		}
	case strings.HasPrefix(text, "rename to "), strings.HasPrefix(text, "copy to "):
		if d.now != nil {
			verb, name, _ := strings.Cut(text, " to ")
			d.now.to = unquoteName(name)
			d.now.moved = true
			if verb == "copy" {
				d.tell("copied")
			}
		}
	case strings.HasPrefix(text, "Binary files ") &&
		strings.HasSuffix(text, " differ"), strings.HasPrefix(text, "GIT binary patch"):
		if d.now == nil || d.named {
			d.begin()
			if names := strings.TrimSuffix(strings.TrimPrefix(text, "Binary files "), " differ"); names != text {
				_, d.now.to, _ = strings.Cut(names, " and ")
			}
		}
		d.tell("binary")
		// Plain diff -r prints no other line for this file, and the next file may begin without a "diff" line.
		d.named = true
	case strings.HasPrefix(text, "Only in "):
		d.begin()
		place, name, _ := strings.Cut(text[len("Only in "):], ": ")
		d.now.to = strings.TrimSuffix(place, "/") + "/" + name
		d.tell("only on one side")
		d.named = true
	case strings.HasPrefix(text, "commit ") && isHash(text[7:]), strings.HasPrefix(text, "From ") && len(text) > 46 &&
		isHash(text[5:45]):
		d.commits++
		d.now = nil
	}
}

func isHash(s string) bool {
	s, _, _ = strings.Cut(s, " ")
	if len(s) != 40 && len(s) != 64 {
		return false
	}
	return strings.Trim(s, "0123456789abcdef") == ""
}

// begin starts the next file. If the list of files is full, the half with fewer changed lines is dropped.
func (d *difference) begin() {
	if len(d.list) == 2*diffFiles {
		slices.SortStableFunc(d.list, byChanges)
		d.list = append(make([]*changed, 0, 2*diffFiles), d.list[:diffFiles]...)
	}
	d.now = &changed{order: d.files, hunk: -1}
	d.named = false
	d.files++
	d.list = append(d.list, d.now)
}

func byChanges(a, b *changed) int {
	return cmp.Or(cmp.Compare(b.added+b.removed, a.added+a.removed), cmp.Compare(a.order, b.order))
}

func (d *difference) tell(note string) {
	if d.now != nil && len(d.now.note) < 4 {
		d.now.note = append(d.now.note, content.Clip(note, digest.NameRunes))
	}
}

func (d *difference) notes() int {
	if d.now == nil {
		return 0
	}
	return len(d.now.note)
}

// header reads a hunk header, "@@ -1,2 +3,4 @@ text". In the diff of a merge, the header has one more @ and one more
// old range for each parent after the first.
func (d *difference) header(line []byte) {
	if !d.lines.Header(line) {
		return
	}
	d.expected.old, d.expected.new = 0, d.lines.New
	for _, n := range d.lines.Old {
		d.expected.old += n
	}
	if d.now == nil {
		d.begin()
	}
	d.named = true
	if d.now.hunks == 0 {
		d.now.hunk = d.hunks
	}
	d.now.hunks++
	d.hunk = &hunk{number: d.hunks, line: d.rows.Number, file: d.now, header: string(line[:min(len(line), 160)])}
	d.hunks++
}

// belongs reports whether a line is part of the current hunk, and counts the line if it is added or removed.
func (d *difference) belongs(line []byte) bool {
	belongs, added, removed := d.lines.Take(line)
	if added {
		d.hunk.added++
	}
	if removed {
		d.hunk.removed++
	}
	return belongs
}

func (d *difference) endHunk() {
	h := d.hunk
	d.hunk = nil
	h.file.added += h.added
	h.file.removed += h.removed
	d.added += h.added
	d.removed += h.removed
	if len(d.first) < diffHunks {
		d.first = append(d.first, h)
	}
	if len(d.most) == diffHunks && !moreChanges(h, d.most[diffHunks-1]) {
		return
	}
	i, _ := slices.BinarySearchFunc(d.most, h, func(x, h *hunk) int {
		if moreChanges(h, x) {
			return 1
		}
		return -1
	})
	d.most = slices.Insert(d.most, i, h)
	d.most = d.most[:min(len(d.most), diffHunks)]
}

func moreChanges(a, b *hunk) bool { return a.added+a.removed > b.added+b.removed }

func (d *difference) Finish(s *digest.Summary) {
	d.rows.Close()
	cut := ""
	if h := d.hunk; h != nil {
		if !d.lines.Whole() {
			cut = d.cutOff(h)
		}
		d.endHunk()
	}
	s.Records = d.hunks
	if d.commits > 0 {
		s.Total = append(s.Total, content.Plural(d.commits, "commit", "commits"))
	}
	s.Total = append(
		s.Total,
		content.Plural(
			d.files, "file", "files",
		)+", "+content.Plural(d.hunks, "hunk", "hunks")+", "+plusMinus(d.added, d.removed),
	)
	if cut != "" {
		s.Says = append(s.Says, cut)
	}
	slices.SortStableFunc(d.list, byChanges)
	for _, f := range d.list[:min(len(d.list), diffShown)] {
		s.Says = append(s.Says, f.stat())
	}
	if rest := d.files - int64(min(len(d.list), diffShown)); rest > 0 {
		s.Says = append(s.Says, "… and "+content.Plural(rest, "file", "files")+" with fewer changes")
	}
	hunks := d.first
	if d.hunks > diffHunks {
		hunks = d.most
		s.Body = append(s.Body, "largest hunks first:")
	}
	for _, h := range hunks {
		whole, short := h.text(d.files > 1)
		s.Body = append(s.Body, whole)
		s.Quotes = append(s.Quotes, digest.Quote{Line: h.line, Whole: whole, Short: short})
	}
}

// cutOff reports how many lines are missing from the last hunk, which is truncated.
func (d *difference) cutOff(h *hunk) string {
	old := int64(0)
	for _, n := range d.lines.Old {
		old += max(n, 0)
	}
	return "breaks off inside hunk " + digest.Number(h.number) + " of " + content.Clip(h.file.name(), digest.NameRunes) +
		": " + digest.Number(old) + " of " + digest.Number(d.expected.old) + " old and " +
		digest.Number(max(d.lines.New, 0)) + " of " + digest.Number(d.expected.new) + " new lines are missing"
}

func plusMinus(added, removed int64) string {
	return "+" + digest.Number(added) + " −" + digest.Number(removed)
}

func (f *changed) name() string {
	if f.to == "" || f.to == "/dev/null" {
		return f.from
	}
	return f.to
}

// stat returns a line like one of "git diff --stat": "src/a.go +12 −3 (hunks 4-6)".
func (f *changed) stat() string {
	var b strings.Builder
	if f.moved {
		b.WriteString(content.Clip(f.from, digest.NameRunes) + " → ")
	}
	b.WriteString(content.Clip(f.name(), digest.NameRunes))
	if f.hunks > 0 || len(f.note) == 0 {
		b.WriteString(" " + plusMinus(f.added, f.removed))
	}
	for i, note := range f.note {
		if i == 0 {
			b.WriteString(" ")
		} else {
			b.WriteString(", ")
		}
		b.WriteString(note)
	}
	switch {
	case f.hunks == 1:
		b.WriteString(" (hunk " + digest.Number(f.hunk) + ")")
	case f.hunks > 1:
		b.WriteString(" (hunks " + digest.Span(f.hunk, f.hunk+f.hunks-1) + ")")
	}
	return b.String()
}

// text returns the line that lists the hunk, "3: src/a.go @@ -10,6 +12,9 @@ func x (+3 −0)". The receipt prints
// short instead of whole if it shows the header line elsewhere. file adds the name of the file.
func (h *hunk) text(file bool) (whole, short string) {
	name := digest.Number(h.number) + ":"
	if file {
		name += " " + content.Clip(h.file.name(), digest.NameRunes)
	}
	lines := " (" + plusMinus(h.added, h.removed) + ")"
	return name + " " + content.Clip(
		strings.ToValidUTF8(h.header, ""), digest.LineRunes,
	) + lines, name + " @@ shown below" + lines
}
