package files

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations/backend"
	"github.com/mcp-funnel/mcp-funnel/observations/storefs"
)

const (
	cachesDir = "caches" // holds the caches of programs that commands run, one directory for each name
	goneCache = ".gone-" // marks a cache that is being deleted
)

// Cache is a directory in the store that outlives the process, for files that can be made again. While it is open, no
// process deletes it. Its size counts as part of the quota, and it is deleted before an observation has to go.
type Cache struct {
	Dir string // absolute

	quota *quota
	name  string
	lock  *storefs.File
}

// OpenCache opens the cache of a name of letters and digits, and makes it if there is none.
func (d Directory) OpenCache(name string) (*Cache, error) {
	file := cacheLock(name)
	lock, err := d.files.disk.Open(file, true)
	if errors.Is(err, fs.ErrNotExist) {
		lock, err = d.files.disk.Create(file)
	}
	if err != nil {
		return nil, err
	}
	c := &Cache{Dir: filepath.Join(d.files.dir, cachesDir, name), quota: d.quota, name: name, lock: lock}
	shared, err := lock.TryLock(false)
	if err == nil && !shared {
		err = errors.New("the cache is being deleted")
	}
	if err == nil {
		err = os.MkdirAll(c.Dir, 0o700)
	}
	if err != nil {
		_ = lock.File.Close()
		return nil, err
	}
	_ = d.files.disk.Touch(file, d.files.now())
	return c, nil
}

func cacheLock(name string) string { return storefs.StateDir + "/cache-" + name + ".lock" }

// Close closes the cache.
func (c *Cache) Close() { c.lock.UnlockAndClose() }

// Measure counts the cache as part of the quota. If it takes over half of that, it first deletes the oldest files, down
// to a quarter; trimmed is how many bytes those had.
func (c *Cache) Measure() (trimmed int64, err error) {
	root, err := os.OpenRoot(c.Dir) // a program may replace its directories by links
	if err != nil {
		return 0, err
	}
	defer func() { _ = root.Close() }()
	type file struct {
		path string
		size int64
		at   time.Time
	}
	var files []file
	var size int64
	_ = fs.WalkDir(root.FS(), ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil //nolint:nilerr // what vanished or cannot be read takes no room that could be freed
		}
		if info, err := e.Info(); err == nil {
			files = append(files, file{path, info.Size(), info.ModTime()})
			size += info.Size()
		}
		return nil
	})
	if size > c.quota.limit/2 {
		slices.SortFunc(files, func(a, b file) int { return cmp.Or(a.at.Compare(b.at), strings.Compare(a.path, b.path)) })
		for _, f := range files {
			if size-trimmed <= c.quota.limit/4 {
				break
			}
			if root.Remove(f.path) == nil {
				trimmed += f.size
			}
		}
	}
	return trimmed, c.quota.locked(func(l *ledger) error {
		if l.Caches == nil {
			l.Caches = map[string]int64{}
		}
		l.Caches[c.name] = size - trimmed
		return nil
	})
}

// dropCaches deletes the caches that no process has open; with old, only those not used within the maximum age.
func (l *ledger) dropCaches(old bool) {
	for name := range l.Caches {
		lock, err := l.files.disk.Open(cacheLock(name), true)
		if err != nil {
			continue
		}
		info, err := lock.Stat()
		alone := false
		if err == nil && (!old || l.files.now().Sub(info.ModTime()) > l.quota.maxAge) {
			alone, _ = lock.TryLock(true)
		}
		if !alone {
			_ = lock.File.Close()
			continue
		}
		dir := filepath.Join(l.files.dir, cachesDir, name)
		gone := dir + goneCache + string(backend.RandomID())
		if err := os.Rename(dir, gone); err == nil || errors.Is(err, fs.ErrNotExist) {
			delete(l.Caches, name)
			go func() { _ = os.RemoveAll(gone) }() // others wait for the ledger
		}
		lock.UnlockAndClose()
	}
}

// removeGoneCaches deletes what a process that ended has not deleted.
func (q *quota) removeGoneCaches() {
	left, _ := filepath.Glob(filepath.Join(q.files.dir, cachesDir, "*"+goneCache+"*"))
	for _, dir := range left {
		_ = os.RemoveAll(dir)
	}
}

// cachedNow returns the bytes of all caches as they were last measured.
func (q *quota) cachedNow() int64 {
	var l ledger
	if b, _, err := q.files.disk.Read(quotaName, maxQuota); err != nil || json.Unmarshal(b, &l) != nil {
		return 0
	}
	return l.cached()
}
