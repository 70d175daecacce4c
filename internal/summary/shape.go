package summary

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Bounds of what is remembered of a shape. A node with its statistics takes some 300 bytes.
const (
	shapeDepth  = 48      // containers deeper than this are not told apart
	shapeNodes  = 6000    // nodes in all
	shapeNames  = 1 << 18 // bytes of keys in all
	fieldsMost  = 1000    // more different keys than this make a map
	fieldsFew   = 8       // where room runs out, an object with more keys than this becomes a map
	nameBytes   = 256     // a longer key makes a map
	collections = 4       // arrays whose elements are sampled
)

// node is all values that stood at one place: at one path of keys, with one node for all elements of an array.
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
	each    *node  // of a map: all its values
	example string // of a map: a key
	members int64
	lo, hi  int64 // members in one object
	ended   int64
}

type field struct {
	name  string
	node  node
	n     int64 // objects that have it
	last  int64 // the object that had it last, to count a key that stands twice once
	first int64 // the record that had it first, −1 outside of records
	place uint8 // see places
}

type arrays struct {
	n      int64
	total  int64 // elements
	lo, hi int64 // elements in one array
	elem   node
}

// shape learns what a JSON text looks like, from its scanner's calls.
type shape struct {
	root   node
	frames []frame
	deep   int // open containers that are not looked into
	nodes  int
	names  int
	full   bool // room ran out: some keys are not told apart

	collections []*collection
	in          *collection // the one whose element is being read, or nil
	files       *files      // of the elements of the whole text

	// The element being read, where it is a container: from mark on in this piece, what came before it in taken.
	taking bool
	mark   int
	taken  []byte
	fresh  *field // the key it showed first

	plain []byte // a key that was written with escapes
}

// unescaped appends the text of a string as written. What is cut off inside an escape stays as it is.
func unescaped(dst, raw []byte) []byte {
	var s string
	if json.Unmarshal(slices.Concat([]byte{'"'}, raw, []byte{'"'}), &s) != nil {
		return append(dst, raw...)
	}
	return append(dst, s...)
}

// frame is an open container.
type frame struct {
	at     *node
	target *node // where the next member goes; nil: it is not looked at
	name   string
	next   int   // the field expected next: objects of one kind have their keys in one order
	done   int64 // complete members or elements
	object bool
	fixed  bool        // it stands once in the text: objects alone lead to it
	of     *collection // of an array whose elements are sampled
	starts bool        // it is itself such an element
	place  *field      // the key being read that may name a file
}

func newShape(lines bool) *shape {
	s := &shape{files: newFiles()}
	if lines {
		s.collections = []*collection{{of: &s.root, top: true}}
	}
	return s
}

// outer is the collection that the top-level values themselves are, or nil.
func (s *shape) outer() *collection {
	if len(s.collections) > 0 && s.collections[0].of == &s.root {
		return s.collections[0]
	}
	return nil
}

// next is the node of a value that begins; nil where it is not looked at. A new record is begun with its first.
func (s *shape) next() (at *node, of *collection) {
	if s.deep > 0 {
		return nil, nil
	}
	if len(s.frames) == 0 {
		at, of = &s.root, s.outer()
	} else if f := &s.frames[len(s.frames)-1]; f.object {
		return f.target, nil
	} else {
		at, of = &f.at.array.elem, f.of
	}
	if of != nil {
		s.in = of
	}
	return at, of
}

// ended is called after each value that is no container, and for containers when they are shut.
func (s *shape) ended() {
	if s.deep > 0 {
		return
	}
	if len(s.frames) > 0 {
		f := &s.frames[len(s.frames)-1]
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

// record is the number of the record being read, −1 outside of records.
func (s *shape) record() int64 {
	if s.in == nil {
		return -1
	}
	return s.in.n
}

func (s *shape) open(object bool, at int) {
	n, of := s.next()
	if n == nil || len(s.frames) == shapeDepth {
		s.deep++
		return
	}
	f := frame{at: n, object: object, starts: of != nil}
	if f.starts {
		s.taking, s.mark, s.taken, s.fresh = true, at, s.taken[:0], nil
		s.files.best = 0
	}
	if len(s.frames) == 0 {
		f.fixed = s.outer() == nil
	} else {
		up := &s.frames[len(s.frames)-1]
		f.fixed = up.fixed && up.object && up.name != ""
	}
	if object {
		if n.object == nil {
			n.object = &objects{}
		}
		n.object.n++
	} else {
		if n.array == nil {
			n.array = &arrays{}
			s.nodes++
		}
		if f.fixed && n.array.n == 0 && len(s.collections) < collections {
			f.of = &collection{pointer: s.pointer(), of: &n.array.elem, top: len(s.frames) == 0}
			s.collections = append(s.collections, f.of)
		}
	}
	s.frames = append(s.frames, f)
}

// shut ends the innermost container; it ends before byte end of piece p.
func (s *shape) shut(p []byte, end int) {
	if s.deep > 0 {
		if s.deep--; s.deep == 0 {
			s.ended()
		}
		return
	}
	f := &s.frames[len(s.frames)-1]
	if f.object {
		f.at.object.end(f.done)
	} else {
		f.at.array.end(f.done)
	}
	if f.starts {
		s.element(f, p, end)
	}
	if f.of != nil {
		s.in = nil
	}
	s.frames = s.frames[:len(s.frames)-1]
	s.ended()
}

// element ends an element of a collection.
func (s *shape) element(f *frame, p []byte, end int) {
	if s.fresh != nil || s.in.n == 0 {
		s.take(p[:end])
		s.in.sample(s.taken, s.fresh)
	}
	s.taking = false
	if f.object && s.in.top {
		s.files.end()
	}
}

// carry keeps what is needed of a piece that ends inside an element.
func (s *shape) carry(p []byte) {
	if s.taking {
		s.take(p)
		s.mark = 0
	}
}

func (s *shape) take(p []byte) {
	if room := sampleBytes - len(s.taken); room > 0 && s.mark < len(p) {
		s.taken = append(s.taken, p[s.mark:min(len(p), s.mark+room)]...)
	}
}

func (o *objects) end(members int64) {
	if o.ended == 0 || members < o.lo {
		o.lo = members
	}
	o.hi = max(o.hi, members)
	o.members += members
	o.ended++
}

func (a *arrays) end(length int64) {
	if a.n == 0 || length < a.lo {
		a.lo = length
	}
	a.hi = max(a.hi, length)
	a.total += length
	a.n++
}

func (s *shape) key(raw []byte) {
	if s.deep > 0 {
		return
	}
	if bytes.IndexByte(raw, '\\') >= 0 {
		s.plain = unescaped(s.plain[:0], raw)
		raw = s.plain
	}
	f := &s.frames[len(s.frames)-1]
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
			if d.place > 0 && f.starts && s.in.top {
				f.place = d
			}
			return
		}
	}
	f.target, f.name = o.each, "" // nil where there was no room
}

func (o *objects) find(raw []byte) int {
	if o.index != nil {
		if i, ok := o.index[string(raw)]; ok {
			return i
		}
		return -1
	}
	for i, d := range o.fields {
		if d.name == string(raw) {
			return i
		}
	}
	return -1
}

// add makes room for a key not seen before. nil: o is a map now, or there is no room.
func (s *shape) add(o *objects, raw []byte) *field {
	room := s.nodes < shapeNodes && s.names+len(raw) <= shapeNames
	if !room {
		s.full = true
	}
	if len(raw) > nameBytes || len(o.fields) >= fieldsMost || !room && len(o.fields) > fieldsFew {
		s.collapse(o)
		return nil
	}
	if !room {
		return nil
	}
	d := &field{name: string(raw), first: -1, last: -1, place: placeOf(raw)}
	s.nodes++
	s.names += len(raw)
	if s.in != nil {
		d.first = s.in.n
		if s.in.n > 0 {
			s.fresh = d
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

// collapse makes a map of an object: one node for all its values.
func (s *shape) collapse(o *objects) {
	each := &node{}
	before := 0
	for _, d := range o.fields {
		before += 1 + d.node.size()
		s.names -= len(d.name)
		each.merge(&d.node)
	}
	if len(o.fields) > 0 {
		o.example = o.fields[0].name
	}
	s.nodes += 1 + each.size() - before
	o.each, o.fields, o.index = each, nil, nil
	s.fresh = nil
}

// size is the number of nodes below n.
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
		if n.text == nil {
			n.text = &texts{}
		}
		n.text.add(raw, size, s.record())
		if len(s.frames) > 0 {
			if f := &s.frames[len(s.frames)-1]; f.place != nil {
				s.files.see(f.place.place, raw, size)
				f.place = nil
			}
		}
	}
	s.ended()
}

func (s *shape) figure(raw []byte) {
	if n, _ := s.next(); n != nil {
		if n.number == nil {
			n.number = &numbers{}
		}
		n.number.add(raw, s.record())
	}
	s.ended()
}

func (s *shape) word(first byte) {
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
	s.ended()
}

// abandon forgets the containers that are open, where the text breaks off. What they held stays in the
// statistics, but a key is not rare because the text ended before it.
func (s *shape) abandon() {
	for _, f := range slices.Backward(s.frames) {
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
		case f.object && f.at.object.ended == 0:
			f.at.object.end(f.done)
		case !f.object && f.at.array.n == 0:
			f.at.array.end(f.done)
		}
	}
	s.frames, s.deep, s.taking = s.frames[:0], 0, false
	s.files.best = 0
}
