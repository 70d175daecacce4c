package shape

import "strings"

// inferMaps turns objects into maps if their keys look like data: many keys with values of one type, keys that few
// objects have, or keys that are unlikely field names.
func (n *node) inferMaps() {
	if n.array != nil {
		n.array.elem.inferMaps()
	}
	o := n.object
	if o == nil {
		return
	}
	if o.each == nil && o.isMap() {
		o.toMap()
	}
	if o.each != nil {
		o.each.inferMaps()
	}
	for _, d := range o.fields {
		d.node.inferMaps()
	}
}

// isMap reports whether the keys of o look like data. An object with fewer than 4 keys is never a map.
func (o *objects) isMap() bool {
	k := len(o.fields)
	if k < 4 {
		return false
	}
	var present, size int64
	odd := 0
	kind := o.fields[0].node.onlyType()
	union := map[string]bool{}
	for _, d := range o.fields {
		if d.node.onlyType() != kind || kind == 0 {
			return false
		}
		present += d.n
		if unlikeKey(d.name) {
			odd++
		}
		if x := d.node.object; x != nil {
			for _, y := range x.fields {
				union[y.name] = true
			}
			size += int64(len(x.fields))
		}
	}
	if kind == 'o' && size*2 < int64(len(union)*k) {
		return false // the values are objects with different fields
	}
	switch {
	case odd == k:
		return true
	case o.n == 1 && kind == 'o':
		return k >= 16
	case o.n == 1:
		return k >= 48
	default:
		return k >= 16 && present*3 < o.n*int64(k)
	}
}

// onlyType returns the single JSON type of the values at n, ignoring null; 0 if there are none or several types.
func (n *node) onlyType() byte {
	if types := strings.TrimSuffix(n.types(), "0"); len(types) == 1 {
		return types[0]
	}
	return 0
}

// unlikeKey reports whether a key looks like data: a number, an address, a path, a date, an identifier.
func unlikeKey(s string) bool {
	digits, hex := 0, 0
	for i := range len(s) {
		c := s[i]
		switch {
		case c == '/' || c == '@' || c == ':' || c == '\\':
			return true
		case c >= '0' && c <= '9':
			digits++
			hex++
		case c == '-' || c == '.':
			hex++
		case c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F':
			hex++
		}
	}
	return digits > 0 && (digits == len(s) || hex == len(s) && len(s) >= 8) || digits >= 4 && digits*2 >= len(s)
}
