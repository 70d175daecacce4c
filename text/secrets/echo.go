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
	e := echo{filter: m.f(), parts: map[string]int{}}
	for _, raw := range args {
		if v, ok := decode(raw); ok {
			e.addSecrets(v)
		}
	}
	edits, found := e.find(masked)
	if found == 0 {
		return masked, n
	}
	out, _ := apply(nil, []byte(masked), 0, edits)
	return string(out), max(n, found)
}

// echo has the secrets of arguments, in parts: each range of minEcho bytes, with the number of the secret.
type echo struct {
	filter  *filter
	parts   map[string]int
	secrets int
}

// addSecrets adds the secrets in a decoded JSON value, including those in the names of members.
func (e *echo) addSecrets(v any) {
	switch v := v.(type) {
	case string:
		text := newView([]byte(v)).b
		sc := scan{b: text, final: true, f: e.filter}
		for _, f := range sc.findAll() {
			e.secrets++
			for i := f.from + f.public; i+minEcho <= f.to; i++ {
				if part := string(text[i : i+minEcho]); e.parts[part] == 0 {
					e.parts[part] = e.secrets
				}
			}
		}
	case []any:
		for _, one := range v {
			e.addSecrets(one)
		}
	case map[string]any:
		for name, one := range v {
			e.addSecrets(name)
			e.addSecrets(one)
		}
	}
}

// find returns the masks of the parts that are in a text, in whole characters, and the number of their secrets.
func (e *echo) find(text string) (edits []edit, secrets int) {
	found := map[int]bool{}
	for i := range len(text) - minEcho + 1 {
		secret := e.parts[text[i:i+minEcho]]
		if secret == 0 {
			continue
		}
		found[secret] = true
		from, to := i, i+minEcho
		for ; from > 0 && !utf8.RuneStart(text[from]); from-- {
		}
		for ; to < len(text) && !utf8.RuneStart(text[to]); to++ {
		}
		if last := len(edits) - 1; last >= 0 && from <= edits[last].to {
			edits[last].to = to
		} else {
			edits = append(edits, edit{from, to, []byte(maskedLine)})
		}
	}
	return edits, len(found)
}
