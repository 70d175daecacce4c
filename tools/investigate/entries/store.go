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
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/records"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Prefix begins the name of an investigation, and OrderPrefix that of an order.
const (
	Prefix      = "inv:"
	OrderPrefix = "ord:"
)

const (
	maxAge     = 90 * 24 * time.Hour // since the last use
	targetsDir = "targets"
	metaName   = "meta.json"
	flagsName  = "flags.jsonl"
	logName    = "investigation.log"
	dirsDir    = "dirs"
	filesDir   = "files"
	ordersDir  = "orders"
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
	records  records.Store
	limit    int64 // bytes of all investigations; 0: none
	readOnly bool
	now      func() time.Time
}

// Open returns the investigations among some records. With readOnly the views of an investigation work, and each
// computes again what it cannot write.
func Open(r records.Store, limit int64, readOnly bool) *Store {
	return &Store{records: r, limit: limit, readOnly: readOnly, now: time.Now}
}

// key names a record of investigations.
func key(identity, name string) records.Key {
	return records.Key{Kind: records.Investigation, Owner: identity, Name: name}
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
	var p pointer
	if ok, err := s.read(key(identity, targetFile(identity, target)), &p); err != nil {
		return nil, err
	} else if !ok || p.Target != target {
		return nil, ErrUnknown // missing, or damaged: a new one is made
	}
	return s.Get(identity, p.ID)
}

// Create makes a new investigation and names it in targets/. An older one of the target stays under its ID.
func (s *Store) Create(m Meta) (*Investigation, error) {
	m.ID, m.StartedAt = string(observations.RandomID()), s.now().UTC()
	s.prune()
	err := s.write(key(m.Identity, m.ID+"/"+metaName), m)
	if err == nil {
		err = s.write(key(m.Identity, targetFile(m.Identity, m.Target)), pointer{m.Target, m.ID})
	}
	if err != nil {
		_ = s.records.Delete(key(m.Identity, m.ID))
		return nil, explain(err)
	}
	return s.Get(m.Identity, m.ID)
}

// read reads a record that is JSON. ok is false if it is missing or damaged.
func (s *Store) read(k records.Key, v any) (ok bool, err error) {
	r, err := s.records.Get(k)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, records.ErrDamaged):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read %s of the investigation: %w", path.Base(k.Name), err)
	}
	return json.Unmarshal(r.Body, v) == nil, nil
}

func (s *Store) write(k records.Key, v any) error {
	b, err := content.PlainJSON(v) // an escape would take six bytes for one
	if err != nil {
		return err
	}
	b = append(b, '\n')
	if most := records.Investigation.LimitOf(k.Name); int64(len(b)) > most {
		return fmt.Errorf("%s would have %d bytes, at most %d can be read again: hand in less", path.Base(k.Name), len(b), most)
	}
	return s.records.Put(k, b)
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
		_ = s.records.Touch(i.key(metaName))
	}
	return i, err
}

// Peek is Get without counting as a use.
func (s *Store) Peek(identity, id string) (*Investigation, error) {
	if _, err := observations.ParseID(observations.Prefix + id); err != nil {
		return nil, ErrUnknown
	}
	i := &Investigation{store: s, identity: identity, id: strings.ToLower(id)}
	if m, err := i.Meta(); err != nil || m.Identity != identity {
		return nil, ErrUnknown
	}
	return i, nil
}

// List returns the investigations of an identity ("" for all), the last used first.
func (s *Store) List(identity string) ([]Meta, error) {
	found, err := s.records.List(key(identity, ""), "*/"+metaName, true)
	if err != nil {
		return nil, err
	}
	var all []Meta
	for _, r := range found {
		if m, ok := parseMeta(r); ok && m.ID == path.Dir(r.Name) && (identity == "" || m.Identity == identity) {
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b Meta) int {
		return cmp.Or(b.LastUsed.Compare(a.LastUsed), cmp.Compare(a.ID, b.ID))
	})
	return all, nil
}

func parseMeta(r records.Record) (m Meta, ok bool) {
	ok = json.Unmarshal(r.Body, &m) == nil
	m.LastUsed = r.Used
	return m, ok
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
	return s.remove(m)
}

// remove deletes the records of an investigation, and the name of its target unless that is of another one.
func (s *Store) remove(m Meta) error {
	target := key(m.Identity, targetFile(m.Identity, m.Target))
	var p pointer
	if ok, _ := s.read(target, &p); ok && p.ID == m.ID {
		_ = s.records.Delete(target)
	}
	return s.records.Delete(key(m.Identity, m.ID))
}

// prune removes investigations that nobody used for 90 days; and if all together are over the limit, the least recently
// used ones, but for those of the last minute.
func (s *Store) prune() {
	all, err := s.List("")
	if err != nil {
		return
	}
	var size int64
	for _, m := range all { // the last used first
		size += s.sizeOf(m)
		unused := s.now().Sub(m.LastUsed)
		if unused >= maxAge || s.limit > 0 && size > s.limit && unused >= time.Minute {
			_ = s.remove(m)
		}
	}
}

// sizeOf returns the bytes of an investigation.
func (s *Store) sizeOf(m Meta) (size int64) {
	for _, pattern := range []string{m.ID + "/*", m.ID + "/*/*"} {
		list, _ := s.records.List(key(m.Identity, ""), pattern, false) // what is gone has no size
		for _, r := range list {
			size += r.Size
		}
	}
	return size
}
