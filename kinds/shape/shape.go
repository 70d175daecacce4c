// Package shape summarises JSON, NDJSON and tables: the common structure (shape) of all records, sample records, and
// the position where JSON breaks off.
//
// The package reads a text once, in bounded memory.
package shape

import (
	"bytes"
	"slices"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Limits of a shape in memory. A node with its statistics takes about 300 bytes.
const (
	shapeDepth  = 48      // maximum nesting depth; deeper containers are ignored
	shapeNodes  = 6000    // maximum number of nodes
	shapeNames  = 1 << 18 // maximum total bytes of all keys
	fieldsMost  = 1000    // an object with more distinct keys becomes a map
	fieldsFew   = 8       // once the limits are reached, an object with more keys becomes a map
	nameBytes   = 256     // an object with a longer key becomes a map
	collections = 8       // maximum number of arrays whose elements are sampled
)

// node holds the statistics of all values at one path. All elements of an array share one node.
type node struct {
	nulls, yes, no int64
	text           *texts
	number         *numbers
	object         *objects
	array          *arrays
}

type objects struct {
	n       int64
	fields  []*field
	index   map[string]int
	each    *node  // statistics of all values, if the object is a map
	example string // one key of a map
	lengths        // of the objects, in members
	omitted int    // keys without a field: columns of a table beyond columnsMost
}

type field struct {
	name  string
	in    *objects // the objects that have the key
	node  node
	n     int64 // number of objects that have the key
	last  int64 // number of the last object with the key, so that duplicate keys count once
	first int64 // number of the first record with the key; −1 outside of records
	place uint8 // result of [digest.PlaceOf] if the value may name a file
}

type arrays struct {
	lengths // of the arrays, in elements
	elem    node
}

// lengths describes the containers at one path that were read to their end.
type lengths struct {
	complete int64 // number of containers
	total    int64 // sum of their lengths
	lo, hi   int64 // least and greatest length of one
}

// shape collects the structure of a JSON text. scan calls its methods for each token.
type shape struct {
	root       node
	containers []container
	ignored    int // number of open containers that are ignored
	nodes      int
	names      int

	collections []*collection
	in          *collection // collection of the current element, or nil
	base        int64       // offset of the current block in the text

	// sampling is true while scan reads an element that is a container. sampled holds the element's bytes
	// from earlier blocks, at most sampleBytes; mark is the element's offset in the current block.
	sampling bool
	mark     int
	sampled  []byte
	newKey   *field // a key that this element introduced, in the object with the fewest keys

	plain []byte // buffer for a key written with escapes
}

// container is an open container.
type container struct {
	at     *node
	target *node // node of the next member's value; nil if it is ignored
	name   string
	next   int   // index of the expected next field: similar objects list their keys in the same order
	done   int64 // number of complete members or elements
	object bool
	fixed  bool        // occurs at most once in the text, because only objects contain it, no array
	of     *collection // collection of this array, if its elements are sampled
	starts bool        // the container is an element of a collection
	place  *field      // field of the current key, if it may name a file
}

func newShape(lines bool) *shape {
	s := &shape{}
	if lines {
		s.collections = []*collection{{of: &s.root, top: true}}
	}
	return s
}

// outer returns the collection whose elements are the top-level values, or nil: only NDJSON has one.
func (s *shape) outer() *collection {
	if len(s.collections) > 0 && s.collections[0].of == &s.root {
		return s.collections[0]
	}
	return nil
}

// next returns the node of the value that begins, or nil if the value is ignored. of is the collection that has the
// value as an element, or nil; next makes that collection the current one.
func (s *shape) next() (at *node, of *collection) {
	if s.ignored > 0 {
		return nil, nil
	}
	if len(s.containers) == 0 {
		at, of = &s.root, s.outer()
	} else if f := &s.containers[len(s.containers)-1]; f.object {
		return f.target, nil
	} else {
		at, of = &f.at.array.elem, f.of
	}
	if of != nil {
		s.in = of
	}
	return at, of
}

// countValue counts a complete value. It is called after each scalar, and when a container is closed.
func (s *shape) countValue() {
	if s.ignored > 0 {
		return
	}
	if len(s.containers) > 0 {
		f := &s.containers[len(s.containers)-1]
		f.done++
		if f.of != nil {
			f.of.n++
		}
		return
	}
	if c := s.outer(); c != nil {
		c.n++
	}
}

// record returns the number of the current record, −1 outside of records.
func (s *shape) record() int64 {
	if s.in == nil {
		return -1
	}
	return s.in.n
}

func (s *shape) open(object bool, at int) {
	n, of := s.next()
	if n == nil || len(s.containers) == shapeDepth {
		s.ignored++
		return
	}
	f := container{at: n, object: object, starts: of != nil}
	if f.starts {
		s.sampling, s.mark, s.sampled, s.newKey = true, at, s.sampled[:0], nil
		if of.files.Begin(); of.n == 0 {
			of.start = s.base + int64(at)
		}
	}
	if len(s.containers) == 0 {
		f.fixed = s.outer() == nil
	} else {
		up := &s.containers[len(s.containers)-1]
		f.fixed = up.fixed && up.object && up.name != ""
	}
	if object {
		ensure(&n.object).n++
	} else {
		if n.array == nil {
			n.array = &arrays{}
			s.nodes++
		}
		if f.fixed && n.array.complete == 0 {
			f.of = s.collect(&n.array.elem)
		}
	}
	s.containers = append(s.containers, f)
}

// close closes the innermost container, whose last byte is p[end-1].
func (s *shape) close(p []byte, end int) {
	if s.ignored > 0 {
		if s.ignored--; s.ignored == 0 {
			s.countValue()
		}
		return
	}
	f := &s.containers[len(s.containers)-1]
	if f.object {
		f.at.object.addLength(f.done)
	} else {
		f.at.array.addLength(f.done)
	}
	if f.starts {
		s.element(f, p, end)
	}
	if f.of != nil {
		s.in = nil
	}
	s.containers = s.containers[:len(s.containers)-1]
	s.countValue()
}

// element ends an element of a collection and samples it if it is the first or introduced a key.
func (s *shape) element(f *container, p []byte, end int) {
	if s.newKey != nil || s.in.n == 0 {
		s.appendSample(p[:end])
		s.in.sample(s.sampled, s.newKey)
	}
	s.sampling = false
	if f.object {
		s.in.files.End()
	}
}

// endBlock saves the bytes of the current element at the end of block p.
func (s *shape) endBlock(p []byte) {
	if s.sampling {
		s.appendSample(p)
		s.mark = 0
	}
}

func (s *shape) appendSample(p []byte) {
	if room := sampleBytes - len(s.sampled); room > 0 && s.mark < len(p) {
		s.sampled = append(s.sampled, p[s.mark:min(len(p), s.mark+room)]...)
	}
}

func (l *lengths) addLength(length int64) {
	if l.complete == 0 || length < l.lo {
		l.lo = length
	}
	l.hi = max(l.hi, length)
	l.total += length
	l.complete++
}

func (s *shape) key(raw []byte) {
	if s.ignored > 0 {
		return
	}
	if bytes.IndexByte(raw, '\\') >= 0 {
		s.plain = content.AppendUnquoted(s.plain[:0], raw)
		raw = s.plain
	}
	f := &s.containers[len(s.containers)-1]
	o := f.at.object
	f.place = nil
	if o.each == nil {
		var d *field
		if f.next < len(o.fields) && o.fields[f.next].name == string(raw) {
			d = o.fields[f.next]
			f.next++
		} else if i := o.find(raw); i >= 0 {
			d = o.fields[i]
			f.next = i + 1
		} else if d = s.add(o, raw); d != nil {
			f.next = len(o.fields)
		}
		if d != nil {
			if d.last != o.n {
				d.last = o.n
				d.n++
			}
			f.target, f.name = &d.node, d.name
			if d.place > 0 && s.in != nil {
				f.place = d
			}
			return
		}
	}
	f.target, f.name = o.each, "" // nil if a limit was reached
}

func (o *objects) find(raw []byte) int {
	if o.index != nil {
		if i, ok := o.index[string(raw)]; ok {
			return i
		}
		return -1
	}
	return slices.IndexFunc(o.fields, func(d *field) bool { return d.name == string(raw) })
}

// add adds a field for a new key. It returns nil if o has become a map or a limit was reached.
func (s *shape) add(o *objects, raw []byte) *field {
	room := s.nodes < shapeNodes && s.names+len(raw) <= shapeNames
	if len(raw) > nameBytes || len(o.fields) >= fieldsMost || !room && len(o.fields) > fieldsFew {
		s.collapse(o)
		return nil
	}
	if !room {
		return nil
	}
	d := &field{name: string(raw), in: o, first: -1, last: -1, place: s.placeOf(raw)}
	s.nodes++
	s.names += len(raw)
	if s.in != nil {
		d.first = s.in.n
		if s.in.n > 0 && (s.newKey == nil || len(o.fields) <= len(s.newKey.in.fields)) {
			s.newKey = d // rather one of few keys than one of many, which may be data
		}
	}
	o.fields = append(o.fields, d)
	if len(o.fields) > 12 {
		if o.index == nil {
			o.index = make(map[string]int, 32)
			for i, d := range o.fields {
				o.index[d.name] = i
			}
		}
		o.index[d.name] = len(o.fields) - 1
	}
	return d
}

// collapse turns an object into a map, with one node for all values.
func (s *shape) collapse(o *objects) {
	before := 0
	for _, d := range o.fields {
		before += 1 + d.node.size()
		s.names -= len(d.name)
	}
	o.toMap()
	s.nodes += 1 + o.each.size() - before
	if s.newKey != nil && s.newKey.in == o {
		s.newKey = nil
	}
}

// size returns the number of nodes below n.
func (n *node) size() int {
	count := 0
	if o := n.object; o != nil {
		for _, d := range o.fields {
			count += 1 + d.node.size()
		}
		if o.each != nil {
			count += 1 + o.each.size()
		}
	}
	if n.array != nil {
		count += 1 + n.array.elem.size()
	}
	return count
}

func (s *shape) text(raw []byte, size int64) {
	if n, _ := s.next(); n != nil {
		ensure(&n.text).add(raw, size, s.record())
		if len(s.containers) > 0 {
			if f := &s.containers[len(s.containers)-1]; f.place != nil {
				s.in.files.AddName(f.place.place, raw, size)
				f.place = nil
			}
		}
	}
	s.countValue()
}

func (s *shape) number(raw []byte) {
	if n, _ := s.next(); n != nil {
		ensure(&n.number).add(raw, s.record())
	}
	s.countValue()
}

func (s *shape) literal(first byte) {
	if n, _ := s.next(); n != nil {
		switch first {
		case 't':
			n.yes++
		case 'f':
			n.no++
		default:
			n.nulls++
		}
	}
	s.countValue()
}

// abandon discards the open containers when the text breaks off. Their values stay in the statistics. An incomplete
// object, unless it is the first of its node, no longer counts, so that keys after the break do not look optional.
func (s *shape) abandon() {
	for _, f := range slices.Backward(s.containers) {
		switch {
		case f.object && f.at.object.n > 1:
			o := f.at.object
			for _, d := range o.fields {
				if d.last == o.n {
					d.n--
					d.last = -1
				}
			}
			o.n--
		case f.object && f.at.object.complete == 0:
			f.at.object.addLength(f.done)
		case !f.object && f.at.array.complete == 0:
			f.at.array.addLength(f.done)
		}
	}
	s.containers, s.ignored, s.sampling = s.containers[:0], 0, false
	if s.in != nil {
		s.in.files.Begin()
	}
}
