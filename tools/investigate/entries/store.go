// Package entries keeps what investigations found: one file an entry, below the store, each written by rename.
//
//	investigations/targets/<sha256(identity NUL absolute target)>.json   {target, id}
//	investigations/<id>/   meta.json survey.json plan.json plan_evaluation.json report.json scan.json
//	                       flags.jsonl investigation.log lock
//	                       files/<sha256(path)>.json  dirs/<sha256(path)>.json  orders/<order>.json
package entries

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
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

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/system/osfile"
)

// Prefix begins the name of an investigation, and OrderPrefix that of an order.
const (
	Prefix      = "inv:"
	OrderPrefix = "ord:"
)

const (
	maxAge      = 90 * 24 * time.Hour // since the last use
	maxEntry    = 1 << 20             // bytes of one file, but the scan
	maxScan     = 1 << 30
	maxLog      = 16 << 20
	lockWait    = 20 * time.Second
	targetsDir  = "targets"
	lockName    = "lock"
	metaName    = "meta.json"
	flagsName   = "flags.jsonl"
	logName     = "investigation.log"
	dirsDir     = "dirs"
	filesDir    = "files"
	ordersDir   = "orders"
	liveDir     = "live"
	maxRemember = 16 // investigations whose entries stay in memory
)

// ErrUnknown is the error for an investigation that does not exist, is another identity's, or has expired.
var ErrUnknown = errors.New("unknown investigation")

// Meta describes an investigation.
type Meta struct {
	ID            string    `json:"id"`
	Target        string    `json:"target"` // absolute path
	Identity      string    `json:"identity"`
	Goal          string    `json:"goal,omitempty"`
	By            string    `json:"by,omitempty"` // agent, endpoint or mechanical: who took part so far
	StartedAt     time.Time `json:"started_at"`
	DirCount      int       `json:"dir_count"`
	PromptVersion int       `json:"prompt_version"`
	Scan          string    `json:"scan,omitempty"` // obs:ID of the first scan
	LastUsed      time.Time `json:"-"`
}

// Store holds the investigations of one store. It is safe for concurrent use, also by several processes.
type Store struct {
	dir      string
	limit    int64 // bytes of all investigations; 0: none
	readOnly bool
	now      func() time.Time

	mu    sync.Mutex
	known map[string]*Investigation
	live  *os.File // locked as long as this process lives; nil until the first order
	proc  string
}

// Open returns the investigations of a store, in its directory investigations/. Nothing is created before the first
// one. With readOnly the views of an investigation work, and each computes again what it cannot write.
func Open(store string, limit int64, readOnly bool) *Store {
	return &Store{
		dir: filepath.Join(store, "investigations"), limit: limit, readOnly: readOnly, now: time.Now,
		known: map[string]*Investigation{},
	}
}

// Close ends the leases of this process.
func (s *Store) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live != nil {
		_ = os.Remove(s.live.Name())
		osfile.Unlock(s.live)
		_ = s.live.Close()
		s.live = nil
	}
	for _, i := range s.known {
		_ = i.root.Close()
	}
	clear(s.known)
}

func hash(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])
}

func targetFile(identity, target string) string {
	return targetsDir + "/" + hash(identity, target) + ".json"
}

// pointer is the content of a file in targets/.
type pointer struct {
	Target string `json:"target"`
	ID     string `json:"id"`
}

// Find returns the investigation of a target; ErrUnknown if there is none.
func (s *Store) Find(identity, target string) (*Investigation, error) {
	root, err := osfile.OpenDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrUnknown
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	var p pointer
	if ok, _ := readJSON(root, targetFile(identity, target), &p); !ok || p.Target != target {
		return nil, ErrUnknown // missing, or damaged: a new one is made
	}
	return s.Get(identity, p.ID)
}

// Create makes a new investigation and names it in targets/. An older one of the target stays under its ID.
func (s *Store) Create(m Meta) (*Investigation, error) {
	m.ID, m.StartedAt = string(observations.RandomID()), s.now().UTC()
	for _, dir := range []string{s.dir, filepath.Join(s.dir, targetsDir), filepath.Join(s.dir, liveDir)} {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, explain(err)
		}
	}
	root, err := osfile.OpenDir(s.dir)
	if err != nil {
		return nil, explain(err)
	}
	defer func() { _ = root.Close() }()
	s.prune(root)
	for _, dir := range []string{m.ID, m.ID + "/" + dirsDir, m.ID + "/" + filesDir, m.ID + "/" + ordersDir} {
		if err := root.Mkdir(dir, 0o700); err != nil {
			return nil, explain(err)
		}
	}
	err = writeJSON(root, m.ID+"/"+metaName, m.ID+"/tmp", m)
	if err == nil {
		err = writeJSON(root, targetFile(m.Identity, m.Target), targetsDir+"/tmp-"+m.ID, pointer{m.Target, m.ID})
	}
	if err != nil {
		_ = root.RemoveAll(m.ID)
		return nil, explain(err)
	}
	return s.Get(m.Identity, m.ID)
}

// explain says what an error of the store means for an investigation; nil stays nil.
func explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("the investigation cannot be kept, the store cannot be written to: %w", err)
	}
	return fmt.Errorf("the investigation cannot be kept: %w", err)
}

// Get returns the investigation of an ID and counts as a use; ErrUnknown for one of another identity.
func (s *Store) Get(identity, id string) (*Investigation, error) {
	i, err := s.Peek(identity, id)
	if err == nil {
		now := s.now()
		_ = i.root.Chtimes(metaName, now, now)
	}
	return i, err
}

// Peek is Get without counting as a use.
func (s *Store) Peek(identity, id string) (*Investigation, error) {
	if _, err := observations.ParseID(observations.Prefix + id); err != nil {
		return nil, ErrUnknown
	}
	id = strings.ToLower(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.known[id]
	if i == nil {
		root, err := osfile.OpenDir(filepath.Join(s.dir, id))
		if err != nil {
			return nil, ErrUnknown
		}
		i = &Investigation{store: s, root: root}
		if len(s.known) >= maxRemember {
			s.known = map[string]*Investigation{} // their files are closed when nobody uses them any more
		}
		s.known[id] = i
	}
	m, err := i.Meta()
	if err != nil || m.Identity != identity {
		return nil, ErrUnknown
	}
	return i, nil
}

// List returns the investigations of an identity ("" for all), the last used first.
func (s *Store) List(identity string) ([]Meta, error) {
	root, err := osfile.OpenDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	names, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, err
	}
	var all []Meta
	for _, e := range names {
		if m, err := readMeta(root, e.Name()); err == nil && m.ID == e.Name() && (identity == "" || m.Identity == identity) {
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b Meta) int {
		return cmp.Or(b.LastUsed.Compare(a.LastUsed), cmp.Compare(a.ID, b.ID))
	})
	return all, nil
}

// readMeta returns the description of the investigation in a directory; ErrUnknown if it is missing or damaged.
func readMeta(root *os.Root, dir string) (m Meta, err error) {
	name := path.Join(dir, metaName)
	ok, err := readJSON(root, name, &m)
	if err == nil && !ok {
		err = ErrUnknown
	}
	if fi, e := root.Lstat(name); e == nil {
		m.LastUsed = fi.ModTime()
	}
	return m, err
}

// Remove deletes an investigation.
func (s *Store) Remove(identity, id string) error {
	i, err := s.Peek(identity, id)
	if err != nil {
		return err
	}
	m, err := i.Meta()
	if err != nil {
		return err
	}
	root, err := osfile.OpenDir(s.dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	s.mu.Lock()
	delete(s.known, m.ID)
	s.mu.Unlock()
	return remove(root, m)
}

// remove deletes the files of an investigation, and the name of its target unless that is of another one.
func remove(root *os.Root, m Meta) error {
	target := targetFile(m.Identity, m.Target)
	var p pointer
	if ok, _ := readJSON(root, target, &p); ok && p.ID == m.ID {
		_ = root.Remove(target)
	}
	return root.RemoveAll(m.ID)
}

// prune removes investigations that nobody used for 90 days; and if all together are over the limit, the least recently
// used ones, but for those of the last minute.
func (s *Store) prune(root *os.Root) {
	all, err := s.List("")
	if err != nil {
		return
	}
	var size int64
	for _, m := range all { // the last used first
		size += sizeOf(root, m.ID)
		unused := s.now().Sub(m.LastUsed)
		if unused >= maxAge || s.limit > 0 && size > s.limit && unused >= time.Minute {
			_ = remove(root, m)
		}
	}
}

// sizeOf returns the bytes of an investigation's files.
func sizeOf(root *os.Root, id string) (size int64) {
	_ = fs.WalkDir(root.FS(), id, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			if fi, err := e.Info(); err == nil {
				size += fi.Size()
			}
		}
		return nil // what is gone has no size
	})
	return size
}

// Process returns a name for this process that stays locked as long as it lives, for the leases of orders.
func (s *Store) Process() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live != nil {
		return s.proc, nil
	}
	proc := fmt.Sprintf("%d-%s", os.Getpid(), observations.RandomID())
	f, err := os.OpenFile(filepath.Join(s.dir, liveDir, proc), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", explain(err)
	}
	if ok, err := osfile.TryLock(f, true); err != nil || !ok {
		_ = f.Close()
		return "", explain(errors.Join(err, errors.New("its lock is taken")))
	}
	s.live, s.proc = f, proc
	return proc, nil
}

// own reports whether a name is that of this process.
func (s *Store) own(proc string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live != nil && proc == s.proc
}

// Lives reports whether the process of that name still runs. The file of one that has ended is removed.
func (s *Store) Lives(proc string) bool {
	if proc == "" || strings.ContainsAny(proc, `/\`) {
		return false
	}
	if s.own(proc) {
		return true
	}
	name := filepath.Join(s.dir, liveDir, proc)
	f, err := os.OpenFile(name, os.O_RDWR|osfile.Nonblock, 0)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	free, err := osfile.TryLock(f, true)
	if free {
		_ = os.Remove(name)
		osfile.Unlock(f)
	}
	return err == nil && !free
}
