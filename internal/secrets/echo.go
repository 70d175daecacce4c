package secrets

import (
	"encoding/json"
	"runtime/debug"
	"unicode/utf8"
)

// minEcho is the shortest part of a secret, in bytes, that is looked for where a text repeats what it was asked with.
const minEcho = 8

// Echo masks a text that may repeat what a call was asked with, as its error does: beside the secrets of the text, every
// part of 8 bytes and more of one that stands in args, however it was cut or quoted. args are JSON values; what is
// none is not looked at. It gives how many secrets were masked.
func (m *Masker) Echo(s string, args ...json.RawMessage) (masked string, n int) {
	if m == nil {
		return s, 0
	}
	masked, n = m.String(s)
	if len(masked) < minEcho {
		return masked, n
	}
	defer func() {
		if p := recover(); p != nil {
			m.tell(p)
			masked, n = Unsearched, n+1
		}
	}()
	e := echo{places: map[string][]int{}, covered: make([]bool, len(masked))}
	for i := range len(masked) - minEcho + 1 {
		part := masked[i : i+minEcho]
		e.places[part] = append(e.places[part], i)
	}
	for _, raw := range args {
		if v, ok := decode(raw); ok {
			m.echoes(v, &e)
		}
	}
	if e.found == 0 {
		return masked, n
	}
	return e.without(masked), max(n, e.found)
}

// echo is what of a text stands in the secrets of others.
type echo struct {
	places  map[string][]int // where each part of the text begins that no secret was seen to hold
	covered []bool           // by byte
	found   int              // secrets of which a part stands there
}

// echoes looks for parts of the secrets in a value, and in the names of its members.
func (m *Masker) echoes(v any, e *echo) {
	switch v := v.(type) {
	case string:
		text := unescaped([]byte(v)).b
		sc := scan{b: text, final: true, f: m.f()}
		for _, f := range sc.all() {
			e.cover(text[f.from+f.public : f.to])
		}
	case []any:
		for _, one := range v {
			m.echoes(one, e)
		}
	case map[string]any:
		for name, one := range v {
			m.echoes(name, e)
			m.echoes(one, e)
		}
	}
}

// cover takes each part of a secret once, so that the whole costs linear time.
func (e *echo) cover(secret []byte) {
	told := false
	for i := 0; i+minEcho <= len(secret); i++ {
		part := string(secret[i : i+minEcho])
		for _, at := range e.places[part] {
			told = true
			for k := range minEcho {
				e.covered[at+k] = true
			}
		}
		delete(e.places, part)
	}
	if told {
		e.found++
	}
}

// without is the text with a mask for each stretch that is covered.
func (e *echo) without(text string) string {
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); {
		if !e.covered[i] {
			out = append(out, text[i])
			i++
			continue
		}
		for len(out) > 0 && !utf8.RuneStart(text[i]) { // a stretch may begin within a character
			i--
			out = out[:len(out)-1]
		}
		for i < len(text) && (e.covered[i] || !utf8.RuneStart(text[i])) {
			i++
		}
		out = append(out, again...)
	}
	return string(out)
}

// Telling is the same masker, which tells why a text could not be searched: what went wrong, and where.
func (m *Masker) Telling(to func(why any, stack []byte)) *Masker {
	if m == nil {
		return nil
	}
	return &Masker{m.f, to}
}

func (m *Masker) tell(why any) {
	if m.told != nil {
		m.told(why, debug.Stack())
	}
}
