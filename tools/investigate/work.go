package investigate

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate/entries"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate/evidence"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate/plan"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate/scan"
)

// work is the state of one call on one investigation.
type work struct {
	i   *Investigator
	ctx context.Context
	in  tools.Input
	out tools.Output
	now func() time.Time

	tokens func(text string) int // counts those of the model that reads the answers

	inv     *entries.Investigation
	meta    entries.Meta
	created bool // by this call

	root   *tree.Root
	start  string // the target below root
	target string // absolute

	tree     *scan.Tree
	dirs     map[string]*directory
	paths    []string // of dirs, in path order
	notes    map[string]entries.Dir
	files    map[string]entries.File
	survey   Survey
	plan     plan.Plan
	planned  bool // the plan was handed in
	applied  plan.Applied
	orders   []entries.Order
	gone     []string        // directories and files that are gone, with a note that somebody wrote
	damaged  int             // entries of directories that cannot be read
	changes  []string        // what changed since the last call, in words
	seen     *opened         // nil: not read yet
	tried    map[string]bool // directories and steps that are not given out again in this run
	answered entries.Step    // of the order that this call answered
	silent   bool            // orders do not say how to answer them: the driver does
}

// directory is what the scan found in one directory.
type directory struct {
	plan.Dir
	files []*scan.File
	own   string // fingerprint of its names, sizes and contents
	deep  string // the same with all that is below it
}

// fingerprint returns what an entry on the directory is checked against.
func (d *directory) fingerprint() string { return d.own + "." + d.deep }

// load looks at the tree, brings mechanical notes up to date and reads everything that was kept.
func (w *work) load(progress bool) error {
	var err error
	if w.meta, err = w.inv.Meta(); err != nil {
		return err
	}
	w.target = w.meta.Target
	if err := w.look(progress); err != nil {
		return err
	}
	if w.notes, w.damaged, err = w.inv.Dirs(); err != nil {
		return err
	}
	var damagedFiles int
	if w.files, damagedFiles, err = w.inv.Files(); err != nil {
		return err
	}
	if n := int64(w.damaged + damagedFiles); n > 0 {
		w.out.Note(content.Plural(n, "entry is", "entries are") + " damaged and will be made again")
	}
	if w.planned, err = w.inv.Read(entries.PlanName, &w.plan); err != nil {
		return err
	}
	if !w.planned { // a damaged one counts as none
		w.plan = plan.Plan{}
	}
	if ok, err := w.inv.Read(entries.SurveyName, &w.survey); err != nil {
		return err
	} else if !ok { // nobody has written one: its confidence of 0 says so
		w.survey = Survey{Description: w.figures()}
		if err := w.inv.Write(entries.SurveyName, w.survey); err != nil {
			return err
		}
	}
	w.apply()
	if w.orders, err = w.inv.Orders(); err != nil {
		return err
	}
	return w.refresh()
}

func (w *work) apply() {
	dir := func(p string) *plan.Dir {
		if d := w.dirs[p]; d != nil {
			return &d.Dir
		}
		return nil
	}
	w.applied = w.plan.Apply(dir, func(name string) string {
		p, _ := w.resolvePath(name, ".")
		return p
	})
}

// look scans the tree. Files that did not change since the last scan are not opened.
func (w *work) look(progress bool) error {
	var last scan.Tree
	if _, err := w.inv.Read(entries.ScanName, &last); err != nil {
		return err
	}
	o := scan.Options{Hash: true, Count: w.tokens, Last: &last}
	if progress {
		o.Progress = func(done int64, file string) {
			w.out.Progress(done, int64(len(last.Files)), "looking at "+content.ClipBytes(file, 80))
		}
	}
	var err error
	if w.tree, err = scan.Scan(w.ctx, w.root, w.start, o); err != nil {
		return err
	}
	if w.tree.Looked > 0 || len(w.tree.Files) != len(last.Files) {
		if err := w.inv.Write(entries.ScanName, w.tree); err != nil {
			return err
		}
	}
	w.index()
	if w.meta.DirCount != len(w.paths) {
		w.meta.DirCount = len(w.paths)
		return w.inv.SetMeta(w.meta)
	}
	return nil
}

// index groups files by directory and computes fingerprints.
func (w *work) index() {
	w.dirs = make(map[string]*directory, len(w.tree.Dirs))
	w.paths = w.tree.Dirs
	for _, p := range w.paths {
		w.dirs[p] = &directory{Dir: plan.Dir{Path: p}}
		if p != "." {
			up := w.dirs[path.Dir(p)]
			up.Subs = append(up.Subs, p)
		}
	}
	for n := range w.tree.Files {
		f := &w.tree.Files[n]
		d := w.dirs[f.Dir()]
		d.files = append(d.files, f)
		d.Files++
		d.Tokens += f.Tokens
		if f.Category == scan.Source {
			d.Value += f.Size
		}
	}
	for _, p := range slices.Backward(w.paths) { // children come after their parents
		w.dirs[p].seal(w.dirs)
	}
}

// seal computes the fingerprints of a directory whose children have theirs.
func (d *directory) seal(all map[string]*directory) {
	own, deep := sha256.New(), sha256.New()
	written := 0
	for _, f := range d.files {
		_, _ = fmt.Fprintf(own, "%d:%s %d %s\n", len(f.Path), path.Base(f.Path), f.Size, f.Hash)
		if f.Category != scan.Fixture && f.Category != scan.Generated {
			written++
		}
	}
	d.Keep = written == 0 && (len(d.files) > 0 || len(d.Subs) == 0) || scan.InFixtures(path.Join(d.Path, "x"))
	for _, s := range d.Subs {
		_, _ = fmt.Fprintf(own, "%s/\n", path.Base(s))
	}
	d.own = short(own)
	_, _ = fmt.Fprintln(deep, d.own)
	for _, s := range d.Subs {
		_, _ = fmt.Fprintln(deep, all[s].deep)
	}
	d.deep = short(deep)
}

func short(sum hash.Hash) string { return hex.EncodeToString(sum.Sum(nil)[:8]) }

// refresh writes the mechanical notes that are missing or of another state of the tree, and removes entries of what is
// gone.
func (w *work) refresh() error {
	var due []string
	for _, p := range w.paths {
		note, ok := w.notes[p]
		fresh, own := w.fresh(p)
		written := ok && note.By != entries.Mechanical
		switch {
		case written && !own, ok && !written && !fresh:
			w.changes = append(w.changes, p+" changed")
		case !ok && !w.created && len(w.notes) > 0 && w.damaged == 0:
			w.changes = append(w.changes, p+" is new")
		}
		if written || fresh {
			continue
		}
		due = append(due, p)
	}
	for p, n := range w.notes { // notes of what is gone stay kept: it may come back, as with another branch
		if w.dirs[p] != nil {
			continue
		}
		delete(w.notes, p)
		if n.By != entries.Mechanical {
			w.gone = append(w.gone, p)
			w.changes = append(w.changes, p+" is gone")
		} else if err := w.inv.RemoveDir(p); err != nil {
			return err
		}
	}
	for p := range w.files {
		if w.file(p) == nil {
			delete(w.files, p)
			w.gone = append(w.gone, p)
		}
	}
	slices.Sort(w.gone)
	slices.Sort(w.changes)
	w.changes = slices.Compact(w.changes)
	return w.describer().describe(due)
}

// file returns a file by its path below the target; nil if there is none.
func (w *work) file(p string) *scan.File {
	d := w.dirs[path.Dir(p)]
	if d == nil {
		return nil
	}
	i, ok := slices.BinarySearchFunc(d.files, p, func(f *scan.File, p string) int { return strings.Compare(f.Path, p) })
	if !ok {
		return nil
	}
	return d.files[i]
}

// fresh reports whether the note on a directory is of the tree as it is now. If only something below it changed, its
// own part still holds.
func (w *work) fresh(p string) (fresh, own bool) {
	note, ok := w.notes[p]
	d := w.dirs[p]
	if !ok || d == nil {
		return false, false
	}
	return note.Fingerprint == d.fingerprint(), strings.HasPrefix(note.Fingerprint, d.own+".")
}

// due reports whether an order on the directory would improve its note.
func (w queue) due(p string) bool {
	fresh, _ := w.fresh(p)
	note := w.notes[p]
	return !fresh || note.By == entries.Mechanical || note.Partial
}

// maxRead is the largest file that is read to describe a directory or to look up a citation, in bytes.
const maxRead = 8 << 20

// reader reads files of the target for evidence and mechanical notes; see [evidence.Reader].
type reader struct{ w *work }

func (w *work) reader() reader { return reader{w} }

// Exists implements [evidence.Reader].
func (r reader) Exists(p string) bool {
	p = r.below(p)
	return r.w.dirs[p] != nil || r.w.file(p) != nil
}

// below returns a path as one below the target; tools name files below the root.
func (r reader) below(p string) string {
	if rest, ok := strings.CutPrefix(p, r.w.start+"/"); ok && r.w.dirs[path.Dir(p)] == nil {
		return rest
	}
	return p
}

// Read implements [evidence.Reader].
func (r reader) Read(p string) ([]byte, error) {
	p = r.below(p)
	if r.w.dirs[p] != nil {
		return nil, errors.New("it is a directory")
	}
	switch f := r.w.file(p); {
	case f == nil:
		return nil, fs.ErrNotExist
	case f.Binary, f.Size > maxRead:
		return nil, evidence.ErrUndecidable
	}
	return r.w.read(p)
}

// read reads a text file of the target, decoded to UTF-8.
func (w *work) read(p string) ([]byte, error) {
	f, _, err := w.root.OpenFile(path.Join(w.start, p))
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, maxRead+1))
	if err != nil {
		return nil, err
	}
	encoding := content.Detect(b[:min(len(b), content.SniffSize)], len(b) <= content.SniffSize)
	switch {
	case len(b) > maxRead, encoding == content.NoText:
		return nil, evidence.ErrUndecidable
	case encoding != content.UTF8:
		return io.ReadAll(encoding.Reader(bytes.NewReader(b)))
	}
	return b, nil
}

var errEmpty = errors.New("the directory holds no files: there is nothing to investigate")
