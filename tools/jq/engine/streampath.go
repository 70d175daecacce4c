package engine

import (
	"errors"
	"io"

	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/decode"
)

// runStreamPath runs the filter on the elements of the array to which the path of the stream leads in a record.
//
// Of duplicate keys the last one counts, which is known only at the end of the object. Held results are dropped if the
// key comes again. Results that are emitted at once need a second reading: the first reading checks that the record is
// JSON, and finds the last array.
func (e *engine) runStreamPath(w *decode.Window) error {
	record, before, at := e.Records, e.Results, w.Offset()
	const all, none = 0, -1
	arrays, wanted := 0, all // arrays on the path, and the number of the one to run the filter on
	if e.Stream.Flows() {
		wanted = none
	}
	var h *holder
	read := func(w *decode.Window) (err error) {
		if arrays++; wanted == all || wanted == arrays {
			h, err = e.runElements(w)
		} else {
			_, err = e.largeArray(w, &decode.Projection{})
		}
		return err
	}
	v, found, err := e.descend(w, e.Stream.Path, read)
	if errors.Is(err, errUnsure) {
		return e.readAgain(w, at)
	}
	if err != nil {
		return err
	}
	if !found { // the filter words the error; it reads no other part of the record
		return e.record(v)
	}
	if e.Stream.Flows() {
		arrays, wanted = 0, arrays
		if _, _, err = e.descend(e.windowAt(at), e.Stream.Path, read); err != nil {
			return err
		}
	}
	e.Records = record + 1
	return h.finish(record, before, false)
}

// windowAt returns a second window over the text from an offset on.
func (e *engine) windowAt(at int64) *decode.Window {
	rest := io.NewSectionReader(e.again, at, e.again.Size()-at)
	return decode.NewWindow(content.WithContext(e.ctx, rest), e.windowSize(), at, spareBuffers)
}

// readAgain runs the filter on the whole record at an offset, after a fold could not compute its answer.
func (e *engine) readAgain(w *decode.Window, at int64) error {
	*w = *e.windowAt(at)
	c, err := w.Next()
	if err != nil {
		return err
	}
	v, err := e.decodeLarge(w, c, e.Reads)
	if err != nil {
		return err
	}
	return e.record(v)
}

// descend decodes the object that comes next, and calls read for the array to which keys lead. If they lead to
// something else, found is false, and v is the part of the object on the path.
func (e *engine) descend(
	w *decode.Window, keys []string, read func(*decode.Window) error,
) (v any, found bool, err error) {
	if _, err = w.Next(); err != nil { // fills the window of a second reading
		return nil, false, err
	}
	if len(keys) == 0 {
		return nil, true, read(w)
	}
	m := map[string]any{}
	known := false // the key was read before
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
		if known && err == nil {
			e.noteDuplicate(&decode.Duplicate{Key: decode.Clip(key), Offset: w.Offset()})
		}
		known = true
		return err
	})
	return m, found, err
}
