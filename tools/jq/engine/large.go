package engine

import "github.com/mcp-funnel/mcp-funnel/tools/jq/decode"

// decodeLarge decodes the parts that n reads of a value that does not fit the window and starts with the byte c.
func (e *engine) decodeLarge(w *decode.Window, c byte, n *decode.Projection) (any, error) {
	switch {
	case len(e.path) >= maxPath:
	case c == '[':
		return e.largeArray(w, n)
	case c == '{':
		return e.largeObject(w, n)
	}
	r := w.Rest()
	d := e.decoder(beforeValue, r, w.Offset())
	v, err := e.decodeComplete(d, n)
	e.noteDuplicate(d.Twice)
	if err != nil {
		return nil, e.syntax(d, decode.Unexpected(err))
	}
	w.ContinueAfter(d, r)
	return v, nil
}

func (e *engine) largeArray(w *decode.Window, n *decode.Projection) (any, error) {
	a := []any{}
	s := &sequence{e: e, array: true, node: n.Element(), blind: n.Empty()}
	s.unit = func(v any) error {
		a = append(a, v)
		return nil
	}
	err := e.within(w, container{array: true}, func() error { return s.drive(w) })
	return a, err
}

// within skips the next bracket and runs run inside the container f.
func (e *engine) within(w *decode.Window, f container, run func() error) error {
	w.Skip(1)
	e.path = append(e.path, f)
	err := run()
	e.path = e.path[:len(e.path)-1]
	return err
}

func (e *engine) largeObject(w *decode.Window, n *decode.Projection) (any, error) {
	m := map[string]any{}
	at := n.OfObject()
	err := e.eachMember(w, func(key string, c byte) error {
		child, read := at.Member(key)
		if !read || n.Empty() {
			_, err := e.decodeValue(w, c, &decode.Projection{})
			return err
		}
		v, err := e.decodeValue(w, c, child)
		if err != nil {
			return err
		}
		if _, ok := m[key]; ok {
			e.noteDuplicate(&decode.Duplicate{Key: decode.Clip(key), Offset: w.Offset()})
		}
		m[key] = v
		return nil
	})
	return m, err
}

// eachMember calls visit for each member of the object that comes next; visit reads the value, whose first byte is c.
func (e *engine) eachMember(w *decode.Window, visit func(key string, c byte) error) error {
	return e.within(w, container{}, func() error {
		f := &e.path[len(e.path)-1]
		for {
			c, err := w.Next()
			if err != nil {
				return err
			}
			if c == '}' && f.n == 0 {
				w.Skip(1)
				return nil
			}
			key, ok, err := w.Key()
			if err != nil {
				return err
			}
			if !ok {
				return e.findError(w, beforeKey)
			}
			f = &e.path[len(e.path)-1]
			f.key = key
			if c, err = w.Next(); err != nil {
				return err
			}
			if err := visit(key, c); err != nil {
				return err
			}
			f = &e.path[len(e.path)-1]
			f.n++
			if c, err = w.Next(); err != nil {
				return err
			}
			if c != ',' && c != '}' {
				return e.findError(w, afterValue)
			}
			if w.Skip(1); c == '}' {
				return nil
			}
			f.comma = w.Offset() - 1
		}
	})
}

// decodeValue decodes the parts that n reads of a value of any size.
func (e *engine) decodeValue(w *decode.Window, c byte, n *decode.Projection) (any, error) {
	v, ok, err := w.FastValue(&e.fast, n, e.twice.Load())
	if ok || err != nil {
		return v, err
	}
	return e.decodeLarge(w, c, n)
}
