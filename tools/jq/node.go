package jq

import (
	"maps"
	"slices"
)

// # What of a value a filter reads
//
// node is a place in a value, and what is read there. Places the filter does not lead to are checked
// to be JSON and never made. Whatever leaves the filter, is computed with, compared, tested,
// bound to a variable or given to a function that is not listed in reads.function is read whole; so is everything
// where a filter defines functions. So an error that quotes a value quotes all of it: only what is
// led through is partly made, by keys of objects and by elements of arrays, and that cannot fail.
//
// nil is a place that is read whole.
type node struct {
	all     bool
	indexed bool             // by a number: an object there is an error that quotes it
	each    *node            // its elements, or its values
	keys    map[string]*node // these of its members
	few     []member         // the same, where they are few: it is quicker to look through them than to hash
}

// member is a key that is read, and what of its value.
type member struct {
	key string
	at  *node
}

// fewKeys is how many are looked through.
const fewKeys = 6

// trim puts nil for what is read whole.
func (n *node) trim() *node {
	if n == nil || n.all || n.each != nil && n.keys != nil {
		return nil
	}
	if n.each != nil {
		if n.each = n.each.trim(); n.each == nil {
			return nil
		}
	}
	n.few = nil
	for _, k := range slices.Sorted(maps.Keys(n.keys)) {
		n.keys[k] = n.keys[k].trim()
		n.few = append(n.few, member{k, n.keys[k]})
	}
	if len(n.few) > fewKeys {
		n.few = nil
	}
	return n
}

// nothing says that no part of a value is read, not even its kind.
func (n *node) nothing() bool {
	return n != nil && n.each == nil && n.keys == nil
}

// ofObject is what is read of an object.
func (n *node) ofObject() *node {
	if n != nil && n.indexed {
		return nil
	}
	return n
}

// member is what is read of a member of an object, if anything.
func (n *node) member(key string) (at *node, read bool) {
	switch {
	case n == nil:
		return nil, true
	case n.keys == nil:
		return n.each, true
	}
	at, read = n.keys[key]
	return at, read
}

// element is what is read of an element of an array.
func (n *node) element() *node {
	switch {
	case n == nil || n.keys != nil:
		return nil
	case n.each == nil:
		return n
	}
	return n.each
}
