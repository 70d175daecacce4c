package ask

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/embed"
	"github.com/mcp-funnel/mcp-funnel/tools/ask/index"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// Limits of what is read.
const (
	maxFile  = 64 << 20 // bytes of a file that is indexed
	maxTexts = 500      // observations that are scanned
)

// corpus holds the files of one location of a question, and their index.
type corpus struct {
	set    source.Set
	at     source.Location
	index  *index.Index
	kept   bool // the index is a file
	files  []*file
	byPath map[string]*file
	status index.Status
	texts  map[string][]byte // of files, while this call lasts
	mu     sync.Mutex        // of the maps below, while files are read concurrently
	docs   map[string]*source.Document
	parts  map[string]string           // files whose text is not whole, and why
	stored map[string]content.Encoding // of files that were read, if it is not UTF-8
}

// file is one file of a corpus.
type file struct {
	index.File
	Modified time.Time
	at       *corpus
	aside    string // see asideOf; known once a passage was read
	opened   bool   // a passage was read
}

// Name returns the name by which a call names the file.
func (f *file) Name() string { return f.at.at.Place.Name(f.Path) }

// gather lists the files that the question is asked of.
func (q *question) gather() error {
	name := q.args.Path
	var walk tree.Options
	var at []source.Location
	var err error
	if tree.IsGlob(name) {
		at, walk, err = q.in.Sources.LocateGlob(q.ctx, name)
	} else {
		at, err = q.in.Sources.Locate(q.ctx, name)
	}
	if err != nil {
		return fmt.Errorf("path: %w", err)
	}
	missing := q.in.Sources.CheckRoots(at, func(text string) { q.note("%s", text) })
	walk.Stat = true
	walk.Progress = func(r tree.Report) { q.progress(r.Files, 0, "listing files") }
	for _, l := range at {
		c := &corpus{
			set: q.in.Sources, at: l, byPath: map[string]*file{}, texts: map[string][]byte{},
			docs: map[string]*source.Document{}, parts: map[string]string{},
			stored: map[string]content.Encoding{},
		}
		report, err := l.List(q.ctx, source.ListOptions{Walk: walk, Newest: true}, func(e source.Entry) error {
			if e.Type != tree.File {
				return nil
			}
			if !e.IsFile() && len(c.files) == maxTexts {
				q.note("only the newest %d texts of %s are searched", maxTexts, l.Name())
				return tree.SkipAll
			}
			m := e.Mark()
			f := &file{
				File: index.File{Path: e.Path, Mark: index.MarkText(m), Size: m.Size}, Modified: time.Unix(0, m.Modified), at: c,
			}
			c.files = append(c.files, f)
			c.byPath[f.Path] = f
			return nil
		})
		if err := missing.Check(l, err); err != nil {
			return err
		}
		if report.Unreadable > 0 {
			q.note("%s could not be read", content.Plural(report.Unreadable, "directory", "directories"))
		}
		q.note("%s", source.StoreNote(report))
		q.places = append(q.places, c)
	}
	return nil
}

func (q *question) close() {
	for _, c := range q.places {
		if c.index != nil {
			_ = c.index.Close()
		}
	}
}

// refresh brings the indexes up to date, as far as the time allows.
func (q *question) refresh() error {
	for _, c := range q.places {
		if c.index != nil { // a function of the same question did it
			continue
		}
		file := index.Memory
		if dir, ok := c.at.Dir(); ok {
			file = q.k.indexFile(dir)
		}
		if file == index.Memory && q.k.options.ReadOnly != nil {
			q.note("the store can only be read: the index was made for this call alone")
		}
		var err error
		c.kept = file != index.Memory
		if c.index, err = index.Open(q.ctx, file); err != nil && c.kept {
			c.kept = false
			q.note("the index cannot be kept (%s): it was made for this call alone", content.ClipBytes(err.Error(), 120))
			c.index, err = index.Open(q.ctx, index.Memory)
		}
		if err != nil {
			return err
		}
		files := make([]index.File, len(c.files))
		for i, f := range c.files {
			files[i] = f.File
		}
		func() {
			defer q.k.turn(q.ctx, file, q.deadline)()
			c.status, err = c.index.Refresh(q.ctx, files, index.Options{
				Below: c.at.Path, Keep: tree.IsGlob(q.args.Path), Deadline: q.deadline,
				Read: c.read, Ahead: c.readAhead, Alone: c.mayBeLarge,
				Progress: func(done, total int64) { q.progress(done, total, "bytes indexed") },
			})
		}()
		if errors.Is(q.ctx.Err(), context.Canceled) && c.kept {
			return fmt.Errorf("stopped; %d of %d files are indexed, and the next question goes on from there",
				c.status.Indexed, c.status.Files)
		}
		if err != nil {
			return err
		}
		c.noteDoubtful(q)
	}
	return nil
}

// removeDamaged removes the indexes if an error says that one is damaged: Open has read only the beginning of it.
func (q *question) removeDamaged(err error) error {
	if !index.IsDamaged(err) {
		return err
	}
	for _, c := range q.places {
		if dir, ok := c.at.Dir(); ok && c.kept && c.index != nil {
			_ = c.index.Close()
			c.index = nil
			err = errors.Join(err, index.Remove(q.k.indexFile(dir)))
		}
	}
	return fmt.Errorf("the index was damaged and is removed; ask again to make it anew: %w", err)
}

// turn waits until no other call brings an index up to date, at most until a time: otherwise each of many calls would
// read all files. Done ends the turn.
func (k *Asker) turn(ctx context.Context, file string, until time.Time) (done func()) {
	if file == index.Memory {
		return func() {}
	}
	one, _ := k.turns.LoadOrStore(file, make(chan struct{}, 1))
	turn := one.(chan struct{})
	ctx, stop := context.WithDeadline(ctx, until)
	defer stop()
	select {
	case turn <- struct{}{}:
		return sync.OnceFunc(func() { <-turn })
	case <-ctx.Done():
		return func() {}
	}
}

// scope restricts a search to the files that the question is asked of: the index also has those that a glob leaves out.
func (c *corpus) scope() index.Scope { return index.Scope{Below: c.at.Path, Of: c.has} }

// notUTF8 begins the reason of a file in the index that was searched and whose encoding is not certain.
const notUTF8 = "not UTF-8: "

// noteDoubtful names files that may have words that were not found, if the question has other letters than ASCII.
func (c *corpus) noteDoubtful(q *question) {
	var doubtful source.Decoded
	for _, p := range slices.Sorted(maps.Keys(c.status.Unsearchable)) {
		e, ok := strings.CutPrefix(c.status.Unsearchable[p], notUTF8)
		if !ok {
			continue
		}
		delete(c.status.Unsearchable, p) // it was searched
		if f := c.byPath[p]; f != nil && source.BeyondASCII(q.readAs) {
			doubtful.Add(f.Name(), content.Encoding(e))
		}
	}
	q.note("%s", doubtful.NoteDoubtful())
}

// mayBeLarge reports whether the text of a file may be larger than a MiB.
func (c *corpus) mayBeLarge(f index.File) bool {
	return f.Size > 1<<20 || c.set.Documents.Format(f.Path) != ""
}

// readAhead reads the documents among files together.
func (c *corpus) readAhead(ctx context.Context, files []index.File) error {
	var paths []string
	for _, f := range files {
		if f.Size <= maxFile {
			paths = append(paths, f.Path)
		}
	}
	return source.ReadAhead(ctx, c.at.Place, paths)
}

// read reads a file for the index.
func (c *corpus) read(ctx context.Context, f index.File) (index.Text, error) {
	body, kind, why := c.text(ctx, f)
	if why != "" {
		return index.Text{Why: why}, ctx.Err()
	}
	var e content.Encoding
	c.locked(func() { e = c.stored[f.Path] })
	if !e.Certain() || e == source.Mixed {
		why = notUTF8 + string(e)
	}
	t := index.Text{Body: body, Chunks: index.Chunks(ctx, f.Path, kind, body), Why: why}
	for _, p := range t.Chunks {
		t.Meanings = append(t.Meanings, embed.Packed(f.Path+" "+p.Heading+"\n"+string(body[p.Start:p.End]))...)
	}
	return t, ctx.Err()
}

// text returns the text of a file in UTF-8, or why it has none.
func (c *corpus) text(ctx context.Context, f index.File) (body []byte, kind content.Kind, why string) {
	if f.Size > maxFile {
		return nil, "", fmt.Sprintf("larger than %d MiB", maxFile>>20)
	}
	src, err := c.at.Place.Open(ctx, f.Path)
	if err != nil {
		return nil, "", unreadable(err)
	}
	defer func() {
		if caveat := src.Caveat(); caveat != "" {
			c.locked(func() { c.parts[f.Path] = caveat })
		}
		_ = src.Close()
	}()
	doc, err := c.set.DocumentText(ctx, f.Path, src)
	switch {
	case err != nil:
		return nil, "", unreadable(err)
	case doc != nil && doc.Failed != "":
		return nil, "", doc.Failed
	case doc != nil:
		c.locked(func() {
			if c.docs[f.Path] = doc; len(doc.Notes) > 0 {
				c.parts[f.Path] = src.Name + ": " + strings.Join(doc.Notes, "; ")
			}
		})
		return doc.Body, content.Text, ""
	case src.Binary() || src.Kind() == content.Binary:
		return nil, "", "binary"
	}
	r, err := src.Text()
	if err == nil {
		body, err = io.ReadAll(io.LimitReader(r, 2*maxFile))
	}
	if err != nil {
		return nil, "", unreadable(err)
	}
	if src.Packed() && len(body) > maxFile {
		return nil, "", fmt.Sprintf("larger than %d MiB", maxFile>>20)
	}
	encoding := src.Encoding
	if encoding == content.UTF8 && !utf8.Valid(body) {
		encoding = source.Mixed
	}
	c.locked(func() { c.stored[f.Path] = encoding })
	return body, src.Kind(), ""
}

// locked runs do with mu locked.
func (c *corpus) locked(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do()
}

// unreadable words why a file cannot be read, without its name.
func unreadable(err error) string {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "no permission"
	case errors.Is(err, fs.ErrNotExist):
		return "removed meanwhile"
	}
	return "unreadable: " + content.ClipBytes(strings.ReplaceAll(err.Error(), "\n", " "), 100)
}

// passage returns a part of a file's text; ok is false if the file is no longer as it was indexed.
func (c *corpus) passage(ctx context.Context, h index.Hit) (text string, ok bool) {
	f := c.byPath[h.Path]
	if f == nil || f.Mark != h.Mark {
		return "", false
	}
	if body, has := c.texts[h.Path]; has {
		return string(body[min(h.Start, int64(len(body))):min(h.End, int64(len(body)))]), true
	}
	src, err := c.at.Place.Open(ctx, h.Path)
	if err != nil {
		return "", false
	}
	defer func() { _ = src.Close() }()
	_, below := c.at.Dir()
	if below && (src.Document == nil && src.Size != f.Size || !src.Modified.Equal(f.Modified)) {
		return "", false
	}
	if !src.Plain() || c.set.Documents.Format(h.Path) != "" { // positions are those of the decoded text
		body, _, why := c.text(ctx, f.File)
		if why != "" {
			return "", false
		}
		c.texts[h.Path] = body
		return c.passage(ctx, h)
	}
	if !f.opened {
		head := make([]byte, min(src.Size, 2<<10))
		n, _ := src.ReadAt(head, 0)
		f.aside, f.opened = asideOf(h.Path, head[:n]), true
	}
	b := make([]byte, h.End-h.Start)
	if _, err := src.ReadAt(b, h.Start); err != nil && !errors.Is(err, io.EOF) {
		return "", false
	}
	return string(b), true
}

// ext returns the extension of a file in lower case without the dot.
func (f *file) ext() string { return strings.ToLower(strings.TrimPrefix(path.Ext(f.Path), ".")) }
