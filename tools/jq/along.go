package jq

import "io"

// opens is the bracket of records that a plan is for.
func (p *plan) opens() byte {
	if len(p.path) > 0 {
		return '{'
	}
	return '['
}

// along runs the filter on a record over the elements of the array the plan's path leads to.
//
// Of a key that stands twice the last one counts, which is not known before
// the object's end: what is held is held of the last one only. What flows is read twice, the first time to see that the
// record is JSON and where its array stands.
func (e *engine) along(w *view) error {
	record, before, at := e.Records, e.Results, w.offset()
	arrays := 0 // that the path led to
	var h *holder
	read := func(w *view) (err error) {
		arrays++
		h, err = e.stream(w)
		return err
	}
	if e.plan.flows() {
		read = func(w *view) error {
			arrays++
			_, err := e.bigArray(w, &node{})
			return err
		}
	}
	v, found, err := e.descend(w, e.plan.path, read)
	if err != nil {
		return err
	}
	if !found { // it leads elsewhere, which the filter says: it reads nothing else of the record
		return e.record(v)
	}
	if e.plan.flows() {
		last := arrays
		arrays = 0
		second := newView(&watched{e.ctx, io.NewSectionReader(e.again, at, e.again.Size()-at)}, w.size)
		second.base = at
		_, _, err = e.descend(second, e.plan.path, func(w *view) (err error) {
			if arrays++; arrays == last {
				h, err = e.stream(w)
				return err
			}
			_, err = e.bigArray(w, &node{})
			return err
		})
		if err != nil {
			return err
		}
	}
	e.Records = record + 1
	return h.finish(record, before, false)
}

// descend goes through the object that comes next, and has read take the
// array that keys lead to. Not found: it is something else, and v is as much of the object as leads to it.
func (e *engine) descend(w *view, keys []string, read func(*view) error) (v any, found bool, err error) {
	if _, err = w.next(); err != nil { // of a second reading nothing is there yet
		return nil, false, err
	}
	if len(keys) == 0 {
		return nil, true, read(w)
	}
	m := map[string]any{}
	seen := false
	err = e.members(w, func(key string, c byte) (err error) {
		if key != keys[0] {
			_, err = e.value(w, c, &node{})
			return err
		}
		delete(m, key)
		switch {
		case len(keys) == 1 && c == '[':
			found, err = true, read(w)
		case len(keys) > 1 && c == '{':
			var inner any
			if inner, found, err = e.descend(w, keys[1:], read); !found {
				m[key] = inner
			}
		default:
			found = false
			m[key], err = e.value(w, c, nil)
		}
		if seen && err == nil {
			e.doubled(duplicate{clip(key), w.offset()})
		}
		seen = true
		return err
	})
	return m, found, err
}
