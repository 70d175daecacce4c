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

// maxOpen is how many directories of a deep way down stay open; the others are
// opened again, by name from the start, when there is more to do in them.
const maxOpen = 64

// After how many entries the context is looked at, and when progress is told: after so many entries, or so long.
const (
	lookEvery = 256
	tellEvery = 4096
	tellAfter = time.Second
)

// Walk visits the entries below o.Start in path order, a directory before what
// is in it: paths are compared name by name, names byte by byte, so that "a/b"
// comes before "a.b". Links are visited as links, never followed below Start;
// Start itself may be a link to a directory inside the root. What is denied is
// passed over without a word. A directory that cannot be read is visited,
// counted and passed over. Names are as the file system has them, any bytes.
//
// Ignore rules are those of the .gitignore files from the root down, and of
// .git/info/exclude of the root, as git decides them; where Start itself is
// hidden or ignored, that it was named is taken as the wish to see it. Nothing
// above the root is read. ".git" is never entered: not as Start either.
//
// The error is that of ctx, of visit, or of a Start that cannot be opened.
// Memory grows neither with the tree nor with the size of a directory: see ownRoom.
func (r *Root) Walk(ctx context.Context, o Options, visit func(Entry) error) (Report, error) {
	start, err := r.allowed(o.Start)
	if err == nil && slices.ContainsFunc(strings.Split(start, "/"), isGit) {
		err = errors.New(".git is never entered; name a file in it to read it")
	}
	if err != nil {
		return Report{}, r.explain("walk", o.Start, err)
	}
	w := &walker{root: r, o: o, visit: visit, ctx: ctx, tells: teller{o.Progress, time.Now()}, denied: r.denied.identities(), shared: &shared{root: r}, room: o.namesRoom()}
	defer w.closeAll()
	if start != "." {
		w.path = append(append(w.path, start...), '/')
	}
	w.below = len(w.path)
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
		err = r.gone() // an empty root may be one that was removed
	}
	return w.report, err
}

// walker is one walk: a stack of directories, the innermost last.
type walker struct {
	root   *Root
	o      Options
	visit  func(Entry) error
	ctx    context.Context
	denied []ident
	shared *shared
	report Report
	stack  []level
	path   []byte // of the directory at the top of the stack, with "/"; empty at the root
	below  int    // bytes of path that lead to Start
	looked int
	tells  teller
	ahead  *ahead // where entries are described and visited by another goroutine
	buf    []byte // for reading directories
	spare  listing
	room   room // for names
}

// level is a directory being visited.
type level struct {
	dir   folder
	open  bool
	held  *Held // dir, where it was handed out
	list  listing
	next  int
	path  int // bytes of walker.path that lead here, with "/"
	rules *rules
	lost  error // it was closed, and could not be opened again
}

// isGit says that a name is ".git", as the file system reads it.
func isGit(name string) bool {
	return name == ".git" || (runtime.GOOS == "windows" || runtime.GOOS == "darwin") && strings.EqualFold(name, ".git")
}

// begin opens Start, and reads the rules that bear on it from above.
func (w *walker) begin(start string) error {
	var above *rules
	if !w.o.All {
		above = w.rulesAbove(start)
	}
	dir, err := w.root.openFolder(start)
	if err != nil {
		return err
	}
	return w.push(dir, above)
}

// openFolder opens a directory, following links inside the root.
func (r *Root) openFolder(rel string) (folder, error) {
	dir, err := r.folderAt(rel)
	if err != nil {
		if at, e := r.Stat(rel); e == nil && !at.IsDir() {
			return folder{}, fmt.Errorf("not a directory: it is %s", shape(at.Mode()))
		}
		return folder{}, err
	}
	id, err := dir.id()
	if err == nil && r.denied.holds(id) {
		err = ErrDenied
	}
	if err != nil {
		dir.close()
		return folder{}, err
	}
	return dir, nil
}

// push reads the directory and puts it on the stack. One that cannot be read is
// counted; at Start that is an error.
func (w *walker) push(dir folder, above *rules) error {
	if w.ahead != nil {
		if err := w.ahead.age(); err != nil {
			dir.close()
			return err
		}
	}
	l := level{dir: dir, open: true, path: len(w.path), rules: above, list: w.spare}
	l.list = listing{names: l.list.names[:0], items: l.list.items[:0], room: &w.room}
	w.spare = listing{}
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
	l.list.sort(w.ctx)
	if !w.o.All && l.list.ignores {
		l.rules = w.readRules(dir, ".gitignore", len(w.path), above)
	}
	w.stack = append(w.stack, l)
	if at := len(w.stack) - 1 - maxOpen; at > 0 && w.stack[at].open { // Start stays open
		w.stack[at].close()
	}
	return w.ctx.Err()
}

// again reads the names of a directory that did not fit the last time. Where they cannot be read any more, that is counted.
func (w *walker) again(at int) error {
	dir, err := w.folder(at)
	l := &w.stack[at]
	l.next = 0
	l.list.next()
	if err == nil {
		err = w.read(dir, &l.list)
	}
	if err != nil {
		w.report.Unreadable++
	}
	l.list.sort(w.ctx)
	return w.ctx.Err()
}

func (w *walker) pop() {
	top := &w.stack[len(w.stack)-1]
	top.close()
	top.list.free()
	if cap(top.list.names) <= 1<<20 {
		w.spare = top.list
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
			if l.list.before == nil {
				w.pop()
			} else if err := w.again(top); err != nil {
				return err
			}
			continue
		}
		if w.looked++; w.looked%lookEvery == 0 {
			if err := w.ctx.Err(); err != nil {
				return err
			}
			if w.ahead != nil && w.ahead.over() {
				return errQuit
			}
			if w.looked%tellEvery == 0 {
				w.tells.tell(w.report)
			}
		}
		if w.ahead == nil || w.looked%16 == 0 { // who visits tells it too
			w.tells.inTime(w.report)
		}
		i := l.next
		l.next++
		if err := w.entry(top, l.list.name(i), l.list.items[i].kind); err != nil {
			return err
		}
	}
	return nil
}

// teller tells progress, where somebody wants to know.
type teller struct {
	progress func(Report) // nil: nobody
	told     time.Time    // when it was told last, or the walk began
}

func (t *teller) tell(r Report) {
	if t.progress != nil {
		t.told = time.Now()
		t.progress(r)
	}
}

// inTime tells it where that was long ago: on a slow disk few entries take long. A clock is looked at for each
// entry only where somebody wants to know.
func (t *teller) inTime(r Report) {
	if t.progress != nil && time.Since(t.told) >= tellAfter {
		t.tell(r)
	}
}

// entry visits one name, and goes down into it.
func (w *walker) entry(top int, name []byte, k kind) error {
	git := isGit(string(name))
	if !w.o.All && name[0] == '.' {
		if !git {
			w.report.Ignored++
		}
		return nil
	}
	at := len(w.path)
	w.path = append(w.path, name...)
	e := Entry{Path: string(w.path)}
	w.path = w.path[:at]
	base := e.Path[at:]
	if w.root.denied.covers(e.Path) {
		return nil
	}
	told := k != isUnknown
	if !told && !w.describe(top, base, &e, &k) {
		return nil
	}
	if w.stack[top].rules.ignores(e.Path, base, k == isDir) {
		w.report.Ignored++
		return nil
	}
	if k != isDir {
		w.report.Files++
	}
	var sub folder
	down := k == isDir && !git && w.deeper(e.Path)
	if down {
		var err error
		switch sub, err = w.enter(top, base); {
		case errors.Is(err, ErrDenied):
			return nil
		case err != nil: // it may be anything by now; what the directory said of it stands
			w.report.Unreadable++
			down = false
		}
	}
	if k == isDir {
		w.report.Dirs++
	}
	if w.o.Glob == nil || w.o.Glob.Match(e.Path[w.below:]) {
		if err := w.hand(top, base, e, k, told); err != nil {
			if down {
				sub.close()
			}
			if errors.Is(err, errPassed) {
				return nil
			}
			return err
		}
	}
	if !down {
		return nil
	}
	w.path = append(append(w.path, base...), '/')
	depth := len(w.stack)
	err := w.push(sub, w.stack[top].rules)
	if len(w.stack) == depth {
		w.path = w.path[:at]
	}
	return err
}

// errPassed says that there is nothing any more where an entry was, or something denied.
var errPassed = errors.New("passed over")

// hand has an entry visited. told says that its type is what the directory said.
func (w *walker) hand(top int, base string, e Entry, k kind, told bool) error {
	if w.ahead != nil {
		return w.send(top, base, e, k, told)
	}
	if e.Type = k.typeOf(); w.o.Hold && k == isFile {
		e.In = w.hold(top)
	}
	return w.visit(e)
}

// deeper says that entries of the directory could be asked for.
func (w *walker) deeper(full string) bool {
	if w.o.Depth > 0 && len(w.stack) >= w.o.Depth {
		return false
	}
	return w.o.Glob == nil || w.o.Glob.below(full[w.below:])
}

// describe fills in size, time and type; false for what is gone by now, or denied.
func (w *walker) describe(top int, name string, e *Entry, k *kind) bool {
	dir, err := w.folder(top)
	if err != nil {
		return false
	}
	at, err := dir.describe(name)
	if err != nil || w.denies(at.id) {
		return false
	}
	e.Size, e.Modified, *k = at.size, at.mod, at.kind
	return true
}

// described is what a file system says of a name.
type described struct {
	size int64
	mod  time.Time
	kind kind
	id   ident
}

// denies says that this was denied when the walk began.
func (w *walker) denies(id ident) bool {
	return len(w.denied) > 0 && slices.ContainsFunc(w.denied, id.same)
}

// enter opens the directory called name in the level at.
func (w *walker) enter(at int, name string) (folder, error) {
	dir, err := w.folder(at)
	if err != nil {
		return folder{}, err
	}
	return w.admit(dir.enter(name))
}

// admit refuses a directory that is denied, whatever it is called.
func (w *walker) admit(dir folder, err error) (folder, error) {
	if err != nil || len(w.denied) == 0 {
		return dir, err
	}
	id, err := dir.id()
	if err == nil && slices.ContainsFunc(w.denied, id.same) {
		err = ErrDenied
	}
	if err != nil {
		dir.close()
		return folder{}, err
	}
	return dir, nil
}

// folder is the open directory of a level. One that was closed is opened again
// by its names from the nearest that is open, and with it up to maxOpen above
// it, so that the way back up a deep tree costs one way down for each maxOpen
// levels.
func (w *walker) folder(at int) (folder, error) {
	if w.stack[at].lost != nil {
		return folder{}, w.stack[at].lost
	}
	from := at
	for !w.stack[from].open {
		from--
	}
	dir, passing := w.stack[from].dir, false
	for i := from + 1; i <= at; i++ {
		sub, err := w.admit(dir.enter(string(w.path[w.stack[i-1].path : w.stack[i].path-1])))
		if passing {
			dir.close()
		}
		if err != nil {
			w.stack[at].lost = err
			return folder{}, err
		}
		dir, passing = sub, at-i >= maxOpen
		if !passing {
			w.stack[i].dir, w.stack[i].open = sub, true
		}
	}
	return dir, nil
}
