package records

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-funnel/mcp-funnel/system/osfile"
)

// Files is a [Store] in the directory of a store of observations: each record is a file. A record is written to another
// file, which is renamed.
type Files struct {
	Now func() time.Time // the time of a use; tests set the clock

	store string

	mu    sync.Mutex
	locks map[string]*gate // by file
	live  *os.File         // locked as long as this process lives; nil until Process
	alive string           // name of this process
}

// gate lets one goroutine at a time wait for a file lock.
type gate struct {
	sync.Mutex
	users int
}

// InDir returns the records in the directory of a store. Nothing is opened or created before it is used.
func InDir(store string) *Files {
	return &Files{Now: time.Now, store: store, locks: map[string]*gate{}}
}

// liveDir is the directory of investigations with a locked file for each process that called [Files.Process].
const liveDir = "live"

// open opens the directory of a kind, and makes it if it is missing and make is set. The directory of the store must
// exist: it has its marker before any other file, which hides it from tools.
func (f *Files) open(k *Kind, create bool) (*os.Root, error) {
	dir := filepath.Join(f.store, k.dir)
	if create {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	return osfile.OpenDir(dir)
}

func (k Key) file() string { return k.Name + k.Kind.ext }

// Get implements [Store].
func (f *Files) Get(k Key) (Record, error) {
	root, err := f.open(k.Kind, false)
	if err != nil {
		return Record{}, err
	}
	defer root.Close() //nolint:errcheck // nothing was written to it
	return get(root, k)
}

func get(root *os.Root, k Key) (Record, error) {
	b, err := osfile.ReadIn(root, k.file(), k.Kind.LimitOf(k.Name))
	if errors.Is(err, osfile.ErrNotRegular) || errors.Is(err, osfile.ErrTooLong) {
		err = fmt.Errorf("%s: %w", k.file(), ErrDamaged)
	}
	if err != nil {
		return Record{}, err
	}
	r := Record{Name: k.Name, Body: b, Size: int64(len(b))}
	if info, err := root.Lstat(k.file()); err == nil {
		r.Used = info.ModTime()
	}
	return r, nil
}

// List implements [Store]. Records that go meanwhile are left out.
func (f *Files) List(k Key, pattern string, bodies bool) (all []Record, err error) {
	root, err := f.open(k.Kind, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // nothing was written to it
	files, err := fs.Glob(root.FS(), pattern+k.Kind.ext)
	for _, file := range files {
		one := Key{k.Kind, k.Owner, strings.TrimSuffix(file, k.Kind.ext)}
		if bodies {
			r, err := get(root, one)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				r = Record{Name: one.Name, Damaged: true}
			}
			all = append(all, r)
		} else if info, err := root.Lstat(file); err == nil && info.Mode().IsRegular() {
			all = append(all, Record{Name: one.Name, Size: info.Size(), Used: info.ModTime()})
		}
	}
	return all, err
}

// Put implements [Store].
func (f *Files) Put(k Key, body []byte) error {
	if err := k.check(body); err != nil {
		return err
	}
	root, err := f.open(k.Kind, true)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // the file is closed
	return f.put(root, k, body)
}

func (f *Files) put(root *os.Root, k Key, body []byte) error {
	dir := path.Dir(k.Name)
	if _, err := root.Lstat(k.file()); errors.Is(err, fs.ErrNotExist) {
		f.prune(root, k.Kind)
		if err := root.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	return osfile.ReplaceIn(root, k.file(), path.Join(dir, temporary+rand.Text()), body)
}

// temporary begins the name of a file that is being written.
const temporary = "tmp-"

// Update implements [Store].
func (f *Files) Update(k Key, change func(Record) ([]byte, error)) error {
	unlock, err := f.Lock(k)
	if err != nil {
		return err
	}
	defer unlock()
	old, err := f.Get(k)
	if old.Damaged = errors.Is(err, ErrDamaged); err != nil && !old.Damaged && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	body, err := change(old)
	if err != nil || body == nil {
		return err
	}
	return f.Put(k, body)
}

// Append implements [Store].
func (f *Files) Append(k Key, lines []byte) error {
	root, err := f.open(k.Kind, true)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // the file is closed
	file, err := root.OpenFile(k.file(), os.O_RDWR|os.O_APPEND|os.O_CREATE|osfile.Nonblock, 0o600)
	if err != nil {
		return err
	}
	last := []byte{'\n'}
	if info, err := file.Stat(); err == nil && info.Size() > 0 {
		_, _ = file.ReadAt(last, info.Size()-1)
		if most := k.Kind.LimitOf(k.Name); info.Size()+int64(len(lines)) > most {
			_ = file.Close()
			return fmt.Errorf("%s has over %d MiB, and no more is added to it: %w", k.file(), most>>20, ErrFull)
		}
	}
	if last[0] != '\n' {
		lines = append([]byte{'\n'}, lines...)
	}
	_, err = file.Write(lines)
	return errors.Join(err, file.Close())
}

// Touch implements [Store].
func (f *Files) Touch(k Key) error {
	root, err := f.open(k.Kind, false)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // nothing was written to it
	now := f.Now()
	return root.Chtimes(k.file(), now, now)
}

// Delete implements [Store].
func (f *Files) Delete(k Key) error {
	root, err := f.open(k.Kind, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // nothing was written to it
	return errors.Join(root.RemoveAll(k.file()), root.RemoveAll(k.Name))
}

// Lock implements [Store].
func (f *Files) Lock(k Key) (unlock func(), err error) {
	name := k.Kind.lock(k.Name)
	leave := f.enter(path.Join(k.Kind.dir, name))
	root, err := f.open(k.Kind, true)
	if err != nil {
		leave()
		return nil, err
	}
	defer root.Close() //nolint:errcheck // the lock is a file of its own
	file, err := osfile.LockIn(root, name, k.Kind.Wait)
	if errors.Is(err, osfile.ErrBusy) {
		err = ErrBusy
	}
	if err != nil {
		leave()
		return nil, err
	}
	return func() {
		osfile.Unlock(file)
		_ = file.Close()
		leave()
	}, nil
}

// enter waits until no other goroutine waits for or holds a lock.
func (f *Files) enter(name string) (leave func()) {
	f.mu.Lock()
	g := f.locks[name]
	if g == nil {
		g = &gate{}
		f.locks[name] = g
	}
	g.users++
	f.mu.Unlock()
	g.Lock()
	return func() {
		g.Unlock()
		f.mu.Lock()
		if g.users--; g.users == 0 {
			delete(f.locks, name)
		}
		f.mu.Unlock()
	}
}

// prune removes records that were not used for the age of their kind, and files that a dead process left half written,
// before a new record is made: at most once an hour, as the time of the file "pruned" says. If there are too many, it
// removes the least recently used quarter, so that a full directory is not pruned at each call.
func (f *Files) prune(root *os.Root, k *Kind) {
	const stamp = "pruned"
	if k.Age == 0 && k.Most == 0 {
		return
	}
	full := false
	if k.Most > 0 {
		names, err := fs.Glob(root.FS(), "*"+k.ext)
		full = err == nil && len(names) >= k.Most
	}
	if at, err := root.Lstat(stamp); err == nil && f.Now().Sub(at.ModTime()).Abs() < time.Hour && !full {
		return
	}
	_ = osfile.ReplaceIn(root, stamp, temporary+stamp, nil)
	list, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return
	}
	var left []fs.FileInfo
	for _, e := range list {
		info, err := e.Info()
		if err != nil {
			continue
		}
		unused := f.Now().Sub(info.ModTime())
		switch {
		case strings.HasPrefix(e.Name(), temporary) && unused > time.Hour, path.Ext(e.Name()) == k.ext && unused > k.Age:
			_ = root.Remove(e.Name())
		case path.Ext(e.Name()) == k.ext:
			left = append(left, info)
		}
	}
	if k.Most == 0 || len(left) < k.Most {
		return
	}
	slices.SortFunc(left, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, info := range left[:len(left)/4] {
		_ = root.Remove(info.Name())
	}
}

// Where implements [Store]: it is the path of the file.
func (f *Files) Where(k Key) string {
	return filepath.Join(f.store, k.Kind.dir, filepath.FromSlash(k.file()))
}

// Process implements [Store].
func (f *Files) Process() (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.live != nil {
		return f.alive, nil
	}
	root, err := f.open(Investigation, true)
	if err != nil {
		return "", err
	}
	defer root.Close() //nolint:errcheck // the file is another one
	if err := root.MkdirAll(liveDir, 0o700); err != nil {
		return "", err
	}
	name := fmt.Sprintf("%d-%s", os.Getpid(), rand.Text())
	file, err := root.OpenFile(path.Join(liveDir, name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	if ok, err := osfile.TryLock(file, true); err != nil || !ok {
		_ = file.Close()
		return "", errors.Join(err, errors.New("its lock is taken"))
	}
	f.live, f.alive = file, name
	return name, nil
}

// Alive implements [Store]. The file of a process that has ended is removed.
func (f *Files) Alive(process string) bool {
	if process == "" || strings.ContainsAny(process, `/\`) {
		return false
	}
	f.mu.Lock()
	own := f.live != nil && process == f.alive
	f.mu.Unlock()
	if own {
		return true
	}
	root, err := f.open(Investigation, false)
	if err != nil {
		return false
	}
	defer root.Close() //nolint:errcheck // nothing was written to it
	file, err := root.OpenFile(path.Join(liveDir, process), os.O_RDWR|osfile.Nonblock, 0)
	if err != nil {
		return false
	}
	defer file.Close() //nolint:errcheck // nothing was written to it
	free, err := osfile.TryLock(file, true)
	if free {
		_ = root.Remove(path.Join(liveDir, process))
		osfile.Unlock(file)
	}
	return err == nil && !free
}

// Close implements [Store].
func (f *Files) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.live != nil {
		if root, err := f.open(Investigation, false); err == nil {
			_ = root.Remove(path.Join(liveDir, f.alive))
			_ = root.Close()
		}
		osfile.Unlock(f.live)
		_ = f.live.Close()
		f.live = nil
	}
}
