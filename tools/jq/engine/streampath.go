package engine

import (
	"io"

	"github.com/mcp-funnel/mcp-funnel/tools/jq/decode"
)

// runStreamPath runs the filter on the elements of the array to which the path of the stream leads in a record.
//
// The last of duplicate keys counts, which is known only at the end of the object. Held results are dropped when the
// key comes again. Results that go out at once need a second reading: the first one checks that the record is JSON,
// and finds the last array.
func (e *engine) runStreamPath(w *decode.Window) error {
	record, before, at := e.Records, e.Results, w.Offset()
	arrays := 0 // that the path led to
	var h *holder
	read := func(w *decode.Window) (err error) {
		arrays++
		h, err = e.runElements(w)
		return err
	}
	if e.Stream.Flows() {
		read = func(w *decode.Window) error {
			arrays++
			_, err := e.largeArray(w, &decode.Projection{})
			return err
		}
	}
	v, found, err := e.descend(w, e.Stream.Path, read)
	if err != nil {
		return err
	}
	if !found { // it leads elsewhere, which the filter says: it reads nothing else of the record
		return e.record(v)
	}
	if e.Stream.Flows() {
		last := arrays
		arrays = 0
		rest := io.NewSectionReader(e.again, at, e.again.Size()-at)
		second := decode.NewWindow(decode.WithContext(e.ctx, rest), e.windowSize(), at, spareBuffers)
		_, _, err = e.descend(second, e.Stream.Path, func(w *decode.Window) (err error) {
			if arrays++; arrays == last {
				h, err = e.runElements(w)
				return err
			}
			_, err = e.largeArray(w, &decode.Projection{})
			return err
		})
		if err != nil {
			return err
		}
	}
	e.Records = record + 1
	return h.finish(record, before, false)
}

// descend decodes the object that comes next, and calls read for the array to which keys lead. If they lead to
// something else, found is false, and v is the part of the object on the path.
func (e *engine) descend(
	w *decode.Window, keys []string, read func(*decode.Window) error,
) (v any, found bool, err error) {
	if _, err = w.Next(); err != nil { // of a second reading nothing is there yet
		return nil, false, err
	}
	if len(keys) == 0 {
		return nil, true, read(w)
	}
	m := map[string]any{}
	seen := false
	err = e.eachMember(w, func(key string, c byte) (err error) {
		if key != keys[0] {
			_, err = e.decodeValue(w, c, &decode.Projection{})
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
			m[key], err = e.decodeValue(w, c, nil)
		}
		if seen && err == nil {
			e.noteDuplicate(decode.Duplicate{Key: decode.Clip(key), Offset: w.Offset()})
		}
		seen = true
		return err
	})
	return m, found, err
}
