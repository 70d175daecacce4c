// Package write has the tools that change files: edit, write, move and remove.
//
// Each change is whole or not made at all: the new content goes to a file without a name, or a temporary one, which takes
// the place of the old one by a rename. Before that, the old content becomes an observation, by which the change is undone.
// Names are resolved as for reading, from open directories, and no link is followed at the last step.
package write

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/records"
	"github.com/mcp-funnel/mcp-funnel/system/osfile"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// Toolset is the toolset of these tools.
const Toolset = "write"

// Options of a Writer.
type Options struct {
	Dirs    []*tree.Root // directories below which files may be changed
	Store   *observations.Store
	Records records.Store // journal of changes; nil: nothing can be changed
	JQ      tools.Tool    // for references with a filter
	Confirm bool          // the client is asked before each change
	Fsync   bool          // changes survive a power loss
}

// Writer changes files. It is safe for concurrent use, also by several processes.
type Writer struct {
	options Options
	local   sync.Mutex // in place of the lock of a directory where there is none
	swept   atomic.Int64
}

// New returns a Writer.
func New(o Options) *Writer { return &Writer{options: o} }

// target is a name that a call may change.
type target struct {
	dir   *tree.Root // its directory
	from  *tree.Root // the granted directory that it was opened from
	base  string     // its name in there
	shown string     // as answers name it
	path  string     // absolute
	made  []string   // absolute directories that were made on the way, the outermost first
}

// removeEmpty removes absolute directories below granted ones as far as they are empty, the last one first.
func (w *Writer) removeEmpty(dirs []string) {
	for _, dir := range slices.Backward(dirs) {
		for _, root := range w.options.Dirs {
			if above, base, err := root.Parent(dir, nil); err == nil {
				if at, err := above.LstatIn(base); err == nil && at.IsDir() {
					_ = above.RemoveIn(base)
				}
				_ = above.Close()
			}
		}
	}
}

// maxDepth is how many directories below the granted one the way to a file has at most, if missing ones are made.
const maxDepth = 100

// target resolves a name. Missing directories on the way are made with parents.
func (w *Writer) target(in tools.Input, name string, parents bool) (*target, error) {
	if name == "" {
		return nil, errors.New("path is empty: name a file")
	}
	if filepath.Separator == '/' && len(name) > 2 && name[1] == ':' && strings.Contains(`\/`, name[2:3]) {
		return nil, fmt.Errorf("%s: it is a path of Windows, where this server does not run", content.ClipBytes(name, 200))
	}
	root, rel, shown, err := in.Sources.Target(name)
	if err != nil {
		return nil, err
	}
	full := filepath.Join(root.Dir(), filepath.FromSlash(rel))
	from, below, err := w.granted(root, full)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", content.ClipBytes(shown, 200), err)
	}
	t := &target{from: from, shown: shown, path: full}
	var made func(string)
	if parents && strings.Count(below, "/") > maxDepth {
		return nil, t.wrap(fmt.Errorf("it lies over %d directories deep", maxDepth))
	} else if parents {
		made = func(rel string) { t.made = append(t.made, filepath.Join(from.Dir(), filepath.FromSlash(rel))) }
	}
	if t.dir, t.base, err = from.Parent(below, made); err != nil {
		w.removeEmpty(t.made)
	}
	if errors.Is(err, fs.ErrNotExist) && !parents {
		err = fmt.Errorf("the directory of the file is missing (%w); in write and move, parents=true makes it", err)
	}
	if err != nil {
		return nil, t.wrap(err)
	}
	return t, nil
}

// granted returns the directory from which a path is opened to be changed: the root that the caller may read, or one below
// it that the operator granted, whichever is narrower.
func (w *Writer) granted(root *tree.Root, full string) (from *tree.Root, rel string, err error) {
	var names []string
	for _, dir := range w.options.Dirs {
		from := dir
		if root.Within(dir.Dir()) {
			if rel, err := dir.Rel(root.Dir()); err != nil || tree.Protected(rel) {
				continue
			}
			from = root
		} else if !dir.Within(root.Dir()) {
			continue
		}
		if rel, err = from.Rel(full); err == nil {
			return from, rel, nil
		}
		if below, err := root.Rel(dir.Dir()); err == nil {
			names = append(names, below)
		}
	}
	err = errors.New("it may be read, not changed: the operator can allow a directory with --allow-write")
	if len(names) > 0 {
		err = fmt.Errorf("it may be read, not changed: what may be changed lies below %s",
			content.ClipBytes(strings.Join(names, ", "), 200))
	}
	return nil, "", err
}

// before is a file as it was opened.
type before struct {
	*os.File
	info fs.FileInfo
	sum  string // sha256 of its bytes, in hex
	text *pieces
}

// open opens a target, until the call ends; nil if it does not exist.
func (c *call) open(ctx context.Context, t *target) (*before, error) {
	f, info, err := t.dir.OpenIn(t.base)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // there is none
	} else if err != nil {
		return nil, t.wrap(err)
	}
	b := &before{File: f, info: info}
	c.opened = append(c.opened, b)
	sum := sha256.New()
	if b.text, err = newPieces(piece{from: f, n: info.Size()}); err == nil {
		_, err = io.Copy(sum, content.WithContext(ctx, b.text.reader()))
	}
	if err != nil {
		return nil, t.wrap(err)
	}
	b.sum = hex.EncodeToString(sum.Sum(nil))
	return b, nil
}

// wrap returns an error under the name of the target; nil for nil.
func (t *target) wrap(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, tree.ErrIsLink) {
		err = fmt.Errorf("%w: name the file that it leads to", err)
	}
	return fmt.Errorf("%s: %w", content.ClipBytes(t.shown, 200), err)
}

// unchanged returns an error if the target is no longer the file that was opened, or if there is one and was none.
func (t *target) unchanged(old *before) error {
	now, err := t.dir.LstatIn(t.base)
	switch {
	case old == nil && errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && old != nil:
		was, is := tree.MarkOf(old.info), tree.MarkOf(now)
		if is.Disk = was.Disk; is == was { // blocks of a new file are allocated when it is written to the disk
			return nil
		}
	}
	return t.wrap(errChanged)
}

// size returns the bytes of the file; 0 for none.
func (b *before) size() int64 {
	if b == nil {
		return 0
	}
	return b.info.Size()
}

// hash returns the hash of the file as answers show it; "" for none.
func (b *before) hash() string {
	if b == nil {
		return ""
	}
	return source.ShortHash(b.sum)
}

// expected opens the target; nil if it does not exist. The error says that it is not the file that the caller expects, by
// the beginning of its hash; "" expects nothing.
func (c *call) expected(ctx context.Context, t *target, hash string) (*before, error) {
	old, err := c.open(ctx, t)
	if err != nil || hash == "" || old != nil && source.IsHash(hash, old.sum) {
		return old, err
	}
	hash = content.ClipBytes(hash, 70)
	if !source.IsHex(hash) {
		return nil, t.wrap(fmt.Errorf("%q is no hash: give its first 8 characters or more, as read shows it", hash))
	}
	if old == nil {
		return nil, t.wrap(fmt.Errorf("it does not exist, and hash %s was expected", hash))
	}
	since := "read it again"
	if was, ok := c.in.Sources.Versions.Text(t.path, hash); ok {
		text, err := newPieces(newPiece(was))
		if err != nil {
			return nil, err
		}
		since = "what changed since then:\n" + old.text.diffFrom(ctx, text)
	}
	return nil, t.wrap(fmt.Errorf("it has changed: its hash is %s now, not %s; nothing was written; %s",
		old.hash(), hash, since))
}

// Times of a lock.
const (
	lockWait  = 20 * time.Second // for others that change files of the directory
	lockPause = 2 * time.Millisecond
)

// lockAll keeps other calls and processes from changing files of the targets' directories, which it locks in one order.
func (c *call) lockAll(ctx context.Context) (unlock func(), err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, lockWait,
		errors.New("others are changing files of this directory: call again"))
	defer cancel()
	dirs := map[string]*target{}
	for _, t := range c.targets {
		dirs[t.dir.Dir()] = t
	}
	var locked []*os.File
	local := false
	unlock = func() {
		for _, dir := range locked {
			osfile.Unlock(dir)
			_ = dir.Close()
		}
		if local {
			c.local.Unlock()
		}
	}
	for _, name := range slices.Sorted(maps.Keys(dirs)) {
		dir, err := dirs[name].dir.File()
		if err == nil {
			locked = append(locked, dir)
		}
		for ok := false; err == nil && !ok; {
			if ok, err = osfile.TryLock(dir, true); err != nil { // directories cannot be locked here: this process can wait
				local = local || c.local.TryLock()
				ok, err = local, nil
			}
			if !ok {
				time.Sleep(lockPause)
				err = context.Cause(ctx)
			}
		}
		if err != nil {
			unlock()
			return nil, dirs[name].wrap(err)
		}
	}
	return unlock, nil
}

// temporary is what names of temporary files begin with. The rest is random.
const temporary = ".mcp-funnel-"

// newContent is what a file gets.
type newContent struct {
	text io.Reader
	like *os.File    // whose attributes it gets; nil: those of a new file
	mode fs.FileMode // of a new file; 0: what the umask leaves
}

// put gives the target a new content, in place of the file old; nil is no file. keep is called with the sha256 of the
// text when all of it is written and before the target changes: its error leaves all as it is.
func (w *Writer) put(
	ctx context.Context, t *target, old *before, to newContent, j *journal, keep func(after string) error,
) (err error) {
	mode := fs.FileMode(0o600)
	if to.like == nil && to.mode == 0 {
		mode = 0o666 // less the umask
	}
	j.nameIn(t)
	f, err := t.dir.CreateUnnamed(mode)
	unnamed := err == nil
	if errors.Is(err, errors.ErrUnsupported) {
		if err = j.write(); err == nil {
			f, err = t.dir.CreateIn(j.Temp, mode)
		}
	}
	if err != nil {
		return t.wrap(err)
	}
	defer func() {
		err = errors.Join(err, f.Close())
		_ = t.dir.RemoveIn(j.Temp) // if it is still there
	}()
	sum := sha256.New()
	_, err = io.CopyBuffer(io.MultiWriter(f, sum), content.WithContext(ctx, to.text), make([]byte, blockSize))
	switch {
	case err != nil:
	case to.like != nil:
		err = osfile.CopyAttributes(to.like, f)
	case to.mode != 0:
		err = f.Chmod(to.mode.Perm())
	}
	if err == nil && w.options.Fsync {
		err = f.Sync()
	}
	if err != nil {
		return t.wrap(fmt.Errorf("nothing was written: %w", err))
	}
	err = keep(hex.EncodeToString(sum.Sum(nil)))
	if err == nil && unnamed {
		if err = j.write(); err == nil {
			err = t.dir.NameIn(f, j.Temp)
		}
	}
	if err == nil { // as late as can be
		err = t.unchanged(old)
	}
	if err != nil {
		return err
	}
	err = errors.ErrUnsupported
	if old != nil {
		err = t.exchange(old, j)
	}
	if errors.Is(err, errors.ErrUnsupported) {
		err = tree.Rename(t.dir, j.Temp, t.dir, t.base, old != nil)
	}
	j.made = err == nil || j.made
	if errors.Is(err, fs.ErrExist) {
		err = errors.New("it was created by another program during this call: nothing was written; call again")
	}
	if err == nil && w.options.Fsync {
		err = w.sync(t)
	}
	return t.wrap(err)
}

// exchange gives the target the new content that has the temporary name, and looks then whether what has that name now is
// the file that was opened: else another program replaced it since the last look, and gets its own back.
func (t *target) exchange(old *before, j *journal) error {
	if err := t.dir.ExchangeIn(j.Temp, t.base); err != nil {
		return err
	}
	if now, err := t.dir.LstatIn(j.Temp); err == nil && isFile(now, old.info) {
		return nil // what put calls at its end removes it
	}
	err := errChanged
	if e := t.dir.ExchangeIn(j.Temp, t.base); e != nil {
		err = fmt.Errorf("%w; what it wrote is called %s now: %w", err, j.Temp, e)
		j.Temp, j.made = "", true // it stays
	}
	return err
}

// isFile reports whether a file is the one that it was, and was not written to. A rename changes other times.
func isFile(now, was fs.FileInfo) bool {
	return os.SameFile(now, was) && now.Size() == was.Size() && now.ModTime().Equal(was.ModTime())
}

var errChanged = errors.New("it was changed by another program during this call: nothing was written; call again")

// sync makes a rename in the target's directory survive a power loss.
func (w *Writer) sync(t *target) error {
	dir, err := t.dir.File()
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
