package backend

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/secrets"
)

// Limits of a sidecar, in bytes unless they say otherwise.
const (
	version       = 1
	MaxSidecar    = 32 << 10
	MaxTombstone  = 4 << 10
	maxName       = 200
	maxArgs       = 4 << 10
	maxOrigin     = 4 << 10
	maxCounts     = 64
	maxCanonical  = 1 << 20 // bytes; longer arguments are hashed unsorted: sorting keys takes 50× their size in memory
	tombstoneArgs = 1 << 10
)

// ErrForeign is returned for a sidecar of an unknown version, which is left alone.
var ErrForeign = errors.New("written by another version")

// CallHash identifies a call: the sha256, in hex, of the tool's name and of its arguments with sorted keys and without
// blanks.
func CallHash(tool string, args json.RawMessage) string {
	h := sha256.New()
	h.Write([]byte(tool))
	h.Write([]byte{0})
	h.Write(canonical(args))
	return hex.EncodeToString(h.Sum(nil))
}

func canonical(args json.RawMessage) []byte {
	if len(args) <= maxCanonical {
		var v any
		d := json.NewDecoder(bytes.NewReader(args))
		d.UseNumber() // keep digits as given
		if d.Decode(&v) == nil && !d.More() {
			if b, err := json.Marshal(v); err == nil {
				return b
			}
		}
	}
	var b bytes.Buffer
	if json.Compact(&b, args) != nil {
		return args
	}
	return b.Bytes()
}

// NewObservation returns a sidecar whose bytes are not counted yet.
func NewObservation(id ID, m Provenance, at time.Time) Observation {
	return Observation{
		V: version, ID: id, Owner: m.Owner,
		Tool: content.ClipEnd(m.Tool, 200), Name: content.ClipEnd(m.Name, maxName),
		Args: content.ClipJSON(m.Args, maxArgs), CallHash: CallHash(m.Tool, m.Args),
		Origin: clipList(m.Origin, maxOrigin), Created: at.UTC().Round(0),
	}
}

func clipList(list []string, max int) []string {
	var kept []string
	for _, s := range list {
		s = content.ClipEnd(s, 1024)
		if max -= len(s) + 3; max < 0 {
			break
		}
		kept = append(kept, s)
	}
	return kept
}

// Bounded limits the texts and counts to what JSON and a sidecar can hold.
func (s Stats) Bounded() Stats {
	for _, text := range []*string{&s.Kind, &s.Ext, &s.Status, &s.Vocabulary} {
		*text = content.ClipEnd(*text, 40)
	}
	if math.IsNaN(s.TokensMargin) || math.IsInf(s.TokensMargin, 0) {
		s.TokensMargin = 0
	}
	var counts map[string]float64
	for name, n := range s.Counts {
		if len(counts) < maxCounts && len(name) <= 100 && !math.IsNaN(n) && !math.IsInf(n, 0) {
			if counts == nil {
				counts = map[string]float64{}
			}
			counts[name] = n
		}
	}
	s.Counts = counts
	return s
}

// Encode returns a sidecar of at most max bytes. If it is too long it truncates the receipt first, then the other long
// fields.
func (o Observation) Encode(max int) ([]byte, error) {
	cuts := []func(){
		func() {},
		func() { o.Stats.Receipt = content.ClipEnd(o.Stats.Receipt, max/2) },
		func() { o.Stats.Receipt = "" },
		func() { o.Stats.State = nil },
		func() { o.Stats.Counts = nil },
		func() { o.Origin, o.Args = clipList(o.Origin, 256), content.ClipJSON(o.Args, 512) },
		func() { o.Origin, o.Args, o.Name, o.Cause = nil, nil, "", content.ClipEnd(o.Cause, 100) },
	}
	for _, cut := range cuts {
		cut()
		b, err := content.PlainJSON(o)
		if err != nil {
			return nil, fmt.Errorf("write sidecar: %w", err)
		}
		if len(b) < max {
			return append(b, '\n'), nil
		}
	}
	return nil, fmt.Errorf("write sidecar: over %d bytes", max)
}

// Renamed returns a sidecar with another name. It cuts nothing to make room: then it is an error, as for a longer name.
func (o Observation) Renamed(name string) ([]byte, error) {
	if len(name) > maxName {
		return nil, fmt.Errorf("rename obs:%s: the name has %d bytes, at most %d", o.ID, len(name), maxName)
	}
	o.Name = name
	b, err := content.PlainJSON(o)
	if err == nil && len(b) >= MaxSidecar {
		err = fmt.Errorf("rename obs:%s: its sidecar has no room for this name", o.ID)
	}
	return append(b, '\n'), err
}

// Tombstone returns the sidecar that replaces an expired observation. It names the call to repeat.
func (o Observation) Tombstone(why string, at time.Time) Observation {
	at = at.UTC().Round(0)
	o.Expired, o.Why = &at, why
	if len(o.Args) > 0 {
		// A tombstone outlives its observation by months: mask secrets in the arguments, which are at most 4 KiB.
		// Masking is best effort and drops anything but JSON.
		o.Args = content.ClipJSON(secrets.New().JSON(o.Args), tombstoneArgs)
	}
	o.Origin = clipList(o.Origin, 512)
	o.Cause = content.ClipEnd(o.Cause, 200)
	o.Stats.Receipt, o.Stats.Counts, o.Stats.State = "", nil, nil
	return o
}

// Decode validates every field of a sidecar that the store relies on.
func Decode(b []byte, id ID) (Observation, error) {
	var o Observation
	damaged := json.Unmarshal(b, &o)
	if damaged != nil || o.V != version { // a sidecar of another version may have another shape
		var head struct {
			V int `json:"v"`
		}
		if json.Unmarshal(b, &head) == nil && head.V != version {
			return Observation{}, fmt.Errorf("%w (v %d)", ErrForeign, head.V)
		}
		return Observation{}, errors.New("its sidecar is damaged")
	}
	if of, ok := ParseDataName(o.File); !ok || of != id || o.ID != id || o.Bytes < 0 || len(o.SHA256) != 2*sha256.Size {
		return Observation{}, errors.New("its sidecar is damaged")
	}
	return o, nil
}

// NotFound returns the error for an ID that the store, or this owner, does not have.
func NotFound(id ID) error { return fmt.Errorf("%w: obs:%s", ErrNotFound, id) }
