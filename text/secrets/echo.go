package secrets

import (
	"encoding/json"
	"unicode/utf8"
)

// minEcho is the minimum length, in bytes, of a part of a secret that [Masker.Echo] masks.
const minEcho = 8

// Echo masks a text that may repeat the arguments of a call, such as an error message. It masks the secrets that
// [Masker.String] finds, and each part of at least 8 bytes of a secret in args, even if the secret was truncated or
// quoted differently. args are JSON values; invalid JSON is ignored. n is the number of masked secrets.
func (m *Masker) Echo(s string, args ...json.RawMessage) (masked string, n int) {
	if m == nil {
		return s, 0
	}
	masked, n = m.String(s)
	if len(masked) < minEcho {
		return masked, n
	}
	defer m.failClosed(func() { masked, n = Unsearched, n+1 })
	e := echo{places: map[string][]int{}, covered: make([]bool, len(masked))}
	for i := range len(masked) - minEcho + 1 {
		part := masked[i : i+minEcho]
		e.places[part] = append(e.places[part], i)
	}
	for _, raw := range args {
		if v, ok := decode(raw); ok {
			m.findEchoes(v, &e)
		}
	}
	if e.found == 0 {
		return masked, n
	}
	return e.mask(masked), max(n, e.found)
}

// echo collects the parts of a text that also occur in secrets of the arguments.
type echo struct {
	places  map[string][]int // positions in the text of each part not yet found in a secret
	covered []bool           // for each byte of the text, whether it must be masked
	found   int              // number of secrets of which a part is in the text
}

// findEchoes finds the secrets in a decoded JSON value, including the names of members, and marks their parts in the
// text.
func (m *Masker) findEchoes(v any, e *echo) {
	switch v := v.(type) {
	case string:
		text := newView([]byte(v)).b
		sc := scan{b: text, final: true, f: m.f()}
		for _, f := range sc.findAll() {
			e.cover(text[f.from+f.public : f.to])
		}
	case []any:
		for _, one := range v {
			m.findEchoes(one, e)
		}
	case map[string]any:
		for name, one := range v {
			m.findEchoes(name, e)
			m.findEchoes(one, e)
		}
	}
}

// cover marks the parts of a secret that are in the text. It removes each part from places, so that the cost is
// linear.
func (e *echo) cover(secret []byte) {
	found := false
	for i := 0; i+minEcho <= len(secret); i++ {
		part := string(secret[i : i+minEcho])
		for _, at := range e.places[part] {
			found = true
			for k := range minEcho {
				e.covered[at+k] = true
			}
		}
		delete(e.places, part)
	}
	if found {
		e.found++
	}
}

// mask returns the text with each covered range replaced by a mask.
func (e *echo) mask(text string) string {
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); {
		if !e.covered[i] {
			out = append(out, text[i])
			i++
			continue
		}
		for len(out) > 0 && !utf8.RuneStart(text[i]) { // a range may start within a character
			i--
			out = out[:len(out)-1]
		}
		for i < len(text) && (e.covered[i] || !utf8.RuneStart(text[i])) {
			i++
		}
		out = append(out, maskedLine...)
	}
	return string(out)
}
