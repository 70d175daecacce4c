package observations

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"time"
)

const (
	version       = 1
	maxSidecar    = 32 << 10
	maxTombstone  = 4 << 10
	maxArgs       = 4 << 10
	maxOrigin     = 4 << 10
	maxCounts     = 64
	maxCanonical  = 1 << 20 // arguments above are hashed as they are: sorting them costs 50× their size
	tombstoneArgs = 1 << 10
)

// errForeign: a sidecar of a version we do not know, left alone.
var errForeign = errors.New("written by another version")

// CallHash is the same for the same call: sha256, in hex, of the tool's name
// and of its arguments with their keys sorted and their blanks removed.
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
		d.UseNumber() // digits as given
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

// newObservation is a sidecar before its bytes are known.
func newObservation(id ID, m Made, at time.Time) Observation {
	return Observation{
		V: version, ID: id, Owner: m.Owner,
		Tool: clip(m.Tool, 200), Name: clip(m.Name, 200),
		Args: clipArgs(m.Args, maxArgs), CallHash: CallHash(m.Tool, m.Args),
		Origin: clipList(m.Origin, maxOrigin), Created: at.UTC().Round(0),
	}
}

// clipArgs keeps arguments that fit as they are, without blanks; others become
// a JSON string of their beginning.
func clipArgs(args json.RawMessage, max int) json.RawMessage {
	if len(args) == 0 {
		return nil
	}
	var b bytes.Buffer
	if len(args) <= 4*max && json.Compact(&b, args) == nil && b.Len() <= max {
		return b.Bytes()
	}
	for n := max - 2; ; n /= 2 { // a string of control characters grows by six
		s, err := json.Marshal(clip(string(args[:min(len(args), n+1)]), n))
		if err == nil && len(s) <= max {
			return s
		}
	}
}

func clipList(list []string, max int) []string {
	var kept []string
	for _, s := range list {
		s = clip(s, 1024)
		if max -= len(s) + 3; max < 0 {
			break
		}
		kept = append(kept, s)
	}
	return kept
}

// bounded makes what a tool counted fit for JSON and for a sidecar.
func (s Seen) bounded() Seen {
	s.Kind, s.Ext, s.Status, s.Vocabulary = clip(s.Kind, 40), clip(s.Ext, 40), clip(s.Status, 40), clip(s.Vocabulary, 40)
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

// encode writes a sidecar of at most max bytes; a receipt that does not fit is
// cut, then what else may be long.
func (o Observation) encode(max int) ([]byte, error) {
	cuts := []func(){
		func() {},
		func() { o.Seen.Receipt = clip(o.Seen.Receipt, max/2) },
		func() { o.Seen.Receipt = "" },
		func() { o.Seen.Counts = nil },
		func() { o.Origin, o.Args = clipList(o.Origin, 256), clipArgs(o.Args, 512) },
		func() { o.Origin, o.Args, o.Name, o.Cause = nil, nil, "", clip(o.Cause, 100) },
	}
	for _, cut := range cuts {
		cut()
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(o); err != nil {
			return nil, fmt.Errorf("write sidecar: %w", err)
		}
		if b.Len() <= max {
			return b.Bytes(), nil
		}
	}
	return nil, fmt.Errorf("write sidecar: over %d bytes", max)
}

// tombstone is what stays of an expired observation: which call it was.
func (o Observation) tombstone(why string, at time.Time) Observation {
	at = at.UTC().Round(0)
	o.Expired, o.Why = &at, why
	o.Args = clipArgs(mask(o.Args), tombstoneArgs)
	o.Origin = clipList(o.Origin, 512)
	o.Cause = clip(o.Cause, 200)
	o.Seen.Receipt, o.Seen.Counts = "", nil
	return o
}

// sidecar reads what is known of an observation, whoever owns it. Where there
// is none, or it makes no sense, that is ErrNotFound: nobody can be shown to own it.
func (s *Store) sidecar(id ID) (Observation, error) {
	o, err := s.unpinned(id)
	if err != nil {
		return o, err
	}
	_, err = s.disk.stat(observationsDir + "/" + string(id) + pinExt)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // else a pinned one could be taken for its age
		return Observation{}, err
	}
	o.Pinned = err == nil
	return o, nil
}

// unpinned is sidecar for those who know already whether it is pinned.
func (s *Store) unpinned(id ID) (Observation, error) {
	name := observationsDir + "/" + string(id) + sideExt
	b, info, err := s.disk.read(name, maxSidecar)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errNotRegular), errors.Is(err, errTooLong):
		return Observation{}, fmt.Errorf("%w: %w", ErrNotFound, err)
	case err != nil: // a disk that fails today does not make a pointer dead
		return Observation{}, err
	}
	o, err := decode(b, id)
	if err != nil {
		return Observation{}, fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	o.Used = info.ModTime()
	return o, nil
}

// decode trusts nothing in a sidecar.
func decode(b []byte, id ID) (Observation, error) {
	var o Observation
	damaged := json.Unmarshal(b, &o)
	if damaged != nil || o.V != version { // what is of another version may have another shape
		var head struct {
			V int `json:"v"`
		}
		if json.Unmarshal(b, &head) == nil && head.V != version {
			return Observation{}, fmt.Errorf("%w (v %d)", errForeign, head.V)
		}
		return Observation{}, errors.New("its sidecar is damaged")
	}
	if of, ok := parseDataName(o.File); !ok || of != id || o.ID != id || o.Bytes < 0 || len(o.SHA256) != 2*sha256.Size {
		return Observation{}, errors.New("its sidecar is damaged")
	}
	return o, nil
}

// owned is the sidecar of an observation that this owner has and that is not expired.
func (s *Store) owned(owner string, id ID) (Observation, error) {
	if !id.valid() {
		return Observation{}, malformed(string(id))
	}
	o, err := s.sidecar(id)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return Observation{}, fmt.Errorf("open obs:%s: %w", id, err)
	}
	if err != nil || o.Owner != owner {
		return Observation{}, notFound(id)
	}
	if o.Expired != nil {
		return Observation{}, &ExpiredError{o}
	}
	return o, nil
}

func notFound(id ID) error { return fmt.Errorf("%w: obs:%s", ErrNotFound, id) }
