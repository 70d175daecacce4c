package fs

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/kinds/record"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// Limits of the entries that are held for sorting, and of the bytes of their names. Entries past them in sort order are
// counted but not listed. With the spare fourth that is held between two sorts, the entries take 15 MB with names of
// usual length.
const (
	maxSorted      = 100_000
	maxSortedNames = 16 << 20
)

// At most maxLargeSorts calls at once may sort more than maxSortedFreely entries or maxNamesFreely bytes of names;
// further calls wait. This bounds the memory of the process, however many calls run.
const (
	maxSortedFreely = 10_000
	maxNamesFreely  = 512 << 10
	maxLargeSorts   = 4
)

// largeSorts is the semaphore of large sorts.
var largeSorts = make(chan struct{}, maxLargeSorts)

// entryWriter writes entries in the form that show selects. writeEntry is called in path order, finish once at the end.
type entryWriter interface {
	streams() bool // reports whether entries are written at once, in path order
	writeEntry(foundEntry) error
	finish() error
}

func (f *finder) newWriter(ctx context.Context, locations []source.Location) entryWriter {
	var write entryWriter = &recordWriter{f: f, ctx: ctx}
	switch {
	case f.Show == "tree":
		return &treeWriter{f: f, top: topDirName(locations)}
	case f.Show == "count":
		return &extensionCounter{f: f, by: map[string]*extensionTotal{}}
	case f.Show == "kinds":
		return &kindWriter{f: f, ctx: ctx, groups: map[string]*kindGroup{}}
	case f.page != nil:
		write = &observationWriter{f}
	case f.Show == "stat":
		f.stats = &statWriter{f: f, ctx: ctx}
		write = f.stats
	}
	if f.Sort == "modified" || f.Sort == "size" {
		return &sortedWriter{f: f, ctx: ctx, to: write, most: int(min(cmp.Or(f.Limit, maxSorted), maxSorted))}
	}
	return write
}

// recordWriter writes one NDJSON record an entry.
type recordWriter struct {
	f   *finder
	ctx context.Context
	buf []byte
}

func (r *recordWriter) streams() bool { return true }
func (r *recordWriter) finish() error { return nil }

func (r *recordWriter) writeEntry(e foundEntry) error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	r.buf = append(appendRecord(r.buf[:0], &e), "}\n"...)
	// Write each record at once: after a timeout the records so far are part of the result.
	if err := r.f.write(r.buf); err != nil {
		return err
	}
	*r.f.shown.counter(e.Type)++
	return nil
}

// appendRecord appends the record of an entry without its closing brace.
func appendRecord(b []byte, e *foundEntry) []byte {
	b = appendString(append(b, `{"path":`...), e.Path)
	b = appendString(append(b, `,"type":`...), string(e.Type))
	b = strconv.AppendInt(append(b, `,"size":`...), e.Size, 10)
	return appendTime(append(b, `,"modified":"`...), e.Modified)
}

// appendTime appends a time and the closing quote. It avoids fmt, which would take half of the time of a record.
func appendTime(b []byte, t time.Time) []byte {
	return append(t.UTC().AppendFormat(b, time.RFC3339), '"')
}

// appendString appends a JSON string. JSON cannot hold invalid UTF-8: such bytes are escaped as \xNN, a form that every
// tool accepts as a name.
func appendString(b []byte, s string) []byte {
	if !utf8.ValidString(s) {
		s = content.Visible(s, false)
	}
	return record.Quote(b, s)
}

// sortedWriter holds the first entries in order of size or time and writes them at the end.
type sortedWriter struct {
	f       *finder
	ctx     context.Context
	to      entryWriter
	most    int // entries that are shown
	held    []foundEntry
	names   int  // bytes of the paths held
	hasSlot bool // a slot of largeSorts is held
}

func (s *sortedWriter) streams() bool { return false }

// compare orders entries by newest or largest first, then by path.
func (s *sortedWriter) compare(a, b foundEntry) int {
	n := 0
	if s.f.Sort == "size" {
		n = cmp.Compare(b.Size, a.Size)
	} else {
		n = b.Modified.Compare(a.Modified)
	}
	if n == 0 {
		n = strings.Compare(a.Path, b.Path)
	}
	return n
}

func (s *sortedWriter) writeEntry(e foundEntry) error {
	if !s.hasSlot && (len(s.held) == maxSortedFreely || s.names > maxNamesFreely) {
		if err := s.acquireSlot(); err != nil {
			return err
		}
	}
	s.held = append(s.held, e)
	s.names += len(e.Path)
	if len(s.held) > s.most+s.most/4 || s.names > maxSortedNames+maxSortedNames/4 {
		s.sort()
	}
	return nil
}

// sort sorts the entries, and drops those past the limits.
func (s *sortedWriter) sort() {
	slices.SortFunc(s.held, s.compare)
	keep, names := 0, 0
	for keep < len(s.held) && keep < s.most && names+len(s.held[keep].Path) <= maxSortedNames {
		names += len(s.held[keep].Path)
		keep++
	}
	clear(s.held[keep:]) // frees their names
	s.held, s.names = s.held[:keep], names
}

// acquireSlot waits for a slot in largeSorts and allocates the full capacity at once: growing in steps would take
// twice the memory.
func (s *sortedWriter) acquireSlot() error {
	select {
	case largeSorts <- struct{}{}:
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
	s.hasSlot = true
	s.held = slices.Grow(s.held, max(s.most+s.most/4+1-len(s.held), 0))
	return nil
}

// release drops the entries and gives back the slot.
func (s *sortedWriter) release() {
	if s.held = nil; s.hasSlot {
		s.hasSlot = false
		<-largeSorts
	}
}

func (s *sortedWriter) finish() error {
	s.sort()
	walked, held := s.f.report.Files, int64(len(s.held))
	for i, e := range s.held {
		if err := s.to.writeEntry(e); err != nil { // reads the file for show=stat
			return err
		}
		s.f.out.Progress(walked+int64(i)+1, walked+held, "files walked and shown in order")
	}
	return s.to.finish()
}

// treeWriter writes the tree as indented text: directories end in "/", links in "@".
type treeWriter struct {
	f       *finder
	top     string
	dir     string   // "a/b/" of the entry written last
	path    []string // its parts
	started bool
	buf     []byte
}

// topDirName returns the name of the listed directory if there is exactly one, else "". A place without directories
// has "".
func topDirName(locations []source.Location) string {
	if len(locations) != 1 || !locations[0].IsDir {
		return ""
	}
	name := locations[0].Name()
	if strings.HasSuffix(name, ":") {
		return ""
	}
	return strings.TrimSuffix(name, "/.")
}

func (d *treeWriter) streams() bool { return true }

func (d *treeWriter) writeEntry(e foundEntry) error {
	name := strings.TrimPrefix(e.Path, "./")
	if !d.started {
		d.started = true
		if d.top != "" {
			if err := d.writeName(0, d.top, "/"); err != nil {
				return err
			}
		}
	}
	if d.top != "" && d.top != "." {
		name = strings.TrimPrefix(name, d.top+"/")
	}
	margin := 0
	if d.top != "" {
		margin = 1
	}
	last := strings.LastIndexByte(name, '/') + 1
	if d.path == nil || name[:last] != d.dir { // most entries are in the same directory as the one before
		if err := d.writeDirs(margin, name); err != nil {
			return err
		}
		d.dir = name[:last]
	}
	if err := d.writeName(margin+len(d.path)-1, name[last:], typeMarks[e.Type]); err != nil {
		return err
	}
	*d.f.shown.counter(e.Type)++
	d.path[len(d.path)-1] = name[last:]
	return nil
}

// typeMarks are the suffixes of names that are not files.
var typeMarks = map[tree.Type]string{tree.Dir: "/", tree.Link: "@", tree.Other: "|"}

// writeDirs writes the parent directories of a name that the previous entry did not share.
func (d *treeWriter) writeDirs(margin int, name string) error {
	parts := strings.Split(name, "/")
	same := 0
	for same < len(parts)-1 && same < len(d.path) && parts[same] == d.path[same] {
		same++
	}
	d.path = parts
	for i := same; i < len(parts)-1; i++ {
		if err := d.writeName(margin+i, parts[i], "/"); err != nil {
			return err
		}
	}
	return nil
}

// writeName writes one indented name; control characters such as newlines are escaped.
func (d *treeWriter) writeName(depth int, name, mark string) error {
	b := d.buf[:0]
	for range 2 * depth {
		b = append(b, ' ')
	}
	b = append(append(append(b, content.VisibleLine(name)...), mark...), '\n')
	d.buf = b
	return d.f.write(b)
}

func (d *treeWriter) finish() error {
	if !d.started {
		return nil
	}
	_, err := fmt.Fprintf(d.f.out, "%s, %s\n", content.Plural(*d.f.shown.counter(tree.Dir), "directory", "directories"),
		content.Plural(d.f.listed()-*d.f.shown.counter(tree.Dir), "file", "files"))
	return err
}

// maxExtensions is the maximum number of extensions counted separately; file names may have any text as extension.
const maxExtensions = 10_000

// extensionCounter counts files and bytes per extension. The last record is the total, whose name has no dot.
type extensionCounter struct {
	f  *finder
	by map[string]*extensionTotal
}

type extensionTotal struct {
	name        string
	files, size int64
}

func (t *extensionCounter) streams() bool { return false }

func (t *extensionCounter) writeEntry(e foundEntry) error {
	*t.f.shown.counter(e.Type)++
	if e.Type == tree.Dir {
		return nil
	}
	name := path.Ext(path.Base(e.Path))
	if e.observation != nil {
		name = path.Ext(e.observation.File)
	}
	if name == "" || name == "." || name == path.Base(e.Path) {
		name = "(none)"
	}
	x := t.by[name]
	if x == nil {
		if len(t.by) >= maxExtensions {
			name = "(others)"
		}
		if x = t.by[name]; x == nil {
			x = &extensionTotal{name: name}
			t.by[name] = x
		}
	}
	x.files++
	x.size += e.Size
	return nil
}

func (t *extensionCounter) finish() error {
	total := extensionTotal{name: "total"}
	all := make([]*extensionTotal, 0, len(t.by)+1)
	for _, x := range t.by {
		all = append(all, x)
		total.files += x.files
		total.size += x.size
	}
	slices.SortFunc(all, func(a, b *extensionTotal) int {
		return cmp.Or(cmp.Compare(b.files, a.files), strings.Compare(a.name, b.name))
	})
	rest := int64(0)
	if n := t.f.Limit; n > 0 && int64(len(all)) > n {
		rest = int64(len(all)) - n
		all = all[:n]
	}
	if total.files == 0 {
		return nil
	}
	for _, x := range append(all, &total) {
		b := appendString([]byte(`{"extension":`), x.name)
		b = fmt.Appendf(b, ",\"files\":%d,\"size\":%d}\n", x.files, x.size)
		if err := t.f.write(b); err != nil {
			return err
		}
	}
	if rest > 0 {
		t.f.out.Note(content.Plural(rest, "extension is", "extensions are") +
			" not shown but counted in the total: raise limit")
	}
	return nil
}
