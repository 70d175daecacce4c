package fs

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/internal/tree"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// Entries are held to be put in order up to so many, and so many bytes of their names; those that come after them in that
// order are told of, not listed. 12 MB with usual names.
const (
	maxSorted      = 100_000
	maxSortedNames = 16 << 20
)

// A call that puts more than maxSortedFreely in order, or more of names, is one of maxLargeSorts at once; the others wait
// for their turn, so that the process is not taken over what it may have by how many come at once.
const (
	maxSortedFreely = 10_000
	maxNamesFreely  = 512 << 10
	maxLargeSorts   = 4
)

// largeSorts has a place for each of them.
var largeSorts = make(chan struct{}, maxLargeSorts)

// shower writes what is found. take comes in path order; end comes last.
type shower interface {
	inOrder() bool // what is taken is shown at once
	take(found) error
	end() error
}

func (f *finder) shower(ctx context.Context, places []tools.Place) (shower, error) {
	var write shower
	switch f.Show {
	case "tree":
		return &drawing{f: f, top: topOf(places)}, nil
	case "count":
		return &extensionCount{f: f, by: map[string]*extension{}}, nil
	case "stat":
		write = &recordWriter{f: f, ctx: ctx, stat: true}
	default:
		write = &recordWriter{f: f, ctx: ctx}
	}
	if f.Sort == "modified" || f.Sort == "size" {
		return &ordered{f: f, ctx: ctx, to: write}, nil
	}
	return write, nil
}

// recordWriter writes one NDJSON record an entry.
type recordWriter struct {
	f    *finder
	ctx  context.Context
	stat bool
	buf  []byte
}

func (r *recordWriter) inOrder() bool { return true }
func (r *recordWriter) end() error    { return nil }

func (r *recordWriter) take(e found) error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	b := append(r.buf[:0], `{"path":`...)
	b = appendString(b, e.Path)
	if o := e.seen; o != nil {
		b = r.appendObservation(b, o)
	} else {
		b = append(b, `,"type":`...)
		b = appendString(b, string(e.Type))
		b = appendStamp(append(strconv.AppendInt(append(b, `,"size":`...), e.Size, 10), `,"modified":"`...), e.Modified)
		if r.stat && e.Type == tree.File {
			b = r.appendStat(b, e)
		}
	}
	if err := r.ctx.Err(); err != nil { // while its file was read: what is said of it may be wrong
		return err
	}
	b = append(b, "}\n"...)
	r.buf = b
	// Nothing is held back: when the time is up, what was found stands written.
	if _, err := r.f.out.Write(b); err != nil {
		return err
	}
	*r.f.shown.of(e.Type)++
	return nil
}

// appendStamp appends a time and the quote behind it. There are as many as there are files: fmt would take half of a record's time.
func appendStamp(b []byte, t time.Time) []byte {
	return append(t.UTC().AppendFormat(b, time.RFC3339), '"')
}

func (r *recordWriter) appendObservation(b []byte, o *observations.Observation) []byte {
	name := o.Name
	if name == "" {
		name = o.File
	}
	b = append(b, `,"name":`...)
	b = appendString(b, name)
	b = append(b, `,"tool":`...)
	b = appendString(b, o.Tool)
	b = append(b, `,"kind":`...)
	b = appendString(b, o.Seen.Kind)
	b = appendStamp(fmt.Appendf(b, `,"lines":%d,"size":%d,"modified":"`, o.Seen.Lines, o.Bytes), o.Created)
	if o.Dropped > 0 {
		r.f.partly++
		b = fmt.Appendf(b, `,"dropped":%d`, o.Dropped)
	}
	if r.stat {
		b = fmt.Appendf(b, `,"chars":%d`, o.Seen.Chars)
		if n, off, ok := r.f.in.Weighed(o.Seen); ok {
			b = appendTokens(b, n, off)
		}
		b = fmt.Appendf(b, `,"pinned":%t`, o.Pinned)
	}
	return b
}

// appendString appends a JSON string. A name that is not UTF-8, for which JSON has no way, stands as it is shown anywhere,
// with \xNN, which every tool takes back.
func appendString(b []byte, s string) []byte {
	if !utf8.ValidString(s) {
		s = content.Visible(s, false)
	}
	b, _ = jsontext.AppendQuote(b, s) // its error tells of invalid UTF-8, and there is none left
	return b
}

// ordered holds the entries that come first in another order.
type ordered struct {
	f     *finder
	ctx   context.Context
	to    shower
	held  []found // a heap, the last in order on top, once it is full
	names int     // bytes of the paths held
	full  bool
	large bool // it has its place in largeSorts
}

func (s *ordered) inOrder() bool { return false }

func (s *ordered) room() int64 {
	if s.f.Limit > 0 {
		return min(s.f.Limit, maxSorted)
	}
	return maxSorted
}

// order puts the newest or the largest first; equals by path.
func (s *ordered) order(a, b found) int {
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

func (s *ordered) Len() int           { return len(s.held) }
func (s *ordered) Less(i, j int) bool { return s.order(s.held[i], s.held[j]) > 0 }
func (s *ordered) Swap(i, j int)      { s.held[i], s.held[j] = s.held[j], s.held[i] }
func (s *ordered) Push(x any)         { s.held = append(s.held, x.(found)) }
func (s *ordered) Pop() any {
	last := s.held[len(s.held)-1]
	s.held[len(s.held)-1] = found{} // its name is let go
	s.held = s.held[:len(s.held)-1]
	return last
}

func (s *ordered) take(e found) error {
	if !s.full && int64(len(s.held)) < s.room() && s.names+len(e.Path) <= maxSortedNames {
		if !s.large && (len(s.held) == maxSortedFreely || s.names > maxNamesFreely) {
			if err := s.enlarge(); err != nil {
				return err
			}
		}
		s.held = append(s.held, e)
		s.names += len(e.Path)
		return nil
	}
	if !s.full {
		heap.Init(s)
		s.full = true
	}
	if s.order(e, s.held[0]) >= 0 {
		return nil
	}
	s.names += len(e.Path) - len(s.held[0].Path)
	s.held[0] = e
	heap.Fix(s, 0)
	for s.names > maxSortedNames { // whatever was let go comes after all that is held
		s.names -= len(heap.Pop(s).(found).Path)
	}
	return nil
}

// enlarge waits for a place among those that hold much, and makes room for all of it at once: to grow by steps would take
// twice that.
func (s *ordered) enlarge() error {
	select {
	case largeSorts <- struct{}{}:
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
	s.large = true
	s.held = slices.Grow(s.held, int(s.room())-len(s.held))
	return nil
}

// release lets go of what is held, and of its place.
func (s *ordered) release() {
	if s.held = nil; s.large {
		s.large = false
		<-largeSorts
	}
}

func (s *ordered) end() error {
	slices.SortFunc(s.held, s.order)
	walked, held := s.f.report.Files, int64(len(s.held))
	for i, e := range s.held {
		if err := s.to.take(e); err != nil { // which reads the file, for stat
			return err
		}
		s.f.out.Progress(walked+int64(i)+1, walked+held, "files walked and shown in order")
	}
	return s.to.end()
}

// drawing writes the tree as indented text: directories end in "/", links in "@".
type drawing struct {
	f    *finder
	top  string
	dir  string   // "a/b/" of the entry written last
	path []string // of it
	any  bool
	buf  []byte
}

func topOf(places []tools.Place) string {
	if len(places) == 1 && places[0].Root != nil && places[0].IsDir {
		return strings.TrimSuffix(places[0].Shown(places[0].Path), "/.")
	}
	return ""
}

func (d *drawing) inOrder() bool { return true }

func (d *drawing) take(e found) error {
	name := strings.TrimPrefix(e.Path, "./")
	if !d.any {
		d.any = true
		if d.top != "" {
			if err := d.line(0, d.top, "/"); err != nil {
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
	if d.path == nil || name[:last] != d.dir { // most entries are beside the one before
		if err := d.down(margin, name); err != nil {
			return err
		}
		d.dir = name[:last]
	}
	if err := d.line(margin+len(d.path)-1, name[last:], marks[e.Type]); err != nil {
		return err
	}
	*d.f.shown.of(e.Type)++
	d.path[len(d.path)-1] = name[last:]
	return nil
}

// marks are what stands behind the name of what is no file.
var marks = map[tree.Type]string{tree.Dir: "/", tree.Link: "@", tree.Other: "|"}

// down writes the directories on the way to a name that are not on the way to the one before, nor were the one before.
func (d *drawing) down(margin int, name string) error {
	parts := strings.Split(name, "/")
	same := 0
	for same < len(parts)-1 && same < len(d.path) && parts[same] == d.path[same] {
		same++
	}
	d.path = parts
	for i := same; i < len(parts)-1; i++ {
		if err := d.line(margin+i, parts[i], "/"); err != nil {
			return err
		}
	}
	return nil
}

// line writes one name. A newline in it is shown, as it would make two of it.
func (d *drawing) line(depth int, name, mark string) error {
	b := d.buf[:0]
	for range 2 * depth {
		b = append(b, ' ')
	}
	b = append(append(append(b, tools.VisibleName(name)...), mark...), '\n')
	d.buf = b
	_, err := d.f.out.Write(b)
	return err
}

func (d *drawing) end() error {
	if !d.any {
		return nil
	}
	_, err := fmt.Fprintf(d.f.out, "%s, %s\n", plural(*d.f.shown.of(tree.Dir), "directory", "directories"),
		plural(d.f.listed()-*d.f.shown.of(tree.Dir), "file", "files"))
	return err
}

// maxExtensions is how many extensions are counted apart; names are any text.
const maxExtensions = 10_000

// extensionCount counts by extension. The last record is the total: it has no dot.
type extensionCount struct {
	f  *finder
	by map[string]*extension
}

type extension struct {
	name        string
	files, size int64
}

func (t *extensionCount) inOrder() bool { return false }

func (t *extensionCount) take(e found) error {
	*t.f.shown.of(e.Type)++
	if e.Type == tree.Dir {
		return nil
	}
	name := path.Ext(path.Base(e.Path))
	if e.seen != nil {
		name = path.Ext(e.seen.File)
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
			x = &extension{name: name}
			t.by[name] = x
		}
	}
	x.files++
	x.size += e.Size
	return nil
}

func (t *extensionCount) end() error {
	total := extension{name: "total"}
	all := make([]*extension, 0, len(t.by)+1)
	for _, x := range t.by {
		all = append(all, x)
		total.files += x.files
		total.size += x.size
	}
	slices.SortFunc(all, func(a, b *extension) int {
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
		b := append([]byte(nil), `{"extension":`...)
		b = appendString(b, x.name)
		b = fmt.Appendf(b, ",\"files\":%d,\"size\":%d}\n", x.files, x.size)
		if _, err := t.f.out.Write(b); err != nil {
			return err
		}
	}
	if rest > 0 {
		t.f.out.Note(fmt.Sprintf("%s not shown; the total has them: raise limit", plural(rest, "extension is", "extensions are")))
	}
	return nil
}
