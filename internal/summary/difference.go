package summary

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
)

const (
	diffFiles = 4000 // files of a diff that are told apart; of more, those with most changes
	diffShown = 200  // of them listed
	diffHunks = 40   // hunk headers listed
)

// difference summarises a diff: git's, plain, of a merge, several in a row, cut off.
//
// Lines of a hunk are taken by the counts of its header, so that a removed line "-- x", shown as
// "--- x", is not a file's header. Records are hunks, numbered as content.Records does.
type difference struct {
	rows rows

	files    int64
	hunks    int64
	added    int64
	removed  int64
	commits  int64
	only     int64 // "Only in …" lines of diff -r
	list     []*changed
	left     int64 // files no longer in list
	now      *changed
	named    bool // now has its names from a "---" or "+++" line or a hunk: another one begins another file
	first    []*hunk
	most     []*hunk // once there are more than fit in first: those with most changes, least last
	hunk     *hunk   // open, also after its last line
	old      []int64 // lines of each parent that it still lacks
	new      int64
	expected struct{ old, new int64 }
}

// changed is one file of a diff.
type changed struct {
	from, to       string // without a/ and b/; "" where not named yet
	moved          bool   // renamed or copied
	note           []string
	added, removed int64
	hunks          int64
	hunk           int64 // number of the first
	order          int64
}

type hunk struct {
	number, line   int64 // of the line that is its header
	header         string
	file           *changed
	added, removed int64
}

func newDifference() *difference {
	d := &difference{}
	d.rows.visit = d.line
	return d
}

func (d *difference) write(p []byte) { d.rows.write(p) }

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

// extended reads git's lines between "diff --git" and the first hunk, and what diff says of files it does not compare.
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
	case strings.HasPrefix(text, "mode ") && strings.Contains(text, ".."): // of a merge
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
	case strings.HasPrefix(text, "Binary files ") && strings.HasSuffix(text, " differ"), strings.HasPrefix(text, "GIT binary patch"):
		if d.now == nil || d.named {
			d.begin()
			if names := strings.TrimSuffix(strings.TrimPrefix(text, "Binary files "), " differ"); names != text {
				_, d.now.to, _ = strings.Cut(names, " and ")
			}
		}
		d.tell("binary")
		// A plain diff -r says no more of it, and the next file may begin without a "diff" line.
		d.named = true
	case strings.HasPrefix(text, "Only in "):
		d.only++
		d.begin()
		place, name, _ := strings.Cut(text[len("Only in "):], ": ")
		d.now.to = strings.TrimSuffix(place, "/") + "/" + name
		d.tell("only on one side")
		d.named = true
	case strings.HasPrefix(text, "commit ") && isHash(text[7:]), strings.HasPrefix(text, "From ") && len(text) > 46 && isHash(text[5:45]):
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

// begin starts another file.
func (d *difference) begin() {
	if len(d.list) == 2*diffFiles {
		slices.SortStableFunc(d.list, byChanges)
		d.left += diffFiles
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
		d.now.note = append(d.now.note, content.Clip(note, nameRunes))
	}
}

func (d *difference) notes() int {
	if d.now == nil {
		return 0
	}
	return len(d.now.note)
}

// header takes "@@ -1,2 +3,4 @@ where", with one more @ and one more range for each further parent of a merge.
func (d *difference) header(line []byte) {
	at := 0
	for at < len(line) && line[at] == '@' {
		at++
	}
	if at < 2 || at > 64 {
		return
	}
	rest, ok := line[at:], false
	d.old = d.old[:0]
	d.expected.old, d.expected.new = 0, 0
	for range at - 1 {
		var n int64
		if n, rest, ok = hunkRange(rest, '-'); !ok {
			return
		}
		d.old = append(d.old, n)
		d.expected.old += n
	}
	if d.new, rest, ok = hunkRange(rest, '+'); !ok {
		return
	}
	if rest, ok = bytes.CutPrefix(rest, []byte{' '}); !ok || !bytes.HasPrefix(rest, line[:at]) {
		return
	}
	d.expected.new = d.new
	if d.now == nil {
		d.begin()
	}
	d.named = true
	if d.now.hunks == 0 {
		d.now.hunk = d.hunks
	}
	d.now.hunks++
	d.hunk = &hunk{number: d.hunks, line: d.rows.number, file: d.now, header: string(line[:min(len(line), 160)])}
	d.hunks++
}

// hunkRange takes " -1,2" (how many lines: 2) or " -1" (1).
func hunkRange(p []byte, sign byte) (n int64, rest []byte, ok bool) {
	if len(p) < 3 || p[0] != ' ' || p[1] != sign {
		return 0, p, false
	}
	if _, rest, ok = leadingDigits(p[2:]); !ok {
		return 0, p, false
	}
	if len(rest) > 0 && rest[0] == ',' {
		return leadingDigits(rest[1:])
	}
	return 1, rest, true
}

func leadingDigits(p []byte) (n int64, rest []byte, ok bool) {
	i := 0
	for i < len(p) && i < 18 && p[i]-'0' < 10 {
		n = n*10 + int64(p[i]-'0')
		i++
	}
	return n, p[i:], i > 0
}

// belongs counts a line of the open hunk; false where the hunk has ended before it.
func (d *difference) belongs(line []byte) bool {
	if len(line) > 0 && line[0] == '\\' { // "\ No newline at end of file"
		return true
	}
	if d.whole() {
		return false
	}
	if len(d.old) == 1 && len(line) > 0 { // all diffs but those of merges
		switch line[0] {
		case '+':
			d.new--
			d.hunk.added++
			return true
		case '-':
			d.old[0]--
			d.hunk.removed++
			return true
		case ' ':
			d.old[0]--
			d.new--
			return true
		case '\r':
		default:
			return false
		}
	}
	columns := line[:min(len(line), len(d.old))] // a blank line is a context line whose blank was trimmed on the way
	added, removed := false, false
	for _, c := range columns {
		switch c {
		case '-':
			removed = true
		case '+':
			added = true
		case ' ':
		case '\r':
			columns = columns[:0]
		default:
			return false
		}
	}
	for i := range d.old {
		if i >= len(columns) || columns[i] == '-' || columns[i] == ' ' && !removed {
			d.old[i]--
		}
	}
	if removed {
		d.hunk.removed++
		return true
	}
	d.new--
	if added {
		d.hunk.added++
	}
	return true
}

// whole says whether the open hunk has all its lines.
func (d *difference) whole() bool {
	if d.new > 0 {
		return false
	}
	for _, n := range d.old {
		if n > 0 {
			return false
		}
	}
	return true
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

func (d *difference) close(s *Summary) {
	d.rows.close()
	cut := ""
	if h := d.hunk; h != nil {
		if !d.whole() {
			cut = d.cutOff(h)
		}
		d.endHunk()
	}
	s.Records = d.hunks
	if d.commits > 0 {
		s.Total = append(s.Total, counted(d.commits, "commit", "commits"))
	}
	s.Total = append(s.Total, counted(d.files, "file", "files")+", "+counted(d.hunks, "hunk", "hunks")+", "+plusMinus(d.added, d.removed))
	if cut != "" {
		s.Says = append(s.Says, cut)
	}
	slices.SortStableFunc(d.list, byChanges)
	for _, f := range d.list[:min(len(d.list), diffShown)] {
		s.Says = append(s.Says, f.stat())
	}
	if rest := d.files - int64(min(len(d.list), diffShown)); rest > 0 {
		s.Says = append(s.Says, "… and "+counted(rest, "file", "files")+" with fewer changes")
	}
	hunks := d.first
	if d.hunks > diffHunks {
		hunks = d.most
		s.Body = append(s.Body, "largest hunks first:")
	}
	for _, h := range hunks {
		whole, short := h.text(d.files > 1)
		s.Body = append(s.Body, whole)
		s.Quotes = append(s.Quotes, Quote{h.line, whole, short})
	}
}

// cutOff says of the last hunk what it lacks.
func (d *difference) cutOff(h *hunk) string {
	old := int64(0)
	for _, n := range d.old {
		old += max(n, 0)
	}
	return "breaks off inside hunk " + number(h.number) + " of " + content.Clip(h.file.name(), nameRunes) +
		": " + number(old) + " of " + number(d.expected.old) + " old and " +
		number(max(d.new, 0)) + " of " + number(d.expected.new) + " new lines are missing"
}

func plusMinus(added, removed int64) string {
	return "+" + number(added) + " −" + number(removed)
}

func (f *changed) name() string {
	if f.to == "" || f.to == "/dev/null" {
		return f.from
	}
	return f.to
}

// stat is a line like that of diff --stat: "src/a.go +12 −3 (hunks 4-6)".
func (f *changed) stat() string {
	var b strings.Builder
	if f.moved {
		b.WriteString(content.Clip(f.from, nameRunes) + " → ")
	}
	b.WriteString(content.Clip(f.name(), nameRunes))
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
		b.WriteString(" (hunk " + number(f.hunk) + ")")
	case f.hunks > 1:
		b.WriteString(" (hunks " + span(f.hunk, f.hunk+f.hunks-1) + ")")
	}
	return b.String()
}

// text is "3: src/a.go @@ -10,6 +12,9 @@ func x (+3 −0)"; short is the same where the header's line itself is shown.
func (h *hunk) text(file bool) (whole, short string) {
	name := number(h.number) + ":"
	if file {
		name += " " + content.Clip(h.file.name(), nameRunes)
	}
	lines := " (" + plusMinus(h.added, h.removed) + ")"
	return name + " " + content.Clip(strings.ToValidUTF8(h.header, ""), lineRunes) + lines, name + " @@ shown below" + lines
}
