// Package secrets finds what looks like a credential in a text, by published formats, and puts a short mask in its place.
//
// It is best effort: a secret without a format of its own, or one that was cut apart or encoded anew, is not found.
// It changes what is shown, never what a tool wrote, and does not decide where it is used.
//
//	text ─► filter (one pass: is there a keyword?) ─► matcher of that keyword ─► check ─► mask
//
// Every matcher looks at a bounded window and goes on behind what it took, so that any input costs linear time.
package secrets

import (
	"encoding/json"
	"strconv"
)

// Unsearched stands for a text in which a fault of this package kept it from looking for secrets. It counts as one.
const Unsearched = "[masked: this text could not be searched for secrets]"

// Masker masks secrets. A nil one masks nothing; the zero one knows no format, so that all of a text becomes [Unsearched].
// It is safe for concurrent use.
type Masker struct {
	f    func() *filter              // made for the first text
	told func(why any, stack []byte) // nil: nobody asked
}

// New makes a masker of all [Formats].
func New() *Masker { return &Masker{f: compiled} }

// String masks the secrets of a text that is at hand in full, and says how many they were: the identical string where
// there is none. Masks are left alone.
//
// Lines stay lines, and what was valid JSON stays so.
func (m *Masker) String(s string) (string, int) {
	if m == nil || len(s) < shortest {
		return s, 0
	}
	st := Stream{m: m}
	out := st.Text([]byte(s))
	if st.n == 0 {
		return s, 0
	}
	return string(out), st.n
}

// Holds says whether there is a secret in s.
func (m *Masker) Holds(s string) bool {
	_, n := m.String(s)
	return n > 0
}

// JSON masks in each string of a JSON value, and each value of a member whose name says that it is a secret, whatever it
// looks like: for arguments that are written down. What is no JSON gives nil. A nil masker masks nothing.
func (m *Masker) JSON(raw json.RawMessage) (masked json.RawMessage) {
	if m == nil {
		return raw
	}
	defer func() {
		if p := recover(); p != nil {
			m.tell(p)
			masked = nil
		}
	}()
	v, ok := decode(raw)
	if !ok {
		return nil
	}
	b, err := json.Marshal(m.value(v))
	if err != nil {
		return nil
	}
	return b
}

func (m *Masker) value(v any) any {
	switch v := v.(type) {
	case string:
		s, _ := m.String(v)
		return s
	case []any:
		for i := range v {
			v[i] = m.value(v[i])
		}
	case map[string]any:
		for k := range v {
			_, is := v[k].(string)
			if class, _ := classify([]byte(k)); class != nil && is {
				v[k] = "[masked: " + class.Name + "]"
			} else {
				v[k] = m.value(v[k])
			}
		}
	}
	return v
}

// found is a secret in a text.
type found struct {
	from, to int
	public   int // bytes at its beginning that tell what it is and are no secret
	lead     int // bytes before it that tell what it is, such as a name: a text cut between the two shows it
	format   *Format
	block    bool // several lines: each stays a line
	more     bool // it goes on what was found before: not counted again
	prefix   []byte
	list     header // it is an element of its values, and more may follow
}

// maxPublic is how much of a secret's public beginning stands in its mask, in bytes.
const maxPublic = 16

// appendMask appends what stands for a secret: [masked: NAME BEGINNING… N chars].
func appendMask(dst []byte, f *Format, public []byte, chars int) []byte {
	dst = append(append(dst, "[masked: "...), f.Name...)
	if n := min(len(public), maxPublic); n > 0 {
		dst = append(append(append(dst, ' '), public[:n]...), "…"...)
	}
	dst = append(dst, ' ')
	dst = strconv.AppendInt(dst, int64(chars), 10)
	return append(dst, " chars]"...)
}

// again stands for a further line of a secret of several lines.
const again = "[masked]"
