// Package observations keeps what tools saw: immutable files with a sidecar,
// opened by ID, bounded by quota and age, shared by several processes.
//
// It is not a cache, nor a database: nothing in it is changed after it is
// committed, it knows nothing of MCP, tokens or receipts, and it never hands
// out a path as a way to open something.
//
// What stands in a store:
//
//	observations/<tool>_<YYYYMMDDTHHMMSS>_<id>.<ext>   the bytes, as the tool wrote them
//	observations/<id>.json                             the sidecar; its mtime is the last use
//	observations/<id>.lines                            newlines and runes per 64 KiB; rebuilt where absent
//	observations/<id>.pin                              keeps it from age and quota
//	tmp/<process>.live                                 locked while that process lives
//	tmp/<process>_<id>.{data,lines,json,gone}          what that process has under its hands
//	state/quota.json                                   who reserved how much, under a file lock
//
// An observation exists from the moment its sidecar is renamed into place,
// which is the last thing a commit does. What a dead process left in tmp/ or
// reserved in the quota names the IDs it was working on, so that its leftovers
// are found without looking at the whole store.
//
// With [Options.Fsync] the three files are synced before they are renamed, and
// their directory before and after the sidecar is, so that a loss of power
// leaves an acknowledged observation whole; removals and pins are synced as well.
package observations

import (
	"encoding/json"
	"errors"
	"time"
)

// Local is the owner of everything observed over stdio and on the command line.
const Local = "local"

// Errors a caller branches on. ErrExpired comes as an [ExpiredError].
var (
	ErrNotFound  = errors.New("no such observation")
	ErrExpired   = errors.New("observation expired")
	ErrMalformed = errors.New("not an observation ID")
	ErrNoRoom    = errors.New("no room in the store")
	ErrTooLarge  = errors.New("too large for one observation")
	ErrDamaged   = errors.New("observation is damaged")
)

// Options bound a store. Zero values mean the defaults; negative ones mean no such limit.
type Options struct {
	Dir            string           // default [DefaultDir]
	MaxObservation int64            // bytes of one observation; 256 MiB
	Quota          int64            // bytes of all of them, sidecars and indexes included, not blocks of a disk; 1 GiB
	MinFree        int64            // bytes that stay free on the disk; 1 GiB
	MaxAge         time.Duration    // since last use; 7 days
	Fsync          bool             // survive power loss, not only a crash
	Now            func() time.Time // time.Now
}

// Made says which call an observation comes from.
type Made struct {
	Owner  string          // Local by default
	Tool   string          // "search", "keep", …
	Name   string          // free text shown in lists (keep --name); may be empty; at most 200 bytes are kept
	Args   json.RawMessage // as called
	Origin []string        // sources it was derived from: "obs:…", paths; at most 4 KiB of them are kept
}

// Seen is what one pass over the bytes found; it is written into the sidecar.
type Seen struct {
	Kind         string             `json:"kind,omitempty"`         // content.Kind
	Ext          string             `json:"ext,omitempty"`          // of the data file, without dot
	Lines        int64              `json:"lines"`                  // as a reader counts them: a last line without newline counts
	Chars        int64              `json:"chars"`                  // runes
	LongestLine  int64              `json:"longest_line,omitempty"` // runes
	Tokens       int64              `json:"tokens"`
	TokensMargin float64            `json:"tokens_margin,omitempty"` // 0: exact; 0.01: ±1 %
	Vocabulary   string             `json:"vocabulary,omitempty"`    // of the tokens; "": it was not told
	Factor       float64            `json:"factor,omitempty"`        // that they were estimated by; 0: they were counted in the vocabulary itself
	FactorError  float64            `json:"factor_error,omitempty"`  // as TokensMargin, of which it is a part
	Status       string             `json:"status,omitempty"`        // success | failure | timeout | cancelled
	Duration     time.Duration      `json:"duration_ns,omitempty"`
	Receipt      string             `json:"receipt,omitempty"` // the receipt text that was given, for observation://ID/receipt
	Counts       map[string]float64 `json:"counts,omitempty"`  // total_matches, …
}

// Observation is a sidecar: everything known of one kept output.
type Observation struct {
	V        int             `json:"v"` // 1
	ID       ID              `json:"id"`
	Owner    string          `json:"owner"`
	Tool     string          `json:"tool"`
	Name     string          `json:"name,omitempty"`
	Args     json.RawMessage `json:"args,omitempty"` // at most 4 KiB, else clipped to a JSON string
	CallHash string          `json:"call_hash"`      // see [CallHash]
	Origin   []string        `json:"origin,omitempty"`
	Created  time.Time       `json:"created"` // UTC
	Used     time.Time       `json:"-"`       // last use: the sidecar's mtime
	File     string          `json:"file"`    // name of the data file, no directory
	Bytes    int64           `json:"bytes"`
	Dropped  int64           `json:"dropped,omitempty"` // bytes after the cap or the quota that were not kept
	Cause    string          `json:"cause,omitempty"`   // why bytes were dropped
	SHA256   string          `json:"sha256"`            // hex, of the bytes kept
	Seen     Seen            `json:"seen"`
	Expired  *time.Time      `json:"expired,omitempty"` // set in a tombstone
	Why      string          `json:"why,omitempty"`     // in a tombstone: "age", "quota" or "removed"
	Pinned   bool            `json:"-"`
	Lost     bool            `json:"-"` // its data are gone, though it did not expire: only a list with tombstones looks
}

// ExpiredError says which call made an expired observation, so that it can be repeated.
type ExpiredError struct {
	Observation Observation // the tombstone
}

// Error names the ID, when and why it went, and the call that brings it back; at most about 400 bytes.
func (e *ExpiredError) Error() string {
	o := e.Observation
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
	text += "; its data is gone for good"
	if o.Tool == "" {
		return text
	}
	text += "; it came from " + clip(o.Tool, 80)
	if o.Name != "" {
		text += " (" + clip(o.Name, 80) + ")"
	}
	at := " on " + o.Created.UTC().Format("2006-01-02 15:04") + " UTC"
	if len(o.Args) <= len("{}") { // piped in: there is no call to repeat
		return text + at
	}
	return text + " " + clip(string(o.Args), 200) + at + ": make that call again"
}

// Is makes errors.Is(err, ErrExpired) true.
func (e *ExpiredError) Is(target error) bool { return target == ErrExpired }

// Why an observation has become a tombstone.
const (
	whyAge     = "age"
	whyQuota   = "quota"
	whyRemoved = "removed"
)
