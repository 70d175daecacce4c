// Package observations stores the output of tools: immutable files with a sidecar, opened by ID, bounded by quota and
// age, shared by several processes.
//
// Nothing changes after it is committed, and no observation is opened by its path.
//
// The files of a store:
//
//	observations/<tool>_<YYYYMMDDTHHMMSS>_<id>.<ext>   the bytes, as the tool wrote them
//	observations/<id>.json                             the sidecar; its mtime is the last use
//	observations/<id>.lines                            newlines and runes per 64 KiB; rebuilt if missing
//	observations/<id>.pin                              exempts it from age and quota
//	tmp/<process>.live                                 locked while that process is alive
//	tmp/<process>_<id>.{data,lines,json,gone}          what that process is writing or removing
//	state/quota.json                                   the bytes each writer reserved, under a file lock
//
// An observation exists once its sidecar is renamed into place, the last step of a commit. The files that a dead
// process left in tmp/ and its reservations in the quota file name the IDs it was working on, so a sweep finds its
// leftovers without scanning the whole store.
//
// With [Options.Fsync] the three files are synced before they are renamed, and their directory before and after the
// sidecar is renamed, so a power loss leaves an acknowledged observation whole. Removals and pins are synced as well.
package observations

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Local is the owner of every observation made over stdio or on the command line.
const Local = "local"

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

// Options bound a store. Zero selects the default, a negative value disables the limit.
type Options struct {
	Dir            string           // default [DefaultDir]
	MaxObservation int64            // bytes of one observation; 256 MiB
	Quota          int64            // bytes of all of them with sidecars and indexes, not disk blocks; 1 GiB
	OwnerQuota     int64            // bytes of those of one owner; no limit
	MinFree        int64            // bytes that must stay free on the disk; 1 GiB
	MaxAge         time.Duration    // since last use; 7 days
	Fsync          bool             // survive power loss, not only a crash
	Now            func() time.Time // time.Now
}

// Provenance describes the call that produced an observation.
type Provenance struct {
	Owner  string          // default [Local]
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

// ExpiredError names the call that made an expired observation, so that it can be repeated.
type ExpiredError struct {
	Observation Observation // the tombstone
}

// Error names the ID, when and why it expired, and the call to repeat, in at most about 400 bytes.
func (e *ExpiredError) Error() string {
	o := e.Observation
	if o.Why == whyReplaced && o.By != "" {
		return "obs:" + string(o.ID) + " was replaced by obs:" + string(o.By) + ", which begins with all of it: take that"
	}
	text := "obs:" + string(o.ID) + " expired"
	if o.Expired != nil {
		text += " on " + o.Expired.UTC().Format("2006-01-02 15:04") + " UTC"
	}
	switch o.Why {
	case whyAge:
		text += " (not used for too long)"
	case whyQuota:
		text += " (it made room for newer ones)"
	case whyRemoved:
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
	whyAge      = "age"
	whyQuota    = "quota"
	whyRemoved  = "removed"
	whyReplaced = "replaced"
)

// HasName reports whether match accepts the ID, the name, the tool or the file of an observation. A "/" in one of them
// is passed as "∕", because each is a single name.
func (o *Observation) HasName(match func(string) bool) bool {
	return slices.ContainsFunc([]string{string(o.ID), o.Name, o.Tool, o.File}, func(name string) bool {
		return name != "" && match(strings.ReplaceAll(name, "/", "∕"))
	})
}
