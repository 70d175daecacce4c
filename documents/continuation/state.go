package continuation

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"maps"
	"slices"
)

// maxState is the largest state in bytes: it is stored in a sidecar.
const maxState = 24 << 10

// maxStoredNames is the largest number of names of open objects, and of ids, in a stored state. If there are more, none
// is stored, and those that occur twice are found once the text is whole.
const maxStoredNames = 1200

// stored is a state as it is stored: the history, and a parser near the end of the text.
type stored struct {
	History history     `json:"history"`
	Plain   bool        `json:"plain,omitempty"` // the text is not JSON
	Length  int64       `json:"length"`          // of the text
	Sum     uint64      `json:"sum"`             // of the text's last bytes
	Offset  int64       `json:"offset,omitempty"`
	Value   int64       `json:"value,omitempty"` // offset of the string being read
	Inside  bool        `json:"inside,omitempty"`
	Doubles int64       `json:"doubles,omitempty"`
	Frames  []container `json:"frames,omitempty"`
	Recent  []int64     `json:"recent,omitempty"` // offsets of the last values that began
	Names   [][]byte    `json:"names,omitempty"`  // of each container, eight bytes each
	IDs     []byte      `json:"ids,omitempty"`    // eight bytes each
	Lost    bool        `json:"lost,omitempty"`   // there were too many names
	Outline *outline    `json:"outline,omitempty"`
}

// Stored returns what [Open] needs to go on without parsing the text again: at most 24 KiB. It is valid for the text as
// it is now.
func (d *Document) Stored() []byte {
	s := stored{History: d.history, Plain: d.plain, Length: int64(len(d.text)), Sum: tailSum(d.text)}
	small, _ := json.Marshal(s) // of numbers and strings: cannot fail
	p := d.near
	if p == nil || d.plain {
		return small
	}
	s.Offset, s.Value, s.Inside, s.Doubles = p.offset(), p.value, p.scan.Inside() == "string", p.doubles
	s.Frames, s.Recent, s.Outline = p.containers, p.recent, &p.outline
	names := len(p.outline.IDs)
	for i := range p.containers {
		f := &p.containers[i]
		names += len(f.names)
		f.Last = f.Last[max(0, len(f.Last)-storedStarts):]
	}
	s.Lost = p.lost || names > maxStoredNames
	for i := 0; i < len(p.containers) && !s.Lost; i++ {
		s.Names = append(s.Names, packed(p.containers[i].names))
	}
	if !s.Lost {
		s.IDs = packed(p.outline.IDs)
	}
	all, err := json.Marshal(s)
	if err != nil || len(all) > maxState {
		return small
	}
	return all
}

func packed(set map[uint64]struct{}) []byte {
	list := make([]byte, 0, 8*len(set))
	for _, sum := range slices.Sorted(maps.Keys(set)) {
		list = binary.LittleEndian.AppendUint64(list, sum)
	}
	return list
}

func unpacked(list []byte) map[uint64]struct{} {
	set := make(map[uint64]struct{}, len(list)/8)
	for ; len(list) >= 8; list = list[8:] {
		set[binary.LittleEndian.Uint64(list)] = struct{}{}
	}
	return set
}

// tailSum identifies the end of a text.
func tailSum(text []byte) uint64 { return hashOf(text[max(0, len(text)-4096):]) }

// load takes a state, if it is one of the document's text. plain says that the text is not JSON.
func (d *Document) load(state []byte) (plain bool) {
	var s stored
	if len(state) == 0 || json.Unmarshal(state, &s) != nil {
		return false
	}
	d.history = s.History
	n := int64(len(d.text))
	if s.Length != n || s.Sum != tailSum(d.text) {
		return false
	}
	if s.Offset <= 0 || s.Offset > n || len(s.Frames) == 0 || s.Outline == nil || !inRange(s, n) {
		return s.Plain
	}
	p := newParser()
	p.text, p.containers, p.value, p.doubles, p.outline = d.text, s.Frames, s.Value, s.Doubles, *s.Outline
	p.recent = s.Recent
	for i := range p.containers {
		if i < len(s.Names) {
			p.containers[i].names = unpacked(s.Names[i])
		}
	}
	p.outline.IDs, p.lost = unpacked(s.IDs), s.Lost
	p.resume(s.Offset, s.Inside)
	if p.scan.Err() == nil {
		d.near = p
	}
	return false
}

// inRange reports whether all offsets of a stored state are in a text of n bytes.
func inRange(s stored, n int64) bool {
	good := func(list ...int64) bool {
		return !slices.ContainsFunc(list, func(at int64) bool { return at < -1 || at > n })
	}
	for i := range s.Frames {
		f := &s.Frames[i]
		if !good(f.Start, f.Open, f.Key[0], f.Key[1], f.End) || !good(f.Last...) || f.Key[0] > f.Key[1] ||
			f.Key[0] < 0 {
			return false
		}
	}
	return !slices.ContainsFunc(s.Recent, func(at int64) bool { return at < 0 || at >= s.Offset }) &&
		s.Value >= 0 && s.Value <= s.Offset
}

// resume brings the scanner to the step it had after a child, or inside of a string: it reads a text with the same open
// containers.
func (p *parser) resume(at int64, inside bool) {
	var text []byte
	for _, f := range p.containers[1:] {
		if f.Object {
			text = append(text, `{"":`...)
		} else {
			text = append(text, '[')
		}
	}
	switch {
	case len(text) == 0:
	case inside:
		text = append(text, '"')
	default:
		text = append(text, `""`...)
	}
	for n := 1; len(text) > 0 && n > 0; text = text[n:] {
		n, _ = p.scan.Scan(text)
	}
	p.base = at - p.scan.Offset()
}

// snapshotFirst is the distance from the end of the text of the last snapshot; each one before it is twice as far.
const snapshotFirst = 256

// readAll reads the whole text and returns copies of the parser on the way, ever closer to the end, so that a place
// near the end can be found again without reading much.
func (p *parser) readAll(text []byte) []*parser {
	p.text = text
	var snapshots []*parser
	if p.resumable() {
		snapshots = append(snapshots, p.clone())
	}
	end := int64(len(text))
	distance := int64(snapshotFirst)
	for distance < end-p.offset() {
		distance *= 2
	}
	for distance /= 2; distance >= snapshotFirst; distance /= 2 {
		p.read(text, end-distance)
		for range 64 { // up to the next place from which a parser can go on
			if p.resumable() || p.offset() >= end-distance/2 || p.scan.Err() != nil || p.trailing >= 0 {
				break
			}
			p.read(text, p.offset()+1)
		}
		if p.resumable() {
			snapshots = append(snapshots, p.clone())
		}
	}
	p.read(text, end)
	return snapshots
}

// resumable reports whether resume can bring a scanner to the step of this one: after a child, or inside of the text of
// a string that is a value.
func (p *parser) resumable() bool {
	off := p.offset()
	if len(p.containers) == 1 || p.scan.Err() != nil || off == 0 {
		return false
	}
	f := p.top()
	switch p.scan.Inside() {
	case "array", "object":
		return f.Open < 0 && f.Count > 0 && f.End == off
	case "string":
		return off > p.value+12 && bytes.IndexByte(p.text[off-12:off], '\\') < 0 &&
			complete(p.text[:off], true) == int(off)
	}
	return false
}
