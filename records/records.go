// Package records keeps small things of owners between calls: accounts of budgets, answers of ask, investigations,
// what is remembered of other servers, maps of compacted sessions, the journal of changed files. It keeps neither
// outputs nor the trace.
package records

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"
)

// Store keeps records. It is safe for concurrent use, also by several processes. None of its methods waits longer than
// [Kind.Wait].
type Store interface {
	// Get returns a record. The error wraps [fs.ErrNotExist] if there is none, and [ErrDamaged] if it cannot be one.
	Get(k Key) (Record, error)
	// List returns the records whose names match a pattern of [path.Match] without classes, in no order; without bodies
	// unless they are asked for, and then with those that cannot be read marked as damaged. A directory does not know
	// owners: it returns the records of all.
	List(k Key, pattern string, bodies bool) ([]Record, error)
	// Put writes a record, whether there is one or not.
	Put(k Key, body []byte) error
	// Update calls change with a record, whose Body is nil if there is none, and writes what change returns, nothing if
	// that is nil. A damaged record is marked: change decides whether it begins anew. No other process changes the record
	// meanwhile, or change is called again with what that has written.
	Update(k Key, change func(old Record) ([]byte, error)) error
	// Append adds whole lines to a record. A line that a dead process left torn is ended first.
	Append(k Key, lines []byte) error
	// Touch counts as a use.
	Touch(k Key) error
	// Delete removes a record, and those whose names begin with its name and a slash. A missing one is no error.
	Delete(k Key) error
	// Lock keeps other callers and processes from locking the same record until unlock is called; see [Kind.Wait].
	Lock(k Key) (unlock func(), err error)

	// Where says where people find a record, for errors.
	Where(k Key) string

	// Process returns a name for this process that is alive as long as it is.
	Process() (string, error)
	// Alive reports whether the process of a name still runs.
	Alive(process string) bool
	// Close ends what is alive. The store must not be used afterwards.
	Close()
}

// Errors of a store.
var (
	ErrDamaged = errors.New("it is too long, or no regular file")
	ErrBusy    = errors.New("another process holds the lock")
	ErrFull    = errors.New("too long")
)

// Key names a record.
type Key struct {
	Kind  *Kind
	Owner string // whose it is; "": the operator's
	Name  string // letters, digits, "-", "_" and dots; elements of a path are separated by slashes
}

// Record is what is kept.
type Record struct {
	Name  string // as in its key
	Owner string // as in its key; "" in a directory
	Body  []byte
	Size  int64     // of Body in bytes
	Used  time.Time // last change or Touch

	Damaged bool // there is one that cannot be read, and Body is nil; only List and Update set it
}

// Kind is a kind of records.
type Kind struct {
	Name  string
	Limit int64         // bytes of a body
	Age   time.Duration // since the last use, after which a record may be removed; 0: it stays
	Most  int           // records of this kind of one owner; the least recently used are removed beyond it; 0: any number
	Wait  time.Duration // how long Lock and Update wait for another process; then the error is ErrBusy

	large    map[string]int64         // limits of records whose last element has this name
	dir, ext string                   // of its files below the store
	lock     func(name string) string // the file in dir that is locked
}

const day = 24 * time.Hour

// The kinds.
var (
	Account = &Kind{
		Name: "account", Limit: 64 << 10, Age: 30 * day, Most: 1000, Wait: time.Second, dir: "accounts", ext: ".json", lock: one,
	}
	Call = &Kind{
		Name: "call", Limit: 64 << 10, Age: 30 * day, Most: 1000, Wait: time.Second, dir: "accounts", ext: ".call", lock: one,
	}
	Answer   = &Kind{Name: "answer", Limit: 1 << 20, Age: 30 * day, Wait: time.Second, dir: "answers", ext: ".json", lock: one}
	Upstream = &Kind{Name: "upstream", Limit: 64 << 20, Wait: 5 * time.Second, dir: "upstreams", ext: ".json", lock: each}
	// Secret are keys of the store. Whoever can read one can act as the server.
	Secret = &Kind{Name: "secret", Limit: 4 << 10, Wait: 5 * time.Second, dir: "state", lock: each}
	// Link are links that were used and must not be again.
	Link = &Kind{Name: "link", Limit: 4 << 10, Age: 30 * day, Wait: 5 * time.Second, dir: "links", ext: ".json", lock: one}
	Map  = &Kind{Name: "map", Limit: 64 << 20, dir: "maps", ext: ".json", lock: one}
	// Change are changes of files that are under way, or whose old content is pinned.
	Change = &Kind{Name: "change", Limit: 4 << 10, Age: 30 * day, Wait: time.Second, dir: "changes", ext: ".json", lock: one}
	// Investigation has several records for each: ID/meta.json and so on.
	Investigation = &Kind{
		Name: "investigation", Limit: 1 << 20, Wait: 20 * time.Second, dir: "investigations", lock: first,
		large: map[string]int64{"scan.json": 1 << 30, "shown_report.json": 1 << 30, "flags.jsonl": 16 << 20, "investigation.log": 16 << 20},
	}
)

func one(string) string       { return "lock" }
func each(name string) string { return name + ".lock" }

// first is the lock of all records whose names have the same first element.
func first(name string) string {
	head, _, _ := strings.Cut(name, "/")
	return head + "/lock"
}

// LimitOf returns how many bytes a record of a name may have.
func (k *Kind) LimitOf(name string) int64 {
	if n, ok := k.large[path.Base(name)]; ok {
		return n
	}
	return k.Limit
}

// check returns an error for a body that could not be read again.
func (k Key) check(body []byte) error {
	if most := k.Kind.LimitOf(k.Name); int64(len(body)) > most {
		return fmt.Errorf("%w: it has %d bytes, and may have %d", ErrFull, len(body), most)
	}
	return nil
}

// Once returns the body of a record that is made if there is none: of several processes that begin at once, all use the
// first. made returns the body of a new one.
func Once(s Store, k Key, made func() []byte) (body []byte, err error) {
	old, err := s.Get(k)
	if !errors.Is(err, fs.ErrNotExist) {
		return old.Body, err
	}
	err = s.Update(k, func(old Record) ([]byte, error) {
		if body = old.Body; body != nil {
			return nil, nil
		}
		body = made()
		return body, nil
	})
	return body, err
}

// Hash returns a name for words that come from clients, which are never a part of a name themselves.
func Hash(words ...string) string {
	h := sha256.New()
	for _, w := range words {
		_, _ = fmt.Fprintf(h, "%d:%s,", len(w), w)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
