package tree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"time"
)

// maxOpen is how many directories on the path to the current one stay open; the others are opened again, by name, when
// the walk returns to them.
const maxOpen = 64

// maxHeld is how many directories one walk keeps open, for itself and for its visitors: each takes a descriptor.
const maxHeld = 2 * maxOpen

// How many entries are visited between checks of the context and between progress reports, and the longest time between
// reports.
const (
	checkEvery  = 256
	largeGlob   = 100 // patterns of a glob: one name may take a second, so that each entry is checked
	reportEvery = 4096
	reportAfter = time.Second
)

// Walk visits the entries below o.Start in path order, a directory before its entries: paths are compared name by name,
// names byte by byte, so "a/b" comes before "a.b". Links are visited as links and never followed below Start; Start
// itself may be a link to a directory inside the root. Denied entries are skipped silently. A directory that cannot be
// read is visited and counted, its entries are skipped. Names are any bytes, as the file system returns them.
//
// Ignore rules come from the .gitignore files from the root down and from .git/info/exclude of the root, and decide as
// in git. If Start itself is hidden or ignored it is walked all the same. Nothing above the root is read. ".git" is
// never entered, not even as Start.
//
// Walk returns the error of ctx, of visit, or of opening Start. Memory grows neither with the tree nor with the size of
// a directory: see ownRoom.
func (r *Root) Walk(ctx context.Context, o Options, visit func(Entry) error) (Report, error) {
	start, err := r.relAllowed(o.Start)
	if err == nil && slices.ContainsFunc(strings.Split(start, "/"), isGit) {
		err = errors.New(".git is never entered; name a file in it to read it")
	}
	if err != nil {
		return Report{}, r.explain("walk", o.Start, err)
	}
	w := &walker{
		root: r, o: o, visit: visit, ctx: ctx, reporter: progressReporter{o.Progress, time.Now()},
		denied: r.denied.identities(), shared: &shared{root: r}, budget: ownRoom,
	}
	defer w.closeAll()
	if start != "." {
		w.path = append(append(w.path, start...), '/')
	}
	if err := w.begin(start); err != nil {
		return w.report, r.explain("walk", o.Start, err)
	}
	if o.Stat || o.Ahead {
		err = w.runAhead()
	} else {
		err = w.run()
	}
	if errors.Is(err, fs.SkipAll) {
		err = nil
	}
	if err == nil && w.report.Files == 0 && w.report.Dirs == 0 {
		err = r.checkPresent() // the root is empty: it may have been removed
	}
	return w.report, err
}

// walker is the state of one walk: a stack of directories, the innermost last.
type walker struct {
	root      *Root
	o         Options
	visit     func(Entry) error
	ctx       context.Context
	denied    []ident
	shared    *shared
	report    Report
	stack     []level
	path      []byte // path of the innermost directory, with "/"; empty at the root
	visited   int
	reporter  progressReporter
	ahead     *ahead // set if another goroutine describes and visits the entries
	buf       []byte // buffer for reading directories
	spareList listing
	budget    int // bytes left of ownRoom
}

// level is a directory being walked.
type level struct {
	dir   folder
	open  bool
	held  *Held // dir, once a visitor holds it
	list  listing
	next  int
	path  int // length of the path of dir in walker.path, with "/"
	rules *rules
	glob  *globState // before the names in dir
	err   error      // why it could not be opened again
}

// hold returns the directory of a level with one more hold; nil if it cannot be opened again or too many are held.
func (w *walker) hold(at int) *Held {
	l := &w.stack[at]
	if l.held == nil {
		if w.shared.held.Load() >= maxHeld {
			return nil
		}
		dir, err := w.folder(at)
		if err != nil {
			return nil
		}
		w.shared.held.Add(1)
		l.held = &Held{walk: w.shared, dir: dir}
		l.held.holds.Add(1) // the hold of the level itself
	}
	l.held.holds.Add(1)
	return l.held
}

// close closes the directory of a level, or releases it to its holders.
func (l *level) close() {
	if l.held != nil {
		l.held.Release()
		l.held = nil
	} else if l.open {
		l.dir.close()
	}
	l.open = false
}

// isGit reports whether the file system treats name as ".git".
func isGit(name string) bool {
	return name == ".git" || (runtime.GOOS == "windows" || runtime.GOOS == "darwin") && strings.EqualFold(name, ".git")
}

// begin opens Start and reads the rules from above it.
func (w *walker) begin(start string) error {
	var above *rules
	if !w.o.All {
		above = w.rulesAbove(start)
	}
	dir, err := w.checkDenied(w.root.folderAt(start))
	if err != nil {
		if at, e := w.root.Stat(start); e == nil && !at.IsDir() {
			return fmt.Errorf("not a directory: it is %s", describeMode(at.Mode()))
		}
		return err
	}
	return w.push(dir, above, w.o.Glob.begin())
}

// push reads a directory and puts it on the stack. It returns [ErrDenied] for a store. It counts an unreadable
// directory, or returns an error if that is Start.
func (w *walker) push(dir folder, above *rules, glob *globState) error {
	if w.ahead != nil {
		if err := w.ahead.sendIfOld(); err != nil {
			dir.close()
			return err
		}
	}
	l := level{dir: dir, open: true, path: len(w.path), rules: above, glob: glob, list: w.spareList}
	l.list = listing{names: l.list.names[:0], items: l.list.items[:0], budget: &w.budget}
	w.spareList = listing{}
	if err := w.read(dir, &l.list); err != nil {
		l.list.free()
		dir.close()
		if e := w.ctx.Err(); e != nil {
			return e
		}
		if len(w.stack) == 0 {
			return err
		}
		w.report.Unreadable++
		return nil
	}
	if l.list.store {
		l.list.free()
		dir.close()
		return ErrDenied
	}
	l.list.sort(w.ctx)
	if !w.o.All && l.list.ignores {
		l.rules = w.readRules(dir, len(w.path), above)
	}
	w.stack = append(w.stack, l)
	if at := len(w.stack) - 1 - maxOpen; at > 0 && w.stack[at].open { // Start stays open
		w.stack[at].close()
	}
	return w.ctx.Err()
}

// readMore reads the names of a directory that did not fit the last time. If that fails the directory counts as
// unreadable.
func (w *walker) readMore(at int) error {
	dir, err := w.folder(at)
	l := &w.stack[at]
	l.next = 0
	l.list.reset()
	if err == nil {
		err = w.read(dir, &l.list)
	}
	if err != nil {
		w.report.Unreadable++
	}
	if l.list.store { // by now
		l.list.items, l.list.leftFrom = l.list.items[:0], nil
	}
	l.list.sort(w.ctx)
	return w.ctx.Err()
}

func (w *walker) pop() {
	top := &w.stack[len(w.stack)-1]
	top.close()
	top.list.free()
	if cap(top.list.names) <= 1<<20 {
		w.spareList = top.list
	}
	top.list = listing{}
	w.stack = w.stack[:len(w.stack)-1]
	if len(w.stack) > 0 {
		w.path = w.path[:w.stack[len(w.stack)-1].path]
	}
}

func (w *walker) closeAll() {
	for len(w.stack) > 0 {
		w.pop()
	}
}

func (w *walker) run() error {
	for len(w.stack) > 0 {
		top := len(w.stack) - 1
		l := &w.stack[top]
		if l.next == len(l.list.items) {
			if l.list.leftFrom == nil {
				w.pop()
			} else if err := w.readMore(top); err != nil {
				return err
			}
			continue
		}
		if w.visited++; w.visited%checkEvery == 0 || w.o.Glob != nil && len(w.o.Glob.patterns) > largeGlob {
			if err := w.ctx.Err(); err != nil {
				return err
			}
			if w.ahead != nil && w.ahead.stopped() {
				return errQuit
			}
			if w.visited%reportEvery == 0 {
				w.reporter.report(w.report)
			}
		}
		if w.ahead == nil || w.visited%16 == 0 { // otherwise the visitor reports progress
			w.reporter.reportIfDue(w.report)
		}
		i := l.next
		l.next++
		if err := w.entry(top, l.list.name(i), l.list.items[i].kind); err != nil {
			return err
		}
	}
	return nil
}

// progressReporter calls Options.Progress.
type progressReporter struct {
	progress   func(Report) // nil: not wanted
	reportedAt time.Time    // last report, or start of the walk
}

func (t *progressReporter) report(r Report) {
	if t.progress != nil {
		t.reportedAt = time.Now()
		t.progress(r)
	}
}

// reportIfDue reports if the last report is older than reportAfter: on a slow disk a few entries may take long. It
// reads the clock only if progress is wanted.
func (t *progressReporter) reportIfDue(r Report) {
	if t.progress != nil && time.Since(t.reportedAt) >= reportAfter {
		t.report(r)
	}
}

// entry visits one name, and pushes it if it is a directory to walk.
func (w *walker) entry(top int, name []byte, k kind) error {
	if !w.o.All && name[0] == '.' {
		w.skipHidden(name)
		return nil
	}
	at := len(w.path)
	w.path = append(w.path, name...)
	e := Entry{Path: string(w.path), Type: k.typeOf()}
	w.path = w.path[:at]
	base := e.Path[at:]
	if w.root.denied.coversPath(e.Path) {
		return nil
	}
	typeKnown := k != isUnknown
	if !typeKnown && !w.describeIn(top, base, &e) {
		return nil
	}
	if w.stack[top].rules.ignores(e.Path, base, e.Type == Dir) {
		w.report.Ignored++
		if w.o.Skipped != nil {
			w.o.Skipped(e.Path, SkippedIgnored)
		}
		return nil
	}
	named := w.o.Glob.after(w.stack[top].glob, base)
	matches := named.matches && !named.exclude
	descended := false
	if e.Type == Dir {
		var err error
		// Before the visit: the names in a directory tell whether it is a store.
		if descended, err = w.descend(top, base, e.Path, named, matches); errors.Is(err, ErrDenied) {
			return nil
		} else if err != nil {
			return err
		}
		w.report.Dirs++
	} else {
		w.report.Files++
	}
	if !matches {
		return nil
	}
	err := w.visitEntry(top, base, e, typeKnown)
	if errors.Is(err, errSkipped) {
		if descended {
			w.pop()
		}
		return nil
	}
	return err
}

// skipHidden counts and reports a hidden entry; ".git" is not counted.
func (w *walker) skipHidden(name []byte) {
	if !isGit(string(name)) {
		w.report.Ignored++
	}
	if w.o.Skipped != nil {
		w.o.Skipped(string(w.path)+string(name), SkippedHidden)
	}
}

// descend pushes a directory if entries below it may match, and reports whether it did. It counts a directory that it
// cannot open. It returns ErrDenied for a denied directory, and for a store, which it counts.
func (w *walker) descend(top int, base, path string, named *globState, matches bool) (bool, error) {
	var below *globState
	if !isGit(base) && (w.o.Depth == 0 || len(w.stack) < w.o.Depth) {
		below = w.o.Glob.below(named)
	}
	if below != nil {
		sub, err := w.openSubdir(top, base)
		if errors.Is(err, ErrDenied) {
			return false, err
		}
		if err == nil {
			pushed, err := w.enter(top, base, sub, below)
			if errors.Is(err, ErrDenied) {
				w.countStore(path)
			}
			return pushed, err
		}
		w.report.Unreadable++ // it may have changed since: keep the type the directory reported
	}
	if matches && w.isStore(top, base) {
		w.countStore(path)
		return false, ErrDenied
	}
	return false, nil
}

var (
	errSkipped = errors.New("the entry was removed meanwhile, or is denied")
	errQuit    = errors.New("no more entries are visited")
)

// visitEntry visits an entry or queues it. typeKnown means that the directory reported its type.
func (w *walker) visitEntry(top int, base string, e Entry, typeKnown bool) error {
	if w.ahead != nil {
		return w.queueEntry(top, base, e, typeKnown)
	}
	if w.o.Hold && e.Type == File {
		e.In = w.hold(top)
	}
	return w.visit(e)
}

// describe fills in size, time and type; false if the entry was removed or is denied.
func (w *walker) describe(dir folder, name string, e *Entry) bool {
	at, err := dir.lstat(name)
	if err != nil || w.isDenied(at.id) {
		return false
	}
	e.Size, e.Modified, e.Type, e.Mark = at.Size(), at.ModTime(), kindOf(at.Mode()).typeOf(), at.mark()
	return true
}

// describeIn describes an entry of the directory of a level.
func (w *walker) describeIn(top int, name string, e *Entry) bool {
	dir, err := w.folder(top)
	return err == nil && w.describe(dir, name, e)
}

// isDenied reports whether a file was denied when the walk began.
func (w *walker) isDenied(id ident) bool {
	return len(w.denied) > 0 && slices.ContainsFunc(w.denied, id.same)
}
