package decode

// Projection says which parts of a value a filter reads; nil is the whole value. The other parts are checked to be JSON
// but not decoded.
//
// A part is read whole if it is a result, an operand, compared, tested, bound to a variable or passed to a function
// that plan does not know. The whole value is read if the filter defines functions. Therefore an error that quotes a
// value quotes all of it: only values on the path to a part are incomplete, and following a path cannot fail.
type Projection struct {
	All     bool                   // the whole value is read
	Indexed bool                   // read by a number; this fails on an object, and the error quotes the object
	Each    *Projection            // parts of all elements or member values
	Keys    map[string]*Projection // parts of these members
}

// Trim replaces the projection of each value that is read whole by nil.
func (n *Projection) Trim() *Projection {
	if n == nil || n.All || n.Each != nil && n.Keys != nil {
		return nil
	}
	if n.Each != nil {
		if n.Each = n.Each.Trim(); n.Each == nil {
			return nil
		}
	}
	for k, at := range n.Keys {
		n.Keys[k] = at.Trim()
	}
	return n
}

// Empty reports whether no part of the value is read, not even its kind.
func (n *Projection) Empty() bool {
	return n != nil && n.Each == nil && n.Keys == nil
}

// OfObject returns the projection for a value that is an object.
func (n *Projection) OfObject() *Projection {
	if n != nil && n.Indexed {
		return nil
	}
	return n
}

// Member returns the projection of a member; read is false if no part of the member is read.
func (n *Projection) Member(key string) (at *Projection, read bool) {
	switch {
	case n == nil:
		return nil, true
	case n.Keys == nil:
		return n.Each, true
	}
	at, read = n.Keys[key]
	return at, read
}

// Element returns the projection of each array element.
func (n *Projection) Element() *Projection {
	switch {
	case n == nil || n.Keys != nil:
		return nil
	case n.Each == nil:
		return n
	}
	return n.Each
}
