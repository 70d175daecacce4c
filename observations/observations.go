// Package observations stores the output of tools under IDs. Nothing changes after it is committed, and no observation
// is opened by its path. The bytes are kept by a [backend.Backend], such as a directory: see package files.
package observations

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations/backend"
	"github.com/mcp-funnel/mcp-funnel/observations/files"
)

// Local is the owner of every observation made over stdio or on the command line.
const Local = "local"

// Prefixes of an ID as text and as a URI, and the defaults of [Options].
const (
	Prefix                = backend.Prefix
	URIPrefix             = backend.URIPrefix
	DefaultMaxObservation = backend.DefaultMaxObservation
	DefaultQuota          = backend.DefaultQuota
	DefaultMinFree        = backend.DefaultMinFree
	DefaultMaxAge         = backend.DefaultMaxAge
)

// Errors that callers test for. ErrExpired is returned as an [ExpiredError].
var (
	ErrNotFound   = backend.ErrNotFound
	ErrExpired    = backend.ErrExpired
	ErrMalformed  = backend.ErrMalformed
	ErrNoRoom     = backend.ErrNoRoom
	ErrOwnerQuota = backend.ErrOwnerQuota
	ErrTooLarge   = backend.ErrTooLarge
	ErrDamaged    = backend.ErrDamaged
)

type (
	// ID names an observation: 12 random characters of Crockford's base32, lower case.
	ID = backend.ID
	// Observation is all that is known of one stored output.
	Observation = backend.Observation
	// Provenance describes the call that produced an observation.
	Provenance = backend.Provenance
	// Stats holds the results of one pass over the bytes.
	Stats = backend.Stats
	// ExpiredError names the call that made an expired observation, so that it can be repeated.
	ExpiredError = backend.ExpiredError
	// Options bound a store. Zero selects the default, a negative value disables the limit.
	Options = backend.Options
	// Pruned reports the result of a prune.
	Pruned = backend.Pruned
	// Usage is what a store holds now.
	Usage = backend.Usage
	// OpenError is why a directory could not be opened.
	OpenError = files.OpenError
	// Cache is a directory in the store that outlives the process, for files that can be made again.
	Cache = files.Cache
)

// IsName reports whether a name begins with either prefix of an observation, in any case. It does not check the ID.
func IsName(source string) bool { return backend.IsName(source) }

// RandomID returns a new ID, also for other things that a caller must not guess.
func RandomID() ID { return backend.RandomID() }

// ParseID accepts "k3v9q2m7x4ab", "obs:k3v9…" and "observation://k3v9…", in any case.
func ParseID(s string) (ID, error) { return backend.ParseID(s) }

// CallHash identifies a call: see [backend.CallHash].
func CallHash(tool string, args json.RawMessage) string { return backend.CallHash(tool, args) }

// DefaultDir returns the default directory: see [files.DefaultDir].
func DefaultDir() (string, error) { return files.DefaultDir() }

// Store is what keeps observations. It is safe for concurrent use, also by several processes.
type Store struct {
	backend.Backend
	files.Directory         // of this machine: that of the observations, or of a cache, which has none to find
	options         Options // with their limits
}

// OpenStore opens a directory: see [files.Open].
func OpenStore(o Options) (*Store, error) {
	s, err := files.Open(o)
	if err != nil {
		return nil, err
	}
	return OpenOn(s, s, o), nil
}

// OpenOn returns a store on a backend, with the limits and the clock of the options. local is the backend itself if
// that is a directory, else the directory that it uses as its cache; Close closes b, which closes that one.
func OpenOn(b backend.Backend, local *files.Store, o Options) *Store {
	return &Store{b, local.For(b), o.Limits()}
}

// MaxObservation returns how many bytes of one observation are stored; without a limit more than there can be.
func (s *Store) MaxObservation() int64 { return s.options.MaxObservation }

// MaxAge returns how long after its last use an observation expires; without a limit longer than there can be.
func (s *Store) MaxAge() time.Duration { return s.options.MaxAge }

// List returns the observations of Listing, newest first. Receipts are left out (they are most of a sidecar): use Stat.
// The slices and maps of an observation are shared: nobody may change them.
func (s *Store) List(owner string, tombstones bool) ([]Observation, error) {
	shared, _, err := s.Listing(owner, tombstones, false)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(shared, Newest)
	list := make([]Observation, len(shared))
	for i, o := range shared {
		list[i] = *o
	}
	return list, nil
}

// Newest compares observations for an order in which the newest is the first.
func Newest(a, b *Observation) int {
	return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID))
}

// Remove deletes the data and leaves a tombstone, even if the observation is pinned or open.
func (s *Store) Remove(owner string, id ID) error {
	return s.Backend.Remove(owner, id, backend.WhyRemoved, "")
}

// Replace removes an observation of which another one holds all; its tombstone names that.
func (s *Store) Replace(owner string, id, by ID) error {
	return s.Backend.Remove(owner, id, backend.WhyReplaced, by)
}
