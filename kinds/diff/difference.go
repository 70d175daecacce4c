// Package diff summarises diffs: files, hunks, lines added and removed.
//
// The package trusts the line counts in hunk headers.
package diff

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

const (
	diffFiles = 4000 // maximum number of files sorted; of more files, those with the most changed lines remain
	diffShown = 200  // maximum number of files listed
	diffHunks = 40   // maximum number of hunk headers listed
)

// difference summarises a unified diff from git or from plain diff. The text may describe a merge, contain several
// diffs, or be truncated. Each file is a record, numbered from 0, as in [Files].
type difference struct {
	rows    digest.LineSplitter
	closing bool // the next line is the last and has no newline
	read    parser
	added   int64
	removed int64
	list    []*changed
	first   []*hunk // the first diffHunks hunks
	// most holds the diffHunks hunks with the most changed lines, largest first. The summary lists them instead of
	// first if the diff has more than diffHunks hunks.
	most []*hunk
}

// New returns the summarizer of diffs.
func New() *difference {
	d := &difference{}
	d.read.onFile, d.read.onHunk = d.addFile, d.addHunk
	d.rows.Visit = func(line []byte, _ int64) { d.read.line(line, d.rows.Number, d.closing) }
	return d
}

func (d *difference) Add(p []byte) { d.rows.Write(p) }

// addFile adds a file to the list. If the list is full, the half with fewer changed lines is dropped.
func (d *difference) addFile(f *changed) {
	if len(d.list) == 2*diffFiles {
		slices.SortStableFunc(d.list, byChanges)
		d.list = append(make([]*changed, 0, 2*diffFiles), d.list[:diffFiles]...)
	}
	d.list = append(d.list, f)
}

func byChanges(a, b *changed) int {
	return cmp.Or(cmp.Compare(b.added+b.removed, a.added+a.removed), cmp.Compare(a.order, b.order))
}

func (d *difference) addHunk(h *hunk) {
	d.added += h.added
	d.removed += h.removed
	if len(d.first) < diffHunks {
		d.first = append(d.first, h)
	}
	if len(d.most) == diffHunks && !moreChanges(h, d.most[diffHunks-1]) {
		return
	}
	i := sort.Search(len(d.most), func(i int) bool { return moreChanges(h, d.most[i]) })
	d.most = slices.Insert(d.most, i, h)
	d.most = d.most[:min(len(d.most), diffHunks)]
}

func moreChanges(a, b *hunk) bool { return a.added+a.removed > b.added+b.removed }

func (d *difference) Finish(s *digest.Summary) {
	d.closing = true
	d.rows.Close()
	d.read.finish()
	s.Records = d.read.files
	if d.read.commits > 0 {
		s.Total = append(s.Total, content.Plural(d.read.commits, "commit", "commits"))
	}
	s.Total = append(s.Total, content.Plural(d.read.files, "file", "files")+", "+
		content.Plural(d.read.hunks, "hunk", "hunks")+", "+plusMinus(d.added, d.removed))
	s.Damage = d.read.damage()
	s.Says = append(s.Says, s.Damage...)
	slices.SortStableFunc(d.list, byChanges)
	if line := d.extremes(); line != "" {
		s.Says = append(s.Says, line)
	}
	s.Listed = digest.List{Title: "largest files (added + deleted)", From: len(s.Says), Total: d.read.files}
	for _, f := range d.list[:min(len(d.list), diffShown)] {
		s.Says = append(s.Says, f.stat())
	}
	hunks := d.first
	if d.read.hunks > diffHunks {
		hunks = d.most
		s.Body = append(s.Body, "largest hunks first:")
	}
	for _, h := range hunks {
		whole, short := h.text(d.read.files > 1)
		s.Body = append(s.Body, whole)
		s.Quotes = append(s.Quotes, digest.Quote{Line: h.line, Whole: whole, Short: short})
	}
}

// lacks returns the name of the hunk and the number of its lines that are missing.
func (h *hunk) lacks() string {
	return "hunk " + digest.Number(h.number) + " of " + content.Clip(h.file.name(), digest.NameRunes) +
		": " + digest.Number(h.missing.old) + " of " + digest.Number(h.says.old) + " old and " +
		digest.Number(h.missing.new) + " of " + digest.Number(h.says.new) + " new lines are missing"
}

func plusMinus(added, removed int64) string {
	return "+" + digest.Number(added) + " −" + digest.Number(removed)
}

func (f *changed) name() string {
	if f.to == "" || f.to == null {
		return f.from
	}
	return f.to
}

// extremes names the files with most added and with most deleted lines, unless these are one file. The list that
// follows is sorted by the sum.
func (d *difference) extremes() string {
	if d.read.files < 2 {
		return ""
	}
	most, least := d.list[0], d.list[0]
	for _, f := range d.list {
		if f.added > most.added {
			most = f
		}
		if f.removed > least.removed {
			least = f
		}
	}
	if most == least {
		return ""
	}
	return "most added: " + content.Clip(most.name(), digest.NameRunes) + " +" + digest.Number(most.added) +
		"; most deleted: " + content.Clip(least.name(), digest.NameRunes) + " −" + digest.Number(least.removed)
}

// stat returns a line like that of diff --stat, with the number of the file's record: "4: src/a.go +12 −3 (3 hunks)".
func (f *changed) stat() string {
	var b strings.Builder
	b.WriteString(digest.Number(f.order) + ": ")
	if f.moved {
		b.WriteString(content.Clip(f.from, digest.NameRunes) + " → ")
	}
	b.WriteString(content.Clip(f.name(), digest.NameRunes))
	if f.hunks > 0 || len(f.note) == 0 {
		b.WriteString(" " + plusMinus(f.added, f.removed))
	}
	if len(f.note) > 0 {
		b.WriteString(" " + strings.Join(f.note, ", "))
	}
	if f.hunks > 1 {
		b.WriteString(" (" + content.Plural(f.hunks, "hunk", "hunks") + ")")
	}
	return b.String()
}

// text returns the hunk as listed, with the pointer that slice takes: "/3/hunks/0: src/a.go @@ -10,6 +12,9 @@ (+3 −0)".
// The receipt prints short instead if it shows the header line elsewhere.
func (h *hunk) text(file bool) (whole, short string) {
	name := "/" + digest.Number(h.file.order) + "/hunks/" + digest.Number(h.number) + ":"
	if file {
		name += " " + content.Clip(h.file.name(), digest.NameRunes)
	}
	lines := " (" + plusMinus(h.added, h.removed) + ")"
	header := content.Clip(strings.ToValidUTF8(h.header, ""), digest.LineRunes)
	return name + " " + header + lines, name + " @@ shown below" + lines
}
