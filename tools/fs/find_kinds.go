package fs

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"path"
	"runtime"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/base/panics"
	"github.com/mcp-funnel/mcp-funnel/base/runes"
	"github.com/mcp-funnel/mcp-funnel/kinds"
	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/kinds/logs"
	"github.com/mcp-funnel/mcp-funnel/observations/backend"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/extract"
	"github.com/mcp-funnel/mcp-funnel/text/packed"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// Limits of show=kinds.
const (
	kindTokens   = 60        // of a row
	maxKindGroup = 200       // rows before the last one, which counts the files of further forms
	maxKindText  = 64 << 20  // bytes of a file that are read for its shape
	maxKindTexts = 512 << 20 // bytes of all files; later ones are read up to content.SniffSize
)

// unreadable is in place of the kind of a file that cannot be read.
const unreadable = "unreadable"

// kindWriter writes a row for each form of files: of each file with a shape of its own, and of all files that share kind
// and shape. It reads the files of a batch concurrently.
type kindWriter struct {
	f       *finder
	ctx     context.Context
	batch   []kindFile
	read    int64 // bytes so far
	groups  map[string]*kindGroup
	order   []*kindGroup
	partial int64 // files that were read in part
}

// kindFile is a file and what is known of it.
type kindFile struct {
	foundEntry
	kind   string // of a text, its language
	form   string // equal for files that are one group
	count  int64
	unit   string    // of count: "record" or "line"; "": nothing is counted
	about  []string  // what a row says beside its numbers: damage and encoding
	times  [2]string // the first and the last time of a log
	shapes []string  // most detailed first
	totals []string  // what is said of the text in numbers
	read   int64     // bytes of the text
	whole  bool      // all of it was read
}

// kindGroup is the files of one form: the first one, with the numbers of all.
type kindGroup struct {
	kindFile
	paths    []string
	from, to int64 // its times in milliseconds: the earliest and the latest; none if they cannot be compared
}

func (w *kindWriter) streams() bool { return true }

func (w *kindWriter) writeEntry(e foundEntry) error {
	*w.f.shown.counter(e.Type)++
	if e.Type != tree.File {
		return nil
	}
	w.batch = append(w.batch, kindFile{foundEntry: e, kind: unreadable, whole: true})
	if len(w.batch) < statFiles {
		return nil
	}
	return w.flush()
}

// flush reads the files of a batch and adds them to their groups.
func (w *kindWriter) flush() error {
	limit := int64(maxKindText)
	if w.read > maxKindTexts {
		limit = content.SniffSize
	}
	panics.Each(len(w.batch), runtime.GOMAXPROCS(0), func(i int) {
		k := &w.batch[i]
		if err := k.look(w.ctx, w.f.in.Sources, limit); err != nil {
			k.form = content.ClipBytes(err.Error(), 200)
			k.about = []string{k.form}
		}
	})
	if err := w.ctx.Err(); err != nil {
		return err
	}
	for _, k := range w.batch {
		w.read += k.read
		w.add(k)
	}
	w.batch = w.batch[:0]
	w.f.out.Progress(w.read, 0, "bytes read")
	return nil
}

// look reads up to limit bytes of the file's text. With an error it leaves k as it is.
func (k *kindFile) look(ctx context.Context, sources source.Set, limit int64) error {
	src, err := sources.Open(ctx, k.Path)
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }()
	name := packed.TrimExtension(path.Base(k.Path))
	text, err := src.Text()
	if err != nil {
		return err
	}
	buffered := bufio.NewReaderSize(io.LimitReader(content.WithContext(ctx, text), limit), content.SniffSize)
	start, _ := buffered.Peek(content.SniffSize) // an error comes again
	start = bytes.Clone(start)
	var lines runes.LineCounter
	d := kinds.New(name)
	n, err := io.Copy(io.MultiWriter(d, &lines), buffered)
	if err != nil {
		return err
	}
	kind, s := src.Kind(), d.Close()
	k.kind, k.read, k.whole = string(kind), n, n < limit
	if k.count, k.unit = s.Records, "record"; s.Records < 0 {
		k.count, k.unit = lines.Lines(), "line"
	}
	if language := kinds.Language(name, start, kind); kind == content.Text && language != "Text" {
		k.kind = language
	}
	var said []string
	if src.Document != nil {
		k.kind = cmp.Or(extract.Format(name), k.kind)
		said = append(said, src.Document.Failed)
	}
	if kind == content.Binary {
		k.unit, s.Total = "", []string{s.Media}
		if packed.HasArchiveName(name) {
			k.kind, s.Total = "archive", []string{"find with this path lists its members"}
		}
	}
	if tables := src.Tables(); tables != nil {
		k.kind, k.unit = "sqlite", ""
		s = digest.Summary{Total: tablesOf(tables)}
		s.Form = strings.Join(s.Total, "; ")
	}
	if coding := src.Coding(); !src.Plain() && coding != content.UTF8 {
		said = append(said, string(coding))
	}
	caveat, _, _ := strings.Cut(src.Caveat(), "; ")
	said = append(said, caveat)
	if k.whole { // else the end of the part would be damage
		said = append(said, s.Damage...)
	}
	for _, s := range said {
		if s != "" {
			k.about = append(k.about, content.Clip(s, 100))
		}
	}
	k.form = strings.Join(k.about, "; ") // files that are damaged alike are one form
	for _, said := range s.Says {
		if times, ok := strings.CutPrefix(said, "time: "); ok {
			k.times[0], k.times[1], _ = strings.Cut(times, ", last ")
		}
	}
	for _, total := range s.Total {
		if !strings.HasPrefix(total, fmt.Sprint(s.Records)+" ") { // the row has the number
			k.totals = append(k.totals, total)
		}
	}
	if kind == content.Log {
		s = fieldsOf(ctx, kind, start)
	}
	form := cmp.Or(withoutCounts(s.Form), path.Ext(name))
	for _, shape := range s.Examples {
		shape = withoutCounts(shape)
		if s.Filter != ".[]" { // its records are values of their own for jq
			shape = strings.TrimPrefix(shape, "[] ")
		}
		k.shapes = append(k.shapes, shape)
	}
	k.form = strings.Join([]string{k.kind, form, k.form}, " ")
	return nil
}

var (
	lengths = content.Pattern(`\[[0-9-]+\]`)      // of arrays
	counts  = content.Pattern(` ?\(\d+ of \d+\)`) // of the objects that have a key
)

// withoutCounts removes what differs between the shapes of equal forms.
func withoutCounts(shape string) string {
	return counts().ReplaceAllString(lengths().ReplaceAllString(shape, "[]"), "")
}

// fieldsOf summarises the fields in the lines of a log, without those that all lines have.
func fieldsOf(ctx context.Context, kind content.Kind, start []byte) digest.Summary {
	var records bytes.Buffer
	start = start[:bytes.LastIndexByte(start, '\n')+1]
	_ = kinds.Of(kind).Objects(ctx, bytes.NewReader(start), &records) // what it notices of the whole text is said there
	d := kinds.New("fields.ndjson")
	for line := range bytes.Lines(records.Bytes()) {
		var fields map[string]any
		if json.Unmarshal(line, &fields) != nil {
			continue
		}
		maps.DeleteFunc(fields, func(name string, v any) bool {
			return v == nil || slices.Contains([]string{"line", "time", "text", "level"}, name)
		})
		b, _ := content.PlainJSON(fields)
		_, _ = d.Write(append(b, '\n'))
	}
	return d.Close()
}

// tablesOf describes the tables of a database.
func tablesOf(list []byte) (all []string) {
	var tables []struct {
		Table   string
		Rows    any
		Columns []string
	}
	_ = json.Unmarshal(slices.Concat([]byte{'['}, list, []byte{']'}), &tables) // the reader of databases writes it
	for _, t := range tables {
		all = append(all, fmt.Sprintf("%s: %v rows {%s}", t.Table, t.Rows, strings.Join(t.Columns, ", ")))
	}
	return all
}

// add adds a file to the group of its form.
func (w *kindWriter) add(k kindFile) {
	if !k.whole {
		w.partial++
	}
	if k.kind == unreadable {
		w.f.unreadable++
	}
	if w.groups[k.form] == nil && len(w.order) >= maxKindGroup {
		k.kind, k.unit, k.form, k.shapes, k.about = "various", "", "", nil, []string{"files of further forms: narrow the path or the glob"}
	}
	g := w.groups[k.form]
	if g == nil {
		g = &kindGroup{kindFile: k, from: math.MaxInt64, to: math.MinInt64}
		w.groups[k.form] = g
		w.order = append(w.order, g)
	} else if g.Size += k.Size; g.unit == k.unit {
		g.count += k.count
	}
	g.paths = append(g.paths, k.Path)
	g.addTimes(k.times)
}

// addTimes extends the times of the group by those of a file.
func (g *kindGroup) addTimes(times [2]string) {
	for _, t := range times {
		var m logs.Marks
		if m.Read([]byte(t)); !m.Known || g.times[0] == "" {
			g.times = [2]string{}
			return
		}
		if m.At < g.from {
			g.times[0], g.from = t, m.At
		}
		if m.At > g.to {
			g.times[1], g.to = t, m.At
		}
	}
}

// name returns the path of the only file, or a glob that matches the paths of the group and no others; without such a
// glob, the first path and the number of others.
func (w *kindWriter) name(g *kindGroup) string {
	if len(g.paths) == 1 {
		return g.Path
	}
	name := g.glob()
	pattern, err := tree.CompileGlob(name)
	for _, other := range w.order {
		if err != nil || !pattern.Match(g.Path) || other != g && slices.ContainsFunc(other.paths, pattern.Match) {
			return fmt.Sprintf("%s and %s", g.Path, content.Plural(int64(len(g.paths)-1), "other", "others"))
		}
	}
	return name
}

// glob returns a glob that matches the paths.
func (g *kindGroup) glob() string {
	prefix, suffix, shortest := g.Path, g.Path, len(g.Path)
	for _, p := range g.paths {
		for !strings.HasPrefix(p, prefix) {
			prefix = prefix[:len(prefix)-1]
		}
		for !strings.HasSuffix(p, suffix) {
			suffix = suffix[1:]
		}
		shortest = min(shortest, len(p))
	}
	folder := prefix[:strings.LastIndexByte(prefix, '/')+1]
	if slices.ContainsFunc(g.paths, func(p string) bool { return strings.Contains(p[len(folder):], "/") }) {
		return folder + "**/*" + path.Ext(suffix)
	}
	return prefix + "*" + suffix[max(0, len(prefix)+len(suffix)-shortest):]
}

func (w *kindWriter) finish() error {
	if err := w.flush(); err != nil {
		return err
	}
	for _, g := range w.order {
		if err := w.f.write(w.row(g)); err != nil {
			return err
		}
	}
	if w.partial > 0 {
		w.f.out.Note(fmt.Sprintf("%s read in part, %d MiB at most: counts and shapes are of that part",
			content.Plural(w.partial, "file was", "files were"), maxKindText>>20))
	}
	w.f.out.Note(fmt.Sprintf("%s of %s", content.Plural(int64(len(w.order)), "form", "forms"),
		content.Plural(w.f.shown[0], "file", "files")))
	return nil
}

// row returns the row of a group, with the most detailed shape that the limit of tokens leaves room for.
func (w *kindWriter) row(g *kindGroup) []byte {
	totals := g.totals
	text := w.name(g) + ": "
	if n := len(g.paths); n > 1 {
		text += fmt.Sprintf("%d files, ", n)
		totals = nil
	}
	text += g.kind + ", " + backend.FormatBytes(g.Size)
	if g.unit != "" {
		text += ", " + content.Plural(g.count, g.unit, g.unit+"s")
	}
	text = content.VisibleLine(strings.Join(append([]string{text}, g.about...), "; "))
	if first, last := g.times[0], g.times[1]; first != "" {
		if n := len("2006-01-02 "); len(last) > n && strings.HasPrefix(first, last[:n]) {
			last = last[n:] // of the same day
		}
		text += content.VisibleLine("; " + first + " … " + last)
	}
	room := kindTokens - w.f.in.CountTokens(text) - 1
	for i, s := range g.shapes {
		if last := i+1 == len(g.shapes); last || w.f.in.CountTokens(s) <= room {
			text += "; " + content.VisibleLine(content.Clip(s, max(room, 8)*4))
			break
		}
	}
	for i, s := range totals {
		if w.f.in.CountTokens(text+s) >= kindTokens-1 {
			if g.kind == "sqlite" {
				text = content.Clip(text, 4*kindTokens) + fmt.Sprintf("; %d more", len(totals)-i)
			}
			break
		}
		text += "; " + content.VisibleLine(s)
	}
	return append([]byte(text), '\n')
}
