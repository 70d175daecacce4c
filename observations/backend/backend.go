// Package backend is what keeps observations: the interface, and the types, errors and formats that all implementations
// share. Package files implements it for a directory.
package backend

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Backend keeps observations and their bytes, for all processes that share it. Its errors are those of this package.
type Backend interface {
	// Create begins an observation under a new ID. It stores nothing yet.
	Create(p Provenance, at time.Time) (Writer, error)
	// CreateAs is Create under a given ID. If there is or was an observation of this ID the error is fs.ErrExist.
	CreateAs(id ID, p Provenance, at time.Time) (Writer, error)
	// Stat does not count as use. Another owner's observation is ErrNotFound, an expired one an [ExpiredError].
	Stat(owner string, id ID) (Observation, error)
	// Owner returns the owner, also of an expired observation, for callers who may read the whole store.
	Owner(id ID) (string, error)
	// Open opens the bytes, which does not count as use. No process removes them while they are open.
	Open(owner string, id ID) (Observation, Blob, error)
	// Use notes a use at a time. An error counts for nothing: the caller goes on reading.
	Use(id ID, at time.Time) error
	// Listing returns the observations of an owner ("": all) by ID, without receipts; with tombstones also those, and
	// what has lost its bytes. No other damaged one is listed. With torn it adds the IDs of Damaged as of the same
	// moment; damaged is nil if they cannot be found out. The observations are shared: nobody may change them.
	Listing(owner string, tombstones, torn bool) (list []*Observation, damaged []ID, err error)
	// IDs returns those of all owners that did not expire. It is cheap, as is ModTime.
	IDs() (map[ID]bool, error)
	// ModTime changes when any process adds or removes an observation; changes within a few milliseconds may share one.
	ModTime() (time.Time, error)
	Usage() (Usage, error)
	// Pin exempts an observation from age and quota; Pin(…, false) undoes it.
	Pin(owner string, id ID, pinned bool) error
	// Rename changes the name of an observation, at most 200 bytes, and nothing else. It does not count as use.
	Rename(owner string, id ID, name string) error
	// Remove leaves a tombstone, also of what is pinned or open: why is one of the Why… constants, by what replaces it.
	Remove(owner string, id ID, why string, by ID) error
	// Prune expires what is older than the maximum age, then the least recently used until the bytes of those kept are
	// within the quota. Pinned ones, those used within the last minute and open ones stay. dry only counts.
	Prune(dry bool) (Pruned, error)
	// Damaged lists incomplete observations, but none that is being written or removed.
	Damaged() ([]ID, error)
	// RemoveDamaged deletes what is left of one that Damaged lists, without a tombstone; any other is ErrNotFound.
	RemoveDamaged(id ID) error
	// Unwritable returns why the store was opened for reading only. Recordings fail until the cause has passed.
	Unwritable() error
	// Close closes the store, after its writers and blobs.
	Close() error
}

// Writer stores the bytes of one observation. Not safe for concurrent use.
type Writer interface {
	ID() ID
	// Room returns how many of the next n bytes may be written, and reserves them: up to ahead bytes if there is room.
	// If that is less than n, or too little for a commit, the error says why (ErrNoRoom); after any other error nothing
	// can be committed.
	Room(n, ahead int64) (int64, error)
	// Write appends bytes for which there is room. It fails only if the disk or network does.
	Write(b []byte) (int, error)
	ReadAt(b []byte, off int64) (int, error) // what was written, also after Commit
	// Commit makes the observation exist, once for all processes. It returns it as stored, with Used: now, unless it has
	// one because it is a copy.
	Commit(o Observation, lines []byte) (Observation, error)
	// Discard removes what was not committed and closes what ReadAt opened. It may be called again.
	Discard() error
}

// Blob are the bytes of an observation, open for reading. Safe for concurrent use.
type Blob interface {
	io.ReaderAt
	io.Closer
	// Lines returns the content of the line index; an error or a damaged one has the caller rebuild it and call SetLines.
	Lines() ([]byte, error)
	SetLines(lines []byte)
	// SyscallConn gives access to a file's descriptor; errors.ErrUnsupported where there is no file.
	SyscallConn() (syscall.RawConn, error)
	// Path returns the path of a file with all bytes. It may be a copy, which stays for a minute at least; [ErrNoRoom] if
	// there is no room for one.
	Path() (string, error)
}

// Errors that callers test for. ErrExpired is returned as an [ExpiredError].
var (
	ErrNotFound  = errors.New("no such observation")
	ErrExpired   = errors.New("observation expired")
	ErrMalformed = errors.New("not an observation ID")
	ErrNoRoom    = errors.New("no room in the store")
	// ErrOwnerQuota is an ErrNoRoom: the owner has used up [Options.OwnerQuota].
	ErrOwnerQuota error = ownerQuotaError{}
	ErrTooLarge         = errors.New("too large for one observation")
	ErrDamaged          = errors.New("observation is damaged")
)

// Provenance describes the call that produced an observation.
type Provenance struct {
	Owner  string          // default "local"
	Tool   string          // "search", "keep", …
	Name   string          // free text shown in lists (keep --name); may be empty; at most 200 bytes are stored
	Args   json.RawMessage // as passed to the tool
	Origin []string        // sources it was derived from: "obs:…", paths; at most 4 KiB of them are stored
}

// Stats holds the results of one pass over the bytes. It is stored in the sidecar.
type Stats struct {
	Kind         string  `json:"kind,omitempty"`         // content.Kind
	Ext          string  `json:"ext,omitempty"`          // of the data file, without dot
	Lines        int64   `json:"lines"`                  // a last line without newline counts
	Chars        int64   `json:"chars"`                  // runes
	LongestLine  int64   `json:"longest_line,omitempty"` // runes
	Tokens       int64   `json:"tokens"`
	TokensMargin float64 `json:"tokens_margin,omitempty"` // 0: exact; 0.01: ±1 %
	Vocabulary   string  `json:"vocabulary,omitempty"`    // the vocabulary by which tokens were counted; "": unknown
	// the factor by which the count was multiplied for a model without a public vocabulary; 0: none was used
	Factor      float64       `json:"factor,omitempty"`
	FactorError float64       `json:"factor_error,omitempty"` // like TokensMargin, and included in it
	Status      string        `json:"status,omitempty"`       // success | failure | timeout | cancelled
	Duration    time.Duration `json:"duration_ns,omitempty"`
	// the receipt text as returned, for observation://ID/receipt
	Receipt string             `json:"receipt,omitempty"`
	Counts  map[string]float64 `json:"counts,omitempty"` // total_matches, …
	// bytes that were written to standard error, as pairs of offsets, the second one behind the last byte
	Stderr [][2]int64 `json:"stderr,omitempty"`
	// what the tool needs to go on with this output; dropped if the sidecar has no room for it
	State json.RawMessage `json:"state,omitempty"`
}

// Observation is the content of a sidecar: all that is known of one stored output.
type Observation struct {
	V        int             `json:"v"` // always 1
	ID       ID              `json:"id"`
	Owner    string          `json:"owner"`
	Tool     string          `json:"tool"`
	Name     string          `json:"name,omitempty"`
	Args     json.RawMessage `json:"args,omitempty"` // at most 4 KiB, else truncated to a JSON string
	CallHash string          `json:"call_hash"`      // see [CallHash]
	Origin   []string        `json:"origin,omitempty"`
	Created  time.Time       `json:"created"` // UTC
	Used     time.Time       `json:"-"`       // last use: the sidecar's mtime
	File     string          `json:"file"`    // name of the data file, without directory
	Bytes    int64           `json:"bytes"`
	Dropped  int64           `json:"dropped,omitempty"` // bytes beyond the cap or the quota, not stored
	Cause    string          `json:"cause,omitempty"`   // why bytes were dropped
	SHA256   string          `json:"sha256"`            // hex, of the stored bytes
	Stats    Stats           `json:"seen"`
	Expired  *time.Time      `json:"expired,omitempty"` // set in a tombstone
	Why      string          `json:"why,omitempty"`     // in a tombstone: "age", "quota", "removed" or "replaced"
	By       ID              `json:"by,omitempty"`      // in a tombstone: what it was replaced by
	Pinned   bool            `json:"-"`
	// its data file is missing although it did not expire; set only by a List with tombstones
	Lost bool `json:"-"`
}

type ownerQuotaError struct{}

func (ownerQuotaError) Error() string { return "quota of this identity" }

// Is makes errors.Is(err, ErrNoRoom) report true.
func (ownerQuotaError) Is(target error) bool { return target == ErrNoRoom }

// ExpiredError names the call that made an expired observation, so that it can be repeated.
type ExpiredError struct {
	Observation Observation // the tombstone
}

// Error names the ID, when and why it expired, and the call to repeat, in at most about 400 bytes.
func (e *ExpiredError) Error() string {
	o := e.Observation
	if o.Why == WhyReplaced && o.By != "" {
		return "obs:" + string(o.ID) + " was replaced by obs:" + string(o.By) + ", which begins with all of it: take that"
	}
	text := "obs:" + string(o.ID) + " expired"
	if o.Expired != nil {
		text += " on " + o.Expired.UTC().Format("2006-01-02 15:04") + " UTC"
	}
	switch o.Why {
	case WhyAge:
		text += " (not used for too long)"
	case WhyQuota:
		text += " (it made room for newer ones)"
	case WhyRemoved:
		text += " (removed)"
	}
	text += "; its data was deleted"
	if o.Tool == "" {
		return text
	}
	text += "; it came from " + content.ClipEnd(o.Tool, 80)
	if o.Name != "" {
		text += " (" + content.ClipEnd(o.Name, 80) + ")"
	}
	at := " on " + o.Created.UTC().Format("2006-01-02 15:04") + " UTC"
	if len(o.Args) <= len("{}") { // piped in: no call to repeat
		return text + at
	}
	return text + " " + content.ClipEnd(string(o.Args), 200) + at + ": repeat that call"
}

// Is makes errors.Is(err, ErrExpired) report true.
func (e *ExpiredError) Is(target error) bool { return target == ErrExpired }

// Reasons why an observation became a tombstone.
const (
	WhyAge      = "age"
	WhyQuota    = "quota"
	WhyRemoved  = "removed"
	WhyReplaced = "replaced"
)

// HasName reports whether match accepts the ID, the name, the tool or the file of an observation. A "/" in one of them
// is passed as "∕", because each is a single name.
func (o *Observation) HasName(match func(string) bool) bool {
	return slices.ContainsFunc([]string{string(o.ID), o.Name, o.Tool, o.File}, func(name string) bool {
		return name != "" && match(strings.ReplaceAll(name, "/", "∕"))
	})
}

// Defaults of [Options], and what disables a limit.
const (
	DefaultMaxObservation = 256 << 20
	DefaultQuota          = 1 << 30
	DefaultMinFree        = 1 << 30
	DefaultMaxAge         = 7 * 24 * time.Hour

	Unlimited = 1 << 62 // a number of bytes to which the size of a file can be added
)

// Options bound a store. Zero selects the default, a negative value disables the limit.
type Options struct {
	Dir            string           // default [files.DefaultDir]
	MaxObservation int64            // bytes of one observation; 256 MiB
	Quota          int64            // bytes of all of them with sidecars and indexes, not disk blocks; 1 GiB
	OwnerQuota     int64            // bytes of those of one owner; no limit
	MinFree        int64            // bytes that must stay free on the disk; 1 GiB
	MaxAge         time.Duration    // since last use; 7 days
	Fsync          bool             // survive power loss, not only a crash
	Cache          bool             // of another backend: what expires leaves no tombstone
	Now            func() time.Time // time.Now
}

// Limits returns the options with every limit and Now set; a disabled limit is more than there can be, MinFree 0.
func (o Options) Limits() Options {
	o.MaxObservation = limit(o.MaxObservation, DefaultMaxObservation, Unlimited)
	o.Quota = limit(o.Quota, DefaultQuota, Unlimited)
	o.OwnerQuota = limit[int64](o.OwnerQuota, Unlimited, Unlimited)
	o.MinFree = limit(o.MinFree, DefaultMinFree, 0)
	o.MaxAge = limit(o.MaxAge, DefaultMaxAge, 1<<63-1)
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// limit returns the default for 0, none for a negative value, else n.
func limit[T int64 | time.Duration](n, normal, none T) T {
	if n < 0 {
		return none
	}
	return cmp.Or(n, normal)
}

// Ahead returns how many bytes a writer reserves at a time in a store of these [Options.Limits]: 16 MiB, so that a
// stream locks the quota file once in 256 blocks, or fewer in a small store.
func (o Options) Ahead() int64 { return min(16<<20, max(min(o.Quota, o.OwnerQuota)/64, BlockSize)) }

// Usage is what a store holds now.
type Usage struct {
	Observations int   // without tombstones
	Bytes        int64 // data, indexes, sidecars and caches, as counted against the quota
	Quota        int64
	Ahead        int64 // bytes of the quota that each writer reserves beyond what it has written
	Free         int64 // bytes on the disk
}

// Pruned reports the result of a prune.
type Pruned struct {
	Removed   int
	Bytes     int64
	Kept      int
	KeptBytes int64

	// How many of those kept are too old or over the quota, by the reason why they stay.
	Fresh  int // used within the last minute
	Pinned int // counted only while the store is over its quota
	Busy   int // open in some process, or not removable
}

// FormatBytes returns a number of bytes as "1 GiB", "1.5 MiB", "312 bytes".
func FormatBytes(n int64) string {
	units := []string{"GiB", "MiB", "KiB"}
	for i, unit := range units {
		if one := int64(1) << (30 - 10*i); n >= one {
			return strings.TrimSuffix(strconv.FormatFloat(float64(n)/float64(one), 'f', 1, 64), ".0") + " " + unit
		}
	}
	return strconv.FormatInt(n, 10) + " bytes"
}
